"""A share of the mutations of `importer_mutations`; the command tries 10,000 of each kind."""

import random
from pathlib import Path

import pytest

from .importer_mutations import KINDS, run


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_of_a_mutated_source_is_lost_without_a_count(kind: str, seed: int) -> None:
    """And no raw error; a fault names its seed."""
    outcomes, faults = run(kind, 12, seed)
    assert faults == []
    assert outcomes.total() == 12


def test_a_metadata_key_whose_only_value_is_unusable_is_left_out(tmp_path: Path) -> None:
    """An empty list of values raised `IndexError`; found by the mutations."""
    outcome, fault = KINDS["chroma"](random.Random("chroma 21 2543"), tmp_path)
    assert (outcome, fault) == ("whole", None)
