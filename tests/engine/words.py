"""The vocabulary of the engine's tests: drafts in a word, disks to be damaged, what a log says.

Import what reads well in a case; nothing here asserts.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from cerata.engine import log as log_module
from cerata.engine.codec import Prepared, WireEvent, prepare
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryFile, MemoryNode, MemoryStorage
from cerata.engine.errors import CerataError, StorageFailed
from cerata.engine.events import Draft, Event, PutFrame, UnknownBody
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry
from cerata.engine.integrity import commitment_of, hash_bytes
from cerata.engine.log import Log
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.engine.open import open_log

RING = 64 << 10
"""The smallest ring: what a test fills, it fills soon."""

PATH = "brain.cera"

LATER = 1 << 20
"""A sync policy under which nothing that a test writes is ever due."""


def put(text: str = "a", **fields: Any) -> Draft:
    """Return a draft of a frame."""
    return Draft(PutFrame(text=text, **fields))


def other(kind: str = "thing", data: bytes = b"\x80", version: int = 1) -> Draft:
    """Return a draft of a kind that nobody registered; its body is an empty map."""
    return Draft(UnknownBody(kind=kind, kind_version=version, data=data))


def blob(data: bytes) -> Draft:
    """Return a draft that carries ``data`` beside its payload."""
    return Draft(UnknownBody(kind="blob", kind_version=1, data=b"\x80"), attachments=(data,))


@dataclass
class TickingClock:
    """Wall time that a test sets; waiting takes no time but is counted."""

    now: int = 1_700_000_000_000_000
    step: int = 1_000
    waited: float = 0.0

    def now_us(self) -> int:
        self.now += self.step
        return self.now

    def monotonic(self) -> float:
        return self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


@dataclass
class Disk:
    """A disk in memory with one log on it, whose bytes a test may look at and spoil."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    clock: TickingClock = field(default_factory=TickingClock)
    random: Random = field(default_factory=lambda: Random(7))

    @property
    def environment(self) -> Environment:
        return Environment(self.storage, self.clock, self.random.randbytes)

    def open(self, path: str = PATH, **options: Any) -> Log:
        options.setdefault("ring_bytes", RING)
        return open_log(path, environment=self.environment, **options)

    @contextmanager
    def log(self, **options: Any) -> Generator[Log, None, None]:
        with self.open(**options) as log:
            yield log

    def node(self, path: str = PATH) -> MemoryNode:
        return self.storage._nodes[path]

    def image(self, path: str = PATH) -> bytes:
        return bytes(self.node(path).data)

    def spoil(self, offset: int, data: bytes | None = None) -> None:
        """Write over the bytes at ``offset``; without ``data`` flip the lowest bit there."""
        held = self.node().data
        if data is None:
            held[offset] ^= 1
        else:
            held[offset : offset + len(data)] = data

    @classmethod
    def holding(cls, data: "bytes | bytearray") -> "Disk":
        """Return a disk that holds one file of these bytes."""
        disk = cls()
        node = disk.storage._nodes[PATH] = MemoryNode(-1)
        node.data = bytearray(data)
        return disk

    def kill(self) -> None:
        """Forget every lock, as the kernel does for a killed process."""
        for node in self.storage._nodes.values():
            for holders in node.holders.values():
                holders.clear()


@contextmanager
def erasing(*places: int) -> Generator[None, None, None]:
    """Make the events at these places of an appended batch, from 1, lose payload and salt.

    So an erasure will leave them; without places, all events of each batch.
    """

    def erase(*arguments: Any, **options: Any) -> Prepared:
        prepared = prepare(*arguments, **options)
        events = tuple(
            _erased(wire) if not places or place in places else wire
            for place, wire in enumerate(prepared.events, start=1)
        )
        return replace(prepared, events=events)

    with mock.patch.object(log_module, "prepare", erase):
        yield


def _erased(wire: WireEvent) -> WireEvent:
    assert wire.salt is not None
    return replace(wire, salt=None, payload=commitment_of(wire.salt, wire.payload), attachments=())


def texts(log: Log, first: int = 1) -> list[str | None]:
    """Return the texts of the log's frames in order."""
    return [event.body.text for event in log.read(first) if isinstance(event.body, PutFrame)]


def stored(events: Iterable[Event]) -> list[tuple[object, ...]]:
    """Return everything about events that is stored."""
    return [(event.header, event.salt, event.payload_bytes, event.erased) for event in events]


def refusal(error: CerataError) -> str:
    """Return what is wrong and what to do, which every error must say."""
    return f"{error.what} {error.remedy}"


def one_chunk(flip: Flip, last_seq: int, body: bytes) -> dict[str, Any]:
    """Add a projection's checkpoint with one chunk to a flip, and return its entry."""
    chunk = flip.add(ExtentKind.CHUNK, body, 1, last_seq)
    digest = hash_bytes(body)
    state = StateDraft(last_seq, digest, [[chunk]], [LedgerEntry(last_seq, digest)])
    return flip.add_states({"": state})[""].to_entry()


@contextmanager
def counted(name: str) -> Generator[list[tuple[int, int]], None, None]:
    """Yield the (offset, size) of every read or write of a file in memory."""
    calls: list[tuple[int, int]] = []
    real = getattr(MemoryFile, name)

    def counting(self: MemoryFile, offset: int, what: "int | bytes") -> object:
        calls.append((offset, what if isinstance(what, int) else len(what)))
        return real(self, offset, what)

    with mock.patch.object(MemoryFile, name, counting):
        yield calls


def failing(name: str, monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> None:
    """Make a call of the file fail once, after so many that succeed."""
    real = getattr(MemoryFile, name)
    left = [after]

    def fail(self: MemoryFile, *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise StorageFailed("Cannot do it", remedy="Check the disk.")
        return real(self, *arguments)

    monkeypatch.setattr(MemoryFile, name, fail)
