"""The arithmetic of Dynamics: equal to plain integers of any size, also at the extremes."""

from collections.abc import Sequence
from math import isqrt
from random import Random

import numpy as np
import pytest
from blake3 import blake3

from cerata.agents.turns.dynamics import predictor as predictors
from cerata.agents.turns.dynamics.features import FEATURES, ONE, VALUE_MAX, Z_MAX, Moments
from cerata.agents.turns.dynamics.predictor import (
    INPUTS,
    STATES,
    Predictor,
    PredictorState,
    Sequel,
)

WEIGHT_MAX = (1 << 31) - 1


def rounded(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) >> bits


def squares(errors: Sequence[int]) -> int:
    return min(sum(error * error for error in errors) // STATES >> 16, (1 << 32) - 1)


class Plain:
    """The predictor in lists of plain integers, which cannot overflow."""

    def __init__(self) -> None:
        self.encoder = predictors._ENCODER.tolist()
        self.sums = [0] * STATES
        self.count = 0
        self.weights = [[0] * INPUTS for _ in range(STATES)]

    def take(self, z: Sequence[int], last: Sequence[int], extras: Sequence[int]) -> list[int]:
        """Return the frozen and the learned surprise, and then the states."""
        state = [max(0, sum(w * x for w, x in zip(row, z, strict=True))) for row in self.encoder]
        mean = [total // max(self.count, 1) for total in self.sums]
        frozen = learned = squares([s - m for s, m in zip(state, mean, strict=True)])
        if last:
            inputs = [x - m for x, m in zip(last, mean, strict=True)] + [*extras, ONE]
            changes = [
                rounded(sum(w * x for w, x in zip(row, inputs, strict=True)), 20)
                for row in self.weights
            ]
            errors = [
                s - min(max(m + change, 0), 9 * ONE)
                for s, m, change in zip(state, mean, changes, strict=True)
            ]
            learned = squares(errors)
            power = (sum(x * x for x in inputs) >> 16) + ONE
            for row, error in zip(self.weights, errors, strict=True):
                step = (error << 20) // power
                for place, x in enumerate(inputs):
                    weight = row[place] + rounded(step * x, 21)
                    row[place] = min(max(weight, -WEIGHT_MAX), WEIGHT_MAX)
        self.sums = [total + s for total, s in zip(self.sums, state, strict=True)]
        self.count += 1
        return [frozen, learned, *state]


@pytest.mark.parametrize("extremes", [False, True])
def test_the_predictor_equals_plain_integers(extremes: bool) -> None:
    """Extremes are z-scores of ±3 alone, which make the greatest inputs, errors and weights."""
    drawn = Random(4)
    plain, state, before = Plain(), PredictorState(), Sequel()
    for number in range(1, 61):
        if extremes:
            z = [drawn.choice((-Z_MAX, Z_MAX)) for _ in FEATURES]
        else:
            z = [drawn.randint(-Z_MAX, Z_MAX) for _ in FEATURES]
        # A new predictor each time: the state as bytes is all of it.
        predictor = Predictor(state)
        scored, states = predictor.take(number, np.array(z, np.int64), 0, before)
        last = np.frombuffer(before.state, "<i4").tolist()
        expected = plain.take(z, last, before[1:])
        assert [scored.frozen, scored.learned] == expected[:2], number
        assert np.frombuffer(states, "<i4").tolist() == expected[2:]
        state = predictor.state
        before = Sequel(states, z[0], drawn.randint(0, ONE), z[1])
    weights = np.frombuffer(state.weights, "<i4").reshape(STATES, INPUTS)
    assert weights.tolist() == plain.weights
    assert state.updates == 59


def test_the_encoder_is_three_features_for_each_state_and_never_changes() -> None:
    encoder = predictors._ENCODER
    assert (np.abs(encoder).sum(axis=1) == 3).all()
    assert set(np.unique(encoder).tolist()) == {-1, 0, 1}
    assert encoder.any(axis=0).all(), "each feature has a state"
    # On disk: another encoder needs another version of the projection.
    assert blake3(encoder.astype("<i1").tobytes()).hexdigest()[:16] == "9831599372826821"


def test_scores_follow_the_moments_before_and_are_clipped() -> None:
    moments = Moments()
    values: list[list[int | None]]
    values = [[3, 5, None], [7, 5, None], [5, 5, 9], [VALUE_MAX + 9, 6, 9], [-4, 5, 10]]
    zeros = [0] * (len(FEATURES) - 3)
    rows = [[*row, *zeros] for row in values]
    scores: list[list[int]] = []
    for row in rows:
        scores.append(moments.scores(row).tolist()[:3])
        moments = Moments(moments.encoded())
        moments.add(row)
    # The mean of 3 and 7 is 5; the deviation of 3, 5, 7 is 1.633, and 65,535 is far beyond.
    assert [row[0] for row in scores[:4]] == [0, 0, 0, Z_MAX]
    assert scores[4][0] < 0
    assert [row[1] for row in scores] == [0, 0, 0, 0, (-1 << 32) // isqrt(3 << 32)]
    assert [row[2] for row in scores] == [0, 0, 0, 0, 0], "no spread yet, or no value"


def test_an_exchange_is_surprising_from_the_90th_percentile_of_those_before() -> None:
    calm, wild = np.zeros(len(FEATURES), np.int64), np.full(len(FEATURES), Z_MAX, np.int64)
    predictor = Predictor(PredictorState())
    flags = [predictor.take(number, calm, 0, Sequel())[0].is_surprising for number in range(32)]
    assert not any(flags)
    assert predictor.take(32, wild, 0, Sequel())[0].is_surprising
    state = predictor.state
    assert state.loss == (predictors.scores_of(state.scores)[-1][2] >> 6)


def test_the_scores_of_256_exchanges_are_kept() -> None:
    predictor = Predictor(PredictorState())
    for number in range(300):
        predictor.take(number, np.zeros(len(FEATURES), np.int64), 1, Sequel())
    scores = predictors.scores_of(predictor.state.scores)
    assert [each[0] for each in scores] == list(range(44, 300))
    assert len(predictor.state.scores) == 256 * 20
