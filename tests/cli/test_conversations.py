"""An agent's conversations at the command line: readings, reflection and archives."""

import json
import sys
from pathlib import Path

import pytest

import cerata
from cerata.agents.continuity.models import Extractive, Task

from .conftest import Run

LISTS = {
    ("agents", "talk"): "sessions",
    ("agents", "talk", "--show", "threads"): "threads",
    ("agents", "talk", "--show", "topics", "--thread", "taxes"): "topics",
    ("agents", "talk", "--show", "standing"): "standing",
    ("agents", "talk", "--show", "summaries", "--thread", "taxes"): "summaries",
}


@pytest.fixture
def talked(run: Run, tmp_path: Path) -> Path:
    """A memory in which an agent talked in two threads, on two days of the past."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        agent = cerata.Agent(store, "wyatt")
        with agent.session("s-17", thread="taxes") as session:
            session.exchange(
                "No, I meant the deadline. I am scared of the deadline.",
                "The deadline is on Friday; the deadline stays.",
                created="2026-01-07T10:00:00Z",
            )
        with agent.session("s-18") as session:
            session.exchange("Good morning.", "Hello.", created="2026-01-08T10:00:00Z")
    return path


def test_the_commands_of_the_page_read_and_reflect(run: Run, talked: Path) -> None:
    """docs/continuity.md shows them."""
    code, out, _ = run("agents", "talk", "--agent", "wyatt")
    rows = [line.split() for line in out.splitlines()]
    assert (code, [row[1] for row in rows[::2]]) == (0, ["s-18", "s-17"])
    assert [" ".join(row) for row in rows[1::2]] == [
        "Good morning.",
        "No, I meant the deadline. I am scared",
    ]
    assert (
        "taxes  mode chat  1 session  2 messages"
        in run("agents", "talk", "--show", "threads", "--agent", "wyatt")[1]
    )
    topics = run("agents", "talk", "--show", "topics", "--agent", "wyatt", "--thread", "taxes")[1]
    assert topics == "deadline  2 mentions  freshness 0.8\n"
    assert (
        "names-fear  2026-01-07"
        in run("agents", "talk", "--show", "standing", "--agent", "wyatt")[1]
    )
    handoff = run("agents", "talk", "--show", "handoff", "--agent", "wyatt", "--thread", "taxes")[1]
    assert handoff.startswith("Session s-17, thread taxes, mode chat.")
    past = run(
        "agents",
        "talk",
        "--show",
        "handoff",
        "--agent",
        "wyatt",
        "--thread",
        "taxes",
        "--at",
        "yesterday",
    )
    assert (past[0], "no agent 'wyatt'" in past[2]) == (6, True)
    context = run(
        "agents", "assemble", "When is the deadline?", "--agent", "wyatt", "--thread", "taxes"
    )[1]
    assert "[WHAT YOU REMEMBER FROM LAST SESSION]\n  Session s-17," in context
    due = run("agents", "reflect", "--agent", "wyatt", "--dry-run")[1]
    assert "skipped  summarize taxes/chat 2026-01-07: due\n" in due
    code, out, _ = run("agents", "reflect", "--agent", "wyatt", "--limit", "10")
    assert (code, out.splitlines()[-1].split(",")[1]) == (0, " 0 failed")
    assert (
        "day 2026-01-07  deadline"
        in run("agents", "talk", "--show", "summaries", "--agent", "wyatt", "--thread", "taxes")[1]
    )


def test_a_dry_run_writes_nothing(run: Run, talked: Path) -> None:
    """It reads the file, so it needs no permission to write."""
    before = talked.read_bytes()
    assert run("agents", "reflect", "--dry-run")[0] == 0
    assert talked.read_bytes() == before


def test_a_reading_is_that_of_its_basis(run: Run, talked: Path) -> None:
    """The second session is later than event 4."""
    answer = json.loads(run("agents", "talk", "--show", "threads", "--at", "4", "--json")[1])
    assert (answer["basis"], [each["name"] for each in answer["threads"]]) == (4, ["taxes"])
    sessions = json.loads(run("agents", "talk", "--at", "4", "--json")[1])["sessions"]
    assert [(each["name"], each["thread"]) for each in sessions] == [("s-17", "taxes")]
    with cerata.open(talked, mode="r") as store:
        handoff = cerata.Agent(store, "wyatt").at(4).handoff("taxes").to_dict()
    answer = json.loads(
        run("agents", "talk", "--show", "handoff", "--at", "4", "--thread", "taxes", "--json")[1]
    )
    assert answer == {"basis": 4, "agent": "wyatt", "handoff": json.loads(json.dumps(handoff))}


def test_a_context_is_that_of_the_session_and_has_sources(run: Run, talked: Path) -> None:
    """The program gets the same context when it enters the thread again, with a handoff."""
    question = ("agents", "assemble", "Which deadline did I mean?")
    answer = json.loads(run(*question, "--thread", "taxes", "--titles", "plain", "--json")[1])
    assert (answer["session"], answer["resumed"]) == (None, "returned")
    items = {(item["rule"], item["source"]) for item in answer["assembly"]["items"]}
    assert {("session", None), ("handoff", None)} <= items
    before = talked.read_bytes()
    answer = json.loads(run(*question, "--session", "s-17", "--max-tokens", "200", "--json")[1])
    assert talked.read_bytes() == before
    assert (answer["thread"], answer["mode"], answer["resumed"]) == ("taxes", "chat", "new")
    context = answer["assembly"]
    assert context["tokens"] <= context["max_tokens"] == 200
    assert [item["source"] for item in context["items"]] == [None, 2]
    with cerata.open(talked) as store:
        session = cerata.Agent(store, "wyatt").session("s-17", thread="taxes")
        entered = session.assemble(question[2], max_tokens=200)
    # The minute of the header may have passed.
    items = json.loads(json.dumps(entered.to_dict()))["items"][1:]
    assert "handoff" in entered.blocks
    assert context["items"][1:] == [item for item in items if item["rule"] != "handoff"]


MODEL = """
class Short:
    name = "short"
    version = "1"

    def write(self, task):
        if task.kind == "assess":
            return "courage-self: 5\\ncourage-ground: 5\\nword: 5\\nbrand: 5"
        return f"{len(task.sources)} sources."


class Unmade(Short):
    def __init__(self, key):
        pass


ready = Short()
"""


@pytest.mark.parametrize("name", ["Short", "ready"])
def test_a_model_is_imported(
    run: Run, talked: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A class or an object of a module in this folder."""
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delitem(sys.modules, "short_writer", raising=False)
    Path("short_writer.py").write_text(MODEL)
    assert run("agents", "reflect", "--model", f"short_writer:{name}")[0] == 0
    [summary, *_] = json.loads(
        run("agents", "talk", "--show", "summaries", "--thread", "taxes", "--json")[1]
    )["summaries"]
    assert summary["text"] == "2 sources."
    code, _, err = run("agents", "reflect", "--model", "short_writer:Unmade")
    assert (code, "cannot be made: TypeError" in err) == (2, True)
    code, _, err = run("agents", "reflect", "--model", "short_writer:MODEL")
    assert (code, "has no attribute" in err) == (6, True)


def test_a_list_has_an_item_a_line(run: Run, talked: Path) -> None:
    """The items are those of the object."""
    run("agents", "reflect")
    for verb, name in LISTS.items():
        items = json.loads(run(*verb, "--json")[1])[name]
        lines = run(*verb, "--jsonl")[1].splitlines()
        assert items
        assert [json.loads(line) for line in lines] == items


def test_a_failed_task_is_an_exit_code(
    run: Run, talked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script sees that a summary is missing; the task stays due."""

    def fail(_self: Extractive, task: Task) -> str:
        raise RuntimeError(f"no {task.kind}")

    monkeypatch.setattr(Extractive, "write", fail)
    code, out, _ = run("agents", "reflect", "--limit", "1")
    assert code == 1
    assert " failed  summarize" in out
    assert "0 tasks done, 1 failed" in out
    monkeypatch.undo()
    assert "summarize" in run("agents", "reflect", "--dry-run", "-f", str(talked))[1]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("agents", "talk", "--show", "threads", "--agent", "wyat"), 6, "Did you mean 'wyatt'?"),
        (("agents", "talk", "--agent", "bob"), 6, "no agent 'bob'"),
        (("agents", "reflect", "--agent", "wyat"), 6, "Did you mean 'wyatt'?"),
        (("agents", "reflect", "--limit", "0"), 2, "limit must be a whole number from 1"),
        (("agents", "talk", "--show", "handoff", "--thread", ""), 2, "thread is ''"),
        (("agents", "talk", "--show", "topics", "--thread", " taxes"), 2, "thread is ' taxes'"),
        (("agents", "talk", "--show", "summaries", "--mode", "a\nb"), 2, "mode is 'a"),
        (
            ("agents", "talk", "--show", "threads", "--scope", "tenant=beta"),
            6,
            "No agent has messages",
        ),
        (("agents", "assemble", "x", "--session", "s-1"), 6, "no session 's-1'"),
        (
            ("agents", "assemble", "x", "--session", "s-17", "--thread", "main"),
            2,
            "the thread 'taxes'",
        ),
        (("agents", "assemble", "x", "--blocks", "soul"), 2, "no block 'soul'"),
        (("agents", "assemble", "x", "--max-tokens", "1"), 2, "at least 2"),
        (("agents", "assemble", "x", "--mode", ""), 2, "mode is ''"),
        (("agents", "assemble", "x", "--timezone", "Rome"), 2, "no time zone"),
        (("agents", "talk", "--show", "handoff", "--timezone", "Rome"), 2, "no time zone"),
        (("agents", "reflect", "--model", "json:dumps"), 2, "no name, version and write(task)"),
        (("agents", "reflect", "--model", "json"), 2, "names no model"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    run: Run, talked: Path, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    """The error names the option, or the nearest agent."""
    before = talked.read_bytes()
    code, _, err = run(*arguments)
    assert code == exit_code
    assert words in err
    assert talked.read_bytes() == before


def test_several_agents_need_a_name(run: Run, talked: Path) -> None:
    """A verb does not choose; a list of sessions has them all."""
    with cerata.open(talked) as store, cerata.Agent(store, "bob").session("s-1"):
        pass
    code, _, err = run("agents", "talk", "--show", "threads")
    assert (code, "2 agents: bob, wyatt" in err) == (2, True)
    sessions = json.loads(run("agents", "talk", "--json")[1])["sessions"]
    assert [each["agent"] for each in sessions] == ["bob", "wyatt", "wyatt"]


def test_an_agent_that_only_proposed_reflects(run: Run, tmp_path: Path) -> None:
    """Its proposal may wait for an assessment."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
        cerata.Agent(store, "wyatt").propose("I name my sources.")
    assert "align" in run("agents", "reflect", "--agent", "wyatt", "--dry-run")[1]


# --- archives ------------------------------------------------------------------------------------


def test_an_archive_has_a_file_for_each_day(run: Run, talked: Path, tmp_path: Path) -> None:
    """The messages of the day, with the conversation of each."""
    code, out, _ = run("file", "export", "--archive", "days", "--agent", "wyatt")
    assert (code, out.split(",")[0]) == (0, "2 days in days")
    days = tmp_path / "days"
    assert sorted(path.name for path in days.iterdir()) == ["2026-01-07.json", "2026-01-08.json"]
    data = (days / "2026-01-08.json").read_bytes()
    message = {"created": "2026-01-08T10:00:00+00:00", "session": "s-18"}
    message |= {"thread": "main", "mode": "chat"}
    assert json.loads(data) == {
        "date": "2026-01-08",
        "count": 2,
        "messages": [
            {"role": "user", "text": "Good morning.", **message},
            {"role": "assistant", "text": "Hello.", **message},
        ],
    }
    # Written again elsewhere, the bytes are the same.
    run("file", "export", "--archive", "again")
    assert (tmp_path / "again" / "2026-01-08.json").read_bytes() == data


def test_an_archive_grows_and_replaces_no_file(run: Run, talked: Path, tmp_path: Path) -> None:
    """A day that changed is refused before a day is written."""
    assert run("file", "export", "--archive", "days", "--at", "4")[0] == 0
    answer = json.loads(run("file", "export", "--archive", "days", "--json")[1])
    assert [(day["date"], day["added"]) for day in answer["days"]] == [
        ("2026-01-07", False),
        ("2026-01-08", True),
    ]
    (tmp_path / "days" / "2026-01-07.json").unlink()
    edited = tmp_path / "days" / "2026-01-08.json"
    edited.write_text("{}")
    code, _, err = run("file", "export", "--archive", "days")
    assert (code, "2026-01-08.json exists and differs" in err) == (5, True)
    assert [path.name for path in (tmp_path / "days").iterdir()] == ["2026-01-08.json"]
    assert edited.read_text() == "{}"


def test_a_late_message_has_the_place_of_its_time(run: Run, talked: Path, tmp_path: Path) -> None:
    """The log has it last."""
    with cerata.open(talked) as store, cerata.Agent(store, "wyatt").session("s-19") as session:
        session.message("user", "Earlier.", created="2026-01-08T09:00:00Z")
    run("file", "export", "--archive", "days")
    day = json.loads((tmp_path / "days" / "2026-01-08.json").read_text())
    assert [each["text"] for each in day["messages"]] == ["Earlier.", "Good morning.", "Hello."]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("--archive", "days", "lines.jsonl"), 2, "takes no FILE"),
        (("--archive", "days", "--history"), 2, "takes no --history"),
        (("--archive", "days", "--from", "3"), 2, "takes no --from"),
        (("--archive", "memory.cera"), 2, "is no folder"),
        (("--archive", ""), 2, "is no folder"),
        (("--archive", "days", "--agent", "wyat"), 6, "Did you mean 'wyatt'?"),
        (("--facts", "--agent", "wyatt"), 2, "--agent goes with --archive"),
    ],
)
def test_a_refused_archive_makes_no_folder(
    run: Run, talked: Path, tmp_path: Path, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    """The error names the option."""
    code, _, err = run("file", "export", *arguments)
    assert code == exit_code
    assert words in err
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
