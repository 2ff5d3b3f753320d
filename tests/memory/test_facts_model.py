"""Facts against a model by brute force: random histories, every question, at every event.

    CERATA_HISTORIES=2000 pytest tests/memory/test_facts_model.py -n 2

The model (`tests.projections.fact_model`) is docs/facts.md as loops over the log's events. A view
of the past, a store that opened with a checkpoint, a replay, an open transaction, and whatever a
crash leaves behind must all answer as it does, to every question of every shape. The quick run
asks a share of them, and all of them of a few histories.
"""

import os
from collections.abc import Collection, Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cerata import Store, View
from cerata.engine.events import Scope
from cerata.fault_injection.testing import Workload, assert_crash_safe, operation
from cerata.projections.intervals import Interval

from .fact_acts import BATCHES, KINDS, PRELUDE, VIEWS, Act, ask, drawn, perform, questions, run

HISTORIES = int(os.environ.get("CERATA_HISTORIES", "20"))
IS_LONG = HISTORIES > 20
COUNT = 100 if IS_LONG else 6
"""Questions to each view, besides those that ask for everything."""
STORIES = HISTORIES if IS_LONG else 12

histories = settings(
    max_examples=HISTORIES,
    derandomize=not IS_LONG,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(view: View, scopes: Collection[Scope | None] = (None,)) -> None:
    """Ask for everything, and some questions by chance, in each scope."""
    size = view.basis + len(view.gathered)
    for number, scope in enumerate(scopes):
        ask(view.within(scope), drawn(view, COUNT, 10 * size + number))


def check_transaction(store: Store) -> None:
    view = store.view()
    check(view, VIEWS if IS_LONG else [VIEWS[len(view.gathered) % len(VIEWS)]])


def check_everywhere(batches: Sequence[Sequence[Act]]) -> None:
    """Compare at each event: natively, after a checkpoint, and by a replay; in every scope."""
    history = run(batches, check_transaction)
    with history.open() as store:
        end = store.view().basis
        for n in range(end + 1):
            check(store.at(n), VIEWS if IS_LONG else (None, VIEWS[n % len(VIEWS)]))
        store.checkpoint()
    with history.open() as store:
        for n in range(end + 1):
            check(store.at(n))
            if IS_LONG or n % 8 == end % 8:
                check(store.replay(n))


@histories
@given(batches=BATCHES)
def test_every_view_answers_as_the_model(batches: Sequence[Sequence[Act]]) -> None:
    check_everywhere(batches)


def test_every_question_of_one_history(seed: int) -> None:
    """Drawn without Hypothesis, so that it is long; nothing is left out at its end."""
    dice = Random(seed)
    batches = [*PRELUDE, *[[_act(dice)] for _ in range(16)]]
    with run(batches, check_transaction).open() as store:
        asked = questions(store.view())
        assert ask(store.view(), asked) > 2_000


def _act(dice: Random) -> Act:
    i, j, k, m = (dice.randrange(60) for _ in range(4))
    return dice.choice(KINDS), i, j, k, m


# --- crashes -------------------------------------------------------------------------------------


class Facts(Workload):
    """Says things of a few entities; whatever is left must follow from the log that is left."""

    def prepare(self, store: Store) -> None:
        for acts in PRELUDE:
            for act in acts:
                perform(store, act)

    @operation
    def say(self, store: Store) -> None:
        perform(store, _act(self.random))

    @operation
    def say_much(self, store: Store) -> None:
        with store.transaction():
            for _ in range(4):
                perform(store, _act(self.random))

    def check(self, store: Store) -> None:
        check(store.view())
        check(store.replay())


def test_what_a_crash_leaves_answers_as_the_model_of_its_log() -> None:
    report = assert_crash_safe(Facts, stories=STORIES)
    assert report.states > 100


# --- the model sees what it should ---------------------------------------------------------------


def test_the_model_tells_a_store_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instant at the end of a range, taken for one within, is noticed."""

    def overlaps(one: Interval, other: Interval) -> bool:
        return max(one.start, other.start) <= min(one.end, other.end)

    monkeypatch.setattr(Interval, "overlaps", overlaps)

    @settings(histories, phases=[Phase.generate])
    @given(batches=BATCHES)
    def compared(batches: Sequence[Sequence[Act]]) -> None:
        check_everywhere(batches)

    with pytest.raises(AssertionError, match="overlapping"):
        compared()
