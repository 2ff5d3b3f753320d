"""Histories of random acts: how they are drawn, and how they are written.

The clock stands still within an act and times are drawn from the same few seconds, so that starts,
ends and recordings are often equal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

import cerata
from cerata import Store
from cerata.engine.disk.environment import Environment

from ...clocks import StandingClock
from .acts import KINDS, Act, perform
from .world import STEP_US, environment

PRELUDE: Sequence[Sequence[Act]] = [
    [("functional", 0, 1, 0, 0)],
    [("functional", 1, 1, 0, 0), ("functional", 0, 1, 0, 4)],
]
"""Both predicates have one value at a time; in the other tenant one has."""


def _begun(count: int, batches: list[list[Act]]) -> list[Sequence[Act]]:
    return [*PRELUDE[:count], *batches]


def batches_of(kinds: Sequence[str]) -> st.SearchStrategy[list[Sequence[Act]]]:
    """Return what draws histories of acts of some kinds."""
    acts: st.SearchStrategy[Act] = st.tuples(
        st.sampled_from(kinds), *[st.integers(0, 59) for _ in range(4)]
    )
    batches = st.lists(st.lists(acts, min_size=1, max_size=3), min_size=8, max_size=20)
    return st.builds(_begun, st.integers(0, len(PRELUDE)), batches)


BATCHES = batches_of(KINDS)


def random_act(dice: Random, kinds: Sequence[str]) -> Act:
    """Draw an act without Hypothesis."""
    i, j, k, m = (dice.randrange(60) for _ in range(4))
    return dice.choice(kinds), i, j, k, m


@dataclass
class History:
    """What acts made: the environment that the store lives in, and its clock."""

    environment: Environment
    clock: StandingClock
    path: str = "facts.cera"

    def open(self) -> Store:
        return cerata.open(self.path, environment=self.environment)


def run(batches: Sequence[Sequence[Act]], within: Callable[[Store], None]) -> History:
    """Write a history: a batch of one act is a call, of several a transaction.

    ``within`` is called in each transaction, after each of its acts.
    """
    history = History(*environment())
    with history.open() as store:
        for acts in batches:
            history.clock.time_us += STEP_US // 2
            if len(acts) == 1:
                _perform_alone(store, acts[0], history)
                continue
            with store.transaction():
                for act in acts:
                    perform(store, act)
                    within(store)
    return history


def _perform_alone(store: Store, act: Act, history: History) -> None:
    if act[0] == "wait":
        history.clock.time_us += act[1] % 4 * STEP_US // 2
    elif act[0] == "checkpoint":
        store.checkpoint()
    else:
        perform(store, act)
