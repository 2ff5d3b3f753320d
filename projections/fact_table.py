"""Facts as of any event: the reader over the columns that `facts` folds.

Owns the reader of every n, what an append is checked by, and what a row says. Which rows there are
is `fact_rows`', when they are true `fact_spans`'. The answers at n are those of a store that
stopped at n.

Cost of a look-up by subject or object: O(log n) and the facts with that name, whatever n is. By
predicate alone, or nothing, a pass over the columns.
"""

from typing import Final, NamedTuple

from cerata.engine.events import Scope

from .columns import I64, rows_up_to
from .fact_columns import (
    CONFIDENCE_UNIT,
    FLAG_ASSUMPTIONS,
    FLAG_EVIDENCE,
    NO_PLACE,
    QUOTE_SIZE,
    FactColumns,
)
from .fact_spans import FactSpans
from .fact_values import ObjectKind, value_of
from .role_history import RolesAt


class EvidencePlace(NamedTuple):
    """A frame, and the UTF-8 bytes [start, end) of its text and their hash, where given."""

    frame: int
    start: int | None
    end: int | None
    quote: bytes | None


class Facts:
    """Reads facts at any n up to ``seq``. Immutable: any thread may use it meanwhile."""

    def __init__(self, columns: FactColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns
        self.seqs: I64 = columns.seq.view()
        self.closing_seqs: I64 = columns.closing_seq.view()
        self.subject_codes, self.object_numbers = columns.subject.view(), columns.object.view()
        # A number out of a memoryview takes a third of the time of one out of an array.
        self.births = columns.seq.view().data
        self.recorded = columns.recorded.view().data
        self.subjects = self.subject_codes.data
        self.predicates = columns.predicate.view().data
        self.kinds = columns.kind.view().data
        self.objects = self.object_numbers.data
        self.starts = columns.valid_from.view().data
        self.ends = columns.valid_to.view().data
        self.scopes = columns.scope.view().data
        self.confidences = columns.confidence.view().data
        self.sources = columns.source.view().data
        self.depths = columns.depth.view().data
        self.flags = columns.flags.view().data
        self.closed = columns.closed_at.view().data
        self.closings = self.closing_seqs.data
        self.any_repeats = len(columns.repeats) > 0
        self._ruling = columns.ruling.view()
        self._ruling_seqs: I64 = columns.act_seq.view()[self._ruling]
        self._roles: dict[tuple[int, frozenset[int] | None], RolesAt] = {}

    def at(self, n: int, wanted: Scope | None = None) -> "FactsAt":
        """Return the facts as event ``n`` left them, those within a scope."""
        return FactsAt(self, n, self.columns.scopes.within(wanted))

    def roles(self, n: int, scopes: frozenset[int] | None) -> RolesAt:
        """Return who is who at event ``n``; states with the same merges share it."""
        count = rows_up_to(self._ruling_seqs, n) if len(self._ruling) else 0
        found = self._roles.get((count, scopes))
        if found is None:
            if len(self._roles) >= _ROLES_KEPT_MAX:
                self._roles.clear()
            last = int(self._ruling_seqs[count - 1]) if count else 0
            found = RolesAt(self.columns.role_history(count), last, scopes)
            self._roles[count, scopes] = found
        return found

    # --- what an append is checked by ------------------------------------------------------------

    def scope_of_fact(self, fact: int) -> Scope | None:
        """Return the scope of the fact that an id names, or None where there is none."""
        row = self.columns.row_of(fact)
        if row is None or row >= len(self.seqs):
            return None
        return self.columns.scopes.scope(self.scopes[row])

    def fact_named(self, fact: int) -> int:
        """Return the id of the fact that an id names, which may be of an event that repeats it."""
        row = self.columns.row_of(fact) if fact > 0 else None
        # Another thread may have folded on: a row that came since is none of this reader's.
        return fact if row is None or row >= len(self.births) else self.births[row]

    def is_closed(self, fact: int, n: int) -> bool:
        """Tell whether a fact was retracted by event ``n``."""
        row = self.columns.row_of(fact) if fact > 0 else None
        if row is None or row >= len(self.seqs):
            return False
        return self.closed[row] < rows_up_to(self.closing_seqs, n)

    def holds(self, seq: int, n: int) -> bool:
        """Tell whether a merge or split holds at event ``n``, by its seq."""
        return self.roles(n, None).holds(seq)

    def merge_named(self, seq: int, n: int) -> tuple[str, str]:
        """Return the tenant and the entity of a merge that holds at event ``n``."""
        tenant, entity = self.roles(n, None).merge_of(seq)
        return self.columns.scopes.tenant_name(tenant), self.columns.strings.text(entity)

    def merged_into(
        self, tenant: str, name: str, n: int, *, within: Scope | None = None
    ) -> str | None:
        """Return what an entity is merged into at event ``n``, or None.

        With ``within`` only merges of that scope count.
        """
        key = self._entity(tenant, name)
        roles = self.roles(n, self.columns.scopes.within(within))
        into = None if key is None else roles.into(*key)
        return None if into is None else self.columns.strings.text(into)

    def is_read_as(self, tenant: str, name: str, other: str, n: int) -> bool:
        """Tell whether merges lead from an entity to another at event ``n``, or both are one."""
        one, target = self._entity(tenant, name), self._entity(tenant, other)
        if one is None or target is None:
            return name == other
        return self.roles(n, None).leads_to(*one, target[1])

    def is_head(self, tenant: str, name: str, n: int) -> bool:
        """Tell whether an entity is merged into this one at event ``n``."""
        key = self._entity(tenant, name)
        return key is not None and any(True for _ in self.roles(n, None).merged_here(*key))

    def _entity(self, tenant: str, name: str) -> tuple[int, int] | None:
        code, number = self.columns.strings.find(name), self.columns.scopes.tenant_number(tenant)
        return None if code is None or number is None else (number, code)


_ROLES_KEPT_MAX: Final = 16


class FactsAt(FactSpans):
    """The facts at one n, and what they say; immutable, for any thread."""

    def predicate_of(self, row: int) -> str:
        return self._columns.predicates.text(self._facts.predicates[row]) or ""

    def object_of(self, row: int) -> tuple[ObjectKind, str | int | float | bool | bytes]:
        """Return a row's object; of an entity the name that it is read as."""
        kind, number = self._facts.kinds[row], self._facts.objects[row]
        if kind == ObjectKind.ENTITY:
            return ObjectKind.ENTITY, self._text(self._read(row, number))
        if kind == ObjectKind.STRING:
            return ObjectKind.STRING, self._text(number)
        if kind == ObjectKind.BYTES:
            return ObjectKind.BYTES, self._text(number).encode("latin-1")
        return ObjectKind(kind), value_of(ObjectKind(kind), number)

    def named(self, row: int) -> tuple[int, tuple[int, int]]:
        """Return what is equal for rows whose subjects and objects are read as the same."""
        return self._read(row, self._facts.subjects[row]), self.value_key(row)

    def named_by(self, row: int) -> tuple[str, str | None]:
        """Return the entities that a row names, as subject and object, before any merge."""
        facts, strings, tenant = self._facts, self._columns.strings, self.tenant_of(row)
        subject = strings.text(self.roles.named(tenant, row, facts.subjects[row]))
        if facts.kinds[row] != ObjectKind.ENTITY:
            return subject, None
        return subject, strings.text(self.roles.named(tenant, row, facts.objects[row]))

    def known_of(self, row: int) -> tuple[int, int | None, int | None]:
        """Return when a row was recorded, when retracted, and by which event, by n."""
        recorded, closing = self._facts.recorded[row], self._facts.closed[row]
        if closing >= self._closings:
            return recorded, None, None
        when = self._columns.closing_recorded.item(closing)
        return recorded, when, self._facts.closings[closing]

    def scope_of(self, row: int) -> Scope:
        return self._columns.scopes.scope(self._facts.scopes[row])

    def depth_of(self, row: int) -> int:
        return self._facts.depths[row]

    def said_of(self, row: int) -> tuple[float, str]:
        """Return the confidence and source of the last time that a row was asserted by n."""
        columns, facts = self._columns, self._facts
        confidence, source = facts.confidences[row], facts.sources[row]
        again = columns.repeats_of(row, self.n) if facts.any_repeats else None
        if again:
            confidence = columns.repeat_confidence.item(again[-1])
            source = columns.repeat_source.item(again[-1])
        return confidence / CONFIDENCE_UNIT, columns.sources.text(source) or ""

    def evidence_of(self, row: int) -> list[EvidencePlace]:
        """Return the evidence of a row by n, in order of the events that gave it, none twice."""
        if not self._says_more(row, FLAG_EVIDENCE):
            return []
        columns, found = self._columns, list[EvidencePlace]()
        for place in columns.evidence_of(row, self.n):
            start, end = columns.evidence_start.item(place), columns.evidence_end.item(place)
            high, low = columns.evidence_quote.item(place), columns.evidence_quote_low.item(place)
            found.append(
                EvidencePlace(
                    columns.evidence_frame.item(place),
                    None if start == NO_PLACE else start,
                    None if end == NO_PLACE else end,
                    (high << 64 | low).to_bytes(QUOTE_SIZE) if high or low else None,
                )
            )
        return list(dict.fromkeys(found))

    def assumptions_of(self, row: int) -> list[str]:
        """Return what a row takes for granted, by n, none twice."""
        columns = self._columns
        if not self._says_more(row, FLAG_ASSUMPTIONS):
            return []
        codes = columns.assumption_text.view()
        texts = (
            columns.strings.text(int(codes[place])) for place in columns.assumptions_of(row, self.n)
        )
        return list(dict.fromkeys(texts))

    def _says_more(self, row: int, flag: int) -> bool:
        """Tell whether a row's event has what a flag stands for, or one that repeats it may."""
        facts = self._facts
        if facts.flags[row] & flag:
            return True
        return facts.any_repeats and bool(self._columns.repeats_of(row, self.n))
