"""Stored text does not steer a terminal, whichever verb shows it and in whichever form."""

import json
import re
import sys
from pathlib import Path

import pytest

import cerata
from cerata import Entity
from cerata.cli.visible_text import visible

from .conftest import Run
from .test_words import verbs

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
    "access": (("access",), ("access", "1", "--record")),
    "tune": (
        ("tune", "lines.jsonl"),
        ("tune", EVIL),
        ("tune", "--recalls", "--name", EVIL),
        ("tune", "--recalls", "--profile", f"./{EVIL}"),
    ),
    "frames": (("frames", "--superseded"),),
    "facts": (
        ("facts", "--evidence", "--retracted"),
        ("facts", "--matching", "evil"),
        ("facts", "--conflicts"),
        ("facts", EVIL),
        ("facts", f"no{EVIL}"),
    ),
    "assert": (("assert", EVIL, EVIL, EVIL), ("assert", EVIL, EVIL, EVIL, "--as", "number")),
    "correct": (("correct", "4", "--object", EVIL),),
    "retract": (("retract", "4"),),
    "graph": (
        ("graph", EVIL),
        ("graph", EVIL, "--hops", "2"),
        ("graph", EVIL, "--to", f"b{EVIL}"),
        ("graph", EVIL, "--together"),
    ),
    "extract": (("extract", "--dry-run"), ("extract",)),
    "embed": (("embed", "--revision", "2"),),
    "export": (
        ("export", "--facts"),
        ("export", "--facts", "--history", "facts.jsonl"),
        ("export", "--events"),
        ("export", "--events", EVIL),
        ("export", "--archive", f"days-{NAME}"),
        ("export", "--archive", "days", "--agent", EVIL),
    ),
    "import": (
        ("import", "lines.jsonl"),
        ("import", "--from", "jsonl", "lines.jsonl"),
        ("import", "--from", "mem0", EVIL),
    ),
    "why": (("why", "4"),),
    "link": (("link", "4", "supports", "5"), ("link", "4", EVIL, "5")),
    "unlink": (("unlink", "7"),),
    "timeline": (("timeline",),),
    "log": (("log",), ("log", "--oneline")),
    "follow": (("follow", "--after", "0", "--timeout", "0"), ("follow", "--after", EVIL)),
    "audit": (
        ("audit",),
        ("audit", "--markdown"),
        ("audit", "--html", f"{NAME}.html"),
        ("audit", "--actor", EVIL),
    ),
    "history": (("history", "1"), ("history", "2"), ("history", "4"), ("history", EVIL)),
    "fork": (
        ("fork", f"fork-{NAME}"),
        ("fork", "--compare", f"fork-{NAME}"),
        ("fork", "--apply", f"fork-{NAME}"),
    ),
    "compact": (("compact", "--dry-run"), ("compact", "--horizon", EVIL), ("compact",)),
    "maintain": (("maintain",),),
    "bisect": (
        ("bisect", "--query", EVIL, "--forbid", "evil"),
        ("bisect", "--run", "test $CERATA_BASIS -lt 2", "--good", EVIL),
        ("bisect", "--run", "test $CERATA_BASIS -lt 2", "--resume", EVIL),
    ),
    "runs": (("runs",), ("runs", EVIL), ("runs", "--agent", EVIL)),
    "sessions": (("sessions",), ("sessions", "--agent", EVIL)),
    "threads": (("threads",), ("threads", "--agent", EVIL)),
    "topics": (("topics",), ("topics", "--thread", EVIL), ("topics", "--mode", EVIL)),
    "standing": (("standing",), ("standing", "--agent", EVIL)),
    "handoff": (("handoff",), ("handoff", "--thread", EVIL)),
    "summaries": (("summaries",), ("summaries", "--mode", EVIL)),
    "assemble": (("assemble", EVIL), ("assemble", "x", "--session", EVIL)),
    "reflect": (("reflect", "--dry-run"), ("reflect",), ("reflect", "--agent", EVIL)),
    "proposals": (("proposals",), ("proposals", "--agent", EVIL)),
    "approve": (
        ("approve", "15", "--actor", EVIL),
        ("approve", "15", "--actor", "anna", "--content", EVIL),
    ),
    "reject": (("reject", "15", "--actor", EVIL),),
    "revoke": (("revoke", "15", "--actor", EVIL),),
    "slots": (("slots",), ("slots", "--agent", EVIL), ("slots", "--declare", EVIL)),
    "slot": (
        ("slot", "prefs"),
        ("slot", "prefs", "--history"),
        ("slot", "prefs", EVIL),
        ("slot", EVIL),
        ("slot", "prefs", "a", "--set", EVIL),
        ("slot", "prefs", EVIL, "--set", f'"{EVIL.encode("unicode_escape").decode()}"'),
    ),
    "refs": (("refs", "r1"), ("refs", EVIL)),
    "ref": (("ref", "r1", "$ref:x.1"), ("ref", "r1", EVIL), ("ref", "r1", f"$ref:x.1#/{EVIL}")),
    "rerun": (
        ("rerun", "run", EVIL),
        ("rerun", "run", "r1", EVIL),
        ("rerun", "recall", EVIL),
        ("rerun", "--with", EVIL, "--compare"),
    ),
    "explain": (("explain", "8"), ("explain", "9")),
    "blame": (("blame", "2"), ("blame", "4"), ("blame", EVIL), ("blame", "7", "--entity")),
    "diff": (
        ("diff", "0"),
        ("diff", "0", EVIL),
        ("diff", "0", "--html", f"{NAME}.html"),
        ("diff", "0", "--query", EVIL),
    ),
    "supersede": (("supersede", "2", EVIL),),
    "values": (
        ("values", "tag"),
        ("values", f"metadata.{EVIL}"),
        ("values", "title", "--prefix", EVIL),
    ),
    "update": (("update", "2", "--title", EVIL, "--tag", EVIL, "--metadata", f"{EVIL}={EVIL}"),),
    "delete": (("delete", "2"),),
    "restore": (("restore", "1"), ("restore", "1", "--reason", EVIL)),
    "sweep": (("sweep",), ("sweep", "--actor", EVIL)),
    "tag": (("tag",), ("tag", EVIL), ("tag", f"x{EVIL}", "--at", EVIL)),
    "info": (("info",),),
    "head": (("head",),),
    "verify": (("verify",), ("verify", "--head", EVIL), ("verify", "--head", "9:" + 32 * "0a")),
    "rebuild": (("rebuild",), ("rebuild", EVIL)),
    "checkpoint": (("checkpoint",),),
    "backup": (("backup", f"copy-{NAME}"),),
    "doctor": (("doctor",),),
    "repair": (("repair",),),
    "tour": (("tour", EVIL),),
    "crash-test": (("crash-test", EVIL), ("crash-test", "broken.py")),
    "mcp": (
        ("mcp", "--print-config", "cursor", "--scope", f"user={EVIL}"),
        ("mcp", "--print-config", "claude-code", "--actor", EVIL),
        ("mcp", "--print-config", EVIL),
    ),
    "completion": (("completion", "bash"),),
}
"""Commands of each verb, over a memory that has hostile text wherever text can be."""

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
            labels=[EVIL],
            kind=EVIL,
            role=EVIL,
            metadata={EVIL: EVIL},
        )
        store.supersede(1, EVIL)
        store.assert_fact(EVIL, EVIL, Entity(f"b{EVIL}"), evidence=[2])
        store.assert_fact(EVIL, f"is{EVIL}", EVIL, evidence=[2], assumptions=[EVIL])
        store.put_entity(EVIL, kind=EVIL, aliases=[f"alias {EVIL}"])
        store.link(4, "supports", 5)
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
    assert set(COMMANDS) == set(verbs())


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
