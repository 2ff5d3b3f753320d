"""Learning weights: planted weights are found, and few questions change little."""

import numpy as np
import pytest

from cerata.packs.tuning.learning import JudgedList, fitted
from cerata.projections.columnar.columns import F64

PLANTED = np.array([1.0, 0.5, 0.0, -0.8])
EARLIER = np.array([1.0, 1.0, 1.0, 0.0])
FREE = np.zeros(4, np.bool_)


def judged(count: int, weights: F64, *, seed: int) -> list[JudgedList]:
    """Return questions of 40 candidates, the best of which by the weights and noise is relevant."""
    source = np.random.default_rng(seed)
    lists: list[JudgedList] = []
    for _ in range(count):
        features = source.normal(size=(40, len(weights)))
        scores = features @ weights + source.gumbel(scale=0.2, size=40)
        lists.append(JudgedList(features, (scores == scores.max()).astype(np.float64)))
    return lists


def direction(weights: F64) -> F64:
    return np.asarray(weights / np.linalg.norm(weights))


def test_planted_weights_are_found(seed: int) -> None:
    """The planted weights differ from the earlier ones in size, and one in sign."""
    weights = fitted(judged(400, PLANTED, seed=seed), EARLIER, FREE)
    assert float(direction(weights) @ direction(PLANTED)) > 0.99


def test_a_weight_that_must_not_fall_below_0_is_0(seed: int) -> None:
    """A lane cannot lower a score; the remaining weights fit without it."""
    weights = fitted(judged(400, PLANTED, seed=seed), EARLIER, np.ones(4, np.bool_))
    assert weights[3] == 0.0
    assert float(direction(weights[:3]) @ direction(PLANTED[:3])) > 0.98


def test_few_questions_change_little(seed: int) -> None:
    """Three questions fit by chance; a thousand do not."""
    few = fitted(judged(3, PLANTED, seed=seed), EARLIER, FREE)
    many = fitted(judged(300, PLANTED, seed=seed), EARLIER, FREE)
    to_earlier = direction(EARLIER)
    assert float(direction(few) @ to_earlier) > 0.95 > float(direction(many) @ to_earlier)


def test_a_feature_that_no_candidate_has_keeps_its_share() -> None:
    """Without vectors nothing is learned about their lane."""
    lists = [
        JudgedList(np.hstack([each.features, np.zeros((40, 1))]), each.grades)
        for each in judged(50, PLANTED, seed=1)
    ]
    earlier = np.array([*EARLIER, 0.5])
    weights = fitted(lists, earlier, np.zeros(5, np.bool_))
    without = fitted(
        [JudgedList(each.features[:, :4], each.grades) for each in lists], EARLIER, FREE
    )
    assert weights[:4] == pytest.approx(without, abs=1e-6)
    assert weights[4] > 0


def test_grades_divide_the_weight_of_a_question() -> None:
    """The best of two relevant candidates leads if its grade is higher."""
    features = np.eye(3)
    weights = fitted([JudgedList(features, np.array([3.0, 1.0, 0.0]))] * 50, np.ones(3), FREE[:3])
    assert weights[0] > weights[1] > weights[2]


def test_perfect_orders_end_the_fit() -> None:
    """The loss falls without end as weights grow, so only the pull ends the growth."""
    lists = [JudgedList(np.array([[1.0], [0.0]]), np.array([1.0, 0.0]))] * 20
    weights = fitted(lists, np.ones(1), np.zeros(1, np.bool_))
    assert np.isfinite(weights).all()
    assert weights[0] > 0


def test_the_fit_is_repeatable(seed: int) -> None:
    """No start and no random number decides."""
    lists = judged(100, PLANTED, seed=seed)
    assert (fitted(lists, EARLIER, FREE) == fitted(lists, EARLIER, FREE)).all()
