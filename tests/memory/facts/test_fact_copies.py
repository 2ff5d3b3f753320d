"""What a copy by JSON Lines says is what was said: random histories, every view."""

import os
from collections.abc import Sequence
from datetime import timedelta

import msgspec
from hypothesis import HealthCheck, Phase, assume, given, settings

import cerata
from cerata import Allen, Fact, Store, View
from cerata.engine.events import AssertFact, PutFrame
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.scopes import by_name

from .acts import Act
from .answers import plain_period, value_in
from .histories import BATCHES, run
from .world import ALIASES, NAMES, VIEWS, environment, time_of


class Said:
    """All that a view says, but for what is the copy's own: ids, known times, places of frames.

    What an id names is told by its place in the order of facts.
    """

    def __init__(self, view: View, *, history: bool) -> None:
        self.view = view
        facts = view.facts(include_ended=True, include_retracted=history)
        # What is never true is not carried over.
        self.facts = [one for one in facts if not _is_empty(one)]
        self.counts_all = len(self.facts) == len(facts)
        self.place = {one.id: number for number, one in enumerate(self.facts)}
        self.history = history

    def fact(self, fact: Fact) -> tuple[object, ...]:
        return (
            self.place[fact.id],
            fact.subject,
            fact.predicate,
            value_in(fact.object),
            plain_period(fact.valid),
            plain_period(fact.stated),
            fact.confidence,
            fact.source,
            {(self._content(one.frame), one.start, one.end) for one in fact.evidence},
            set(fact.assumptions),
            # What led to a fact that was retracted is there with the history only.
            fact.depth if self.history else None,
            sorted(fact.scope.items(), key=repr),
            None if fact.ended_by is None else self.place[fact.ended_by],
            fact.is_known,
        )

    def _content(self, frame: int) -> bytes:
        return View(
            msgspec.structs.replace(snapshot_of(self.view), reach=None, _base=None)
        ).files.content(frame)

    def everything(self) -> dict[str, object]:
        """Return the facts, at instants and in periods too, contradictions and entities."""
        view, said = self.view, dict[str, object]()
        said["facts"] = [self.fact(one) for one in self.facts]
        for number in range(5):
            at = view.facts(valid_at=time_of(number))
            said[f"at {number}"] = [self.fact(one) for one in at]
            period = (time_of(number), time_of(number) + timedelta(seconds=1))
            during = view.facts(allen=(Allen.CONTAINS, period))
            said[f"during {number}"] = [self.fact(one) for one in during]
        said["conflicts"] = [
            (self.fact(one.first), self.fact(one.second), plain_period(one.period))
            for one in view.graph.conflicts()
        ]
        said["entities"] = [
            (one.name, one.kind, one.aliases, one.names) for one in view.graph.entities()
        ]
        said["mentions"] = [one.mentions for one in view.graph.entities()]
        for name in (*NAMES, *ALIASES, "carl", "dora"):
            said[f"resolve {name}"] = view.graph.resolve(name)
        return said


def _is_empty(fact: Fact) -> bool:
    interval = fact.stated.interval
    return interval.start >= interval.end


def alike(view: View) -> bool:
    """Tell whether two facts differ only in that one was given what the other had from the clock.

    They are one in a copy (docs/facts.md).
    """
    seen = set[object]()
    for fact in view.facts(include_ended=True, include_retracted=True):
        event = next(view.log(fact.id, fact.id))
        assert isinstance(event.body, AssertFact)
        assert event.scope is not None
        body = event.body
        triple = (body.subject, body.predicate, body.object_kind, repr(body.object))
        # A line that follows its retraction is of another fact in any case.
        key = (by_name(event.scope), triple, plain_period(fact.stated))
        if fact.is_known or key in seen:
            if key in seen:
                return True
            seen.add(key)
    return False


def copied(view: View, *, history: bool) -> Store:
    """Return a memory with the same texts that has imported what a view exports."""
    clean, clock = environment()
    clock.time_us += 1_000_000_000
    opened = cerata.open(":memory:", environment=clean)
    texts = [event.body.text for event in view.log() if isinstance(event.body, PutFrame)]
    for text in dict.fromkeys(texts):
        opened.put_frame(text or "")
    opened.interchange.import_facts(view.interchange.export_facts(history=history))
    return opened


histories = settings(
    max_examples=int(os.environ.get("CERATA_HISTORIES", "10")),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@histories
@given(batches=BATCHES)
def test_a_copy_says_what_was_said(batches: Sequence[Sequence[Act]]) -> None:
    """Also a copy of the past, in every scope, with and without what was retracted."""
    with run(batches, lambda _: None).open() as store:
        assume(not alike(store.history.view()))
        end = store.history.view().basis
        for basis in (end, end // 2):
            for history in (False, True):
                view = store.at(basis)
                with copied(view, history=history) as again:
                    for scope in VIEWS:
                        first = Said(view.within(scope), history=history)
                        other = Said(again.history.view().within(scope), history=history)
                        here, there = first.everything(), other.everything()
                        if not first.counts_all:
                            # What is never true is known where it was said, and mentions too.
                            del here["mentions"], there["mentions"]
                        assert there == here, (basis, history, scope)
