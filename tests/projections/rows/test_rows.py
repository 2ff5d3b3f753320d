"""Rows: plain, ordered, and the same state however they were reached."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import PutFrame
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.rows.row_fold import RowFold, row_fold
from cerata.projections.rows.row_projection import RowProjection, Rows

from ..histories import events_of

WORDS = ("a", "b", "c", "d e", "")


class Last(RowProjection[str, tuple[int, ...]]):
    """The last three frames of each kind; an empty text takes the kind's row away."""

    name = "last"
    handles = ("putFrame",)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            assert isinstance(body, PutFrame)
            if body.text:
                self.rows[body.kind] = (*self.rows.get(body.kind, ()), event.seq)[-3:]
            else:
                self.rows.pop(body.kind, None)


puts = st.builds(PutFrame, text=st.sampled_from(WORDS), kind=st.sampled_from(("x", "y", "z")))
long_histories = st.tuples(st.lists(puts, min_size=1, max_size=9), st.integers(1, 1_700)).map(
    lambda drawn: events_of([drawn[0][n * 7 % len(drawn[0])] for n in range(drawn[1])])
)


def state(fold: RowFold) -> object:
    return fold.seq, fold.digest(), list(fold.snapshot().rows.items())


@given(long_histories, st.lists(st.integers(1, 1_700), max_size=4))
def test_neither_batches_nor_chunks_leave_a_trace(
    events: Sequence[FoldedEvent], splits: list[int]
) -> None:
    """Folded at once, in pieces, or loaded and then folded: one state, and the same chunks."""
    whole, pieces, loaded = row_fold(Last), row_fold(Last), row_fold(Last)
    whole.apply(events)
    for stop in [*sorted(stop for stop in splits if stop < len(events)), len(events)]:
        pieces.apply(events[pieces.seq : stop])
    base = len(events) - len(events) % 512
    for after in range(0, base, 512):
        loaded.load(whole.chunk(after, after + 512))
    half = base + (len(events) - base) // 2
    partial = row_fold(Last)
    partial.apply(events[:half])
    if half > base:
        loaded.load(partial.chunk(base))
    loaded.apply(events[half:])
    assert state(whole) == state(pieces) == state(loaded)
    assert whole.chunk(base) == pieces.chunk(base) == loaded.chunk(base)
    assert whole.digest_at(base) == loaded.digest_at(base) == row_digest(events[:base])
    assert state(whole.at_range(base)) == state(loaded.at_range(base))


def row_digest(events: Sequence[FoldedEvent]) -> bytes:
    stopped = row_fold(Last)
    stopped.apply(events)
    return stopped.digest()


def test_any_damaged_byte_is_refused_or_harmless() -> None:
    """The chunk's id finds damage first; without it, nothing may crash or half load."""
    whole = row_fold(Last)
    whole.apply(events_of([PutFrame(text=WORDS[n % 4], kind="xyz"[n % 3]) for n in range(20)]))
    chunk, empty = whole.chunk(0), row_fold(Last).digest()
    refused = 0
    for offset in range(len(chunk)):
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(chunk)
            damaged[offset] ^= change
            target = row_fold(Last)
            try:
                target.load(bytes(damaged))
            except Corrupt:
                refused += 1
                assert (target.seq, target.digest()) == (0, empty)
    assert refused > len(chunk)


@pytest.mark.parametrize("key", [1.5, True, None, ["a"], ("a", 1.5), "\ud800", 1 << 70])
def test_a_key_is_plain(key: object) -> None:
    """What has no one encoding cannot be found again."""
    rows: Rows[str, int] = Rows()
    with pytest.raises(InvalidInput):
        rows[key] = 1  # type: ignore[index]
    assert len(rows) == 0


@pytest.mark.parametrize("value", [1.5, {"a": 1}, {1}, ("a", 1.5), "\ud800", 1 << 70, object()])
def test_a_value_is_plain(value: object) -> None:
    """A float's sum depends on order; a map can be changed behind the fold's back."""
    rows: Rows[str, int] = Rows()
    with pytest.raises(InvalidInput):
        rows["a"] = value  # type: ignore[assignment]
    assert len(rows) == 0


def test_rows_come_in_order_of_key_and_lists_are_tuples() -> None:
    """Neither insertion nor hashing decides an order."""
    rows: Rows[object, object] = Rows()  # type: ignore[type-var]
    for key in ("b", 10, b"x", ("a", 2), 9, "a", ("a", 1), -1):
        rows[key] = [1, [2]]
    assert list(rows) == [-1, 9, 10, "a", "b", b"x", ("a", 1), ("a", 2)]
    assert rows["a"] == (1, (2,))
    del rows[9]
    assert list(rows)[:2] == [-1, 10]
    with pytest.raises(KeyError):
        del rows[9]
