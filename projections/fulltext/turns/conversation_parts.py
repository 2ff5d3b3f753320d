"""The part of a conversation: how much its turns count for their neighbours.

    turns of people, 12 terms each          part 1: neighbours count in full
    turns of a model, 120 terms each        part 1/4: neighbours count a sixteenth

A short turn lacks words that the turns beside it have; a long turn has all words of its subject,
and would give the same words to its neighbours. So a conversation has the part

    p = min(1, 30 / mean terms of its turns), rounded down to 64ths,

and the share of a neighbour counts p · p times: once for the length of the neighbour, once for that
of the turn. A part by the length of each turn finds less, since short questions lose against long
answers. Owns the parts, of a state and of the states after it. Leaves out the shares
(`context_kernel`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from ...columnar.columns import F64, I64, run_starts
from ...columnar.turn_order import TurnOrder

TERMS: Final = 30
"""The mean terms of turns up to which neighbours count in full; docs/search.md has other values."""

STEPS: Final = 64
"""Steps of a part. With whole steps sums of counts are exact, and equal in any order."""

TermsAt: TypeAlias = Callable[[I64], I64]
"""Returns how many terms the text of rows has."""


@dataclass(frozen=True, eq=False)
class ConversationParts:
    """The conversations of an order, in order. Nothing changes the arrays.

    - ``starts`` are their first places, ``sizes`` their turns, ``terms`` the terms of all their
      turns; (conversations,) each.
    """

    starts: I64
    sizes: I64
    terms: I64

    @cached_property
    def steps(self) -> I64:
        """The part of each conversation in 64ths; (conversations,)."""
        steps: I64 = STEPS * TERMS * self.sizes // np.maximum(self.terms, 1)
        return np.minimum(steps, STEPS)

    @property
    def turn_mean(self) -> float:
        """The mean terms of all turns; 0 without turns."""
        return int(self.terms.sum()) / max(int(self.sizes.sum()), 1)

    def of_places(self, order: TurnOrder) -> F64 | None:
        """Return the part of each place, (places,), 0 in gaps; None if all parts are 1."""
        if (self.steps == STEPS).all():
            return None
        parts = np.zeros(len(order.rows))
        parts[order.is_turn] = np.repeat(self.steps / STEPS, self.sizes)
        return parts

    def first_other(self, parts: "ConversationParts") -> int | None:
        """Return the first place whose part differs from that of an earlier or later state.

        None if all places before a conversation that begins or ends have equal parts.
        """
        count = min(len(self.steps), len(parts.steps))
        differ = self.steps[:count] != parts.steps[:count]
        return int(self.starts[differ.argmax()]) if differ.any() else None


def conversation_parts(
    order: TurnOrder,
    terms_at: TermsAt,
    earlier: ConversationParts | None = None,
    first_place: int = 0,
) -> ConversationParts:
    """Return the parts of the conversations of an order.

    Cost: 5 ns a turn, of the conversations that changed.

    Args:
        order: The order of the turns.
        terms_at: The terms of rows.
        earlier: The parts of an order with equal places before ``first_place``; None: compute all.
        first_place: The first place that differs.
    """
    count = start = 0
    if earlier is not None:
        # A conversation is as before if the gap after it begins before the first other place.
        ends = earlier.starts + earlier.sizes
        count = int(ends.searchsorted(first_place))
        start = int(ends[count - 1]) if count else 0
    places = start + np.flatnonzero(order.is_turn[start:])
    heads = np.flatnonzero(run_starts(places - np.arange(len(places))))
    terms = terms_at(order.rows[places])
    parts = (
        places[heads],
        np.diff(heads, append=len(places)),
        np.add.reduceat(terms, heads) if len(heads) else terms,
    )
    if earlier is None or not count:
        return ConversationParts(*parts)
    before = (earlier.starts[:count], earlier.sizes[:count], earlier.terms[:count])
    return ConversationParts(*map(np.concatenate, zip(before, parts, strict=True)))
