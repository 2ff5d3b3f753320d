"""Sweeping: the expired frames of an agent are closed, and its abandoned activities end.

Owns the choice of both. Leaves out the batches that close frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.events import DeleteFrame, Draft, Scope
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import leave_out
from cerata.memory.batch.attempts import attempted
from cerata.memory.batch.session import WriteSession
from cerata.memory.frames.closing import EXPIRED, delete_frames, expired_frames
from cerata.memory.snapshot.snapshot import Snapshot

from .activities.columns import ActivityKind
from .activities.events import EndActivity
from .activities.reader import ActivityRow
from .activities.values import activities_at
from .continuity.exchanges import Talk
from .spec import WorkingSlot

ABANDONED_US: Final = 24 * 3600 * 1_000_000
"""A session, and a run without a ttl, without an event for this time is abandoned.

An unvalidated heuristic.
"""


@dataclass(frozen=True, slots=True)
class AgentSweep(PlainValue):
    """The effect of `Agent.sweep`: the frames that it closed, and the activities that it ended."""

    frames: int
    activities: int


def close_expired(writer: WriteSession, agent: str) -> int:
    """Close the expired frames of an agent; return their count."""
    snapshot = writer.snapshot()
    frames, _ = expired_frames(snapshot)
    own = [frame for frame in frames if _is_of(snapshot, frame, agent)]
    return len(delete_frames(writer.by(None, EXPIRED), own, is_sweep=True).deleted)


def _is_of(snapshot: Snapshot, frame: int, agent: str) -> bool:
    row = snapshot.base.frames.frame(frame)
    return row is not None and (row.track or "").startswith(f"{agent}/")


def end_abandoned(
    snapshot: Snapshot,
    agent: str,
    working: WorkingSlot,
    writer_of: Callable[[Scope], WriteSession],
) -> int:
    """End the abandoned activities of an agent as "left"; return their count.

    Args:
        snapshot: The newest state of the agent's scope.
        agent: The agent's name.
        working: The slot that captures the results of calls; its ttl is the patience with a run.
        writer_of: Returns the writer of a scope.
    """
    ended = 0
    # A session is ended after its runs, whose ends are events of the session.
    for kind in (ActivityKind.RUN, ActivityKind.SESSION):
        patience = ABANDONED_US
        if kind is ActivityKind.RUN and working.ttl_us is not None:
            patience = working.ttl_us
        for row in activities_at(snapshot).open_activities(kind):
            if row.agent == agent:
                scope = activities_at(snapshot).scope_of(row.row)
                try:
                    ended += _end(writer_of(scope), scope, row, patience)
                except Corrupt as error:
                    leave_out(f"{row.kind.name.capitalize()} {row.name!r}", error)
    return ended


def _end(writer: WriteSession, scope: Scope, row: ActivityRow, patience: int) -> bool:
    def attempt(snapshot: Snapshot) -> bool:
        now_us = writer.log.environment.now_us()
        newest = activities_at(snapshot).activity(row.seq)
        if newest is None or newest.end is not None:
            return False
        if now_us - _last_recorded(snapshot, newest) < patience:
            return False
        drafts = [Draft(EndActivity(activity=row.seq, status="left"), scope)]
        if row.frame and snapshot.is_current(row.frame):
            drafts.append(Draft(DeleteFrame(frame=row.frame), scope))
        writer.write(drafts, expect=snapshot.basis)
        return True

    return attempted(writer, attempt, where=f"{row.kind.name.lower()} {row.name!r}")


def _last_recorded(snapshot: Snapshot, row: ActivityRow) -> int:
    """Return the time of an activity's last event; those of its runs and messages are its, too."""
    activities = activities_at(snapshot)
    last = max([activities.last_seq(row.row), *map(activities.last_seq, activities.parts_of(row))])
    if row.kind is ActivityKind.SESSION:
        talk = Talk(snapshot, row.agent, session=row.name)
        last = max([last, *talk.messages.columns.seq.view()[talk.rows].tolist()])
    event = snapshot.event_of(last)
    return row.recorded if event is None else event.recorded
