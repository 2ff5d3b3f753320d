"""Compaction and retention of a memory: the same answers, and what is gone says so."""

from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cerata
from benchmarks.compact_bench import text_of
from cerata import (
    Conflict,
    Draft,
    HistoryPruned,
    InvalidInput,
    NotFound,
    ReadOnly,
    Store,
    Unsupported,
)
from cerata.engine.copies.compact import COPY_SUFFIX
from cerata.engine.integrity import hash_bytes
from cerata.events import Attachment, DeleteFrame, Embedding, Erase, PutEmbedding
from cerata.memory import retention
from cerata.memory.batch.writer import session_of
from cerata.memory.compaction import DEAD_BYTES
from cerata.memory.search.recall_rerun import RecallSettings, rerun_recall
from cerata.packs.experiments.recall_comparison import compare_recalls
from cerata.replay.checkpoint import COMPRESSION_LEVEL
from cerata.replay.fold import replay

from ..engine.words import PATH, Disk
from ..inside import log_of
from ..replay.answers import answers

WORD = "kumquat"


def opened(disk: Disk, **options: object) -> Store:
    return cerata.open(PATH, environment=disk.environment, **options)  # type: ignore[arg-type]


def embed(store: Store, frame: int, *values: float) -> None:
    """Give a frame a vector by a later event."""
    data = np.array(values, "<f4").tobytes()
    body = PutEmbedding(
        frame=frame,
        embedding=Embedding("late", "f4", len(values), Attachment(hash_bytes(data), len(data))),
    )
    store.append(Draft(body, attachments=(data,)))


def lived(store: Store, seed: int, events: int = 120) -> list[int]:
    """Give a memory a life of puts, vectors, new versions, deletes and facts; return its points."""
    random = Random(seed)
    points: list[int] = []
    current: list[int] = []
    for number in range(events):
        match random.randrange(6) if current else 0:
            case 0 | 1:
                vector = np.array([random.random(), random.random()]) if number % 3 else None
                text = f"note {number} about {random.choice('abcdef')} and {WORD}"
                space = (
                    {} if vector is None else {"vectors": cerata.Vectors(dense=vector, space="toy")}
                )
                current.append(store.put_frame(text, tags=["red"], **space).ids[0])  # type: ignore[arg-type]
            case 2:
                frame = random.choice(current)
                embed(store, frame, random.random(), 1.0)
            case 3:
                frame = current.pop(random.randrange(len(current)))
                current.append(store.supersede(frame, f"version {number}").ids[0])
            case 4:
                store.delete(current.pop(random.randrange(len(current))), reason="old")
            case _:
                frame = random.choice(current)
                store.assert_fact("ann", f"likes{number}", "tea", evidence=[frame])
        points.append(store.head.seq)
    return points


def said(store: Store, n: int) -> str:
    """Return everything that a view says, from the present state and from the events alone."""
    session = session_of(store)
    kept = answers(session.log, session.fold, n, step=3)
    assert answers(session.log, replay(session.log, n), n, step=3) == kept
    return kept


@pytest.mark.slow("compares every answer at every point")
@pytest.mark.usefixtures("any_size")
def test_every_answer_at_every_point_is_the_same(seed: int) -> None:
    """Compaction changes bytes, never a word; digests, ids and hashes stay."""
    disk = Disk()
    with opened(disk) as store, opened(disk) as other:
        points = lived(store, seed, 60)[::10]
        before = [said(store, point) for point in points]
        head, digests = store.head.text, store.stream.digests()
        result = store.upkeep.compact()
        assert result.done
        assert (result.dropped, result.horizon) == (0, None)
        other.stream.refresh()
        assert [said(store, point) for point in points] == before
        assert [said(other, point) for point in points] == before
        assert (store.head.text, store.stream.digests(), other.stream.digests()) == (
            head,
            digests,
            digests,
        )
        assert store.verify().log.problems == ()
    with opened(disk) as again:
        assert [said(again, point) for point in points] == before


def test_answers_from_the_horizon_on_are_the_same(seed: int) -> None:
    """Retention gives up what had died; searches, facts and timelines do not notice."""
    disk = Disk()
    with opened(disk) as store, opened(disk) as other:
        points = lived(store, seed)
        horizon = points[len(points) * 2 // 3]

        def current(view: cerata.View) -> object:
            hits = view.search("note about a b c version", k=50)
            near = view.search(
                np.array([1.0, 0.2]), mode="vector", k=20, vectors=cerata.Vectors(space="toy")
            )
            return (
                [frame.to_dict() for frame in view.frames()],
                [(hit.id, hit.score) for hit in hits],
                [(hit.id, hit.score) for hit in near],
                [str(fact) for fact in view.facts()],
                view.recall("note about a", max_tokens=400).text,
            )

        after = [point for point in points if point >= horizon]
        before = [current(store.at(point)) for point in after]
        result = store.upkeep.compact(horizon=horizon)
        assert result.dropped > 5
        assert [current(store.at(point)) for point in after] == before
        assert [current(other.at(point)) for point in after] == before
        assert store.stream.digests() == store.stream.digests(replay=True)
        report = store.verify()
        assert (report.log.problems, report.divergences) == ((), ())
        for point in points:
            if point < horizon:
                with pytest.raises(HistoryPruned):
                    store.at(point)
    with opened(disk) as again:
        assert [current(again.at(point)) for point in after] == before


@pytest.mark.parametrize("conversation", ["track", "session", "parent", "session_id"])
def test_a_new_version_of_a_turn_keeps_its_place_without_the_old_content(
    conversation: str,
) -> None:
    """The erased version has lost its role and its conversation, by which it had the place."""
    disk = Disk()
    with opened(disk) as whole:
        store = whole.scoped({"session_id": "1"}) if conversation == "session_id" else whole
        fields: dict[str, Any] = {}
        if conversation == "track":
            fields = {"options": cerata.PutOptions(track="chat")}
        elif conversation == "session":
            fields = {"metadata": {"session": "chat"}}
        elif conversation == "parent":
            fields = {"options": cerata.PutOptions(parent=store.put_frame("A talk."))}
        store.put_frame("Where is the ferry?", role="Mina", **fields)
        answer = store.put_frame("Behind the mill.", role="Olaf", **fields)
        for number in range(8):
            store.put_frame(f"Small talk {number}.", role="Olaf", **fields)
        newer = store.supersede(answer, "Behind the old mill.")
        store.supersede(newer, "Behind the new mill.")

        def order() -> object:
            hits = store.search("ferry")
            context = store.recall("ferry").items
            return [(hit.id, hit.score) for hit in hits], [item.id for item in context]

        before = order()
        newest = [frame.text for frame in store.history.last(9)]
        whole.upkeep.compact(horizon="HEAD")
        assert order() == before
        assert [frame.text for frame in store.history.last(9)] == newest
    with opened(disk) as whole:
        store = whole.scoped({"session_id": "1"}) if conversation == "session_id" else whole
        assert order() == before
        with store.transaction():
            store.put_frame("Apart.", title="a draft")
            assert [frame.text for frame in store.history.last(10)] == [*newest, "Apart."]


def test_frames_below_a_closed_frame_stay_closed_without_their_contents() -> None:
    """The parent, along with which they were closed, was in the contents."""
    disk = Disk()
    with opened(disk) as store:
        passages = "\n\n".join(f"Passage {number} of the manual. " * 60 for number in range(4))
        manual = store.remember(passages, title="Manual")
        folder = store.put_frame("A folder.")
        note = store.put_frame("A note.", options=cerata.PutOptions(parent=folder))
        store.put_frame("Below the note.", options=cerata.PutOptions(parent=note))
        kept = store.put_frame(
            "Where is the ferry?", role="Mina", options=cerata.PutOptions(track="chat")
        )
        store.delete(manual.id)
        store.delete(folder)
        horizon = store.head.seq
        store.put_frame("Later.")

        def current(n: int) -> object:
            view = store.at(n)
            return (
                [(frame.id, frame.kind) for frame in view.frames()],
                view.count()[0],
                view.search("ferry", profile=None)[0].score,
                view.recall("what is it?").profile,
                [item.id for item in view.recall("what is it?").items],
            )

        points = range(horizon, store.head.seq + 1)
        before = [current(n) for n in points]
        store.upkeep.compact(horizon=horizon)
        assert [current(n) for n in points] == before
        [chunk, *_] = (event.seq for event in store.log(manual.id + 1))
        frame = store.frame(chunk)
        assert (frame.kind, frame.active, frame.closed) == ("erased", False, None)
        assert store.frame(kept).active
        with pytest.raises(Conflict, match="was closed") as caught:
            store.append(DeleteFrame(frame=chunk))
        assert caught.value.where is None
        assert store.verify().ok
    with opened(disk) as store:
        assert [current(n) for n in points] == before


def retired(disk: Disk) -> Store:
    """Return a memory whose first frame was replaced, whose third was deleted, and a horizon."""
    store = opened(disk)
    first = store.put_frame(
        f"first {WORD}", uri="a", vectors=cerata.Vectors(dense=np.array([1.0, 0.0]), space="toy")
    )
    store.put_frame("second stays")
    third = store.put_frame(f"third {WORD}")
    embed(store, third.ids[0], 0.0, 1.0)
    store.supersede(first.ids[0], "first, new version")
    store.delete(third.ids[0])
    return store


def test_what_is_gone_says_so_and_what_remains() -> None:
    """Its id, its place in the log, its closing and its hashes can be read."""
    disk = Disk()
    with retired(disk) as store:
        head = store.head
        leaves = [event.leaf for event in store.log()]
        result = store.upkeep.compact(horizon="HEAD")
        assert (result.dropped, result.horizon) == (3, 7)
        assert WORD.encode() not in disk.image()
        frame = store.frame(1)
        assert (frame.kind, frame.text, frame.active, frame.superseded_by) == (
            "erased",
            "",
            False,
            5,
        )
        assert list(store.frame(5).supersedes) == [1]
        with pytest.raises(HistoryPruned, match="content of frame 3"):
            store.files.content(3)
        with pytest.raises(HistoryPruned, match="content of frame 3"):
            store.history.restore(3)
        with pytest.raises(HistoryPruned, match="event 7"):
            store.at(head.seq - 1)
        assert [event.leaf for event in store.log()][:7] == leaves
        (erase,) = [event.body for event in store.log() if isinstance(event.body, Erase)]
        assert erase == Erase(targets=((1, 1), (3, 2)), reason="retention", horizon=7)
        assert not store.search(WORD, mode="text", where=cerata.Filter(include_superseded=True))


def test_frames_that_are_current_at_a_tag_are_kept() -> None:
    """The tagged view answers as before; its neighbours are gone."""
    disk = Disk()
    with retired(disk) as store:
        store.history.tag("release", 4)
        before = [frame.to_dict() for frame in store.at("release").frames()]
        store.put_frame("fourth")
        dead = store.put_frame("fifth")
        store.delete(dead.ids[0])
        result = store.upkeep.compact(horizon="HEAD")
        assert result.dropped == 1
        assert [frame.to_dict() for frame in store.at("release").frames()] == before
        assert len(store.at(4).search(WORD)) == 2
        for point in (3, 5, 7):
            with pytest.raises(HistoryPruned, match="1 tagged point"):
                store.at(point)
        # A later horizon does not give up what the tag keeps.
        assert store.upkeep.compact(horizon="HEAD").dropped == 0
        assert store.at(4).count() == (3, 0)


def test_a_tag_that_comes_during_the_copy_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process tags a point whose frames the copy has left out already."""
    disk = Disk()
    with retired(disk) as store, opened(disk) as other:
        save_in, tags = retention.save_in, iter(["late"])

        def save(*given: Any) -> None:
            save_in(*given)
            for name in tags:
                other.history.tag(name, 4)

        monkeypatch.setattr(retention, "save_in", save)
        before = [frame.to_dict() for frame in store.at(4).frames()]
        assert store.upkeep.compact(horizon="HEAD", dry_run=True).dropped == 3
        assert store.upkeep.compact(horizon="HEAD").dropped == 0
        assert [frame.to_dict() for frame in store.at("late").frames()] == before
        assert [frame.to_dict() for frame in other.at("late").frames()] == before


def test_a_tag_cannot_name_a_point_that_is_gone() -> None:
    """A tag promises that its view can be read."""
    disk = Disk()
    with retired(disk) as store:
        store.upkeep.compact(horizon="HEAD")
        with pytest.raises(HistoryPruned):
            store.history.tag("too late", 3)


def test_a_store_with_a_scope_does_not_see_the_pruned_events() -> None:
    """Their scope is gone with the contents, so no scope admits them."""
    disk = Disk()
    with opened(disk) as store:
        mine = store.put_frame("mine", options=cerata.PutOptions(scope={"tenant": "acme"}))
        other = store.put_frame("other", options=cerata.PutOptions(scope={"tenant": "zoo"}))
        store.delete(mine.ids[0])
        store.delete(other.ids[0])
        store.upkeep.compact(horizon="HEAD")
        kinds = [event.type for event in store.log()]
        assert kinds == ["putFrame", "putFrame", "deleteFrame", "deleteFrame", "erase", "erase"]
    with opened(disk, scope={"tenant": "acme"}) as acme:
        assert [event.seq for event in acme.log()] == [5]
        with pytest.raises(NotFound):
            acme.frame(1)
        with pytest.raises(InvalidInput, match="scope"):
            acme.upkeep.compact()
        with pytest.raises(InvalidInput, match="scope"):
            acme.upkeep.maintain()


def test_a_process_that_had_folded_the_contents_forgets_them() -> None:
    """It neither answers with pruned words nor writes them back with its next checkpoint."""
    disk = Disk()
    with retired(disk) as store, opened(disk) as other:
        other.history.tag("now")
        view = other.history.view()
        assert other.search(WORD, mode="text", where=cerata.Filter(include_superseded=True))
        assert WORD in view.frame(1).text
        store.upkeep.compact(horizon="HEAD")
        other.checkpoint()
        other.put_frame("more")
        assert other.frame(1).text == ""
        assert other.stream.digests() == other.stream.digests(replay=True)
    assert WORD.encode() not in disk.image()


def test_an_old_horizon_stays_when_a_later_compaction_has_an_earlier_one() -> None:
    """Points that are gone never come back."""
    disk = Disk()
    with retired(disk) as store:
        store.upkeep.compact(horizon=7)
        dead = store.put_frame("again")
        store.delete(dead.ids[0])
        assert store.upkeep.compact(horizon=8).dropped == 0
        with pytest.raises(HistoryPruned):
            store.at(6)
        store.upkeep.compact(horizon="HEAD")
        with pytest.raises(HistoryPruned):
            store.at(8)


def test_a_view_from_before_the_horizon_says_so_once_the_contents_are_gone() -> None:
    """It showed frames with an empty text, and a search without them."""
    disk = Disk()
    with opened(disk) as store, opened(disk) as other:
        old = store.put_frame(f"in Rome, {WORD}")
        used, unused = store.history.view(), store.at("HEAD")
        assert [frame.text for frame in used.frames()] == [f"in Rome, {WORD}"]
        store.supersede(old, "in Paris")
        other.upkeep.compact(horizon="HEAD")
        store.put_frame("later")
        assert {frame.text for frame in store.frames()} == {"in Paris", "later"}
        for view in (used, unused):
            for call in (view.frames, lambda view=view: [hit.text for hit in view.search(WORD)]):
                with pytest.raises(HistoryPruned):
                    list(call())


def test_reads_of_the_log_need_no_contents() -> None:
    """A consumer that was late could not continue at its position."""
    disk = Disk()
    with retired(disk) as store:
        end = store.head.seq
        store.upkeep.compact(horizon="HEAD")
        with pytest.raises(HistoryPruned):
            store.at(2)
        with store.stream.follow(2, timeout=0) as stream:
            assert [event.seq for event in stream] == list(range(3, store.head.seq + 1))
        assert store.interchange.export_events(BytesIO(), at=end).last == end
        assert store.upkeep.compact(horizon=2).dropped == 0
        store.backup("copy.cera", through=end)
        with cerata.open("copy.cera", environment=disk.environment) as copy:
            assert copy.head.seq == end
            with pytest.raises(HistoryPruned):
                copy.at(2)


def test_a_fork_of_a_tagged_point_has_only_that_point() -> None:
    """The fork ends before the event that names the horizon, and found none."""
    disk = Disk()
    with opened(disk) as store:
        store.put_frame("first")
        old = store.put_frame("in Rome")
        store.history.tag("then", "HEAD")
        store.supersede(old, "in Paris")
        gone = store.put_frame("in Oslo")
        store.delete(gone)
        assert store.upkeep.compact(horizon="HEAD").dropped == 1
        with store.upkeep.fork("then") as fork:
            assert [frame.text for frame in fork.frames()] == ["in Rome", "first"]
            assert [frame.text for frame in fork.at(2).frames()] == ["in Rome", "first"]
            with pytest.raises(HistoryPruned):
                fork.at(1)
            fork.delete(old)
            fork.put_frame("more")
            assert [frame.text for frame in fork.at(2).frames()] == ["in Rome", "first"]
            assert fork.verify().ok


def test_recalls_from_before_the_horizon_are_not_asked_again() -> None:
    disk = Disk()
    with opened(disk) as store:
        old = store.put_frame(f"in Rome, {WORD}")
        store.put_frame(f"in Bern, {WORD}")
        recall = store.recall("Bern", max_tokens=100, record=True)
        store.supersede(old, "in Paris")
        store.upkeep.compact(horizon="HEAD")
        seq = next(event.seq for event in store.log(type="recall"))
        rerun = rerun_recall(store, seq)
        assert rerun.outcome == "unknown"
        assert rerun.reason == "retention gave up contents of the state that it asked"
        assert recall.basis < store.head.seq
        comparison = compare_recalls(store, RecallSettings())
        assert (len(comparison.recalls), comparison.skipped) == (0, 1)


def test_facts_keep_their_evidence_by_id() -> None:
    """The frame that a fact quotes may be gone; the fact and its validity stay."""
    disk = Disk()
    with opened(disk) as store:
        frame = store.put_frame(f"Ann hides the {WORD}.")
        store.assert_fact("ann", "hides", "fruit", evidence=[(frame.ids[0], 14, 21)])
        store.delete(frame.ids[0])
        store.upkeep.compact(horizon="HEAD")
        (fact,) = store.facts("ann")
        assert fact.evidence[0].frame == frame.ids[0]
        (text,) = store.graph.evidence(fact)
        assert (text.text, text.is_current) == (None, False)


def test_a_key_of_a_batch_that_is_gone_is_free_again() -> None:
    """Its arguments cannot be compared, and nobody can ask for the first result."""
    disk = Disk()
    with opened(disk) as store:
        frame = store.put_frame("once", options=cerata.PutOptions(key="request 1"))
        assert not store.put_frame("once", options=cerata.PutOptions(key="request 1")).added
        store.delete(frame.ids[0])
        store.upkeep.compact(horizon="HEAD")
        assert store.put_frame("once", options=cerata.PutOptions(key="request 1")).added


# --- the calls -----------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_and_estimates_well() -> None:
    """The estimate of a file without pending checkpoints is within a tenth of the result."""
    disk = Disk()
    with opened(disk) as store:
        random = Random(3)
        for _ in range(40):
            texts = [random.randbytes(400).hex() for _ in range(50)]
            store.put_frames(texts)
            store.checkpoint()
        with store.transaction():
            for frame in range(1, 1_000):
                store.delete(frame)
        store.checkpoint()
        image = disk.image()
        plan = store.upkeep.compact(horizon="HEAD", dry_run=True)
        assert disk.image() == image
        assert not plan.done
        assert plan.dropped == 999
        result = store.upkeep.compact(horizon="HEAD")
        assert result.before == plan.before
        assert result.saved > 0.2 * result.before
        assert abs(result.after - plan.after) < 0.1 * plan.after


def test_bad_arguments_are_refused() -> None:
    """Before anything is written."""
    disk = Disk()
    with opened(disk) as store:
        store.put_frame("a")
        image = disk.image()
        for horizon in (99, "no-such-tag"):
            with pytest.raises(NotFound):
                store.upkeep.compact(horizon=horizon)
        for budget in (0, "soon"):
            with pytest.raises(InvalidInput):
                store.upkeep.maintain(budget)  # type: ignore[arg-type]
        assert disk.image() == image


def test_readers_transactions_and_memories_without_a_file_are_refused(tmp_path: Path) -> None:
    """Each with its remedy."""
    path = tmp_path / "brain.cera"
    with cerata.open(path) as store:
        store.put_frame("a")
        with store.transaction(), pytest.raises(InvalidInput, match="transaction"):
            store.upkeep.compact()
    with cerata.open(path, mode="r") as reader, pytest.raises(ReadOnly):
        reader.upkeep.compact()
    with cerata.open(":memory:") as memory, pytest.raises(Unsupported, match="without a file"):
        memory.upkeep.compact()


def test_maintain_compacts_in_steps_of_its_budget() -> None:
    """Each call copies some more; the call that completes the copy swaps the files."""
    disk = Disk()
    with opened(disk) as store:
        random = Random(5)
        for _ in range(40):
            store.put_frames([random.randbytes(700).hex() for _ in range(100)])
            store.checkpoint()
        before, live = store.upkeep._sizes()
        assert before - live > DEAD_BYTES
        ticks = iter(np.arange(0, 1e6, 0.01).tolist())

        def monotonic(_: object) -> float:
            return float(next(ticks))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(disk.clock), "monotonic", monotonic)
            calls = 0
            while True:
                done = store.upkeep.maintain(0.25)
                calls += 1
                assert done.compaction is not None
                if not done.due:
                    break
                assert [name for name in disk.storage._nodes if name.endswith(COPY_SUFFIX)]
        assert calls > 1
        assert done.compaction.done
        assert store.upkeep.maintain().compaction is None
        assert store.verify().log.problems == ()
        assert store.count() == (4_000, 0)


def test_times_and_tags_name_a_horizon() -> None:
    """Retention by age: everything that died more than some days ago."""
    disk = Disk()
    with opened(disk) as store:
        first = store.put_frame("old")
        store.delete(first.ids[0])
        disk.clock.now += int(timedelta(days=40).total_seconds() * 1e6)
        second = store.put_frame("newer")
        store.delete(second.ids[0])
        month = datetime.fromtimestamp(disk.clock.now / 1e6, UTC) - timedelta(days=30)
        result = store.upkeep.compact(horizon=month)
        assert (result.dropped, result.horizon) == (1, 2)
        assert store.at(3).frame(3).text == "newer"


# --- size ----------------------------------------------------------------------------------------

SIZE_MAX = 3.1
"""A small file after compaction, without its ring, over its segments: 2.7 on 2026-11-26.

At 600 short texts most of this is the whole sectors of twelve projections' chunks.
"""


def compacted_sizes(path: Path) -> tuple[float, int]:
    """Compact a file of many small segments; return its size over its events, and its chunks'."""
    source = Random(1)
    with cerata.open(path) as store:
        for _ in range(60):
            store.put_frames([text_of(source) for _ in range(10)])
            store.checkpoint()
        store.upkeep.compact()
        info, fixed = store.upkeep.info(), log_of(store).page.fixed_size
        events, chunks = info["segment_bytes"], info["checkpoint_bytes"]
    assert isinstance(events, int)
    assert isinstance(chunks, int)
    return (path.stat().st_size - fixed) / events, chunks


def test_a_compacted_file_stays_small(tmp_path: Path) -> None:
    """Segments are joined, chunks merged and compressed well, and nothing else stays."""
    size, _ = compacted_sizes(tmp_path / "a.cera")
    assert size < SIZE_MAX


def test_a_compaction_that_joins_no_segments_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule above is seen failing."""
    monkeypatch.setattr("cerata.engine.copies.backup._SEGMENT_EVENTS_MAX", 1)
    size, _ = compacted_sizes(tmp_path / "a.cera")
    assert size > SIZE_MAX


def test_chunks_of_a_compacted_file_are_compressed_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written once, and outside of the writer lock."""
    _, chunks = compacted_sizes(tmp_path / "a.cera")
    monkeypatch.setattr(retention, "COPY_LEVEL", COMPRESSION_LEVEL)
    _, quick = compacted_sizes(tmp_path / "b.cera")
    assert chunks < 0.97 * quick
