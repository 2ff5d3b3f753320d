"""The shortest story that breaks the same rule, and the plainest state in which it does.

A story is shortened by leaving out runs of its operations, the long runs first, as long as the same
rule is broken (the idea is delta debugging, Zeller 2002). Leaves out saving the result (`cases`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..judging.campaign import Failure, Story, Trials

TRIES_MAX = 60
"""Shorter stories that are tried: each is recorded and crashed again."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest story found, and its plainest failure."""

    operations: tuple[str, ...]
    failure: Failure


def shrink(
    operations: Sequence[str],
    failure: Failure,
    recorded: Callable[[Sequence[str]], Story],
    make: Callable[[], Trials],
) -> Shrunk:
    """Return the shortest story that fails as ``failure`` does.

    ``recorded`` records a story, ``make`` builds a campaign without memory of other campaigns.
    """
    rule = failure.finding.rule

    def failing(acts: Sequence[str]) -> Failure | None:
        campaign = make()
        campaign.failures_max = 8
        try:
            failures = campaign.check(recorded(acts)).failures
        except Exception:  # noqa: BLE001 - it fails in another way
            return None
        alike = [failure for failure in failures if failure.finding.rule == rule]
        return min(alike, key=_plainness) if alike else None

    best = Shrunk(tuple(operations), failing(operations) or failure)
    tries = 0
    size = len(best.operations) // 2 or 1
    while size:
        at = 0
        while at + size <= len(best.operations) and tries < TRIES_MAX:
            shorter = (*best.operations[:at], *best.operations[at + size :])
            tries += 1
            shorter_failure = failing(shorter)
            if shorter_failure is None:
                at += size
            else:
                best = Shrunk(shorter, shorter_failure)
        size //= 2
    return best


def _plainness(failure: Failure) -> tuple[int, int, int]:
    """Fewer tears first, then fewer sectors that deviate from all there or all missing."""
    state = failure.state
    missing = sum(
        version < len(history.versions) - 1
        for history, version in zip(state.epoch.sectors, state.versions, strict=True)
    )
    return len(state.tears), min(missing, len(state.versions) - missing), len(state.versions)
