"""Who is who: what entities are read as, and which predicates have one value at a time.

Owns how a name is read, and the merges, splits and declarations of predicates that hold after the
newest event of a fold; `role_history` has those of any n. A name in a fact is looked up in this
order: the last split of that fact whose entity it is read as, then merges. Entities, as predicates,
go by (tenant, code); those of two tenants are never the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import deepcopy
from enum import IntEnum
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


class Roles(ABC):
    """How names are read, by the merges and splits that hold."""

    @abstractmethod
    def into(self, tenant: int, entity: int) -> int | None:
        """Return what an entity is merged into, or None."""

    @abstractmethod
    def merged_here(self, tenant: int, entity: int) -> Iterable[int]:
        """Return the entities that are merged into one, in no order."""

    @abstractmethod
    def splits_of(self, row: int) -> list[tuple[int, int]]:
        """Return what the splits of a row that hold take for what, in order of their events."""

    def root(self, tenant: int, entity: int) -> int:
        """Return what an entity is read as where no split says otherwise."""
        while (following := self.into(tenant, entity)) is not None:
            entity = following
        return entity

    def named(self, tenant: int, row: int, entity: int) -> int:
        """Return what an entity that a row names stands for by the splits of it, before merges."""
        splits = self.splits_of(row)
        if splits:
            root = self.root(tenant, entity)
            for one, into in reversed(splits):
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
            found += sorted(self.merged_here(tenant, entity))
        return found

    def leads_to(self, tenant: int, entity: int, target: int) -> bool:
        """Tell whether an entity is another, or merges lead from it there.

        Cost: the shorter of two ways: up from the entity, and down through all that is read as the
        target. So n merges that join n entities cost O(n log n) together, in any order.
        """
        at = entity
        for below in self._below(tenant, target):
            if at == target or below == entity:
                return True
            following = self.into(tenant, at)
            if following is None:
                return False
            at = following
        return False

    def _below(self, tenant: int, entity: int) -> Iterator[int]:
        yield entity
        left = [iter(self.merged_here(tenant, entity))]
        while left:
            one = next(left[-1], None)
            if one is None:
                left.pop()
            else:
                yield one
                left.append(iter(self.merged_here(tenant, one)))


class EntityRoles(Roles):
    """Names after the newest act that a fold has had it follow."""

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
            return is_free and not self.leads_to(act.tenant, act.other, act.one)
        return act.what != Act.END or self.holds(act.number)

    def copy(self) -> "EntityRoles":
        """Return one that follows other acts from here on."""
        return deepcopy(self)

    # --- reading ---------------------------------------------------------------------------------

    def is_functional(self, tenant: int, predicate: int) -> bool:
        """Tell whether a predicate has one value at a time."""
        return self._functional.get((tenant, predicate), False)

    def is_merge(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge that holds."""
        return seq in self.merges

    def holds(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge or split that holds."""
        return seq in self.merges or seq in self._split_rows

    def into(self, tenant: int, entity: int) -> int | None:
        return self.merged.get((tenant, entity))

    def root(self, tenant: int, entity: int) -> int:
        merged = self.merged
        while (following := merged.get((tenant, entity))) is not None:
            entity = following
        return entity

    def merged_here(self, tenant: int, entity: int) -> Iterable[int]:
        return self._merged_here.get((tenant, entity), ())

    def splits_of(self, row: int) -> list[tuple[int, int]]:
        return list(self._splits.get(row, {}).values())

    @property
    def split_rows(self) -> list[int]:
        """The rows with a split that holds."""
        return list(self._splits)
