"""The columns of facts up to an event: the state that readers of every n share.

Owns the views of the columns, the roles at each n, and the checks of an append. Leaves out lookup
(`rows`), valid time (`validity`) and the contents of a row (`reader`).
"""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import I64, U32, U64, rows_up_to, views
from ..columnar.scopes import Reach
from .columns import FactColumns
from .entity_resolution import RolesAt
from .objects import ObjectKind

_CACHED_ROLES_MAX: Final = 16

_CACHED_CODES_MAX: Final = 1 << 14
"""Names in each cache of a state; a full cache is cleared."""

_CACHED_NAME_MAX: Final = 200
"""Characters of a cached name: callers may ask for any text."""


class Facts:
    """Reads facts at any n up to ``seq``. Immutable, for any thread, also during a fold."""

    def __init__(self, columns: FactColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns
        self.seqs: I64
        self.closing_seqs: I64
        self._ruling: I64
        self.seqs, self.closing_seqs, self._ruling, ruling_seqs = views(
            columns.seq, columns.closings.seq, columns.acts.ruling, columns.acts.seq
        )
        self._ruling_seqs: I64 = ruling_seqs[self._ruling]
        self.subject_codes: U32
        self.object_numbers: U64
        self.predicate_codes: U32
        self.subject_codes, self.object_numbers, self.predicate_codes, self.kind_codes = views(
            columns.subject, columns.object, columns.predicate, columns.kind
        )
        self.start_times: I64
        self.end_times: I64
        self.start_times, self.end_times = views(columns.valid_from, columns.valid_to)
        recorded, scopes, confidences, sources, depths, flags, closed = views(
            *(columns.recorded, columns.scope, columns.confidence, columns.source),
            *(columns.depth, columns.flags, columns.closed_at),
        )
        # Reading a number from a memoryview takes a third of the time of reading from an array.
        self.births = self.seqs.data
        self.recorded = recorded.data
        self.subjects = self.subject_codes.data
        self.predicates = self.predicate_codes.data
        self.kinds = self.kind_codes.data
        self.objects = self.object_numbers.data
        self.starts = self.start_times.data
        self.ends = self.end_times.data
        self.scopes = scopes.data
        self.confidences = confidences.data
        self.sources = sources.data
        self.depths = depths.data
        self.flags = flags.data
        self.closed = closed.data
        self.closings = self.closing_seqs.data
        self.any_closings = len(self.closing_seqs) > 0
        self.any_repeats = len(columns.repeats) > 0
        self._roles: dict[tuple[int, frozenset[int] | None], RolesAt] = {}
        self._names: dict[str, Sequence[int]] = {}
        self._predicates: dict[str, Sequence[int]] = {}

    def names_alike(self, name: str) -> Sequence[int]:
        """Return the codes of the names and strings that equal a name when folded.

        Cached: a later state that gains a string is another object.
        """
        codes = self._names.get(name)
        if codes is None:
            codes = self.columns.folded_names.alike(name)
            _cache(self._names, name, codes)
        return codes

    def predicates_alike(self, name: str) -> Sequence[int]:
        """Return the codes of the predicates that equal a name when folded; cached."""
        codes = self._predicates.get(name)
        if codes is None:
            codes = self.columns.folded_predicates.alike(name)
            _cache(self._predicates, name, codes)
        return codes

    def roles(self, n: int, scopes: frozenset[int] | None) -> RolesAt:
        """Return the roles at event ``n``; cached by count of ruling acts and by scopes."""
        count = rows_up_to(self._ruling_seqs, n) if len(self._ruling) else 0
        roles = self._roles.get((count, scopes))
        if roles is None:
            if len(self._roles) >= _CACHED_ROLES_MAX:
                self._roles.clear()
            last = int(self._ruling_seqs[count - 1]) if count else 0
            roles = RolesAt(self.columns.acts.role_history(count), last, scopes)
            self._roles[count, scopes] = roles
        return roles

    # --- checks of an append ---------------------------------------------------------------------

    def scope_of_fact(self, fact: int) -> Scope | None:
        """Return the scope of the fact that an id names, or None if no such fact exists."""
        row = self._row_of(fact)
        return None if row is None else self.columns.scopes.scope(self.scopes[row])

    def fact_named(self, fact: int) -> int:
        """Return the id of a fact by an id of the fact, such as the seq of a repeat."""
        row = self._row_of(fact)
        return fact if row is None else self.births[row]

    def is_closed(self, fact: int, n: int) -> bool:
        """Return whether an event up to ``n`` retracted a fact."""
        row = self._row_of(fact)
        return row is not None and self.closed[row] < rows_up_to(self.closing_seqs, n)

    def _row_of(self, fact: int) -> int | None:
        row = self.columns.row_of(fact) if fact > 0 else None
        # Another thread may have folded further: rows after this reader's state do not count.
        return None if row is None or row >= len(self.births) else row

    def holds(self, seq: int, n: int) -> bool:
        """Return whether the merge or split of event ``seq`` holds at event ``n``."""
        return self.roles(n, None).holds(seq)

    def merge_named(self, seq: int, n: int) -> tuple[str, str]:
        """Return the tenant and the entity of a merge that holds at event ``n``."""
        tenant, entity = self.roles(n, None).merge_of(seq)
        return self.columns.scopes.tenant_name(tenant), self.columns.strings.text(entity)

    def merged_into(
        self, tenant: str, name: str, n: int, *, within: Reach | None = None
    ) -> str | None:
        """Return the name that an entity is merged into at event ``n``, or None.

        With ``within`` only merges that it admits count.
        """
        key = self._entity(tenant, name)
        roles = self.roles(n, self.columns.scopes.admitted(within))
        into = None if key is None else roles.into(*key)
        return None if into is None else self.columns.strings.text(into)

    def is_named_within(self, tenant: str, name: str, n: int, scopes: Collection[int]) -> bool:
        """Return whether a fact or act by event ``n`` with a scope's code names an entity.

        Retracted facts count.
        """
        key = self._entity(tenant, name)
        if key is None:
            return False
        columns = self.columns
        number, code = key
        rows = columns.by_subject.find(self.subject_codes, code)
        objects = columns.by_object.find(self.object_numbers, code)
        rows += [row for row in objects if self.kinds[row] == ObjectKind.ENTITY]
        acts = columns.acts
        named = [(self.births[row], self.scopes[row]) for row in rows]
        named += [(acts.seq.item(act), acts.scope.item(act)) for act in acts.rows_naming(code)]
        tenants = columns.scopes.tenants
        return any(
            seq <= n and scope in scopes and tenants[scope] == number for seq, scope in named
        )

    def has_predicate_within(self, tenant: str, name: str, n: int, scopes: Collection[int]) -> bool:
        """Return whether a fact by event ``n`` with a scope's code has a predicate.

        Retracted facts count. Cost: a pass over the facts.
        """
        code = self.columns.predicates.find(name)
        number = self.columns.scopes.tenant_number(tenant)
        tenants = self.columns.scopes.tenants
        wanted = [scope for scope in scopes if tenants[scope] == number]
        if code is None or not wanted:
            return False
        count = rows_up_to(self.seqs, n)
        has_name = self.columns.predicate.view()[:count] == code
        return bool(np.isin(self.columns.scope.view()[:count][has_name], wanted).any())

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


def _cache(codes_of: dict[str, Sequence[int]], name: str, codes: Sequence[int]) -> None:
    if len(name) > _CACHED_NAME_MAX:
        return
    if len(codes_of) >= _CACHED_CODES_MAX:
        codes_of.clear()
    codes_of[name] = codes
