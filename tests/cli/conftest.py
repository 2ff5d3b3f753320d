"""What the tests of the command line share: a command run in an empty folder."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cerata.cli import main
from cerata.cli.parser import Parser, parser
from cerata.cli.verbs import groups

Run = Callable[..., tuple[int, str, str]]


def verbs_below(top: Parser) -> dict[str, Parser]:
    """Return the parser of each verb below a parser, by the words that call it."""
    verbs: dict[str, Parser] = {}
    for action in top._actions:
        children: dict[str, Parser] = (action.choices or {}) if action.nargs == "A..." else {}  # type: ignore[assignment]
        for child in children.values():
            verbs.update({child.verb.words: child} if child.verb else verbs_below(child))
    return verbs


def verbs() -> dict[str, Parser]:
    """Return the parser of each verb, by the words that call it."""
    return verbs_below(parser())


def words_of(arguments: Sequence[str]) -> str:
    """Return the words of a command that call its verb."""
    return " ".join(arguments[: 2 if arguments[0] in groups() else 1])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in an empty folder; returns exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CERATA_FILE", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
