"""The verbs of conversations with agents: talk, assemble and reflect.

Owns the agent of a verb, by its name or as the only one of the memory. Leaves out the agents of
slots, which their declarations name (`slots`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from cerata.cli.options import changing, check_goes_with, reading, view_of
from cerata.cli.verbs import add_current_folder
from cerata.engine.errors import InvalidInput, NotFound

from .runs import STATUS_STYLES

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cerata.agents.agent import Agent
    from cerata.agents.continuity.models import Model
    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue
    from cerata.engine.plain_value import PlainValue
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.store import Store


def agent_in(
    store: Store,
    snapshot: Snapshot,
    name: str | None,
    *,
    model: Model | None = None,
    timezone: str = "UTC",
) -> Agent:
    """Return an agent over a store, by default the only one that has messages or activities.

    Args:
        store: The store.
        snapshot: The state in which the agent is looked up.
        name: The name; None for the only agent.
        model: The writer of its answers; default the model that quotes.
        timezone: The IANA name of the zone of printed times.

    Raises:
        NotFound: no agent has the name; the remedy has the nearest.
        InvalidInput: several agents have messages or activities, and none is named.
    """
    from cerata.agents.agent import Agent
    from cerata.engine.words import clipped

    snapshot = agent_scope(snapshot)
    if name is not None:
        checked_agent(snapshot, name)
        return Agent(store, name, model=model, timezone=timezone)
    names = _names(snapshot)
    if len(names) > 1:
        raise InvalidInput(
            f"The memory has {len(names):,} agents: {clipped(', '.join(names), 200)}",
            remedy="Pass --agent NAME.",
        )
    if not names:
        raise NotFound(
            "No agent has messages or activities",
            remedy="Record some with Agent.session(), or name another file with -f FILE.",
        )
    return Agent(store, names[0], model=model, timezone=timezone)


def agent_scope(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in the scope of an agent: without a scope, the default tenant's."""
    from cerata.engine.events import DEFAULT_SCOPE

    return snapshot.within(DEFAULT_SCOPE) if snapshot.scope is None else snapshot


def checked_agent(snapshot: Snapshot, name: str) -> None:
    """Raise `NotFound` unless an agent has messages, activities or proposals."""
    import difflib

    from cerata.agents.growth.proposals import proposals_of

    names = _names(snapshot)
    if name in names or proposals_of(snapshot, name):
        return
    near = difflib.get_close_matches(name, names, n=1)
    raise NotFound(
        f"There is no agent {name!r:.60}",
        remedy=f"Did you mean {near[0]!r}?"
        if near
        else "'cerata agents talk' lists their sessions.",
    )


def _names(snapshot: Snapshot) -> list[str]:
    """Return the agents that have messages or activities, by name."""
    from cerata.agents.turns.reads import messages_at

    from ..activities.values import activities_at

    acting = {row.agent for row in activities_at(snapshot).all_activities()}
    return sorted(acting | set(messages_at(snapshot.log_only).agents()))


_HANDOFF_LINES_MAX = 40
"""Lines of a terminal for a line of a handoff: more than its texts can fill."""

_SUMMARY_LINES_MAX = 3

_TITLE_SIZE = 50
"""Characters of the title of a session."""


def run_talk(options: Namespace, output: Output) -> int:
    """Print the reading that ``--show`` names."""
    shown: str = options.show
    thread = {"--thread": options.thread, "--mode": options.mode}
    has_thread = shown in ("topics", "handoff", "summaries")
    is_handoff = shown == "handoff"
    check_goes_with("topics, handoff and summaries", thread, is_passed=has_thread)
    check_goes_with("handoff", {"--timezone": options.timezone}, is_passed=is_handoff)
    check_goes_with("a list", {"--jsonl": options.jsonl}, is_passed=not is_handoff)
    readings = {
        "sessions": _print_sessions,
        "threads": _print_threads,
        "topics": _print_topics,
        "standing": _print_standing,
        "handoff": _print_handoff,
        "summaries": _print_summaries,
    }
    return readings[shown](options, output)


def _print_sessions(options: Namespace, output: Output) -> int:
    """List the sessions, newest first, each with its thread."""
    from cerata.agents.activities.columns import ActivityKind
    from cerata.agents.activities.values import activity_of, activity_place
    from cerata.agents.continuity.descriptions import description_of
    from cerata.agents.continuity.exchanges import Talk
    from cerata.agents.continuity.resumption import thread_of
    from cerata.engine.unreadable import readable
    from cerata.engine.words import clipped
    from cerata.memory.snapshot.reader import snapshot_of

    from ..activities.values import activities_at

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


def _print_threads(options: Namespace, output: Output) -> int:
    """List the threads of an agent, the most recent first."""
    from cerata.engine.words import counted

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


def _print_topics(options: Namespace, output: Output) -> int:
    """List the topics of a thread's newest messages, the most mentioned first."""
    from cerata.engine.words import counted

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


def _print_standing(options: Namespace, output: Output) -> int:
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


def _print_handoff(options: Namespace, output: Output) -> int:
    """Print the state of a thread for an agent that comes back."""
    with reading(options) as store:
        agent = _agent(store, options)
        handoff = agent.handoff(**line_of(options))
        for line in handoff.lines():
            output.paragraph(line, indent=0, lines=_HANDOFF_LINES_MAX)
        if handoff.is_empty:
            line = f"Thread {handoff.thread}, mode {handoff.mode_group}, has no messages."
            output.line(f"{line} See 'agents talk --show threads'.")
        basis = view_of(store, options).basis
        output.result({"basis": basis, "agent": agent.name, "handoff": handoff.to_dict()})
    return 0


def _print_summaries(options: Namespace, output: Output) -> int:
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
                "The thread has no summary; 'cerata agents reflect' writes the due summaries."
            )
        _result(store, agent, options, output, "summaries", summaries)
    return 0


def line_of(options: Namespace) -> dict[str, str]:
    """Return the thread and the mode of the options, each only if it is passed."""
    passed = {"thread": options.thread, "mode": options.mode}
    return {name: value for name, value in passed.items() if value is not None}


def _agent(store: Store, options: Namespace) -> Agent:
    from cerata.memory.snapshot.reader import snapshot_of

    timezone = options.timezone or "UTC"
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


def run_assemble(options: Namespace, output: Output) -> int:
    """Print the context and its tokens; as JSON also the source and the rule of each part."""
    from cerata.memory.snapshot.reader import snapshot_of

    from ..contexts.session_contexts import preview_of
    from ..text.names import check_timezone

    timezone = check_timezone(options.timezone)
    blocks: str = options.blocks
    with reading(options) as store:
        snapshot = snapshot_of(view_of(store, options))
        agent = agent_in(store, snapshot, options.agent)
        preview = preview_of(
            agent_scope(snapshot),
            agent.name,
            " ".join(options.query),
            session=options.session,
            thread=options.thread,
            mode=options.mode,
            max_tokens=options.max_tokens,
            blocks=blocks if blocks in ("default", "all") else blocks.split(","),
            titles=options.titles,
            timezone=timezone,
        )
        context = preview.assembly
        output.line(str(context))
        output.line()
        output.line(
            f"{context.tokens:,} of {context.max_tokens:,} tokens; thread {preview.thread}, "
            f"mode {preview.mode}, {preview.resumed}",
            style="dim",
        )
        output.result({"agent": agent.name, **preview.to_dict()})
    return 0


_REMEDY: Final = "Pass --model MODULE:NAME of an object with name, version and write(task)."


def run_reflect(options: Namespace, output: Output) -> int:
    """Perform the due tasks with a model, by default `Extractive`, or list them."""
    from cerata.engine.words import clipped, counted
    from cerata.memory.snapshot.reader import snapshot_of

    model = None if options.model is None else model_named(options.model)
    with reading(options) if options.dry_run else changing(options, output) as store:
        agent = agent_in(store, snapshot_of(store), options.agent, model=model)
        reflection = agent.reflect(dry_run=options.dry_run, limit=options.limit)
        for word, style, reports in (
            ("done", "green", reflection.done),
            ("failed", "red", reflection.failed),
            ("skipped", "yellow", reflection.skipped),
        ):
            for report in reports:
                output.row((f"{word:>7}  ", style), clipped(str(report), 500))
        done, failed, skipped = map(len, (reflection.done, reflection.failed, reflection.skipped))
        output.line(f"{counted(done, 'task')} done, {failed:,} failed, {skipped:,} skipped")
        output.result({"file": store.path, "agent": agent.name, **reflection.to_dict()})
    return 1 if failed else 0


def model_named(name: str) -> Model:
    """Return the model with a name ``module:name``; a class is called without arguments.

    Raises:
        InvalidInput: the name has another form, or the class cannot be called so.
        NotFound: there is no such module or object.
    """
    from cerata.agents.code import object_named

    add_current_folder()
    model = object_named(name, "model", _REMEDY)
    if not isinstance(model, type):
        return cast("Model", model)  # the agent checks it
    try:
        return cast("Model", model())
    except Exception as error:
        raise InvalidInput(
            f"The model {name!r:.120} cannot be made: {type(error).__name__}: {error}",
            remedy="Name an object, or a class that needs no arguments.",
        ) from error
