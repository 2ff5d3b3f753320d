"""Every view of a random history held against a model, whatever it is asked.

What is asked is the caller's: a function of a view and a seed that asks some questions and asserts
that the answers are the model's.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hypothesis import HealthCheck, settings

from cerata import Store, View
from cerata.engine.events import Scope
from cerata.fault_injection.testing import Workload, operation
from cerata.memory.snapshot.reader import snapshot_of

from .facts.acts import Act, perform
from .facts.histories import random_act, run
from .facts.world import VIEWS


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Asks every view of a history; a long check more of them, and in every scope."""

    ask: Callable[[View, int], object]
    histories: int
    is_long: bool

    @property
    def settings(self) -> settings:
        """How Hypothesis draws the histories."""
        return settings(
            max_examples=self.histories,
            derandomize=not self.is_long,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )

    def view(self, view: View, scopes: Collection[Scope | None] = (None,)) -> None:
        """Ask in each scope."""
        size = view.basis + len(snapshot_of(view).unsalted_drafts)
        for number, scope in enumerate(scopes):
            self.ask(view.within(scope), 10 * size + number)

    def transaction(self, store: Store) -> None:
        """Ask while a transaction is open."""
        view = store.history.view()
        self.view(
            view,
            VIEWS if self.is_long else [VIEWS[len(snapshot_of(view).unsalted_drafts) % len(VIEWS)]],
        )

    def everywhere(self, batches: Sequence[Sequence[Act]]) -> None:
        """Ask at each event: natively, after a checkpoint, and by a replay; in every scope."""
        history = run(batches, self.transaction)
        with history.open() as store:
            end = store.history.view().basis
            for n in range(end + 1):
                self.view(store.at(n), VIEWS if self.is_long else (None, VIEWS[n % len(VIEWS)]))
            store.checkpoint()
        with history.open() as store:
            for n in range(end + 1):
                self.view(store.at(n))
                if self.is_long or n % 7 == end % 7:
                    self.view(store.stream.replay(n))


class Sayings(Workload):
    """Says things of a few entities; whatever is left must follow from the log that is left."""

    kinds: ClassVar[Sequence[str]]
    checked: ClassVar[ModelCheck]

    @operation
    def say(self, store: Store) -> None:
        perform(store, random_act(self.random, self.kinds))

    @operation
    def say_much(self, store: Store) -> None:
        with store.transaction():
            for _ in range(4):
                perform(store, random_act(self.random, self.kinds))

    def check(self, store: Store) -> None:
        self.checked.view(store.history.view())
        self.checked.view(store.stream.replay())
