"""The stores that short stories start from: each is near an edge that an empty one is far from.

Owns the set-ups by name. What happens next is the stories' (`workloads`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from cerata.engine.format.page import RING_OFFSET

from .operations import SECTOR, Write
from .workloads import (
    ALPHABET,
    EXTRA,
    PATH,
    RING_SIZE,
    Session,
    Start,
    frame,
    fresh_image,
    fresh_world,
)


def _after(*acts: str) -> Start:
    """Return the store after some operations and the death of whoever did them."""
    session = Session(fresh_world())
    for act in acts:
        (ALPHABET | EXTRA)[act](session)
    return _of(session)


def _of(session: Session) -> Start:
    session.process.kill()
    return Start(bytes(session.world.disk.names[PATH].data), tuple(session.written))


def _ending(past: int) -> Start:
    """Return a store whose one record ends so many bytes past a sector's end."""
    session = Session(fresh_world())
    # A record is as long as its text and something; what, the first try shows.
    whole = 2 * SECTOR
    session.append([frame("x" * (whole - _record_size(whole) + whole + past))])
    return _of(session)


@cache
def _record_size(characters: int) -> int:
    """Return how long the record of a frame with so many characters is, padding left out."""
    session = Session(fresh_world())
    session.append([frame("x" * characters)])
    writes = [one for one in session.world.disk.trace if isinstance(one, Write)]
    record = next(one.data for one in writes if one.offset == RING_OFFSET)
    return 48 + int.from_bytes(record[8:12], "little")


def _at_ring_end() -> Start:
    """Return a store with one free sector before the ring's end: what comes next goes around."""
    session = Session(fresh_world())
    for act in ("quarter", "quarter", "quarter", "seal", "quarter"):
        (ALPHABET | EXTRA)[act](session)
    trace = session.world.disk.trace
    while True:
        last = [one for one in trace if isinstance(one, Write) and one.offset < RING_END][-1]
        # The write has an empty sector behind the record.
        free = RING_END - (last.offset + len(last.data) - SECTOR)
        if free <= SECTOR:
            return _of(session)
        size = min(free - SECTOR, 16 * SECTOR)
        session.append([frame("x" * (2 * size - _record_size(size)))])


RING_END: Final = RING_OFFSET + RING_SIZE

STARTS: Final[Mapping[str, Callable[[], Start]]] = {
    "empty": lambda: Start(fresh_image()),
    "one commit": lambda: _after("small"),
    "a byte before a sector's end": lambda: _ending(-1),
    "at a sector's end": lambda: _ending(0),
    "a byte past a sector's end": lambda: _ending(1),
    "at the ring's end": _at_ring_end,
    "checkpointed": lambda: _after("batch", "long", "checkpoint"),
    "sealed and deleted": lambda: _after("batch", "supersede", "seal", "delete", "large"),
}


@cache
def start_named(name: str) -> Start:
    """Return a set-up by its name, made once in each process."""
    return STARTS[name]()


def names() -> Sequence[str]:
    """Return the names of all set-ups."""
    return tuple(STARTS)
