"""Public values go to other processes and are copied; handles refuse, with a remedy."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Store, agents
from cerata.agents import judge
from cerata.engine.events import Attachment, PutFrame
from cerata.engine.integrity import hash_bytes

from ...embedders import Hashing
from ...inside import log_of
from ..facts.extractors import Model, first_word

ASKED = "Do you remember the deadline?"
BLOB = b"\x00\x01 bytes"


def fill(store: Store, folder: Path) -> None:
    note = store.put_frame("Ann drinks green tea in Bern.", tags=["a"], metadata={"n": [1, {}]})
    store.assert_fact("Ann", "drinks", "tea", evidence=[note])
    store.assert_fact("Ann", "lives in", cerata.Entity("Bern"), evidence=[note])
    store.put_frame(BLOB, options=cerata.PutOptions(search_text="bytes of tea"))
    newer = store.supersede(note, "Ann drinks black tea in Bern.")
    store.assert_fact("Ann", "likes", cerata.Entity("Bern"), evidence=[newer])
    # Event 2 names the embedder.
    store.graph.link(3, "supports", 4)
    store.graph.link(3, "contradicts", 4)
    (folder / "notes.md").write_text("# Tea\n\nGreen tea.", encoding="utf-8")


def explained_recall(store: Store) -> cerata.RecallExplanation:
    return store.history.explain(store.recall("tea", record=True))


def first_explained(store: Store) -> Any:
    return store.history.explain(store.search("tea")[0])


def tuned(store: Store) -> cerata.Tuning:
    frame = store.search("tea")[0].frame
    return cerata.tuning.tune(
        store, [cerata.Judgement(f"tea {place}", [frame]) for place in range(10)]
    )


def recorded(store: Store) -> tuple[cerata.Agent, cerata.Result]:
    """Record a run with a call; return its agent and the result."""
    agent = cerata.Agent(store, "analyst")
    with agent.run("r1") as run:
        result = run.call("double", _double, number=2)
    return agent, result


def slot_items(store: Store) -> list[cerata.SlotItem]:
    """Return the items of a slot with a value."""
    memory = {"mode": cerata.MemorySpec(type="value", ttl="1d")}
    slot = cerata.Agent(store, "analyst", memory=memory).slot("mode")
    slot.set({"speed": 3})
    return slot.items()


def referring(store: Store) -> tuple[cerata.Reference, cerata.Lineage, cerata.RunContext]:
    """Return the values of a run's references."""
    with cerata.Agent(store, "analyst").run() as run:
        run.call("double", _double, number=2)
        run.call("double", _double, number="$ref:double.1")
        lineage = run.lineage("$ref:double.1")
        return run.refs()[0], lineage, run.context("More?", max_tokens=500)


def proposed(store: Store) -> cerata.Agent:
    """Return an agent with a file, a proposal, and an approved part of its scaffold."""
    agent = cerata.Agent(store, "analyst")
    store.put_frame("I keep my word.", kind="identity", uri="identity:SOUL")
    agent.propose("Use ripgrep.", target="scaffold/tools")
    judge(store, agent.proposals()[0], "approve", actor="anna")
    return agent


def talked(store: Store) -> cerata.Session:
    """Return a session of a thread with exchanges of an ended day."""
    agent = cerata.Agent(store, "talker")
    with agent.session("s1") as session:
        session.exchange("The deadline is the deadline.", "Yes.", created="2026-01-05")
    agent.reflect()
    return agent.session("s2")


def made_again(store: Store) -> cerata.AssemblyRerun:
    """Return a recorded context, made again."""
    context = talked(store).assemble("So?", max_tokens=500)
    return cerata.Agent(store, "talker").rerun_assembly(context)


def informed(store: Store) -> cerata.Session:
    """Return a session beside knowledge."""
    store.remember("Remember the deadline: it is on Friday.", kind="knowledge")
    return cerata.Agent(store, "talker").session("s2")


def talking(store: Store) -> cerata.Agent:
    """Return the agent of `talked`."""
    talked(store)
    return cerata.Agent(store, "talker")


def chained(store: Store) -> cerata.Agent:
    """Return an agent with a name that fits two entities, and a chain of two predicates."""
    agent = cerata.Agent(store, "namer")
    for number in range(5):
        store.assert_fact(f"Kim Child{number}", "child of", cerata.Entity(f"Lee {number}"))
        store.assert_fact(f"Lee {number}", "lives in", cerata.Entity("Rome"))
    agent.session("s").exchange("Then I met Kim.", "Noted.")
    return agent


def surprised() -> cerata.DynamicsState:
    """Return the state of a predictor after an exchange."""
    with cerata.open(":memory:", projections=[cerata.Dynamics]) as store:
        cerata.Agent(store, "talker").session("s").exchange("Did he call?", "No.")
        return store.stream.projection(cerata.Dynamics).states("talker")[0]


def task_report(store: Store) -> cerata.TaskReport:
    """Return the report of a task that is due."""
    session = cerata.Agent(store, "talker").session("s0")
    session.exchange("One.", "Two.", created="2026-01-04")
    return cerata.Agent(store, "talker").reflect(dry_run=True).skipped[0]


def _double(number: int) -> int:
    return 2 * number


def _imported_events(store: Store, folder: Path) -> cerata.ImportedEvents:
    lines = folder / "events.jsonl"
    store.interchange.export_events(lines)
    return store.interchange.import_events(lines)


def forked(store: Store, read: Callable[[Store], Any]) -> Any:
    with store.upkeep.fork() as fork:
        fork.put_frame("in the fork")
        return read(fork)


MADE: dict[str, Callable[[Store, Path], Any]] = {
    "FactOptions": lambda _, _folder: cerata.FactOptions(assumptions=["one Ann"]),
    "Layout": lambda _, _folder: cerata.Layout(order="time"),
    "OpenOptions": lambda _, _folder: cerata.OpenOptions(shared=True),
    "Page": lambda _, _folder: cerata.Page(offset=10),
    "PutOptions": lambda _, _folder: cerata.PutOptions(track="chat", key="k"),
    "Ranking": lambda _, _folder: cerata.Ranking(mode="text"),
    "WriteOptions": lambda _, _folder: cerata.WriteOptions(actor="ann"),
    "Access": lambda store, _: agents.access(store, 1),
    "Act": lambda store, _: store.graph.why(4).asserted,
    "Allen": lambda _, _folder: cerata.Allen.PRECEDES,
    "Assertion": lambda _, _folder: cerata.Assertion("Ann", "drinks", "tea"),
    "Bisection": lambda store, _: store.history.bisect(lambda view: not len(view)),
    "Blame": lambda store, _: store.history.blame(1),
    "Branch": lambda store, _: forked(store, lambda fork: fork.upkeep.branches()[0]),
    "Candidate": lambda _, _folder: cerata.Candidate("a", "is", "b", 0, 1),
    "Change": lambda store, _: next(iter(store.diff(1))),
    "Context": lambda store, _: store.recall("tea"),
    "ContextItem": lambda store, _: store.recall("tea").items[0],
    "ContextPolicy": lambda _, _folder: cerata.ContextPolicy("mine", 1),
    "Contradiction": lambda store, _: store.graph.conflicts()[0],
    "Cooccurrence": lambda store, _: store.graph.cooccurring("Ann")[0],
    "DiffLine": lambda _, _folder: cerata.DiffLine("+", "a b", ((2, 3),)),
    "Diff": lambda store, _: store.diff(1),
    "Activity": lambda store, _: recorded(store)[0].runs()[0],
    "Call": lambda store, _: recorded(store)[0].calls("r1")[0],
    "Divergence": lambda store, _: recorded(store)[0].rerun("r1", cerata.Run.now).divergence,
    "Rerun": lambda store, _: recorded(store)[0].rerun("r1", cerata.Run.now),
    "SlotItem": lambda store, _: slot_items(store)[0],
    "AgentSweep": lambda store, _: recorded(store)[0].sweep(),
    "MemorySpec": lambda _, __: cerata.scratchpad(),
    "Reference": lambda store, _: referring(store)[0],
    "Lineage": lambda store, _: referring(store)[1],
    "RunContext": lambda store, _: referring(store)[2],
    "Result": lambda store, _: recorded(store)[1],
    "ForkDiff": lambda store, _: forked(store, store.history.compare),
    "Compaction": lambda store, _: store.upkeep.compact(dry_run=True),
    "Maintenance": lambda store, _: store.upkeep.maintain(),
    "Draft": lambda _, _folder: cerata.Draft(PutFrame(text="a"), attachments=(BLOB,)),
    "EmbeddedFrames": lambda store, _: store.embeddings.fill(),
    "EmbedderIdentity": lambda _, _folder: cerata.EmbedderIdentity("a", "1", 8),
    "Entity": lambda _, _folder: cerata.Entity("Bern"),
    "EntityInfo": lambda store, _: store.graph.entity("Ann"),
    "Event": lambda store, _: next(store.log(5, 5)),
    "EventBody": lambda store, _: next(store.log(3, 3)).body,
    "EvidenceText": lambda store, _: store.graph.evidence(3)[0],
    "EntryDifference": lambda _, _folder: cerata.EntryDifference("frame", 1, 2, None),
    "ExplainedLine": lambda store, _: explained_recall(store).lines[0],
    "RecallExplanation": lambda store, _: explained_recall(store),
    "RecallRerun": lambda store, _: store.history.rerun(store.recall("tea", record=True)),
    "Explanation": lambda store, _: first_explained(store),
    "Extracted": lambda store, _: store.graph.extract(extractor=Model(first_word)).frames[0],
    "Extraction": lambda store, _: store.graph.extract(extractor=Model(first_word)),
    "Fact": lambda store, _: store.graph.fact(3),
    "FactChange": lambda store, _: store.diff(1).facts[0],
    "DynamicsState": lambda _, _folder: surprised(),
    "Surprise": lambda _, _folder: surprised().surprises[0],
    "FactEvidence": lambda store, _: store.graph.fact(3).evidence[0],
    "FactHit": lambda store, _: store.graph.search("Ann")[0],
    "FactPath": lambda store, _: store.graph.paths("Ann", "Bern")[0],
    "FieldBlame": lambda store, _: store.history.blame(1).fields[0],
    "Filter": lambda _, _folder: cerata.Filter(tags=["a"]) | ~cerata.Filter(kind="b"),
    "Floor": lambda _, _folder: cerata.Floor(0.6, 0.36),
    "Frame": lambda store, _: store.frame(1),
    "Gate": lambda store, _: proposed(store).proposals()[0].gates.settled,
    "Gates": lambda store, _: proposed(store).proposals()[0].gates,
    "HistoryEntry": lambda store, _: store.history.of("Ann")[0],
    "Head": lambda store, _: store.head,
    "Identity": lambda store, _: proposed(store).identity(),
    "IdentityFile": lambda store, _: proposed(store).identity().files[0],
    "Hit": lambda store, _: store.search("tea")[0],
    "Hits": lambda store, _: store.search("tea"),
    "ImportedFacts": lambda store, _: store.interchange.import_facts(
        store.interchange.export_facts()
    ),
    "ExportedEvents": lambda store, folder: store.interchange.export_events(
        folder / "events.jsonl"
    ),
    "ImportedEvents": _imported_events,
    "Judgement": lambda _, _folder: cerata.Judgement("tea", [1]),
    "Assembly": lambda store, _: talked(store).assemble("So?", max_tokens=500),
    "AssemblyItem": lambda store, _: talked(store).assemble("So?", max_tokens=500).items[0],
    "AssemblyRerun": lambda store, _: made_again(store),
    "Exchange": lambda store, _: talked(store).recall(ASKED).exchanges[0].exchange,
    "Handoff": lambda store, _: talking(store).handoff(),
    "MetaPattern": lambda store, _: chained(store).meta_patterns()[0],
    "PatternChain": lambda store, _: chained(store).meta_patterns()[0].evidence[0],
    "NameCandidate": lambda store, _: chained(store).pending()[0].candidates[0],
    "PendingName": lambda store, _: chained(store).pending()[0],
    "Message": lambda store, _: talking(store).handoff().messages[0],
    "Recalled": lambda store, _: talked(store).recall(ASKED),
    "RecalledExchange": lambda store, _: talked(store).recall(ASKED).exchanges[0],
    "RecalledKnowledge": lambda store, _: informed(store).recall(ASKED).knowledge[0],
    "Reflection": lambda store, _: talking(store).reflect(dry_run=True),
    "Summary": lambda store, _: talking(store).summaries()[0],
    "Task": lambda _, _folder: cerata.Task("summarize", "Shorten.", (), 500),
    "TaskReport": lambda store, _: task_report(store),
    "Thread": lambda store, _: talking(store).threads()[0],
    "Topic": lambda store, _: talking(store).topics()[0],
    "Audit": lambda store, _: store.history.audit(),
    "AuditEntry": lambda store, _: store.history.audit().entries[0],
    "Link": lambda store, _: next(iter(store.graph.links())),
    "Neighbour": lambda store, _: store.graph.neighbours("Ann")[0],
    "Omission": lambda store, _: store.recall("tea", max_tokens=30).omissions[0],
    "Period": lambda store, _: store.graph.conflicts()[0].period,
    "Position": lambda store, _: store.history.timeline(limit=1).next,
    "Proposal": lambda store, _: proposed(store).proposals()[0],
    "Probe": lambda store, _: store.history.bisect(lambda view: not len(view)).probes[0],
    "Profile": lambda _, _folder: cerata.Profile("mine", 1, {"text": 1}),
    "ProfileGain": lambda store, _: tuned(store).gains[0],
    "Reached": lambda store, _: store.graph.walk("Ann")[0],
    "Reason": lambda store, _: store.graph.why(4).supports[0],
    "Receipt": lambda store, _: store.put_frame("a"),
    "RememberedEmbedder": lambda store, _: store.embeddings.used(),
    "Flaw": lambda _, _folder: cerata.Flaw("skipped", "a line that is not JSON", 1, ("line 2",)),
    "Remembered": lambda store, folder: store.files.remember([folder / "notes.md"]),
    "RememberedFile": lambda store, folder: store.files.remember([folder / "notes.md"]).files[0],
    "ResultChange": lambda store, _: store.diff(0, query="tea").results[0],
    "Standing": lambda _, _folder: cerata.Standing.STANDS,
    "TimelineEntry": lambda store, _: store.history.timeline().entries[0],
    "TimelinePage": lambda store, _: store.history.timeline(),
    "Tuning": lambda store, _: tuned(store),
    "TurnWindow": lambda _, _folder: cerata.TurnWindow((), "Ann", "a", ("Bob: b",)),
    "ValueCount": lambda store, _: store.files.values("tag")[0],
    "Why": lambda store, _: store.graph.why(4),
}

NO_VALUES = {
    *("Environment", "EventStream", "Store", "Transaction", "View", "RowProjection", "Dynamics"),
    *("Agent", "Run", "Session", "Slot", "agent", "Block", "Extractive", "Model"),
    *("CallableEmbedder", "EndpointEmbedder", "MiniLMEmbedder", "SentenceTransformersEmbedder"),
    *("ContextEmbedder", "Embedder", "TokenEmbedder", "Reranker", "Extractor", "EnglishFacts"),
    *("conversation_memory", "load_memory", "scratchpad", "semantic_memory"),
    *("Owned", "Pack", "Role", "State", "Vectors", "plots"),
    *("__version__", "content_hash", "event", "events", "open", "query", "tuning", "upcaster"),
}
"""Public names that are no values: handles, doors to the outside, protocols, functions, and what a
pack says of itself."""

WITHOUT_JSON = frozenset(
    ("Allen", "Assertion", "Candidate", "Draft", "EmbedderIdentity", "Entity", "Event", "EventBody")
) | {
    *("FactOptions", "Layout", "OpenOptions", "Page", "PutOptions", "Ranking", "WriteOptions"),
    *("Head", "Hits", "Judgement", "MemorySpec", "Position", "Standing", "TurnWindow"),
}
"""Values that callers make, or that another value prints."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with cerata.open(tmp_path / "memory.cera", embedder=Hashing()) as opened:
        fill(opened, tmp_path)
        yield opened


def shown(value: Any) -> object:
    """Return everything that a value gives its reader."""
    plain = value.to_dict() if hasattr(value, "to_dict") else None
    extra = [getattr(value, name, None) for name in ("text", "log_id", "chain", "root", "body")]
    return plain, repr(value), str(value), extra


@pytest.mark.parametrize("name", MADE)
def test_plain_values_are_those_of_json(name: str, store: Store, tmp_path: Path) -> None:
    """A tuple inside a list was not a list in ``to_dict``, and was one in ``--json``."""
    value = MADE[name](store, tmp_path)
    if hasattr(value, "to_dict"):
        assert json.loads(json.dumps(value.to_dict())) == value.to_dict()
    else:
        assert name in WITHOUT_JSON


def test_every_public_value_is_tried() -> None:
    """A new public class joins the table, or says why it is no value."""
    errors = {name for name in cerata.__all__ if name in errors_of_the_tree()}
    assert set(cerata.__all__) - errors == set(MADE) | NO_VALUES
    assert NO_VALUES.isdisjoint(MADE)


def errors_of_the_tree() -> set[str]:
    return {
        name
        for name in cerata.__all__
        if isinstance(kind := getattr(cerata, name), type) and issubclass(kind, Exception)
    }


@pytest.mark.parametrize("name", MADE)
def test_a_value_is_what_it_was_in_another_process(name: str, store: Store, tmp_path: Path) -> None:
    """Head, Receipt, Hit and every value that reads late could not leave the process."""
    value = MADE[name](store, tmp_path)
    assert isinstance(value, getattr(cerata, name))
    # Nothing was read of it before.
    copies = [pickle.loads(pickle.dumps(value)), copy.deepcopy(value)]
    before = shown(value)
    store.close()
    for copied in copies:
        assert type(copied) is type(value)
        assert shown(copied) == before


def test_equal_heads_do_not_differ(store: Store) -> None:
    """A struct compares by identity for "!=", so equal heads were also unequal."""
    before = store.head
    assert not before != store.head  # noqa: SIM202 - the operator that failed
    store.put_frame("A note.")
    assert before != store.head


def test_a_pickled_point_names_its_state(store: Store) -> None:
    """Worker processes get a head or receipt, and read there."""
    receipt = store.put_frame("white tea")
    context = store.recall("tea")
    store.put_frame("red tea")
    for point in (receipt, receipt.head, context):
        view = store.at(pickle.loads(pickle.dumps(point)))
        assert view.basis == receipt.id
    copied = pickle.loads(pickle.dumps(receipt.head))
    assert receipt.head is not None
    assert (copied.chain, copied.root) == (receipt.head.chain, receipt.head.root)
    # A copy of the copy keeps them.
    assert copy.deepcopy(copied).root == copied.root


def test_a_head_of_a_closed_store_is_kept_without_hashes(tmp_path: Path) -> None:
    """A receipt outlives its store; only the hashes need the file."""
    with cerata.open(tmp_path / "memory.cera") as store:
        receipt = store.put_frame("tea")
    copied = pickle.loads(pickle.dumps(receipt))
    assert copied == receipt
    with pytest.raises(cerata.Closed, match="copied after its store was closed") as caught:
        _ = copied.head.chain
    assert caught.value.remedy
    with cerata.open(tmp_path / "memory.cera") as store:
        assert store.at(copied).basis == 1


def test_a_copied_hit_cannot_be_explained(store: Store) -> None:
    """The lanes' results stay with the search."""
    hit = pickle.loads(pickle.dumps(store.search("tea")[0]))
    assert store.delete(hit).added
    with pytest.raises(cerata.InvalidInput, match="which has no search"):
        store.history.explain(hit)


def test_a_copied_event_has_its_attachments(store: Store) -> None:
    """The bytes of a blob were lost without a word."""
    attachment = Attachment(hash_bytes(BLOB), len(BLOB))
    event = pickle.loads(pickle.dumps(next(store.log(5, 5))))
    assert event.attached(attachment) == BLOB
    assert event.leaf == next(store.log(5, 5)).leaf
    vectors = next(store.log(1, 1))
    assert isinstance(vectors.body, PutFrame)
    assert vectors.body.embedding is not None
    data = vectors.body.embedding.data
    assert copy.deepcopy(vectors).attached(data) == vectors.attached(data)


@pytest.mark.parametrize("name", ["store", "view", "transaction", "log"])
def test_a_handle_refuses(name: str, store: Store) -> None:
    """The error named the lock of a mutex, and no remedy."""
    with store.transaction() as transaction:
        handles = {
            "store": store,
            "view": store.history.view(),
            "transaction": transaction,
            "log": log_of(store),
        }
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(cerata.Unsupported, match="cannot be copied or pickled") as caught:
                leave(handles[name])
            assert caught.value.remedy
