"""Recent triples: the facts that a store has appended since its facts were last folded.

Owns hashes of their triples, so that an assertion of a new fact folds nothing. Leaves out the
decision whether an assertion repeats a fact (`facts.repeats`).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.events import AssertFact, Draft, EventBody, PutEntity, UnknownBody
from cerata.engine.late import late
from cerata.projections.fulltext.analyzer import folded_name

if TYPE_CHECKING:
    from cerata.engine.head import Appended
    from cerata.projections.facts import reader as facts_reader
    from cerata.projections.facts import repeats as repeats_module
    from cerata.projections.facts.repeats import Repeats
    from cerata.replay.fold import Fold
else:
    facts_reader = late("cerata.projections.facts.reader")
    repeats_module = late("cerata.projections.facts.repeats")


_TRIPLES_MAX: Final = 16_384
"""Triples in memory at once, about 1 MB; past that the facts are folded."""


KnownFacts: TypeAlias = "tuple[Repeats, Collection[int]]"
"""Folded facts, and hashes that cover each later fact."""

ALIASES: Final = 1
"""Stands for any alias among the hashes."""


class RecentTriples:
    """The hashes of the triples and aliases in the newest events; all calls of a store share this.

    Only an assertion makes a fact, so a triple that neither the folded facts nor the assertions
    after them have is new. The set may have too much, never too little.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._lock = threading.Lock()
        # The set has the triples of the events after the first number, up to the second.
        self._after = self._end = 0
        self._hashes = set[int]()
        # `Fold.replaced`, and the newest folded facts that a call compared with.
        self._folded: tuple[int, Repeats] | None = None

    def note_appended(self, drafts: Sequence[Draft], appended: Appended) -> None:
        """Note that a batch of this store is in the log."""
        hashes: list[int] = []
        is_readable = True
        for draft in drafts:
            body = draft.body
            if isinstance(body, AssertFact):
                hashes.append(triple_hash(body))
            elif isinstance(body, PutEntity):
                hashes += hashes_of(body)
            elif isinstance(body, UnknownBody):
                is_readable = False
        with self._lock:
            is_full = len(self._hashes) + len(hashes) > _TRIPLES_MAX
            if is_full or appended.first_seq != self._end + 1:
                # Another writer has appended, or a thread of this store that is not yet here.
                self._restart(appended.first_seq - 1)
            self._hashes.update(hashes)
            # Last, so that an interrupt leaves a set with too much.
            self._end = appended.last_seq
            if not is_readable:
                self._after = self._end

    def facts_through(self, n: int) -> KnownFacts:
        """Return folded facts, and hashes that cover each later fact up to event ``n``.

        Cost: folds the facts if another writer has appended since the last fold.
        """
        replaced, folded = self._fold.replaced, self._folded
        if folded is not None and folded[0] == replaced:
            hashes = self._covering(folded[1].facts.n, n)
            if hashes is not None:
                return folded[1], hashes
        facts = self._fold.folded_facts()
        hashes = self._covering(facts.seq, n)
        if hashes is None:
            facts, hashes = self._fold.facts(n), ()
        repeats = repeats_module.Repeats(facts_reader.FactsAt(facts, facts.seq))
        self._folded = replaced, repeats
        return repeats, hashes

    def _covering(self, seq: int, n: int) -> Collection[int] | None:
        """Return hashes that cover the facts of the events ``seq`` + 1 to ``n``, or None."""
        with self._lock:
            if seq >= self._end:
                self._restart(seq)
            return self._hashes if self._after <= seq and n <= self._end else None

    def _restart(self, after: int) -> None:
        # The range before the set, so that an interrupt leaves a set with too much. A new set,
        # because a reader may still have the old set.
        self._after = self._end = after
        self._hashes = set[int]()


def triple_of(body: AssertFact) -> object:
    """Return a key that assertions of an equal triple share."""
    return body.subject, body.predicate, body.object_kind, body.object


def hashes_of(body: EventBody) -> list[int]:
    """Return the hash of an assertion's triple, or of an entity's aliases and `ALIASES`."""
    if isinstance(body, AssertFact):
        return [triple_hash(body)]
    if isinstance(body, PutEntity) and body.aliases:
        return [ALIASES, *map(alias_hash, body.aliases)]
    return []


def alias_hash(name: str) -> int:
    """Return the hash of a name as an alias; equal for names that fold alike."""
    return hash(("", folded_name(name)))


def triple_hash(body: AssertFact) -> int:
    """Return the hash of `triple_of`."""
    try:
        # As `triple_of`, without a call.
        return hash((body.subject, body.predicate, body.object_kind, body.object))
    except TypeError:
        # An event that a caller appended as it is; no assertion of a call has such a value.
        return 0
