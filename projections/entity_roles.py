"""Who is who at one n: what entities are read as, and which predicates have one value at a time.

Owns the merges and splits that hold at n, and the declarations of predicates. A name in a fact is
looked up in this order: the last split of that fact whose entity it is read as, then merges.
Entities of two tenants are never the same.
"""

from collections.abc import Sequence

from .fact_columns import Act, FactColumns


class EntityRoles:
    """Names at one n, within a scope; immutable.

    - ``is_plain``: no merge and no split holds, so every name is read as itself.
    - ``merged`` is what entities, by (tenant, code), are merged into; ``merges`` by which seq.
    - ``functional`` are the (tenant, predicate) with one value at a time.
    """

    def __init__(
        self, columns: FactColumns, acts: Sequence[int], scopes: frozenset[int] | None
    ) -> None:
        """``acts`` are the rows of the acts by n, in order; those in ``scopes`` are seen."""
        self._columns = columns
        functional: dict[tuple[int, int], bool] = {}
        merges: dict[int, tuple[int, int, int]] = {}
        splits: dict[int, list[tuple[int, int, int]]] = {}
        table = [column.view() for _, column in columns.acts]
        for act in acts:
            seq, scope, what, one, other, number = (int(column[act]) for column in table)
            if what == Act.END:
                # Whoever said it, what it ends has ended, as with a retraction.
                merges.pop(number, None)
                splits.pop(number, None)
                continue
            if scopes is not None and scope not in scopes:
                continue
            tenant = columns.scope_tenant[scope]
            if what == Act.PREDICATE:
                functional[tenant, one] = bool(number)
            elif what == Act.MERGE:
                merges[seq] = tenant, one, other
            elif what == Act.SPLIT:
                splits.setdefault(seq, []).append((one, other, number))
        self.functional = frozenset(key for key, holds in functional.items() if holds)
        self.merged = {(tenant, one): into for tenant, one, into in merges.values()}
        self.merges = {seq: (tenant, one) for seq, (tenant, one, _) in merges.items()}
        self._split_seqs = frozenset(splits)
        self._splits: dict[int, list[tuple[int, int]]] = {}
        for moves in splits.values():
            for one, into, row in moves:
                self._splits.setdefault(row, []).append((one, into))
        self.is_plain = not self.merged and not self._splits
        self._related = _groups(
            [(one, into) for (_, one), into in self.merged.items()]
            + [pair for moves in self._splits.values() for pair in moves]
        )

    def holds(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge or split that holds."""
        return seq in self.merges or seq in self._split_seqs

    def root(self, tenant: int, entity: int) -> int:
        """Return what an entity is read as where no split says otherwise."""
        while (following := self.merged.get((tenant, entity))) is not None:
            entity = following
        return entity

    def read(self, row: int, entity: int) -> int:
        """Return what an entity that a fact names is read as."""
        if self.is_plain:
            return entity
        return self.root(self._tenant(row), self.named(row, entity))

    def named(self, row: int, entity: int) -> int:
        """Return what an entity that a fact names stands for by the splits of it, before merges."""
        tenant = self._tenant(row)
        root = self.root(tenant, entity)
        for one, into in reversed(self._splits.get(row, ())):
            if self.root(tenant, one) == root:
                return into
        return entity

    def _tenant(self, row: int) -> int:
        return self._columns.scope_tenant[int(self._columns.scope.view()[row])]

    def reads_as(self, row: int, entity: int, wanted: int) -> bool:
        """Tell whether an entity that a fact names is read as ``wanted`` is."""
        return self.read(row, entity) == self.root(self._tenant(row), wanted)

    def related(self, entity: int) -> frozenset[int]:
        """Return the entities that may be read as one is, in some fact or tenant; it among them."""
        return self._related.get(entity) or frozenset((entity,))


def _groups(pairs: Sequence[tuple[int, int]]) -> dict[int, frozenset[int]]:
    """Return the connected entities of each that is in a pair."""
    groups: dict[int, set[int]] = {}
    for one, other in pairs:
        joined = groups.get(one, {one}) | groups.get(other, {other})
        for member in joined:
            groups[member] = joined
    return {member: frozenset(group) for member, group in groups.items()}
