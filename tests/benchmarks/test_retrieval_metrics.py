"""Metrics, the paired bootstrap and saved runs, against figures calculated by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval import run_file
from benchmarks.retrieval.bootstrap import Difference, differences
from benchmarks.retrieval.metrics import gain, mean, recall, session_scores, turn_scores
from benchmarks.retrieval.run_file import SavedRun
from cerata import InvalidInput, NotFound, StorageFailed

RANKED = ["a", "x", "b", "y", "z", "w", "c"]


def test_metrics_equal_a_calculation_by_hand() -> None:
    """Relevant at the ranks 1, 3 and 7, and one never found."""
    relevant = dict.fromkeys(list("abcd"), 1.0)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    reached = 1 + 1 / math.log2(4) + 1 / math.log2(8)
    scores = turn_scores(RANKED, relevant)
    assert math.isclose(scores.pop("nDCG@10"), reached / best)
    assert scores == {"R@5": 0.5, "R@10": 0.75, "R@20": 0.75}
    assert recall(RANKED, relevant, 1) == 0.25


def test_grades_are_gains() -> None:
    """A better document counts more, and the best order begins with it."""
    relevant = {"x": 3.0, "a": 1.0}
    best = 3 + 1 / math.log2(3)
    assert math.isclose(gain(RANKED, relevant, 10), (1 + 3 / math.log2(3)) / best)
    assert gain(["x", "a"], relevant, 10) == 1.0
    assert gain([], relevant, 10) == 0.0


def test_ten_places_are_the_most_that_the_best_order_counts() -> None:
    """With twenty relevant documents ten of them are a perfect page."""
    relevant = dict.fromkeys(map(str, range(20)), 1.0)
    assert math.isclose(gain([str(place) for place in range(10)], relevant, 10), 1.0)
    assert recall([str(place) for place in range(10)], relevant, 10) == 0.5


def test_a_session_ranks_at_its_first_turn() -> None:
    """Six sessions by their first turns; two are relevant, at the ranks 2 and 6."""
    ranked = ["a1", "b1", "a2", "c1", "d1", "e1", "f1"]
    sessions = {name: name[0] for name in [*ranked, "b2", "f2"]}
    scores = session_scores(ranked, {"b2": 1.0, "f2": 1.0}, sessions)
    assert scores == {"session R@10": 1.0, "session any@5": 1.0}
    assert session_scores(ranked, {"f1": 1.0}, sessions)["session any@5"] == 0.0
    assert session_scores(ranked[:5], {"b1": 1.0, "f1": 1.0}, sessions)["session R@10"] == 0.5
    assert session_scores(ranked, {"lone": 1.0}, sessions) == {}


def test_a_mean_is_over_the_questions_that_have_the_metric() -> None:
    """A turn outside of sessions has no rank of a session."""
    assert mean([{"R@5": 1.0}, {"R@5": 0.0, "any": 0.5}]) == {"R@5": 0.5, "any": 0.5}


# --- the bootstrap -------------------------------------------------------------------------------


def scores_of(*values: float) -> dict[str, dict[str, float]]:
    return {str(place): {"R@10": value} for place, value in enumerate(values)}


def test_a_constant_difference_has_an_interval_without_width() -> None:
    """Each resample has the same mean."""
    [change] = differences(scores_of(1.0, 0.75, 0.5), scores_of(0.75, 0.5, 0.25)).values()
    assert change == Difference(0.75, 0.5, 0.25, 0.25, 0.25, 3, 0)


def test_the_interval_is_that_of_the_normal_distribution_for_many_questions() -> None:
    """Half of 400 differences are 0 and half 1: the mean is 0.5 with a deviation of 0.025."""
    change = differences(scores_of(*[1.0] * 400), scores_of(*[0.0, 1.0] * 200))["R@10"]
    assert (change.mean, change.better, change.worse) == (0.5, 200, 0)
    assert math.isclose(change.low, 0.5 - 1.96 * 0.025, abs_tol=0.003)
    assert math.isclose(change.high, 0.5 + 1.96 * 0.025, abs_tol=0.003)


def test_pairs_and_not_runs_are_drawn() -> None:
    """Two runs that differ on one question of 100 differ surely little, however both vary."""
    first = [float(place % 2) for place in range(100)]
    second = [*first[:-1], 0.0]
    change = differences(scores_of(*first), scores_of(*second))["R@10"]
    assert (change.low, change.better) == (0.0, 1)
    assert change.high <= 0.05


def test_equal_runs_have_equal_intervals() -> None:
    """The seed is fixed: a repeated comparison prints the same."""
    first, second = scores_of(1.0, 0.0, 0.5, 0.25), scores_of(0.0, 0.0, 1.0, 0.5)
    assert differences(first, second) == differences(first, second)
    assert differences(first, second, resamples=1_200) != differences(first, second)


def test_runs_with_different_questions_are_not_compared() -> None:
    """A difference of other questions is no difference of rankings."""
    with pytest.raises(InvalidInput, match="1 are in one alone, such as '1'"):
        differences(scores_of(1.0, 1.0), scores_of(1.0))


# --- saved runs ----------------------------------------------------------------------------------

RUN = SavedRun("talk", "61e82f", "embedder none", scores_of(1.0, 0.5))


def test_a_saved_run_is_read_again(tmp_path: Path) -> None:
    """The state before is measured once."""
    run_file.save(RUN, tmp_path / "run.json")
    assert run_file.load(tmp_path / "run.json") == RUN


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"set": None},
        {"scores": {}},
        {"scores": []},
        {"scores": {"q": 1}},
        {"scores": {"q": {}}},
        {"scores": {"q": {"R@10": "1"}}},
        {"scores": {"q": {"R@10": math.nan}}},
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Another JSON file by mistake would compare nothing."""
    path = tmp_path / "run.json"
    run_file.save(RUN, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(InvalidInput) as caught:
        run_file.load(path)
    assert caught.value.where == str(path)


def test_a_run_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A path with a slip ends with the path, not with a trace."""
    path = tmp_path / "none" / "run.json"
    with pytest.raises(StorageFailed, match=r"run\.json"):
        run_file.save(RUN, path)
    with pytest.raises(NotFound, match=r"run\.json"):
        run_file.load(path)
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InvalidInput, match="must be an object"):
        run_file.load(tmp_path / "list.json")
