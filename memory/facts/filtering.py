"""Filters over facts: which facts a filter of frames admits.

Owns the rule. A fact with evidence passes if a frame of its evidence passes, current or closed, in
the view's scope. A fact without evidence passes like an empty frame with the fact's scope that was
created and recorded at the fact's first assertion: it has no kind, role, tag, metadata or URI, so
no test of these matches. Leaves out filters of frames (`cerata.projections.frames.filter_masks`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from cerata.projections.columnar.relative_times import RelativeTime
from cerata.projections.columnar.typed_values import ValueType
from cerata.projections.frames.filter_expressions import (
    Compared,
    During,
    Either,
    Every,
    Expression,
    Named,
    Negated,
    unequal,
)

if TYPE_CHECKING:
    from cerata.engine.events import Scope
    from cerata.projections.columnar.columns import I64, Mask
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.frames.filters import Filter

    from ..snapshot.snapshot import Snapshot

_SCOPE = "scope."


def passing_rows(snapshot: Snapshot, rows: I64, where: Filter) -> I64:
    """Return the rows of facts that a filter admits, in their order.

    Cost: about 0.2 us for each row and each place of its evidence, and the filter's cost for
    frames.

    Raises:
        InvalidInput: ``where`` is not a `Filter`.
    """
    facts = snapshot.facts_at
    masks = snapshot.layers.passing(where)
    cited, frames = facts.frames_cited(rows)
    passing = np.zeros(len(frames), np.bool_)
    for layer, mask in zip(snapshot.layers.all, masks, strict=True):
        # Pending frames come after the log's last event.
        ids = frames if layer.sign > 0 else frames - snapshot.basis
        known = layer.frames.ids[: layer.rows]
        places = np.searchsorted(known, ids)
        inside = places < len(known)
        inside[inside] = known[places[inside]] == ids[inside]
        passing[inside] |= (mask & layer.visible)[places[inside]]
    bare = rows[~np.isin(rows, cited)]
    admitted = bare[_Bare(facts, bare).mask(where.resolved(snapshot.now).expression)]
    return rows[np.isin(rows, cited[passing]) | np.isin(rows, admitted)]


class _Bare:
    """Evaluates an expression over facts without evidence."""

    def __init__(self, facts: FactsAt, rows: I64) -> None:
        self._count = len(rows)
        self._recorded, codes = facts.recorded_in(rows)
        self._scopes, self._scope_of = np.unique(codes, return_inverse=True)
        self._facts = facts

    def mask(self, expression: Expression) -> Mask:
        match expression:
            case Every(parts):
                masks = [self.mask(part) for part in parts]
                return reduce(np.logical_and, masks, np.ones(self._count, np.bool_))
            case Either(parts):
                masks = [self.mask(part) for part in parts]
                return reduce(np.logical_or, masks, np.zeros(self._count, np.bool_))
            case Negated(part):
                return ~self.mask(part)
            case During(_, start, end):
                mask: Mask = np.ones(self._count, np.bool_)
                assert not isinstance(start, RelativeTime)
                assert not isinstance(end, RelativeTime)
                if start is not None:
                    mask &= self._recorded >= start
                if end is not None:
                    mask &= self._recorded < end
                return mask
            case Compared(_, "!="):
                return self.mask(unequal(expression))
            case Compared(field) if field.startswith(_SCOPE):
                scopes = map(self._facts.scope_with, self._scopes.tolist())
                passes = np.array([_is_in(scope, expression) for scope in scopes], np.bool_)
                return passes[self._scope_of] if self._count else passes
            case Compared() | Named():
                return np.zeros(self._count, np.bool_)


def _is_in(scope: Scope, test: Compared) -> bool:
    """Return whether a scope passes a test of one of its names."""
    values = dict(scope)
    name = test.field[len(_SCOPE) :]
    if name not in values:
        return False
    if test.operator == "exists":
        return True
    value = values[name]
    family = ValueType.STRING if isinstance(value, str) else ValueType.NUMBER
    family = ValueType.BOOL if isinstance(value, bool) else family
    return family == test.type and value == test.value
