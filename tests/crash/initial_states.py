"""The stores that short stories start from: each is near an edge that an empty store is far from.

Owns the set-ups by name. Leaves out the stories themselves (`operations`).
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from cerata.engine.format.page import RING_OFFSET
from cerata.fault_injection.crash_states.operations import SECTOR, Write
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    Session,
    Start,
    frame,
    fresh_image,
)

from .operations import ALPHABET, EXTRA, fresh_world


def _after(*acts: str) -> Start:
    session = Session(fresh_world())
    for act in acts:
        (ALPHABET | EXTRA)[act](session)
    return _of(session)


def _of(session: Session) -> Start:
    session.process.kill()
    return Start(bytes(session.world.disk.names[PATH].data), tuple(session.written))


def _ending(past: int) -> Start:
    """Return a store whose only record ends ``past`` bytes past a sector's end."""
    session = Session(fresh_world())
    # A record is longer than its text by a fixed overhead, which the first record shows.
    whole = 2 * SECTOR
    session.append([frame("x" * (whole - _record_size(whole) + whole + past))])
    return _of(session)


@cache
def _record_size(characters: int) -> int:
    """Return the size of the record of a frame with this many characters, without padding."""
    session = Session(fresh_world())
    session.append([frame("x" * characters)])
    writes = [write for write in session.world.disk.trace if isinstance(write, Write)]
    record = next(write.data for write in writes if write.offset == RING_OFFSET)
    return 48 + int.from_bytes(record[8:12], "little")


def _at_ring_end() -> Start:
    """Return a store with one free sector before the ring's end: the next record wraps."""
    session = Session(fresh_world())
    for act in ("quarter", "quarter", "quarter", "seal", "quarter"):
        (ALPHABET | EXTRA)[act](session)
    trace = session.world.disk.trace
    while True:
        last = [write for write in trace if isinstance(write, Write) and write.offset < RING_END][
            -1
        ]
        # The write ends with an empty sector behind the record.
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
    "in a second ring": lambda: _after("batch", "grow", "long", "small"),
    "sealed and deleted": lambda: _after("batch", "supersede", "seal", "delete", "large"),
}


@cache
def start_named(name: str) -> Start:
    """Return a set-up by its name, built once in each process."""
    return STARTS[name]()
