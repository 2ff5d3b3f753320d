"""States that were damaged in memory, and events that cannot be decoded, leave nothing behind."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata import Filter
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import Event
from cerata.engine.format.toc import Ref
from cerata.engine.log_file.file import LogFile
from cerata.engine.segments.columnar_events import SealedPiece
from cerata.projections.core.projection import Projection
from cerata.projections.core.seal import StateDamaged
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.rows.row_projection import RowProjection
from cerata.replay import feed as feeding
from cerata.replay import fold as fold_module
from cerata.replay import rebuild as rebuild_module

from ..inside import fold_of, log_of
from .test_rebuilds import killed_at
from .words import Killed


def spoil_postings(projection: Projection) -> None:
    assert isinstance(projection, FulltextProjection)
    piece = projection._recent.pieces[0]
    piece.gaps.low[piece.starts[0]] += 1


def spoil_rows(projection: Projection) -> None:
    assert isinstance(projection, FulltextProjection)
    piece = projection._recent.pieces[0]
    # No such row: the sum of the gaps fails before the postings are compared.
    piece.gaps.low[piece.starts[0]] = 255


def spoil_kinds(projection: Projection) -> None:
    assert isinstance(projection, FramesProjection)
    projection._columns.kind.buffer[:] = 0


@pytest.mark.parametrize("spoil", [spoil_postings, spoil_rows])
def test_a_posting_that_changed_in_memory_is_not_saved(
    tmp_path: Path, spoil: Callable[[Projection], None]
) -> None:
    """The digest is that of the stream of tokens, and the chunk was made of the postings."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"note {number} on wax" for number in range(60)])
        store.search("wax")
        store.put_frame("wax again")
        # Two pieces, which the next checkpoint merges.
        expected = len(store.search("wax", k=100))
        fold_of(store).using("fulltext", None, spoil)
        store.checkpoint()
    with cerata.open(tmp_path / "a.cera") as store:
        assert len(store.search("wax", k=100)) == expected
        assert store.verify().ok
        store.put_frame("one more on wax")
        store.checkpoint()


def test_reads_after_a_damaged_state_was_dropped_are_of_the_new_one(tmp_path: Path) -> None:
    """The newest view kept its layer of the damaged columns."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"note {number} on wax" for number in range(30)])
        fold_of(store).using("frames", None, spoil_kinds)
        assert list(store.frames(where=Filter(kind="text"))) == []
        store.checkpoint()
        assert len(list(store.frames(where=Filter(kind="text")))) == 30


def nothing(*_: object) -> None:
    """Return None, as a column that cannot be decoded in one pass."""


def plant_undecodable(patch: pytest.MonkeyPatch, seq: int) -> None:
    """Make the payload of an event undecodable, alone and in a column."""
    patch.setattr(Event, "body", undecodable(seq), raising=False)
    patch.setattr(SealedPiece, "_in_one_pass", nothing)


def undecodable(seq: int) -> property:
    """Return a body that cannot be decoded for one event."""
    decode = vars(Event)["body"]

    def body(event: Event) -> object:
        if event.seq == seq:
            raise Corrupt(f"The payload of event {seq} cannot be decoded")
        return decode.__get__(event)

    return property(body)


def test_a_payload_that_cannot_be_decoded_under_a_bad_chunk_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fold in place of the chunk let an error of its own out of every read."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames([f"wax {number}" for number in range(10)])
        store.checkpoint()

    def unreadable(_file: LogFile, _ref: Ref) -> bytes:
        raise Corrupt("The chunk is damaged")

    with cerata.open(path) as store:
        plant_undecodable(monkeypatch, 6)
        monkeypatch.setattr(fold_module, "read_chunk", unreadable)
        for _ in range(2):
            with pytest.raises(Corrupt, match="damaged after event 5"):
                store.search("wax")
        assert len(store.at(5).search("wax", k=20)) == 5
        with pytest.raises(Corrupt, match="payload of event 6"):
            store.upkeep.rebuild("frames")


def test_a_resumed_rebuild_over_a_bad_chunk_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunk of the side could not be made anew, and an error of the fold's came out raw."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"

    def unreadable(_file: LogFile, _ref: Ref) -> bytes:
        raise Corrupt("The chunk is damaged")

    with cerata.open(path) as store:
        store.put_frames([f"wax {number}" for number in range(1_500)])
        store.checkpoint()
        with pytest.raises(Killed):
            store.upkeep.rebuild("frames", killed_at(1_024))
        assert any(key.endswith("~") for key in log_of(store).toc().projections)
    with cerata.open(path) as store:
        plant_undecodable(monkeypatch, 6)
        monkeypatch.setattr(fold_module, "read_chunk", unreadable)
        with pytest.raises(Corrupt, match="payload of event 6"):
            store.upkeep.rebuild("frames")


def test_a_state_that_changes_during_a_rebuild_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a complete block runs within the fold, outside of what saves."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"wax {number}" for number in range(10)])
        before = store.stream.digests()

        def damaged(*_: object) -> None:
            raise StateDamaged("a row is another one in memory")

        with monkeypatch.context() as patch:
            patch.setattr(rebuild_module, "apply_events", damaged)
            with pytest.raises(Corrupt, match="'frames' changed while it was rebuilt: a row"):
                store.upkeep.rebuild("frames")
        assert store.stream.digests() == before


def test_a_payload_that_can_be_decoded_again_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handle remembered the event for good, and asserted that it was still damaged."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"wax {number}" for number in range(10)])
        with monkeypatch.context() as patch:
            plant_undecodable(patch, 6)
            with pytest.raises(Corrupt, match="damaged after event 5"):
                store.search("wax")
        assert len(store.search("wax", k=20)) == 10


def test_a_damaged_vector_behind_a_block_boundary_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold goes in steps of a block, and the vectors before the damage were folded twice."""
    with cerata.open(tmp_path / "a.cera") as store:
        for _ in range(5):
            store.put_frames([f"note {number}" for number in range(818)])
        fold_of(store).vectors()
        assert store.head.seq == 4_090
        damaged = 4_100

        def attached(event: Event, _attachment: object) -> bytes:
            if event.seq == damaged:
                raise Corrupt("The vector is damaged")
            return np.ones(4, np.float32).tobytes()

        monkeypatch.setattr(Event, "attached", attached)
        store.put_frames(
            ["with a vector"] * 20, vectors=cerata.Vectors(dense=[np.ones(4)] * 20, space="test/4")
        )
        with pytest.raises(Corrupt, match=f"damaged after event {damaged - 1:,}"):
            fold_of(store).vectors()
        assert fold_of(store).vectors(damaged - 1).seq == damaged - 1


def test_an_apply_that_reads_its_own_projection_is_refused(tmp_path: Path) -> None:
    """Each read folded again, and called apply again: for ever, and holding the lock."""

    class Reading(RowProjection[str, int]):
        name = "reading"
        handles = ("putFrame",)

        def apply(self, events: object) -> None:
            store.stream.projection("reading")

    with cerata.open(tmp_path / "a.cera", projections=[Reading]) as store:
        store.put_frame("wax")
        with pytest.raises(cerata.ProjectionFailed) as caught:
            store.stream.projection("reading")
        assert isinstance(caught.value.__cause__, InvalidInput)
