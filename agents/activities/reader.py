"""Activities as of any event: the reader of the columns that `projection` folds.

Owns the activities at seq n within a scope, their state, and look-ups of their calls. Leaves out
arguments and values, which are in the events.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from cerata.engine.events import Scope
from cerata.projections.columnar.columns import I64, Mask, rows_up_to
from cerata.projections.columnar.scopes import Reach, by_name, scope_text

from .columns import (
    ActivityColumns,
    ActivityKind,
    Birth,
    CallKind,
    Status,
    ended_mask,
)


class ActivityRow(NamedTuple):
    """An activity: its first start, and its end if it is ended at n."""

    row: int
    seq: int
    recorded: int
    kind: ActivityKind
    name: str
    agent: str
    parent: int
    frame: int
    end: int | None
    """Seq of the end; None if open."""
    ended: int | None
    status: Status | None


class CallRow(NamedTuple):
    """A call of an activity; ``ordinal`` counts the calls of its name in the activity, from 1.

    ``number`` counts those with a result; it is 0 for a call without.
    """

    seq: int
    kind: CallKind
    name: str
    ordinal: int
    digest: int
    turn: int
    result: int
    failed: bool
    number: int = 0


class StartRow(NamedTuple):
    """A further start of an activity."""

    seq: int
    replays: bool


class Activities:
    """Reads activities at any n up to ``seq``. Immutable; safe for threads during a fold."""

    def __init__(self, columns: ActivityColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns

    def at(self, n: int, reach: Reach | None) -> ActivitiesAt:
        """Return the activities at event ``n`` that ``reach`` admits."""
        return ActivitiesAt(self, n, reach)


class ActivitiesAt:
    """The activities at seq n; immutable, for any thread."""

    def __init__(self, activities: Activities, n: int, reach: Reach | None = None) -> None:
        """Read the activities at event ``n`` that ``reach`` admits; None admits all."""
        self.n = n
        columns = self._columns = activities.columns
        self._rows = rows_up_to(columns.seq.view(), n)
        self._starts = rows_up_to(columns.starts.seq.view(), n)
        self._endings = rows_up_to(columns.endings.seq.view(), n)
        self._calls = rows_up_to(columns.calls.seq.view(), n)
        self._uses = rows_up_to(columns.uses.seq.view(), n)
        self._handoffs = rows_up_to(columns.handoffs.seq.view(), n)
        self._scopes = columns.scopes.admitted(reach)

    def __len__(self) -> int:
        """Return the number of activities started by n, in all scopes."""
        return self._rows

    # --- activities ------------------------------------------------------------------------------

    def activity(self, seq: int) -> ActivityRow | None:
        """Return the activity with a first start, or None."""
        row = self._columns.row_of(seq) if 0 < seq <= self.n else None
        return self._row(row) if row is not None and self._is_seen(row) else None

    def all_activities(
        self, kind: ActivityKind | None = None, agent: str | None = None
    ) -> list[ActivityRow]:
        """Return the activities of a kind and an agent, in order of seq."""
        columns = self._columns
        seen = self._seen()
        if kind is not None:
            seen &= columns.kind.view()[: self._rows] == kind
        if agent is not None:
            seen &= columns.agent.view()[: self._rows] == (columns.names.find(agent) or 0)
        return [self._row(row) for row in np.flatnonzero(seen).tolist()]

    def named(
        self,
        kind: ActivityKind,
        name: str,
        agent: str | None = None,
        scope: Scope | None = None,
    ) -> list[ActivityRow]:
        """Return the activities with a name, in order of seq; of exactly a scope if passed."""
        columns = self._columns
        code = columns.names.find(name)
        if code is None:
            return []
        found = columns.by_name.find(columns.name.view(), code)
        rows = [self._row(row) for row in found if self._is_seen(row)]
        only = None if scope is None else columns.scopes.find(scope_text(by_name(scope)))
        return [
            row
            for row in rows
            if row.kind is kind
            and agent in (None, row.agent)
            and (scope is None or self._birth(row.row).scope == only)
        ]

    def newest_entry(
        self, kind: ActivityKind, agent: str, scope: Scope
    ) -> tuple[int, ActivityRow] | None:
        """Return the newest start of the activities of exactly a scope, with its activity."""
        columns = self._columns
        code = columns.scopes.find(scope_text(by_name(scope)))
        named = columns.names.find(agent)
        if code is None or named is None:
            return None
        admitted = self._seen()
        admitted &= columns.kind.view()[: self._rows] == kind
        admitted &= columns.agent.view()[: self._rows] == named
        admitted &= columns.scope.view()[: self._rows] == code
        rows = np.flatnonzero(admitted)
        if not len(rows):
            return None
        row = int(rows[-1])
        seq = columns.seq.item(row)
        started = columns.start_row.view()[: self._starts]
        places = np.flatnonzero(admitted[started])
        if len(places) and columns.starts.seq.item(int(places[-1])) > seq:
            row = int(started[places[-1]])
            seq = columns.starts.seq.item(int(places[-1]))
        return seq, self._row(row)

    def open_activities(self, kind: ActivityKind | None = None) -> list[ActivityRow]:
        """Return the activities that are open at n, in order of seq."""
        columns = self._columns
        ended = ended_mask(
            self._rows,
            columns.ending_row.view()[: self._endings],
            columns.start_row.view()[: self._starts],
            columns.reopens.view()[: self._starts],
        )
        rows = [self._row(row) for row in np.flatnonzero(self._seen() & ~ended).tolist()]
        return [row for row in rows if kind in (None, row.kind)]

    def parts_of(self, row: ActivityRow) -> list[int]:
        """Return the rows of the activities that a session has, in order of seq."""
        parents = self._columns.parent.view()[: self._rows]
        rows: list[int] = np.flatnonzero(parents == np.uint64(row.seq)).tolist()
        return [part for part in rows if self._is_seen(part)]

    def further_starts(self, row: int) -> list[StartRow]:
        """Return the further starts of a row, in order of seq."""
        columns = self._columns
        places = [place for place in self._starts_of(row) if place < self._starts]
        return [
            StartRow(columns.starts.seq.item(place), bool(columns.replays.item(place)))
            for place in places
        ]

    def scope_of(self, row: int) -> Scope:
        return self._columns.scopes.scope(self._birth(row).scope)

    def last_seq(self, row: int) -> int:
        """Return the seq of a row's last event by n."""
        columns = self._columns
        seqs = [self._birth(row).seq, *(start.seq for start in self.further_starts(row))]
        seqs += [columns.endings.seq.item(place) for place in self._endings_of(row)]
        calls = self._call_places(row)
        if len(calls):
            seqs.append(columns.calls.seq.item(int(calls[-1])))
        return max(seqs)

    def has_shown_handoff(self, row: int) -> bool:
        """Return whether a recorded context of a session has shown the handoff."""
        return bool(np.any(self._columns.handoff_row.view()[: self._handoffs] == np.uint32(row)))

    # --- calls -----------------------------------------------------------------------------------

    def calls(self, row: int) -> list[CallRow]:
        """Return the calls of a row, in order of seq."""
        return self._call_rows(self._call_places(row))

    def nth(self, row: int, name: str, ordinal: int) -> CallRow | None:
        """Return the n-th call of a name in an activity, from 1, or None."""
        places = self._places_of_name(row, name)
        if not 1 <= ordinal <= len(places):
            return None
        call = self._call_row(int(places[ordinal - 1]), ordinal)
        results = np.count_nonzero(self._columns.result.view()[places[:ordinal]])
        return call._replace(number=int(results) if call.result else 0)

    def result(self, row: int, name: str, number: int) -> CallRow | None:
        """Return the call with the n-th result of a name in an activity, from 1, or None."""
        places = self._places_of_name(row, name)
        with_result = np.flatnonzero(self._columns.result.view()[places])
        if not 1 <= number <= len(with_result):
            return None
        at = int(with_result[number - 1])
        return self._call_row(int(places[at]), at + 1)._replace(number=number)

    def result_number(self, row: int, name: str, frame: int) -> int:
        """Return the number of the result that a frame holds, from 1; 0 if the name has none."""
        frames = self._columns.result.view()[self._places_of_name(row, name)]
        found = np.flatnonzero(frames[frames != 0] == frame)
        return int(found[0]) + 1 if len(found) else 0

    def last_calls(self, row: int, count: int) -> list[CallRow]:
        """Return the calls of a row after its first ``count``, without ordinals and numbers."""
        return [self._call_row(place, 0) for place in self._call_places(row)[count:].tolist()]

    def count(self, row: int, name: str) -> int:
        """Return the number of calls of a name in an activity."""
        return len(self._places_of_name(row, name))

    def call_count(self, row: int) -> int:
        """Return the number of calls of a row."""
        return len(self._call_places(row))

    def equal_calls(self, row: int, digest: bytes) -> list[CallRow]:
        """Return the calls of a row whose digest has the same 64 bits, newest first.

        The caller confirms the digest with the event.
        """
        bits = np.uint64(int.from_bytes(digest[:8], "little"))
        places = self._call_places(row)
        equal = places[self._columns.digest.view()[places] == bits]
        return [self._call_row(place, 0) for place in reversed(equal.tolist())]

    def last_turn(self, row: int) -> int:
        """Return the highest turn of a row's calls, or 0."""
        places = self._call_places(row)
        return int(self._columns.turn.view()[places].max()) if len(places) else 0

    # --- lineage ---------------------------------------------------------------------------------

    def used_by(self, call: int) -> list[int]:
        """Return the frames that a call, by its seq, used; ascending."""
        columns = self._columns
        seqs = columns.uses.seq.view()[: self._uses]
        start, end = np.searchsorted(seqs, [call, call + 1]).tolist()
        frames: list[int] = columns.used_frame.view()[start:end].tolist()
        return frames

    def calls_using(self, frame: int) -> list[int]:
        """Return the seqs of the calls that used a frame, ascending."""
        columns = self._columns
        places = columns.by_used.find(columns.used_frame.view(), frame)
        seqs = [columns.uses.seq.item(place) for place in places if place < self._uses]
        return [seq for seq in seqs if self._sees_call(seq)]

    def call_that_made(self, frame: int) -> int | None:
        """Return the seq of the call whose first result is a frame, or None."""
        columns = self._columns
        places = columns.by_result.find(columns.result.view(), frame) if frame else []
        seqs = [columns.calls.seq.item(place) for place in places if place < self._calls]
        return next((seq for seq in seqs if self._sees_call(seq)), None)

    # --- rows ------------------------------------------------------------------------------------

    def _seen(self) -> Mask:
        """Return a new mask of the rows within the scope."""
        if self._scopes is None:
            return np.ones(self._rows, np.bool_)
        admitted = np.zeros(len(self._columns.scopes) + 1, np.bool_)
        admitted[list(self._scopes)] = True
        return admitted[self._columns.scope.view()[: self._rows]]

    def _is_seen(self, row: int) -> bool:
        if row >= self._rows:
            return False
        return self._scopes is None or self._columns.scope.item(row) in self._scopes

    def _sees_call(self, seq: int) -> bool:
        columns = self._columns
        place = int(np.searchsorted(columns.calls.seq.view(), seq))
        return self._is_seen(columns.call_row.item(place))

    def _birth(self, row: int) -> Birth:
        return self._columns.birth(row)

    def _row(self, row: int) -> ActivityRow:
        columns = self._columns
        birth = columns.birth(row)
        end: tuple[int, ...] | None = None
        endings = self._endings_of(row)
        reopened = [
            place
            for place in self._starts_of(row)
            if place < self._starts and columns.reopens.item(place)
        ]
        if len(endings) > len(reopened):
            end = columns.endings.row(endings[-1])
        return ActivityRow(
            row,
            birth.seq,
            birth.recorded,
            ActivityKind(birth.kind),
            columns.names.text(birth.name) or "",
            columns.names.text(birth.agent) or "",
            birth.parent,
            birth.frame,
            None if end is None else end[0],
            None if end is None else end[1],
            None if end is None else Status(end[3]),
        )

    def _starts_of(self, row: int) -> list[int]:
        columns = self._columns
        return columns.starts_of.find(columns.start_row.view(), row) if self._starts else []

    def _endings_of(self, row: int) -> list[int]:
        columns = self._columns
        places = columns.endings_of.find(columns.ending_row.view(), row) if self._endings else []
        return [place for place in places if place < self._endings]

    def _call_places(self, row: int) -> I64:
        columns = self._columns
        rows = columns.calls_of.rows(columns.call_row.view(), row)
        places: I64 = np.asarray(rows, np.int64)
        end = int(np.searchsorted(places, self._calls))
        visible: I64 = places[:end]
        return visible

    def _places_of_name(self, row: int, name: str) -> I64:
        places = self._call_places(row)
        code = self._columns.names.find(name)
        if code is None:
            return places[:0]
        named: I64 = places[self._columns.call_name.view()[places] == np.uint32(code)]
        return named

    def _call_rows(self, places: I64) -> list[CallRow]:
        rows: list[CallRow] = []
        calls: Counter[int] = Counter()
        results: Counter[int] = Counter()
        for stored in zip(
            *(view[places].tolist() for view in self._columns.calls.views()), strict=True
        ):
            name = stored[3]
            calls[name] += 1
            results[name] += bool(stored[6])
            rows.append(self._call_of(stored, calls[name], results[name] if stored[6] else 0))
        return rows

    def _call_row(self, place: int, ordinal: int) -> CallRow:
        return self._call_of(self._columns.calls.row(place), ordinal)

    def _call_of(self, stored: tuple[int, ...], ordinal: int, number: int = 0) -> CallRow:
        seq, _, kind, name, digest, turn, result, failed = stored
        text = self._columns.names.text(name) or ""
        kind_of_call = CallKind(kind)
        return CallRow(seq, kind_of_call, text, ordinal, digest, turn, result, bool(failed), number)
