"""Event streams: the events of the log as they are written, by this process or another.

Owns the choice of events, the start of a stream, and the iterator. Leaves out the look for new
events and the wait for them (`cerata.engine.event_tail`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

from cerata.engine.errors import Diverged, InvalidInput
from cerata.engine.event_tail import EventTail
from cerata.engine.events import Event, EventBody, Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.json_value import exact
from cerata.engine.remembered import RememberedHead
from cerata.projections.columnar.scopes import Reach, admits, check_reach

from .frames.events import EventFilter, type_name
from .points_in_time import Points
from .values.arguments import listed, narrowed

if TYPE_CHECKING:
    from .view import Basis

EventType: TypeAlias = str | type[EventBody]
"""The name of an event type, or the class of its body."""


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """The events that a stream yields; None admits any."""

    types: frozenset[str] | None
    events: EventFilter
    reach: Reach | None

    def admits(self, event: Event) -> bool:
        """Return whether the stream yields an event; an erased event has no scope."""
        return (
            (self.types is None or event.type in self.types)
            and (self.reach is None or admits(event.scope, self.reach))
            and self.events.admits(event)
        )


class EventStream(Handle):
    """An endless iterator of events, returned by `Store.stream.follow`.

    - Each event that the stream admits comes once, in seq order, and is durable by then.
    - ``position`` is the point from which another stream continues: store it after the work on an
      event is complete, and pass it as ``after``.
    - Threads may share a stream: each event goes to one of them.
    - `close` ends the iteration, from any thread and in a signal handler too.
    """

    _instead = "Pass its position, and call follow(after=position) there."

    def __init__(self, tail: EventTail, chosen: StreamFilter, timeout: float | None) -> None:
        self._tail = tail
        self._chosen = chosen
        self._timeout = timeout
        self._mutex = threading.Lock()

    def __repr__(self) -> str:
        return f"<cerata.EventStream at event {self.position:,}>"

    @property
    def position(self) -> int:
        """The seq of the last event that was yielded or that the filters left out."""
        return self._tail.position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """Return the next event, and wait for it.

        Raises:
            StopIteration: the stream was closed, or no event came for ``timeout`` seconds.
            Closed: the store was closed.
        """
        try:
            with self._mutex:
                return self._next()
        finally:
            if self._tail.is_ending:
                self._release()

    def _next(self) -> Event:
        tail, timeout = self._tail, self._timeout
        deadline = None if timeout is None else tail.monotonic() + timeout
        left = timeout
        while not tail.is_ending:
            event = tail.take()
            if event is None:
                if left is not None and left <= 0:
                    break
                tail.wait(left)
                left = None if deadline is None else deadline - tail.monotonic()
            elif self._chosen.admits(event):
                return event
        raise StopIteration

    def close(self) -> None:
        """End the iteration; a second call does nothing. The store stays open."""
        self._tail.end()
        self._release()

    def _release(self) -> None:
        """Release the watch, unless a thread uses it; that thread releases it when it leaves."""
        if self._mutex.acquire(blocking=False):
            try:
                self._tail.release()
            finally:
                self._mutex.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stream_parts(stream: EventStream) -> tuple[EventTail, StreamFilter, float | None]:
    """Return the parts of a stream, for an asynchronous stream over them."""
    return stream._tail, stream._chosen, stream._timeout  # pyright: ignore[reportPrivateUsage]


class StreamReads(Points):
    """The call that follows the log."""

    def follow(
        self,
        after: Basis | None = None,
        *,
        types: EventType | Iterable[EventType] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        timeout: float | None = None,
    ) -> EventStream:
        """Return the events after a point, and each later event as it is written, without end.

        Events of other processes come too, about a sync after they are written. An event comes
        once it is durable, also if its writer has not returned yet, and batches come whole. The
        reader keeps its place: `EventStream.position`. The stream reads the log alone, so drafts of
        an open transaction never come. Cost: a read of each event after the point; while idle, a
        look each second.

        Args:
            after: The point, in a form that `at` takes, or a head's text; default the newest event.
            types: The event types, as names such as "putFrame" or as classes; default any.
            actor: The actor of the events; default any.
            correlation: The id of the request or run of the events; default any.
            causation: The seq of the event that led to the events; default any.
            scope: Names and values that the events' scope contains; default none.
            timeout: Seconds without an event after which the stream ends; default never.

        Raises:
            NotFound: the log ends before ``after``.
            InvalidInput: ``after`` is a point of another memory, or an argument is unusable.
            Diverged: ``after`` is a point of another fork, or of a state that this file has lost.
        """
        session = self._session
        check_reach(session.reach)
        reach = session.reach if scope is None else narrowed(session.reach, scope, shared=None)
        timeout = exact(timeout)
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0
        ):
            raise InvalidInput(
                f"timeout must be a number of seconds from 0, not {timeout!r:.60}",
                remedy="Pass a number such as 2.5, or None to wait for ever.",
            )
        chosen = StreamFilter(
            _type_names(types), EventFilter(None, actor, correlation, causation), reach
        )
        return EventStream(EventTail(self._log, self._start(after)), chosen, timeout)

    def _start(self, after: Basis | None) -> int:
        """Return the seq after which a stream begins."""
        if after is None:
            return self._log.refresh().seq
        if isinstance(after, str) and RememberedHead.is_text(after):
            return self._remembered_point(RememberedHead.parse(after))
        return self._seq_of(after)

    def _remembered_point(self, head: RememberedHead) -> int:
        log = self._log
        newest = log.refresh().seq
        if head.log_id is not None and head.log_id != log.log_id:
            raise InvalidInput(
                "The position is a point of another memory",
                where=log.path,
                remedy="Pass a position of this memory, or a seq.",
            )
        point = min(newest, head.seq)
        present = RememberedHead(point, log.root_at(point), log.log_id)
        if (present.seq, present.root) != (head.seq, head.root):
            is_short = newest < head.seq
            raise Diverged(
                f"The file ends at event {newest:,}, before the position at event {head.seq:,}"
                if is_short
                else f"Events 1 to {head.seq:,} of the file are not those of the position",
                where=log.path,
                remedy="Compare the file with its backups by 'cerata file verify --head', or pass "
                "a seq to read on from there.",
                kind="rollback" if is_short else "fork",
                remembered=str(head),
                found=str(present),
            )
        return head.seq


def _type_names(types: EventType | Iterable[EventType] | None) -> frozenset[str] | None:
    """Return the names of event types. Raises `InvalidInput` for another value."""
    if types is None:
        return None
    kinds = (types,) if isinstance(types, str | type) else listed("types", types)
    names = [type_name(kind) for kind in kinds]
    if None in names:
        raise InvalidInput(
            "types has None, which names no event type", remedy="Pass types=None for any type."
        )
    return frozenset(name for name in names if name is not None)
