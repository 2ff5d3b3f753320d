"""The columns of messages: a row for each message of an agent's session, and its topics.

Owns the effect columns in order of seq, and their place in digests and chunks. The fold in
`projection` decides the rows to append; `reader` reads.
"""

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import Scope
from cerata.projections.columnar.columns import (
    I64,
    U8,
    U64,
    AnyColumn,
    AppendOnly,
    Columns,
    require,
)
from cerata.projections.columnar.hash_index import HashIndex
from cerata.projections.columnar.names import NO_NAME, Names
from cerata.projections.columnar.scopes import ScopeNames
from cerata.projections.columnar.tables import Table, check_codes

from .lexicon import PATTERNS, SIGNS, TOPICS_MAX
from .line import read_line

SIGNS_OF_WORD: Final = 8
"""Counts of signs in one number of a column, a byte each, the first in the lowest byte."""

WORDS_MAX: Final = 2**32 - 1

_SIGN_COLUMNS: Final = len(SIGNS) // SIGNS_OF_WORD


class Row(NamedTuple):
    """A message: a row of `MessageColumns.rows`."""

    seq: int
    created: int
    scope: int
    agent: int
    session: int
    mode: int
    line: int
    """The code of the row's agent, thread, mode group, and scope without session, thread, mode."""
    by_agent: int
    """1 for an agent's message, 0 for a user's."""
    continues: int
    """1 for a chunk that goes on with the message of the row before it."""
    parent: int
    """The document of a chunk, or 0."""
    end: int
    """One past the last character of a chunk in its document, or 0."""
    answers: int
    """Seq of the message that the row answers, or 0."""
    words: int
    signs_0: int
    signs_1: int
    signs_2: int
    patterns: int
    simhash: int


class MessageColumns:
    """Every column of the messages fold, appended by a single thread."""

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.names = Names("names")
        """Agents, sessions and modes."""
        self.lines = Names("lines")
        self.stems = Names("stems")
        self.rows = Table("messages", strict=True)
        self.seq = self.rows.seq
        self.created = self.rows.column("created", np.int64)
        self.scope = self.rows.column("scope", np.uint32)
        self.agent = self.rows.column("agent", np.uint32)
        self.session = self.rows.column("session", np.uint32)
        self.mode = self.rows.column("mode", np.uint32)
        self.line = self.rows.column("line", np.uint32)
        self.by_agent = self.rows.column("by_agent", np.uint8)
        self.continues = self.rows.column("continues", np.uint8)
        self.rows.column("parent", np.uint64)
        self.rows.column("end", np.uint64)
        self.answers = self.rows.column("answers", np.uint64)
        self.words = self.rows.column("words", np.uint32)
        self.signs = [
            self.rows.column(f"signs_{number}", np.uint64) for number in range(_SIGN_COLUMNS)
        ]
        self.patterns = self.rows.column("patterns", np.uint32)
        self.simhash = self.rows.column("simhash", np.uint64)
        self.topics = Table("topics")
        self.topic = self.topics.column("stem", np.uint32)
        # Derived.
        self.by_line = HashIndex()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    # --- reading ---------------------------------------------------------------------------------

    def last_row(self) -> Row | None:
        """Return the last row, or None."""
        return Row(*self.rows.row(len(self.rows) - 1)) if len(self.rows) else None

    def topics_of(self, rows: I64) -> list[list[str]]:
        """Return the topics of rows, each list the most frequent first."""
        seqs = self.seq.view()[rows]
        stored = self.topics.seq.view()
        starts = np.searchsorted(stored, seqs).tolist()
        ends = np.searchsorted(stored, seqs, "right").tolist()
        text = self.stems.text
        codes = self.topic.view()
        return [
            [text(code) or "" for code in codes[start:stop].tolist()]
            for start, stop in zip(starts, ends, strict=True)
        ]

    # --- effects ---------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> tuple[Names, ...]:
        return self.names, self.lines, self.stems

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects = self.scopes.effects(after, through)
        for names in self._names:
            effects.update(names.effects(after, through))
        effects.update(self.rows.effects(after, through))
        effects.update(self.topics.effects(after, through))
        return effects

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        return self._effect_columns

    @cached_property
    def _effect_columns(self) -> list[AppendOnly]:
        parts: tuple[Names | Table, ...] = (self.scopes, *self._names, self.rows, self.topics)
        return [column for part in parts for column in part.effect_columns()]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: `load` computes the derived columns again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` and then leaves the state unchanged."""
        rows = self.rows.read(columns, after, through)
        topics = self.topics.read(columns, after, through)
        scopes = self.scopes.read(columns, after, through)
        loaded = [names.read(columns, after, through) for names in self._names]
        check_codes(rows["scope"], 1, len(self.scopes) + len(scopes.texts))
        counts = [
            len(names) + len(new.texts) for names, new in zip(self._names, loaded, strict=True)
        ]
        for codes in (rows["agent"], rows["session"]):
            check_codes(codes, 1, counts[0])
        check_codes(rows["mode"], NO_NAME, counts[0])
        check_codes(rows["line"], 1, counts[1])
        check_codes(topics["stem"], 1, counts[2])
        check_codes(rows["by_agent"], 0, 1)
        check_codes(rows["continues"], 0, 1)
        check_codes(rows["patterns"], 0, (1 << len(PATTERNS)) - 1)
        require(bool((rows["answers"] < rows["seq"]).all()), "a message answers a later one")
        seqs, repeats = np.unique(topics["seq"], return_counts=True)
        require(bool(np.isin(seqs, rows["seq"]).all()), "a topic belongs to no message")
        require(not len(repeats) or int(repeats.max()) <= TOPICS_MAX, "a message has many topics")
        for text in loaded[1].texts:
            read_line(text)
        self.scopes.load(scopes)
        for names, new in zip(self._names, loaded, strict=True):
            names.load(new)
        self.rows.load(rows)
        self.topics.load(topics)

    @property
    def size_bytes(self) -> int:
        """Memory of columns and indexes, without names."""
        return self.rows.size_bytes + self.topics.size_bytes + self.by_line.size_bytes


def packed_signs(counts: list[int]) -> tuple[int, int, int]:
    """Return the counts of the signs as the numbers of the three columns."""
    data = bytes(counts)
    first, second, third = (
        int.from_bytes(data[start : start + SIGNS_OF_WORD], "little")
        for start in range(0, len(SIGNS), SIGNS_OF_WORD)
    )
    return first, second, third


def unpacked_signs(columns: list[U64]) -> U8:
    """Return the counts of rows by sign; (rows, signs) uint8."""
    parts = [
        np.ascontiguousarray(column.astype("<u8", copy=False)).view(np.uint8).reshape(-1, 8)
        for column in columns
    ]
    return np.concatenate(parts, axis=1)
