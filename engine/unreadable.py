"""Items that cannot be read: left out of a list, which goes on, and named by a warning.

Owns the one rule for readers of many items: lists go on, and work that may leave out no event stops
and names the event. A reader of a single item raises the error.
"""

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from .codec import Batch
from .errors import CerataError, Corrupt, InvalidInput, UnreadableItem, Unsupported
from .events import Event
from .log import Log
from .segments.reader import Snapshot

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")

UNREADABLE: Final = (Corrupt, InvalidInput, Unsupported)
"""The errors of an item; a closed handle or a failed disk is one of the whole list."""


def readable(
    items: Iterable[_Item], read: Callable[[_Item], _Value], place: Callable[[_Item], str]
) -> Iterator[_Value]:
    """Yield the values of items; name each unreadable item by a warning `UnreadableItem`.

    Args:
        items: The items, such as ids.
        read: Returns the value of an item.
        place: Returns the name of an item, for a person.
    """
    for item in items:
        try:
            value = read(item)
        except UNREADABLE as error:
            leave_out(place(item), error)
        else:
            yield value


_EXACT: Final = ContextVar("cerata.exact", default=False)
_NOTICES: Final[ContextVar[tuple[list[str], ...]]] = ContextVar("cerata.notices", default=())


class UnreadableVectors(Corrupt):
    """Vectors of a space that cannot be read: a search leaves them out and names each.

    ``key`` is the space, ``rows`` are the rows in it, ``seqs`` their events.
    """

    key: tuple[str, str, int]
    rows: Sequence[int]
    seqs: Sequence[int]

    @classmethod
    def of(
        cls, key: tuple[str, str, int], rows: Sequence[int], seqs: Sequence[int], path: str
    ) -> "UnreadableVectors":
        """Return the error of some rows of a space, at least one."""
        error = cls(
            f"The vector of event {seqs[0]:,} is damaged",
            where=path,
            remedy="Run 'cerata file verify' to see the damage.",
        )
        error.key, error.rows, error.seqs = key, rows, seqs
        return error


@contextmanager
def exactly() -> Generator[None]:
    """Let the reads within stop at an unreadable item, with its error: for repetitions."""
    token = _EXACT.set(True)
    try:
        yield
    finally:
        _EXACT.reset(token)


def leave_out(place: str, error: CerataError) -> None:
    """Warn that an item was left out. Raises the error within `exactly`."""
    if _EXACT.get():
        raise error
    what = f"{place} cannot be read and was left out: {error.what}"
    for notices in _NOTICES.get():
        if what not in notices:
            notices.append(what)
    # The code that iterates is not at a fixed depth.
    warnings.warn(UnreadableItem(what, where=error.where, remedy=error.remedy), stacklevel=3)


@contextmanager
def noticing(notices: list[str]) -> Generator[None]:
    """Add a text to a list for each item that is left out within, once: for readers of text."""
    token = _NOTICES.set((*_NOTICES.get(), notices))
    try:
        yield
    finally:
        _NOTICES.reset(token)


def stopped(error: Corrupt, work: str, place: str, remedy: str) -> Corrupt:
    """Return the error of work that may leave out no event.

    Args:
        error: The fault of the event.
        work: The work, to begin a sentence.
        place: The first event, or run of events, that the work could not read.
        remedy: The next step.
    """
    what = f"{work} stopped at {place.lower()}: {error.what}"
    return Corrupt(what, where=error.where, remedy=remedy, offset=error.offset)


def whole_batches(snapshot: Snapshot, first: int, work: str) -> Iterator[Batch]:
    """Yield the batches from that of event ``first`` on, whole, with checked attachments.

    Args:
        snapshot: The state of the log.
        first: An event of the first batch.
        work: The work that needs every event, to begin a sentence.

    Raises:
        Corrupt: at the first damage, with the name of the batch.
    """
    at = first
    try:
        for batch in snapshot.reader.batches(snapshot, first):
            at = batch.first_seq
            for seq, event in enumerate(batch.events, start=at):
                # The checks of a copy would hide damage that those of this file show.
                snapshot.reader.check_attachments(snapshot, seq, event.payload, event.attachments)
            yield batch
            at = batch.last_seq + 1
    except Corrupt as error:
        raise stopped(error, work, f"the batch of event {at:,}", COPY_BEFORE_DAMAGE) from error


def whole_events(log: Log, first: int, last: int, work: str) -> Iterator[Event]:
    """Yield the events of a range for work that may leave out none.

    Raises:
        Corrupt: at the first damage, with the name of the event.
    """
    at = first
    try:
        for event in log.read(first, last):
            yield event
            at = event.seq + 1
    except Corrupt as error:
        raise stopped(error, work, event_place(at), COPY_BEFORE_DAMAGE) from error


COPY_BEFORE_DAMAGE: Final = (
    "Restore a backup, or copy the batches before the damage with 'cerata file doctor --repair "
    "--to NEW --drop-damaged'."
)
"""The remedy of work on a whole file."""


def frame_place(number: int) -> str:
    """Return the name of a frame."""
    return f"Frame {number:,}"


def event_place(number: int) -> str:
    """Return the name of an event."""
    return f"Event {number:,}"


def events_place(first: int, last: int) -> str:
    """Return the name of a run of events."""
    return event_place(first) if first == last else f"Events {first:,} to {last:,}"
