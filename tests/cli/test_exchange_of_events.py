"""Events to a file and back at the command line."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cerata
from cerata import Conflict, NotFound

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def events(run: Run) -> Path:
    """A memory with events, and its lines."""
    with cerata.open("memory.cera") as store:
        store.put_frames(["tea", "Änderungen"])
        store.put_frame("late")
    assert run("file", "export", "events.jsonl", "--events")[0] == 0
    return Path("events.jsonl")


def test_a_file_a_pipe_and_a_compressed_file_have_the_same_events(
    run: Run, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run("file", "export", "events.jsonl.zst", "--events", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "file": "memory.cera",
        "to": "events.jsonl.zst",
        "first": 1,
        "last": 3,
        "count": 3,
    }
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(events.read_bytes())))
    code, out, _ = run("file", "import", "-", "-f", "first.cera", "--json")
    assert (code, json.loads(out)["added"], json.loads(out)["is_copy"]) == (0, 3, True)
    assert run("file", "import", "events.jsonl.zst", "-f", "second.cera")[0] == 0
    with cerata.open("memory.cera") as store:
        head = store.head.text
    for name in ("first.cera", "second.cera"):
        with cerata.open(name) as store:
            assert store.head.text == head


def test_lines_go_to_standard_output(run: Run, events: Path) -> None:
    code, out, err = run("file", "export", "--events", "--from", "3")
    assert (code, err) == (0, "")
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["log", "event", "end"]


def test_a_cut_file_is_kept_as_far_as_it_goes(run: Run, events: Path) -> None:
    lines = events.read_bytes()
    Path("cut.jsonl").write_bytes(lines[: lines.rindex(b"\n", 0, -1) + 1])
    code, out, err = run("file", "import", "cut.jsonl", "-f", "new.cera")
    assert code == 1
    assert "3 events added" in out
    assert "cut off" in err
    assert run("file", "import", "events.jsonl", "-f", "new.cera")[0] == 0


def test_options_that_do_not_fit_are_refused(run: Run, events: Path) -> None:
    assert run("file", "export", "a.jsonl", "--events", "--history")[0] == 2
    assert run("file", "export", "a.jsonl", "--facts", "--from", "2")[0] == 2
    assert run("file", "export", "a.jsonl", "--facts", "--events")[0] == 2
    assert run("file", "export", "a.jsonl", "--events", "--at", "1")[0] == 2
    assert run("file", "export", "a.jsonl", "--events", "--scope", "user=ann")[0] == 2
    assert run("file", "export", "events.jsonl", "--events")[0] == Conflict.exit_code
    assert run("file", "export", "none/a.jsonl", "--events")[0] == NotFound.exit_code
    assert run("file", "export", "--events", "--json")[0] == 2
    assert not Path("a.jsonl").exists()


def test_a_hostile_line_is_named(run: Run, events: Path) -> None:
    Path("bad.jsonl").write_bytes(events.read_bytes().replace(b'"salt"', b'"salt":1,"salt"', 1))
    code, _, err = run("file", "import", "bad.jsonl", "-f", "new.cera")
    assert code == 2
    assert "line 2" in err
    Path("bad.zst").write_bytes(events.read_bytes())
    code, _, err = run("file", "import", "bad.zst", "-f", "new.cera")
    assert code == 2
    assert "decompressed" in err


def test_facts_may_be_compressed_too(run: Run) -> None:
    import zstandard

    with cerata.open("memory.cera") as store:
        store.assert_fact("ann", "likes", "tea")
        lines = "\n".join(store.interchange.export_facts()).encode()
    Path("facts.jsonl.zst").write_bytes(zstandard.compress(lines))
    assert run("file", "import", "facts.jsonl.zst", "-f", "new.cera")[0] == 0
    with cerata.open("new.cera") as store:
        assert [fact.object for fact in store.facts()] == ["tea"]
