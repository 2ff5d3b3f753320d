"""The searched fields of a frame, and their weights.

A frame's tokens are those of its text (or ``search_text``), then of its title, its tags and its
role, in a single sequence of positions; `FieldLengths` gives the end of each field. A plain query
searches all fields, and each occurrence counts with the weight of its field (the simple BM25F of
Robertson, Zaragoza and Taylor, 2004: weighted occurrences and lengths, then one saturation), as if
a title of weight 2 occurred twice.

The role is a field because a question names speakers: "What did Mina say?" finds her turns, which
rarely have her name. Exact attributes such as ``kind`` are filters, not fields: a filter selects
frames and changes no score; so does the filter ``role:mina``.

After the fields come the terms *beside* the words of all fields: parts of identifiers,
joined spellings and the like (`beside`). They weigh 1, are in no field, and count for no length.
Stop words have no places: a row has the set of its stop words (``stops``).
"""

from enum import IntEnum
from typing import Final

import msgspec
import numpy as np

from ..columnar.columns import I64, U32, U64, Mask, Unsigned

PROTOCOL_ROLES: Final = frozenset(
    (
        *("user", "assistant", "system", "developer", "tool", "function", "model", "human"),
        *("ai", "bot", "agent"),
    )
)
"""Roles of the protocols of chat, which are no names: no words of a turn, and no marks."""


class Field(IntEnum):
    """A searched part of a frame. On disk by order: never renumber."""

    TEXT = 0
    TITLE = 1
    TAGS = 2
    ROLE = 3


FIELD_COUNT: Final = len(Field)

BESIDE_PART: Final = FIELD_COUNT
"""The place of the terms beside words, after the last field."""

PART_COUNT: Final = FIELD_COUNT + 1
"""Parts of a row: the fields, then the terms beside words."""

WEIGHTS: Final = {Field.TEXT: 1, Field.TITLE: 2, Field.TAGS: 2, Field.ROLE: 2}
"""Weight of an occurrence; integers, so that no sum depends on the order of its terms."""


class FieldLengths(msgspec.Struct, frozen=True):
    """The terms of a row in each part, (rows,) uint32 each, and its stop words.

    ``total`` counts the terms of all parts; ``title``, ``tags``, ``role`` and ``beside`` those of
    one part, and the text has the rest. ``stops`` has a bit for each of 128 stop words, in two
    columns, (rows,) uint64 each.
    """

    stops: tuple[U64, U64]
    total: U32
    title: U32
    tags: U32
    role: U32
    beside: U32

    def part(self, first_row: int, end_row: int) -> "FieldLengths":
        """Return the rows [first_row, end_row)."""
        rows = slice(first_row, end_row)
        low, high = self.stops
        return FieldLengths(
            (low[rows], high[rows]),
            self.total[rows],
            self.title[rows],
            self.tags[rows],
            self.role[rows],
            self.beside[rows],
        )

    def are_plain(self) -> bool:
        """Return whether each occurrence weighs 1."""
        return not (self.title.any() or self.tags.any() or self.role.any())

    def text_ends(self) -> U32:
        """Return the end of the text field of each row, (rows,) uint32."""
        return self.total - self.title - self.tags - self.role - self.beside

    def weighted(self) -> U32:
        """Return the weighted lengths, (rows,) uint32: at least 1 for a row that can be found."""
        lengths = self.total - self.beside
        named = ((Field.TITLE, self.title), (Field.TAGS, self.tags), (Field.ROLE, self.role))
        for field, counts in named:
            # Sums of columns take a third of the time of a product, which fills another array.
            for _ in range(WEIGHTS[field] - 1):
                lengths += counts
        empty = np.flatnonzero(lengths == 0)
        low, high = self.stops
        lengths[empty] = (self.beside[empty] > 0) | (low[empty] > 0) | (high[empty] > 0)
        return lengths

    def fields_of(self, rows: I64, positions: I64 | Unsigned) -> I64:
        """Return the `Field` of each position, or `BESIDE_PART`."""
        role_end = self.total[rows] - self.beside[rows]
        tags_end = role_end - self.role[rows]
        title_end = tags_end - self.tags[rows]
        text_end = title_end - self.title[rows]
        fields = (positions >= text_end).astype(np.int64)
        fields += positions >= title_end
        fields += positions >= tags_end
        fields += positions >= role_end
        return fields


_FACTORS: Final = np.array([*(WEIGHTS[field] for field in Field), 1], np.int64)


def weigh(rows: I64, counts: Unsigned, positions: Unsigned, lengths: FieldLengths) -> I64:
    """Return the weighted occurrences of each posting, (p,)."""
    token_rows = np.repeat(rows, counts)
    beyond: Mask = positions >= lengths.text_ends()[token_rows]
    places = np.flatnonzero(beyond)
    fields = lengths.fields_of(token_rows[places], positions[places])
    postings = np.searchsorted(np.cumsum(counts, dtype=np.int64), places, side="right")
    extra: I64 = np.bincount(postings, _FACTORS[fields] - 1, len(counts)).astype(np.int64)
    return extra + counts
