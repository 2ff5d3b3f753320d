"""A share of the kills that docs/reliability.md counts; all by ``python -m tests.engine.kills``."""

import sys

import pytest

from ..crash.mutants import BY_NAME
from .kills import AWAITED_MAX, kill

pytestmark = [
    pytest.mark.slow("kills hundreds of writers"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_killed_writers_lose_nothing_acknowledged(seed: int) -> None:
    """At random instants of append, batch, supersede, seal, checkpoint and opening."""
    tally = kill(100, seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.kills == 100
    assert tally.acknowledged >= tally.awaited > 100 * AWAITED_MAX / 4
    assert tally.replayed > 5


@pytest.mark.unwatched("the kills have to notice it, not the monitor in a child")
def test_a_writer_that_acknowledges_before_it_writes_is_caught(seed: int) -> None:
    """The kills prove that a record is written before it is acknowledged; here it is not.

    Mostly the parent misses what it was told; or a later record proves what is not there, or
    another writer sees the log go back.
    """
    lost = "was acknowledged and is lost|were acknowledged and cannot be read|The log went back"
    lost += "|restored while it was open"
    with (
        BY_NAME["acknowledge before the record is written"].planted(),
        pytest.raises(AssertionError, match=lost),
    ):
        kill(100, seed)
