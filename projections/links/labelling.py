"""The standing of facts: the meaning of links, as a pure function of the state at seq n.

Owns the labels:

- `STANDS`: the fact is known, all its requirements have this label, and no attacker has it.
- `INVALID`: the fact is not known, a requirement is invalid, or an attacker is `STANDS`.
- `DISPUTED`: the rules prove neither.

These are the grounded labels of an argumentation graph (P. M. Dung, Artificial Intelligence 77,
1995; M. Caminada, JELIA 2006), with requirements beside attacks. They are the least fixed point of
the rules, so they depend on no order, and removing a link removes its consequences.

Facts that invalidate or supersede a fact attack it. A supersession also counts through a chain, if
the chain does not lead back; in a cycle of supersessions each fact attacks only the next.

Cost: a walk upstream from the requested facts, O(facts and links met).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..columnar.columns import I64
from ..facts.objects import Standing
from ..facts.reader import FactsAt
from .reader import ATTACKING, REQUIRING, LinkKind, LinkRow, LinksAt

_LABEL = {True: Standing.STANDS, False: Standing.INVALID, None: Standing.DISPUTED}

_FEW = 64
"""Above this many rows, rows without links are dropped first."""

IsCurrent = Callable[[int], bool | None]
"""Returns if a frame, by its seq, is neither deleted nor superseded; None if not visible."""


class Joined(NamedTuple):
    """A link with valid ends: the row of its fact, and of its target if that is a fact."""

    link: LinkRow
    fact: int
    target: int | None
    is_current: bool
    """True unless the target is a frame that is not current."""


class Labelling:
    """The labels of facts at seq n, computed on demand. Any thread may call it."""

    def __init__(self, facts: FactsAt, links: LinksAt, is_current: IsCurrent) -> None:
        self._facts = facts
        self.links = links
        self._is_current = is_current
        self._labels: dict[int, Standing] = {}

    # --- labels ----------------------------------------------------------------------------------

    def label(self, row: int) -> Standing:
        """Return the label of a row; a row that is not known is invalid."""
        if row not in self._labels:
            self._labels.update(self._computed([row]))
        return self._labels[row]

    def invalid(self, rows: Sequence[int] | I64) -> set[int]:
        """Return the invalid rows among rows that are known."""
        all_rows = np.asarray(rows, np.int64)
        few: list[int] = (all_rows if len(all_rows) <= _FEW else self._linked(all_rows)).tolist()
        new = [row for row in few if row not in self._labels]
        if new:
            self._labels.update(self._computed(new))
        return {row for row in few if self._labels[row] is Standing.INVALID}

    def _linked(self, rows: I64) -> I64:
        return rows[np.isin(rows, self._facts.rows_of(self.links.ends.astype(np.int64)))]

    # --- the links of facts ----------------------------------------------------------------------

    def joined(self, link: LinkRow) -> Joined | None:
        """Return the rows that a link joins, or None if the link has no effect.

        Both ends must exist within the scope and the link's tenant, and differ.
        """
        fact = self._row(link, link.fact)
        if fact is None:
            return None
        if link.is_frame:
            is_current = self._is_current(link.target)
            return None if is_current is None else Joined(link, fact, None, is_current)
        target = self._row(link, link.target)
        return None if target in (None, fact) else Joined(link, fact, target, is_current=True)

    def _row(self, link: LinkRow, fact: int) -> int | None:
        row = self._facts.row_of(fact)
        return None if row is None or self._facts.tenant_named(row) != link.tenant else row

    def of(self, rows: Sequence[int]) -> list[Joined]:
        """Return the links from rows, in order of seq."""
        return self._all_joined(self.links.of(self._facts.ids_of(rows)))

    def to(self, rows: Sequence[int]) -> list[Joined]:
        """Return the links from facts to rows, in order of seq."""
        joins = self._all_joined(self.links.to(self._facts.ids_of(rows)))
        return [join for join in joins if join.target is not None]

    def _all_joined(self, links: Iterable[LinkRow]) -> list[Joined]:
        joins = [self.joined(link) for link in links]
        return [join for join in joins if join is not None]

    def contradictions(self) -> Iterator[tuple[int, int, int]]:
        """Yield pairs of rows, ascending, with the seq of the link that contradicts them.

        Pairs with an invalid fact are left out. Cost: a pass over the links.
        """
        links = [link for link in self.links.all_links() if link.kind is LinkKind.CONTRADICTS]
        for join in self._all_joined(links):
            pair = sorted((join.fact, join.target or 0))
            if Standing.INVALID not in map(self.label, pair):
                yield pair[0], pair[1], join.link.seq

    # --- computation -----------------------------------------------------------------------------

    def _computed(self, rows: Iterable[int]) -> dict[int, Standing]:
        """Return the labels of rows and of all rows upstream."""
        upstream = _Upstream()
        waiting = set(rows)
        while waiting:
            upstream.rows |= waiting
            neighbours = set[int]()
            for join in self.of(sorted(waiting)):
                if join.link.kind in REQUIRING:
                    upstream.require(join)
                    neighbours |= set() if join.target is None else {join.target}
            for join in self.to(sorted(waiting)):
                if join.link.kind in ATTACKING:
                    upstream.attack(join)
                    neighbours.add(join.fact)
            waiting = neighbours - upstream.rows
        values = upstream.values(self._facts.is_known)
        return {row: _LABEL[values.get(row)] for row in upstream.rows}


class _Upstream:
    """The dependencies of labels: rows with their requirements and attackers, transitively.

    Each cycle of supersessions is a node below 0. The node holds if any member of the cycle holds,
    or any fact or cycle that supersedes a member.
    """

    def __init__(self) -> None:
        self.rows: set[int] = set()
        self._without_frame: set[int] = set()
        """Rows that require a frame that is not current."""
        self._requires: dict[int, list[int]] = {}
        self._invalidated_by: dict[int, list[int]] = {}
        self._superseded_by: dict[int, list[int]] = {}

    def require(self, join: Joined) -> None:
        """Add a link of a fact to its requirement."""
        if join.target is not None:
            self._requires.setdefault(join.fact, []).append(join.target)
        elif not join.is_current:
            self._without_frame.add(join.fact)

    def attack(self, join: Joined) -> None:
        """Add a link of a fact to a fact that it attacks."""
        assert join.target is not None
        is_superseding = join.link.kind is LinkKind.SUPERSEDES
        attackers = self._superseded_by if is_superseding else self._invalidated_by
        attackers.setdefault(join.target, []).append(join.fact)

    def values(self, is_known: Callable[[int], bool]) -> dict[int, bool]:
        """Return the provable values: True for `STANDS`, False for `INVALID`."""
        rules = _Rules()
        superseders = self._add_cycles(rules)
        for row in self.rows:
            if not is_known(row) or row in self._without_frame:
                rules.add(row, [], negated=True)
                continue
            attackers = (*self._invalidated_by.get(row, ()), *superseders.get(row, ()))
            needed = [(required, True) for required in self._requires.get(row, ())]
            rules.add(row, [*needed, *((attacker, False) for attacker in attackers)])
        return rules.least_fixed_point()

    def _add_cycles(self, rules: "_Rules") -> dict[int, list[int]]:
        """Add a node for each cycle of supersessions; return the nodes that supersede each row."""
        cycles = components(self._superseded_by)
        cycle_of = {row: -1 - place for place, cycle in enumerate(cycles) for row in cycle}
        superseders: dict[int, list[int]] = {}
        for node, cycle in enumerate(cycles, start=1):
            direct = {row: self._superseded_by.get(row, ()) for row in cycle}
            above = {cycle_of[fact] for newer in direct.values() for fact in newer} - {-node}
            # "Any of these holds" is the negation of "all of these fail".
            rules.add(-node, [(member, False) for member in (*cycle, *above)], negated=True)
            for row, newer in direct.items():
                superseders[row] = [fact for fact in newer if cycle_of[fact] == -node] + [*above]
        return superseders


class _Rules:
    """Nodes that hold if every condition is met or, if negated, if a condition fails.

    A condition is a node and its required value.
    """

    def __init__(self) -> None:
        self._negated: dict[int, bool] = {}
        self._open: dict[int, int] = {}
        """The number of conditions of a node that are not proven yet."""
        self._of: dict[int, list[tuple[int, bool]]] = {}
        """The nodes that have a node in their conditions, with the required value."""

    def add(
        self, node: int, conditions: Sequence[tuple[int, bool]], *, negated: bool = False
    ) -> None:
        self._negated[node] = negated
        self._open[node] = len(conditions)
        for child, required in conditions:
            self._of.setdefault(child, []).append((node, required))

    def least_fixed_point(self) -> dict[int, bool]:
        """Return the value of each node that the rules determine; O(nodes and conditions)."""
        values = {node: not self._negated[node] for node, count in self._open.items() if not count}
        waiting = list(values)
        for node in waiting:
            value = values[node]
            for parent, required in self._of.get(node, ()):
                if parent in values:
                    continue
                if value == required:
                    self._open[parent] -= 1
                    if self._open[parent]:
                        continue
                values[parent] = (value == required) != self._negated[parent]
                waiting.append(parent)
        return values


def components(arrows: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, each ascending (Tarjan, 1972).

    >>> components({1: [2], 2: [3], 3: [2]})
    [[2, 3], [1]]
    """
    groups: list[list[int]] = []
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack = set[int]()
    for root in sorted(arrows):
        if root in order:
            continue
        # No recursion: a chain of versions may be long.
        calls = [(root, iter(sorted(arrows.get(root, ()))))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while calls:
            node, successors = calls[-1]
            following = next(successors, None)
            if following is None:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == order[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    groups.append(sorted(component))
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                on_stack.add(following)
                calls.append((following, iter(sorted(arrows.get(following, ())))))
            elif following in on_stack:
                low[node] = min(low[node], order[following])
    return groups
