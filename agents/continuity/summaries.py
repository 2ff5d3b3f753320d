"""Summaries: those of a line of talk, their sources, and which are due.

Owns the address of a summary and the rule by which it is stale. Leaves out their text (`models`)
and their writing (`tasks`).

- There is one summary for each thread, mode group and period, at ``summary:THREAD/GROUP/KEY``.
- The sources of a day are its current messages, the sources of a longer period are the summaries
  below it.
- A summary is stale if the current sources of its period differ from the frames that its call used.
  This covers edits, late imports, deletions and summaries that were redone.
- A summary without sources is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.quoting import quote
from cerata.projections.frames.filters import Filter

from ..activities.values import activities_at
from ..turns.line import Line, line_of
from ..turns.reads import messages_at
from .exchanges import Talk
from .periods import LEVELS, Period, day_of, named
from .resumption import newest_entry, scope_of_sessions

SUMMARY_KIND: Final = "summary"
"""The kind of the frames of summaries. On disk: never change it."""

COMPACT: Final = "compact"
"""In a summary's metadata: True if its day was still running."""

_DAY_US: Final = 24 * 3_600_000_000


@dataclass(frozen=True, slots=True)
class Summary(PlainValue):
    """A summary of a period of a thread in a mode group."""

    id: int
    thread: str
    mode_group: str
    level: str
    period: str
    title: str | None
    text: str


class DueSummary(NamedTuple):
    """A summary that is missing or stale; without sources it is to be deleted."""

    line: Line
    period: Period
    sources: tuple[int, ...]
    old: tuple[int, ...]
    """The current summaries of the period."""

    @property
    def uri(self) -> str:
        return uri_of(self.line, self.period)


def uri_of(line: Line, period: Period) -> str:
    """Return the URI of a summary; names are percent-encoded."""
    names = (line.thread, line.group, period.key)
    return "summary:" + "/".join(map(quote, names))


class Summaries:
    """The summaries of an agent in a snapshot, by line of talk."""

    def __init__(self, snapshot: Snapshot, agent: str) -> None:
        """Read the current summaries of an agent."""
        self._snapshot = snapshot.log_only
        self._agent = agent

    @property
    def lines(self) -> list[Line]:
        """The lines that have messages or summaries within the scope."""
        messages = messages_at(self._snapshot)
        codes = messages.columns.line.view()[messages.rows_of(self._agent)]
        talked = [messages.line_of_code(code) for code in np.unique(codes).tolist()]
        return [*dict.fromkeys([*talked, *self._made])]

    @cached_property
    def _made(self) -> dict[Line, dict[Period, tuple[int, ...]]]:
        """The current summaries of each line: one a period, or two if two processes wrote them."""
        [mask] = self._snapshot.layers.admitted(Filter(kind=SUMMARY_KIND, track=self._agent))
        base = self._snapshot.base
        by_line: dict[Line, dict[Period, tuple[int, ...]]] = {}
        for frame in base.ids(np.flatnonzero(mask)).tolist():
            row = base.frames.frame(frame)
            scope = self._snapshot.layers.scope_of(frame)
            period = None if row is None else _period_of(row.uri)
            if scope is not None and period is not None:
                of_line = by_line.setdefault(line_of(self._agent, scope), {})
                of_line[period] = (*of_line.get(period, ()), frame)
        return by_line

    def made(self, line: Line, level: int) -> dict[Period, tuple[int, ...]]:
        """Return the current summaries of a level, by period in order."""
        of_line = self._made.get(line, {})
        return {period: of_line[period] for period in sorted(of_line) if period.level == level}

    def sources(self, line: Line, level: int, now_us: int) -> dict[Period, tuple[int, ...]]:
        """Return the sources of the periods of a level that have some."""
        if level == 0:
            return self.days(line, now_us)
        above: dict[Period, tuple[int, ...]] = {}
        for period, frames in self.made(line, level - 1).items():
            higher = period.above
            assert higher is not None
            above[higher] = (*above.get(higher, ()), *frames)
        return above

    def days(self, line: Line, until_us: int) -> dict[Period, tuple[int, ...]]:
        """Return the current messages of each UTC day that has some, of times before ``until``."""
        talk = Talk(self._snapshot, self._agent, line=line)
        columns = talk.messages.columns
        created = columns.created.view()[talk.rows]
        seqs = columns.seq.view()[talk.rows]
        days = created // _DAY_US
        by_day: dict[Period, tuple[int, ...]] = {}
        for day in np.unique(days[created < until_us]).tolist():
            of_day = seqs[(days == day) & (created < until_us)]
            by_day[day_of(day * _DAY_US)] = tuple(of_day.tolist())
        return by_day

    def is_stale(self, frames: tuple[int, ...], sources: tuple[int, ...]) -> bool:
        """Return whether the sources differ from the frames that the summary used."""
        if len(frames) != 1:
            return True
        activities = activities_at(self._snapshot)
        call = activities.call_that_made(frames[0])
        return call is None or set(activities.used_by(call)) != set(sources)

    def due(self, line: Line, level: int, now_us: int) -> list[DueSummary]:
        """Return the summaries of the ended periods of a level that are missing, stale or empty."""
        sources, made = self.sources(line, level, now_us), self.made(line, level)
        due: list[DueSummary] = []
        for period in sorted({*sources, *made}):
            used, old = sources.get(period, ()), made.get(period, ())
            if period.end_us <= now_us and (not used or self.is_stale(old, used)):
                due.append(DueSummary(line, period, used, old))
        return due

    def newest(self, line: Line) -> list[Summary]:
        """Return the newest summary of each level, the widest first."""
        newest: list[tuple[Period, int]] = []
        for level in reversed(range(len(LEVELS))):
            made = self.made(line, level)
            if made:
                period = max(made)
                newest.append((period, made[period][-1]))
        return [
            *readable(
                newest, lambda each: self.value(line, *each), lambda each: frame_place(each[1])
            )
        ]

    def compactions(self, line: Line) -> int:
        """Return the summaries of a running day since the newest session of the thread started."""
        entry = newest_entry(self._snapshot, self._agent, scope_of_sessions(line))
        since = 0 if entry is None else entry[0]
        [mask] = self._snapshot.layers.admitted(
            Filter(kind=SUMMARY_KIND, track=self._agent),
            include_superseded=True,
            include_deleted=True,
        )
        frames = self._snapshot.base.ids(np.flatnonzero(mask))
        of_line = (frame for frame in frames[frames > since].tolist() if self._is_of(line, frame))
        summaries = readable(of_line, self._snapshot.frame_at, frame_place)
        return sum(frame.metadata.get(COMPACT) is True for frame in summaries)

    def _is_of(self, line: Line, frame: int) -> bool:
        scope = self._snapshot.layers.scope_of(frame)
        return scope is not None and line_of(self._agent, scope) == line

    def running(self, line: Line, now_us: int) -> DueSummary | None:
        """Return the summary of the running day if it is missing or stale, else None."""
        period = day_of(now_us)
        sources = self.days(line, period.end_us).get(period, ())
        old = self.made(line, 0).get(period, ())
        if not sources or not self.is_stale(old, sources):
            return None
        return DueSummary(line, period, sources, old)

    def value(self, line: Line, period: Period, frame: int) -> Summary:
        """Return a summary with its text."""
        written = self._snapshot.frame_at(frame)
        level = LEVELS[period.level]
        return Summary(
            written.id, line.thread, line.group, level, period.key, written.title, written.text
        )


def _period_of(uri: str | None) -> Period | None:
    """Return the period of a summary's URI, or None if it names none."""
    key = (uri or "").rpartition("/")[2]
    try:
        return named(key)
    except ValueError:
        return None
