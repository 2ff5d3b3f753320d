"""Who is who: what entities are read as, and which predicates have one value at a time.

Owns the merges and splits that hold, and the declarations of predicates: the fold has those of its
newest event, and a reader those at its n. A name in a fact is looked up in this order: the last
split of that fact whose entity it is read as, then merges. Entities, as predicates, go by
(tenant, code); those of two tenants are never the same.
"""

from collections.abc import Iterable
from copy import deepcopy
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple


class Act(IntEnum):
    """What an act says, with its three numbers. On disk: never renumber."""

    PREDICATE = 1
    """(predicate, 0, whether it is functional)"""
    ENTITY = 2
    """(entity, kind's name or 0, 0)"""
    ALIAS = 3
    """(entity, alias, the alias folded)"""
    MERGE = 4
    """(entity, into, 0)"""
    SPLIT = 5
    """(entity, into, row of one fact)"""
    END = 6
    """(0, 0, seq of the merge or split that ends)"""
    ODDITY = 7
    """(0, 0, `FactOddity`)"""


class ActRow(NamedTuple):
    """One act: event, tenant, what, and its three numbers."""

    seq: int
    tenant: int
    what: int
    one: int
    other: int
    number: int


class EntityRoles:
    """Names at one n. Whoever made it may have it follow further acts, which then hold."""

    def __init__(self) -> None:
        self.merged: dict[tuple[int, int], int] = {}
        """What entities are merged into."""
        self.merges: dict[int, tuple[int, int]] = {}
        """What each merge that holds has merged, by its seq."""
        self._merged_here: dict[tuple[int, int], set[int]] = {}
        self._splits: dict[int, dict[int, tuple[int, int]]] = {}
        """Of each row the splits that hold: what they take for what, by seq in order."""
        self._split_rows: dict[int, list[int]] = {}
        self._functional: dict[tuple[int, int], bool] = {}

    # --- following -------------------------------------------------------------------------------

    def take(self, act: ActRow) -> None:
        """Follow an act that may hold."""
        seq, tenant, what, one, other, number = act
        if what == Act.PREDICATE:
            self._functional[tenant, one] = bool(number)
        elif what == Act.MERGE:
            self.merged[tenant, one] = other
            self.merges[seq] = tenant, one
            self._merged_here.setdefault((tenant, other), set()).add(one)
        elif what == Act.SPLIT:
            self._splits.setdefault(number, {})[seq] = one, other
            self._split_rows.setdefault(seq, []).append(number)
        elif what == Act.END:
            self._end(number)

    def _end(self, seq: int) -> None:
        """End a merge or split, if it is seen here: one of another scope is not."""
        entity = self.merges.pop(seq, None)
        if entity is not None:
            into = self.merged.pop(entity)
            self._merged_here[entity[0], into].discard(entity[1])
        for row in self._split_rows.pop(seq, ()):
            # It may name a row twice, by the ids of two events that assert it.
            held = self._splits.get(row, {})
            held.pop(seq, None)
            if not held:
                self._splits.pop(row, None)

    def may_hold(self, act: ActRow) -> bool:
        """Tell whether an act can follow: no circle of merges, and nothing ends that does not hold.

        Of acts that were seen all, which those within a scope are not.
        """
        if act.what == Act.MERGE:
            is_free = (act.tenant, act.one) not in self.merged
            return is_free and self.root(act.tenant, act.other) != act.one
        return act.what != Act.END or self.holds(act.number)

    def copy(self) -> "EntityRoles":
        """Return one that follows other acts from here on."""
        return deepcopy(self)

    # --- reading ---------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Whether no merge and no split holds, so that every name is read as itself."""
        return not self.merged and not self._splits

    def is_functional(self, tenant: int, predicate: int) -> bool:
        """Tell whether a predicate has one value at a time."""
        return self._functional.get((tenant, predicate), False)

    @property
    def any_functional(self) -> bool:
        """Whether any predicate has one value at a time."""
        return any(self._functional.values())

    def reads_as(self, other: "EntityRoles") -> bool:
        """Tell whether both read every name as itself, and the same predicates as functional."""
        return self.is_plain and other.is_plain and self._functional == other._functional

    def is_merge(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge that holds."""
        return seq in self.merges

    def holds(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge or split that holds."""
        return seq in self.merges or seq in self._split_rows

    def root(self, tenant: int, entity: int) -> int:
        """Return what an entity is read as where no split says otherwise."""
        while (following := self.merged.get((tenant, entity))) is not None:
            entity = following
        return entity

    def named(self, tenant: int, row: int, entity: int) -> int:
        """Return what an entity that a row names stands for by the splits of it, before merges."""
        splits = self._splits.get(row)
        if splits is not None:
            root = self.root(tenant, entity)
            for one, into in reversed(splits.values()):
                if self.root(tenant, one) == root:
                    return into
        return entity

    def read(self, tenant: int, row: int, entity: int) -> int:
        """Return what an entity that a row names is read as."""
        return self.root(tenant, self.named(tenant, row, entity))

    def names_of(self, tenant: int, root: int) -> list[int]:
        """Return the entities that are read as one where no split says otherwise; it first."""
        found = [root]
        for entity in found:
            found += sorted(self._merged_here.get((tenant, entity), ()))
        return found

    @property
    def split_rows(self) -> list[int]:
        """The rows with a split that holds."""
        return list(self._splits)

    def related(self, entity: int) -> frozenset[int]:
        """Return the entities that may be read as one is, in some row or tenant; it among them.

        Only of one that follows no further acts.
        """
        return self._related.get(entity) or frozenset((entity,))

    @cached_property
    def _related(self) -> dict[int, frozenset[int]]:
        pairs = [(one, into) for (_, one), into in self.merged.items()]
        pairs += [pair for splits in self._splits.values() for pair in splits.values()]
        return _groups(pairs)


def _groups(pairs: Iterable[tuple[int, int]]) -> dict[int, frozenset[int]]:
    """Return the connected entities of each that is in a pair."""
    groups: dict[int, set[int]] = {}
    for one, other in pairs:
        joined = groups.get(one, {one}) | groups.get(other, {other})
        for member in joined:
            groups[member] = joined
    return {member: frozenset(group) for member, group in groups.items()}
