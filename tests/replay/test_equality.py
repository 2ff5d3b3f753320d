"""A share of the histories in docs/measurements.md; all by ``python -m tests.replay.equality``."""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import cerata
from cerata.memory.view import View
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.frames.projection import FramesProjection
from cerata.retrieval.query_language.parser import query

from ..surface import surface
from . import answers, equality
from .equality import Tally, Unequal, compare
from .spending import Spending


@pytest.mark.parametrize("number", range(2))
def test_every_read_at_every_event_is_the_same_in_four_ways(seed: int, number: int) -> None:
    """Native, checkpoint plus tail, full replay, and a store that stopped there."""
    tally = Tally()
    compare(seed + number, 18, tally)
    assert (tally.events, tally.states) == (18, 19)


def test_a_history_of_several_ranges_is_the_same_in_four_ways(seed: int) -> None:
    """Complete ranges and partial ones, at some events."""
    tally = Tally()
    compare(seed, 700, tally, every=350)
    assert tally.states == 3


def test_a_history_of_more_than_a_largest_range_is_the_same_in_four_ways(seed: int) -> None:
    """A chunk of 4,096 events, smaller ones, a digest block that is complete, and one that is not.

    One state, and single frames by sample; more by ``python -m tests.replay.equality``.
    """
    tally = Tally()
    compare(seed, 4_700, tally, first=4_650, every=100, step=100)
    assert (tally.events, tally.states) == (4_700, 1)


def test_two_processes_with_different_hash_seeds_see_the_same(seed: int) -> None:
    """No order of a set, no memory address may enter a state."""
    lines = equality.run_elsewhere(1, seed, (1, 2), events=20)
    assert lines[0] == lines[1]
    assert lines[0].startswith("1 histories of 20 events; 21 states")


def test_every_read_of_a_view_is_compared() -> None:
    """A read that is added to views is added to the comparison."""
    reads = surface(View) - NOT_COMPARED
    source = Path(answers.__file__).read_text(encoding="utf-8")
    called = {name for name in reads if f"view.{name}" in source or f"agents.{name}" in source}
    assert reads - called == set()
    assert len(reads) > 12


NOT_COMPARED = {
    *("basis", "now", "scope", "shared", "history.view", "within"),
    *(
        "at",
        "upkeep.speculate",
        "history.since",
    ),  # compared by test_composed_views and test_composed_diffs
    *("head", "log_id"),  # the log's own
    *("draw_facts", "draw_graph"),  # pictures of what is read
    "stream.projection",  # read through the fold, which it passes on to
}


def test_highlights_of_a_pattern_know_no_word_of_later() -> None:
    """Found by the comparison: a text that was put with other words to be searched by."""
    with cerata.open(":memory:") as store:
        first = store.put_frame("uses HNSW", options=cerata.PutOptions(search_text="index"))
        store.put_frame("HNSW again")
        asked = query("h?sw OR index")
        assert [hit.highlights for hit in store.at(first).search(asked)] == [[]]
        assert [hit.id for hit in store.search(asked) if hit.highlights] == [1, 2]


# --- the comparison can fail ---------------------------------------------------------------------


class CountsCalls(Spending):
    """How often it is called depends on how events are cut."""

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        self.rows["calls"] = self.rows.get("calls", 0) + 1


class RemembersElsewhere(Spending):
    """What is not in rows is lost when it is saved."""

    seen = 0

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        self.seen += len(events)
        self.rows["seen"] = self.seen


class Throws(Spending):
    """Chance."""

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        self.rows["throw"] = random.getrandbits(32)


@pytest.mark.parametrize("impure", [CountsCalls, RemembersElsewhere, Throws])
def test_an_impure_projection_is_caught(seed: int, impure: type[Spending]) -> None:
    """The comparison fails where a fold does not follow from the events alone."""
    with pytest.raises(Unequal, match="native and"):
        compare(seed, 40, Tally(), own=[impure])


def test_a_built_in_projection_made_impure_is_caught(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold in which it matters how events are cut into batches."""
    close = FramesProjection._close

    def forgetful(one: FramesProjection, event: FoldedEvent) -> None:
        # Where the batch began decides: a store that stopped earlier began another one there.
        if one.seq % 2 == 0:
            close(one, event)

    monkeypatch.setattr(FramesProjection, "_close", forgetful)

    def compare_some() -> None:
        # Not every history has a closing where it shows.
        for number in range(8):
            compare(seed + number, 40, Tally())

    with pytest.raises(Unequal, match="native and"):
        compare_some()


HASHED = """
from random import Random
from cerata.projections.registry import Registry
from cerata.replay.fold import replay
from tests.replay import drawn
from tests.replay.spending import Spending

class SetOrdered(Spending):
    def apply(self, events):
        for tag in {one.body.tag for one in events}:
            self.rows["last"] = drawn.WORDS.index(tag)

for seed in range(3):
    with drawn.written(drawn.history(Random(seed), 40)) as log:
        print(sorted(replay(log, 40, Registry([SetOrdered])).digests().items()))
"""


def test_a_projection_that_follows_the_order_of_a_set_is_caught(checkout: Path) -> None:
    """Within one process nothing shows; those with other hash seeds have other digests."""
    seen = [
        subprocess.run(
            [sys.executable, "-c", HASHED],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in (1, 2, 3)
    ]
    assert len(set(seen)) > 1
