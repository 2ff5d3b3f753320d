"""Recordings: the calls of a run, in order, with their answers.

Owns the reading of a recording from a snapshot. Leaves out matching new calls (`replayed`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from cerata.engine import errors
from cerata.engine.arguments import is_integer
from cerata.engine.errors import CerataError, Corrupt, RerunFailed
from cerata.engine.events import Erased, Event, JsonValue, PutFrame, UnknownBody
from cerata.engine.log import Log
from cerata.engine.unreadable import event_place, stopped
from cerata.memory.snapshot.snapshot import Snapshot

from .activities.events import RecordCall, StartActivity
from .activities.reader import ActivityRow, CallRow
from .activities.values import RESULT_KIND, Call, Result, activities_at, body_of, call_of, is_input
from .references import reference
from .run_results import RunResults
from .text.summaries import decoded, summary_of

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


# --- Lost calls: events of a run's recording that this program cannot read ------------------------
#
# Without them a recording looks shorter than it is, and a re-run would blame the code.


_CALL: Final = RecordCall.wire_name

_REASONS: Final = {
    "erased": ("was erased", "A run with erased calls cannot run again."),
    "later": (
        "was recorded by a later version of Cerata, which this program cannot read",
        "Run it again with that version.",
    ),
    "unknown": (
        "is of a kind that this program does not know",
        "Run it again with the version of Cerata that recorded it.",
    ),
}


class LostCall(NamedTuple):
    """A call that the projection skipped, and why: "erased", "later" or "unknown"."""

    seq: int
    reason: str

    def error(self, run: str) -> RerunFailed:
        """Return the error of a run that has this call."""
        text, remedy = _REASONS[self.reason]
        return RerunFailed(
            f"A call of the run {run!r} {text}", where=f"event {self.seq:,}", remedy=remedy
        )


def lost_calls(
    log: Log, run: ActivityRow, last: int, calls: Collection[int]
) -> tuple[list[LostCall], list[int]]:
    """Return the lost calls of a run, and the erased calls that may be of any run.

    Cost: the headers of the events since the run began.

    Args:
        log: The log.
        run: The run.
        last: The last event of the run.
        calls: The seqs of its known calls.
    """
    lost: list[LostCall] = []
    doubtful: list[int] = []
    for event in log.read(run.seq + 1, last):
        if event.type != _CALL or event.seq in calls:
            continue
        body = event.body
        if isinstance(body, Erased):
            is_of_run = _is_of_run(log, event, run)
            if is_of_run:
                lost.append(LostCall(event.seq, "erased"))
            elif is_of_run is None:
                doubtful.append(event.seq)
        elif isinstance(body, UnknownBody):
            if _activity_of(event, body) == run.seq:
                lost.append(LostCall(event.seq, "later"))
        elif isinstance(body, RecordCall) and body.activity == run.seq:
            lost.append(LostCall(event.seq, "unknown"))
    return lost, doubtful


def _is_of_run(log: Log, erased: Event, run: ActivityRow) -> bool | None:
    """Return whether an erased call is of a run, by the events of its batch; None if unknown."""
    header = erased.header
    runs: set[bool] = set()
    for event in log.read(header.first_seq, header.last_seq):
        body = event.body
        if isinstance(body, PutFrame) and body.kind == RESULT_KIND:
            runs.add(body.parent == run.frame)
        elif isinstance(body, RecordCall):
            runs.add(body.activity == run.seq)
        elif isinstance(body, StartActivity):
            runs.add(run.seq in (event.seq, body.resumes))
    return runs.pop() if len(runs) == 1 else None


def _activity_of(event: Event, body: UnknownBody) -> int | None:
    """Return the activity that a call of a later version names, if its fields can be read."""
    try:
        activity = body.fields().get("activity")
    except (msgspec.DecodeError, AttributeError):
        return None
    if not is_integer(activity):
        return None
    # −k is the k-th event of the batch.
    return activity if activity > 0 else event.header.first_seq - 1 - activity
