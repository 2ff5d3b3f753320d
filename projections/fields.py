"""The searched parts of a frame, and how they count.

A frame's tokens are those of its text (or ``search_text``), then of its title, then of its tags,
in one row of positions; `FieldLengths` says where each part ends. A plain question asks all of
them at once, and each occurrence counts as its field weighs (the simple BM25F of Robertson,
Zaragoza and Taylor, 2004: weighted occurrences and lengths, then one saturation): as if a title
that weighs 2 stood there twice.

``role`` and what else is exact are no fields but filters: they say which frames, never how well.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from .columns import I64, U32, Mask, Unsigned


class Field(IntEnum):
    """A searched part of a frame. On disk by order: never renumber."""

    TEXT = 0
    TITLE = 1
    TAGS = 2


FIELD_COUNT: Final = len(Field)

WEIGHTS: Final = {Field.TEXT: 1, Field.TITLE: 2, Field.TAGS: 2}
"""How many times an occurrence counts; whole numbers, so that no sum depends on its order."""


@dataclass(frozen=True, slots=True)
class FieldLengths:
    """Tokens by row and field: ``total`` of all, and ``title`` and ``tags``, (rows,) each."""

    total: U32
    title: U32
    tags: U32

    def part(self, first_row: int, end_row: int) -> "FieldLengths":
        """Return the rows [first_row, end_row)."""
        rows = slice(first_row, end_row)
        return FieldLengths(self.total[rows], self.title[rows], self.tags[rows])

    def are_plain(self) -> bool:
        """Tell whether there is nothing but text."""
        return not (self.title.any() or self.tags.any())

    def weighted(self) -> U32:
        """Return the lengths as they count, (rows,)."""
        title, tags = WEIGHTS[Field.TITLE] - 1, WEIGHTS[Field.TAGS] - 1
        more = np.multiply(self.title, title, dtype=np.uint32)
        more += np.multiply(self.tags, tags, dtype=np.uint32)
        return np.add(self.total, more, dtype=np.uint32)

    def fields_of(self, rows: I64, positions: I64 | Unsigned) -> I64:
        """Return the `Field` of each position."""
        title_end = self.total[rows] - self.tags[rows]
        text_end = title_end - self.title[rows]
        return (positions >= text_end).astype(np.int64) + (positions >= title_end)


_FACTORS: Final = np.array([WEIGHTS[field] for field in Field], np.int64)


def weigh(
    rows: Unsigned, counts: Unsigned, positions: Unsigned, lengths: FieldLengths
) -> I64 | Unsigned:
    """Return what the occurrences of each posting add up to; ``counts`` where all are of text."""
    if lengths.are_plain():
        return counts
    token_rows = np.repeat(rows, counts)
    text_ends = lengths.total - lengths.title - lengths.tags
    beyond: Mask = positions >= text_ends[token_rows]
    places = np.flatnonzero(beyond)
    fields = lengths.fields_of(token_rows[places].astype(np.int64), positions[places])
    postings = np.searchsorted(np.cumsum(counts, dtype=np.int64), places, side="right")
    extra = np.bincount(postings, _FACTORS[fields] - 1, len(counts)).astype(np.int64)
    return counts + extra
