"""Lost calls: events of a run's recording that this program cannot read.

Owns the search for calls that the projection `activities` skipped: their payload was erased, their
version is later, or their kind is unknown. Without them a recording looks shorter than it is, and a
re-run would blame the code. Leaves out the recording itself (`recording`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from cerata.engine.arguments import is_integer
from cerata.engine.errors import RerunFailed
from cerata.engine.events import Erased, Event, PutFrame, UnknownBody
from cerata.engine.log import Log

from .activities.events import RecordCall, StartActivity
from .activities.reader import ActivityRow
from .activities.values import RESULT_KIND

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
