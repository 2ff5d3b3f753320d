"""Events of one log in another: references remapped, each batch once, nothing that was erased."""

import base64
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

import cerata
from cerata import Conflict, Entity, InvalidInput, Store, Unsupported, agents
from cerata.agents.growth.events import Judge
from cerata.engine.events import (
    AccessFrames,
    Draft,
    EventBody,
    Gap,
    ImportBatch,
    PutFrame,
    RecallContext,
    UnknownBody,
)
from cerata.memory.interchange import remapping

from ...inside import log_of
from .exchange import bring, lines_of


def filled(store: Store) -> None:
    """Write frames, facts with evidence, links, tags, accesses and a recall."""
    note = store.put_frame("Ann drinks green tea.", tags=["a"])
    with store.transaction():
        frame = store.put_frame("Bob likes coffee in Bern.")
        store.assert_fact("Bob", "likes", "coffee", evidence=[(frame, 10, 16)])
    first = store.assert_fact(
        "Ann", "drinks", "tea", evidence=[(note, 10, 19)], options=cerata.FactOptions(because=note)
    )
    second = store.assert_fact("Ann", "likes", Entity("Bern"))
    store.graph.link(second, "depends_on", first)
    store.history.tag("noted")
    store.supersede(note, "Ann drinks black tea.")
    agents.record_access(store, note)
    store.recall("tea", record=True)
    store.delete(frame)
    store.retract_fact(second)


def other() -> Any:
    """Open a memory that has events of its own, so that no seq stays."""
    store = cerata.open(":memory:")
    store.put_frames(["mine", "mine too"])
    store.assert_fact("Me", "am", "here")
    return store


def shape(store: Store, first: int) -> list[object]:
    """Return the events from a seq on without what an import renews; seqs count from the first."""
    events = [event for event in store.log(first) if not isinstance(event.body, ImportBatch)]
    places = {event.seq: number for number, event in enumerate(events)}
    rows: list[object] = []
    for event in events:
        fields = cast("dict[str, Any]", event.to_dict()["body"])
        fields.pop("evidence", None)
        for name in {"basis", "at"} & fields.keys():
            # A point: the events before it count, and a batch there has one more.
            fields[name] = sum(seq <= fields[name] for seq in places)
        assert isinstance(event.body, EventBody)
        for name in event.body.references.keys() & fields.keys():
            value = cast("int | list[int] | None", fields[name])
            fields[name] = (
                [places[seq] for seq in value]
                if isinstance(value, list)
                else value and places[value]
            )
        cause = event.causation
        rows.append((event.type, event.scope, fields, None if cause is None else places[cause]))
    return rows


def test_references_are_remapped() -> None:
    with cerata.open(":memory:") as store, other() as target:
        filled(store)
        head = target.head.seq
        result = bring(target, lines_of(store))
        assert (result.added, result.known, result.is_copy) == (store.head.seq, 0, False)
        assert shape(target, head + 1) == shape(store, 1)
        assert {frame.text for frame in target.frames()} == {
            "mine",
            "mine too",
            "Ann drinks black tea.",
        }
        assert [fact.object for fact in target.facts("Ann")] == ["tea"]
        assert target.verify().ok
        salts = {event.salt for event in store.log()} & {event.salt for event in target.log()}
        assert not salts


def test_quotes_are_computed_from_the_frames() -> None:
    """A quote is keyed by the salt of its frame, which is new."""
    with cerata.open(":memory:") as store, other() as target:
        filled(store)
        bring(target, lines_of(store))
        facts = [fact for fact in target.facts() if fact.evidence]
        assert len(facts) == 2
        for fact in facts:
            [evidence] = target.graph.evidence(fact)
            assert evidence.is_intact is True


def test_a_repeated_import_adds_nothing_and_goes_on() -> None:
    with cerata.open(":memory:") as store, other() as target:
        filled(store)
        early = lines_of(store)
        bring(target, early)
        head = target.head.seq
        result = bring(target, early)
        assert (result.added, result.known, result.head) == (0, store.head.seq, head)
        agents.record_access(store, 1)
        store.put_frame("later")
        result = bring(target, lines_of(store))
        assert (result.added, result.head) == (2, head + 4)
        used = [event.body.frames for event in target.log() if isinstance(event.body, AccessFrames)]
        assert used[-1] == used[0]


def test_an_import_that_was_cut_goes_on() -> None:
    with cerata.open(":memory:") as store:
        filled(store)
        lines = lines_of(store)
    with other() as whole:
        bring(whole, lines)
        expected = shape(whole, 4)
    for cut in range(lines.index(b"\n") + 1, len(lines), 517):
        with other() as target:
            assert not bring(target, lines[:cut]).is_whole
            assert bring(target, lines).is_whole
            assert shape(target, 4) == expected


def test_a_full_batch_becomes_two() -> None:
    """The event in front of a batch takes a place, and a batch has at most 10,000 events."""
    with cerata.open(":memory:") as store, other() as target:
        store.append(*(PutFrame(text=f"note {number}") for number in range(10_000)))
        head = target.head.seq
        lines = lines_of(store)
        assert bring(target, lines).added == 10_000
        ends = [
            event.header.last_seq - head for event in target.log() if event.type == "importBatch"
        ]
        assert ends == [5_001, 10_002]
        assert bring(target, lines).known == 10_000


def test_unknown_types_are_refused_and_their_batch_with_them() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("before")
        body = UnknownBody(kind="spending", kind_version=1, data=b"\x80")
        log_of(store).append([Draft(PutFrame(text="with it")), Draft(body)])
        with pytest.raises(Unsupported, match="spending") as error:
            bring(target, lines_of(store))
        assert error.value.where == "the batch that ends in line 4"
        assert {frame.text for frame in target.frames()} == {"mine", "mine too", "before"}
        with cerata.open(":memory:") as copy:
            assert bring(copy, lines_of(store)).added == 3


def test_statements_about_their_log_are_left_out_and_counted() -> None:
    with cerata.open(":memory:") as store, store.upkeep.fork() as fork, other() as target:
        fork.put_frame("a")
        log = log_of(fork)
        log.append([Draft(Gap(reason="lost")), Draft(ImportBatch(dialect="cerata-facts"))])
        for kind in ("erase", "signHead", "putKey"):
            log.append([Draft(UnknownBody(kind=kind, kind_version=1, data=b"\x80"))])
        verdict = Judge(proposal=2, verdict="reject", content=b"c" * 32)
        log.append([Draft(verdict, actor="anna")])
        result = bring(target, lines_of(fork))
        assert result.skipped == dict.fromkeys(sorted(remapping._skipped()), 1)
        assert result.added == 1


def erased(lines: bytes, store: Store, *seqs: int) -> bytes:
    """Return lines in which some events are erased."""
    rows = [json.loads(row) for row in lines.splitlines()]
    for row in rows:
        if row["type"] == "event" and row["header"][0] in seqs:
            for name in ("salt", "payload", "scope", "body"):
                row.pop(name, None)
            commitment = next(store.log(row["header"][0], row["header"][0])).commitment
            row["commitment"] = base64.b64encode(commitment).decode()
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_erased_events_are_left_out_with_those_that_need_them() -> None:
    with cerata.open(":memory:") as store, other() as target:
        kept, gone = store.put_frames(["kept", "gone"]).ids
        store.supersede(gone, "newer")
        agents.record_access(store, kept)
        store.append(AccessFrames(frames=(gone,)), AccessFrames(frames=(gone, kept)))
        store.assert_fact("a", "b", "c", evidence=[gone, kept])
        result = bring(target, erased(lines_of(store), store, gone))
        assert result.skipped == {"access": 1, "putFrame": 1, "supersedeFrame": 1}
        [fact] = target.facts("a")
        assert [target.frame(place.frame).text for place in fact.evidence] == ["kept"]
        assert agents.access(target, fact.evidence[0].frame).used == 2
        assert target.verify().ok


def test_content_that_is_erased_here_is_not_imported_again() -> None:
    with cerata.open(":memory:") as store, other() as target:
        gone = store.put_frames(["kept", "gone"]).ids[1]
        lines = lines_of(store)
        bring(target, lines)
        frames = {frame.text: frame.id for frame in target.frames()}
        newer = erased(lines_of(target), target, frames["gone"])
        with cerata.open(":memory:") as copy:
            bring(copy, newer)
            assert bring(copy, lines).added == 0
            assert "gone" not in {frame.text for frame in copy.frames()}
        # Erased in the export since its first import: the seqs of its batch stay the same.
        store.put_frame("later", options=cerata.PutOptions(parent=1))
        result = bring(target, erased(lines_of(store), store, gone))
        assert (result.added, result.head) == (1, target.head.seq)
        [later] = [frame for frame in target.frames() if frame.text == "later"]
        assert later.parent == frames["kept"]


def test_a_batch_of_which_other_events_were_erased_is_refused() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frames(["a", "b", "c"])
        lines = lines_of(store)
        bring(target, erased(lines, store, 1))
        with pytest.raises(Conflict, match="other events of it were erased"):
            bring(target, erased(lines, store, 1, 2))


# --- scopes --------------------------------------------------------------------------------------


def test_tenants_and_scopes_stay() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("ann's", options=cerata.PutOptions(scope={"tenant": "ann", "user": "u"}))
        store.put_frame("bob's", options=cerata.PutOptions(scope={"tenant": "bob"}))
        bring(target, lines_of(store))
        assert [f.text for f in target.scoped({"tenant": "ann"}).frames()] == ["ann's"]
        assert [f.text for f in target.scoped({"tenant": "bob"}).frames()] == ["bob's"]


@pytest.mark.parametrize("is_copy", [False, True])
def test_scopes_must_lie_within_that_of_the_store(is_copy: bool) -> None:
    with cerata.open(":memory:") as store, cerata.open(":memory:") as target:
        if not is_copy:
            target.put_frame("mine")
        store.put_frame("ann's", options=cerata.PutOptions(scope={"tenant": "ann", "user": "u"}))
        inside = lines_of(store)
        store.put_frame("bob's", options=cerata.PutOptions(scope={"tenant": "bob"}))
        outside = lines_of(store)
        ann = target.scoped({"tenant": "ann"})
        with pytest.raises(InvalidInput, match="not within the scope"):
            bring(ann, outside)
        # The batch before, which is within the scope, stays.
        head = 1 if is_copy else 3
        assert target.head.seq == head
        assert bring(ann, inside).known == 1
        assert [frame.text for frame in ann.frames()] == ["ann's"]


def test_a_scope_and_no_scope_import_a_batch_once() -> None:
    """Its key belongs to the store's tenant, so both must look in the other's."""
    with cerata.open(":memory:") as store:
        store.put_frame("ann's", options=cerata.PutOptions(scope={"tenant": "ann"}))
        lines = lines_of(store)
    for first, second in ((True, False), (False, True)):
        with other() as target:
            for is_scoped in (first, second):
                bring(target.scoped({"tenant": "ann"}) if is_scoped else target, lines)
            assert len(list(target.scoped({"tenant": "ann"}).frames())) == 1


def test_a_default_scope_is_not_widened_to_the_store() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("of the default tenant")
        with pytest.raises(InvalidInput, match="not within the scope"):
            bring(target.scoped({"tenant": "ann"}), lines_of(store))


# --- single fields -------------------------------------------------------------------------------


def test_a_recall_cannot_be_compared_there() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("tea")
        recalled = store.recall("tea", record=True)
        assert store.history.rerun(recalled).outcome == "same"
        bring(target, lines_of(store))
        [event] = target.log(type=RecallContext)
        old = next(store.log(type=RecallContext))
        assert isinstance(event.body, RecallContext)
        assert isinstance(old.body, RecallContext)
        assert event.body.context == old.body.context
        rerun = target.history.rerun(event.seq)
        assert rerun.outcome == "unknown"
        assert "imported from another log" in str(rerun.reason)


def test_a_rule_of_the_log_refuses_a_batch() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("a")
        store.history.tag("v1")
        target.history.tag("v1")
        with pytest.raises(Conflict, match="v1") as error:
            bring(target, lines_of(store))
        assert error.value.where is not None
        assert error.value.where.startswith("the batch that ends in line 3")


def test_a_tag_of_nothing_that_was_imported_is_left_out() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame("a")
        store.put_frame("b")
        store.history.tag("first", at=1)
        store.history.tag("second", at=2)
        result = bring(target, lines_of(store, first=2))
        assert result.skipped == {"putTag": 1}
        assert set(target.history.tags()) == {"second"}


def test_an_export_from_the_middle_lacks_what_came_before() -> None:
    with cerata.open(":memory:") as store, other() as target:
        note = store.put_frame("a")
        store.put_frame("b")
        store.supersede(note, "c")
        result = bring(target, lines_of(store, first=2))
        assert result.skipped == {"supersedeFrame": 1}
        assert {frame.text for frame in target.frames()} == {"mine", "mine too", "b", "c"}


def test_scores_of_reranked_frames_stay_with_their_frames() -> None:
    kept: dict[int, int] = {1: 11, 3: 13}
    moved: Callable[[int], int] = lambda seq: kept.get(seq, 0)  # noqa: E731
    body = RecallContext(
        query="q",
        basis=3,
        tokenizer="words",
        profile="default",
        profile_version=1,
        max_tokens=1,
        entry_tokens=1,
        form="text",
        context=bytes(32),
        reranked=(1, 2, 3),
        reranked_scores=bytes(range(24)),
    )
    without = remapping._without_missing(body, moved)
    assert isinstance(without, RecallContext)
    assert without.reranked == (1, 3)
    assert without.reranked_scores == bytes(range(8)) + bytes(range(16, 24))


def test_attachments_come_along() -> None:
    with cerata.open(":memory:") as store, other() as target:
        store.put_frame(b"\x00 bytes", options=cerata.PutOptions(search_text="bytes"))
        bring(target, lines_of(store))
        [frame] = [frame for frame in target.frames() if frame.search_text == "bytes"]
        assert target.files.content(frame.id) == b"\x00 bytes"
