"""The selection of candidates by signs, beside its definition."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cerata.projections.columnar.columns import I64
from cerata.projections.vectors import reader
from cerata.projections.vectors.columns import sign_words
from cerata.projections.vectors.nearest import first_best
from cerata.projections.vectors.reader import Space, agreement

NOTHING: Any = np.empty(0, np.int64)


def space_of(vectors: Any) -> Space:
    words = tuple(np.ascontiguousarray(column) for column in sign_words(vectors).T)
    key = ("space", "f4", vectors.shape[1])
    return Space(key, NOTHING, NOTHING, NOTHING, NOTHING, words, cast("Any", None))


@pytest.mark.parametrize("block", [7, 1 << 16])
@settings(max_examples=150)
@given(
    dimension=st.integers(1, 520),
    low=st.sampled_from([-(1 << 20), -1_024, -1, 0]),
    high=st.sampled_from([0, 1, 1_024, 1 << 20]),
    seed=st.integers(0, 2**32 - 1),
)
@example(dimension=64 * 9, low=-1_024, high=1_024, seed=1)
@example(dimension=384, low=-1_024, high=-1_024, seed=1)
@example(dimension=384, low=1_024, high=1_024, seed=1)
def test_an_agreement_is_the_sum_over_the_set_signs(
    block: int, dimension: int, low: int, high: int, seed: int
) -> None:
    """Also of numbers that are all alike, and of signs in more words than a byte can count."""
    source = np.random.default_rng(seed)
    vectors = source.standard_normal((40, dimension)).astype(np.float32)
    vectors[0], vectors[1] = 1, -1
    query = source.integers(low, high, dimension, np.int32, endpoint=True)
    rows: I64 = np.flatnonzero(source.random(40) < 0.5)
    space = space_of(vectors)
    plain = (vectors > 0) @ query.astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_BLOCK_ROWS", block)
        assert agreement(space, slice(33), query).tolist() == plain[:33].tolist()
        assert agreement(space, rows, query).tolist() == plain[rows].tolist()


@given(items=st.lists(st.integers(-3, 3), min_size=1, max_size=30), data=st.data())
def test_the_first_of_equal_items_are_taken(items: list[int], data: st.DataObject) -> None:
    """Ties go to the older row, whatever the order of the rest."""
    count = data.draw(st.integers(1, len(items)))
    limit = sorted(items)[count - 1]
    best = sorted(range(len(items)), key=lambda place: (items[place], place))[:count]
    assert first_best(np.array(items), limit, count).tolist() == sorted(best)
