"""Who writes, and why: the store's actor, that of a transaction, and that of a call."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

import cerata
from cerata import agents
from cerata.engine.limits import ACTOR_SIZE_MAX, REASON_SIZE_MAX
from cerata.memory.embeddings.commands import EmbeddingCommands
from cerata.memory.facts.bulk_commands import FactExtraction, FactImport
from cerata.memory.facts.commands import FactCommands, FactGraphCommands
from cerata.memory.frames.commands import FrameCommands
from cerata.memory.frames.version_commands import RestoreCommands, SweepCommands, VersionCommands
from cerata.memory.ingest.commands import FileCommands, IngestCommands
from cerata.memory.links.commands import LinkCommands
from cerata.memory.values.options import WriteOptions

WITH_REASON = {
    *("append", "correct_fact", "delete", "retract_fact", "retract_many", "supersede"),
    *("restore", "transaction", "unlink", "unmerge", "unsplit", "update"),
}
GROUPS = (
    *(FrameCommands, FactCommands, FactGraphCommands, FactExtraction, FactImport),
    *(LinkCommands, EmbeddingCommands, IngestCommands, FileCommands),
    *(VersionCommands, RestoreCommands, SweepCommands),
)


def authors(store: cerata.Store) -> list[tuple[str | None, str | None]]:
    return [(event.actor, event.reason) for event in store.log()]


def test_every_writing_call_takes_an_actor_and_those_that_end_something_a_reason() -> None:
    """A new command without them could not be blamed."""
    commands: dict[str, Callable[..., object]] = {
        name: value
        for group in GROUPS
        for name, value in vars(group).items()
        if not name.startswith("_") and inspect.isfunction(value)
    }
    commands |= {"tag": cerata.Store.history.tag, "transaction": cerata.Store.transaction}
    for name, command in commands.items():
        parameters = inspect.signature(command).parameters
        options = parameters.get("options")
        has_actor = options is not None and isinstance(options.default, WriteOptions)
        assert has_actor or "actor" in parameters, name
        assert ("reason" in parameters) == (name in WITH_REASON), name


def test_a_draft_a_call_a_transaction_and_the_store_name_the_actor_in_this_order() -> None:
    """Each place is only asked if none before it has an actor; the same for the reason."""
    with cerata.open(":memory:", actor="store") as store:
        body = cerata.events.PutFrame(text="a")
        store.append(body)
        store.append(body, actor="call")
        store.append(cerata.Draft(body, actor="draft", reason="mine"), actor="call", reason="why")
        with store.transaction(actor="block", reason="tidying"):
            store.put_frame("b")
            first = store.put_frame("c", options=cerata.PutOptions(actor="call"))
            store.delete(first, reason="twice")
            store.append(cerata.Draft(body, actor="draft"))
        assert authors(store) == [
            ("store", None),
            ("call", None),
            ("draft", "mine"),
            ("block", "tidying"),
            ("call", "tidying"),
            ("block", "twice"),
            ("draft", "tidying"),
        ]
        assert store.actor == "store"
        assert store.verify().ok


def test_every_event_of_every_call_has_the_actor_of_the_call(tmp_path: Path) -> None:
    """Calls that write several batches, or in another module, lost it once each."""
    (tmp_path / "note.md").write_text("# Note\n\nWax keeps.")
    with cerata.open(":memory:", embedder=None, actor="store") as store:
        lines: list[str] = []
        with cerata.open(":memory:") as source:
            source.assert_fact("Ann", "likes", "tea")
            lines += source.interchange.export_facts()
        frame = store.put_frame("Bob lives in Kiel.", options=cerata.PutOptions(actor="anna"))
        store.put_frames(["one", "two"], options=cerata.PutOptions(actor="anna"))
        store.remember("word " * 3_000, options=cerata.PutOptions(actor="anna"))
        store.files.remember([tmp_path / "note.md"], options=cerata.PutOptions(actor="anna"))
        newer = store.supersede(frame, "Bob lives in Rome.", actor="anna", reason="moved")
        agents.record_access(store, newer, actor="anna")
        store.recall("Bob", record=cerata.WriteOptions(actor="anna"))
        store.graph.extract([newer], actor="anna")
        store.interchange.import_facts(lines, actor="anna")
        fact = store.assert_fact(
            "Ann", "lives in", "Oslo", options=cerata.FactOptions(actor="anna")
        )
        fact = store.correct_fact(fact, object="Bergen", actor="anna", reason="wrong")
        link = store.graph.link(fact, "supports", store.facts("Ann")[0], actor="anna")
        store.graph.unlink(link, actor="anna", reason="unrelated")
        merge = store.graph.merge("Ann", "Bob", actor="anna")
        store.graph.unmerge(merge, actor="anna", reason="two people")
        split = store.graph.split("Ann", "Anna", [fact], actor="anna")
        store.graph.unsplit(split, actor="anna", reason="one person")
        store.graph.declare("lives in", functional=True, actor="anna")
        store.graph.name("Ann", kind="person", actor="anna")
        store.retract_fact(fact, actor="anna", reason="secret")
        store.delete(newer, actor="anna", reason="old")
        store.history.tag("end", actor="anna")
        kinds = {event.type: set[str | None]() for event in store.log()}
        for event in store.log():
            assert event.actor == "anna", event.type
            kinds[event.type].add(event.reason)
        assert kinds["supersedeFrame"] == {"moved"}
        assert kinds["retractFact"] == {"wrong", "secret"}
        assert kinds["unlinkFacts"] == {"unrelated"}
        assert kinds["deleteFrame"] == {"old"}


def test_embedded_frames_have_the_actor_of_the_call() -> None:
    """The pass over frames without a vector writes batch by batch."""
    maker = cerata.CallableEmbedder(
        lambda texts: [[1.0, 0.0]] * len(texts), name="s", revision="1", dimension=2
    )
    with cerata.open(":memory:", embedder=maker) as store:
        store.append(cerata.events.PutFrame(text="a"))
        store.embeddings.fill(actor="anna")
        assert authors(store)[-1] == ("anna", None)


def test_a_new_version_inherits_neither_actor_nor_reason() -> None:
    """As metadata, one person's name was copied onto the change of another."""
    with cerata.open(":memory:") as store:
        old = store.put_frame(
            "a", title="t", metadata={"n": 1}, options=cerata.PutOptions(actor="anna")
        )
        store.supersede(old, "b")
        assert authors(store) == [("anna", None), (None, None), (None, None)]


def test_a_call_under_a_key_is_the_same_call_whoever_repeats_it() -> None:
    """Another worker that takes over a request must not get an IdempotencyConflict."""
    with cerata.open(":memory:") as store:
        for actor in ("one", "two", None):
            assert store.put_frame("a", options=cerata.PutOptions(key="k", actor=actor)).id == 1
            with store.transaction(key="block", actor=actor, reason=actor) as tx:
                store.delete(store.put_frame("b"), actor=actor, reason=actor)
            assert tx.receipt.seqs == (2, 3)
        assert authors(store) == [("one", None), ("one", "one"), ("one", "one")]


def test_an_actor_or_reason_that_cannot_be_stored_is_refused_and_nothing_is_written() -> None:
    """Also by a call that has nothing to write, and before an embedder runs."""

    def embed(texts: object) -> list[list[float]]:
        raise AssertionError("the embedder ran")

    maker = cerata.CallableEmbedder(embed, name="s", revision="1", dimension=2)
    with cerata.open(":memory:", embedder=maker) as store:
        fact = store.assert_fact("a", "is", 1)
        frame = store.append(cerata.events.PutFrame(text="a"))
        link = store.graph.link(fact, "derived_from", frame)
        head = store.head.seq
        for actor in ("", 5, "é" * (ACTOR_SIZE_MAX // 2 + 1), "\ud800"):
            with pytest.raises(cerata.InvalidInput, match="actor"):
                store.put_frame("b", options=cerata.PutOptions(actor=actor))  # type: ignore[arg-type]
            with pytest.raises(cerata.InvalidInput, match="actor"):
                store.graph.link(fact, "derived_from", frame, actor=actor)  # type: ignore[arg-type]
            with pytest.raises(cerata.InvalidInput, match="actor"):
                cerata.open(":memory:", actor=actor)  # type: ignore[arg-type]
        for reason in ("", b"x", "x" * (REASON_SIZE_MAX + 1)):
            with pytest.raises(cerata.InvalidInput, match="reason"):
                store.graph.unlink(link, reason=reason)  # type: ignore[arg-type]
            with (
                pytest.raises(cerata.InvalidInput, match="reason"),
                store.transaction(reason=reason),  # type: ignore[arg-type]
            ):
                pass
        assert store.head.seq == head
