"""Reflecting: the tasks of a model that are due, and their performance.

Owns the order of the tasks and the report. Which summaries are due follows from the log
(`summaries`), so a run after a kill continues, and repeats no recorded answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np

from cerata.engine.errors import CerataError, Conflict
from cerata.engine.events import DeleteFrame, Draft, SupersedeFrame
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.session import WriteSession
from cerata.memory.frames.drafts import frame_fields
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Receipt
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.messages.line import Line

from .models import Source, Task
from .periods import LEVELS, Period
from .summaries import COMPACT, SUMMARY_KIND, DueSummary, Summaries
from .tasks import TaskReport, Writer, reason_of, source_of, task_of

TITLE_TOPICS: Final = 3
"""Topics in the title of a summary."""

_SUMMARIZE: Final = (
    "Summarize the messages of the {level} {period} in the thread {thread!r}: decisions, promises, "
    "feelings and open questions. Write in the first person of the agent, in plain sentences."
)


@dataclass(frozen=True, slots=True)
class Reflection(PlainValue):
    """The result of `Agent.reflect`: the tasks done, failed and skipped, with reasons.

    A dry run has the due tasks in ``skipped``.
    """

    done: tuple[TaskReport, ...] = ()
    failed: tuple[TaskReport, ...] = ()
    skipped: tuple[TaskReport, ...] = ()


@dataclass(slots=True)
class Reports:
    """The tasks of a reflection so far."""

    limit: int | None
    done: list[TaskReport] = field(default_factory=list[TaskReport])
    failed: list[TaskReport] = field(default_factory=list[TaskReport])
    skipped: list[TaskReport] = field(default_factory=list[TaskReport])

    @property
    def is_full(self) -> bool:
        """True if the limit of tasks is reached."""
        return self.limit is not None and len(self.done) + len(self.failed) >= self.limit

    def reflection(self) -> Reflection:
        """Return the reports as the result of the call."""
        return Reflection(tuple(self.done), tuple(self.failed), tuple(self.skipped))


def subject_of(due: DueSummary) -> str:
    """Return the subject of a summary, for reports."""
    return f"{due.line.thread}/{due.line.group} {due.period.key}"


def due_summaries(snapshot: Snapshot, agent: str) -> Iterator[DueSummary]:
    """Yield the summaries that are due, finest first, and those above them, which follow."""
    now_us = to_microseconds(snapshot.now)
    summaries = Summaries(snapshot, agent)
    by_period: dict[tuple[Line, Period], DueSummary] = {}
    lines = summaries.lines
    for level in range(len(LEVELS)):
        for line in lines:
            for due in summaries.due(line, level, now_us):
                by_period[line, due.period] = due
        for line, period in [key for key in by_period if key[1].level == level]:
            above = period.above
            if above is not None and above.end_us <= now_us:
                old = summaries.made(line, above.level).get(above, ())
                by_period.setdefault((line, above), DueSummary(line, above, (), old))
    yield from sorted(by_period.values(), key=lambda due: due.period.level)


def summarize_due(
    snapshot_of: Callable[[], Snapshot],
    session: WriteSession,
    agent: str,
    writer: Writer,
    reports: Reports,
) -> None:
    """Write the summaries that are due, finest first: those of a level need those below it."""
    for level in range(len(LEVELS)):
        snapshot = snapshot_of()
        now_us = to_microseconds(snapshot.now)
        summaries = Summaries(snapshot, agent)
        for line in summaries.lines:
            for due in summaries.due(line, level, now_us):
                if reports.is_full:
                    reports.skipped.append(TaskReport("summarize", subject_of(due), None, "limit"))
                else:
                    perform(snapshot, session, writer, due, reports)


def perform(
    snapshot: Snapshot,
    session: WriteSession,
    writer: Writer,
    due: DueSummary,
    reports: Reports,
    *,
    is_compact: bool = False,
) -> None:
    """Write one summary, or delete it if it has no sources; report the outcome."""
    try:
        receipt = _performed(snapshot, session, writer, due, is_compact=is_compact)
    except Conflict:
        reports.skipped.append(
            TaskReport("summarize", subject_of(due), None, "another process was first")
        )
    except CerataError as error:
        reports.failed.append(TaskReport("summarize", subject_of(due), None, reason_of(error)))
    else:
        frame = receipt.id if due.sources else None
        reason = None if due.sources else "deleted: nothing is left to summarize"
        reports.done.append(TaskReport("summarize", subject_of(due), frame, reason))


def _performed(
    snapshot: Snapshot, session: WriteSession, writer: Writer, due: DueSummary, *, is_compact: bool
) -> Receipt:
    line = due.line
    if not due.sources:
        return session.write([Draft(DeleteFrame(frame=old), line.scope) for old in due.old])
    sources = [source_of(snapshot, frame) for frame in due.sources]
    task = summary_task(due, sources)
    fields = frame_fields(
        kind=SUMMARY_KIND,
        uri=due.uri,
        title=_title(snapshot, due, sources),
        track=line.agent,
        metadata={COMPACT: True} if is_compact else None,
    )
    further = [Draft(SupersedeFrame(old=old, new=-1), line.scope) for old in due.old]
    return writer.record(task, writer.ask(task), fields, line.scope, further)


def summary_task(due: DueSummary, sources: list[Source]) -> Task:
    """Return the task of a summary."""
    level = LEVELS[due.period.level]
    instructions = _SUMMARIZE.format(level=level, period=due.period.key, thread=due.line.thread)
    return task_of("summarize", instructions, sources)


def _title(snapshot: Snapshot, due: DueSummary, sources: list[Source]) -> str | None:
    """Return the 3 best topics of a summary's sources, or None."""
    if due.period.level == 0:
        columns = snapshot.log_only.messages.columns
        rows = np.searchsorted(columns.seq.view(), np.array(due.sources))
        topics = Counter(chain.from_iterable(columns.topics_of(rows)))
    else:
        titles = (snapshot.frame_at(source.id).title or "" for source in sources)
        topics = Counter(word for title in titles for word in title.split(", ") if word)
    best = [topic for topic, _ in topics.most_common(TITLE_TOPICS)]
    return ", ".join(best) or None
