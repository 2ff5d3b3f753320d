"""The verbs compact and maintain: what they print, and what they refuse."""

import json
from pathlib import Path

import pytest

import cerata
from cerata.cli.main import main
from cerata.engine.words import bytes_text


@pytest.fixture
def memory(tmp_path: Path) -> str:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        frames = store.put_frames([f"Note {number}, of the old office." for number in range(40)])
        store.checkpoint()
        store.supersede(frames.ids[0], "Note 0, of the new office.")
        store.delete(frames.ids[1])
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_commands_of_the_page(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    size = Path(memory).stat().st_size
    code, out, _ = run(capsys, "file", "compact", "-f", memory, "--dry-run")
    assert (code, out.startswith("The file would shrink from ")) == (0, True)
    assert Path(memory).stat().st_size == size
    code, out, _ = run(capsys, "file", "compact", "-f", memory)
    assert (code, out) == (0, f"Nothing to gain: the file stays at {bytes_text(size)}.\n")
    code, out, _ = run(capsys, "file", "compact", "-f", memory, "--horizon", "90 days ago")
    assert (code, "gave up the contents of 0 events" in out) == (0, True)
    code, out, _ = run(capsys, "file", "compact", "-f", memory, "--horizon", "HEAD", "--json")
    facts = json.loads(out)
    assert (code, facts["done"], facts["dropped"], facts["horizon"]) == (0, True, 2, 43)
    code, out, _ = run(capsys, "file", "maintain", "-f", memory, "--budget", "0.5")
    assert (code, out) == (0, "Nothing is due.\n")
    code, _, err = run(capsys, "show", "-f", memory, "2", "--at", "40")
    assert code == 10
    assert "given up by retention" in err


def test_the_upkeep_that_is_due_is_reported(
    memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with cerata.open(memory) as store:
        store.close = lambda: None  # type: ignore[method-assign]
        store.put_frames([f"more {number}" for number in range(300)])
    code, out, _ = run(capsys, "file", "maintain", "-f", memory, "--json")
    facts = json.loads(out)
    assert (code, facts["checkpointed"], facts["compaction"], facts["due"]) == (
        0,
        True,
        None,
        False,
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("file", "compact", "--horizon", "99"), 6, "There is no event 99"),
        (("file", "compact", "--scope", "user_id=u1"), 2, "scope"),
        (("file", "maintain", "--budget", "0"), 2, "budget_seconds must be above 0"),
        (("file", "maintain", "--budget", "soon"), 2, "invalid float"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...], code: int, message: str, memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, _, err = run(capsys, words[0], "-f", memory, *words[1:])
    assert (got, message in err) == (code, True), err


def test_the_history_of_an_erased_part_names_no_event_that_closed_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The event is unknown; that of the put was named."""
    path = str(tmp_path / "parts.cera")
    with cerata.open(path) as store:
        folder = store.put_frame("a folder")
        note = store.put_frame("a note", options=cerata.PutOptions(parent=folder))
        store.delete(folder)
    assert "deleted by event 3" in run(capsys, "time", "history", "-f", path, f"{note.id}")[1]
    run(capsys, "file", "compact", "-f", path, "--horizon", "HEAD")
    code, out, _ = run(capsys, "time", "history", "-f", path, f"{note.id}")
    assert code == 0
    assert "by event" not in out
    assert "deleted by event 3" in run(capsys, "time", "history", "-f", path, f"{folder.id}")[1]
