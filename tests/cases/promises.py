"""Cases of promises: deletions, exports, damage, identity, and errors of Python."""

import asyncio
import json
import os
import random
import sqlite3
import stat
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import cerata
from cerata import Filter
from cerata.agents import judge
from cerata.engine.disk.environment import SystemClock
from cerata.engine.errors import UnreadableItem
from cerata.integrations.importers import import_from
from cerata.integrations.mcp.service import Service

from .checks import ERROR, Checks, cerata_command

SOUL = "I keep my word."


def case_11_failed_import_leaves_deleted_memory(checks: Checks) -> None:
    """After a failed import of mem0 a memory that mem0 deleted was current.

    Kind: versions of one record end a batch, so the deletion is in a later batch.
    """
    path = checks.folder / "history.db"
    file = sqlite3.connect(path)
    file.execute(
        "create table history(id, memory_id, old_memory, new_memory, event, created_at, updated_at,"
        " is_deleted, actor_id, role)"
    )
    code, day = "The alarm code is 4711", "2024-01-01"
    rows = [
        ("1", "m1", None, code, "ADD", day, None, 0, None, None),
        ("2", "m1", code, None, "DELETE", day, "2024-01-02", 1, None, None),
        ("3", "m2", None, "x", "ADD", "05/01/2024", None, 0, None, None),
    ]
    file.executemany("insert into history values(?,?,?,?,?,?,?,?,?,?)", rows)
    file.commit()
    file.close()
    store = cerata.open(":memory:")
    checks.answers("the import", lambda: import_from(store, "mem0", path))
    texts = [frame.text for frame in store.frames()]
    checks("the deleted memory is not current", not store.search("alarm code"), texts)


def case_12_graphiti_times_without_zone(checks: Checks) -> None:
    """Times without a zone refused the whole import of Graphiti; those of mem0 count as UTC.

    Kind: one rule for times differs between importers.
    """
    shared: dict[str, Any] = {"group_id": "", "created_at": "2024-01-01T00:00:00", "attributes": {}}
    node: dict[str, Any] = {"labels": ["Entity"], "summary": "", **shared}
    edge: dict[str, Any] = {
        "uuid": "e",
        "source_node_uuid": "a",
        "target_node_uuid": "b",
        "name": "LIVES_IN",
        "fact": "Ann lives in Paris",
        "episodes": [],
        "expired_at": None,
        "valid_at": "2023-01-01T00:00:00",
        "invalid_at": None,
        **shared,
    }
    lines = [{"uuid": "a", "name": "Ann", **node}, {"uuid": "b", "name": "Paris", **node}, edge]
    path = checks.folder / "g.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    store = cerata.open(":memory:")
    import_from(store, "graphiti", path)
    facts = [str(fact) for fact in store.facts()]
    checks("times without a zone", facts == ["Ann · LIVES_IN · Paris"], facts)


def case_21_empty_filter_deletes_all(checks: Checks) -> None:
    """`delete(where=Filter())` deleted every frame.

    Kind: a destructive call with an empty selection.
    """
    for where in (Filter(), Filter(tags=[]), Filter(metadata={})):
        store = cerata.open(":memory:")
        store.put_frame("a")
        with pytest.raises(ERROR):
            store.delete(where=where)
        checks(f"{where!r}", store.count()[0] == 1, store.count())


def case_30_identity_over_mcp(checks: Checks) -> None:
    """A client of the MCP server rewrote the identity without a person.

    Kind: a general write changes frames that only their own rules may change.
    """
    store = cerata.open(":memory:")
    agent, server = cerata.Agent(store, "wyatt"), Service(store)
    soul = store.remember(SOUL, kind="identity", uri="identity:SOUL")
    agent.propose("I search with ripgrep.", target="scaffold/tools")
    judge(store, agent.proposals()[0], "approve", actor="anna")
    part = agent.proposals()[0].id
    server.call("correct", {"id": str(soul.id), "text": "I obey."})
    server.call("forget", {"ids": str(part)})
    identity = agent.identity()
    checks("SOUL stays", "keep my word" in identity.files[0].text, identity.files[0].text)
    approved = [frame.text for frame in identity.scaffold]
    checks("the approved part stays", approved == ["I search with ripgrep."], approved)


def case_31_item_of_an_integration(checks: Checks) -> None:
    """A correction of a frame of an integration made every read of its prefix raise.

    Kind: one unreadable item must not stop the reading of the others.
    """
    pytest.importorskip("langgraph.store.base", reason="needs the extra langgraph")
    from cerata.integrations.langgraph import CerataStore

    store = cerata.open(":memory:")
    items: Any = CerataStore(store)
    items.put(("u",), "k", {"a": 1})
    items.put(("u",), "other", {"b": 2})
    frames = store.frames(include_chunks=True)
    frame = next(frame for frame in frames if (frame.uri or "").endswith("/k"))
    Service(store).call("correct", {"id": str(frame.id), "text": "hello"})
    checks.answers("get", lambda: items.get(("u",), "k"))
    keys = [item.key for item in items.search(("u",))]
    checks("a search of the prefix goes on", "other" in keys, keys)


def case_32_checkpoint_unreadable(checks: Checks) -> None:
    """A checkpoint that cannot be read stopped the listing of all threads.

    Kind: one bad record costs the rest.
    """
    base: Any = pytest.importorskip("langgraph.checkpoint.base", reason="needs langgraph")
    from cerata.integrations.langgraph import CerataSaver

    damaged = [("json", b"[" * 100_000), ("msgpack", b"\xdd\xff\xff\xff\xff"), ("json", b"5")]
    for number, (kind, content) in enumerate([*damaged, ("Pickle", b"x")]):
        path = checks.folder / f"{number}.db"
        file = sqlite3.connect(path)
        key = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT"
        file.execute(
            f"CREATE TABLE checkpoints ({key}, parent_checkpoint_id TEXT, type TEXT,"
            " checkpoint BLOB, metadata BLOB)"
        )
        more = "task_id TEXT, idx INTEGER, channel TEXT, type TEXT, value BLOB"
        file.execute(f"CREATE TABLE writes ({key}, {more})")
        row = ("bad", "", "1", None, kind, content, b"{}")
        file.execute("INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?)", row)
        file.commit()
        file.close()
        store = cerata.open(":memory:")
        saver: Any = CerataSaver(store)
        good = {"configurable": {"thread_id": "good", "checkpoint_ns": ""}}
        saver.put(good, base.empty_checkpoint(), {"step": 1}, {})
        try:
            import_from(store, "langgraph-sqlite", path)
        except ERROR:
            continue
        bad = {"configurable": {"thread_id": "bad"}}
        checks.answers(f"{kind} get_tuple", partial(saver.get_tuple, bad))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreadableItem)
            threads = [found.config["configurable"]["thread_id"] for found in saver.list(None)]
        checks(f"{kind} list", "good" in threads, threads)


def case_33_sqlite_without_end(checks: Checks) -> None:
    """A SQLite file of 20 KB made an import run for ever.

    Kind: a parser of foreign files without a limit of time and memory.
    """
    path = checks.folder / "endless.db"
    file = sqlite3.connect(path)
    file.execute(
        "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS"
        " r, CAST(x AS TEXT) id, CAST(x AS TEXT) memory_id, 't'||x new_memory, 'ADD' event,"
        " '2026-01-01T00:00:00' created_at, NULL updated_at FROM c"
    )
    file.execute(
        "CREATE VIRTUAL TABLE history USING fts5(id, memory_id, new_memory, event, created_at,"
        " updated_at, content='v', content_rowid='r')"
    )
    file.commit()
    file.close()
    memory = str(checks.folder / "m.cera")
    run = cerata_command("file", "import", "--from", "mem0", str(path), "-f", memory)
    checks("refused", run.returncode > 1, (run.returncode, run.stderr))


def case_36_export_mode(checks: Checks) -> None:
    """An export of a memory that only its owner may read could be read by everyone.

    Kind: a file made from a memory has wider rights than the memory.
    """
    path, export = checks.folder / "m.cera", checks.folder / "e.jsonl"
    mask = os.umask(0o022)
    try:
        with cerata.open(path) as store:
            store.put_frame("private")
            path.chmod(0o600)
            store.interchange.export_events(export)
    finally:
        os.umask(mask)
    mode = stat.S_IMODE(export.stat().st_mode)
    checks("mode of the export", mode == 0o600, oct(mode))


def case_37_raw_errors(checks: Checks) -> None:
    """Errors of Python reached the caller in place of ours.

    Kind: a value from outside reaches code that assumes more of it.
    """
    store = cerata.open(":memory:")

    def echo(x: object) -> object:
        return x

    with cerata.Agent(store, "a").run("r") as run:
        run.call("lst", lambda: [1, 2, 3])
        far = "$ref:lst.1#/" + "1" * 5000
        checks.answers("a reference with 5,000 digits", lambda: run.call("echo", echo, x=far))
        checks.answers("a tool that returns 10**5000", lambda: run.call("big", lambda: 10**5000))
    zone = "x" * 5000
    checks.answers(
        "a time zone of 5,000 letters",
        lambda: cerata.Agent(store, "b", timezone=zone).handoff("main"),
    )
    page = checks.folder / "o.yaml"
    page.write_text("memory: !!omap [a: 1, a: 2]")
    checks.answers("a YAML map with a name twice", lambda: cerata.load_memory(page))
    path = checks.folder / "r.db"
    file = sqlite3.connect(path)
    columns = "rowid, id, memory_id, new_memory, event, created_at, updated_at"
    file.execute(f"CREATE TABLE history ({columns})")
    file.execute("INSERT INTO history VALUES ('abc', 'i', 'm', 'text', 'ADD', NULL, NULL)")
    file.commit()
    file.close()
    checks.answers("a foreign column named rowid", lambda: import_from(store, "mem0", path))


BATCHES = 115


def case_38_ring_and_witnesses(checks: Checks) -> None:
    """A damaged range over the ring and both witnesses lost every batch, and no call raised.

    Kind: both witnesses of the head lie in the range that can be damaged with it.
    """
    path = checks.folder / "m.cera"
    with cerata.open(path, options=cerata.OpenOptions(sync="always")) as store:
        for n in range(BATCHES):
            store.put_frame(f"acknowledged {n}")
    whole, noise = path.read_bytes(), random.Random(7).randbytes
    fills: dict[str, Callable[[int], bytes]] = {"zeros": bytes, "noise": noise}
    for name, fill in fills.items():
        for start in range(8192, min(65536, len(whole)), 2048):
            path.write_bytes(whole[:start] + fill(len(whole) - start))
            try:
                with cerata.open(path) as store:
                    is_silent = store.count()[0] < BATCHES and store.verify().ok
            except ERROR:
                continue
            checks(f"{name} from {start}", not is_silent)


def case_39_forget_corrected(checks: Checks) -> None:
    """`forget` over MCP reported success for an id that was corrected, and hid nothing.

    Kind: a command reports an effect that it did not have.
    """
    store = cerata.open(":memory:")
    server = Service(store)
    server.call("remember", {"text": "Anna's door code is 4711."})
    server.call("correct", {"id": "1", "text": "Anna's door code is 4712.", "reason": "lock"})
    answer = server.call("forget", {"ids": "1", "reason": "the user asked"}).text
    is_hidden = "4712" not in store.recall("door code").text
    checks("hidden, or refused", is_hidden or "hidden" not in answer, answer)
    server.call("assert_fact", {"subject": "Anna", "predicate": "likes", "object": "tea"})
    first = store.facts("Anna")[0].id
    store.correct_fact(first, object="coffee")
    answer = server.call("forget", {"ids": str(first)}).text
    checks("the same for a fact", not store.facts("Anna") or "hidden" not in answer, answer)


class Clock(SystemClock):
    """A clock that the case sets."""

    now = datetime(2026, 1, 5, 9, tzinfo=UTC)

    def now_us(self) -> int:
        return int(self.now.timestamp() * 1e6)


class Scripted:
    """A model whose answers are written down."""

    name, version = "scripted", "1"

    def write(self, task: Any) -> str:
        answers = {
            "summarize": "sum",
            "reflect": "I was vague.\nPROPOSE: I name a date with each promise.",
            "align": "YES 1",
            "assess": "courage-self: 6\ncourage-ground: 5\nword: 4\nbrand: 5",
        }
        return answers.get(task.kind, "x")


def case_40_reflection_source(checks: Checks) -> None:
    """A proposal of a reflection recorded `because: [-1]`, a placeholder of its batch.

    Kind: a reference inside a batch is stored before its number is known.
    """
    clock = Clock()
    store = cerata.open(checks.folder / "m.cera", environment=cerata.Environment(clock=clock))
    store.remember(f"{SOUL}\nI ask.", kind="identity", uri="identity:SOUL")
    agent = cerata.Agent(store, "w", model=Scripted())
    with agent.session("s1") as session:
        session.exchange(
            "No, that is wrong, I meant the other deadline! I am scared of it.",
            "I find myself thinking about how I think. I will remind you.",
        )
    start = clock.now
    for hours in (0, 4.1, 20.1, 33):
        clock.now = start + timedelta(hours=hours)
        agent.reflect()
    proposals = agent.proposals()
    checks("there is a proposal", bool(proposals))
    for proposal in proposals:
        stored: Any = store.frame(proposal.id).metadata.get("because", [1])
        is_stored = all(cause > 0 for cause in [*proposal.because, *stored])
        checks("because names stored events", is_stored, (proposal.because, stored))
    store.close()


def case_41_small_promises(checks: Checks) -> None:
    """A class as an agent, a plain date, a compaction, an alias, a rejected proposal.

    Kinds: promises of the docs that did not hold.
    """
    store = cerata.open(":memory:")

    class Planner:
        def run(self, run: object) -> int:
            return 1

    decorate: Any = cerata.agent("planner")
    checks.answers("a decorated class", lambda: decorate(Planner)(store, id="x"))
    store.put_frame("Nate plays a role-playing game.", role="Nate")
    checks.answers("a date", lambda: store.search("game", where=Filter(content="since 2026-11-20")))
    path = checks.folder / "c.cera"
    with cerata.open(path) as file:
        for n in range(50):
            file.put_frame(f"note {n} " * 40)
        file.checkpoint()
    before = path.stat().st_size
    with cerata.open(path) as file:
        file.upkeep.compact()
    checks("compact never grows a file", path.stat().st_size <= before)
    store.graph.name("Anna Rossi", kind="person", aliases=["Annie"])
    store.assert_fact("Anna Rossi", "lives in", "Rome")
    checks("facts of an alias", len(store.facts("Annie")) == 1, store.facts("Annie"))
    store.assert_fact("Annie", "likes", "tea")
    checks("a fact about an alias", len(store.facts("Anna Rossi")) == 2)
    agent = cerata.Agent(store, "w")
    store.remember(SOUL, kind="identity", uri="identity:SOUL")
    agent.propose("I lie when the truth would hurt Anna.")
    judge(store, agent.proposals()[0], "reject", actor="anna")
    context = store.recall("what about the truth that would hurt Anna?").text
    checks("a rejected proposal is no memory", "I lie" not in context)


def case_10_mcp_optional_arguments(checks: Checks) -> None:
    """Models fill optional arguments with "" or send lists; the call failed.

    Kind: an argument without a value is not the same as an absent one.
    """
    mcp: Any = pytest.importorskip("mcp", reason="needs the extra mcp")
    memory = str(checks.folder / "m.cera")
    arguments = ["-m", "cerata", "admin", "mcp", "-f", memory]
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments)

    async def talk() -> None:
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as client:
            await client.initialize()

            async def call(tool: str, **arguments: Any) -> tuple[bool, str]:
                answer = await client.call_tool(tool, arguments)
                has_failed = getattr(answer, "is_error", getattr(answer, "isError", False))
                return has_failed, answer.content[0].text

            await call("remember", text="The port is 5433.", tags="ops")
            for name in ("where", "at", "valid_at", "max_tokens"):
                has_failed, text = await call("recall", query="which port?", **{name: ""})
                checks(f"recall {name}", not has_failed and "5433" in text, text)
            _, text = await call("remember", text="Second.", tags='["a","b"]')
            _, text = await call("show", ids=text.lstrip("#"))
            checks("tags as a JSON list", "[" not in text.split("tags:")[-1].split("\n")[0], text)
            calls: dict[str, dict[str, Any]] = {
                "remember": {"text": "Third.", "tags": ["a", "b"]},
                "show": {"ids": "[1]"},
                "assert_fact": {"subject": "Ann", "predicate": "is active", "object": True},
            }
            for tool, values in calls.items():
                has_failed, text = await call(tool, **values)
                checks(tool, not has_failed, text)
            fact = {"subject": "Ann", "predicate": "lives in", "object": "Rome"}
            has_failed, text = await call("assert_fact", **fact, valid_from="")
            checks("valid_from", not has_failed, text)

    asyncio.run(talk())
