"""Recordings: the calls of a run, in order, with their answers.

Owns the reading of a recording from a snapshot. Leaves out matching new calls (`replayed`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cerata.engine import errors
from cerata.engine.errors import CerataError, Corrupt, RerunFailed
from cerata.engine.events import JsonValue, PutFrame
from cerata.engine.unreadable import event_place, stopped
from cerata.memory.snapshot.snapshot import Snapshot

from .activities.events import RecordCall
from .activities.reader import ActivityRow, CallRow
from .activities.reads import activities_at
from .activities.values import Call, Result, body_of, call_of, is_input
from .lost_calls import lost_calls
from .references import reference
from .run_results import RunResults
from .text.json_text import decoded
from .text.summaries import summary_of

INPUT_PREFIX = "input_"
"""The start of the name of an input's call. On disk: never change it."""


class RecordedCall(NamedTuple):
    """A call of a recording; ``place`` counts from 0 without inputs."""

    place: int
    row: CallRow
    body: RecordCall
    after: int
    """The number of calls of the recording that had finished when this call started."""


@dataclass(frozen=True)
class Recording:
    """The calls of a run that a new execution repeats, and the earlier calls that memos may use.

    A further start of the run that does not replay begins the execution again: its calls alone are
    repeated.
    """

    snapshot: Snapshot
    run: ActivityRow
    calls: tuple[RecordedCall, ...]
    earlier: tuple[RecordedCall, ...]
    inputs: Mapping[str, int]
    """The frame of each input, by its name."""
    prefix: str
    """The start of references."""
    begin: int
    """The last event before the first of ``calls``."""

    @classmethod
    def of(cls, snapshot: Snapshot, run: ActivityRow, prefix: str) -> Recording:
        """Read the recording of a run. Cost: a read of the event of each call.

        Args:
            snapshot: The snapshot.
            run: The run.
            prefix: The start of references, such as "$ref".
        """
        activities = activities_at(snapshot)
        starts = activities.further_starts(run.row)
        base = max((start.seq for start in starts if not start.replays), default=run.seq)
        begin = base
        earlier: list[RecordedCall] = []
        calls: list[RecordedCall] = []
        inputs: dict[str, int] = {}
        for row in activities.calls(run.row):
            try:
                body = body_of(snapshot, row.seq)
            except Corrupt as error:
                remedy = "Restore a backup, or start another run: a run repeats every call."
                what = f"The recording of the run {run.name!r}"
                raise stopped(error, what, event_place(row.seq), remedy) from error
            if not isinstance(body, RecordCall):
                raise RerunFailed(
                    f"The call {row.name!r} of the run {run.name!r} was erased",
                    where=f"event {row.seq:,}",
                    remedy="A run with erased calls cannot run again.",
                )
            if is_input(row):
                inputs[row.name.removeprefix(INPUT_PREFIX)] = row.result
                begin = max(begin, row.seq)
                continue
            group = calls if row.seq > base else earlier
            after = max(0, len(group) - body.overlaps)
            group.append(RecordedCall(len(group), row, body, after))
        return cls(snapshot, run, tuple(calls), tuple(earlier), inputs, prefix, begin)

    def check_whole(self) -> tuple[int, ...]:
        """Refuse a recording that lacks a call; return the erased calls that may be of any run.

        Cost: the headers of the events since the run began.

        Raises:
            RerunFailed: a call was erased, is of a later version, or of an unknown kind.
        """
        run = self.run
        log, _, _ = self.snapshot.source
        known = {call.seq for call in activities_at(self.snapshot).calls(run.row)}
        last = self.snapshot.basis if run.end is None else run.end
        lost, doubtful = lost_calls(log, run, last, known)
        if lost:
            raise lost[0].error(run.name)
        return tuple(doubtful)

    def input_values(self) -> dict[str, JsonValue]:
        """Return a fresh copy of each input, by name."""
        return {
            name: decoded(result_data(self.snapshot, frame)) for name, frame in self.inputs.items()
        }

    def last_seq(self, count: int) -> int:
        """Return the last event of the first ``count`` calls, or the last before all calls."""
        return self.calls[count - 1].row.seq if count else self.begin

    def result(self, call: RecordedCall, *, memo: bool = False) -> Result:
        """Return the recorded result of a call that did not raise.

        Raises:
            RerunFailed: no result was recorded.
        """
        frame = call.row.result
        if not frame:
            raise RerunFailed(
                f"The call {call.row.name}.{call.row.ordinal} has no recorded answer",
                where=f"event {call.row.seq:,}",
                remedy="Its result was left out with secret=; run live from there, or record the "
                "result.",
            )
        ref = reference(self.prefix, call.row.name, call.row.number)
        return result_of(self.snapshot, frame, ref, memo=memo)

    def results(self, count: int) -> RunResults:
        """Return the results of the first ``count`` calls, and of the calls and inputs before."""
        return RunResults(self.snapshot, self.run, self.prefix, self.last_seq(count))

    def call(self, call: RecordedCall) -> Call:
        return call_of(self.snapshot, call.row)


def result_data(snapshot: Snapshot, frame: int) -> bytes:
    """Return the JSON of a result by its frame, current or not.

    Raises:
        RerunFailed: the frame was erased, or is no result.
    """
    event = snapshot.event_of(frame)
    body = None if event is None else event.body
    if event is None or not isinstance(body, PutFrame) or body.blob is None:
        raise RerunFailed(
            f"The result in frame {frame:,} was erased, or is outside the scope",
            remedy="A call without its result cannot be repeated.",
        )
    return event.attached(body.blob)


def result_of(
    snapshot: Snapshot, frame: int, ref: str | None = None, *, memo: bool = False
) -> Result:
    """Return the result that a frame holds. Raises `RerunFailed` as `result_data`."""
    data = result_data(snapshot, frame)
    body = body_of(snapshot, frame)
    summary = body.search_text if isinstance(body, PutFrame) else None
    summary = summary or summary_of(decoded(data), len(data))
    return Result(ref, summary, frame, len(data), memo, data)


def recorded_error(text: str, function: Callable[..., object] | None) -> Exception:
    """Return an exception as the recorded call raised it.

    Its class is a name in the module of the called function, which comes first as in the code, a
    built-in, or an error of Cerata; an exception of another class is a `RerunFailed`.
    """
    name, _, message = text.partition(": ")
    names = getattr(function, "__globals__", {}) if function is not None else {}
    for home in (names, vars(builtins), vars(errors)):
        kind = home.get(name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return _made(kind, message)
    return RerunFailed(
        f"The recorded call raised {text}",
        remedy="Catch RerunFailed too, or define the exception beside the called function.",
    )


def _made(kind: type[Exception], message: str) -> Exception:
    """Return an exception with a message, also if its class takes other arguments."""
    if issubclass(kind, UnicodeError):
        # Its text comes from five arguments that the recording lacks.
        return ValueError(message)
    if issubclass(kind, CerataError):
        return kind(message)
    if issubclass(kind, KeyError) and message[:1] == message[-1:] == "'":
        # The text of a KeyError is the repr of its argument.
        message = message[1:-1]
    error = kind.__new__(kind, message)
    Exception.__init__(error, message)
    return error
