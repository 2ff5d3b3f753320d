"""Rows by two columns: an index returns what a pass over the columns returns."""

import numpy as np
import pytest

from cerata.projections.columnar.columns import U32, U64
from cerata.projections.columnar.hash_index import PairIndex, PairKeys, pair_key


def passed(firsts: U32 | U64, key: int, seconds: U32, value: int) -> list[int]:
    """Return the rows of a pair by a pass over the columns."""
    return np.flatnonzero((firsts == key) & (seconds == value)).tolist()


@pytest.mark.parametrize("sizes", [[40], [3_000, 40, 500, 9], [100] * 12])
def test_an_index_returns_what_a_pass_returns(sizes: list[int], seed: int) -> None:
    """Few and many rows of a key; sorted rows and new ones; and an earlier state of the columns."""
    dice = np.random.default_rng(seed)
    index = PairIndex()
    firsts = np.empty(0, np.uint64)
    seconds = np.empty(0, np.uint32)
    for size in sizes:
        # Half of the rows have key 1, so that its buckets are long.
        added = np.where(dice.random(size) < 0.5, 1, dice.integers(0, size // 3, size))
        firsts = np.concatenate([firsts, added.astype(np.uint64)])
        seconds = np.concatenate([seconds, dice.integers(0, 30, size).astype(np.uint32)])
        for end in (len(firsts), len(firsts) // 2):
            for key in (*[1] * 40, 0, 2, 5, 10**9):
                values = dice.integers(0, 40, 2).tolist()
                for value in values:
                    rows = list(index.rows_with(firsts[:end], key, seconds[:end], [value]))
                    matches = [row for row in rows if seconds[row] == value]
                    assert matches == passed(firsts[:end], key, seconds[:end], value)
                rows = list(index.rows_with(firsts[:end], key, seconds[:end], None))
                assert rows == np.flatnonzero(firsts[:end] == key).tolist()


def test_pairs_with_one_key_are_separate() -> None:
    """Objects may be any integers, so a caller can choose two pairs with the same key."""
    mix = pair_key(1, 0)
    second_mix = pair_key(0, 1)
    twin = 7 + second_mix * pow(mix, -1, 1 << 64) & (1 << 64) - 1
    assert pair_key(twin, 4) == pair_key(7, 5)
    firsts = np.array([7, twin] * 100, np.uint64)
    seconds = np.array([5, 4] * 100, np.uint32)
    index = PairIndex()
    keys = PairKeys(firsts, seconds)
    assert keys.item(0) == keys.item(1) == keys[:1][0]
    for _ in range(80):
        for first, second, start in ((7, 5, 0), (twin, 4, 1)):
            rows = list(index.rows_with(firsts, first, seconds, [second]))
            assert rows == list(range(start, 200, 2))
