"""Previews: the context that a session's next turn would get, read without entering the session.

Owns the line and the resumption of a session as of a basis. Leaves out the content (`blocks`) and
the budget (`assembly`). Nothing is written, so a context of the past can be read, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import DEFAULT_SCOPE
from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.view import View

from ..activities.columns import ActivityKind
from ..activities.reader import ActivityRow
from ..activities.reads import activities_at
from ..continuity.exchanges import Talk
from ..continuity.resumption import (
    Resumed,
    last_entry,
    resumed_at,
    scope_of_sessions,
    thread_of,
    without_thread,
)
from ..text.names import check_label
from ..turns.line import (
    CHAT_MODE,
    MAIN_THREAD,
    MODE_DIMENSION,
    THREAD_DIMENSION,
    Line,
    line_of,
    mode_of,
)
from .assembly import Assembly, Titles, assembled, check_request
from .blocks import Turn, checked_blocks

NEW_SESSION: Final = "(new)"
"""In place of the id of a session to come; an id has no parentheses."""


@dataclass(frozen=True, slots=True)
class Preview(PlainValue):
    """The context of a session's next turn; a session to come has no ``session``."""

    session: str | None
    thread: str
    mode: str
    resumed: Resumed
    assembly: Assembly


def preview_of(
    snapshot: Snapshot,
    agent: str,
    query: str,
    *,
    session: str | None = None,
    thread: str | None = None,
    mode: str | None = None,
    max_tokens: int = 6_000,
    blocks: str | Sequence[str] = "default",
    titles: Titles = "own",
    timezone: str = "UTC",
) -> Preview:
    """Return the context that the next turn of a session would get as of a snapshot.

    Args:
        snapshot: The state, within the scope of the agent.
        agent: The agent's name.
        query: The question.
        session: The session's id; None for the next new session of the thread.
        thread: The thread; default that of the session, else "main".
        mode: The mode; default that of the session's newest message, else "chat".
        max_tokens: Tokens of the whole context; never exceeded.
        blocks: As `Session.assemble`.
        titles: As `Session.assemble`.
        timezone: The IANA name of the zone of printed times.

    Raises:
        NotFound: the agent has no such session.
        InvalidInput: the session belongs to another thread, a block is unknown, or the question
            alone needs more tokens.
    """
    for name, label in (("thread", thread), ("mode", mode)):
        if label is not None:
            check_label(name, label)
    question, used = check_request(query, max_tokens, titles)
    row = None
    if session is None:
        line = _line(snapshot, agent, thread or MAIN_THREAD, mode or CHAT_MODE)
        mode = mode or CHAT_MODE
    else:
        line, row, mode = _entered(snapshot, agent, session, thread, mode)
    before = snapshot
    if row is not None:
        before = snapshot.earlier(last_entry(activities_at(snapshot), row) - 1)
    resumed = resumed_at(before, agent, scope_of_sessions(line))
    names = checked_blocks(blocks, mode)
    within = snapshot.within(line.base)
    name = session or NEW_SESSION
    turn = Turn(within, line, name, row, mode, resumed, timezone, question, titles)
    view = View(within)
    contents = turn.contents(names)
    assembly = assembled(contents, (), question, used, max_tokens, view, within.now)
    return Preview(session, line.thread, mode, resumed, assembly)


def _line(snapshot: Snapshot, agent: str, thread: str, mode: str) -> Line:
    pairs = dict(DEFAULT_SCOPE if snapshot.scope is None else snapshot.scope)
    return line_of(agent, tuple({THREAD_DIMENSION: thread, MODE_DIMENSION: mode, **pairs}.items()))


def _entered(
    snapshot: Snapshot, agent: str, session: str, thread: str | None, mode: str | None
) -> tuple[Line, ActivityRow, str]:
    """Return the line of a session, the session, and its mode."""
    activities = activities_at(snapshot)
    rows = activities.named(ActivityKind.SESSION, session, agent)
    if not rows:
        raise NotFound(
            f"The agent {agent!r} has no session {session!r:.60}",
            remedy="'cerata agents talk' lists the sessions of agents.",
        )
    row = max(rows, key=lambda row: last_entry(activities, row))
    scope = activities.scope_of(row.row)
    if thread is not None and thread != thread_of(scope):
        raise InvalidInput(
            f"The session {session!r} belongs to the thread {thread_of(scope)!r}, not {thread!r}",
            where=f"event {row.seq:,}",
            remedy="Leave out the thread, or name another session.",
        )
    talk = Talk(snapshot, agent, session=session)
    if mode is None and len(talk):
        newest = snapshot.layers.scope_of(talk.messages.columns.seq.item(int(talk.rows[-1])))
        mode = None if newest is None else mode_of(newest)
    mode = mode or CHAT_MODE
    line = line_of(
        agent,
        (
            *without_thread(scope),
            (THREAD_DIMENSION, thread_of(scope)),
            (MODE_DIMENSION, mode),
        ),
    )
    return line, row, mode
