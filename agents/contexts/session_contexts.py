"""The contexts of a session: made, recorded, and once preceded by the question for a warm start.

Leaves out the content of a context (`blocks`) and the event (`recorded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cerata.engine.errors import InvalidInput, ModelFailed, NotFound
from cerata.engine.events import DEFAULT_SCOPE, Draft
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.session import WriteSession
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.view import View

from ..activities.columns import ActivityKind
from ..activities.reader import ActivityRow
from ..activities.values import activities_at
from ..continuity.exchanges import Talk
from ..continuity.models import Extractive, Model
from ..continuity.resumption import (
    Resumed,
    last_entry,
    resumed_at,
    scope_of_sessions,
    thread_of,
    without_thread,
)
from ..continuity.tasks import Writer
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
from .assembly import CONTINUITY, Assembly, Titles, assembled, check_request
from .blocks import Turn, checked_blocks
from .recorded import Assembling, AssemblyRequest, References
from .warm_starts import write_warm_start


class Contexts:
    """Makes and records the contexts of a session. One thread at a time may call it."""

    def __init__(
        self,
        agent: str,
        model: Model,
        activity: int,
        writer: WriteSession,
        whole: Callable[[], Snapshot],
        references: References,
        check: Callable[[], None],
    ) -> None:
        """Prepare the contexts of a session.

        Args:
            agent: The agent's name.
            model: The model that writes warm starts.
            activity: The seq of the session's first start.
            writer: Writes in the scope of the session.
            whole: Returns the state that the agent reads.
            references: Returns the references of a run.
            check: Refuses a write inside a transaction.
        """
        self._agent = agent
        self._model = model
        self._activity = activity
        self._writer = writer
        self._whole = whole
        self._references = references
        self._check = check

    def assemble(self, request: AssemblyRequest, *, is_recorded: bool) -> Assembly:
        """Return the context of a question, recorded or not."""
        if is_recorded:
            self._check()
            self._writer.check_writable()
        assembling = self._assembling(request)
        if is_recorded and self._ask_for_warm_start(assembling, request):
            assembling = self._assembling(request)
        assembly = assembling.assembly()
        if not is_recorded:
            return assembly
        receipt = self._writer.write([Draft(assembling.event(assembly), assembling.scope)])
        return replace(assembly, recorded=receipt.seqs[0])

    def _assembling(self, request: AssemblyRequest) -> Assembling:
        return Assembling(self._whole(), self._agent, self._activity, request, self._references)

    def _ask_for_warm_start(self, assembling: Assembling, request: AssemblyRequest) -> bool:
        """Ask for a warm start if one is due; return whether the log may have a new one."""
        arguments = request.arguments
        is_due = arguments.resumed == "returned" and CONTINUITY in arguments.blocks
        if not is_due or isinstance(self._model, Extractive):
            return False
        handoff = assembling.turn.handoff()
        if handoff is None:
            return False
        writer = Writer(self._writer, self._agent, self._model, self._activity, assembling.scope)
        try:
            write_warm_start(writer, self._agent, assembling.turn.line, handoff)
        except ModelFailed:
            # The context then shows the handoff itself.
            return False
        return True


# --- Previews: the context that a session's next turn would get, read without entering the session
#
# Nothing is written, so a context of the past can be read, too.


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
