"""Fusion: lanes as one list, against a model that adds up one thing after the other."""

import random
import statistics
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.projections.columnar.columns import F64, I64, Mask
from cerata.retrieval.ranking.fusion import Fused, LaneRanking, Method, TurnWeights, fuse

from ...timing import seconds

METHODS: tuple[Method, ...] = ("rrf", "minmax", "zscore")


@st.composite
def lanes_of(draw: st.DrawFn) -> list[LaneRanking]:
    """Two to four lanes of few ids, so that they meet, and of few scores, so that they tie."""
    lanes: list[LaneRanking] = []
    for name in draw(st.permutations(["text", "facts", "vectors", "time"]))[
        : draw(st.integers(2, 4))
    ]:
        ids = draw(st.lists(st.integers(-5, 25).filter(bool), unique=True, max_size=20))
        scores = draw(st.lists(st.integers(-8, 8), min_size=len(ids), max_size=len(ids)))
        lanes.append(LaneRanking(name, ids, [score / 4 for score in sorted(scores, reverse=True)]))
    return lanes


WEIGHTS = st.dictionaries(
    st.sampled_from(["text", "facts", "vectors"]), st.sampled_from([0.25, 0.5, 2.0])
)


def counted(lane: LaneRanking, method: Method) -> list[float]:
    """What each place of a lane counts, as the module's head says."""
    if method == "rrf":
        return [1 / (60 + rank) for rank in range(1, len(lane.ids) + 1)]
    if len(set(lane.scores)) < 2:
        return [1.0] * len(lane.ids)
    least = min(lane.scores)
    spread = max(lane.scores) - least if method == "minmax" else statistics.pstdev(lane.scores)
    return [(score - least) / spread for score in lane.scores]


def modelled(
    lanes: list[LaneRanking], k: int, method: Method, weights: dict[str, float]
) -> list[Fused]:
    found: dict[int, list[tuple[str, int, float]]] = {}
    for lane in lanes:
        for rank, (one, worth) in enumerate(
            zip(lane.ids, counted(lane, method), strict=True), start=1
        ):
            added = weights.get(lane.name, 1.0) * worth
            found.setdefault(int(one), []).append((lane.name, rank, added))
    order: list[tuple[float, int, bool, int]] = sorted(
        (
            -round(sum(added for *_, added in its), 9),
            min(rank for _, rank, _ in its),
            one < 0,
            abs(one),
        )
        for one, its in found.items()
    )
    ids = [-age if is_gathered else age for *_, is_gathered, age in order]
    return [
        Fused(one, -score, tuple(name for name, *_ in found[one]))
        for one, (score, *_) in list(zip(ids, order, strict=True))[:k]
    ]


@given(lanes=lanes_of(), k=st.integers(1, 30), method=st.sampled_from(METHODS), weights=WEIGHTS)
def test_fusion_is_that_of_the_model(
    lanes: list[LaneRanking], k: int, method: Method, weights: dict[str, float]
) -> None:
    fused = fuse(lanes, k, method=method, weights=weights)
    assert fused == modelled(lanes, k, method, weights)


@given(
    lanes=lanes_of(),
    method=st.sampled_from(METHODS),
    weights=WEIGHTS,
    of_turns=WEIGHTS,
    period=st.integers(1, 3),
)
def test_turns_have_the_score_of_their_weights(
    lanes: list[LaneRanking],
    method: Method,
    weights: dict[str, float],
    of_turns: dict[str, float],
    period: int,
) -> None:
    """A turn has the score of a fusion with the weights of turns, and other items keep theirs."""

    def are_turns(ids: I64) -> Mask:
        mask: Mask = ids % period == 0
        return mask

    def adding(ids: I64) -> F64:
        # A single lane has weights only beside signals.
        return np.full(len(ids), float(len(lanes) == 1))

    turns = TurnWeights(of_turns, are_turns)
    scores = {
        hit.id: hit.score
        for hit in fuse(lanes, 100, method=method, weights=weights, turns=turns, adding=adding)
    }
    for of_items, is_turn in ((weights, False), (of_turns, True)):
        for hit in fuse(lanes, 100, method=method, weights=of_items, adding=adding):
            if (hit.id % period == 0) is is_turn:
                assert scores.pop(hit.id) == hit.score
    assert scores == {}


@given(lanes=lanes_of(), method=st.sampled_from(METHODS))
def test_arrays_are_fused_as_lists_are(lanes: list[LaneRanking], method: Method) -> None:
    arrays = [
        LaneRanking(one.name, np.array(one.ids, np.int64), np.array(one.scores)) for one in lanes
    ]
    assert fuse(arrays, 30, method=method) == fuse(lanes, 30, method=method)


@given(lanes=lanes_of(), k=st.integers(1, 10))
def test_fewer_are_the_first_of_more(lanes: list[LaneRanking], k: int) -> None:
    """Among equal scores at the cut the same ones are taken as without it."""
    assert fuse(lanes, k) == fuse(lanes, 100)[:k]


def test_reciprocal_ranks_are_those_of_the_paper() -> None:
    [both, text] = fuse(
        [LaneRanking("text", [7, 9], [8.5, 2.0]), LaneRanking("facts", [9], [1.0])], 10
    )
    assert both == Fused(9, float(round(Fraction(1, 62) + Fraction(1, 61), 9)), ("text", "facts"))
    assert text == Fused(7, float(round(Fraction(1, 61), 9)), ("text",))


def test_one_lane_keeps_its_order_and_its_scores() -> None:
    lane = LaneRanking("text", [9, 3, 7], [8.25, 2.5, 2.5])
    for method in METHODS:
        fused = fuse([lane], 2, method=method, weights={"text": 0.5})
        assert fused == [Fused(9, 8.25, ("text",)), Fused(3, 2.5, ("text",))]
    assert fuse([], 5) == []


def test_equal_scores_count_one_each() -> None:
    """A lane that finds one thing says as much of it as one that finds many says of its best."""
    one, equal = LaneRanking("facts", [4], [0.0]), LaneRanking("vectors", [5, 6], [0.5, 0.5])
    text = LaneRanking("text", [7, 8], [3.0, 1.0])
    found = fuse([text, one, equal], 10, method="minmax")
    assert [hit.id for hit in found] == [4, 5, 7, 6, 8]
    assert [hit.score for hit in found] == [1.0, 1.0, 1.0, 1.0, 0.0]
    found = fuse([text, one, equal], 10, method="zscore")
    assert [hit.id for hit in found] == [7, 4, 5, 6, 8]
    assert [hit.score for hit in found] == [2.0, 1.0, 1.0, 1.0, 0.0]


def test_ties_go_to_the_better_rank_then_to_the_older() -> None:
    """−1 and −2 are of an open transaction: newer than the log, and −1 the older of them."""
    for first, second, third in permutations([(-1, -2), (12, 13), (4, 5)]):
        lanes = [
            LaneRanking("a", first, [1, 1]),
            LaneRanking("b", second, [1, 1]),
            LaneRanking("c", third, [1, 1]),
        ]
        assert [hit.id for hit in fuse(lanes, 6)] == [4, 12, -1, 5, 13, -2]


@pytest.mark.parametrize("method", METHODS)
def test_fusion_takes_far_less_than_adding_up_in_python(method: Method) -> None:
    """Thousands of ids a lane: no id costs a step of Python. Measured: 12 to 14 times."""
    draw = random.Random(7)
    lanes = [
        LaneRanking(
            name,
            draw.sample(range(1, 20_000), 5_000),
            sorted(map(float, range(5_000)), reverse=True),
        )
        for name in ("text", "facts", "vectors")
    ]
    arrays = [LaneRanking(one.name, np.array(one.ids), np.array(one.scores)) for one in lanes]
    slow = seconds(lambda: modelled(lanes, 100, method, {}))
    assert seconds(lambda: fuse(arrays, 100, method=method)) * 3 < slow
