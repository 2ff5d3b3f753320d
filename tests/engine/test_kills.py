"""A share of the kills that docs/reliability.md counts; all by ``python -m tests.engine.kills``."""

import sys

import pytest

from .kills import kill


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_killed_writers_lose_nothing_acknowledged(seed: int) -> None:
    """At random instants of append, batch, seal, checkpoint and opening, one writer or two."""
    tally = kill(100, seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.kills == 100
    assert tally.acknowledged > 100
