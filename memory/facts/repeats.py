"""Repeats: the known facts that the assertions of a call would only repeat.

Owns the comparison with the log, the open transaction, and earlier assertions of the same call.
Leaves out the rules for one assertion (`cerata.projections.facts.repeats`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.events import AssertFact, Draft, Scope

from ..batch.recent_triples import triple_hash, triple_of
from ..snapshot.fact_conversion import id_of_seq

if TYPE_CHECKING:
    from cerata.projections.facts.repeats import Repeats

    from ..batch.recent_triples import KnownFacts
    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Twin:
    """An assertion of the same call, by index, that is written and makes another one a repeat."""

    index: int


def repeated(
    session: WriteSession,
    read: Callable[[], Snapshot],
    drafts: Sequence[Draft],
    now: int,
    known_facts: KnownFacts,
) -> list[int | Twin | None]:
    """Return for each draft of one scope the fact or the draft that it would only repeat, or None.

    ``read`` returns the newest state, and ``known_facts`` are the facts through the newest event.
    Cost: looks up the strings of the drafts. Folds the log and
    the open transaction if these or the call may have one of the triples, or if another writer has
    appended.
    """
    asserted: list[AssertFact] = []
    for draft in drafts:
        assert isinstance(draft.body, AssertFact)
        asserted.append(draft.body)
    answers: list[int | Twin | None] = [None] * len(drafts)
    if not drafts:
        return answers
    log, recent = known_facts
    drafted = session.drafted_triples
    known = set(log.stored(drafts[0].scope, asserted))
    for index, body in enumerate(asserted):
        hashed = triple_hash(body)
        if hashed in recent or hashed in drafted:
            known.add(index)
    if not known and (
        len(asserted) == 1 or len({triple_of(body) for body in asserted}) == len(asserted)
    ):
        return answers
    snapshot = read()
    written = _Written(snapshot.repeats, drafts[0].scope)
    for index, (draft, body) in enumerate(zip(drafts, asserted, strict=True)):
        twin = written.last(body)
        answer: int | Twin | None = None
        if twin is None:
            answer = _stored_fact(snapshot, draft, body, now) if index in known else None
        elif drafts[twin] == draft:
            answer = Twin(twin)
        if answer is None or written.has_rival(body, -1 if twin is None else twin):
            written.add(index, body)
        else:
            answers[index] = answer
    return answers


class _Written:
    """The assertions of a call that are no repeats."""

    def __init__(self, repeats: Repeats, scope: Scope) -> None:
        self._repeats = repeats
        self._scope = scope
        self._functional = dict[str, bool]()
        self._last = dict[object, int]()
        self._values = dict[object, _Values]()

    def add(self, index: int, body: AssertFact) -> None:
        self._last[triple_of(body)] = index
        if self._is_functional(body.predicate):
            self._values.setdefault(self._group(body), _Values()).add(index, _value(body))

    def last(self, body: AssertFact) -> int | None:
        """Return the index of the last assertion with the triple of ``body``."""
        return self._last.get(triple_of(body))

    def has_rival(self, body: AssertFact, after: int) -> bool:
        """Return whether an assertion after an index may end a fact that ``body`` repeats."""
        if body.valid_from is not None or not self._is_functional(body.predicate):
            return False
        values = self._values.get(self._group(body))
        return values is not None and values.last_beside(_value(body)) > after

    def _is_functional(self, predicate: str) -> bool:
        answer = self._functional.get(predicate)
        if answer is None:
            answer = self._repeats.is_functional(self._scope, predicate)
            self._functional[predicate] = answer
        return answer

    def _group(self, body: AssertFact) -> object:
        """Return a key that assertions share whose values may end each other."""
        return self._repeats.related(body.subject), body.predicate


@dataclass(slots=True)
class _Values:
    """The last assertion of a group, and the last one with another value."""

    value: object = None
    last: int = -1
    other: int = -1

    def add(self, index: int, value: object) -> None:
        if value != self.value:
            self.value, self.other = value, self.last
        self.last = index

    def last_beside(self, value: object) -> int:
        """Return the index of the last assertion with another value than this, or -1."""
        return self.other if value == self.value else self.last


def _value(body: AssertFact) -> object:
    return body.object_kind, body.object


def _stored_fact(snapshot: Snapshot, draft: Draft, body: AssertFact, now: int) -> int | None:
    """Return the id of the fact that a draft would only repeat, or None."""
    places = [
        msgspec.structs.replace(place, frame=snapshot.seq_of(place.frame))
        for place in body.evidence
    ]
    if places:
        body = msgspec.structs.replace(body, evidence=tuple(places))
    repeats = snapshot.repeats
    row = repeats.row(draft.scope, body, max(now, snapshot.last_us))
    if row is None:
        return None
    ids = [id_of_seq(seq, snapshot.basis) for seq in repeats.facts.ids_of([row])]
    if draft.causation is None or any(
        snapshot.cause_of(number) == draft.causation for number in ids
    ):
        return ids[0]
    return None
