"""Stored text does not steer a terminal, whichever verb shows it and in whichever form."""

import json
import re
import sys
from pathlib import Path

import pytest

import cerata
from cerata import Entity
from cerata.cli.visible_text import visible

from .conftest import Run, verbs, words_of

BIDIRECTIONAL = "".join(
    map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
C1 = "".join(map(chr, range(0x7F, 0xA0)))
C0 = "\x1b[2J\x07\b\r"
EVIL = f"evil{BIDIRECTIONAL}{C1}{C0}end"
SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

NAME = EVIL.replace("\x07", "").replace("\r", "").replace("\b", "")
"""A hostile name that a file can have."""

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "remember": (("remember", "notes"), ("remember", EVIL)),
    "put": (("put", EVIL, "--tag", EVIL),),
    "recall": (
        ("recall", "evil"),
        ("recall", "evil", "--format", "markdown"),
        ("recall", "evil", "--format", "json"),
        ("recall", "evil", "--format", "messages", "--framing"),
        ("recall", EVIL, "--policy", EVIL),
    ),
    "search": (("search", "evil", "--explain"), ("search", f"none{EVIL}", "--tag", EVIL)),
    "show": (("show", "1", "2"),),
    "access": (("list", "--by", "access"), ("list", "--by", "access", "1", "--record")),
    "tune": (
        ("admin", "tune", "lines.jsonl"),
        ("admin", "tune", EVIL),
        ("admin", "tune", "--recalls", "--name", EVIL),
        ("admin", "tune", "--recalls", "--profile", f"./{EVIL}"),
    ),
    "frames": (("list", "--superseded"),),
    "facts": (
        ("facts", "list", "--evidence", "--retracted"),
        ("facts", "list", "--matching", "evil"),
        ("facts", "list", "--conflicts"),
        ("facts", "list", EVIL),
        ("facts", "list", f"no{EVIL}"),
    ),
    "assert": (
        ("facts", "assert", EVIL, EVIL, EVIL),
        ("facts", "assert", EVIL, EVIL, EVIL, "--as", "number"),
    ),
    "correct": (("facts", "assert", "--instead", "4", "--object", EVIL),),
    "retract": (("facts", "retract", "4"),),
    "graph": (
        ("facts", "graph", EVIL),
        ("facts", "graph", EVIL, "--hops", "2"),
        ("facts", "graph", EVIL, "--to", f"b{EVIL}"),
        ("facts", "graph", EVIL, "--together"),
    ),
    "extract": (("facts", "extract", "--dry-run"), ("facts", "extract")),
    "embed": (("file", "maintain", "--only", "embed", "--revision", "2"),),
    "export": (
        ("file", "export", "--facts"),
        ("file", "export", "--facts", "--history", "facts.jsonl"),
        ("file", "export", "--events"),
        ("file", "export", "--events", EVIL),
        ("file", "export", "--archive", f"days-{NAME}"),
        ("file", "export", "--archive", "days", "--agent", EVIL),
    ),
    "import": (
        ("file", "import", "lines.jsonl"),
        ("file", "import", "--from", "jsonl", "lines.jsonl"),
        ("file", "import", "--from", "mem0", EVIL),
    ),
    "why": (("facts", "why", "4"),),
    "link": (("facts", "link", "4", "supports", "5"), ("facts", "link", "4", EVIL, "5")),
    "unlink": (("facts", "link", "--remove", "7"),),
    "timeline": (("list", "--by", "content"),),
    "log": (("log",), ("log", "--oneline")),
    "follow": (
        ("time", "follow", "--after", "0", "--timeout", "0"),
        ("time", "follow", "--after", EVIL),
    ),
    "audit": (
        ("log", "--who"),
        ("log", "--who", "--markdown"),
        ("log", "--who", "--html", f"{NAME}.html"),
        ("log", "--who", "--actor", EVIL),
    ),
    "history": (
        ("time", "history", "1"),
        ("time", "history", "2"),
        ("time", "history", "4"),
        ("time", "history", EVIL),
    ),
    "fork": (
        ("time", "fork", f"fork-{NAME}"),
        ("time", "fork", "--compare", f"fork-{NAME}"),
        ("time", "fork", "--apply", f"fork-{NAME}"),
    ),
    "compact": (
        ("file", "compact", "--dry-run"),
        ("file", "compact", "--horizon", EVIL),
        ("file", "compact"),
    ),
    "maintain": (("file", "maintain"),),
    "bisect": (
        ("time", "bisect", "--query", EVIL, "--forbid", "evil"),
        ("time", "bisect", "--run", "test $CERATA_BASIS -lt 2", "--good", EVIL),
        ("time", "bisect", "--run", "test $CERATA_BASIS -lt 2", "--resume", EVIL),
    ),
    "runs": (("agents", "runs"), ("agents", "runs", EVIL), ("agents", "runs", "--agent", EVIL)),
    "sessions": (("agents", "talk"), ("agents", "talk", "--agent", EVIL)),
    "threads": (
        ("agents", "talk", "--show", "threads"),
        ("agents", "talk", "--show", "threads", "--agent", EVIL),
    ),
    "topics": (
        ("agents", "talk", "--show", "topics"),
        ("agents", "talk", "--show", "topics", "--thread", EVIL),
        ("agents", "talk", "--show", "topics", "--mode", EVIL),
    ),
    "standing": (
        ("agents", "talk", "--show", "standing"),
        ("agents", "talk", "--show", "standing", "--agent", EVIL),
    ),
    "handoff": (
        ("agents", "talk", "--show", "handoff"),
        ("agents", "talk", "--show", "handoff", "--thread", EVIL),
    ),
    "summaries": (
        ("agents", "talk", "--show", "summaries"),
        ("agents", "talk", "--show", "summaries", "--mode", EVIL),
    ),
    "assemble": (("agents", "assemble", EVIL), ("agents", "assemble", "x", "--session", EVIL)),
    "reflect": (
        ("agents", "reflect", "--dry-run"),
        ("agents", "reflect"),
        ("agents", "reflect", "--agent", EVIL),
    ),
    "proposals": (("agents", "proposals"), ("agents", "proposals", "--agent", EVIL)),
    "approve": (
        ("agents", "judge", "approve", "15", "--actor", EVIL),
        ("agents", "judge", "approve", "15", "--actor", "anna", "--content", EVIL),
    ),
    "reject": (("agents", "judge", "reject", "15", "--actor", EVIL),),
    "revoke": (("agents", "judge", "revoke", "15", "--actor", EVIL),),
    "slots": (
        ("agents", "slots"),
        ("agents", "slots", "--agent", EVIL),
        ("agents", "slots", "--declare", EVIL),
    ),
    "slot": (
        ("agents", "slots", "prefs"),
        ("agents", "slots", "prefs", "--history"),
        ("agents", "slots", "prefs", EVIL),
        ("agents", "slots", EVIL),
        ("agents", "slots", "prefs", "a", "--set", EVIL),
        ("agents", "slots", "prefs", EVIL, "--set", f'"{EVIL.encode("unicode_escape").decode()}"'),
    ),
    "refs": (("agents", "refs", "r1"), ("agents", "refs", EVIL)),
    "ref": (
        ("agents", "refs", "r1", "$ref:x.1"),
        ("agents", "refs", "r1", EVIL),
        ("agents", "refs", "r1", f"$ref:x.1#/{EVIL}"),
    ),
    "rerun": (
        ("agents", "runs", EVIL, "--again"),
        ("agents", "runs", "r1", EVIL, "--again"),
        ("time", "explain", EVIL, "--again"),
        ("time", "explain", "--again", "--with", EVIL, "--compare"),
    ),
    "explain": (("time", "explain", "8"), ("time", "explain", "9")),
    "blame": (
        ("time", "history", "--by-field", "2"),
        ("time", "history", "--by-field", "4"),
        ("time", "history", "--by-field", EVIL),
        ("time", "history", "--by-field", "7", "--entity"),
    ),
    "diff": (
        ("time", "diff", "0"),
        ("time", "diff", "0", EVIL),
        ("time", "diff", "0", "--html", f"{NAME}.html"),
        ("time", "diff", "0", "--query", EVIL),
    ),
    "supersede": (("update", "2", "--text", EVIL),),
    "values": (
        ("list", "--by", "tag"),
        ("list", "--by", f"metadata.{EVIL}"),
        ("list", "--by", "title", "--prefix", EVIL),
    ),
    "update": (("update", "2", "--title", EVIL, "--tag", EVIL, "--metadata", f"{EVIL}={EVIL}"),),
    "delete": (("delete", "2"),),
    "restore": (("time", "restore", "1"), ("time", "restore", "1", "--reason", EVIL)),
    "sweep": (
        ("file", "maintain", "--only", "sweep"),
        ("file", "maintain", "--only", "sweep", "--actor", EVIL),
    ),
    "tag": (("time", "tag"), ("time", "tag", EVIL), ("time", "tag", f"x{EVIL}", "--at", EVIL)),
    "info": (("info",),),
    "head": (("info", "--head"),),
    "verify": (
        ("file", "verify"),
        ("file", "verify", "--head", EVIL),
        ("file", "verify", "--head", "9:" + 32 * "0a"),
    ),
    "rebuild": (
        ("file", "maintain", "--only", "rebuild"),
        ("file", "maintain", "--only", "rebuild", EVIL),
    ),
    "checkpoint": (("file", "maintain", "--only", "checkpoint"),),
    "backup": (("file", "backup", f"copy-{NAME}"),),
    "doctor": (("file", "doctor"),),
    "repair": (("file", "doctor", "--repair"),),
    "tour": (("admin", "tour", EVIL),),
    "crash-test": (("admin", "crash-test", EVIL), ("admin", "crash-test", "broken.py")),
    "mcp": (
        ("admin", "mcp", "--print-config", "cursor", "--scope", f"user={EVIL}"),
        ("admin", "mcp", "--print-config", "claude-code", "--actor", EVIL),
        ("admin", "mcp", "--print-config", EVIL),
    ),
    "completion": (("admin", "completion", "bash"),),
}
"""Commands of each verb and of its forms, over a memory that has hostile text."""

REFUSED = ("tune", "embed", "import", "tour", "crash-test", "rerun")
"""Verbs of which every command above is refused, with a message that names the input."""


@pytest.fixture
def terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands as on a terminal, in a folder with a hostile memory and hostile files."""
    monkeypatch.setenv("CERATA_PAGER", "")
    monkeypatch.setenv("CERATA_FILE", f"{NAME}.cera")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / f"{NAME}.md").write_text(f"# {EVIL}\n\nevil")
    (tmp_path / "broken.py").write_text(f"raise ValueError({EVIL!r})")
    (tmp_path / "lines.jsonl").write_text(json.dumps({EVIL: EVIL}) + "\n")
    with cerata.open(tmp_path / f"{NAME}.cera", scope={"tenant": "default"}) as store:
        store.put_frame(
            f"{EVIL} lives in Oslo. Anna works at {EVIL}.",
            title=EVIL,
            uri=EVIL,
            tags=[EVIL],
            kind=EVIL,
            role=EVIL,
            metadata={EVIL: EVIL},
            options=cerata.PutOptions(labels=[EVIL]),
        )
        store.supersede(1, EVIL)
        store.assert_fact(EVIL, EVIL, Entity(f"b{EVIL}"), evidence=[2])
        store.assert_fact(
            EVIL, f"is{EVIL}", EVIL, evidence=[2], options=cerata.FactOptions(assumptions=[EVIL])
        )
        store.graph.name(EVIL, kind=EVIL, aliases=[f"alias {EVIL}"])
        store.graph.link(4, "supports", 5)
        store.recall(f"evil {EVIL}", record=True)
        spec = cerata.MemorySpec(description=EVIL)
        agent = cerata.Agent(store, "analyst", memory={"prefs": spec})
        agent.slot("prefs").set(EVIL, {EVIL: EVIL})
        agent.run("r1").put("x", {EVIL: EVIL})
        agent.propose(EVIL, target="scaffold/rules")
        with agent.session("s1") as session:
            session.exchange(f"I promise that {EVIL} {EVIL}", EVIL, created="2026-01-07T10:00Z")
            session.compact()

    def call(*arguments: str, is_terminal: bool = True) -> tuple[int, str, str]:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
        return run(*arguments)

    return call


def test_every_verb_is_tried() -> None:
    """A verb that is added joins the tests below."""
    commands = [command for rows in COMMANDS.values() for command in rows]
    assert {words_of(command) for command in commands} == set(verbs())


@pytest.mark.parametrize("verb", COMMANDS)
def test_people_see_characters_that_would_steer_their_terminal(terminal: Run, verb: str) -> None:
    """A name that shows its letters in another order passes for another name."""
    codes: list[int] = []
    for command in COMMANDS[verb]:
        code, out, err = terminal(*command)
        codes.append(code)
        assert code != 70, err
        assert SHOWN.findall(COLOURS.sub("", out)) == [], command
        assert SHOWN.findall(COLOURS.sub("", err)) == [], command
    # Else the verb would have shown nothing.
    assert min(codes) <= 1 or verb in REFUSED, codes


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if verb not in ("completion", "tour")])
def test_json_on_a_terminal_is_escaped_and_equal(terminal: Run, verb: str) -> None:
    """An escape has the same value, so a program reads the same."""
    for command in COMMANDS[verb]:
        _, out, _ = terminal(*command, "--json")
        assert SHOWN.findall(out) == [], command
        if out and verb != "export":
            json.loads(out)


def test_the_value_is_that_of_a_pipe(terminal: Run) -> None:
    """In a pipe nothing is escaped that JSON does not ask for."""
    commands = (("show", "2", "--json"), ("search", "evil", "--json"))
    shown = [terminal(*command)[1] for command in commands]
    piped = [terminal(*command, is_terminal=False)[1] for command in commands]
    assert shown != piped
    assert list(map(json.loads, shown)) == list(map(json.loads, piped))
    assert EVIL in [frame["text"] for frame in json.loads(piped[0])["frames"]]


def test_a_control_is_named() -> None:
    """Who reads it can look it up; styles and the other characters stay."""
    assert visible("pay \u202eeve\u2069\x9b") == "pay \u2039U+202E\u203aeve\u2039U+2069\u203a�"


def test_a_pipe_gets_the_text_as_it_is(terminal: Run) -> None:
    """Hebrew and Arabic texts need these characters, and a model may read them."""
    assert BIDIRECTIONAL in terminal("show", "1", is_terminal=False)[1]
    assert BIDIRECTIONAL not in terminal("show", "1")[1]
