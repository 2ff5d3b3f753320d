"""Postings that are joined equal those of the pieces apart."""

from dataclasses import replace

import numpy as np
import pytest

from cerata.engine.errors import Corrupt
from cerata.projections.columnar.columns import U32, U64
from cerata.projections.fulltext import occurrences
from cerata.projections.fulltext.fields import FieldLengths
from cerata.projections.fulltext.occurrences import Occurrences, PieceGroup
from cerata.projections.fulltext.postings import Piece, invert

TERMS = 40


def no_stops(rows: int) -> tuple[U64, U64]:
    return np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)


def pieces_of(source: np.random.Generator, rows: int, count: int) -> tuple[list[Piece], U32]:
    """Return pieces of so many rows each, and the lengths of all rows; some rows have a role."""
    pieces: list[Piece] = []
    all_lengths: list[U32] = []
    for number in range(count):
        lengths = source.integers(0, 30, rows).astype(np.uint32)
        # Later pieces have further terms.
        stream = source.zipf(1.4, int(lengths.sum())) % (TERMS * (number + 1) // count)
        none = np.zeros(rows, np.uint32)
        role = np.minimum(lengths, source.integers(0, 2, rows)).astype(np.uint32)
        role = role if number % 2 else none
        fields = FieldLengths(no_stops(rows), lengths, none, none, role, none)
        pieces.append(invert(stream.astype(np.uint32), fields, number * rows))
        all_lengths.append(lengths)
    return pieces, np.concatenate(all_lengths)


@pytest.mark.parametrize("seed", range(8))
def test_joined_postings_are_those_of_the_pieces(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of any row, for any terms; a group of a single piece is not joined."""
    monkeypatch.setattr(occurrences, "_LOOK_UP_POSTINGS", 1 << 20)
    source = np.random.default_rng(seed)
    pieces, lengths = pieces_of(source, 300, 6)
    none = np.zeros(len(lengths), np.uint32)
    fields = FieldLengths(no_stops(len(lengths)), lengths, none, none, none, none)
    groups = (PieceGroup(pieces[: seed % 7]), PieceGroup(pieces[seed % 7 :]))
    for rows in (1, 299, 300, 301, 1_000, len(lengths)):
        apart = Occurrences(pieces, fields, rows)
        joined = Occurrences(pieces, fields, rows, groups)
        for terms in ([], [0], [TERMS - 1], [TERMS + 3], [0, 1, 7, TERMS - 1, TERMS + 3]):
            ids = np.array(terms, np.uint32)
            expected = apart.gather(ids)
            found = joined.gather(ids)
            assert found[1] == expected[1]
            assert np.array_equal(found[0], expected[0])
            assert np.array_equal(found[2], expected[2])
    assert [group.size_bytes > 0 for group in groups] == [seed % 7 > 1, seed % 7 < 5]


def test_blocks_are_joined_when_look_ups_have_cost_as_much() -> None:
    """A single question, as most views of the past have, joins nothing."""
    pieces, _ = pieces_of(np.random.default_rng(3), 2_000, 4)
    postings = sum(len(piece.counts) for piece in pieces)
    blocks = PieceGroup(pieces)
    look_ups = postings // (occurrences._LOOK_UP_POSTINGS * len(pieces))
    assert look_ups > 3
    for _ in range(look_ups):
        assert blocks.postings(1) is None
    assert blocks.size_bytes == 0
    assert blocks.postings(1) is not None
    assert blocks.size_bytes > 5 * postings


def test_too_many_postings_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, _ = pieces_of(np.random.default_rng(4), 300, 3)
    monkeypatch.setattr(occurrences, "_POSTINGS_MAX", 100)
    assert PieceGroup(pieces).postings(1 << 40) is None


def test_a_damaged_term_fails_alone() -> None:
    """Joining reads all terms; a question without the damaged one is answered all the same."""
    pieces, lengths = pieces_of(np.random.default_rng(6), 300, 3)
    none = np.zeros(len(lengths), np.uint32)
    fields = FieldLengths(no_stops(len(lengths)), lengths, none, none, none, none)
    healthy, damaged = pieces[2].terms[:1], pieces[2].terms[-1:]
    expected = Occurrences(pieces, fields, len(lengths)).gather(healthy)
    gaps = pieces[2].gaps
    high = gaps.high.copy()
    high[pieces[2].starts[-2]] = 255
    pieces[2] = replace(pieces[2], gaps=gaps._replace(high=high))
    group = PieceGroup(pieces)
    joined = Occurrences(pieces, fields, len(lengths), (group,))
    for _ in range(200):
        assert np.array_equal(joined.gather(healthy)[0], expected[0])
    assert group.size_bytes == 0
    with pytest.raises(Corrupt):
        joined.gather(damaged)
