"""The verbs that read conversations: sessions, threads, topics, standing, handoff, summaries."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cerata.agents.activities.columns import ActivityKind
from cerata.agents.activities.reads import activities_at
from cerata.agents.activities.values import activity_of, activity_place
from cerata.agents.agent import Agent
from cerata.agents.continuity.descriptions import description_of
from cerata.agents.continuity.exchanges import Talk
from cerata.agents.continuity.resumption import thread_of
from cerata.engine.unreadable import readable
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.words import clipped, counted

from .agent_options import agent_in, checked_agent
from .output import Output
from .runs import STATUS_STYLES
from .store_options import reading, view_of

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue
    from cerata.engine.plain_value import PlainValue
    from cerata.memory.store import Store

_HANDOFF_LINES_MAX = 40
"""Lines of a terminal for a line of a handoff: more than its texts can fill."""

_SUMMARY_LINES_MAX = 3

_TITLE_SIZE = 50
"""Characters of the title of a session."""


def run_sessions(options: Namespace, output: Output) -> int:
    """List the sessions, newest first, each with its thread."""
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        if options.agent is not None:
            checked_agent(snapshot, options.agent)
        activities = activities_at(snapshot)
        sessions: list[JsonValue] = []
        rows = reversed(activities.all_activities(ActivityKind.SESSION, options.agent))
        for row, session in readable(
            rows, lambda row: (row, activity_of(snapshot, row)), activity_place
        ):
            thread = thread_of(activities.scope_of(row.row))
            talk = Talk(snapshot, session.agent, session=session.name, thread=thread)
            described = description_of(talk) if len(talk) else None
            more: dict[str, JsonValue] = dict.fromkeys(("mode", "title", "project"))
            more |= {} if described is None else {name: getattr(described, name) for name in more}
            sessions.append({**session.to_dict(), "thread": thread, **more})
            mode = "" if described is None else f"mode {described.mode}  "
            project = f"project {more['project']}" if more["project"] else ""
            title = clipped(str(more["title"]), _TITLE_SIZE) if more["title"] else ""
            output.row(
                (f"{f'#{session.id}':>7}  ", "dim"),
                f"{session.name}  {session.agent} {session.version}  thread {thread}  {mode}",
                (session.status, STATUS_STYLES[session.status]),
                (f"  {session.started:%Y-%m-%d %H:%M:%S} UTC", "dim"),
                f"  {session.error}" if session.error else "",
            )
            if title or project:
                output.row(f"{'':9}{'  '.join(filter(None, (title, project)))}")
        if not sessions:
            output.line("No session is recorded.")
        output.result({"basis": view.basis, "sessions": sessions}, items="sessions")
    return 0


def run_threads(options: Namespace, output: Output) -> int:
    """List the threads of an agent, the most recent first."""
    with reading(options) as store:
        agent = _agent(store, options)
        threads = agent.threads()
        for thread in threads:
            output.row(
                f"{thread.name}  mode {thread.mode_group}  {counted(thread.sessions, 'session')}  "
                f"{counted(thread.messages, 'message')}",
                (f"  {thread.first:%Y-%m-%d} to {thread.last:%Y-%m-%d %H:%M} UTC", "dim"),
            )
        if not threads:
            output.line("The agent has no messages.")
        _result(store, agent, options, output, "threads", threads)
    return 0


def run_topics(options: Namespace, output: Output) -> int:
    """List the topics of a thread's newest messages, the most mentioned first."""
    with reading(options) as store:
        agent = _agent(store, options)
        topics = agent.topics(**line_of(options))
        for topic in topics:
            below = "" if topic.below is None else f"  below {topic.below}"
            output.row(
                f"{topic.word}  {counted(topic.mentions, 'mention')}  "
                f"freshness {topic.freshness:.1f}{below}",
                ("  fixation" if topic.is_fixation else "", "yellow"),
            )
        if not topics:
            output.line("The newest messages have no topic.")
        _result(store, agent, options, output, "topics", topics)
    return 0


def run_standing(options: Namespace, output: Output) -> int:
    """Print four scores of how the user talks, with their newest evidence."""
    with reading(options) as store:
        agent = _agent(store, options)
        scores = agent.standing()
        for score in scores:
            output.row(f"{score.dimension}  {score.score:.2f}")
            for match in score.evidence:
                output.row(
                    (f"{f'#{match.message}':>7}  ", "dim"), match.pattern, (f"  {match.day}", "dim")
                )
        _result(store, agent, options, output, "standing", scores)
    return 0


def run_handoff(options: Namespace, output: Output) -> int:
    """Print the state of a thread for an agent that comes back."""
    with reading(options) as store:
        agent = _agent(store, options)
        handoff = agent.handoff(**line_of(options))
        for line in handoff.lines():
            output.paragraph(line, indent=0, lines=_HANDOFF_LINES_MAX)
        if handoff.is_empty:
            line = f"Thread {handoff.thread}, mode {handoff.mode_group}, has no messages."
            output.line(f"{line} 'cerata threads' lists the threads.")
        basis = view_of(store, options).basis
        output.result({"basis": basis, "agent": agent.name, "handoff": handoff.to_dict()})
    return 0


def run_summaries(options: Namespace, output: Output) -> int:
    """List the summaries of a thread, by level and period."""
    with reading(options) as store:
        agent = _agent(store, options)
        summaries = agent.summaries(**line_of(options))
        for summary in summaries:
            output.row(
                (f"{f'#{summary.id}':>7}  ", "dim"),
                f"{summary.level} {summary.period}",
                "" if summary.title is None else f"  {summary.title}",
            )
            output.paragraph(" ".join(summary.text.split()), indent=9, lines=_SUMMARY_LINES_MAX)
        if not summaries:
            output.line(
                "The thread has no summary; 'cerata reflect' writes the summaries that are due."
            )
        _result(store, agent, options, output, "summaries", summaries)
    return 0


def line_of(options: Namespace) -> dict[str, str]:
    """Return the thread and the mode of the options, each only if it is passed."""
    passed = {"thread": options.thread, "mode": options.mode}
    return {name: value for name, value in passed.items() if value is not None}


def _agent(store: Store, options: Namespace) -> Agent:
    timezone = getattr(options, "timezone", "UTC")
    snapshot = snapshot_of(view_of(store, options))
    agent = agent_in(store, snapshot, options.agent, timezone=timezone)
    return agent if options.at is None else agent.at(options.at)


def _result(
    store: Store,
    agent: Agent,
    options: Namespace,
    output: Output,
    name: str,
    values: Sequence[PlainValue],
) -> None:
    items: list[JsonValue] = [value.to_dict() for value in values]
    basis = view_of(store, options).basis
    output.result({"basis": basis, "agent": agent.name, name: items}, items=name)
