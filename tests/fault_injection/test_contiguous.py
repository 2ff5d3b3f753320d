"""A share of the sweep over damaged ranges; all of it by the command in docs/reliability.md."""

import sys

import pytest

from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..crash.sweeps.damaged_ranges import KINDS, damage


def test_no_range_of_damage_takes_an_acknowledged_batch_in_silence(seed: int) -> None:
    """Of any length, in closed files and in those of killed writers; each refusal is repeated."""
    tally = damage(300, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.damages == 300
    assert tally.by_kind.keys() == set(KINDS)
    assert tally.outcomes["refused"] > 50
    # What cannot be reported is rare: an older image of all proofs, or an unproven batch.
    windows = [count for name, count in tally.outcomes.items() if name.startswith("window")]
    assert sum(windows) < 30


_PROOF = Edit(
    "cerata.engine.log_file.recovery:_beyond",
    "max([*claims, *named, page.closed_seq])",
    "max(claims)",
)
_CLOSE = Edit("cerata.engine.log_file.writer:Writer.close_log", "closed_seq=head", "closed_seq=0")
_BOTH = Edit("cerata.engine.log_file.recovery:examine", "not named and head <= named_seq", "False")
_TURNS = Edit("cerata.engine.log_file.writer:Writer._witness", "1 - numbers[-1]", "numbers[-1]")

OFF = {
    "witnesses are not believed": _PROOF,
    "a clean close names no head in a page": _CLOSE,
    "two bad witnesses are repaired": _BOTH,
    "witnesses do not take turns": _TURNS,
}


@pytest.mark.parametrize("name", OFF)
def test_without_the_witnesses_the_sweep_finds_silent_losses(name: str) -> None:
    """Each is needed: switched off, some range takes what was acknowledged and nothing says so.

    Without turns a loss needs one range of about 2,000, so later seeds are drawn until one is hit.
    """
    with Plant(name, "damage", (OFF[name],)).planted():
        sweeps = (damage(1_000, seed=seed) for seed in range(6))
        assert any("in silence" in problem for sweep in sweeps for problem in sweep.problems)
