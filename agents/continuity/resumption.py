"""Resumption: the return of an agent to a thread, after an end or a crash.

Owns the rule by which a session's thread is found, and `Resumed`. A session has the scope of its
agent, its own dimensions, and the thread unless that is "main".
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from cerata.engine.errors import Conflict
from cerata.engine.events import Scope
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.scopes import is_same

from ..activities.columns import ActivityKind
from ..activities.reader import ActivitiesAt, ActivityRow
from ..activities.values import activities_at
from ..turns.line import MAIN_THREAD, THREAD_DIMENSION, Line

Resumed: TypeAlias = Literal["new", "returned", "crashed"]


def thread_of(scope: Scope) -> str:
    """Return the thread of a session by its scope."""
    return str(dict(scope).get(THREAD_DIMENSION, MAIN_THREAD))


def without_thread(scope: Scope) -> Scope:
    """Return a scope without its thread."""
    return tuple(pair for pair in scope if pair[0] != THREAD_DIMENSION)


def resumed_at(snapshot: Snapshot, agent: str, scope: Scope) -> Resumed:
    """Return how a session of an agent resumes the thread of its scope."""
    newest = newest_entry(snapshot, agent, scope)
    if newest is None:
        return "new"
    return "crashed" if newest[1].end is None else "returned"


def newest_entry(snapshot: Snapshot, agent: str, scope: Scope) -> tuple[int, ActivityRow] | None:
    """Return the seq of the newest start in a thread, by its scope, and its session; or None."""
    return activities_at(snapshot).newest_entry(ActivityKind.SESSION, agent, scope)


def scope_of_sessions(line: Line) -> Scope:
    """Return the scope of the sessions of a line of talk."""
    if line.thread == MAIN_THREAD:
        return line.base
    return (*line.base, (THREAD_DIMENSION, line.thread))


def check_thread(snapshot: Snapshot, agent: str, name: str, scope: Scope) -> None:
    """Refuse a session whose name belongs to a session of another thread.

    Raises:
        Conflict: a session of this name, and of this scope but for the thread, has another thread.
    """
    activities = activities_at(snapshot)
    for row in activities.named(ActivityKind.SESSION, name, agent):
        other = activities.scope_of(row.row)
        if not is_same(other, scope) and is_same(without_thread(other), without_thread(scope)):
            raise Conflict(
                f"The session {name!r} belongs to the thread {thread_of(other)!r}, "
                f"not {thread_of(scope)!r}",
                where=f"event {row.seq:,}",
                remedy="Pass its thread, or another id.",
            )


def last_entry(activities: ActivitiesAt, row: ActivityRow) -> int:
    """Return the seq of the newest start of a session."""
    starts = activities.further_starts(row.row)
    return starts[-1].seq if starts else row.seq
