"""Reflecting: the tasks of a model that are due, and their performance.

Owns the order of the tasks, their instructions and the report. Which summaries are due follows from
the log (`summaries`), so a run after a kill continues, and repeats no recorded answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
from msgspec.structs import replace

from cerata.engine.errors import (
    CerataError,
    Conflict,
    Corrupt,
    InvalidInput,
    ModelFailed,
    value_text,
)
from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, Draft, SupersedeFrame
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, leave_out, readable, stopped
from cerata.memory.batch.session import WriteSession
from cerata.memory.frames.drafts import frame_fields
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.filters import Filter

from ..activities.values import activities_at
from ..growth.gates import GatedProposal
from ..growth.identity import identity_of
from ..growth.proposal_values import ALIGN, ASSESSMENT, IDENTITY
from ..growth.proposals import (
    OPEN_MAX,
    TEXT_LENGTH_MAX,
    aligned_metadata,
    open_proposals,
    proposal_draft,
)
from ..turns.line import Line, line_of
from ..turns.measures import DIMENSIONS
from ..turns.reads import messages_at
from .candidates import (
    CANDIDATE,
    PASSES,
    REFLECTION_KIND,
    TASK,
    Candidate,
    candidates_of,
)
from .exchanges import Talk, frames_of_exchange
from .models import Extractive, Model, Source, Task
from .periods import LEVELS, Period
from .standing import Assessment
from .summaries import COMPACT, SUMMARY_KIND, DueSummary, Summaries
from .tasks import TaskReport, Writer, reason_of, source_of, task_of
from .threads import word_in

TITLE_TOPICS: Final = 3
"""Topics in the title of a summary."""

_SUMMARIZE: Final = (
    "Summarize the messages of the {level} {period} in the thread {thread!r}: decisions, promises, "
    "feelings and open questions. Write in the first person of the agent, in plain sentences."
)


_PASS: Final = {
    "clarify": "Think about this open question: {inquiry} State it precisely, as your own.",
    "connect": "Connect this open question with other memories: {inquiry} Use the first person.",
    "synthesise": (
        "Conclude your thoughts about this open question: {inquiry} Write in the first person. If "
        "the conclusion should change who you are, add a last line: PROPOSE: and the change in one "
        "sentence."
    ),
}
_ALIGN: Final = (
    "The first source is SOUL, the second a proposed change. Does a line of SOUL support it? The "
    "first line of your answer is YES and the number of that line, counting the lines that are not "
    "empty from 1, or NO. Then give reasons."
)
_ASSESS: Final = (
    "Assess from these messages how the user stands. Answer with four lines, courage-self, "
    "courage-ground, word and brand, each with a colon and a number from 0 to 10. Then give "
    "reasons."
)
_EVIDENCE: Final = 20
"""Newest messages with a pattern that an assessment reads."""

SOUL: Final = "SOUL"
ASSESS: Final = "assess"
_PROPOSE: Final = "PROPOSE:"
_SCORE_MAX: Final = 10
UNREADABLE: Final = -1
"""In place of a line of SOUL, if an answer cannot be read."""


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


class Reflecting:
    """One call of `Agent.reflect`."""

    def __init__(
        self,
        agent: str,
        model: Model,
        snapshot_of: Callable[[], Snapshot],
        writer_of: Callable[[], tuple[WriteSession, Writer]],
        hours: Sequence[float],
        limit: int | None,
    ) -> None:
        """Prepare the tasks.

        Args:
            agent: The agent's name.
            model: The model.
            snapshot_of: Returns the newest state.
            writer_of: Returns the session and the writer of the run, which starts with the first
                task.
            hours: The hours after a candidate at which its passes are due.
            limit: The most tasks that are tried; None for all.
        """
        self._agent = agent
        self._model = model
        self._snapshot_of = snapshot_of
        self.writer_of = writer_of
        self._hours = hours
        self.reports = Reports(limit)

    def run(self, *, dry_run: bool) -> Reflection:
        """Perform the due tasks, or list them."""
        if dry_run:
            for kind, subject in self.due():
                self.reports.skipped.append(TaskReport(kind, subject, None, "due"))
            return self.reports.reflection()
        self._summarize()
        self._pass_over()
        self._align()
        self._assess()
        return self.reports.reflection()

    def due(self) -> Iterator[tuple[str, str]]:
        """Yield the kind and the subject of each task that is due."""
        snapshot = self._snapshot_of()
        for due in due_summaries(snapshot, self._agent):
            yield "summarize", subject_of(due)
        for candidate in self._waiting(snapshot):
            yield "reflect", f"{PASSES[len(candidate.done)]} #{candidate.id}"
        for proposal in self._unaligned(snapshot):
            yield "align", f"#{proposal.id}"
        if self._new_evidence(snapshot) is not None:
            yield "assess", "standing"

    def _attempt(self, kind: str, subject: str, perform: Callable[[], int | None]) -> None:
        """Perform one task; report its frame, or the reason of its failure."""
        reports = self.reports
        if reports.is_full:
            reports.skipped.append(TaskReport(kind, subject, None, "limit"))
            return
        try:
            frame = perform()
        except Conflict as error:
            reports.skipped.append(TaskReport(kind, subject, None, reason_of(error)))
        except CerataError as error:
            reports.failed.append(TaskReport(kind, subject, None, reason_of(error)))
        else:
            reports.done.append(TaskReport(kind, subject, frame))

    # --- summaries -------------------------------------------------------------------------------

    def _summarize(self) -> None:
        """Write the summaries that are due, finest first: a level needs those below it."""
        for level in range(len(LEVELS)):
            snapshot = self._snapshot_of()
            now_us = to_microseconds(snapshot.now)
            summaries = Summaries(snapshot, self._agent)
            for line in summaries.lines:
                for due in summaries.due(line, level, now_us):
                    self._attempt(
                        "summarize", subject_of(due), partial(self._write_summary, snapshot, due)
                    )

    def _write_summary(self, snapshot: Snapshot, due: DueSummary) -> int | None:
        return write_summary(snapshot, *self.writer_of(), due)

    # --- passes ----------------------------------------------------------------------------------

    def _waiting(self, snapshot: Snapshot) -> list[Candidate]:
        """Return the candidates whose next pass is due; none if a pass cannot be read."""
        now_us = to_microseconds(snapshot.now)
        lines = Summaries(snapshot, self._agent).lines
        waiting: list[Candidate] = []
        try:
            candidates = candidates_of(snapshot, self._agent, lines, every_pass=True)
        except Corrupt as error:
            leave_out("The passes over candidates", error)
            return waiting
        for candidate in candidates:
            due_us = candidate.due_us(self._hours)
            if due_us is not None and due_us <= now_us:
                waiting.append(candidate)
        return waiting

    def _pass_over(self) -> None:
        for number in range(len(PASSES)):
            snapshot = self._snapshot_of()
            for candidate in self._waiting(snapshot):
                if len(candidate.done) == number:
                    self._attempt(
                        "reflect",
                        f"{PASSES[number]} #{candidate.id}",
                        partial(self._reflect_on, snapshot, candidate),
                    )

    def _reflect_on(self, snapshot: Snapshot, candidate: Candidate) -> int | None:
        """Write the next pass over a candidate; the third may make a proposal."""
        name = PASSES[len(candidate.done)]
        is_last = name == PASSES[-1]
        if is_last and len(open_proposals(snapshot, self._agent)) >= OPEN_MAX:
            raise Conflict(
                f"The agent has {OPEN_MAX} open proposals, so the pass waits",
                where=f"candidate #{candidate.id}",
                remedy="Approve or reject one with cerata.agents.judge().",
            )
        _, writer = self.writer_of()
        sources = [
            *(
                source_of(snapshot, frame)
                for frame in frames_of_exchange(snapshot, self._agent, candidate.id)
            ),
            *(source_of(snapshot, frame) for frame in candidate.done),
        ]
        instructions = _PASS[name].format(inquiry=candidate.inquiry)
        task = task_of("reflect", instructions, sources)
        answer = writer.ask(task)
        body, proposed = proposed_in(answer) if is_last else (answer, None)
        scope = snapshot.layers.scope_of(candidate.id)
        assert scope is not None
        line = line_of(self._agent, scope)
        fields = frame_fields(
            kind=REFLECTION_KIND,
            track=self._agent,
            metadata={TASK: name, CANDIDATE: candidate.id},
        )
        further: list[Draft] = []
        if proposed is not None:
            draft = proposal_draft(proposed, line.base, self._agent, candidate=candidate.id)
            # A declared reference to the reflection, which becomes a seq when read.
            further.append(replace(draft, causation=-1))
        return writer.record(task, body, fields, line.scope, further).id

    # --- assessments -----------------------------------------------------------------------------

    def _unaligned(self, snapshot: Snapshot) -> list[GatedProposal]:
        """Return the open proposals of an identity that no assessment compared with this SOUL."""
        soul = identity_of(snapshot, self._agent).file(SOUL)
        if soul is None:
            return []
        assessed = _alignments(snapshot, self._agent)
        return [
            each
            for each in open_proposals(snapshot, self._agent)
            if each.target == IDENTITY
            and not any(soul.id in _used(snapshot, frame) for frame in assessed.get(each.id, ()))
        ]

    def _align(self) -> None:
        snapshot = self._snapshot_of()
        opened = [each for each in open_proposals(snapshot, self._agent) if each.target == IDENTITY]
        soul = identity_of(snapshot, self._agent).file(SOUL)
        if soul is None:
            self.reports.skipped += [
                TaskReport("align", f"#{each.id}", None, "there is no identity:SOUL")
                for each in opened
            ]
            return
        for proposal in self._unaligned(snapshot):
            self._attempt(
                "align", f"#{proposal.id}", partial(self._align_one, snapshot, proposal, soul.id)
            )

    def _align_one(self, snapshot: Snapshot, proposal: GatedProposal, soul: int) -> int | None:
        _, writer = self.writer_of()
        sources = [source_of(snapshot, soul), source_of(snapshot, proposal.id)]
        task = task_of("align", _ALIGN, sources)
        if writer.is_known(task):
            raise Conflict(
                "The model's answer could not be read, and is not asked again",
                where=f"proposal #{proposal.id}",
                remedy="Change SOUL or the proposal.",
            )
        answer = writer.ask(task)
        line = aligned_line(answer, sources[0].text)
        if line == UNREADABLE:
            writer.record_failure(task, "the answer is neither YES N nor NO")
            raise ModelFailed(
                f"The answer begins {answer!r:.40}, expected YES N or NO",
                where=f"proposal #{proposal.id}",
                remedy="The call is recorded, and is not made again until its inputs change.",
                model=self._model.name,
            )
        scope = snapshot.layers.scope_of(proposal.id)
        assert scope is not None
        fields = frame_fields(
            kind=ASSESSMENT, track=self._agent, metadata=aligned_metadata(proposal.id, line)
        )
        # An answer about an earlier SOUL must not meet the gate any longer.
        old = _alignments(snapshot, self._agent).get(proposal.id, ())
        further = [Draft(SupersedeFrame(old=frame, new=-1), scope) for frame in old]
        return writer.record(task, answer, fields, scope, further, old).id

    def _new_evidence(self, snapshot: Snapshot) -> int | None:
        """Return the newest message with a pattern since the last assessment; None if not due."""
        if isinstance(self._model, Extractive):
            return None
        talk = Talk(snapshot, self._agent)
        rows = talk.rows[talk.messages.columns.patterns.view()[talk.rows] != 0]
        if not len(rows):
            return None
        newest = talk.messages.columns.seq.item(int(rows[-1]))
        last = newest_assessment(snapshot, self._agent)
        if last is not None:
            day_us = 24 * 3_600_000_000
            made_us = snapshot.layers.created(last.event)
            is_same_day = made_us // day_us == to_microseconds(snapshot.now) // day_us
            if is_same_day or last.event > newest:
                return None
        return newest

    def _assess(self) -> None:
        snapshot = self._snapshot_of()
        if self._new_evidence(snapshot) is not None:
            self._attempt("assess", "standing", partial(self._assess_standing, snapshot))

    def _assess_standing(self, snapshot: Snapshot) -> int | None:
        _, writer = self.writer_of()
        talk = Talk(snapshot, self._agent)
        rows = talk.rows[talk.messages.columns.patterns.view()[talk.rows] != 0][-_EVIDENCE:]
        seqs = talk.messages.columns.seq
        sources = [source_of(snapshot, seqs.item(row)) for row in rows.tolist()]
        task = task_of("assess", _ASSESS, sources)
        if writer.is_known(task):
            raise Conflict("The model's answer could not be read", remedy="Wait for new evidence.")
        answer = writer.ask(task)
        scores = assessed_scores(answer)
        if scores is None:
            writer.record_failure(task, "the answer has no four lines DIMENSION: 0 to 10")
            raise ModelFailed(
                "The answer has no four lines DIMENSION: 0 to 10",
                where="standing",
                remedy="The call is recorded, and is not made again until its inputs change.",
                model=self._model.name,
            )
        session, _ = self.writer_of()
        fields = frame_fields(
            kind=ASSESSMENT, track=self._agent, metadata={TASK: ASSESS, "scores": {**scores}}
        )
        return writer.record(task, answer, fields, session.scope or DEFAULT_SCOPE).id


def write_summary(
    snapshot: Snapshot,
    session: WriteSession,
    writer: Writer,
    due: DueSummary,
    *,
    is_compact: bool = False,
) -> int | None:
    """Write one summary and return its frame, or delete it if it has no sources."""
    line = due.line
    if not due.sources:
        session.write([Draft(DeleteFrame(frame=old), line.scope) for old in due.old])
        return None
    sources = [_whole_source(snapshot, frame) for frame in due.sources]
    task = summary_task(due, sources)
    fields = frame_fields(
        kind=SUMMARY_KIND,
        uri=due.uri,
        title=_title(snapshot, due, sources),
        track=line.agent,
        metadata={COMPACT: True} if is_compact else None,
    )
    further = [Draft(SupersedeFrame(old=old, new=-1), line.scope) for old in due.old]
    answer = writer.recorded(task) or writer.ask(task)
    return writer.record(task, answer, fields, line.scope, further, due.old).id


def _whole_source(snapshot: Snapshot, frame: int) -> Source:
    """Return a source of a summary, which is of every message of its period."""
    try:
        return source_of(snapshot, frame)
    except Corrupt as error:
        remedy = "Restore a backup: a summary is of every message of its period."
        raise stopped(error, "The summary", frame_place(frame), remedy) from error


def summary_task(due: DueSummary, sources: list[Source]) -> Task:
    """Return the task of a summary."""
    level = LEVELS[due.period.level]
    instructions = _SUMMARIZE.format(level=level, period=due.period.key, thread=due.line.thread)
    return task_of("summarize", instructions, sources)


def _title(snapshot: Snapshot, due: DueSummary, sources: list[Source]) -> str | None:
    """Return the 3 best topics of a summary's sources, or None."""
    if due.period.level == 0:
        columns = messages_at(snapshot.log_only).columns
        rows = np.searchsorted(columns.seq.view(), np.array(due.sources))
        stems = Counter(chain.from_iterable(columns.topics_of(rows)))
        text = "\n".join(source.text for source in sources)
        best = [word_in(text, stem) or stem for stem, _ in stems.most_common(TITLE_TOPICS)]
    else:
        titles = (snapshot.frame_at(source.id).title or "" for source in sources)
        words = Counter(word for title in titles for word in title.split(", ") if word)
        best = [word for word, _ in words.most_common(TITLE_TOPICS)]
    return ", ".join(best) or None


def proposed_in(answer: str) -> tuple[str, str | None]:
    """Return an answer without its last line if that proposes a change, and the proposal."""
    body, _, last = answer.rstrip().rpartition("\n")
    text = last.strip().removeprefix(_PROPOSE).strip()
    if not last.strip().startswith(_PROPOSE) or not 0 < len(text) <= TEXT_LENGTH_MAX:
        return answer, None
    return body.strip() or answer, text


def aligned_line(answer: str, soul: str) -> int | None:
    """Return the line of SOUL that an answer names, None for NO, or `UNREADABLE`."""
    first, *rest = answer.splitlines()[0].split()
    if first.strip(".,:").upper() == "NO":
        return None
    number = rest[0].strip(".,:") if rest else ""
    count = sum(1 for line in soul.splitlines() if line.strip())
    if first.upper() == "YES" and number.isascii() and number.isdecimal():
        return int(number) if 1 <= int(number) <= count else UNREADABLE
    return UNREADABLE


def assessed_scores(answer: str) -> dict[str, float] | None:
    """Return the scores of an answer's first four lines, or None if it cannot be read."""
    scores: dict[str, float] = {}
    for line in answer.splitlines()[: len(DIMENSIONS)]:
        name, _, value = line.partition(":")
        try:
            score = float(value)
        except ValueError:
            return None
        if name.strip() not in DIMENSIONS or not 0 <= score <= _SCORE_MAX:
            return None
        scores[name.strip()] = score
    return scores if len(scores) == len(DIMENSIONS) else None


def _alignments(snapshot: Snapshot, agent: str) -> dict[int, list[int]]:
    """Return the current assessments of each proposal beside SOUL."""
    by_proposal: dict[int, list[int]] = {}
    frames = assessment_frames(snapshot, agent)
    for assessment in readable(frames, snapshot.frame_at, frame_place):
        metadata = assessment.metadata
        proposal = metadata.get("proposal")
        if metadata.get(TASK) == ALIGN and isinstance(proposal, int):
            by_proposal.setdefault(proposal, []).append(assessment.id)
    return by_proposal


def _used(snapshot: Snapshot, frame: int) -> list[int]:
    """Return the frames that the call used whose answer is a frame."""
    call = activities_at(snapshot).call_that_made(frame)
    return [] if call is None else activities_at(snapshot).used_by(call)


def assessment_frames(snapshot: Snapshot, agent: str) -> list[int]:
    """Return the current assessments of an agent, in order."""
    [mask] = snapshot.log_only.layers.admitted(Filter(kind=ASSESSMENT, track=agent))
    frames: list[int] = snapshot.base.ids(np.flatnonzero(mask)).tolist()
    return frames


def newest_assessment(snapshot: Snapshot, agent: str) -> Assessment | None:
    """Return the newest scores that a model gave, or None."""
    frames = reversed(assessment_frames(snapshot, agent))
    for assessment in readable(frames, snapshot.frame_at, frame_place):
        metadata = assessment.metadata
        scores = metadata.get("scores")
        if metadata.get(TASK) == ASSESS and isinstance(scores, dict):
            read = {
                name: float(score)
                for name, score in scores.items()
                if isinstance(score, int | float) and not isinstance(score, bool)
            }
            return Assessment(assessment.id, read)
    return None


def checked_model(model: object) -> Model:
    """Return a model, by default `Extractive`. Raises `InvalidInput`."""
    if model is None:
        return Extractive()
    if not isinstance(model, Model) or not all(
        isinstance(each, str) and each for each in (model.name, model.version)
    ):
        raise InvalidInput(
            f"model is {type(model).__name__}, which has no name, version and write(task)",
            remedy="Pass an object with these, such as cerata.Extractive().",
        )
    return model


def checked_hours(hours: Sequence[float]) -> tuple[float, ...]:
    """Return the hours of the passes. Raises `InvalidInput`."""
    checked = tuple(hours)
    are_numbers = all(isinstance(each, int | float) and 0 <= each < 1e6 for each in checked)
    if len(checked) != len(PASSES) or not are_numbers or list(checked) != sorted(checked):
        raise InvalidInput(
            f"pass_hours is {value_text(hours):.60}, expected three ascending numbers from 0",
            remedy="Pass pass_hours=(0, 4, 20).",
        )
    return checked
