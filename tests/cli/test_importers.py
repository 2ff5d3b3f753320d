"""Records of other memories at the command line."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

import cerata

from ..integrations.sources_of import source
from .conftest import Run


def test_a_dry_run_and_an_import(run: Run) -> None:
    """A dry run makes no file; the second import adds nothing."""
    shutil.move(source("mem0-3.db", Path()), "history.db")
    command = ("file", "import", "--from", "mem0", "history.db")
    code, out, err = run(*command, "--dry-run")
    assert (code, out, err) == (0, "3 records would be added, 0 already present\n", "")
    assert not list(Path().glob("*.cera"))
    code, out, _ = run(*command, "--scope", "user=anna")
    assert (code, out.splitlines()[0]) == (0, "3 records added, 0 already present")
    code, out, _ = run(*command, "--scope", "user=anna", "--json")
    assert json.loads(out) == {
        "file": "memory.cera",
        "from": "mem0",
        "source": "history.db",
        "dry_run": False,
        "added": 0,
        "known": 3,
        "skipped": {},
        "refused": 0,
        "problems": [],
        "head": 3,
        "notices": [],
        "doubtful": 0,
        "doubts": [],
    }
    with cerata.open("memory.cera") as store:
        assert [frame.scope["user"] for frame in store.frames()] == ["anna"]


def test_lines_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of an export."""
    data = io.BytesIO(b'{"text": "a"}\n{"text": "b"}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert run("file", "import", "--from", "jsonl", "-")[1].startswith("2 records added")


def test_problems_are_listed_and_refused(run: Run) -> None:
    """The rest is imported, and the exit code is 1; a file without a usable record is an error."""
    Path("bad.jsonl").write_text(
        '{"text": "a", "created": "?"}\n{"text": ""}\n{"words": "b"}\n{"text": "c"}\n'
    )
    code, out, err = run("file", "import", "--from", "jsonl", "bad.jsonl", "--dry-run")
    assert code == 1
    assert "bad.jsonl, line 2\n  The text is empty\n" in out
    assert "2 records cannot be imported" in err
    code, out, err = run("file", "import", "--from", "jsonl", "bad.jsonl")
    assert code == 1
    assert out.startswith("2 records added, 0 already present, 2 refused, 1 doubtful\n")
    assert "bad.jsonl, line 2\n  The text is empty\n" in out
    assert "bad.jsonl, line 1\n  Added without a part: created is no time: '?'\n" in out
    assert "1 record was added without a part" in err
    code, out, _ = run("file", "import", "--from", "jsonl", "bad.jsonl", "--json")
    answer = json.loads(out)
    assert (code, answer["refused"], answer["known"], answer["doubtful"]) == (1, 2, 2, 0)
    Path("bad.jsonl").write_text('{"text": ""}\n')
    code, _, err = run("file", "import", "--from", "jsonl", "bad.jsonl")
    assert code == 2
    assert "bad.jsonl, line 1" in err


def test_options_that_do_not_fit_are_refused(run: Run) -> None:
    """Usage errors, and a missing file."""
    assert run("file", "import", "a.jsonl", "--dry-run")[0] == 2
    assert run("file", "import", "--from", "csv", "a.csv")[0] == 2
    assert run("file", "import", "--from", "mem0", "none.db")[0] == cerata.NotFound.exit_code
    assert run("file", "import", "--from", "mem0", "-")[0] == 2
