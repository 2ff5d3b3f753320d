"""Strings by hash: two strings of one short hash are told apart by their bytes."""

import numpy as np

from cerata.projections.columnar.hash_index import hashes64
from cerata.projections.columnar.string_table import StringTable


def test_strings_of_one_short_hash_are_told_apart() -> None:
    # A chunk has 32 bits of each word's hash: half the bytes; a few words share them.
    pieces = [b"w%d" % number for number in range(200_000)]
    short = hashes64(pieces).astype(np.uint32)
    order = np.argsort(short, kind="stable")
    pairs = np.flatnonzero(np.diff(short[order]) == 0)
    assert len(pairs)
    places: list[int] = order[pairs[0] : pairs[0] + 2].tolist()
    first, second = (pieces[place] for place in places)
    table = StringTable(hash_bits=32)
    for place, piece in enumerate((first, b"x", second)):
        table.extend(table.rows_of([piece], [place]))
    assert [table.find(piece) for piece in (first, second, b"x", b"y")] == [0, 2, 1, None]
    asked = [second, b"y", first, *(b"z%d" % number for number in range(30))]
    assert table.find_all(asked, hashes64(asked)) == {0: 2, 2: 0}
