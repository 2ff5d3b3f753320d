"""``cerata time bisect``: by a question, by a command, resumed, and refused."""

import json
from pathlib import Path

import pytest

import cerata
from cerata.cli import main

SPOKEN = ("The index is Annoy.", "Lunch is at noon.")


@pytest.fixture
def memory(tmp_path: Path) -> str:
    """A memory in which event 4 changes the index, and anna pays from event 6 on."""
    path = tmp_path / "m.cera"
    with cerata.open(path) as store:
        for text in SPOKEN:
            store.put_frame(text)
        store.supersede(1, "The index is HNSW.", actor="ben", reason="fast")
        store.put_frame("Tea at four.")
        store.put_frame("Now anna pays the bills.")
        store.history.tag("later")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_commands_of_the_page(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("time", "bisect", "-f", memory)
    code, out, _ = run(capsys, *base, "--query", "which index?", "--expect", "Annoy", "--good", "1")
    assert code == 0
    assert "first bad event #4 of batch 3..4" in out
    assert "by ben (fast)" in out
    assert "before  The index is Annoy." in out
    assert "after   The index is HNSW." in out
    assert "replaced #1 → #3" in out
    code, out, _ = run(
        capsys, *base, "--query", "who pays?", "--forbid", "ANNA", "--good", "1", "--bad", "later"
    )
    assert (code, "first bad event #6" in out) == (0, True)
    code, out, _ = run(capsys, *base, "--run", 'test "$CERATA_BASIS" -lt 5', "--good", "HEAD~5")
    assert (code, "first bad event #5" in out) == (0, True)


def test_the_command_reads_the_memory_at_the_point(
    memory: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its output does not mix with the answer."""
    log = tmp_path / "points"
    script = f'echo "$CERATA_BASIS" "$CERATA_FILE" >> {log}; echo noise; test $CERATA_BASIS != 7'
    code = main(("time", "bisect", "-f", memory, "--run", script, "--json"))
    answer = json.loads(capfd.readouterr().out)
    assert (code, answer["seq"], answer["before"]) == (0, 7, None)
    points = [line.split() for line in log.read_text().splitlines()]
    assert [int(basis) for basis, _ in points] == [probe["basis"] for probe in answer["probes"]]
    assert {path for _, path in points} == {memory}


def test_a_printed_log_is_resumed(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = 'test "$CERATA_BASIS" -lt 5'
    _, out, _ = run(capsys, "time", "bisect", "-f", memory, "--run", script)
    log = tmp_path / "bisect.log"
    log.write_text(out)
    code, again, _ = run(
        capsys, "time", "bisect", "-f", memory, "--run", "exit 200", "--resume", str(log)
    )
    assert code == 0
    assert "first bad event #5" in again
    code, _, error = run(
        capsys, "time", "bisect", "-f", memory, "--run", "true", "--resume", "nowhere"
    )
    assert (code, "does not exist" in error) == (6, True)


def test_exit_code_125_skips(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = 'test "$CERATA_BASIS" = 3 && exit 125; test "$CERATA_BASIS" -lt 6'
    code, out, _ = run(capsys, "time", "bisect", "-f", memory, "--run", script)
    assert code == 0
    assert "skip #3" in out
    assert "first bad event #6" in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--run", "exit 200"), 17, "exit code 200, that of a signal"),
        (("--run", "kill -9 $$"), 17, "exit code -9"),
        ((), 2, "takes one test"),
        (("--query", "x", "--run", "true"), 2, "takes one test"),
        (("--query", "x"), 2, "--query takes one of"),
        (("--query", "x", "--expect", "a", "--forbid", "b"), 2, "--query takes one of"),
        (("--run", "true", "--expect", "a"), 2, "belong to --query"),
        (("--run", "true"), 2, "so no event between them changed the answer"),
        (("--run", "true", "--good", "99"), 6, "There is no event 99"),
        (("--run", "true", "--checks", "-1"), 2, "checks must be a whole number"),
    ],
)
def test_a_search_without_an_answer_is_refused(
    memory: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str
) -> None:
    found, _, error = run(capsys, "time", "bisect", "-f", memory, *words)
    assert (found, message in error) == (code, True), error
