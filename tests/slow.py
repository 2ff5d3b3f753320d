"""The mark ``slow``: a test that `.ci/nightly` runs and a change does not, with the reason.

`.ci/run` has 20 minutes on 2 cores. A test is slow if it takes more than `SECONDS_MAX` of processor
time, if the crash gate of each change tries the same states and more, or if it compares times.
"""

import os
from typing import Final

import pytest

SECONDS_MAX: Final = 10.0
"""Of processor time, on an idle machine."""

SECONDS_FAIL: Final = 9 * SECONDS_MAX
"""A run fails a test above this: beside eight programs on two cores a test of 10 s took 37 s."""


def seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def check_reason(mark: pytest.Mark, place: str) -> None:
    """Refuse a mark ``slow`` without its reason.

    Raises:
        pytest.UsageError: the mark has not exactly one argument, a text of two words at least.
    """
    reason = mark.args[0] if len(mark.args) == 1 else None
    if isinstance(reason, str) and len(reason.split()) > 1:
        return
    raise pytest.UsageError(f"{place}: slow must have its reason: slow('tries 2,000 files')")


def check_time(is_slow: bool, taken: float) -> None:
    """Fail a test that took longer than a test of a change may.

    Raises:
        AssertionError: the test is not marked ``slow`` and took more than `SECONDS_FAIL`.
    """
    assert is_slow or taken <= SECONDS_FAIL, (
        f"The test took {taken:.1f} s of processor time, and a change has {SECONDS_MAX:.0f} s for"
        " one test. Make the test smaller, or mark it slow with the reason."
    )
