"""A memory with a hole: everything before it is served as if it ended there."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import cerata
from cerata.engine.errors import Corrupt

from ...inside import log_of

COUNT = 2_000


@pytest.fixture
def holed(tmp_path: Path, seed: int) -> tuple[Path, Path]:
    """A memory with one damaged block amid its sealed events, and the same one whole."""
    random = Random(seed)
    path, whole = tmp_path / "holed.cera", tmp_path / "whole.cera"
    with cerata.open(path) as store:
        store.put_frames([f"frame{n % 50} {random.randbytes(40).hex()}" for n in range(COUNT)])
        store.backup(whole)
    # The backup has one segment and no checkpoint: a bit in its middle hits a block of texts.
    data = bytearray(whole.read_bytes())
    with cerata.open(whole, mode="r") as store:
        (segment,) = log_of(store).reader.segment_refs(log_of(store).snapshot)
    data[segment.offset + segment.length // 2] ^= 1
    path.write_bytes(data)
    return path, whole


@pytest.mark.parametrize("salvage", [True, False])
def test_views_serve_up_to_a_hole_and_refuse_only_what_lies_beyond(
    holed: tuple[Path, Path], salvage: bool
) -> None:
    """Views before the hole raised too, since a fold gave up all that it had read."""
    path, whole = holed
    with (
        cerata.open(path, mode="r", options=cerata.OpenOptions(salvage=salvage)) as store,
        cerata.open(whole) as other,
    ):
        seqs = list[int]()
        with pytest.raises(Corrupt):
            seqs.extend(event.seq for event in store.log())
        last = seqs[-1]
        assert 0 < last < COUNT
        assert answers(store.at(last)) == answers(other.at(last))
        assert answers(store.at(last // 2)) == answers(other.at(last // 2))
        for basis in (last + 1, "HEAD"):
            beyond = store.at(basis)
            for call in reads(beyond):
                with pytest.raises(Corrupt, match=f"damaged after event {last:,}") as caught:
                    call()
                assert f"at({last})" in str(caught.value)
        # Having been asked for more than there is changes nothing.
        assert answers(store.at(last)) == answers(other.at(last))


def reads(view: cerata.View) -> list[Callable[[], object]]:
    return [
        lambda: [hit.to_dict() for hit in view.search("frame7", k=50)],
        lambda: view.recall("frame7").to_dict(),
        lambda: [frame.to_dict() for frame in view.frames()],
        lambda: view.frame(1).to_dict(),
        lambda: len(view),
    ]


def answers(view: cerata.View) -> list[object]:
    return [read() for read in reads(view)]


def test_a_hole_below_a_damaged_checkpoint_is_the_same_hole(holed: tuple[Path, Path]) -> None:
    """Folding a lost chunk's events again met the hole, and every read raised for good."""
    path, whole = holed
    with cerata.open(whole) as store:
        store.checkpoint()
    data = bytearray(whole.read_bytes())
    with cerata.open(whole, mode="r") as store:
        (segment,) = log_of(store).reader.segment_refs(log_of(store).snapshot)
        toc = log_of(store).toc()
        pages = {ref.offset for key in toc.projections for ref in toc.saved(key).extents()}
    for offset in (segment.offset + segment.length // 2, *(page + 100 for page in pages)):
        data[offset] ^= 1
    path.write_bytes(data)
    with cerata.open(path, mode="r", options=cerata.OpenOptions(salvage=True)) as store:
        assert store.at(10).frame(10).text.startswith("frame9")
        with pytest.raises(Corrupt, match="damaged after event"):
            len(store)
