# Where an extra is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""One unreadable item costs itself alone: in each reader of a list, log, listing or prefix.

Every public method of a view, an agent, a slot, a session and an adapter is in a table here: it
reads many items, and has a case, or it does not. A method that is in no table fails a test.
"""

import ast
import asyncio
import importlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Agent, Corrupt, UnreadableItem, View, agents
from cerata.agents.continuity.exchanges import Talk
from cerata.agents.continuity.readings import archived_days
from cerata.agents.session import Session
from cerata.agents.slot import Slot
from cerata.integrations.mcp.service import Service
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store

from ..damage import Damage
from ..surface import ELSEWHERE, surface


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        yield store


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> Damage:
    """Make one event of the log unreadable, as a damaged block does; None mends it."""
    return Damage(monkeypatch)


def check(
    read: Callable[[], Sequence[object]], store: Store, damage: Damage, seqs: Sequence[int]
) -> int:
    """Damage one event after the other; return how many lists lacked an item, all of them named."""
    whole = read()
    assert whole
    lacking = 0
    for seq in seqs:
        damage(seq)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            items = read()
        damage(None)
        texts = [str(note.message) for note in notes if note.category is UnreadableItem]
        missing = [item for item in whole if item not in items]
        assert all(item in whole for item in items)
        assert len(missing) <= 1, (seq, missing)
        # The role of an unreadable frame is unknown, so it may be no message.
        assert texts or not missing, seq
        assert all(f"Event {seq} is damaged" in text for text in texts)
        lacking += len(missing)
    return lacking


def public(kind: type) -> set[str]:
    return surface(kind)


# --- views ---------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Store], Sequence[object]]] = {
    "accesses": lambda store: [*agents.accesses(store)],
    "history.around": lambda store: [
        frame.id for frame in store.history.around(2, before=3, after=3)
    ],
    "history.audit": lambda store: [entry.seq for entry in store.history.audit()],
    "files.children": lambda store: [*store.files.children(4)],
    "files.chunks": lambda store: [*store.files.chunks(store.files.by_uri("x:long")[0])],
    "graph.conflicts": lambda store: [str(pair) for pair in store.graph.conflicts()],
    "graph.cooccurring": lambda store: [str(each) for each in store.graph.cooccurring("Ann")],
    "diff": lambda store: [change.seq for change in store.diff(0)],
    "graph.entities": lambda store: [entity.name for entity in store.graph.entities()],
    "graph.evidence": lambda store: [text.source for text in store.graph.evidence(_fact(store))],
    "interchange.export_facts": lambda store: [line.get("id") for line in _exported(store)],
    "graph.versions": lambda store: [str(fact) for fact in store.graph.versions("Ann")],
    "facts": lambda store: [str(fact) for fact in store.facts()],
    "files.by_content": lambda store: [*store.files.by_content(cerata.content_hash("beta one"))],
    "files.stored": lambda store: [
        each.id for each in store.files.stored(cerata.content_hash("beta one"))
    ],
    "files.by_uri": lambda store: [*store.files.by_uri("x:2")],
    "frames": lambda store: [
        frame.id for frame in store.frames(where=cerata.Filter(include_superseded=True))
    ],
    "history.of": lambda store: [frame.id for frame in store.history.of(1)],
    "history.last": lambda store: [frame.id for frame in store.history.last(10)],
    "graph.links": lambda store: [link.id for link in store.graph.links(_fact(store))],
    "log": lambda store: [event.seq for event in store.log()],
    "messages": lambda store: [message["content"] for message in agents.messages(store)],
    "graph.neighbours": lambda store: [str(each) for each in store.graph.neighbours("Ann")],
    "graph.paths": lambda store: [str(path) for path in store.graph.paths("Ann", "Paris")],
    "recall": lambda store: _shown(store.recall("one Ann")),
    "graph.search": lambda store: [str(hit.fact) for hit in store.graph.search("Ann")],
    "history.tags": lambda store: [*store.history.tags()],
    "files.values": lambda store: [str(value) for value in store.files.values("tag")],
    "graph.walk": lambda store: [str(step) for step in store.graph.walk("Ann")],
    "graph.why": lambda store: str(store.graph.why(_fact(store))).splitlines(),
}
"""The reads of many items: an unreadable one is left out and named."""

LAZY = {
    # Their items are read one by one, by who asks for the text.
    "history.timeline": lambda store: store.history.timeline().entries,
    "search": lambda store: store.search("one"),
}

EXACT = {"history.rerun"}
"""Repetitions, which compare what was with what is: their outcome is unknown then."""

ALONE = {
    *(
        "access",
        "at",
        "basis",
        "history.blame",
        "files.content",
        "count",
        "draw_facts",
        "draw_graph",
    ),
    *(
        "embeddings.of",
        "graph.entity",
        "history.explain",
        "graph.fact",
        "frame",
        "get",
        "head",
        "files.highlights",
    ),
    *(
        "log_id",
        "now",
        "stream.projection",
        "embeddings.used",
        "graph.resolve",
        "scope",
        "shared",
        "history.since",
    ),
    *(
        "files.source",
        "upkeep.speculate",
        "embeddings.tokens_of",
        "true_at",
        "history.view",
        "within",
    ),
}
"""Reads of one thing, of a state, and writes."""


def _fact(store: Store) -> int:
    return next(fact.id for fact in store.facts())


def _exported(store: Store) -> list[dict[str, Any]]:
    return [json.loads(line) for line in [*store.interchange.export_facts()][1:]]


def _shown(context: cerata.Context) -> list[int]:
    return [number for item in context.items for number in (item.id, *item.joined)]


def made(store: Store) -> None:
    """Fill a memory: versions, a conversation, a document, facts with evidence, links, tags."""
    for number, text in enumerate(("alpha one", "beta one", "gamma one"), start=1):
        store.put_frame(
            text, role="user", uri=f"x:{number}", tags=["q"], options=cerata.PutOptions(track="t")
        )
    store.put_frame("part", options=cerata.PutOptions(parent=store.put_frame("head")))
    store.supersede(1, "alpha two")
    facts = [
        store.assert_fact("Ann", "LIVES_IN", cerata.Entity(place), evidence=[2, 3])
        for place in ("Paris", "Rome", "Bonn")
    ]
    store.graph.link(facts[0], "contradicts", facts[1])
    store.remember("A long paragraph about the boat. " * 2_000, uri="x:long")
    agents.record_access(store, 2)
    store.history.tag("v1")
    store.put_frame("the newest event, by which now is known")


def test_every_read_of_a_view_is_in_a_table() -> None:
    tables = [set(VIEWS), set(LAZY), EXACT, ALONE]
    # A diff is of two views.
    assert set().union(*tables) == {*public(View), *(ELSEWHERE - {"tune"}), "diff"}
    assert sum(map(len, tables)) == len(set().union(*tables))


@pytest.mark.parametrize("name", VIEWS)
def test_a_damaged_event_costs_a_list_only_its_item(
    name: str, store: Store, damage: Damage
) -> None:
    made(store)
    lacking = check(lambda: VIEWS[name](store), store, damage, range(1, store.head.seq + 1))
    reads_events = {
        *(
            "history.around",
            "history.audit",
            "diff",
            "graph.evidence",
            "interchange.export_facts",
            "frames",
            "history.of",
            "history.last",
        ),
        *("log", "messages", "recall"),
    }
    assert (lacking > 0) == (name in reads_events)


@pytest.mark.parametrize("name", LAZY)
def test_an_entry_is_read_alone(name: str, store: Store, damage: Damage) -> None:
    made(store)
    entries = LAZY[name](store)
    damage(2)
    unreadable = 0
    for entry in entries:
        try:
            assert entry.frame
        except Corrupt:
            unreadable += 1
    assert (unreadable, len(entries)) == (1, len(LAZY[name](store)))


def test_a_context_names_what_it_could_not_read(store: Store, damage: Damage) -> None:
    """To the program as an omission, to a model over MCP as a notice; in a pickled answer, too."""
    made(store)
    damage(2)
    with pytest.warns(UnreadableItem, match="Entry 2 cannot be read"):
        context = store.recall("one")
    [omission] = [each for each in context.omissions if each.id == 2]
    assert omission.reason == "unreadable: Event 2 is damaged"
    [notice] = context.notices
    assert notice == "entry 2 cannot be read and was left out: Event 2 is damaged"
    with pytest.warns(UnreadableItem):
        answer = Service(store).call("recall", {"query": "one"})
    assert notice in answer.text
    assert "gamma one" in answer.text


def test_a_repetition_stops_at_what_it_cannot_read(store: Store, damage: Damage) -> None:
    """Its outcome would be a difference that nobody made."""
    made(store)
    recorded = store.recall("one", record=True).recorded
    assert recorded is not None
    store.put_frame("newer")
    assert store.history.rerun(recorded).outcome == "same"
    damage(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rerun = store.history.rerun(recorded)
    assert (rerun.outcome, rerun.reason) == ("unknown", "Event 2 is damaged")


def test_a_damaged_version_costs_a_blame_only_itself(store: Store, damage: Damage) -> None:
    made(store)
    store.supersede(6, "alpha three")
    newest = store.history.of(1)[-1].id
    fields = [field.field for field in store.history.blame(newest).fields]
    for seq in (1, 6):
        damage(seq)
        with pytest.warns(UnreadableItem, match=f"Event {seq} is damaged"):
            assert [field.field for field in store.history.blame(newest).fields] == fields
    damage(newest)
    with pytest.raises(Corrupt, match=f"Event {newest} is damaged"):
        store.history.blame(newest)


def test_an_export_of_facts_with_a_damaged_event_can_be_imported(damage: Damage) -> None:
    """No line names a line that is missing."""
    with cerata.open(":memory:") as store:
        store.put_frame("Ann moved.")
        fact = store.assert_fact("Ann", "LIVES_IN", "Rome", evidence=[1])
        new = store.correct_fact(fact, object="Bonn")
        other = store.assert_fact("Ann", "KNOWS", "Bob")
        store.graph.split("Ann", into="Ann B.", facts=[new, other])
        for seq in range(1, store.head.seq + 1):
            damage(seq)
            with pytest.warns(UnreadableItem, match=f"Event {seq} is damaged"):
                lines = [*store.interchange.export_facts(history=True)]
            damage(None)
            with cerata.open(":memory:") as copy:
                imported = copy.interchange.import_facts(lines)
            assert imported.added == len(lines) - 1


def test_a_warning_that_is_an_error_stops_the_list(store: Store, damage: Damage) -> None:
    """It is a `Corrupt`, as before."""
    made(store)
    damage(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreadableItem)
        for read in (store.frames, store.log):
            with pytest.raises(Corrupt):
                list(read())


def test_a_stream_stops_at_a_damaged_event_and_keeps_its_place(
    store: Store, damage: Damage
) -> None:
    """It promises each event once and in order."""
    made(store)
    damage(5)
    stream = store.stream.follow(3, timeout=0)
    assert next(stream).seq == 4
    for _ in range(2):
        with pytest.raises(Corrupt, match="The stream stopped at event 5: Event 5 is damaged"):
            next(stream)
    assert stream.position == 4
    damage(5, 6)
    with pytest.raises(Corrupt, match=r"stopped at events 5 to 6: .* follow after event 6"):
        next(stream)
    assert next(store.stream.follow(6, timeout=0)).seq == 7
    damage(None)
    assert next(stream).seq == 5


def test_damaged_events_in_a_row_are_one_warning(store: Store, damage: Damage) -> None:
    made(store)
    whole = store.head.seq
    damage(3, 4, 5, 9)
    with pytest.warns(UnreadableItem) as notes:
        seqs = [event.seq for event in store.log()]
    assert seqs == [seq for seq in range(1, whole + 1) if seq not in (3, 4, 5, 9)]
    texts = [str(note.message) for note in notes]
    assert [text.partition(" cannot")[0] for text in texts] == ["Events 3 to 5", "Event 9"]
    with pytest.warns(UnreadableItem):
        assert [event.seq for event in store.log(4, 6)] == [6]


# --- agents --------------------------------------------------------------------------------------

AGENTS: dict[str, Callable[[Agent], Sequence[object]]] = {
    "calls": lambda agent: [call.event for call in agent.calls("r1")],
    "handoff": lambda agent: [message.id for message in agent.handoff().messages],
    "proposals": lambda agent: [proposal.id for proposal in agent.proposals()],
    "refs": lambda agent: [reference.id for reference in agent.refs("open")],
    "summaries": lambda agent: [summary.id for summary in agent.summaries()],
    "runs": lambda agent: [run.id for run in agent.runs()],
    "sessions": lambda agent: [session.id for session in agent.sessions()],
    "threads": lambda agent: [thread.name for thread in agent.threads()],
}

OTHER_OF_AGENTS = {
    # Made from many items: in `test_unreadable_work`.
    *("candidates", "entropy", "identity", "meta_patterns", "pending", "reflect", "standing"),
    *("sweep", "topics", "wellbeing"),
    # Repetitions of a run or context stop.
    *("rerun", "rerun_assembly"),
    *("at", "get", "goes_on", "live_journal", "name", "over", "propose", "run", "run_of"),
    *("session", "slot", "slot_of", "store", "version"),
}

SLOTS: dict[str, Callable[[Slot], Sequence[object]]] = {
    "history": lambda slot: [item.id for item in slot.history()],
    "items": lambda slot: [item.id for item in slot.items()],
    "last": lambda slot: [item.id for item in slot.last(10)],
}

OTHER_OF_SLOTS = {
    # Keys and hits are those of frames that can be read.
    *("append", "delete", "get", "keep", "keys", "raw", "scope", "search", "set", "spec"),
}

SESSIONS: dict[str, Callable[[Session], Sequence[object]]] = {
    "assemble": lambda session: [
        item.source
        for item in session.assemble("Question 1?", max_tokens=4_000, record=False).items
        if item.source is not None
    ],
    "exchanges": lambda session: [exchange.id for exchange in session.exchanges()],
    "recall": lambda session: [each.exchange.id for each in session.recall("subject").exchanges],
}

OTHER_OF_SESSIONS = {
    *("compact", "entropy", "exchange", "id", "message", "mode", "project"),
    *("resumed", "run", "run_of", "should_restart", "slot", "source", "thread", "title"),
}


def _repeated(x: int) -> list[int]:
    return [x] * 200


def worked(store: Store) -> Agent:
    agent = Agent(store, "wyatt", memory={"notes": cerata.semantic_memory(())})
    store.put_frame("My word is my bond.", kind="identity", uri="identity:SOUL")
    for number in range(3):
        agent.propose(f"I keep promise {number}.")
        with agent.run(f"r{number}") as run:
            for value in range(3):
                run.call("echo", _repeated, x=value)
        with agent.session(f"s{number}") as session:
            session.message("user", f"Question {number}?")
            session.message("assistant", f"Answer {number}.")
            if number == 2:
                assert session.compact()
        agent.slot("notes").append(f"note {number}")
    # Results end with their run.
    run = agent.run("open").__enter__()
    for value in range(3):
        run.call("echo", _repeated, x=value)
    store.put_frame("the newest event, by which now is known")
    return agent


def test_every_call_of_agents_is_in_a_table() -> None:
    assert set(AGENTS) | OTHER_OF_AGENTS == public(Agent)
    assert set(SLOTS) | OTHER_OF_SLOTS == public(Slot)
    assert set(SESSIONS) | OTHER_OF_SESSIONS == public(Session)


@pytest.mark.parametrize("name", [*AGENTS, *SLOTS])
def test_a_damaged_event_costs_a_list_of_an_agent_only_its_item(
    name: str, store: Store, damage: Damage
) -> None:
    agent = worked(store)
    slot = agent.slot("notes")

    def read() -> Sequence[object]:
        return AGENTS[name](agent) if name in AGENTS else SLOTS[name](slot)

    items = [seq for seq in read() if isinstance(seq, int)]
    assert check(read, store, damage, items) == len(items)
    # By the newest event now is known.
    assert check(read, store, damage, [store.head.seq]) == 0


@pytest.mark.parametrize("name", SESSIONS)
def test_a_damaged_message_costs_a_session_only_its_item(
    name: str, store: Store, damage: Damage
) -> None:
    agent = worked(store)
    with agent.session("s9") as session:
        for number in range(3):
            session.message("user", f"And subject {number}?")
            session.message("assistant", f"So much for {number}.")
        store.put_frame("the newest event, by which now is known")
        items = [seq for seq in SESSIONS[name](session) if isinstance(seq, int)]
        assert check(lambda: SESSIONS[name](session), store, damage, items) == len(items)
        newest = [store.head.seq]
        assert check(lambda: SESSIONS[name](session), store, damage, newest) == 0


def test_a_damaged_message_costs_its_day_of_an_archive_only_itself(
    store: Store, damage: Damage
) -> None:
    worked(store)
    talk = Talk(snapshot_of(store), "wyatt")
    [whole] = archived_days(talk)
    bad = int(talk.firsts[0])
    damage(bad)
    with pytest.warns(UnreadableItem, match=f"Frame {bad} cannot be read"):
        [day] = archived_days(talk)
    assert (day.count, day.unreadable) == (whole.count - 1, 1)
    assert json.loads(day.data)["messages"] == json.loads(whole.data)["messages"][1:]


def test_a_value_of_another_schema_costs_a_slot_only_itself(store: Store) -> None:
    """The names of a map, too."""
    agent = worked(store)
    slot = agent.slot("notes")
    second = slot.items()[1]
    old = store.frame(second.id)
    new = store.put_frame(
        b"\xff",
        kind=old.kind,
        uri=old.uri,
        options=cerata.PutOptions(track=old.track, scope=dict(old.scope)),
    )
    store.supersede(old, new)
    with pytest.warns(UnreadableItem, match=r"Frame .* cannot be read"):
        assert [item.value for item in slot.items()] == ["note 0", "note 2"]


# --- adapters ------------------------------------------------------------------------------------


def adapter_methods() -> dict[str, set[str]]:
    """Return the public methods of each adapter's classes, read from the code."""
    root = Path(inspect.getfile(Service)).parents[1]
    methods: dict[str, set[str]] = {}
    for path in sorted(root.glob("*/*.py")):
        if path.parent.name in ("importers", "otel", "mcp") and path.stem != "service":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name in ADAPTERS:
                methods[node.name] = {
                    each.name
                    for each in node.body
                    if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                    and not each.name.startswith("_")
                }
    return methods


def frame_at(store: Store, end: str) -> int:
    return next(
        frame.id
        for frame in store.frames(include_chunks=True)
        if frame.uri is not None and frame.uri.endswith(end)
    )


def item_store(store: Store) -> Any:
    items = importlib.import_module("cerata.integrations.langgraph").CerataStore(store)
    for key in ("a", "bad", "c"):
        items.put(("u",), key, {"key": key})
    store.supersede(frame_at(store, "/bad"), "no JSON")
    return items


def langgraph_search(store: Store) -> list[object]:
    return sorted(item.key for item in item_store(store).search(("u",)))


def langgraph_batch(store: Store) -> list[object]:
    base = importlib.import_module("langgraph.store.base")
    ops = [base.GetOp(("u",), key) for key in ("a", "bad", "c")]
    return [item.key for item in item_store(store).batch(ops) if item is not None]


def saver_of(store: Store) -> Any:
    from langgraph.checkpoint.base import empty_checkpoint

    saver = importlib.import_module("cerata.integrations.langgraph").CerataSaver(store)
    for thread in ("a", "bad", "c"):
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        saver.put(config, empty_checkpoint(), {"step": 1}, {})
    return saver


def langgraph_list(store: Store) -> list[object]:
    saver = saver_of(store)
    loads = saver.serde.loads_typed
    [bad] = saver.list({"configurable": {"thread_id": "bad"}})

    def broken(typed: tuple[str, bytes]) -> Any:
        value = loads(typed)
        if isinstance(value, dict) and value.get("id") == bad.checkpoint["id"]:
            raise RecursionError
        return value

    saver.serde.loads_typed = broken
    return sorted(each.config["configurable"]["thread_id"] for each in saver.list(None))


def langchain_documents(read: str) -> Callable[[Store], list[object]]:
    def documents(store: Store) -> list[object]:
        from langchain_core.embeddings import DeterministicFakeEmbedding

        module = importlib.import_module("cerata.integrations.langchain")
        vectors = module.CerataVectorStore(store, DeterministicFakeEmbedding(size=8))
        vectors.add_texts(["text a", "text bad", "text c"], ids=["a", "bad", "c"])
        bad = frame_at(store, "lc:bad")
        store.put_frame("the newest")
        broken(bad)
        retriever = module.CerataRetriever(store)
        vector = vectors.embeddings.embed_query("text")
        calls: dict[str, Callable[[], Any]] = {
            "get_by_ids": lambda: vectors.get_by_ids(["a", "bad", "c"]),
            "similarity_search": lambda: vectors.similarity_search("text"),
            "similarity_search_with_score": lambda: [
                document for document, _ in vectors.similarity_search_with_score("text")
            ],
            "similarity_search_by_vector": lambda: vectors.similarity_search_by_vector(vector),
            "max_marginal_relevance_search": lambda: vectors.max_marginal_relevance_search("text"),
            "max_marginal_relevance_search_by_vector": lambda: (
                vectors.max_marginal_relevance_search_by_vector(vector)
            ),
            "retriever": lambda: [
                document
                for document in retriever.invoke("text")
                if document.page_content.startswith("text")
            ],
        }
        return sorted(document.page_content.removeprefix("text ") for document in calls[read]())

    return documents


def langchain_bytes(read: str) -> Callable[[Store], list[object]]:
    def values(store: Store) -> list[object]:
        module = importlib.import_module("cerata.integrations.langchain")
        values = module.CerataByteStore(store)
        values.mset([("a", b"a"), ("bad", b"bad"), ("c", b"c")])
        bad = frame_at(store, "bad")
        store.put_frame("the newest")
        broken(bad)
        if read == "yield_keys":
            return sorted(values.yield_keys())
        return [value.decode() for value in values.mget(["a", "bad", "c"]) if value is not None]

    return values


def session_items(store: Store) -> list[object]:
    session = importlib.import_module("cerata.integrations.openai_agents").CerataSession("s", store)
    items = [{"role": "user", "content": text} for text in ("a", "bad", "c")]
    asyncio.run(session.add_items(items))
    frame = next(each for each in store.frames() if each.text == "bad")
    store.update(frame, metadata={})
    items = asyncio.run(session.get_items())
    newest = asyncio.run(session.pop_item())
    assert newest == items[-1]
    return [item["content"] for item in items]


def memory_service(store: Store) -> list[object]:
    entries = importlib.import_module("google.adk.memory.memory_entry")
    types = importlib.import_module("google.genai.types")
    service = importlib.import_module("cerata.integrations.google_adk").CerataMemoryService(store)
    named = {"app_name": "app", "user_id": "u"}
    memories = [
        entries.MemoryEntry(id=text, content=types.Content(parts=[types.Part(text=f"word {text}")]))
        for text in ("a", "bad", "c")
    ]
    asyncio.run(service.add_memory(memories=memories, **named))
    scoped = store.scoped({"app": "app", "user_id": "u"})
    scoped.update(frame_at(scoped, "bad"), metadata={"content": [1]})
    answer = asyncio.run(service.search_memory(query="word", **named))
    return sorted(memory.id for memory in answer.memories)


def memory_tool(store: Store) -> list[object]:
    tool = importlib.import_module("cerata.integrations.anthropic").CerataMemoryTool(store)
    command = importlib.import_module("types").SimpleNamespace
    for name in ("a", "bad", "c"):
        tool.create(command(path=f"/memories/{name}", file_text=name))
    bad = frame_at(store, "/bad")
    store.put_frame("the newest")
    broken(bad)
    shown = tool.view(command(path="/memories"))
    return [name for name in ("a", "bad", "c") if f"/{name}" in shown]


broken: Damage
"""The fixture `damage` of the running test."""

langgraph, langchain = pytest.mark.langgraph, pytest.mark.langchain

CASES: dict[str, tuple[Callable[[Store], list[object]], Any]] = {
    "CerataStore.search": (langgraph_search, langgraph),
    "CerataStore.batch": (langgraph_batch, langgraph),
    "CerataSaver.list": (langgraph_list, langgraph),
    "CerataVectorStore.get_by_ids": (langchain_documents("get_by_ids"), langchain),
    "CerataVectorStore.similarity_search": (langchain_documents("similarity_search"), langchain),
    "CerataVectorStore.similarity_search_with_score": (
        langchain_documents("similarity_search_with_score"),
        langchain,
    ),
    "CerataVectorStore.similarity_search_by_vector": (
        langchain_documents("similarity_search_by_vector"),
        langchain,
    ),
    "CerataVectorStore.max_marginal_relevance_search": (
        langchain_documents("max_marginal_relevance_search"),
        langchain,
    ),
    "CerataVectorStore.max_marginal_relevance_search_by_vector": (
        langchain_documents("max_marginal_relevance_search_by_vector"),
        langchain,
    ),
    "CerataRetriever.invoke": (langchain_documents("retriever"), langchain),
    "CerataByteStore.mget": (langchain_bytes("mget"), langchain),
    "CerataByteStore.yield_keys": (langchain_bytes("yield_keys"), langchain),
    "CerataSession.get_items": (session_items, pytest.mark.openai_agents),
    "CerataMemoryService.search_memory": (memory_service, pytest.mark.google_adk),
    "CerataMemoryTool.view": (memory_tool, pytest.mark.anthropic),
}
"""The readers of many items; an async twin, whose name begins with an "a", has the same work."""

ADAPTERS: dict[str, set[str]] = {
    "CerataSaver": {
        *("store", "basis", "get_tuple", "get_delta_channel_history", "put", "put_writes"),
        *("delete_thread", "delete_for_runs", "copy_thread", "prune", "get_next_version"),
        *("from_conn_string", "aput_writes", "adelete_for_runs"),
    },
    "CerataStore": {
        *("store", "sweep_ttl", "start_ttl_sweeper", "stop_ttl_sweeper", "from_conn_string"),
    },
    "CerataVectorStore": {"embeddings", "store", "add_texts", "delete", "from_texts"},
    "CerataRetriever": set(),
    "CerataByteStore": {"mset", "mdelete"},
    "CerataSession": {"store", "add_items", "clear_session", "pop_item"},
    "CerataMemoryTool": {
        *("store", "execute", "create", "str_replace", "insert", "delete", "rename"),
        *("clear_all_memory", "undo"),
    },
    "CerataAsyncMemoryTool": {
        *("store", "execute", "create", "str_replace", "insert", "delete", "rename"),
        *("clear_all_memory", "undo", "view"),
    },
    "CerataMemoryService": {
        *("store", "add_session_to_memory", "add_events_to_memory", "add_memory", "delete_memory"),
    },
    "Service": {"tools", "call", "resource", "status", "prompt"},
}
"""The methods of each adapter that read one item, or write."""


def test_every_method_of_an_adapter_is_in_a_table() -> None:
    methods = adapter_methods()
    assert methods.keys() == ADAPTERS.keys()
    for kind, names in methods.items():
        known = ADAPTERS[kind] | {
            name.partition(".")[2] for name in CASES if name.startswith(f"{kind}.")
        }
        unknown = {
            name for name in names if name not in known and name.removeprefix("a") not in known
        }
        assert unknown == set(), kind


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=mark) for name, (_, mark) in CASES.items()]
)
def test_an_unreadable_item_costs_an_adapter_only_itself(
    name: str, store: Store, damage: Damage
) -> None:
    """All others are returned, and the bad one is named."""
    global broken  # noqa: PLW0603
    broken = damage
    read, mark = CASES[name]
    needed = {
        "langgraph": "langgraph.store.base",
        "langchain": "langchain_core",
        "openai_agents": "agents.memory.session_settings",
        "google_adk": "google.adk.memory.base_memory_service",
        "anthropic": "anthropic.lib.tools",
    }
    pytest.importorskip(needed[mark.name], reason="needs an extra")
    with pytest.warns(UnreadableItem, match="cannot be read and was left out"):
        assert read(store) == ["a", "c"]


@pytest.mark.langgraph
def test_an_unreadable_item_alone_raises_a_typed_error(store: Store) -> None:
    """Also in a thread; a namespace with it keeps its checkpoints."""
    pytest.importorskip("langgraph.store.base", reason="needs an extra")
    items = item_store(store)
    with pytest.raises(Corrupt, match="no object of JSON"):
        items.get(("u",), "bad")
    assert items.list_namespaces() == [("u",)]
    saver = saver_of(store)
    saver.serde.loads_typed = lambda _: 5
    with pytest.raises(Corrupt, match="not a dict"):
        saver.get_tuple({"configurable": {"thread_id": "bad"}})


def test_show_over_mcp_names_the_bad_id_among_others(store: Store, damage: Damage) -> None:
    made(store)
    damage(2)
    answer = Service(store).call("show", {"ids": "1, 2, 99, 3"})
    assert not answer.is_error
    assert "alpha one" in answer.text
    assert "gamma one" in answer.text
    assert "#2\nerror: Corrupt" in answer.text
    assert "#99\nerror: NotFound" in answer.text
    assert Service(store).call("show", {"ids": "99"}).is_error
