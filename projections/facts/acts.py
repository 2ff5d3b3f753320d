"""The acts on entities and predicates: their table, and its indexes.

Owns look-ups of acts by the names in them, and the checks of acts in a chunk. Leaves out the
meaning of acts for names (`entity_resolution`).
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

import numpy as np

from ..columnar.columns import Column, require
from ..columnar.hash_index import HashIndex
from ..columnar.names import NO_NAME
from ..columnar.scopes import ScopeNames
from ..columnar.tables import LoadedRows, Table, check_codes
from .entity_resolution import Act, ActRow, EntityRoles, RoleHistory

_RULING: Final = np.array([Act.PREDICATE, Act.MERGE, Act.SPLIT, Act.END], np.uint8)

_OF_TWO: Final = frozenset((Act.MERGE, Act.SPLIT))
"""Acts whose second number names an entity."""
_OF_ENTITIES: Final = _OF_TWO | {Act.ENTITY, Act.ALIAS}
"""Acts whose first number names an entity."""


class ActTable(Table):
    """Every act that the facts fold applied, in order of seq.

    - ``ruling`` has the rows of the acts that change the reading of facts.
    - ``any_aliases`` is True if an act declares an alias.
    """

    def __init__(self, scopes: ScopeNames) -> None:
        super().__init__("acts")
        # The anomaly of an erased event has no scope.
        self.scope = self.column("scope", np.uint32, (NO_NAME, scopes))
        self.kind = self.column("what", np.uint8, (1, max(Act)))
        self.subject = self.column("one", np.uint32)
        self.target = self.column("other", np.uint32)
        self.number = self.column("number", np.int64)
        # Derived.
        self.ruling = Column(np.uint32)
        self.any_aliases = False
        self._by_subject = HashIndex()
        self._by_target = HashIndex()
        self._by_number = HashIndex()
        self._role_history = RoleHistory()
        self._scopes = scopes

    def append(self, rows: Sequence[Sequence[int]]) -> None:
        super().append(rows)
        self._derive(len(rows))

    def load(self, rows: LoadedRows) -> None:
        super().load(rows)
        self._derive(len(rows["seq"]))

    def share(self, table: Table, through: int) -> None:
        super().share(table, through)
        self._derive(len(self))

    def roles(self) -> EntityRoles:
        """Return the reading of names after all acts; about 2 us for each ruling act."""
        roles = EntityRoles()
        for row in self.ruling.view().tolist():
            roles.take(self.act(row))
        return roles

    def _derive(self, count: int) -> None:
        start = len(self) - count
        kinds = self.kind.view()[start:]
        ruling = np.flatnonzero(np.isin(kinds, _RULING)) + start
        self.ruling.extend(ruling.astype(np.uint32))
        self.any_aliases = self.any_aliases or bool((kinds == Act.ALIAS).any())

    def act(self, row: int) -> ActRow:
        """Return the act in a row."""
        return self._with_tenant(self.row(row))

    def until(self, end: int) -> Iterator[tuple[int, ActRow]]:
        """Yield the first ``end`` acts in order, each with its scope's code."""
        return ((row[1], self._with_tenant(row)) for row in self.rows(0, end))

    def _with_tenant(self, row: tuple[int, ...]) -> ActRow:
        return ActRow(row[0], self._scopes.tenants[row[1]], *row[2:])

    def role_history(self, count: int) -> RoleHistory:
        """Return the history of the first ``count`` ruling acts.

        Cost: about 5 us for each act since the last call.
        """
        ruling = self.ruling.view()
        self._role_history.follow(count, lambda place: self._scoped_act(int(ruling[place])))
        return self._role_history

    def _scoped_act(self, row: int) -> tuple[int, ActRow]:
        return self.scope.item(row), self.act(row)

    def rows_naming(self, code: int) -> list[int]:
        """Return the rows of acts that name a string as an entity, ascending."""
        kinds = self.kind.view()
        subjects = self._by_subject.find(self.subject.view(), code)
        targets = self._by_target.find(self.target.view(), code)
        rows = {row for row in subjects if kinds[row] in _OF_ENTITIES}
        return sorted(rows.union(row for row in targets if kinds[row] in _OF_TWO))

    def rows_of_alias(self, folded: int) -> list[int]:
        """Return the rows that declare an alias, by the code of its folded form; ascending."""
        numbers = self.number.view().view(np.uint64)
        kinds = self.kind.view()
        return [row for row in self._by_number.find(numbers, folded) if kinds[row] == Act.ALIAS]

    @property
    def size_bytes(self) -> int:
        """Memory of the columns and indexes."""
        indexes = (self._by_subject, self._by_target, self._by_number)
        return super().size_bytes + sum(index.size_bytes for index in indexes)


def roles_after(roles: EntityRoles, acts: LoadedRows, tenants: Sequence[int]) -> EntityRoles:
    """Return the roles after the acts of a chunk. Raises `Corrupt` for an invalid act."""
    if not len(acts["seq"]):
        return roles
    roles = deepcopy(roles)
    for seq, scope, *rest in zip(*(column.tolist() for column in acts.values()), strict=True):
        act = ActRow(seq, tenants[scope], *rest)
        require(roles.is_valid(act), "an act merges in a cycle, or ends an act that does not hold")
        roles.take(act)
    return roles


def check_acts(acts: LoadedRows, texts: int, predicates: int, kinds: int, rows: int) -> None:
    """Raise `Corrupt` unless the codes and rows in acts exist."""
    act_kinds = acts["what"]
    sources = acts["one"]
    targets = acts["other"]
    numbers = acts["number"]
    check_codes(sources[act_kinds == Act.PREDICATE], 1, predicates)
    named = (act_kinds >= Act.ENTITY) & (act_kinds <= Act.SPLIT)
    check_codes(sources[named], 1, texts)
    check_codes(targets[named & (act_kinds != Act.ENTITY)], 1, texts)
    check_codes(targets[act_kinds == Act.ENTITY], NO_NAME, kinds)
    check_codes(numbers[act_kinds == Act.ALIAS], 1, texts)
    check_codes(numbers[act_kinds == Act.SPLIT], 0, rows - 1)
