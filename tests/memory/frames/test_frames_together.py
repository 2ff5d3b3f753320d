"""Frames that lie close together are read together, and are those that are read one by one."""

from pathlib import Path

import pytest

import cerata
from cerata.engine.errors import Corrupt
from cerata.engine.segments.segment_reader import Segment
from cerata.memory.batch.writer import session_of


def written(path: Path) -> None:
    with cerata.open(path) as store:
        frames = store.put_frames([f"note {n} " + "x" * 90 for n in range(600)], tags=["t"]).ids
        store.put_frame("new", uri="u", metadata={"k": [1]})
        store.put_frame("newer", uri="u", options=cerata.PutOptions(replace=True))
        store.delete(frames[5], reason="old")
        session_of(store).log.seal()
        store.put_frames(["in the ring"] * 20)


def test_frames_together_are_the_frames_one_by_one(tmp_path: Path) -> None:
    written(tmp_path / "a.cera")
    with cerata.open(tmp_path / "a.cera", mode="r") as store:
        snapshot = store._snapshot()
        ids = [
            frame.id
            for frame in store.frames(
                where=cerata.Filter(include_superseded=True, include_deleted=True)
            )
        ]
        for numbers in (ids, ids[::40], ids[:9], ids[-30:], ids[100:103], []):
            together = snapshot.frames_at(numbers)
            assert together == {number: snapshot.frame_at(number) for number in numbers}


def test_a_damaged_neighbour_hides_no_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.cera")
    read_block = Segment._read_block

    def damaged(segment: Segment, number: int) -> tuple[bytes, bytes]:
        if number == 1:
            raise Corrupt("block 1 does not verify")
        return read_block(segment, number)

    monkeypatch.setattr(Segment, "_read_block", damaged)
    with cerata.open(tmp_path / "a.cera", mode="r") as store:
        snapshot = store._snapshot()
        numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 595, 596]
        assert [*snapshot.frames_at(numbers)] == numbers
        with pytest.raises(Corrupt, match="block 1"):
            snapshot.frames_at(range(1, 500))
