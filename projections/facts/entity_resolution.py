"""Entity identity: which entity each name is read as, and which predicates are functional.

Owns the reading of a name, and the merges, splits and declarations of predicates that hold after
the newest event of a fold, and the same for any n. A name in a fact is resolved by the last split
of that fact for the same entity, then by merges. Keys of entities and of predicates are (tenant,
code); entities of two tenants are never the same.
"""

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from operator import itemgetter
from typing import Final, NamedTuple


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


# --- The meaning of entity names at any n: an index of merges, splits and declarations; its reader
#
# The index follows the acts that determine the meaning of names; each entry has the seq of its
# event, so a reader of an earlier n ignores later entries. An act followed twice changes nothing:
# the next reader repeats an interrupted step.


_NEVER: Final = 1 << 63


class _Ruling(NamedTuple):
    """A merge or split: ``entity`` is read as ``into``. ``scope`` is a code."""

    tenant: int
    entity: int
    into: int
    scope: int


_Counts = list[tuple[int, int]]
"""(seq, number of merges and splits that hold from this event on), ascending."""


class RoleHistory:
    """The acts that determine the meaning of names, by entity, row and predicate. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._followed = 0
        self.merges: dict[tuple[int, int], list[int]] = {}
        """The merges of each (tenant, entity), ascending."""
        self.into: dict[tuple[int, int], list[int]] = {}
        """The merges into each (tenant, entity), ascending."""
        self.splits: dict[int, list[int]] = {}
        """The splits of each row, ascending."""
        self.near: dict[int, list[int]] = {}
        """The merges and splits of any tenant that name each entity, ascending."""
        self.rulings: dict[int, _Ruling] = {}
        """Each merge and split, by the seq of its event."""
        self.ended: dict[int, int] = {}
        """The seq that ended each merge and split."""
        self.declared: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        """The declarations of each (tenant, predicate): (seq, scope, whether functional)."""
        self.functional_from: dict[int | None, int] = {}
        """The first declaration of a functional predicate in each scope, and in any (None)."""
        self.counts: dict[int | None, _Counts] = {None: []}
        """The counts of each scope, and of all scopes (None)."""

    def follow(self, count: int, act_of: Callable[[int], tuple[int, ActRow]]) -> None:
        """Index the first ``count`` acts; ``act_of`` returns the scope and the act at a place."""
        if self._followed >= count:
            return
        with self._lock:
            for place in range(self._followed, count):
                self._take(*act_of(place))
                self._followed = place + 1

    def _take(self, scope: int, act: ActRow) -> None:
        seq, tenant, kind, entity, into, number = act
        if kind == Act.PREDICATE:
            declared = self.declared.setdefault((tenant, entity), [])
            if not declared or declared[-1][0] < seq:
                declared.append((seq, scope, number))
            if number:
                self.functional_from.setdefault(scope, seq)
                self.functional_from.setdefault(None, seq)
        elif kind == Act.END:
            ruling = self.rulings.get(number)
            # An end of an unknown merge or split changes nothing.
            if ruling is not None and self.ended.setdefault(number, seq) == seq:
                self._count(seq, ruling.scope, -1)
        else:
            self.rulings[seq] = _Ruling(tenant, entity, into, scope)
            if kind == Act.MERGE:
                _add(self.merges.setdefault((tenant, entity), []), seq)
                _add(self.into.setdefault((tenant, into), []), seq)
            else:
                _add(self.splits.setdefault(number, []), seq)
            _add(self.near.setdefault(entity, []), seq)
            _add(self.near.setdefault(into, []), seq)
            self._count(seq, scope, 1)

    def _count(self, seq: int, scope: int, step: int) -> None:
        for counts in (self.counts[None], self.counts.setdefault(scope, [])):
            if not counts or counts[-1][0] < seq:
                counts.append((seq, (counts[-1][1] if counts else 0) + step))


def _add(seqs: list[int], seq: int) -> None:
    if not seqs or seqs[-1] < seq:
        seqs.append(seq)


class RolesAt(Roles):
    """The meaning of entity names at seq n, within scopes; immutable, for any thread.

    The end of a merge or split applies to every scope, like a retraction.
    """

    def __init__(self, history: RoleHistory, n: int, scopes: frozenset[int] | None) -> None:
        self._history = history
        self._n = n
        self._scopes = scopes
        self._roots: dict[tuple[int, int], int] = {}
        self._groups: dict[int, frozenset[int]] = {}
        self.is_plain: bool = not self._any_holds()
        """True if no merge and no split holds, so that every name means itself."""
        first = history.functional_from
        self.any_functional: bool = any(
            first.get(scope, _NEVER) <= n for scope in self._scopes_in(first)
        )
        """True if a functional predicate was declared by n; it may have been changed since."""

    def _any_holds(self) -> bool:
        by_scope = self._history.counts
        n = self._n
        for scope in self._scopes_in(by_scope):
            counts = by_scope.get(scope, ())
            place = bisect_right(counts, n, key=itemgetter(0))
            if place and counts[place - 1][1]:
                return True
        return False

    def _scopes_in(
        self, by_scope: "dict[int | None, _Counts] | dict[int | None, int]"
    ) -> list[int | None]:
        """Return the keys of a map by scope that lie within the scopes; None means all scopes."""
        if self._scopes is None:
            return [None]
        if len(self._scopes) <= len(by_scope):
            return list(self._scopes)
        return [scope for scope in list(by_scope) if scope in self._scopes]

    def holds(self, seq: int) -> bool:
        """Return whether event ``seq`` is a merge or split that holds."""
        history = self._history
        ruling = history.rulings.get(seq)
        if ruling is None or seq > self._n or history.ended.get(seq, _NEVER) <= self._n:
            return False
        return self._scopes is None or ruling.scope in self._scopes

    def merge_of(self, seq: int) -> tuple[int, int]:
        """Return the tenant and the entity of a merge."""
        ruling = self._history.rulings[seq]
        return ruling.tenant, ruling.entity

    def into(self, tenant: int, entity: int) -> int | None:
        seqs = self._history.merges.get((tenant, entity))
        if seqs is None:
            return None
        place = len(seqs) if seqs[-1] <= self._n else bisect_right(seqs, self._n)
        # An entity is merged again only after its previous merge ended.
        if not place or not self.holds(seqs[place - 1]):
            return None
        return self._history.rulings[seqs[place - 1]].into

    def root(self, tenant: int, entity: int) -> int:
        passed: list[int] = []
        roots = self._roots
        while True:
            root = roots.get((tenant, entity))
            if root is not None:
                entity = root
                break
            following = self.into(tenant, entity)
            if following is None:
                break
            passed.append(entity)
            entity = following
        for merged in passed:
            roots[tenant, merged] = entity
        return entity

    def merged_here(self, tenant: int, entity: int) -> Iterator[int]:
        rulings = self._history.rulings
        seqs = self._history.into.get((tenant, entity), ())
        return (rulings[seq].entity for seq in seqs if self.holds(seq))

    def splits_of(self, row: int) -> list[tuple[int, int]]:
        rulings = self._history.rulings
        seqs = [seq for seq in self._history.splits.get(row, ()) if self.holds(seq)]
        return [(rulings[seq].entity, rulings[seq].into) for seq in seqs]

    def is_functional(self, tenant: int, predicate: int) -> bool:
        """Return whether a predicate is functional: a subject has a single value at a time."""
        declared = self._history.declared.get((tenant, predicate), ())
        for place in range(bisect_right(declared, self._n, key=itemgetter(0)), 0, -1):
            _, scope, functional = declared[place - 1]
            if self._scopes is None or scope in self._scopes:
                return bool(functional)
        return False

    def declarations(self, tenant: int, predicate: int) -> list[tuple[int, int, int]]:
        """Return (seq, scope, functional) of the declarations of a predicate, in any scope."""
        declared = self._history.declared.get((tenant, predicate), [])
        return declared[: bisect_right(declared, self._n, key=itemgetter(0))]

    def merge_into(self, tenant: int, entity: int, into: int, scope: int) -> int | None:
        """Return the merge of an entity into another that holds and has exactly a scope."""
        for seq in self._history.merges.get((tenant, entity), ()):
            ruling = self._history.rulings[seq]
            if self.holds(seq) and (ruling.into, ruling.scope) == (into, scope):
                return seq
        return None

    def reads_as(self, other: "RolesAt") -> bool:
        """Return whether both read every name as itself, with equal functional predicates."""
        if not self.is_plain or not other.is_plain:
            return False
        return all(
            self.is_functional(*key) == other.is_functional(*key)
            for key in list(self._history.declared)
        )

    def related(self, entity: int) -> frozenset[int]:
        """Return the entities that may mean the same in any row or tenant, ``entity`` included."""
        group = self._groups.get(entity)
        if group is None:
            group = self._group(entity)
            self._groups.update(dict.fromkeys(group, group))
        return group

    def _group(self, entity: int) -> frozenset[int]:
        history = self._history
        group = {entity}
        left = [entity]
        while left:
            for seq in history.near.get(left.pop(), ()):
                if not self.holds(seq):
                    continue
                ruling = history.rulings[seq]
                for member in (ruling.entity, ruling.into):
                    if member not in group:
                        group.add(member)
                        left.append(member)
        return frozenset(group)
