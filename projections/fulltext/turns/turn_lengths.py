"""The lengths of turns with shares of those beside them, of a state and of the states after it.

Owns `TurnLengths`, and their change: places before the first turn added or removed since an earlier
state keep their lengths. These are sums of whole millionths (`context_kernel`), so a change equals
new lengths bit for bit. Leaves out the norms (`fulltext.scoring`).
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ...columnar.columns import F64, I64, U32, is_prefix
from ...columnar.turn_order import REACH, TurnOrder
from . import context_kernel
from .conversation_parts import ConversationParts, TermsAt, conversation_parts

_PARTS: Final = 1 << 20
"""Parts of a token that the sum of shares distinguishes."""


@dataclass(frozen=True, slots=True, eq=False)
class TurnLengths:
    """The lengths of the turns of an order. Nothing changes the arrays.

    - ``of_rows`` (rows,) are the lengths of all rows, from which those of turns are computed.
    - ``in_context`` (places,) have the shares of neighbours; 0 in gaps. A gap follows them if
      their number is odd.
    - ``parts`` is the sum of the shares of neighbours, in parts of a token.
    - ``conversations`` have the part of each; ``near`` (pairs,) is its square by pair of places,
      which no two conversations share. None if all parts are 1.
    """

    of_rows: U32
    order: TurnOrder
    in_context: F64
    parts: int
    conversations: ConversationParts
    near: F64 | None

    @property
    def shares(self) -> float:
        """The sum of the shares of neighbours, in tokens."""
        return float(self.parts) / _PARTS


class LastLengths(Protocol):
    """A place for the newest lengths, which all views of a growing log share.

    Any thread may replace them at any time, also by lengths of an older state.
    """

    lengths: TurnLengths | None


def turn_lengths(
    of_rows: U32, order: TurnOrder, terms_at: TermsAt, earlier: TurnLengths | None
) -> TurnLengths:
    """Return the lengths of the turns of an order.

    Cost: 15 ns a place; 1 ns for those before the first turn that was added or removed, or whose
    conversation has another part.

    Args:
        of_rows: The weighted length of each row; (rows,).
        order: The order of the turns.
        terms_at: The terms of rows, of which the parts of conversations depend.
        earlier: The lengths of any state; None: compute all.
    """
    if earlier is None or not is_prefix(earlier.of_rows, of_rows):
        conversations = conversation_parts(order, terms_at)
        return _lengths_from(0, of_rows, order, conversations, np.empty(0), 0)
    before = earlier.order
    first = _first_difference(before.rows, order.rows)
    conversations = conversation_parts(order, terms_at, earlier.conversations, first)
    other = conversations.first_other(earlier.conversations)
    # Turns have shares of turns up to `REACH` places after them.
    place = max(first - REACH, 0)
    if other is not None:
        place = min(place, other)
    changed = slice(place, len(before.rows))
    alone = of_rows[before.rows[changed]] * before.is_turn[changed]
    parts = earlier.parts - _parts(earlier.in_context[changed], alone)
    return _lengths_from(place, of_rows, order, conversations, earlier.in_context[:place], parts)


def _first_difference(left: I64, right: I64) -> int:
    size = min(len(left), len(right))
    differ = left[:size] != right[:size]
    place = int(differ.argmax())
    return place if differ[place] else size


def _lengths_from(
    place: int,
    of_rows: U32,
    order: TurnOrder,
    conversations: ConversationParts,
    before: F64,
    parts_before: int,
) -> TurnLengths:
    """Return the lengths, given those before a place."""
    start = max(place - REACH, 0)
    alone = of_rows.take(order.rows[start:]) * order.is_turn[start:]
    later = slice(place - start, None)
    near = _near(conversations, order)
    lengths = alone.astype(np.float64)
    if near is None:
        sums = context_kernel.summed(lengths)[later]
    else:
        shared = lengths * np.repeat(near, 2)[start : len(order.rows)]
        sums = context_kernel.summed(shared, lengths - shared)[later]
    sums *= order.is_turn[place:]
    in_context = np.concatenate([before, sums, np.zeros(len(order.rows) % 2)])
    parts = parts_before + _parts(sums, alone[later])
    return TurnLengths(of_rows, order, in_context, parts, conversations, near)


def _near(conversations: ConversationParts, order: TurnOrder) -> F64 | None:
    """Return the square of the part of each pair of places, 0 in gaps; None if all are 1."""
    parts = conversations.of_places(order)
    if parts is None:
        return None
    parts = np.append(parts, np.zeros(len(parts) % 2))
    near = np.maximum(parts[::2], parts[1::2])
    return near * near


def _parts(in_context: F64, alone: U32) -> int:
    """Return the sum of the shares of neighbours in lengths, in parts of a token."""
    # Whole numbers, since a sum of floats depends on the machine.
    parts = in_context * _PARTS
    total = int(np.rint(parts, out=parts).sum(dtype=np.int64))
    return total - _PARTS * int(alone.sum(dtype=np.int64))
