"""Pipes, sockets and devices: refused as soon as they are named, wherever a file is meant."""

import os
import signal
import socket
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

import cerata
from cerata.engine.errors import InvalidInput
from cerata.memory.ingest.document import read_file

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def in_time() -> Generator[None]:
    """Fail where a call waits for the other end of a pipe, which never comes."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 20)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))
    return path


def device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


KINDS = pytest.mark.parametrize("make", [pipe, listening, device])
Make = Callable[[Path], Path]


@KINDS
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_as_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make, mode: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path / "a.cera")
    with pytest.raises(cerata.StorageFailed, match="Name a regular file"):
        cerata.open(path, mode="r" if mode == "r" else "rw")


@KINDS
def test_as_a_file_to_remember(run: Run, tmp_path: Path, make: Make) -> None:
    make(tmp_path / "a.md")
    code, _, err = run("remember", "a.md")
    assert (code, "pipe, socket or device" in err) == (1, True)
    code, out, _ = run("remember", ".")
    assert (code, "1 no files" in out) == (0, True)


@KINDS
@pytest.mark.parametrize(
    "words", [("file", "import"), ("admin", "crash-test", "--replay")], ids=["import", "crash-test"]
)
def test_as_a_file_to_import_or_replay(
    run: Run, tmp_path: Path, make: Make, words: tuple[str, ...]
) -> None:
    make(tmp_path / "given")
    code, _, err = run(*words, "given")
    assert (code, "pipe, socket or device" in err) == (2, True)


@KINDS
@pytest.mark.parametrize(
    "taken", ["alice.svg", f".alice.svg.{os.getpid()}.partial"], ids=["picture", "temporary"]
)
def test_as_a_picture(run: Run, tmp_path: Path, make: Make, taken: str) -> None:
    with cerata.open("memory.cera") as store:
        store.assert_fact("alice", "is", "b")
    make(tmp_path / taken)
    code, _, _ = run("facts", "list", "alice", "--plot", "alice.svg")
    assert code != 0
    if taken == "alice.svg":
        assert not (tmp_path / taken).is_file()


def test_what_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a look at a name and opening it, another process may put a pipe there."""

    def is_file(path: Path) -> bool:
        return path.name == "a.md"

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(InvalidInput, match="pipe, socket or device"):
        read_file(pipe(tmp_path / "a.md"))
