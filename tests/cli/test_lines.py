"""Lines on a terminal: broken between words, at any width, by every verb of the story."""

import re
from itertools import product
from pathlib import Path

import pytest
from rich.cells import cell_len

import cerata
import cerata.cli.output as output_module
from cerata.cli import main
from cerata.cli.output import Output
from cerata.cli.parser import parser
from cerata.engine.words import column
from cerata.memory.frames.event_summary import acts
from cerata.retrieval.embedders import built_in

from ..embedders import Hashing
from .conftest import Run, verbs
from .story import Answer, tell

WIDTHS = (60, 80, 120)
WIDE = 2_000
WHOLE = ("completion", "mcp-claude-code", "mcp-vscode", "audit-markdown", "recall-messages")
"""Steps whose lines are copied, so they stay whole: scripts, and Markdown and JSON."""
DRAWN = ("tour", "crash-test")
"""Verbs with measured figures, or with bars as wide as the terminal."""
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(stream: object) -> bool:
    return True


def lines_of(text: str) -> list[str]:
    return STYLES.sub("", text).splitlines()


def words_of(text: str) -> set[str]:
    return {word for line in lines_of(text) for word in line.split()}


def is_long(line: str, width: int) -> bool:
    """Return whether a terminal breaks a line, and a break between words could help."""
    return cell_len(line) > width and len(line.split()) > 1


def told(
    folder: Path,
    width: int,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> dict[str, Answer]:
    """Tell the story at a terminal of a width."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CERATA_FILE", raising=False)
    monkeypatch.setenv("CERATA_PAGER", "")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(output_module, "_is_terminal", on_terminal)
    return {
        answer.step.name: answer
        for answer in tell(folder, capsys, seed, without=DRAWN)
        if answer.step.name not in WHOLE
    }


@pytest.mark.slow("runs every verb at several widths")
@pytest.mark.unwatched("damages files")
def test_no_line_of_a_terminal_breaks_inside_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """A terminal breaks a long line where its last column is: "datab" and "ase"."""
    answers: dict[int, dict[str, Answer]] = {}
    for width in (WIDE, *WIDTHS):
        # In one folder, since its path is in the hashes of the log.
        folder = tmp_path / "story"
        answers[width] = told(folder, width, seed, monkeypatch, capsys)
        folder.rename(tmp_path / str(width))
    wide = answers[WIDE]
    wrong: list[str] = []
    for width, name in product(WIDTHS, wide):
        answer = answers[width][name]
        for text, whole in ((answer.out, wide[name].out), (answer.err, wide[name].err)):
            known = words_of(whole)
            wrong += [f"{width}, {name}: {line}" for line in lines_of(text) if is_long(line, width)]
            new = {word for word in words_of(text) - known if "…" not in word}
            wrong += [f"{width}, {name}: {word!r}" for word in sorted(new)]
    assert wrong == []


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verb", ["", *verbs()])
def test_no_line_of_help_breaks_inside_a_word(
    verb: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples and the end of the help were as wide as they are, on any terminal."""
    one = verbs()[verb] if verb else parser()
    monkeypatch.setenv("COLUMNS", str(WIDE))
    known = set(one.format_help().split())
    monkeypatch.setenv("COLUMNS", str(width))
    lines = one.format_help().splitlines()
    assert [line for line in lines if len(line) > width and len(line.split()) > 1] == []
    assert {word for line in lines for word in line.split()} - known == set()


def test_a_long_memory_is_read_by_whole_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a new user saw: a context, an audit, a reason and an error in pieces."""
    words = [f"word{number:03}" for number in range(60)]
    path = str(tmp_path / "long.cera")
    with cerata.open(path, actor="anna") as store:
        note = store.put_frame(" ".join(words))
        store.delete(store.put_frame("Old."), reason=" ".join(words))
        fact = store.assert_fact("bridge", "is", " ".join(words), evidence=[note])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(output_module, "_is_terminal", on_terminal)
    for verb, *arguments in (
        ("recall", "word001"),
        ("log", "--who"),
        ("facts", "why", str(fact.id)),
        ("show", str(note.id)),
        ("search", "word001", "--explain"),
        ("recall", "x", "--at", " ".join(words)),
    ):
        main([verb, *arguments, "-f", path, "--no-pager"])
        said = capsys.readouterr()
        lines = lines_of(said.out + said.err)
        assert [line for line in lines if is_long(line, 80)] == [], verb
        pieces = re.findall(r"\w*ord[0-9]\w*|\bword?\b|\bw\b", "\n".join(lines))
        assert pieces, verb
        assert set(pieces) - set(words) <= {piece for piece in pieces if f"{piece}…" in said.out}


def test_an_act_is_apart_from_its_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest act filled its column: "use embedderminilm"."""
    monkeypatch.setitem(built_in.BUILT_IN, "hashing", Hashing)
    with cerata.open("m.cera", embedder="hashing") as store:
        store.put_frame("x")
        store.remember("y")
    for verb in (
        "log",
        "log --oneline",
        "log --who",
        "log --who --markdown",
        "time follow --after 0 --timeout 0",
    ):
        out = run(*verb.split())[1]
        assert "use embedder" in out, verb
        assert re.search(r"use embedder\S", out) is None, verb
    assert [act for act in acts().values() if not column(act, 11).startswith(f"{act} ")] == []


TEXT = "the quick brown fox " * 3


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a" * 45, ["a" * 45]),
        ("  and " + "a" * 45, ["  and", "    " + "a" * 45]),
        ("a " + "b" * 40, ["a", "b" * 40]),
        ("   a " + "b" * 39, [" a", " " + "b" * 39]),
        ("    " + "x " * 20, ["    " + "x " * 16 + "x", "      x x x"]),
        ("鯨" * 10 + " " + "鯨" * 15, ["鯨" * 10, "鯨" * 15]),
        ("one\n\ntwo", ["one", "", "two"]),
    ],
)
def test_a_line_is_broken_between_words_where_it_can_be(
    text: str, lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A longer word stays whole, to be copied; an indent gives way to a word."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(output_module, "_is_terminal", on_terminal)
    Output(as_json=False).line(text)
    assert lines_of(capsys.readouterr().out) == lines


def test_a_pipe_gets_a_text_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A context goes to a model, a line to grep."""
    monkeypatch.setenv("COLUMNS", "40")
    Output(as_json=False).line(TEXT)
    assert capsys.readouterr().out == f"{TEXT}\n"


def test_a_cut_paragraph_ends_with_a_whole_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mark took the end of the last word."""
    monkeypatch.setenv("COLUMNS", "40")
    Output(as_json=False).paragraph("word " * 7 + "words and more", indent=0, lines=1)
    assert capsys.readouterr().out == f"{'word ' * 7}…\n"
