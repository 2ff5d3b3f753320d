"""Ranges without effects have no chunk, and projections that are saved together share extents."""

from pathlib import Path

import msgspec

import cerata
from cerata.engine.events import Draft, UnknownBody
from cerata.engine.format.toc import Ref, SavedProjection, Toc
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.memory.store import Store
from cerata.projections.core.projection import is_idle
from cerata.projections.core.seal import layout
from cerata.projections.registry import BUILT_IN, projection_key
from cerata.replay.checkpoint import saved_ranges

from ..inside import fold_of, log_of
from .words import chunks, spans, spoil

COUNT = 4_096 + 512 + 100
"""A chunk of each size, and a part of a range."""


def idle(store: Store, count: int = COUNT) -> None:
    """Append events that no projection handles."""
    body = UnknownBody(kind="fromLater", kind_version=3, data=msgspec.msgpack.encode({}))
    for start in range(0, count, 512):
        log_of(store).append([Draft(body)] * min(512, count - start))


def saved_of(store: Store, name: str) -> SavedProjection:
    return log_of(store).toc().saved(projection_key(fold_of(store).registry.make(name)))


def check(path: Path, replayed: int = 0) -> None:
    """Check that a new process has the state of a replay, after so many folded events."""
    with cerata.open(path, mode="r") as store:
        assert store.stream.digests() == store.stream.digests(replay=True)
        assert {report.replayed_events for report in fold_of(store).reports.values()} == {replayed}
        assert store.verify().ok


def save_instead(store: Store, name: str, refs: list[Ref]) -> None:
    """Save the state of a projection with other chunks, as a writer with a fault would."""
    saved = saved_of(store, name)
    key = projection_key(fold_of(store).registry.make(name))

    def build(flip: Flip, _: Toc) -> dict[str, dict[str, object]]:
        states = {key: StateDraft(saved.seq, saved.digest, [refs])}
        return {key: state.to_entry() for key, state in flip.add_states(states).items()}

    log_of(store).publish_projections(build)


def test_an_empty_state_saves_nothing(tmp_path: Path) -> None:
    """Each empty projection had a chunk and a page, 2 KB of every file."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        idle(store)
        store.checkpoint()
        for name in BUILT_IN:
            assert (saved_of(store, name).chunks, saved_of(store, name).ledger) == ((), None)
            assert saved_of(store, name).seq == COUNT
    check(path)


def test_a_skipped_range_gives_the_state_of_its_events() -> None:
    """Digests, chunks, and all later states; each projection has its way of skipping."""
    with cerata.open(":memory:") as store:
        idle(store)
        store.put_frames(["green tea", "black tea"])
        events = [*log_of(store).read()]
        for name in BUILT_IN:
            folded, skipped = (fold_of(store).registry.make(name) for _ in range(2))
            folded.apply(events[:COUNT])
            for after, through in layout(COUNT):
                assert is_idle(folded.chunk(after, through))
                skipped.skip(through)
                assert skipped.chunk(after) == folded.chunk(after, through)
            for projection in (folded, skipped):
                projection.check()
                projection.apply(events[COUNT:])
            assert skipped.digest() == folded.digest() == store.stream.digests()[name]
            assert skipped.chunk(4_608) == folded.chunk(4_608)
            assert is_idle(folded.chunk(4_608)) is (name not in ("frames", "fulltext"))


def test_ranges_without_effects_have_no_chunk_between_others(tmp_path: Path) -> None:
    """The state before and after them is loaded, not folded."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frame("green tea")
        idle(store, 3 * 4_096)
        store.put_frame("black tea")
        store.history.tag("now")
        store.checkpoint()
        assert spans(store, "frames") == [(1, 4_096), (12_289, 12_291)]
        assert spans(store, "tags") == [(12_289, 12_291)]
    check(path)


def test_projections_that_are_saved_together_share_a_manifest_and_a_ledger(tmp_path: Path) -> None:
    """A reader of one decodes its section only; a later save of one leaves those of others."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        for text in ("green tea", "black tea"):
            store.put_frame(text)
            store.assert_fact(text, "is", "drunk")
            store.checkpoint()
        states = [saved_of(store, name) for name in ("frames", "fulltext", "facts", "facttext")]
        assert len({page.extent for state in states for page in state.chunks}) == 1
        assert len({state.ledger.extent for state in states if state.ledger is not None}) == 1
        assert len({state.ledger for state in states}) == 4
        store.upkeep.rebuild("frames")
        assert [saved_of(store, name) for name in ("fulltext", "facts", "facttext")] == states[1:]
        assert saved_of(store, "frames").chunks[0].extent != states[0].chunks[0].extent
    check(path)


def test_a_damaged_manifest_makes_a_replay_necessary_and_loses_nothing(tmp_path: Path) -> None:
    """A gap between chunks is idle only if the page that tells so is whole."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frame("green tea")
        idle(store)
        store.put_frame("black tea")
        store.checkpoint()
        head = store.head.seq
        (page,) = saved_of(store, "frames").chunks
        digests = store.stream.digests()
    spoil(path, page.offset + 70)
    with cerata.open(path) as store:
        assert store.stream.digests() == digests
        replayed = {name: fold_of(store).reports[name].replayed_events for name in BUILT_IN}
        assert replayed == {
            name: head if name in ("frames", "fulltext") else 0 for name in BUILT_IN
        }
        assert not store.verify().ok
        store.checkpoint()
        assert spans(store, "frames") == [(1, 4_096), (4_609, head)]
        assert store.verify().ok
    check(path)


def test_the_chunk_of_a_damaged_page_is_known_from_a_whole_one() -> None:
    """Pages overlap nowhere, but a damaged page of several projections covers more than its own."""
    with cerata.open(":memory:") as store:
        store.put_frames([f"note {number}" for number in range(1_200)])
        store.checkpoint()
        saved = saved_of(store, "frames")
        (page,) = saved.chunks
        lost = page._replace(offset=page.offset + 512, first_seq=600, last_seq=1_200)
        both = msgspec.structs.replace(saved, chunks=(page, lost))
        assert [each.damage for each in saved_ranges(log_of(store).file, both)] == [None] * 3
        ranges = saved_ranges(log_of(store).file, msgspec.structs.replace(saved, chunks=(lost,)))
        assert [each.is_idle for each in ranges] == [True, False, False]
        assert [each.damage is None for each in ranges] == [True, False, False]


def test_a_missing_chunk_is_found(tmp_path: Path) -> None:
    """A writer that leaves out a chunk with effects would hide them from every reader."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames([f"note {number}" for number in range(1_200)])
        store.checkpoint()
        save_instead(store, "frames", chunks(store, "frames")[:-1])
    with cerata.open(path) as store:
        verification = store.verify()
        assert verification.diverging == ("frames",)
        assert verification.divergences[0].seq == 1_025
    with cerata.open(path) as store:
        (divergence,) = store.upkeep.rebuild("frames").divergences
        assert "is missing" in divergence.text
        assert store.verify().ok
    check(path)


def test_a_chunk_of_other_events_is_no_gap(tmp_path: Path) -> None:
    """The events that it overlaps are folded."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames([f"note {number}" for number in range(1_200)])
        store.checkpoint()
        first, *rest = chunks(store, "frames")
        save_instead(store, "frames", [first._replace(last_seq=500), *rest])
    with cerata.open(path) as store:
        assert store.stream.digests() == store.stream.digests(replay=True)
        assert fold_of(store).reports["frames"].replayed_events == 512


def test_a_fork_of_an_earlier_point_keeps_empty_states() -> None:
    """Their digests are in no ledger, since they follow from the seq."""
    with cerata.open(":memory:") as store:
        idle(store, 6_000)
        for _ in range(2):
            store.put_frame("green tea")
            store.checkpoint()
        for point in (512 * 8, 512 * 11):
            with store.upkeep.fork(at=point) as fork:
                states = {name: saved_of(fork, name).seq for name in BUILT_IN}
                kept = {name for name, seq in states.items() if seq == point}
                assert kept == BUILT_IN.keys() - {"frames", "fulltext"}
                assert fork.stream.digests() == fork.stream.digests(replay=True)
