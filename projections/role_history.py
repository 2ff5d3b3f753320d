"""Who is who at any n: an index of merges, splits and declarations, and its reader of one n.

Owns the look-ups, which cost the same whatever was merged elsewhere. The index follows the acts
that decide how facts are read; each entry carries the event that made it, so a reader of an earlier
n passes over what came later. To follow an act twice changes nothing: an interrupted step is done
again by the next reader.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from .entity_roles import Act, ActRow, Roles

_NEVER: Final = 1 << 63


class _Ruling(NamedTuple):
    """A merge or split: its tenant, what it reads as what, and the code of its scope."""

    tenant: int
    one: int
    other: int
    scope: int


_Counts = list[tuple[int, int]]
"""How many merges and splits hold from each event on, ascending."""


class RoleHistory:
    """The acts that decide how facts are read, by what they name. Any thread may have it follow."""

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
        """Each merge and split, by its event."""
        self.ended: dict[int, int] = {}
        """The event that ended each of them."""
        self.declared: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        """The declarations of each (tenant, predicate): (event, scope, whether functional)."""
        self.functional_from: dict[int | None, int] = {}
        """The first declaration of a functional predicate in each scope, and in any (None)."""
        self.held: dict[int | None, _Counts] = {None: []}
        """What holds in each scope, and in any (None)."""

    def follow(self, count: int, act_of: Callable[[int], tuple[int, ActRow]]) -> None:
        """Take in the first ``count`` acts; ``act_of`` gives the scope and the act of a place."""
        if self._followed >= count:
            return
        with self._lock:
            for place in range(self._followed, count):
                self._take(*act_of(place))
                self._followed = place + 1

    def _take(self, scope: int, act: ActRow) -> None:
        seq, tenant, what, one, other, number = act
        if what == Act.PREDICATE:
            declared = self.declared.setdefault((tenant, one), [])
            if not declared or declared[-1][0] < seq:
                declared.append((seq, scope, number))
            if number:
                self.functional_from.setdefault(scope, seq)
                self.functional_from.setdefault(None, seq)
        elif what == Act.END:
            ruling = self.rulings.get(number)
            # An end of what never held changes nothing.
            if ruling is not None and self.ended.setdefault(number, seq) == seq:
                self._count(seq, ruling.scope, -1)
        else:
            self.rulings[seq] = _Ruling(tenant, one, other, scope)
            if what == Act.MERGE:
                _add(self.merges.setdefault((tenant, one), []), seq)
                _add(self.into.setdefault((tenant, other), []), seq)
            else:
                _add(self.splits.setdefault(number, []), seq)
            _add(self.near.setdefault(one, []), seq)
            _add(self.near.setdefault(other, []), seq)
            self._count(seq, scope, 1)

    def _count(self, seq: int, scope: int, step: int) -> None:
        for counts in (self.held[None], self.held.setdefault(scope, [])):
            if not counts or counts[-1][0] < seq:
                counts.append((seq, (counts[-1][1] if counts else 0) + step))


def _add(seqs: list[int], seq: int) -> None:
    if not seqs or seqs[-1] < seq:
        seqs.append(seq)


class RolesAt(Roles):
    """Who is who at one n, within scopes; immutable, for any thread.

    What ended a merge or split ended it for every scope, as a retraction does.
    """

    def __init__(self, history: RoleHistory, n: int, scopes: frozenset[int] | None) -> None:
        self._history = history
        self._n = n
        self._scopes = scopes
        self._roots: dict[tuple[int, int], int] = {}
        self._groups: dict[int, frozenset[int]] = {}
        self.is_plain: bool = not self._any_holds()
        """Whether no merge and no split holds, so that every name is read as itself."""

    def _any_holds(self) -> bool:
        held, n = self._history.held, self._n
        for scope in self._scopes_in(held):
            counts = held.get(scope, ())
            place = bisect_right(counts, n, key=_first)
            if place and counts[place - 1][1]:
                return True
        return False

    def _scopes_in(
        self, held: "dict[int | None, _Counts] | dict[int | None, int]"
    ) -> list[int | None]:
        """Return the keys of a count by scope that lie within the scopes; None stands for all."""
        if self._scopes is None:
            return [None]
        if len(self._scopes) <= len(held):
            return list(self._scopes)
        return [scope for scope in list(held) if scope in self._scopes]

    def holds(self, seq: int) -> bool:
        """Tell whether event ``seq`` is a merge or split that holds."""
        history = self._history
        ruling = history.rulings.get(seq)
        if ruling is None or seq > self._n or history.ended.get(seq, _NEVER) <= self._n:
            return False
        return self._scopes is None or ruling.scope in self._scopes

    def merge_of(self, seq: int) -> tuple[int, int]:
        """Return the tenant and the entity of a merge."""
        ruling = self._history.rulings[seq]
        return ruling.tenant, ruling.one

    def into(self, tenant: int, entity: int) -> int | None:
        seqs = self._history.merges.get((tenant, entity))
        if seqs is None:
            return None
        place = len(seqs) if seqs[-1] <= self._n else bisect_right(seqs, self._n)
        # An entity is merged again only once its merge before has ended.
        if not place or not self.holds(seqs[place - 1]):
            return None
        return self._history.rulings[seqs[place - 1]].other

    def root(self, tenant: int, entity: int) -> int:
        passed: list[int] = []
        roots = self._roots
        while True:
            known = roots.get((tenant, entity))
            if known is not None:
                entity = known
                break
            following = self.into(tenant, entity)
            if following is None:
                break
            passed.append(entity)
            entity = following
        for one in passed:
            roots[tenant, one] = entity
        return entity

    def merged_here(self, tenant: int, entity: int) -> Iterator[int]:
        rulings = self._history.rulings
        seqs = self._history.into.get((tenant, entity), ())
        return (rulings[seq].one for seq in seqs if self.holds(seq))

    def splits_of(self, row: int) -> list[tuple[int, int]]:
        rulings = self._history.rulings
        held = [seq for seq in self._history.splits.get(row, ()) if self.holds(seq)]
        return [(rulings[seq].one, rulings[seq].other) for seq in held]

    def is_functional(self, tenant: int, predicate: int) -> bool:
        """Tell whether a predicate has one value at a time."""
        declared = self._history.declared.get((tenant, predicate), ())
        for place in range(bisect_right(declared, self._n, key=_first), 0, -1):
            _, scope, functional = declared[place - 1]
            if self._scopes is None or scope in self._scopes:
                return bool(functional)
        return False

    @property
    def any_functional(self) -> bool:
        """Whether a predicate may have one value at a time: one was declared so by n."""
        first = self._history.functional_from
        return any(first.get(scope, _NEVER) <= self._n for scope in self._scopes_in(first))

    def reads_as(self, other: "RolesAt") -> bool:
        """Tell whether both read every name as itself, and the same predicates as functional."""
        if not self.is_plain or not other.is_plain:
            return False
        return all(
            self.is_functional(*key) == other.is_functional(*key)
            for key in list(self._history.declared)
        )

    def related(self, entity: int) -> frozenset[int]:
        """Return the entities that may be read as one is, in some row or tenant; it among them."""
        found = self._groups.get(entity)
        if found is None:
            found = self._group(entity)
            self._groups.update(dict.fromkeys(found, found))
        return found

    def _group(self, entity: int) -> frozenset[int]:
        history = self._history
        group, left = {entity}, [entity]
        while left:
            for seq in history.near.get(left.pop(), ()):
                if not self.holds(seq):
                    continue
                ruling = history.rulings[seq]
                for one in (ruling.one, ruling.other):
                    if one not in group:
                        group.add(one)
                        left.append(one)
        return frozenset(group)


def _first(pair: tuple[int, ...]) -> int:
    return pair[0]
