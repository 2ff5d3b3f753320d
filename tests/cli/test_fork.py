"""The verb fork: a new file, the changes on both sides, and the events of a fork as drafts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import cerata
from cerata.cli.main import main


@pytest.fixture
def memory(tmp_path: Path) -> str:
    path = tmp_path / "memory.cera"
    with cerata.open(path, actor="anna") as store:
        store.put_frame("The index is Annoy.")
        store.put_frames([f"Note {number}." for number in range(5)])
        store.put_frame("Lunch is at noon.")
        store.put_frame("Tea is at four.")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_commands_of_the_page(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fork = str(tmp_path / "try-it.cera")
    base = ("time", "fork", "-f", memory)
    code, out, _ = run(capsys, *base, fork, "--at", "HEAD~2")
    assert (code, out.startswith(f"{fork} continues {memory} from event 6\n")) == (0, True)
    with cerata.open(fork, actor="ben") as store:
        store.supersede(1, "The index is HNSW.", reason="fast")
    code, out, _ = run(capsys, *base, "--compare", fork)
    assert code == 0
    assert f"{memory} since event 6" in out
    assert "added #7" in out
    assert "+The index is +{HNSW}." in out
    code, out, _ = run(capsys, *base, "--apply", fork)
    put, supersede = map(json.loads, out.splitlines())
    assert (code, put["type"], put["actor"], put["reason"]) == (0, "putFrame", "ben", "fast")
    assert supersede["body"] == {"old": 1, "new": -1}
    with cerata.open(memory, mode="r") as store:
        assert store.head.seq == 8
    code, out, _ = run(capsys, *base, "--apply", fork, "--yes")
    assert (code, out) == (0, f"2 events of {fork} appended\n")
    code, out, _ = run(capsys, *base, "--apply", fork, "--yes", "--json")
    assert (code, json.loads(out)["appended"]) == (0, [])
    with cerata.open(memory, mode="r") as store:
        assert (store.head.seq, store.search("index")[0].text) == (10, "The index is HNSW.")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "fork takes one of NEW"),
        (("a.cera", "--compare", "b.cera"), 2, "fork takes one of NEW"),
        (("a.cera", "--yes"), 2, "--yes belongs to --apply"),
        (("a.cera", "--at", "3"), 2, "Fork at 1 or at 6"),
        (("--apply", "none.cera"), 6, "There is no such file"),
    ],
)
def test_bad_usage_says_what_to_do(
    memory: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Sequence[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _, error = run(capsys, "time", "fork", "-f", memory, *words)
    assert (found, message in error) == (code, True)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.cera"]
