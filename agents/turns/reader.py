"""Messages as of any event: the reader of the columns that `projection` folds.

Owns the rows of an agent's messages at seq n within a scope, and their columns. Leaves out which of
the messages are current, which `frames` knows, and their texts, which are in the events.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cerata.projections.columnar.columns import I64, U8, Mask, rows_up_to
from cerata.projections.columnar.scopes import Reach

from .columns import MessageColumns, unpacked_signs
from .line import Line, read_line


class Messages:
    """Reads messages at any n up to ``seq``. Immutable; safe for threads during a fold."""

    def __init__(self, columns: MessageColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns

    def at(self, n: int, reach: Reach | None) -> MessagesAt:
        """Return the messages at event ``n`` that ``reach`` admits."""
        return MessagesAt(self, n, reach)


class MessagesAt:
    """The messages at seq n; immutable, for any thread."""

    def __init__(self, messages: Messages, n: int, reach: Reach | None = None) -> None:
        """Read the messages at event ``n`` that ``reach`` admits; None admits all."""
        self.n = n
        self.columns = messages.columns
        self._reach = reach
        self._rows = rows_up_to(self.columns.seq.view(), n)

    def __len__(self) -> int:
        """Return the number of messages by n, in all scopes."""
        return self._rows

    @cached_property
    def _seen(self) -> Mask | None:
        """The rows within the scope; None for all."""
        scopes = self.columns.scopes.admitted(self._reach)
        if scopes is None:
            return None
        admitted = np.zeros(len(self.columns.scopes) + 1, np.bool_)
        admitted[list(scopes)] = True
        return admitted[self.columns.scope.view()[: self._rows]]

    def lines(self, agent: str) -> list[Line]:
        """Return the lines of an agent, in all scopes, in order of their first message."""
        return [line for line in self._lines if line.agent == agent]

    def agents(self) -> list[str]:
        """Return the agents that have messages within the scope, by name."""
        codes = self.columns.line.view()[: self._rows]
        seen = np.unique(codes if self._seen is None else codes[self._seen]).tolist()
        return sorted({self.line_of_code(code).agent for code in seen})

    @cached_property
    def _lines(self) -> list[Line]:
        texts = self.columns.lines.texts()
        return [read_line(text) for text in texts]

    def rows_of(self, agent: str, *, thread: str | None = None, group: str | None = None) -> I64:
        """Return the rows of an agent's messages within the scope, ascending; None is any."""
        lines = np.zeros(len(self._lines) + 1, np.bool_)
        for code, line in enumerate(self._lines, start=1):
            lines[code] = (
                line.agent == agent
                and thread in (None, line.thread)
                and group in (None, line.group)
            )
        mask = lines[self.columns.line.view()[: self._rows]]
        return np.flatnonzero(mask if self._seen is None else mask & self._seen)

    def of_session(self, agent: str, session: str) -> I64:
        """Return the rows of a session of an agent within the scope, ascending."""
        names = self.columns.names
        mask = self.columns.session.view()[: self._rows] == (names.find(session) or 0)
        mask &= self.columns.agent.view()[: self._rows] == (names.find(agent) or 0)
        return np.flatnonzero(mask if self._seen is None else mask & self._seen)

    def signs(self, rows: I64) -> U8:
        """Return the counts of rows by sign, in the order of `SIGNS`; (rows, signs) uint8."""
        return unpacked_signs([column.view()[rows] for column in self.columns.signs])

    def line(self, row: int) -> Line:
        """Return the line of a row."""
        return self.line_of_code(self.columns.line.item(row))

    def line_of_code(self, code: int) -> Line:
        """Return the line with a code."""
        return self._lines[code - 1]

    def name(self, code: int) -> str:
        """Return an agent, a session or a mode."""
        return self.columns.names.text(code) or ""

    def topics(self, rows: I64) -> list[list[str]]:
        """Return the topics of rows, each list the most frequent first."""
        return self.columns.topics_of(rows)
