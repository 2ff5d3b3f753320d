"""Facts against a model by brute force: random histories, every question, at every event.

    CERATA_HISTORIES=2000 pytest tests/memory/facts/test_facts_model.py -n 2

The model (`tests.projections.facts.fact_model`) is docs/facts.md as loops over the log's events. A
view of the past, a store that opened with a checkpoint, a replay, an open transaction, and whatever
a crash leaves behind must all answer as it does, to every question of every shape. The quick run
asks a share of them, and all of them of a few histories.
"""

import os
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import Phase, given, settings

from cerata import Store, View
from cerata.fault_injection.testing import assert_crash_safe
from cerata.projections.columnar.times import Interval

from ..model_check import ModelCheck, Sayings
from .acts import KINDS, Act, perform
from .histories import BATCHES, PRELUDE, random_act, run
from .questions import ask, drawn, questions

HISTORIES = int(os.environ.get("CERATA_HISTORIES", "20"))
IS_LONG = HISTORIES > 20
COUNT = 100 if IS_LONG else 6
"""Questions to each view, besides those that ask for everything."""
STORIES = HISTORIES if IS_LONG else 12


def ask_some(view: View, seed: int) -> None:
    """Ask for everything, and some questions by chance."""
    ask(view, drawn(view, COUNT, seed))


CHECK = ModelCheck(ask_some, HISTORIES, IS_LONG)


@pytest.mark.slow("compares every view of drawn facts with a model")
@CHECK.settings
@given(batches=BATCHES)
def test_every_view_answers_as_the_model(batches: Sequence[Sequence[Act]]) -> None:
    CHECK.everywhere(batches)


def test_every_question_of_one_history(seed: int) -> None:
    """Drawn without Hypothesis, so that it is long; nothing is left out at its end."""
    dice = Random(seed)
    batches = [*PRELUDE, *[[random_act(dice, KINDS)] for _ in range(16)]]
    with run(batches, CHECK.transaction).open() as store:
        asked = questions(store.history.view())
        assert ask(store.history.view(), asked) > 2_000


# --- crashes -------------------------------------------------------------------------------------


class Facts(Sayings):
    kinds = KINDS
    checked = CHECK

    def prepare(self, store: Store) -> None:
        for acts in PRELUDE:
            for act in acts:
                perform(store, act)


def test_what_a_crash_leaves_answers_as_the_model_of_its_log() -> None:
    report = assert_crash_safe(Facts, stories=STORIES)
    assert report.states > 100


# --- the model sees what it should ---------------------------------------------------------------


def test_the_model_tells_a_store_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instant at the end of a range, taken for one within, is noticed."""

    def overlaps(one: Interval, other: Interval) -> bool:
        return max(one.start, other.start) <= min(one.end, other.end)

    monkeypatch.setattr(Interval, "overlaps", overlaps)

    @settings(CHECK.settings, phases=[Phase.generate])
    @given(batches=BATCHES)
    def compared(batches: Sequence[Sequence[Act]]) -> None:
        CHECK.everywhere(batches)

    with pytest.raises(AssertionError, match="overlapping"):
        compared()
