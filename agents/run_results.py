"""The results of a run, as of an event: by reference, listed, and by lineage.

Owns the rules by which a reference names a result. Leaves out the syntax (`references`) and the
record of calls (`journal`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Event, JsonValue, PutFrame
from cerata.engine.unreadable import leave_out
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime, to_microseconds

from .activities.events import RecordCall
from .activities.reader import ActivityRow, CallRow
from .activities.values import Lineage, Reference, activities_at, body_of
from .references import ParsedReference, parsed, pointed, reference, resolved
from .text.summaries import decoded

_CLOSE: Final = 8
"""Frames so many events apart are read together: reading on is cheaper than another look-up."""


class Resolved(NamedTuple):
    """A value without references, and the frames that they named, each once, in order of use."""

    value: object
    used: tuple[int, ...]


class KeptResult(NamedTuple):
    """The value that a reference names, and the seq of the call that made it."""

    value: JsonValue
    call: int


class StoredResult(NamedTuple):
    """The frame that holds a result, its track, and the bytes of its JSON."""

    frame: int
    track: str
    size: int


class ResultFrame(NamedTuple):
    """The frame of a result as lists need it: its summary, track, bytes of JSON and expiry."""

    summary: str
    track: str
    size: int
    expires: int | None


class RunResults:
    """The results of a run in a snapshot, as of an event; immutable, for any thread."""

    def __init__(
        self,
        snapshot: Snapshot,
        run: ActivityRow,
        prefix: str,
        n: int | None = None,
        *,
        read: dict[int, ResultFrame] | None = None,
    ) -> None:
        """Read the results of a run.

        Args:
            snapshot: The snapshot.
            run: The run.
            prefix: The start of references, such as "$ref".
            n: An event after whose batch the results are read; default the basis.
            read: Frames of results that lists need not read; they add the frames that they read.
        """
        self._snapshot = snapshot
        self._run = run
        self._prefix = prefix
        self._read = {} if read is None else read
        last = None if n is None else snapshot.event_of(n)
        self._last = last
        self._n = snapshot.basis if last is None else last.header.last_seq

    # --- one result ------------------------------------------------------------------------------

    def get(self, text: str) -> JsonValue:
        """Return a fresh copy of the value that a reference names, or of a part.

        Raises:
            InvalidInput: the text is no reference.
            NotFound: the run has no such result, or has it no more; or the pointer has no target.
        """
        return self._value(parsed(text, self._prefix), text)[0]

    def kept(self, text: str) -> KeptResult:
        """Return the value that a reference names, with its call. Raises as `get`."""
        parts = parsed(text, self._prefix)
        return KeptResult(self._value(parts, text)[0], self._call(parts).seq)

    def resolve(self, value: object) -> Resolved:
        """Return a value with its references replaced. Raises as `get`."""
        used: dict[int, None] = {}

        def lookup(parts: ParsedReference) -> JsonValue:
            part, frame = self._value(parts, self._text(parts))
            used[frame] = None
            return part

        return Resolved(resolved(value, self._prefix, lookup), tuple(used))

    def _text(self, parts: ParsedReference) -> str:
        pointer = f"#{parts.pointer}" if parts.pointer else ""
        return reference(self._prefix, parts.name, parts.number) + pointer

    def _value(self, parts: ParsedReference, text: str) -> tuple[JsonValue, int]:
        call = self._call(parts)
        event, body = self._frame(call.result)
        if body is None or body.blob is None:
            raise self._missing(text, "was erased")
        if self._closing(call.result):
            raise self._missing(text, "was evicted")
        if body.expires is not None and body.expires <= self._now:
            raise self._missing(text, f"expired at {to_datetime(body.expires).isoformat()}")
        return pointed(decoded(event.attached(body.blob)), parts.pointer, text), call.result

    def _call(self, parts: ParsedReference) -> CallRow:
        call = activities_at(self._snapshot).result(self._run.row, parts.name, parts.number)
        if call is None or call.seq > self._n:
            raise self._missing(self._text(parts), "is unknown")
        return call

    def _missing(self, text: str, reason: str) -> NotFound:
        refs = [item.ref for item in self.references()]
        near = difflib.get_close_matches(text.partition("#")[0], refs, n=1, cutoff=0.0)
        return NotFound(
            f"The reference {text!r:.120} {reason}",
            where=f"run {self._run.name!r}",
            remedy=f"The nearest reference is {near[0]!r}; run.refs() lists all."
            if near
            else "The run has no results that references name.",
        )

    # --- lists -----------------------------------------------------------------------------------

    def calls(self) -> list[CallRow]:
        """Return the calls of the run so far, in order."""
        return [
            row for row in activities_at(self._snapshot).calls(self._run.row) if row.seq <= self._n
        ]

    def references(self) -> list[Reference]:
        """Return the results that references name, in order. Cost: a read of each frame."""
        return list(self.references_of(self.calls()))

    def references_of(self, calls: Iterable[CallRow]) -> Iterable[Reference]:
        """Yield the reference of each call that has a result."""
        for call, frame in self._current(calls):
            yield Reference(
                ref=reference(self._prefix, call.name, call.number),
                summary=frame.summary,
                size=frame.size,
                turn=call.turn,
                id=call.result,
                expires=None if frame.expires is None else to_datetime(frame.expires),
            )

    def stored(self, calls: Iterable[CallRow]) -> Iterable[StoredResult]:
        """Yield the frame of each call that has a result."""
        for call, frame in self._current(calls):
            yield StoredResult(call.result, frame.track, frame.size)

    def _current(self, calls: Iterable[CallRow]) -> Iterable[tuple[CallRow, ResultFrame]]:
        """Yield each call whose result is current, with the frame of the result."""
        now = self._now
        kept = [call for call in calls if call.result and not self._closing(call.result)]
        self._read_frames([call.result for call in kept if call.result not in self._read])
        for call in kept:
            frame = self._read.get(call.result)
            if frame is not None and (frame.expires is None or frame.expires > now):
                yield call, frame

    def _read_frames(self, frames: Sequence[int]) -> None:
        """Read frames that are not erased. Close frames are one read."""
        spans: list[list[int]] = []
        for frame in sorted(frames):
            if spans and frame - spans[-1][1] <= _CLOSE:
                spans[-1][1] = frame
            else:
                spans.append([frame, frame])
        wanted = set(frames)
        for first, last in spans:
            try:
                self._read_span(first, last, wanted)
            except Corrupt:
                # The damage costs its results alone.
                span = [frame for frame in frames if first <= frame <= last and frame in wanted]
                for frame in span:
                    try:
                        self._read_span(frame, frame, wanted)
                    except Corrupt as error:
                        leave_out(_place(frame), error)
                wanted.difference_update(span)
        for frame in wanted:
            leave_out(_place(frame), _outside(frame))

    def _read_span(self, first: int, last: int, wanted: set[int]) -> None:
        for seq, body in self._snapshot.bodies(first, last, wanted):
            wanted.discard(seq)
            if isinstance(body, PutFrame) and body.blob is not None:
                self._read[seq] = ResultFrame(
                    body.search_text or "", body.track or "", body.blob.size, body.expires
                )

    def lineage(self, text: str) -> Lineage:
        """Return the results from which a result was made, and those made from it.

        Raises:
            InvalidInput, NotFound: as `get`.
        """
        frame = self._call(parsed(text, self._prefix)).result
        activities = activities_at(self._snapshot)
        by_call = {call.seq: call for call in self.calls()}
        by_frame = {call.result: call for call in by_call.values() if call.result}

        def before(result: int) -> list[int]:
            call = by_frame.get(result)
            return [] if call is None else activities.used_by(call.seq)

        def after(result: int) -> list[int]:
            users = activities.calls_using(result)
            return [by_call[seq].result for seq in users if seq in by_call and by_call[seq].result]

        def listed(step: Callable[[int], list[int]]) -> tuple[Reference, ...]:
            frames = sorted(_closure(frame, step))
            return tuple(self.references_of(by_frame[each] for each in frames if each in by_frame))

        return Lineage(listed(before), listed(after))

    @property
    def basis(self) -> int:
        """The event as of which the results are read."""
        return self._n

    def body(self, call: CallRow) -> RecordCall | None:
        """Return the body of a call; None if it was erased."""
        body = body_of(self._snapshot, call.seq)
        return body if isinstance(body, RecordCall) else None

    def data(self, call: CallRow) -> bytes | None:
        """Return the JSON of a call's result; None without one, or if it was erased or evicted."""
        if not call.result or self._closing(call.result):
            return None
        event, body = self._frame(call.result)
        return None if body is None or body.blob is None else event.attached(body.blob)

    # --- frames ----------------------------------------------------------------------------------

    def _frame(self, frame: int) -> tuple[Event, PutFrame | None]:
        event = self._snapshot.event_of(frame)
        if event is None:
            raise _outside(frame)
        return event, event.body if isinstance(event.body, PutFrame) else None

    def _closing(self, frame: int) -> bool:
        closing = self._snapshot.layers.closing_of(frame)
        return closing is not None and closing.seq <= self._n

    @property
    def _now(self) -> int:
        return to_microseconds(self._snapshot.now) if self._last is None else self._last.recorded


def _place(frame: int) -> str:
    return f"The result in frame {frame:,}"


def _outside(frame: int) -> Corrupt:
    return Corrupt(
        f"The result in frame {frame:,} lies outside the scope of its run",
        remedy="Run 'cerata file verify', then 'cerata file maintain --only rebuild'.",
    )


def _closure(start: int, step: Callable[[int], list[int]]) -> set[int]:
    """Return each frame that repeated steps reach, without the start."""
    reached: set[int] = set()
    ahead = [start]
    while ahead:
        for each in step(ahead.pop()):
            if each not in reached and each != start:
                reached.add(each)
                ahead.append(each)
    return reached
