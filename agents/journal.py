"""Journals: the sources of answers for the calls of a run, and the record of new calls.

Owns the requests of calls, and the journal that runs each call and records it. Leaves out answers
from a recording (`replayed`) and the choice of a journal (`agent`, `rerun`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, cast

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import DeleteFrame, Draft, JsonValue, PutFrame, Scope
from cerata.memory.batch.attempts import attempted
from cerata.memory.batch.session import WriteSession
from cerata.memory.frames.drafts import frame_draft
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Receipt

from .activities.events import RecordCall
from .activities.reader import ActivityRow
from .activities.values import RESULT_KIND, Result, activities_at, body_of
from .recording import result_of
from .references import reference
from .run_counts import Captured, RunCounts
from .run_results import ResultFrame, RunResults
from .spec import WorkingSlot, WorkingSlots
from .text.summaries import NOT_RECORDED, decoded, digest_of, encoded, error_text, summary_of

WITHOUT_FRAME = ("clock", "random")
"""The kinds of calls whose results are in their events."""

_FRAMES_MAX: Final = 4_096
"""Frames of results that a journal keeps between lists, each with at most 300 characters."""

RETURN = "return"
"""In the names of ``secret``: the result, which is then not recorded. No argument has this name."""


class Request(NamedTuple):
    """A call that a run is about to make."""

    kind: str
    name: str
    arguments: str
    digest: bytes
    version: str | None = None
    turn: int = 1
    memo: bool = False
    keeps_result: bool = True
    secret: tuple[str, ...] = ()
    function: Callable[..., object] | None = None
    data: bytes | None = None
    """The JSON of a value that the program computed itself, to be compared with the recorded."""
    used: tuple[int, ...] = ()
    """The frames of the results that the arguments refer to."""
    slot: str | None = None
    """The working slot that captures the result; None for that of calls."""


def request_of(kind: str, name: str, arguments: str, **fields: Any) -> Request:
    """Return a request with its digest."""
    return Request(kind, name, arguments, digest_of(name, arguments), **fields)


class Answer(NamedTuple):
    """An answer from a recording: a result, the JSON of a value without a frame, or an error."""

    result: Result | None = None
    value: str | None = None
    error: Exception | None = None
    is_made_again: bool = False
    """True for a recorded call without a result, in a run that goes on."""


class Journal(Protocol):
    """The answers and the record of a run's calls; safe for threads."""

    def answer(self, request: Request) -> Answer | None:
        """Return the recorded answer, or None if the call must be made. May wait for its turn."""
        ...

    async def async_answer(self, request: Request) -> Answer | None:
        """Return the same for a coroutine, which waits without blocking its loop."""
        ...

    def start(self) -> int:
        """Note that a call starts; `record` and `record_error` take the ticket."""
        ...

    def record(self, request: Request, value: object, ticket: int) -> Result:
        """Record a call that returned. Durable on return. Raises `InvalidInput`."""
        ...

    def record_value(self, request: Request, value: JsonValue) -> None:
        """Record a call of the clock or of randomness. Durable on return."""
        ...

    def record_error(self, request: Request, error: Exception, ticket: int) -> None:
        """Record a call that raised. Durable on return."""
        ...

    def count(self, name: str) -> int:
        """Return the number of finished calls of a name."""
        ...

    def results(self) -> RunResults:
        """Return the results of the calls so far, which references name."""
        ...

    @property
    def prefix(self) -> str:
        """The start of references, such as "$ref"."""
        ...

    @property
    def turn(self) -> int:
        """The turn with which the run begins."""
        ...


class LiveJournal:
    """A journal that has no answers but memos, and records each call."""

    def __init__(
        self,
        session: WriteSession,
        run: ActivityRow,
        scope: Scope,
        agent: str,
        working: WorkingSlots,
    ) -> None:
        """Record the calls of a run.

        Args:
            session: The writer.
            run: The run.
            scope: The scope of the run, which is that of each of its events.
            agent: The name of the agent.
            working: The slots that capture results.
        """
        self._session = session
        self._run = run
        self._scope = scope
        self._working = working
        self._agent = agent
        self._counts = RunCounts(session, run, working.prefix)
        self._frames: dict[int, ResultFrame] = {}
        """Frames of results that lists have read, since an erasure or a rebuild."""
        self._frames_of = 0
        """`Fold.replaced` when the first of these was read."""
        self._finished = 0
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer | None:
        if not request.memo:
            return None
        snapshot = self._session.snapshot()
        results = RunResults(snapshot, self._run, self._working.prefix)
        result = memo_of(snapshot, self._run, request, results)
        return None if result is None else Answer(result)

    async def async_answer(self, request: Request) -> Answer | None:
        return self.answer(request)

    def start(self) -> int:
        return self._finished

    def note_answered(self) -> None:
        """Count a call that a recording answered among the finished calls."""
        with self._lock:
            self._finished += 1

    def record(self, request: Request, value: object, ticket: int) -> Result:
        if not request.keeps_result:
            self._write(None, request, ticket)
            return Result(None, NOT_RECORDED, None, 0, memo=False, _data=None, _value=value)
        slot = self._working.named(request.slot)
        is_captured = slot.captures or request.slot is not None
        try:
            data = encoded(value, f"The result of {request.name!r}")
            if is_captured:
                _check_size(slot, request.name, data)
        except InvalidInput as error:
            self.record_error(request, error, ticket)
            raise
        summary = summary_of(cast("JsonValue", value), len(data))
        if not is_captured:
            self._write(None, request, ticket)
            return Result(None, summary, None, len(data), memo=False, _data=data)
        expires = slot.expiry(self._session.log.environment.now_us())
        track = self._track(slot)
        draft = result_draft(data, summary, self._run.frame, self._scope, track, expires)
        frame, number = self._write(draft, request, ticket, size=len(data))
        ref = reference(self._working.prefix, request.name, number)
        return Result(ref, summary, frame, len(data), memo=False, _data=data)

    def _track(self, slot: WorkingSlot) -> str:
        return f"{self._agent}/{slot.name}"

    def results(self) -> RunResults:
        replaced = self._session.fold.replaced
        if self._frames_of != replaced or len(self._frames) > _FRAMES_MAX:
            self._frames_of, self._frames = replaced, {}
        snapshot = self._session.snapshot()
        return RunResults(snapshot, self._run, self._working.prefix, read=self._frames)

    def record_value(self, request: Request, value: JsonValue) -> None:
        text = encoded(value, f"The result of {request.name!r}").decode()
        self._write(None, request, self.start(), value=text)

    def record_error(self, request: Request, error: Exception, ticket: int) -> None:
        self._write(None, request, ticket, error=error_text(error))

    def count(self, name: str) -> int:
        return activities_at(self._session.snapshot()).count(self._run.row, name)

    @property
    def prefix(self) -> str:
        return self._working.prefix

    @property
    def turn(self) -> int:
        return activities_at(self._session.snapshot()).last_turn(self._run.row) or 1

    def _write(
        self,
        result: Draft | None,
        request: Request,
        ticket: int,
        *,
        size: int = 0,
        error: str | None = None,
        value: str | None = None,
    ) -> tuple[int, int]:
        """Append the frame of a result and the call as one batch; return its id and its number.

        Both are 0 without a result. The batch deletes the oldest results if those of the run would
        exceed the slot's size.
        """
        slot = self._working.named(request.slot)
        captured = None if result is None else Captured(request.name, self._track(slot), size)
        # Appends of one run take turns, so that the overlaps are those of the log.
        with self._lock:
            call = call_draft(
                self._run.seq,
                request,
                self._scope,
                results=() if result is None else (-1,),
                error=error,
                value=value,
                overlaps=self._finished - ticket,
            )
            batch = [call] if result is None else [result, call]
            proof = self._counts.proof(captured, slot.size_max)
            proof = proof and proof.at_head(self._session.log, self._session.fold.replaced)
            receipt = None
            if proof is not None:
                # A conflict shows that the proof has just ended.
                with suppress(Conflict):
                    receipt = self._session.write(batch, proof=proof)
            if receipt is None:
                proof = None
                receipt = self._write_folded(batch, captured, slot.size_max)
            self._finished += 1
            number = self._counts.note(captured, receipt, proof)
        return (0 if result is None else receipt.seqs[0]), number

    def _write_folded(
        self, batch: Sequence[Draft], captured: Captured | None, size_max: int
    ) -> Receipt:
        """Append a batch by the fold, with the ends of the results that it evicts."""

        def attempt(snapshot: Snapshot) -> Receipt:
            deletes: list[Draft] = []
            if captured is not None:
                evicted = self._counts.evicted(snapshot, captured, size_max)
                deletes = [Draft(DeleteFrame(frame=frame), self._scope) for frame in evicted]
            return self._session.write([*batch, *deletes])

        return attempted(self._session, attempt, where=f"run {self._run.name!r}")


def _check_size(slot: WorkingSlot, name: str, data: bytes) -> None:
    if len(data) > slot.size_max:
        raise InvalidInput(
            f"The result of {name!r} has {len(data):,} bytes, and the results of a run "
            f"{slot.size_max:,} at most",
            where=f"slot {slot.name!r}",
            remedy="Return less, raise max_size_mb, or leave it out with secret=('return',).",
        )


def memo_of(
    snapshot: Snapshot, run: ActivityRow, request: Request, results: RunResults
) -> Result | None:
    """Return the newest current result of an equal call of a run, or None."""
    activities = activities_at(snapshot)
    for row in activities.equal_calls(run.row, request.digest):
        if not row.result or row.kind.name.lower() != request.kind:
            continue
        body = body_of(snapshot, row.seq)
        if isinstance(body, RecordCall) and body.digest == request.digest:
            number = activities.result_number(run.row, row.name, row.result)
            for item in results.references_of([row._replace(number=number)]):
                return result_of(snapshot, row.result, item.ref, memo=True)
    return None


def result_draft(
    data: bytes, summary: str, parent: int, scope: Scope, track: str, expires: int | None
) -> Draft:
    """Return the frame that holds a result, by its JSON; a parent −k is in the same batch."""
    fields = PutFrame(
        kind=RESULT_KIND, parent=parent, track=track, search_text=summary, expires=expires
    )
    return frame_draft(data, fields, scope)


def call_draft(activity: int, request: Request, scope: Scope, **fields: Any) -> Draft:
    """Return the event of a call; ``fields`` are its outcome."""
    body = RecordCall(
        activity=activity,
        kind=request.kind,
        name=request.name,
        version=request.version,
        turn=request.turn,
        arguments=request.arguments,
        digest=request.digest,
        used=request.used,
        **fields,
    )
    return Draft(body, scope)


def input_drafts(
    inputs: Mapping[str, bytes],
    activity: int,
    parent: int,
    scope: Scope,
    *,
    track: str,
    expires: int | None,
    first: int,
) -> list[Draft]:
    """Return the events that capture inputs by their JSON.

    Args:
        inputs: The JSON of each input, by the name of its call.
        activity: The run, or −k.
        parent: The run's frame, or −k.
        scope: The scope of the run.
        track: The track of the frames.
        expires: Their expiry, in microseconds since 1970 UTC; None for never.
        first: The place of the first event in the batch, from 1.
    """
    drafts: list[Draft] = []
    for name, data in inputs.items():
        request = request_of("input", name, "{}", turn=0)
        summary = summary_of(decoded(data), len(data))
        drafts.append(result_draft(data, summary, parent, scope, track, expires))
        place = first + len(drafts) - 1
        drafts.append(call_draft(activity, request, scope, results=(-place,)))
    return drafts
