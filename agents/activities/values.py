"""Activities and calls, as callers see them, and their look-up in a snapshot.

Owns `Activity`, `Call` and `Result`. Leaves out recording (`journal`) and the run itself (`run`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar, Final

from cerata.engine.arguments import expect_type
from cerata.engine.errors import Corrupt, NotFound, value_text
from cerata.engine.events import EventBody, JsonValue
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime

from ..text.summaries import decoded
from .columns import ActivityKind, CallKind
from .events import EndActivity, RecordCall, StartActivity
from .projection import ActivitiesProjection
from .reader import ActivitiesAt, ActivityRow, CallRow

RESULT_KIND: Final = "tool_result"
"""The kind of the frames that hold results. On disk: never change it."""

RUN_KIND: Final = "run"
"""The kind of the frame above the results of a run. On disk: never change it."""


@dataclass(frozen=True, slots=True)
class Activity(PlainValue):
    """A session or a run of an agent.

    - ``id`` is the seq of its first start, ``name`` the id that the caller passed.
    - ``status`` is "open", "done", "failed" (the block raised) or "left" (abandoned).
    """

    id: int
    kind: str
    name: str
    agent: str
    version: str
    started: datetime
    ended: datetime | None
    status: str
    error: str | None
    session: int | None
    """The id of the run's session; None for a session, or a run outside any."""
    calls: int
    """The number of recorded calls, with inputs."""
    function: str | None
    """Module and name of the run's function, if `cerata.agent` decorates it."""


@dataclass(frozen=True, slots=True)
class Call(PlainValue):
    """A call of a run, recorded or new.

    - ``ordinal`` counts the calls of this name in the run, from 1.
    - ``arguments`` is canonical JSON, without secret arguments.
    - ``event`` is the seq of the recorded call; None for a new call.
    """

    kind: str
    name: str
    ordinal: int
    arguments: str
    event: int | None = None
    error: str | None = None
    value: str | None = None
    """JSON of the value, if values were compared; else None."""

    def __str__(self) -> str:
        value = "" if self.value is None else f" = {self.value}"
        place = "" if self.event is None else f" (#{self.event})"
        error = "" if self.error is None else f" raised {self.error}"
        return f"{self.kind} {self.name}.{self.ordinal} {self.arguments}{value}{error}{place}"


@dataclass(frozen=True, slots=True)
class Result(PlainValue):
    """The result of a call.

    - ``ref`` names the result in later calls and prompts of the run; None if it was not captured.
    - ``id`` is the frame that holds the result; None if the result was not recorded.
    - ``size`` is the bytes of its JSON.
    - ``memo`` is True if an earlier call of this run gave the result.
    """

    _plain: ClassVar[tuple[str, ...]] = ("ref", "summary", "id", "size", "memo", "value")

    ref: str | None
    summary: str
    id: int | None
    size: int
    memo: bool
    _data: bytes | None
    _value: object = None

    @property
    def value(self) -> JsonValue:
        """A fresh copy of the result: tuples are lists, as in every later run.

        A result that was not recorded is returned as the function returned it.
        """
        value: JsonValue = self._value if self._data is None else decoded(self._data)  # type: ignore[assignment]
        return value


@dataclass(frozen=True, slots=True)
class Reference(PlainValue):
    """A result of a run that a reference names.

    - ``summary`` is the text that prompts show, ``size`` the bytes of its JSON.
    - ``turn`` is the turn of the call, 0 for an input; ``id`` the frame that holds the result.
    - ``expires`` is the time from which the reference names nothing.
    """

    ref: str
    summary: str
    size: int
    turn: int
    id: int
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class Lineage(PlainValue):
    """The results that a result was made from, and those made from it, both transitively."""

    sources: tuple[Reference, ...]
    derived: tuple[Reference, ...]


def body_of(snapshot: Snapshot, seq: int) -> EventBody | None:
    """Return the body of an event within the scope; None if erased or hidden."""
    event = snapshot.event_of(seq)
    body = None if event is None else event.body
    return body if isinstance(body, EventBody) else None


def activity_of(snapshot: Snapshot, row: ActivityRow) -> Activity:
    """Return the value of an activity. Cost: a read of its start and of its end.

    Raises:
        Corrupt: the event of the start lies outside the scope, or is of another kind.
    """
    start = body_of(snapshot, row.seq)
    if not isinstance(start, StartActivity):
        raise Corrupt(
            f"Event {row.seq:,} is not a start within the scope",
            remedy="Run 'cerata file verify', then 'cerata file maintain --only rebuild'.",
        )
    end = None if row.end is None else body_of(snapshot, row.end)
    ended = row.ended
    return Activity(
        id=row.seq,
        kind=row.kind.name.lower(),
        name=row.name,
        agent=row.agent,
        version=start.agent_version,
        started=to_datetime(row.recorded),
        ended=None if ended is None else to_datetime(ended),
        status="open" if row.status is None else row.status.name.lower(),
        error=end.error if isinstance(end, EndActivity) else None,
        session=row.parent or None,
        calls=activities_at(snapshot).call_count(row.row),
        function=start.function,
    )


def activities_of(snapshot: Snapshot, rows: Iterable[ActivityRow]) -> list[Activity]:
    """Return the values of activities; an unreadable one is left out, and named by a warning."""
    return [*readable(rows, partial(activity_of, snapshot), activity_place)]


def activity_place(row: ActivityRow) -> str:
    """Return the name of an activity in a warning."""
    return f"{row.kind.name.capitalize()} {row.name!r} of event {row.seq:,}"


def calls_of(snapshot: Snapshot, rows: Iterable[CallRow]) -> list[Call]:
    """Return the values of calls; an unreadable one is left out, and named by a warning."""
    return [*readable(rows, partial(call_of, snapshot), lambda row: f"Call {row.seq:,}")]


def run_named(snapshot: Snapshot, run: str | int, agent: str | None = None) -> ActivityRow:
    """Return the newest run with a name, or the run with an id.

    Raises:
        NotFound: no such run exists within the scope; the remedy names the nearest name.
    """
    activities = activities_at(snapshot)
    expect_type("run", run, str | int, "the id of a run", "Pass its name, or the seq of its start.")
    if isinstance(run, int):
        row = activities.activity(run)
        rows = [] if row is None or row.kind is not ActivityKind.RUN else [row]
    else:
        rows = activities.named(ActivityKind.RUN, run, agent)
    rows = [row for row in rows if agent in (None, row.agent)]
    if rows:
        return rows[-1]
    names = [row.name for row in activities.all_activities(ActivityKind.RUN, agent)]
    near = difflib.get_close_matches(value_text(run).strip("'"), names, n=1)
    advice = f"Did you mean {near[0]!r}? " if near else ""
    raise NotFound(
        f"There is no run {value_text(run):.120}",
        where=None if agent is None else f"agent {agent!r}",
        remedy=f"{advice}'cerata agents runs' lists all runs.",
    )


def call_of(snapshot: Snapshot, row: CallRow) -> Call:
    """Return the value of a call. Cost: a read of its event."""
    body = body_of(snapshot, row.seq)
    if not isinstance(body, RecordCall):
        return Call(row.kind.name.lower(), row.name, row.ordinal, "(erased)", row.seq)
    return Call(
        kind=row.kind.name.lower(),
        name=row.name,
        ordinal=row.ordinal,
        arguments=body.arguments,
        event=row.seq,
        error=body.error,
        value=body.value,
    )


def is_input(row: CallRow) -> bool:
    """Return whether a call is an input of its run."""
    return row.kind is CallKind.INPUT


# --- Activities of a snapshot ---------------------------------------------------------------------


def activities_at(snapshot: Snapshot) -> ActivitiesAt:
    """Return the activities of a snapshot: those of the log and of a transaction's drafts."""
    return snapshot.columns(ActivitiesProjection)
