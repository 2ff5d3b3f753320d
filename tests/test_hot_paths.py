"""Each hot path beside a floor or peer of the same run: twice as slow fails, noise does not."""

from collections.abc import Generator, Iterable
from typing import cast

import pytest

from . import hot_paths
from .hot_paths import ATTEMPTS, HOT_PATHS, HotPath, Sides, slowed, too_slow

pytestmark = pytest.mark.unwatched("it measures")

# tests/test_calls.py bounds the work of the calls at each change.
compares_times = pytest.mark.slow("compares times, which other programs on the machine change")

Guarded = tuple[HotPath, Sides]


@pytest.fixture(scope="module", params=HOT_PATHS, ids=[path.name for path in HOT_PATHS])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Guarded]:
    """A path, and both sides of its work."""
    path = cast("HotPath", request.param)
    with path.sides(tmp_path_factory.mktemp(path.name)) as sides:
        yield path, sides


@compares_times
def test_a_hot_path_keeps_its_ratio(guarded: Guarded) -> None:
    """The records are in `tests/hot_paths.py`; a later change must not take the gain away."""
    assert too_slow(*guarded) == []


@compares_times
def test_a_hot_path_twice_as_slow_is_seen(guarded: Guarded) -> None:
    """A delay is planted into the code of the path, which the guard must find."""
    path, sides = guarded
    with slowed(path, sides):
        ratios = too_slow(path, sides)
    assert len(ratios) == ATTEMPTS


def play(ratios: Iterable[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let attempts give these ratios."""
    left = iter(ratios)

    def ratio(sides: Sides) -> float:
        return next(left)

    monkeypatch.setattr(hot_paths, "ratio", ratio)


@pytest.mark.parametrize("good", range(ATTEMPTS))
def test_noise_in_all_attempts_but_one_fails_nothing(
    good: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program can take the core for seconds, and makes no path slow for good."""
    path = HOT_PATHS[0]
    play([5 * path.ratio] * good + [path.ratio], monkeypatch)
    assert too_slow(path, Sides(list, list)) == []


def test_a_loss_in_every_attempt_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict above, seen failing; its ratios are in the message."""
    path = HOT_PATHS[0]
    play([2 * path.ratio] * ATTEMPTS, monkeypatch)
    assert too_slow(path, Sides(list, list)) == [2 * path.ratio] * ATTEMPTS
