"""Replayed journals: calls answered from a recording, up to the first that differs.

Owns the match of new calls with recorded calls, and `Divergence`. Leaves out the reading of a
recording (`recording`) and the report of a re-run (`rerun`).

A new call must equal the next recorded call in kind, name and arguments. Recorded calls that ran at
the same time may come in any order: a call may come as soon as every call has been answered that
had finished before it started.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import RerunFailed
from cerata.engine.events import JsonValue
from cerata.engine.plain_value import PlainValue

from .activities.values import Call, Result
from .journal import Answer, LiveJournal, Request
from .recording import RecordedCall, Recording, recorded_error
from .run_results import RunResults

PATIENCE: Final = 1.0
"""Seconds that a call waits for the calls before it, if the recording has calls that overlap."""

_PAUSE: Final = 0.001
"""Seconds between two looks of a waiting coroutine."""


@dataclass(frozen=True, slots=True)
class Divergence(PlainValue):
    """The first place at which an execution differs from its recording, with both sides.

    - ``place`` counts the calls of the execution, from 1, without inputs.
    - ``difference`` is "kind", "name", "arguments", "value", "order", "extra" (a call after the
      last recorded), "missing" (the function ended before a recorded call) or "end" (the function
      ended otherwise than the recorded).
    - "extra" has no ``recorded`` call, "missing" no ``new`` call.
    """

    place: int
    difference: str
    recorded: Call | None
    new: Call | None

    def __str__(self) -> str:
        return (
            f"call {self.place:,} differs: {self.difference}\n"
            f"  recorded  {self.recorded or 'no call'}\n"
            f"  now       {self.new or 'no call'}"
        )


class Stopped(BaseException):
    """Ends the execution of an agent function; no handler of `Exception` catches it."""


class ReplayedJournal:
    """A journal that answers from a recording, and then, if there is one, from a live journal.

    - ``divergence`` is the first difference, ``failure`` the reason why a call has no answer.
    - After either, every call raises `Stopped`.
    """

    def __init__(
        self,
        recording: Recording,
        live: LiveJournal | None = None,
        *,
        resumes: bool = False,
        goes_live: Callable[[int], LiveJournal] | None = None,
    ) -> None:
        """Answer calls from a recording.

        Args:
            recording: The recording.
            live: The journal of the calls after the last recorded call; None refuses them.
            resumes: The run goes on: a call without a recorded result is made again. Default False.
            goes_live: Returns the journal with which the execution goes on at the first difference,
                from the last event that it repeats; None stops there.
        """
        self._recording = recording
        self._calls = recording.calls
        self._answered = [False] * len(self._calls)
        self._prefix = 0
        self._live = live
        self._resumes = resumes
        self._goes_live = goes_live
        self._condition = threading.Condition()
        self._overlap_max = max((call.body.overlaps for call in self._calls), default=0)
        self._ordinals = Counter[str](call.row.name for call in recording.earlier)
        self._memos: dict[tuple[str, bytes], RecordedCall] = {}
        for call in recording.earlier:
            self._keep_memo(call)
        self.divergence: Divergence | None = None
        self.failure: Exception | None = None
        self.is_live = False
        """True once a call was not answered from the recording."""

    # --- answers ---------------------------------------------------------------------------------

    @property
    def answered(self) -> int:
        """The number of recorded calls that were answered."""
        return sum(self._answered)

    def answer(self, request: Request) -> Answer | None:
        with self._condition:
            self._condition.wait_for(lambda: self._is_decided(request), self._patience)
            return self._decide(request, is_async=False)

    async def async_answer(self, request: Request) -> Answer | None:
        # The recorded function let other tasks run, so their calls start in the same order.
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        # Polled: an answer may come from another thread, whose loop an event of this loop lacks.
        while not self._is_decided(request) and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
        with self._condition:
            return self._decide(request, is_async=True)

    @property
    def _patience(self) -> float:
        return PATIENCE if self._overlap_max else 0.0

    def _is_decided(self, request: Request) -> bool:
        """Return whether waiting for other calls would not change the answer."""
        return (
            self._is_over
            or self._memo(request) is not None
            or self._match(request) is not None
            or not any(_is_equal(call, request) for call in self._unanswered())
        )

    @property
    def _is_over(self) -> bool:
        return self.is_live or self.divergence is not None or self.failure is not None

    def _decide(self, request: Request, *, is_async: bool) -> Answer | None:
        if self.is_live and self._live is not None:
            return self._live.answer(request)
        if self._is_over:
            raise Stopped
        memo = self._memo(request)
        if memo is not None:
            return self._answer_of(memo, request, memo=True)
        call = self._match(request)
        if call is not None:
            return self._take(call, request)
        if self._live is not None and self._prefix == len(self._calls):
            return self._live.answer(request)
        if self._live is not None and self._resumes and is_async:
            # The call was running when the process was killed, while later calls finished.
            is_known = any(_is_equal(call, request) for call in self._unanswered())
            if not is_known:
                return self._live.answer(request)
        return self._differs(request)

    def _match(self, request: Request) -> RecordedCall | None:
        """Return the first unanswered call that may come now and equals a request, or None."""
        end = min(len(self._calls), self._prefix + self._overlap_max + 1)
        for place in range(self._prefix, end):
            call = self._calls[place]
            if (
                not self._answered[place]
                and call.after <= self._prefix
                and _is_equal(call, request)
            ):
                return call
        return None

    def _take(self, call: RecordedCall, request: Request) -> Answer | None:
        answer = self._answer_of(call, request)
        if request.data is not None and answer.result is not None:
            old = answer.result._data or b""  # pyright: ignore[reportPrivateUsage]
            if old != request.data:
                return self._differs_in_value(call, old, request.data)
        self._answered[call.place] = True
        while self._prefix < len(self._calls) and self._answered[self._prefix]:
            self._prefix += 1
        self._ordinals[call.row.name] += 1
        self._keep_memo(call)
        if self._live is not None:
            self._live.note_answered()
        self._condition.notify_all()
        return answer

    def _answer_of(self, call: RecordedCall, request: Request, *, memo: bool = False) -> Answer:
        body = call.body
        if body.error is not None:
            return Answer(error=recorded_error(body.error, request.function))
        if body.value is not None:
            return Answer(value=body.value)
        if self._resumes and not call.row.result:
            return Answer(is_made_again=True)
        try:
            return Answer(self._recording.result(call, memo=memo))
        except RerunFailed as error:
            self.failure = error
            raise Stopped from error

    def _memo(self, request: Request) -> RecordedCall | None:
        return self._memos.get((request.kind, request.digest)) if request.memo else None

    def _keep_memo(self, call: RecordedCall) -> None:
        if call.row.result:
            self._memos[call.body.kind, call.body.digest] = call

    def _unanswered(self) -> list[RecordedCall]:
        return [call for call in self._calls[self._prefix :] if not self._answered[call.place]]

    # --- differences -----------------------------------------------------------------------------

    def _differs(self, request: Request) -> Answer | None:
        """Note the first difference; stop, or go on live."""
        new = Call(request.kind, request.name, self._ordinals[request.name] + 1, request.arguments)
        recorded = self._calls[self._prefix] if self._prefix < len(self._calls) else None
        if recorded is None:
            self._diverge(Divergence(self._prefix + 1, "extra", None, new))
        else:
            call = self._recording.call(recorded)
            is_later = any(_is_equal(each, request) for each in self._unanswered())
            difference = "order" if is_later else _difference(call, new)
            self._diverge(Divergence(self._prefix + 1, difference, call, new))
        return None if self._live is None else self._live.answer(request)

    def _differs_in_value(self, recorded: RecordedCall, old: bytes, data: bytes) -> Answer | None:
        call = self._recording.call(recorded)
        sides = [
            Call(call.kind, call.name, call.ordinal, call.arguments, event, value=text.decode())
            for event, text in ((call.event, old), (None, data))
        ]
        self._diverge(Divergence(recorded.place + 1, "value", sides[0], sides[1]))
        return None

    def _diverge(self, divergence: Divergence) -> None:
        self.divergence = divergence
        self._condition.notify_all()
        if self._goes_live is None:
            raise Stopped
        try:
            self._live = self._goes_live(self._recording.last_seq(self._prefix))
        except Exception as error:
            # The agent function must not catch it.
            self.failure = error
            raise Stopped from error
        self.is_live = True

    def missing(self) -> Divergence | None:
        """Return the difference of an execution that ended, if a recorded call is unanswered."""
        if self._is_over or self._prefix == len(self._calls):
            return None
        recorded = self._recording.call(self._calls[self._prefix])
        return Divergence(self._prefix + 1, "missing", recorded, None)

    # --- the record of a live journal ------------------------------------------------------------

    def start(self) -> int:
        return 0 if self._live is None else self._live.start()

    def record(self, request: Request, value: object, ticket: int) -> Result:
        assert self._live is not None, "a journal without a live one answers or stops"
        return self._live.record(request, value, ticket)

    def record_value(self, request: Request, value: JsonValue) -> None:
        if self._live is not None:
            self._live.record_value(request, value)

    def record_error(self, request: Request, error: Exception, ticket: int) -> None:
        if self._live is not None:
            self._live.record_error(request, error, ticket)

    def count(self, name: str) -> int:
        if self._live is not None and (self.is_live or self._prefix == len(self._calls)):
            return self._live.count(name)
        return self._ordinals[name]

    @property
    def prefix(self) -> str:
        return self._recording.prefix

    def results(self) -> RunResults:
        if self._live is not None and (self.is_live or self._prefix == len(self._calls)):
            return self._live.results()
        return self._recording.results(self._prefix)

    @property
    def turn(self) -> int:
        return 1


def _is_equal(call: RecordedCall, request: Request) -> bool:
    body = call.body
    return (body.kind, body.name, body.digest) == (request.kind, request.name, request.digest)


def _difference(recorded: Call, new: Call) -> str:
    if recorded.name != new.name:
        return "name"
    return "kind" if recorded.kind != new.kind else "arguments"
