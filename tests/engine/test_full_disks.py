"""Disks that are really full: a small file system, in memory and in an image, where one may mount.

The sweep over system calls makes any of them fail; here the kernel decides when, and for how long.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from cerata.engine.copies import backup
from cerata.engine.errors import CerataError, StorageFailed
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.mutation.mutate import Edit, Plant

from .words import RING, put, texts

SIZE = 4 << 20

FITS_MAX = 1_000
"""Appends that are tried: many more than fit."""


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


def names(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir() if entry.is_file())


def fill(place: Path) -> Path:
    """Take all but about 300 KB of the disk, and return the file that does."""
    filler = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    filler.write_bytes(bytes(free - 300_000))
    return filler


def appends_are_refused(place: Path) -> None:
    """Check that appends go on while the ring has room, and are refused until there is space."""
    path = str(place / "a.cera")
    filler = fill(place)
    told: list[str] = []

    def append_to_the_end(log: Log) -> None:
        while len(told) < FITS_MAX:
            text = f"{len(told)} {os.urandom(1500).hex()}"
            log.append([put(text)])
            told.append(text)

    with open_log(path, ring_bytes=RING) as log:
        with pytest.raises(StorageFailed) as full:
            append_to_the_end(log)
        assert full.value.errno == errno.ENOSPC
        assert len(told) > 20
        with pytest.raises(StorageFailed):
            log.append([put(os.urandom(60_000).hex())])
        assert texts(log) == told
        with open_log(path, mode="r") as reader:
            assert texts(reader) == told
        filler.unlink()
        log.append([put("there is space again")])
        log.append([put(os.urandom(20_000).hex())])
        assert texts(log)[: len(told) + 1] == [*told, "there is space again"]
    with open_log(path) as log:
        assert texts(log)[: len(told)] == told
        assert log.head.seq == len(told) + 2
        assert verify_log(log).problems == ()


def no_half_of_a_file_is_left(place: Path) -> None:
    """Check that a file is not created and nothing is left; with space, it is."""
    fill(place)
    (place / "first").write_bytes(bytes(270_000))
    path = str(place / "a.cera")
    with pytest.raises(StorageFailed):
        open_log(path, ring_bytes=RING)
    assert names(place) == ["filler", "first"]
    (place / "filler").unlink()
    with open_log(path, ring_bytes=RING) as log:
        log.append([put("a")])


def no_half_of_a_copy_is_left(place: Path) -> None:
    """Check that a copy appears whole or not at all, and that the log goes on."""
    path = str(place / "a.cera")
    with open_log(path, ring_bytes=RING) as log:
        for _ in range(10):
            log.append([put(os.urandom(10_000).hex())])
        fill(place)
        (place / "more").write_bytes(bytes(250_000))
        with pytest.raises(StorageFailed):
            backup.back_up(log, str(place / "copy.cera"))
        assert names(place) == ["a.cera", "filler", "more"]
        assert len(texts(log)) == 10
        (place / "filler").unlink()
        backup.back_up(log, str(place / "copy.cera"))
    with open_log(str(place / "copy.cera"), mode="r") as copy:
        assert len(texts(copy)) == 10


def test_a_full_disk_refuses_loses_nothing_and_is_written_again(small_disk: Path) -> None:
    """Who was told that it is there finds it; who was refused may try again."""
    appends_are_refused(small_disk)


def test_a_full_disk_leaves_no_half_of_a_new_file(small_disk: Path) -> None:
    """Half of one would be refused by whoever comes next, and its space be lost."""
    no_half_of_a_file_is_left(small_disk)


def test_a_disk_that_is_full_in_the_middle_of_a_backup_keeps_the_log(small_disk: Path) -> None:
    """A copy that is not whole is worse than none."""
    no_half_of_a_copy_is_left(small_disk)


SWALLOWED = Edit(
    "cerata.engine.disk.storage:OsFile.write_at", "raise self._refused(error", "return #"
)


@pytest.mark.unwatched("what is planted leaves files that are not whole")
@pytest.mark.parametrize(
    ("check", "edit"),
    [
        (appends_are_refused, SWALLOWED),
        (no_half_of_a_file_is_left, SWALLOWED),
        (
            no_half_of_a_file_is_left,
            Edit("cerata.engine.log_file.create:create", "if not named:", "if False:"),
        ),
        (no_half_of_a_copy_is_left, SWALLOWED),
        (
            no_half_of_a_copy_is_left,
            Edit("cerata.engine.log_file.create:new_file", "if not named:", "if False:"),
        ),
    ],
    ids=["append", "create", "what is left of a file", "backup", "what is left of a copy"],
)
def test_without_its_mechanism_a_full_disk_is_noticed(
    small_disk: Path, check: Callable[[Path], None], edit: Edit
) -> None:
    """Each check fails where a refused write is taken for done, or what it left stays."""
    plant = Plant("a full disk", "promises", (edit,))
    with plant.planted(), pytest.raises((AssertionError, CerataError, pytest.fail.Exception)):
        check(small_disk)
