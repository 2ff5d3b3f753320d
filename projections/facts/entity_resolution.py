"""Entity identity: which entity each name is read as, and which predicates are functional.

Owns the reading of a name, and the merges, splits and declarations of predicates that hold after
the newest event of a fold; `role_history` has the same for any n. A name in a fact is resolved by
the last split of that fact for the same entity, then by merges. Keys of entities and of predicates
are (tenant, code); entities of two tenants are never the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple


class Act(IntEnum):
    """The kind of an act, with its three numbers. On disk: never renumber."""

    PREDICATE = 1
    """(predicate, 0, 1 if functional)"""
    ENTITY = 2
    """(entity, kind's name or 0, 0)"""
    ALIAS = 3
    """(entity, alias, the alias folded)"""
    MERGE = 4
    """(entity, into, 0)"""
    SPLIT = 5
    """(entity, into, row of a fact)"""
    END = 6
    """(0, 0, seq of the merge or split that ends)"""
    ANOMALY = 7
    """(0, 0, `FactAnomaly`)"""


class ActRow(NamedTuple):
    """An act: its event and tenant, the `Act` in ``kind``, and three numbers."""

    seq: int
    tenant: int
    kind: int
    subject: int
    target: int
    number: int


class Roles(ABC):
    """The reading of names under the merges and splits that hold."""

    @abstractmethod
    def into(self, tenant: int, entity: int) -> int | None:
        """Return the entity that this entity is merged into, or None."""

    @abstractmethod
    def merged_here(self, tenant: int, entity: int) -> Iterable[int]:
        """Return the entities that are merged into this entity, in no order."""

    @abstractmethod
    def splits_of(self, row: int) -> list[tuple[int, int]]:
        """Return (entity, into) of each split of a row that holds, in order of their events."""

    def root(self, tenant: int, entity: int) -> int:
        """Return the entity at the end of an entity's merges, without splits."""
        while (following := self.into(tenant, entity)) is not None:
            entity = following
        return entity

    def named(self, tenant: int, row: int, entity: int) -> int:
        """Return the entity that a name in a row denotes by the row's splits, before merges."""
        splits = self.splits_of(row)
        if splits:
            root = self.root(tenant, entity)
            for source, into in reversed(splits):
                if self.root(tenant, source) == root:
                    return into
        return entity

    def read(self, tenant: int, row: int, entity: int) -> int:
        """Return the entity that a name in a row is read as."""
        return self.root(tenant, self.named(tenant, row, entity))

    def names_of(self, tenant: int, root: int) -> list[int]:
        """Return the entities whose merges end at ``root``, ``root`` first."""
        entities = [root]
        for entity in entities:
            entities += sorted(self.merged_here(tenant, entity))
        return entities

    def leads_to(self, tenant: int, entity: int, target: int) -> bool:
        """Return whether an entity is the target, or merges lead from the entity to the target.

        Cost: the shorter of two walks, up from the entity and down from the target. So n merges
        that join n entities cost O(n log n) together, in any order.
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
        iterators = [iter(self.merged_here(tenant, entity))]
        while iterators:
            below = next(iterators[-1], None)
            if below is None:
                iterators.pop()
            else:
                yield below
                iterators.append(iter(self.merged_here(tenant, below)))


class EntityRoles(Roles):
    """The reading of names after the newest act that `take` applied."""

    def __init__(self) -> None:
        self.merged: dict[tuple[int, int], int] = {}
        """The (tenant, entity) of each merged entity, to the entity merged into."""
        self.merges: dict[int, tuple[int, int]] = {}
        """The (tenant, entity) of each merge that holds, by seq."""
        self._merged_here: dict[tuple[int, int], set[int]] = {}
        self._splits: dict[int, dict[int, tuple[int, int]]] = {}
        """The splits of each row that hold: (entity, into) by seq, ascending."""
        self._split_rows: dict[int, list[int]] = {}
        self._functional: dict[tuple[int, int], bool] = {}

    # --- following -------------------------------------------------------------------------------

    def take(self, act: ActRow) -> None:
        """Apply an act; see `is_valid`."""
        seq, tenant, kind, subject, target, number = act
        if kind == Act.PREDICATE:
            self._functional[tenant, subject] = bool(number)
        elif kind == Act.MERGE:
            self.merged[tenant, subject] = target
            self.merges[seq] = tenant, subject
            self._merged_here.setdefault((tenant, target), set()).add(subject)
        elif kind == Act.SPLIT:
            self._splits.setdefault(number, {})[seq] = subject, target
            self._split_rows.setdefault(seq, []).append(number)
        elif kind == Act.END:
            self._end(number)

    def _end(self, seq: int) -> None:
        """End a merge or split; an act outside the scope was never applied, and is ignored."""
        entity = self.merges.pop(seq, None)
        if entity is not None:
            into = self.merged.pop(entity)
            self._merged_here[entity[0], into].discard(entity[1])
        for row in self._split_rows.pop(seq, ()):
            # A split may name a row twice, by the ids of two events that assert the fact.
            splits = self._splits.get(row, {})
            splits.pop(seq, None)
            if not splits:
                self._splits.pop(row, None)

    def is_valid(self, act: ActRow) -> bool:
        """Return whether an act is valid: no cycle of merges, no end of an act that does not hold.

        Meaningful only if every act was applied, not just the acts within a scope.
        """
        if act.kind == Act.MERGE:
            is_free = (act.tenant, act.subject) not in self.merged
            return is_free and not self.leads_to(act.tenant, act.target, act.subject)
        return act.kind != Act.END or self.holds(act.number)

    # --- reading ---------------------------------------------------------------------------------

    def is_functional(self, tenant: int, predicate: int) -> bool:
        """Return whether a subject has one value of a predicate at a time."""
        return self._functional.get((tenant, predicate), False)

    def is_merge(self, seq: int) -> bool:
        """Return whether event ``seq`` is a merge that holds."""
        return seq in self.merges

    def holds(self, seq: int) -> bool:
        """Return whether event ``seq`` is a merge or split that holds."""
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
