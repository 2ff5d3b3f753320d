"""Facts as of any event: the reader over the columns that `facts` folds.

Owns the contents of a row. Leaves out lookup (`rows`), valid time (`validity`) and the state of all
n (`history`). Answers at n equal those of a store that stopped at n.

Cost of a lookup by subject or object, at any n: O(log n) and the facts with that name. By predicate
alone, or without a condition: a pass over the columns.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from cerata.engine.events import Scope, ScopeValue

from .columns import CONFIDENCE_UNIT, FLAG_ASSUMPTIONS, FLAG_EVIDENCE, NO_PLACE, QUOTE_SIZE
from .objects import ObjectKind, Standing, value_of
from .validity import FactSpans


class EvidencePlace(NamedTuple):
    """A frame, and optionally a range [start, end) of UTF-8 bytes of its text, and their hash."""

    frame: int
    start: int | None
    end: int | None
    quote: bytes | None


StoredValue: TypeAlias = str | int | float | bool | bytes

FactContents: TypeAlias = tuple[
    int,
    str,
    str,
    int,
    StoredValue,
    tuple[int, int | None, int | None],
    tuple[float, str],
    Sequence[EvidencePlace],
    Sequence[str],
    int,
    dict[str, ScopeValue],
    Standing,
]
"""Seq, subject, predicate, kind and value of the object, `FactsAt.known_period_of`,
`FactsAt.last_assertion_of`, evidence, assumptions, depth, scope and standing of a row."""

_ENTITY: Final = int(ObjectKind.ENTITY)
_TEXTS: Final = (int(ObjectKind.STRING), _ENTITY)


class FactsAt(FactSpans):
    """The facts at one n, and their contents; immutable, for any thread."""

    def contents(self, row: int) -> FactContents:
        """Return the contents of a row but its valid time; about 2 us."""
        facts = self._facts
        columns = self._columns
        text = columns.strings.text
        subject = facts.subjects[row]
        kind = facts.kinds[row]
        number = facts.objects[row]
        if kind in _TEXTS:
            is_read = kind == _ENTITY and not self._is_plain
            value: StoredValue = text(self._read(row, number) if is_read else number)
        else:
            value = self.object_of(row)[1]
        closing = facts.closed[row]
        is_known = closing >= self._closings
        recorded = facts.recorded[row]
        flags = facts.flags[row]
        repeats = self._repeats_of(row) if facts.any_repeats else ()
        if self.labels is not None:
            standing = self.labels.label(row)
        else:
            standing = Standing.STANDS if is_known else Standing.INVALID
        if repeats:
            confidence, source = self._last_assertion(row, repeats)
        else:
            confidence = facts.confidences[row] / CONFIDENCE_UNIT
            source = columns.sources.text(facts.sources[row]) or ""
        return (
            facts.births[row],
            text(subject if self._is_plain else self._read(row, subject)),
            columns.predicates.text(facts.predicates[row]) or "",
            kind,
            value,
            (recorded, None, None) if is_known else self.known_period_of(row),
            (confidence, source),
            self._evidence(row) if flags & FLAG_EVIDENCE or repeats else (),
            self._assumptions(row) if flags & FLAG_ASSUMPTIONS or repeats else (),
            facts.depths[row],
            columns.scopes.values(facts.scopes[row]),
            standing,
        )

    def predicate_of(self, row: int) -> str:
        return self._columns.predicates.text(self._facts.predicates[row]) or ""

    def object_of(self, row: int) -> tuple[ObjectKind, StoredValue]:
        """Return a row's object; for an entity, the name after merges and splits."""
        kind = self._facts.kinds[row]
        number = self._facts.objects[row]
        if kind == ObjectKind.ENTITY:
            return ObjectKind.ENTITY, self._text(self._read(row, number))
        if kind == ObjectKind.STRING:
            return ObjectKind.STRING, self._text(number)
        if kind == ObjectKind.BYTES:
            return ObjectKind.BYTES, self._text(number).encode("latin-1")
        return ObjectKind(kind), value_of(ObjectKind(kind), number)

    def name_key(self, row: int) -> tuple[int, tuple[int, int]]:
        """Return a key that rows with the same subject and object, as read, share."""
        return self._read(row, self._facts.subjects[row]), self.value_key(row)

    def asserted_names(self, row: int) -> tuple[str, str | None]:
        """Return the entities that a row names as subject and object, before any merge."""
        facts = self._facts
        strings = self._columns.strings
        tenant = self.tenant_of(row)
        subject = strings.text(self.roles.named(tenant, row, facts.subjects[row]))
        if facts.kinds[row] != ObjectKind.ENTITY:
            return subject, None
        return subject, strings.text(self.roles.named(tenant, row, facts.objects[row]))

    def known_period_of(self, row: int) -> tuple[int, int | None, int | None]:
        """Return the time of a row's recording, and time and event of its retraction by n."""
        recorded = self._facts.recorded[row]
        closing = self._facts.closed[row]
        if closing >= self._closings:
            return recorded, None, None
        when = self._columns.closing_recorded.item(closing)
        return recorded, when, self._facts.closings[closing]

    def scope_of(self, row: int) -> Scope:
        return self._columns.scopes.scope(self._facts.scopes[row])

    def depth_of(self, row: int) -> int:
        return self._facts.depths[row]

    def last_assertion_of(self, row: int) -> tuple[float, str]:
        """Return the confidence and source of the last assertion of a row up to n."""
        return self._last_assertion(row, self._repeats_of(row))

    def _repeats_of(self, row: int) -> Sequence[int]:
        return self._columns.repeats_of(row, self.n) if self._facts.any_repeats else ()

    def _last_assertion(self, row: int, repeats: Sequence[int]) -> tuple[float, str]:
        columns = self._columns
        facts = self._facts
        confidence = facts.confidences[row]
        source = facts.sources[row]
        if repeats:
            confidence = columns.repeat_confidence.item(repeats[-1])
            source = columns.repeat_source.item(repeats[-1])
        return confidence / CONFIDENCE_UNIT, columns.sources.text(source) or ""

    def evidence_of(self, row: int) -> list[EvidencePlace]:
        """Return the evidence of a row by n, in order of the events, without repeats."""
        is_likely = self._facts.flags[row] & FLAG_EVIDENCE or self._repeats_of(row)
        return self._evidence(row) if is_likely else []

    def _evidence(self, row: int) -> list[EvidencePlace]:
        columns = self._columns
        evidence = list[EvidencePlace]()
        for place in columns.evidence_of(row, self.n):
            start = columns.evidence_start.item(place)
            end = columns.evidence_end.item(place)
            high = columns.evidence_quote.item(place)
            low = columns.evidence_quote_low.item(place)
            evidence.append(
                EvidencePlace(
                    columns.evidence_frame.item(place),
                    None if start == NO_PLACE else start,
                    None if end == NO_PLACE else end,
                    (high << 64 | low).to_bytes(QUOTE_SIZE) if high or low else None,
                )
            )
        return list(dict.fromkeys(evidence))

    def assumptions_of(self, row: int) -> list[str]:
        """Return the assumptions of a row by n, without repeats."""
        is_likely = self._facts.flags[row] & FLAG_ASSUMPTIONS or self._repeats_of(row)
        return self._assumptions(row) if is_likely else []

    def _assumptions(self, row: int) -> list[str]:
        columns = self._columns
        codes = columns.assumption_text.view()
        texts = (
            columns.strings.text(int(codes[place])) for place in columns.assumptions_of(row, self.n)
        )
        return list(dict.fromkeys(texts))
