"""Re-runs: an agent function executed again, with its calls answered from the recording.

Owns the execution and its report. Leaves out matching calls (`replayed`) and the choice of the run
(`agent`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from cerata.engine.errors import InvalidInput, RerunFailed
from cerata.engine.events import JsonValue
from cerata.engine.plain_value import PlainValue

from .activities.events import StartActivity
from .activities.values import Activity, Call, body_of
from .code import AgentCode, SameCode, compared, recorded_function
from .journal import LiveJournal
from .recording import Recording
from .replayed import Divergence, ReplayedJournal, Stopped
from .run import Run
from .text.summaries import error_text

Outcome = Literal["same", "diverged", "incomplete"]


@dataclass(frozen=True, slots=True)
class Rerun(PlainValue):
    """The report of a re-run; `str` prints it, with both sides of the first difference.

    - ``outcome`` is "same", "diverged", or "incomplete": the recording ends before the function,
      because the run was killed or is still open.
    - ``answered`` of ``recorded`` calls were answered from the recording, without inputs.
    - ``code`` is "same" or "changed", by the source of the function, or "unknown".
    - ``live`` is the file in which the execution went on.
    """

    _plain: ClassVar[tuple[str, ...]] = (
        *("run", "outcome", "answered", "recorded", "code", "divergence", "live"),
    )

    run: Activity
    outcome: Outcome
    answered: int
    recorded: int
    code: SameCode
    divergence: Divergence | None
    live: str | None = None
    result: object = None
    """The value that the function returned; None if it was stopped."""

    def __str__(self) -> str:
        count = f"{self.answered:,} of {self.recorded:,} calls answered"
        lines = [f"run {self.run.name} of {self.run.agent}: {self.outcome}, {count}"]
        if self.code == "changed":
            lines.append("the function has another source than the recorded")
        if self.divergence is not None:
            lines.append(str(self.divergence))
        if self.live is not None:
            lines.append(f"went on in {self.live}")
        return "\n".join(lines)


class Fork(Protocol):
    """The file in which an execution goes on after the first difference."""

    path: str

    def journal(self, seq: int) -> LiveJournal:
        """Copy the memory up to an event, and return the journal of the run there."""
        ...

    def end(self, error: Exception | None) -> None:
        """End the run there, if it went on."""
        ...


class Repetition(NamedTuple):
    """A run to repeat, and the handle that its function gets."""

    activity: Activity
    recording: Recording
    make_run: Callable[[ReplayedJournal], Run]
    fork: Fork | None


class _Execution(NamedTuple):
    """The end of an execution: its value or the exception."""

    value: object = None
    error: Exception | None = None


def chosen_function(
    function: Callable[..., Any] | AgentCode | None, activity: Activity
) -> Callable[..., Any]:
    """Return the function to execute: the passed, else that of the recording.

    Raises:
        NotFound: the recorded function is not loaded.
        InvalidInput: it belongs to another agent, or is not callable.
    """
    chosen = recorded_function(activity.function, activity.name) if function is None else function
    if isinstance(chosen, AgentCode):
        if chosen.agent != activity.agent:
            raise InvalidInput(
                f"The run {activity.name!r} was recorded by the agent {activity.agent!r}, and the "
                f"function belongs to {chosen.agent!r}",
                remedy="Pass the function of the recorded agent.",
            )
        return chosen.function
    if not callable(chosen):
        raise InvalidInput(f"{chosen!r:.60} is no function", remedy="Pass f(run, **inputs).")
    return chosen


def repeat(repetition: Repetition, function: Callable[..., Any]) -> Rerun:
    """Execute a function against a recording, and report the first difference.

    Raises:
        InvalidInput: the function takes other inputs than the recorded.
        RerunFailed: a call has no recorded answer, or the recording lacks a call.
    """
    recording = repetition.recording
    doubtful = recording.check_whole()
    inputs = recording.input_values()
    fork = repetition.fork
    journal = ReplayedJournal(recording, goes_live=None if fork is None else fork.journal)
    run = repetition.make_run(journal)
    _check_inputs(function, run, inputs)
    execution = _executed(function, run, inputs)
    if fork is not None and execution is not None:
        fork.end(execution.error)
    if journal.failure is not None:
        raise journal.failure
    divergence = journal.divergence or journal.missing()
    if divergence is None and execution is not None:
        divergence = _end_difference(repetition, journal, execution)
    if divergence is not None and doubtful and fork is None:
        raise RerunFailed(
            f"The re-run of {repetition.activity.name!r} differs from its recording, which may "
            "lack an erased call",
            where=f"event {doubtful[0]:,}",
            remedy="Compare both sides: if the recorded side lacks a call, it was erased.",
            divergence=divergence,
        )
    outcome: Outcome = "same" if divergence is None else "diverged"
    is_open = repetition.activity.status in ("open", "left")
    if is_open and (divergence is None or divergence.difference == "extra"):
        outcome = "incomplete"
    start = body_of(recording.snapshot, recording.run.seq)
    code = start.code if isinstance(start, StartActivity) else None
    return Rerun(
        run=repetition.activity,
        outcome=outcome,
        answered=journal.answered,
        recorded=len(recording.calls),
        code=compared(code, function),
        divergence=divergence,
        live=fork.path if fork is not None and journal.is_live else None,
        result=None if execution is None else execution.value,
    )


def _check_inputs(function: Callable[..., Any], run: Run, inputs: dict[str, JsonValue]) -> None:
    try:
        inspect.signature(function).bind(run, **inputs)
    except TypeError as error:
        raise InvalidInput(
            f"The function cannot take the recorded inputs: {error}",
            where=", ".join(inputs) or "no inputs",
            remedy="Pass the function of the recording, f(run, **inputs).",
        ) from error
    except ValueError:
        # A built-in without a signature.
        return


def _executed(
    function: Callable[..., Any], run: Run, inputs: dict[str, JsonValue]
) -> _Execution | None:
    """Return the end of the execution; None if it was stopped."""
    try:
        value = function(run, **inputs)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
    except Stopped:
        return None
    except Exception as error:  # noqa: BLE001 - the end of the function, to be compared
        return _Execution(error=error)
    return _Execution(value)


def _end_difference(
    repetition: Repetition, journal: ReplayedJournal, execution: _Execution
) -> Divergence | None:
    """Return the difference of the two ends, if the recorded run has ended."""
    activity = repetition.activity
    now = None if execution.error is None else error_text(execution.error)
    if activity.status not in ("done", "failed") or activity.error == now:
        return None
    sides = [
        Call("run", activity.name, 1, "", error=error, value=None if error else "returned")
        for error in (activity.error, now)
    ]
    return Divergence(journal.answered + 1, "end", sides[0], sides[1])
