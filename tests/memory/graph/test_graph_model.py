"""The graph over facts, and links between them, against a model: random histories, every event.

    CERATA_HISTORIES=2000 pytest tests/memory/graph/test_graph_model.py -n 2

The models (`tests.projections.facts.graph_model`, `link_model`) try every path and every chain. A
view of the past, a store that opened with a checkpoint, a replay, an open transaction, and whatever
a crash leaves behind must all answer as they do.
"""

import os
from collections.abc import Sequence
from random import Random

from hypothesis import given

from cerata import Store, View
from cerata.fault_injection.testing import assert_crash_safe

from ..facts import questions as fact_questions
from ..facts.acts import LINKED_KINDS, Act, perform
from ..facts.histories import PRELUDE, batches_of, random_act, run
from ..facts.questions import times_in
from ..facts.world import events_of
from ..model_check import ModelCheck, Sayings
from .questions import ask, drawn, questions

HISTORIES = int(os.environ.get("CERATA_HISTORIES", "10"))
IS_LONG = HISTORIES > 10
COUNT = 200 if IS_LONG else 12
"""Questions to each view."""


def ask_some(view: View, seed: int) -> None:
    """Ask some questions by chance, of the graph and of facts and links."""
    ask(view, drawn(view, COUNT, seed))
    fact_questions.ask(view, fact_questions.drawn(view, COUNT // 4, seed))


CHECK = ModelCheck(ask_some, HISTORIES, IS_LONG)


@CHECK.settings
@given(batches=batches_of(LINKED_KINDS))
def test_every_view_walks_as_the_model(batches: Sequence[Sequence[Act]]) -> None:
    CHECK.everywhere(batches)


def test_every_question_of_one_history(seed: int) -> None:
    """Drawn without Hypothesis, so that it is long; nothing is left out at its end."""
    dice = Random(seed)
    batches = [*PRELUDE, *[[random_act(dice, LINKED_KINDS)] for _ in range(40)]]
    with run(batches, CHECK.transaction).open() as store:
        view = store.history.view()
        assert ask(view, questions(view, times_in(events_of(view))[1::9])) > 300


class Links(Sayings):
    kinds = LINKED_KINDS
    checked = CHECK

    def prepare(self, store: Store) -> None:
        for _ in range(12):
            perform(store, random_act(self.random, LINKED_KINDS))


def test_what_a_crash_leaves_walks_as_the_model_of_its_log() -> None:
    report = assert_crash_safe(Links, stories=6)
    assert report.states > 50
