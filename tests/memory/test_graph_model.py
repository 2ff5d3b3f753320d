"""The graph over facts, and links between them, against a model: random histories, every event.

    CERATA_HISTORIES=2000 pytest tests/memory/test_graph_model.py -n 2

The models (`tests.projections.graph_model`, `link_model`) try every path and every chain. A view
of the past, a store that opened with a checkpoint, a replay, an open transaction, and whatever a
crash leaves behind must all answer as they do.
"""

import os
from collections.abc import Collection, Sequence
from random import Random

from hypothesis import HealthCheck, given, settings

from cerata import Store, View
from cerata.engine.events import Scope
from cerata.fault_injection.testing import Workload, assert_crash_safe, operation

from . import fact_acts
from .fact_acts import (
    LINKED_KINDS,
    PRELUDE,
    VIEWS,
    Act,
    batches_of,
    events_of,
    perform,
    run,
    times_in,
)
from .graph_acts import ask, drawn, questions

HISTORIES = int(os.environ.get("CERATA_HISTORIES", "10"))
IS_LONG = HISTORIES > 10
COUNT = 200 if IS_LONG else 12
"""Questions to each view."""

histories = settings(
    max_examples=HISTORIES,
    derandomize=not IS_LONG,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(view: View, scopes: Collection[Scope | None] = (None,)) -> None:
    """Ask some questions by chance, in each scope."""
    size = view.basis + len(view.gathered)
    for number, scope in enumerate(scopes):
        ask(view.within(scope), drawn(view, COUNT, 10 * size + number))
        asked = fact_acts.drawn(view, COUNT // 4, 10 * size + number)
        fact_acts.ask(view.within(scope), asked)


def check_transaction(store: Store) -> None:
    view = store.view()
    check(view, VIEWS if IS_LONG else [VIEWS[len(view.gathered) % len(VIEWS)]])


@histories
@given(batches=batches_of(LINKED_KINDS))
def test_every_view_walks_as_the_model(batches: Sequence[Sequence[Act]]) -> None:
    """At each event: natively, after a checkpoint, and by a replay; in every scope."""
    history = run(batches, check_transaction)
    with history.open() as store:
        end = store.view().basis
        for n in range(end + 1):
            check(store.at(n), VIEWS if IS_LONG else (None, VIEWS[n % len(VIEWS)]))
        store.checkpoint()
    with history.open() as store:
        for n in range(0, end + 1, 1 if IS_LONG else 7):
            check(store.at(n))
            check(store.replay(n))


def test_every_question_of_one_history(seed: int) -> None:
    """Drawn without Hypothesis, so that it is long; nothing is left out at its end."""
    dice = Random(seed)
    batches = [*PRELUDE, *[[_act(dice)] for _ in range(40)]]
    with run(batches, check_transaction).open() as store:
        view = store.view()
        assert ask(view, questions(view, times_in(events_of(view))[1::9])) > 300


def _act(dice: Random) -> Act:
    i, j, k, m = (dice.randrange(60) for _ in range(4))
    return dice.choice(LINKED_KINDS), i, j, k, m


class Acts(Workload):
    """Says things of a few entities; whatever is left must follow from the log that is left."""

    def prepare(self, store: Store) -> None:
        for _ in range(12):
            perform(store, _act(self.random))

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


def test_what_a_crash_leaves_walks_as_the_model_of_its_log() -> None:
    report = assert_crash_safe(Acts, stories=6)
    assert report.states > 50
