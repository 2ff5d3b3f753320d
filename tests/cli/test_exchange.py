"""Facts to a file and back at the command line: nothing is overwritten, nothing half there."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cerata
from cerata import Conflict, Corrupt, NotFound, View
from cerata.memory.facts import export as fact_export

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def facts(run: Run) -> Path:
    """A memory with facts, and what it exports."""
    with cerata.open("memory.cera") as store:
        store.graph.assert_many([("ann", "likes", "tea"), ("bob", "likes", "Änderungen")])
    assert run("file", "export", "facts.jsonl", "--facts")[0] == 0
    return Path("facts.jsonl")


def test_a_file_and_a_pipe_have_the_same_lines(run: Run, facts: Path) -> None:
    code, out, err = run("file", "export", "--facts")
    assert (code, out, err) == (0, facts.read_text(encoding="utf-8"), "")
    assert [json.loads(one)["type"] for one in out.splitlines()] == ["export", "fact", "fact"]


def test_what_is_imported_from_a_pipe_is_there(
    run: Run, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(facts.read_bytes())))
    code, out, _ = run("file", "import", "-", "-f", "new.cera", "--json")
    assert (code, json.loads(out)["added"]) == (0, 2)
    with cerata.open("new.cera") as store:
        assert [one.object for one in store.facts()] == ["tea", "Änderungen"]


def test_no_file_is_overwritten(run: Run, facts: Path) -> None:
    before = facts.read_bytes()
    code, _, err = run("file", "export", "facts.jsonl", "--facts")
    assert code == Conflict.exit_code
    assert "facts.jsonl exists already" in err
    assert facts.read_bytes() == before


def test_an_export_that_fails_leaves_no_file(
    run: Run, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that looks whole and is not would be believed."""

    def failing(view: View, *, history: bool) -> Iterator[str]:
        yield "{}"
        raise Corrupt("An event cannot be read")

    monkeypatch.setattr(fact_export, "export_facts", failing)
    assert run("file", "export", "more.jsonl", "--facts")[0] == Corrupt.exit_code
    assert sorted(path.name for path in Path().iterdir()) == ["facts.jsonl", "memory.cera"]


def test_lines_do_not_mix_with_an_answer(run: Run, facts: Path) -> None:
    code, out, _ = run("file", "export", "--facts", "--json")
    assert (code, json.loads(out)["error"]) == (2, "InvalidInput")


@pytest.mark.parametrize(("name", "code"), [("none.jsonl", NotFound.exit_code), (".", 2)])
def test_what_is_no_file_leaves_no_memory(run: Run, name: str, code: int) -> None:
    assert run("file", "import", name, "-f", "new.cera")[0] == code
    assert not Path("new.cera").exists()


def test_what_is_exported_must_be_said(run: Run, facts: Path) -> None:
    code, _, err = run("file", "export", "more.jsonl")
    assert code == 2
    assert "--facts" in err
