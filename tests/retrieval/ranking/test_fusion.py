"""Fusion: shares of lanes and signals as one score, against a model that adds up item by item."""

import random
from collections.abc import Mapping, Sequence
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.ranking.fusion import (
    STEP,
    Fused,
    LaneRanking,
    Shares,
    candidates_of,
    fuse,
    step_of,
)

from ...timing import seconds

NAMES = ("text", "facts", "vectors", "late")
Lanes = Mapping[str, Shares]


@st.composite
def fusions(draw: st.DrawFn) -> tuple[list[int], Lanes, dict[str, float], list[float]]:
    """Few ids, and few shares, so that scores tie."""
    ids = draw(st.lists(st.integers(-5, 25).filter(bool), unique=True, max_size=20))
    count = len(ids)
    quarters = st.lists(
        st.integers(0, 8).map(lambda number: number / 4), min_size=count, max_size=count
    )
    lanes: dict[str, Shares] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        shares = np.array(draw(quarters))
        lanes[name] = Shares(shares, shares > 0)
    weights = {name: draw(st.sampled_from([0.25, 0.5, 1.0, 2.0])) for name in lanes}
    added = [share - 1 for share in draw(quarters)]
    return ids, lanes, weights, added


def modelled(
    ids: Sequence[int], lanes: Lanes, weights: Mapping[str, float], added: Sequence[float]
) -> list[Fused]:
    fused: list[Fused] = []
    for place, item in enumerate(ids):
        found = tuple(name for name, lane in lanes.items() if lane.found[place])
        score = sum(weights[name] * float(lane.shares[place]) for name, lane in lanes.items())
        if found:
            fused.append(Fused(item, round(score + added[place], 9), found))
    # −1 and −2 are of an open transaction: newer than the log, and −1 the older of them.
    return sorted(fused, key=lambda hit: (-hit.score, hit.id < 0, abs(hit.id)))


@given(fusion=fusions(), k=st.integers(1, 30))
def test_fusion_is_that_of_the_model(
    fusion: tuple[list[int], Lanes, dict[str, float], list[float]], k: int
) -> None:
    ids, lanes, weights, added = fusion
    fused = fuse(np.array(ids, np.int64), lanes, weights, np.array(added), k)
    assert fused == modelled(ids, lanes, weights, added)[:k]


@given(fusion=fusions())
def test_a_lane_that_finds_nothing_changes_nothing(
    fusion: tuple[list[int], Lanes, dict[str, float], list[float]],
) -> None:
    ids, lanes, weights, added = fusion
    nothing = Shares(np.zeros(len(ids)), np.zeros(len(ids), np.bool_))
    with_it = fuse(
        np.array(ids, np.int64),
        {**lanes, "graph": nothing},
        {**weights, "graph": 1.0},
        np.array(added),
        100,
    )
    assert with_it == fuse(np.array(ids, np.int64), lanes, weights, np.array(added), 100)


def test_a_share_counts_alike_however_many_items_its_lane_finds() -> None:
    """A lane with one hit adds as much to it as a lane with a hundred."""
    ids = np.arange(1, 101)
    all_half = Shares(np.full(100, 0.5), np.ones(100, np.bool_))
    one = Shares(np.where(ids == 70, 0.5, 0.0), ids == 70)
    best, second, *_ = fuse(
        ids, {"text": all_half, "late": one}, {"text": 1.0, "late": 1.0}, np.zeros(100), 100
    )
    assert (best, second) == (Fused(70, 1.0, ("text", "late")), Fused(1, 0.5, ("text",)))


@pytest.mark.parametrize(
    ("weights", "found", "step"),
    [
        ({"text": 1.0}, [], STEP),
        ({"text": 1.0, "vectors": 1.0}, ["vectors"], 2 * STEP),
        ({"text": 1.0, "vectors": 1.0}, [], STEP),
        ({"text": 1.0, "vectors": 0.6, "late": 1.0}, ["late", "vectors"], 2.6 * STEP),
        ({"text": 1.0, "facts": 2.0, "vectors": 0.0}, ["vectors", "facts"], STEP),
    ],
)
def test_a_step_is_a_twentieth_of_the_most_that_lanes_add(
    weights: dict[str, float], found: list[str], step: float
) -> None:
    assert isclose(step_of(weights, found), step)


@given(
    lists=st.lists(st.lists(st.integers(-5, 25).filter(bool), unique=True, max_size=20), max_size=4)
)
def test_candidates_are_the_items_of_any_list(lists: list[list[int]]) -> None:
    rankings = [LaneRanking("text", ids, [1.0] * len(ids)) for ids in lists]
    arrays = [LaneRanking("text", np.array(ids, np.int64), [1.0] * len(ids)) for ids in lists]
    expected = sorted({item for ids in lists for item in ids})
    assert candidates_of(rankings).tolist() == candidates_of(arrays).tolist() == expected


def test_fusion_takes_far_less_than_adding_up_in_python() -> None:
    """Thousands of items: none costs a step of Python."""
    draw = random.Random(7)
    ids = draw.sample(range(1, 20_000), 10_000)
    lanes: dict[str, Shares] = {
        name: Shares(np.array([draw.random() for _ in ids]), np.ones(len(ids), np.bool_))
        for name in NAMES
    }
    weights: dict[str, float] = {name: 1.0 for name in NAMES}  # noqa: C420
    added = [0.0] * len(ids)
    slow = seconds(lambda: modelled(ids, lanes, weights, added))
    arrays = np.array(ids), np.array(added)
    assert seconds(lambda: fuse(arrays[0], lanes, weights, arrays[1], 100)) * 3 < slow
