"""Repeats: the known facts that the assertions of a call would only repeat.

Owns the comparison with the log, the open transaction, and earlier assertions of the same call.
Leaves out the rules for one assertion (`cerata.projections.facts.repeats`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from cerata.engine.events import AssertFact, Draft
from cerata.projections.facts.repeats import Repeats

from ..batch.recent_triples import triple_hash, triple_of
from ..batch.session import WriteSession
from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Twin:
    """An assertion of the same call, by index, that is written and makes another one a repeat."""

    index: int


def repeated(
    session: WriteSession, read: Callable[[], Snapshot], drafts: Sequence[Draft], now: int
) -> list[int | Twin | None]:
    """Return for each draft of one scope the fact or the draft that it would only repeat, or None.

    ``read`` returns the newest state. Cost: looks up the strings of the drafts. Folds the log and
    the open transaction if these or the call may have one of the triples, or if another writer has
    appended.
    """
    bodies = [draft.body for draft in drafts]
    asserted = [body for body in bodies if isinstance(body, AssertFact)]
    assert len(asserted) == len(drafts)
    answers: list[int | Twin | None] = [None] * len(drafts)
    if not drafts:
        return answers
    log, recent = session.recent_triples.facts_through(session.newest_seq())
    drafted = session.drafted_triples
    known = set(log.stored(drafts[0].scope, asserted))
    for index, body in enumerate(asserted):
        hashed = triple_hash(body)
        if hashed in recent or hashed in drafted:
            known.add(index)
    if not known and len({triple_of(body) for body in asserted}) == len(asserted):
        return answers
    snapshot = read()
    written = _Written(snapshot.repeats)
    for index, (draft, body) in enumerate(zip(drafts, asserted, strict=True)):
        twin = written.last(body)
        answer: int | Twin | None = None
        if twin is None:
            answer = _stored_fact(snapshot, draft, body, now) if index in known else None
        elif drafts[twin] == draft:
            answer = Twin(twin)
        if answer is None or written.has_rival(draft, body):
            written.add(index, body)
        else:
            answers[index] = answer
    return answers


class _Written:
    """The assertions of a call that are no repeats."""

    def __init__(self, repeats: Repeats) -> None:
        self._repeats = repeats
        self._last = dict[object, int]()
        self._values = dict[str, set[object]]()

    def add(self, index: int, body: AssertFact) -> None:
        self._last[triple_of(body)] = index
        self._values.setdefault(body.predicate, set()).add((body.object_kind, body.object))

    def last(self, body: AssertFact) -> int | None:
        """Return the index of the last assertion with the triple of ``body``."""
        return self._last.get(triple_of(body))

    def has_rival(self, draft: Draft, body: AssertFact) -> bool:
        """Return whether one of the assertions may end the fact that ``draft`` repeats."""
        values = self._values.get(body.predicate, set())
        return bool(values.difference([(body.object_kind, body.object)])) and (
            self._repeats.is_functional(draft.scope, body.predicate)
        )


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
