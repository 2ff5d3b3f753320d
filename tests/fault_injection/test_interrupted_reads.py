"""A share of the interrupts in reads; all by the commands in docs/reliability.md."""

import sys

import pytest

from ..crash.read_stores import KINDS
from ..crash.sweeps.interrupted_reads import sweep_reads
from ..crash.sweeps.timer_signals import interrupt

ASKED = {
    "words": ("search", 250),
    "facts": ("facts", 250),
    "vectors": ("search, by vectors", 250),
    "own projections": ("stream.projection", 60),
}
"""A read of each kind of store that folds what the kind is about, and the share of its strikes."""


@pytest.mark.slow("sweeps over the functions of each read")
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_in_a_read_changes_no_answer(kind: str, seed: int) -> None:
    """An interrupted search left half of the index, and a checkpoint kept it."""
    read, share = ASKED[kind]
    tally = sweep_reads(kinds=[kind], reads=[read], share=share, seed=seed, events=30)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.raised > 5


@pytest.mark.slow("signals at drawn times")
def test_ctrl_c_in_a_cold_read_changes_no_answer(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal comes inside numpy too, where no trace function sees."""
    monkeypatch.setattr("tests.crash.sweeps.timer_signals.SIZES", {30: 1})
    tally = interrupt(16, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.raised == 16
