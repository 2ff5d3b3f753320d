"""The lengths of turns with shares of those beside them, of a state and of the states after it.

Owns `TurnLengths`, and their change: places before the first turn added or removed since an earlier
state keep their lengths. These are sums of whole millionths (`context_kernel`), so a change equals
new lengths bit for bit. Leaves out the norms, which depend on the average length (`bm25`).
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ..columnar.columns import F64, I64, U32, is_prefix
from ..columnar.turn_order import REACH, TurnOrder
from . import context_kernel

_PARTS: Final = 1 << 20
"""Parts of a token that the sum of shares distinguishes."""


@dataclass(frozen=True, slots=True, eq=False)
class TurnLengths:
    """The lengths of the turns of an order. Nothing changes the arrays.

    - ``of_rows`` (rows,) are the lengths of all rows, from which those of turns are computed.
    - ``in_context`` (places,) have the shares of neighbours; 0 in gaps. A gap follows them if
      their number is odd.
    - ``parts`` is the sum of the shares of neighbours, in parts of a token.
    """

    of_rows: U32
    order: TurnOrder
    in_context: F64
    parts: int

    @property
    def shares(self) -> float:
        """The sum of the shares of neighbours, in tokens."""
        return float(self.parts) / _PARTS


class LastLengths(Protocol):
    """A place for the newest lengths, which all views of a growing log share.

    Any thread may replace them at any time, also by lengths of an older state.
    """

    lengths: TurnLengths | None


def turn_lengths(of_rows: U32, order: TurnOrder, earlier: TurnLengths | None) -> TurnLengths:
    """Return the lengths of the turns of an order.

    Cost: 10 ns a place; 1 ns for those before the first added or removed turn.

    Args:
        of_rows: The weighted length of each row; (rows,).
        order: The order of the turns.
        earlier: The lengths of any state; None: compute all.
    """
    if earlier is None or not is_prefix(earlier.of_rows, of_rows):
        return _lengths_from(0, of_rows, order, np.empty(0), 0)
    before = earlier.order
    # Turns have shares of turns up to `REACH` places after them.
    place = max(_first_difference(before.rows, order.rows) - REACH, 0)
    changed = slice(place, len(before.rows))
    alone = of_rows[before.rows[changed]] * before.is_turn[changed]
    parts = earlier.parts - _parts(earlier.in_context[changed], alone)
    return _lengths_from(place, of_rows, order, earlier.in_context[:place], parts)


def _first_difference(left: I64, right: I64) -> int:
    size = min(len(left), len(right))
    differ = left[:size] != right[:size]
    place = int(differ.argmax())
    return place if differ[place] else size


def _lengths_from(
    place: int, of_rows: U32, order: TurnOrder, before: F64, parts_before: int
) -> TurnLengths:
    """Return the lengths, given those before a place."""
    start = max(place - REACH, 0)
    alone = of_rows.take(order.rows[start:]) * order.is_turn[start:]
    later = slice(place - start, None)
    sums = context_kernel.summed(alone.astype(np.float64))[later]
    sums *= order.is_turn[place:]
    in_context = np.concatenate([before, sums, np.zeros(len(order.rows) % 2)])
    return TurnLengths(of_rows, order, in_context, parts_before + _parts(sums, alone[later]))


def _parts(in_context: F64, alone: U32) -> int:
    """Return the sum of the shares of neighbours in lengths, in parts of a token."""
    # Whole numbers, since a sum of floats depends on the machine.
    parts = in_context * _PARTS
    total = int(np.rint(parts, out=parts).sum(dtype=np.int64))
    return total - _PARTS * int(alone.sum(dtype=np.int64))
