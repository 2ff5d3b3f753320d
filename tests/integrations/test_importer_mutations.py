"""A share of the mutations of `importer_mutations`; the command tries 10,000 of each kind."""

import pytest

from .importer_mutations import KINDS, run


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_of_a_mutated_source_is_lost_without_a_count(kind: str, seed: int) -> None:
    """And no raw error; a fault names its seed."""
    outcomes, faults = run(kind, 12, seed)
    assert faults == []
    assert outcomes.total() == 12
