"""Facts as of any event: the reader over the columns that `facts` folds.

Owns the reader of all n, the checks of an append, and the contents of a row. Leaves out lookup
(`rows`) and valid time (`validity`). Answers at n equal those of a store that stopped at n.

Cost of a lookup by subject or object, at any n: O(log n) and the facts with that name. By predicate
alone, or without a condition: a pass over the columns.
"""

from typing import Final, NamedTuple

from cerata.engine.events import Scope

from ..columnar.columns import I64, rows_up_to
from .columns import (
    CONFIDENCE_UNIT,
    FLAG_ASSUMPTIONS,
    FLAG_EVIDENCE,
    NO_PLACE,
    QUOTE_SIZE,
    FactColumns,
)
from .objects import ObjectKind, value_of
from .role_history import RolesAt
from .validity import FactSpans


class EvidencePlace(NamedTuple):
    """A frame, and optionally a range [start, end) of UTF-8 bytes of its text, and their hash."""

    frame: int
    start: int | None
    end: int | None
    quote: bytes | None


class Facts:
    """Reads facts at any n up to ``seq``. Immutable, for any thread, also during a fold."""

    def __init__(self, columns: FactColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns
        self.seqs: I64 = columns.seq.view()
        self.closing_seqs: I64 = columns.closing_seq.view()
        self.subject_codes = columns.subject.view()
        self.object_numbers = columns.object.view()
        # Reading a number from a memoryview takes a third of the time of reading from an array.
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
        """Return the facts at event ``n``, within the scope ``wanted`` if not None."""
        return FactsAt(self, n, self.columns.scopes.within(wanted))

    def roles(self, n: int, scopes: frozenset[int] | None) -> RolesAt:
        """Return the roles at event ``n``; cached by count of ruling acts and by scopes."""
        count = rows_up_to(self._ruling_seqs, n) if len(self._ruling) else 0
        roles = self._roles.get((count, scopes))
        if roles is None:
            if len(self._roles) >= _CACHED_ROLES_MAX:
                self._roles.clear()
            last = int(self._ruling_seqs[count - 1]) if count else 0
            roles = RolesAt(self.columns.role_history(count), last, scopes)
            self._roles[count, scopes] = roles
        return roles

    # --- checks of an append ---------------------------------------------------------------------

    def scope_of_fact(self, fact: int) -> Scope | None:
        """Return the scope of the fact that an id names, or None if no such fact exists."""
        row = self.columns.row_of(fact)
        if row is None or row >= len(self.seqs):
            return None
        return self.columns.scopes.scope(self.scopes[row])

    def fact_named(self, fact: int) -> int:
        """Return the id of a fact by an id of the fact, such as the seq of a repeat."""
        row = self.columns.row_of(fact) if fact > 0 else None
        # Another thread may have folded further: rows after this reader's state do not count.
        return fact if row is None or row >= len(self.births) else self.births[row]

    def is_closed(self, fact: int, n: int) -> bool:
        """Return whether an event up to ``n`` retracted a fact."""
        row = self.columns.row_of(fact) if fact > 0 else None
        if row is None or row >= len(self.seqs):
            return False
        return self.closed[row] < rows_up_to(self.closing_seqs, n)

    def holds(self, seq: int, n: int) -> bool:
        """Return whether the merge or split of event ``seq`` holds at event ``n``."""
        return self.roles(n, None).holds(seq)

    def merge_named(self, seq: int, n: int) -> tuple[str, str]:
        """Return the tenant and the entity of a merge that holds at event ``n``."""
        tenant, entity = self.roles(n, None).merge_of(seq)
        return self.columns.scopes.tenant_name(tenant), self.columns.strings.text(entity)

    def merged_into(
        self, tenant: str, name: str, n: int, *, within: Scope | None = None
    ) -> str | None:
        """Return the name that an entity is merged into at event ``n``, or None.

        With ``within`` only merges in that scope count.
        """
        key = self._entity(tenant, name)
        roles = self.roles(n, self.columns.scopes.within(within))
        into = None if key is None else roles.into(*key)
        return None if into is None else self.columns.strings.text(into)

    def is_read_as(self, tenant: str, name: str, other: str, n: int) -> bool:
        """Return whether ``name`` equals ``other``, or merges lead to ``other`` at event ``n``."""
        source = self._entity(tenant, name)
        target = self._entity(tenant, other)
        if source is None or target is None:
            return name == other
        return self.roles(n, None).leads_to(*source, target[1])

    def is_head(self, tenant: str, name: str, n: int) -> bool:
        """Return whether any entity is merged into this entity at event ``n``."""
        key = self._entity(tenant, name)
        return key is not None and any(True for _ in self.roles(n, None).merged_here(*key))

    def _entity(self, tenant: str, name: str) -> tuple[int, int] | None:
        code = self.columns.strings.find(name)
        number = self.columns.scopes.tenant_number(tenant)
        return None if code is None or number is None else (number, code)


_CACHED_ROLES_MAX: Final = 16


class FactsAt(FactSpans):
    """The facts at one n, and their contents; immutable, for any thread."""

    def predicate_of(self, row: int) -> str:
        return self._columns.predicates.text(self._facts.predicates[row]) or ""

    def object_of(self, row: int) -> tuple[ObjectKind, str | int | float | bool | bytes]:
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

    def named(self, row: int) -> tuple[int, tuple[int, int]]:
        """Return a key that rows with the same subject and object, as read, share."""
        return self._read(row, self._facts.subjects[row]), self.value_key(row)

    def named_by(self, row: int) -> tuple[str, str | None]:
        """Return the entities that a row names as subject and object, before any merge."""
        facts = self._facts
        strings = self._columns.strings
        tenant = self.tenant_of(row)
        subject = strings.text(self.roles.named(tenant, row, facts.subjects[row]))
        if facts.kinds[row] != ObjectKind.ENTITY:
            return subject, None
        return subject, strings.text(self.roles.named(tenant, row, facts.objects[row]))

    def known_of(self, row: int) -> tuple[int, int | None, int | None]:
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

    def said_of(self, row: int) -> tuple[float, str]:
        """Return the confidence and source of the last assertion of a row up to n."""
        columns = self._columns
        facts = self._facts
        confidence = facts.confidences[row]
        source = facts.sources[row]
        repeats = columns.repeats_of(row, self.n) if facts.any_repeats else None
        if repeats:
            confidence = columns.repeat_confidence.item(repeats[-1])
            source = columns.repeat_source.item(repeats[-1])
        return confidence / CONFIDENCE_UNIT, columns.sources.text(source) or ""

    def evidence_of(self, row: int) -> list[EvidencePlace]:
        """Return the evidence of a row by n, in order of the events, without repeats."""
        if not self._may_have(row, FLAG_EVIDENCE):
            return []
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
        columns = self._columns
        if not self._may_have(row, FLAG_ASSUMPTIONS):
            return []
        codes = columns.assumption_text.view()
        texts = (
            columns.strings.text(int(codes[place])) for place in columns.assumptions_of(row, self.n)
        )
        return list(dict.fromkeys(texts))

    def _may_have(self, row: int, flag: int) -> bool:
        """Return whether a row's first assertion has a flag, or a repeat of the fact may."""
        facts = self._facts
        if facts.flags[row] & flag:
            return True
        return facts.any_repeats and bool(self._columns.repeats_of(row, self.n))
