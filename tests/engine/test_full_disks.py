"""Disks that are really full: a small file system, in memory and in an image, where one may mount.

The sweep over system calls makes any of them fail; here the kernel decides when, and for how long.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from cerata.engine.errors import StorageFailed
from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from .words import RING, put, texts

SIZE = 4 << 20


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Path, None, None]:
    """Mount a file system of 4 MiB."""
    if os.geteuid():
        pytest.skip("only root may mount")
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    place, kind = tmp_path / "disk", request.param
    place.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    else:
        image = tmp_path / "image"
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("there is no mkfs.ext4 here")
        image.write_bytes(bytes(SIZE))
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
        command = ["mount", "-o", "loop", str(image), str(place)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"{kind} cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take all but about 300 KB of the disk, and return the file that does."""
    filler = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    filler.write_bytes(bytes(free - 300_000))
    return filler


def test_a_full_disk_refuses_loses_nothing_and_is_written_again(small_disk: Path) -> None:
    """Appends go on while the ring has room; then they are refused until there is space."""
    path = str(small_disk / "a.cera")
    filler = fill(small_disk)
    told: list[str] = []

    def append_for_ever(log: Log) -> None:
        while True:
            text = f"{len(told)} {os.urandom(1500).hex()}"
            log.append([put(text)])
            told.append(text)

    with Log.open(path, ring_bytes=RING) as log:
        with pytest.raises(StorageFailed) as full:
            append_for_ever(log)
        assert full.value.errno == errno.ENOSPC
        assert len(told) > 20
        with pytest.raises(StorageFailed):
            log.append([put(os.urandom(60_000).hex())])
        assert texts(log) == told
        with Log.open(path, mode="r") as reader:
            assert texts(reader) == told
        filler.unlink()
        log.append([put("there is space again")])
        log.append([put(os.urandom(20_000).hex())])
        assert texts(log)[: len(told) + 1] == [*told, "there is space again"]
    with Log.open(path) as log:
        assert texts(log)[: len(told)] == told
        assert log.head.seq == len(told) + 2
        assert verify_log(log).problems == ()


def test_a_full_disk_leaves_no_half_of_a_new_file(small_disk: Path) -> None:
    """It is not created, and nothing is left; with space, it is."""
    fill(small_disk)
    (small_disk / "first").write_bytes(bytes(270_000))
    path = str(small_disk / "a.cera")
    with pytest.raises(StorageFailed):
        Log.open(path, ring_bytes=RING)
    assert sorted(entry.name for entry in small_disk.iterdir() if entry.is_file()) == [
        "filler",
        "first",
    ]
    (small_disk / "filler").unlink()
    with Log.open(path, ring_bytes=RING) as log:
        log.append([put("a")])


def test_a_disk_that_is_full_in_the_middle_of_a_backup_keeps_the_log(small_disk: Path) -> None:
    """The copy appears whole or not at all."""
    path = str(small_disk / "a.cera")
    with Log.open(path, ring_bytes=RING) as log:
        for _ in range(10):
            log.append([put(os.urandom(10_000).hex())])
        fill(small_disk)
        (small_disk / "more").write_bytes(bytes(250_000))
        with pytest.raises(StorageFailed):
            log.backup(str(small_disk / "copy.cera"))
        assert not (small_disk / "copy.cera").exists()
        assert len(texts(log)) == 10
        (small_disk / "filler").unlink()
        log.backup(str(small_disk / "copy.cera"))
    with Log.open(str(small_disk / "copy.cera"), mode="r") as copy:
        assert len(texts(copy)) == 10
