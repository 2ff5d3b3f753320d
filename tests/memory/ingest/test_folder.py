"""A folder of real files: killed on the way, resumed, each there once; and quick when it is."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import cerata
from cerata.memory.ingest import document as ingest
from cerata.memory.store import Store

ROOT = Path(__file__).parents[3]

KILLED = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
left = int(sys.argv.pop(1))
from cerata.memory.batch.session import WriteSession
write = WriteSession.write
def write_or_die(self, *arguments, **options):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return write(self, *arguments, **options)
WriteSession.write = write_or_die
from cerata.__main__ import main
sys.exit(main())
"""
"""The command line, killed by the operating system before so many writes are exceeded."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty modules of the standard library, in order of their names."""
    made = tmp_path / "library"
    made.mkdir()
    found = sorted(Path(os.__file__).parent.glob("*.py"))
    sized = [path for path in found if 2_000 < path.stat().st_size < 100_000]
    for path in sized[:40]:
        shutil.copy(path, made / path.name)
    return made


def test_a_folder_killed_three_times_is_there_once_and_whole(folder: Path) -> None:
    """What was acknowledged stays, what is missing comes, and nothing comes twice."""
    file = folder.parent / "a.cera"

    def remember(writes: int) -> int:
        arguments = [sys.executable, "-W", "error", "-c", KILLED, str(ROOT), str(writes)]
        arguments += ["-f", str(file), "remember", str(folder)]
        return subprocess.run(arguments, capture_output=True, timeout=120, check=False).returncode

    heads: list[int] = []
    for _ in range(3):
        assert remember(11) == -9
        with cerata.open(file, mode="r") as store:
            heads.append(store.head.seq)
    assert 0 < heads[0] < heads[1] < heads[2]
    assert remember(1_000) == 0
    with cerata.open(file, mode="r") as store:
        head = store.head.seq
        assert head > heads[2]
        frames = list(store.frames())
        expected = {path.as_posix(): path.read_bytes() for path in folder.iterdir()}
        assert Counter(frame.uri for frame in frames) == Counter(list(expected))
        assert {frame.uri: frame.text.encode() for frame in frames} == expected
    assert remember(0) == 0
    with cerata.open(file, mode="r") as store:
        assert store.head.seq == head


def taken(store: Store, folder: Path) -> float:
    start = time.perf_counter()
    for path in sorted(folder.iterdir()):
        store.remember(path)
    return time.perf_counter() - start


def found_nothing(*_: object) -> None:
    """Find no file again, whatever it is."""


def ratio(folder: Path) -> float:
    """How much longer a folder takes the first time than again, in one run."""
    with cerata.open(":memory:") as store:
        first = taken(store, folder)
        return first / min(taken(store, folder) for _ in range(3))


def test_the_same_folder_again_is_quick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is quick because nothing is cut for it: without that it is not."""
    assert ratio(folder) > 10
    monkeypatch.setattr(ingest, "find_unchanged", found_nothing)
    assert ratio(folder) < 5
