"""Which facts stand: what links between facts mean, as a pure function of the state at one n.

Owns the labels. A fact *stands* when it is known, all that it requires stands, and nothing that
attacks it does; it is *invalid* when it is not known, something that it requires is invalid, or
something that attacks it stands; what can be shown neither way is *disputed*. That is the grounded
labelling of an argumentation graph (P. M. Dung, Artificial Intelligence 77, 1995; M. Caminada,
JELIA 2006), with requirements beside attacks: the least fixed point of the rules, so it does not
depend on the order of anything, and who takes a link back takes back what followed from it.

It goes upstream from the facts that are asked for, and costs what it meets there.

What invalidates a fact attacks it, and so does what supersedes it: directly, or by a chain of
supersessions that leads back nowhere. In a circle of supersessions each attacks only the next.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .columns import I64
from .fact_table import FactsAt
from .fact_values import Standing
from .link_columns import ATTACKING, REQUIRING, LinkKind
from .link_table import LinkRow, LinksAt

_LABEL = {True: Standing.STANDS, False: Standing.INVALID, None: Standing.DISPUTED}

_FEW = 64
"""Above so many rows those that are linked are picked out first."""

IsCurrent = Callable[[int], bool | None]
"""Whether a frame, by its seq, was neither deleted nor superseded; None where it is not seen."""


class Joined(NamedTuple):
    """A link that means something: the row of its fact, and of its target if that is one."""

    link: LinkRow
    fact: int
    target: int | None
    is_current: bool
    """Whether the frame is, where the target is one."""


class Labelling:
    """The labels of facts at one n, worked out as they are asked for. Any thread may ask."""

    def __init__(self, facts: FactsAt, links: LinksAt, is_current: IsCurrent) -> None:
        self._facts = facts
        self.links = links
        self._is_current = is_current
        self._labels: dict[int, Standing] = {}

    # --- asking ----------------------------------------------------------------------------------

    def label(self, row: int) -> Standing:
        """Return whether a row stands; one that is not known is invalid."""
        if row not in self._labels:
            self._labels.update(self._worked_out([row]))
        return self._labels[row]

    def invalid(self, rows: Sequence[int] | I64) -> set[int]:
        """Return those of known rows that are invalid."""
        every = np.asarray(rows, np.int64)
        few: list[int] = (every if len(every) <= _FEW else self._linked(every)).tolist()
        new = [row for row in few if row not in self._labels]
        if new:
            self._labels.update(self._worked_out(new))
        return {row for row in few if self._labels[row] is Standing.INVALID}

    def _linked(self, rows: I64) -> I64:
        """Return those among rows that any link names."""
        return rows[np.isin(rows, self._facts.rows_of(self.links.ends.astype(np.int64)))]

    # --- the links of facts ----------------------------------------------------------------------

    def joined(self, link: LinkRow) -> Joined | None:
        """Return what a link joins, or None where it means nothing.

        Both ends are there and within the scope, of the link's tenant, and not the same fact.
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
        """Return what links from rows join them with, in order of the links."""
        return self._all_joined(self.links.of(self._facts.ids_of(rows)))

    def to(self, rows: Sequence[int]) -> list[Joined]:
        """Return what links from facts to rows join, in order of the links."""
        found = self._all_joined(self.links.to(self._facts.ids_of(rows)))
        return [one for one in found if one.target is not None]

    def _all_joined(self, links: Iterable[LinkRow]) -> list[Joined]:
        every = [self.joined(link) for link in links]
        return [one for one in every if one is not None]

    def contradictions(self) -> Iterator[tuple[int, int, int]]:
        """Yield two rows, ascending, and the event that says that they contradict each other.

        Neither is invalid. Cost: a pass over the links.
        """
        said = [link for link in self.links.every() if link.kind is LinkKind.CONTRADICTS]
        for one in self._all_joined(said):
            pair = sorted((one.fact, one.target or 0))
            if Standing.INVALID not in map(self.label, pair):
                yield pair[0], pair[1], one.link.seq

    # --- working out -----------------------------------------------------------------------------

    def _worked_out(self, rows: Iterable[int]) -> dict[int, Standing]:
        """Return the labels of rows, and of all upstream of them."""
        upstream = _Upstream()
        waiting = set(rows)
        while waiting:
            upstream.rows |= waiting
            found = set[int]()
            for one in self.of(sorted(waiting)):
                if one.link.kind in REQUIRING:
                    upstream.require(one)
                    found |= set() if one.target is None else {one.target}
            for one in self.to(sorted(waiting)):
                if one.link.kind in ATTACKING:
                    upstream.attack(one)
                    found.add(one.fact)
            waiting = found - upstream.rows
        values = upstream.values(self._facts.is_known)
        return {row: _LABEL[values.get(row)] for row in upstream.rows}


class _Upstream:
    """What the labels of some rows depend on: these rows, and all that they require or that attack.

    Circles of supersessions stand for themselves as nodes below 0, which hold where any member does
    or anything that supersedes one.
    """

    def __init__(self) -> None:
        self.rows: set[int] = set()
        self._without_frame: set[int] = set()
        """Rows that require a frame that is not current."""
        self._requires: dict[int, list[int]] = {}
        self._invalidated_by: dict[int, list[int]] = {}
        self._superseded_by: dict[int, list[int]] = {}

    def require(self, one: Joined) -> None:
        """Take a link of a fact to what it requires."""
        if one.target is not None:
            self._requires.setdefault(one.fact, []).append(one.target)
        elif not one.is_current:
            self._without_frame.add(one.fact)

    def attack(self, one: Joined) -> None:
        """Take a link of a fact to one that it attacks."""
        assert one.target is not None
        is_superseding = one.link.kind is LinkKind.SUPERSEDES
        attackers = self._superseded_by if is_superseding else self._invalidated_by
        attackers.setdefault(one.target, []).append(one.fact)

    def values(self, is_known: Callable[[int], bool]) -> dict[int, bool]:
        """Return what can be shown: True stands, False is invalid."""
        rules = _Rules()
        superseders = self._add_circles(rules)
        for row in self.rows:
            if not is_known(row) or row in self._without_frame:
                rules.add(row, [], negated=True)
                continue
            attackers = (*self._invalidated_by.get(row, ()), *superseders.get(row, ()))
            needed = [(one, True) for one in self._requires.get(row, ())]
            rules.add(row, [*needed, *((one, False) for one in attackers)])
        return rules.least_fixed_point()

    def _add_circles(self, rules: "_Rules") -> dict[int, list[int]]:
        """Add a node for each circle of supersessions, and return what supersedes each row."""
        circles = components(self._superseded_by)
        circle_of = {row: -1 - place for place, circle in enumerate(circles) for row in circle}
        superseders: dict[int, list[int]] = {}
        for node, circle in enumerate(circles, start=1):
            direct = {row: self._superseded_by.get(row, ()) for row in circle}
            above = {circle_of[one] for some in direct.values() for one in some} - {-node}
            # Whether any of these holds is the opposite of whether all fail.
            rules.add(-node, [(one, False) for one in (*circle, *above)], negated=True)
            for row, some in direct.items():
                superseders[row] = [one for one in some if circle_of[one] == -node] + [*above]
        return superseders


class _Rules:
    """Nodes that hold where every condition does, or, negated, where one does not.

    A condition is a node and the value that it must have.
    """

    def __init__(self) -> None:
        self._negated: dict[int, bool] = {}
        self._open: dict[int, int] = {}
        """How many conditions of a node are not shown yet."""
        self._of: dict[int, list[tuple[int, bool]]] = {}
        """In whose conditions a node is, and with which value."""

    def add(
        self, node: int, conditions: Sequence[tuple[int, bool]], *, negated: bool = False
    ) -> None:
        self._negated[node] = negated
        self._open[node] = len(conditions)
        for other, wanted in conditions:
            self._of.setdefault(other, []).append((node, wanted))

    def least_fixed_point(self) -> dict[int, bool]:
        """Return the value of every node that has to have one; O(nodes and conditions)."""
        shown = {node: not self._negated[node] for node, count in self._open.items() if not count}
        waiting = list(shown)
        for node in waiting:
            value = shown[node]
            for parent, wanted in self._of.get(node, ()):
                if parent in shown:
                    continue
                if value == wanted:
                    self._open[parent] -= 1
                    if self._open[parent]:
                        continue
                shown[parent] = (value == wanted) != self._negated[parent]
                waiting.append(parent)
        return shown


def components(arrows: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, each ascending (Tarjan, 1972).

    >>> components({1: [2], 2: [3], 3: [2]})
    [[2, 3], [1]]
    """
    found: list[list[int]] = []
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack = set[int]()
    for root in sorted(arrows):
        if root in order:
            continue
        # Without recursion: a chain of versions may be long.
        calls = [(root, iter(sorted(arrows.get(root, ()))))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while calls:
            node, others = calls[-1]
            following = next(others, None)
            if following is None:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == order[node]:
                    circle = [stack.pop()]
                    while circle[-1] != node:
                        circle.append(stack.pop())
                    on_stack.difference_update(circle)
                    found.append(sorted(circle))
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                on_stack.add(following)
                calls.append((following, iter(sorted(arrows.get(following, ())))))
            elif following in on_stack:
                low[node] = min(low[node], order[following])
    return found
