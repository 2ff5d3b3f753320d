"""Hostile files: an attacker can make every check in a file hold, so no check may be trusted.

Owns a file with every kind of structure whose checks always hold, patches to its bytes, and the
permitted results of reading it: typed errors or decoded data; never another error, a hang,
unbounded memory, or code that runs. `fuzz` draws random patches; `fuzz` lets atheris search for
them.
"""

import sys
import time
import tracemalloc
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from unittest import mock

import msgspec

from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryNode, MemoryStorage
from cerata.engine.errors import CerataError
from cerata.engine.events import Attachment, Draft, Embedding, PutFrame, UnknownBody
from cerata.engine.format import checksums as checks
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.judging.tally import SweepTally
from cerata.fault_injection.simulation.simulated_world import SeededBytes, VirtualClock
from cerata.fault_injection.stories.engine_workloads import PATH, RING_SIZE

from ..operations import publish
from .handle_under_test import draft

SECONDS_MAX = 2.0
MEMORY_MAX = 64 << 20


class Patch(msgspec.Struct, frozen=True, array_like=True):
    """Bytes to write at an offset, which counts from the file's start and wraps at its end."""

    offset: int
    data: bytes


class Unwanted(Exception):
    """Reading a hostile file had a forbidden effect."""


class _Blind:
    """A hasher with a constant digest, so that every check holds."""

    def update(self, _: object) -> "_Blind":
        return self

    def digest(self, length: int = 32) -> bytes:
        return bytes(length)


@contextmanager
def blind() -> Generator[None, None, None]:
    """Make every check of the format hold: each takes its hasher by this name."""
    with mock.patch.object(checks, "blake3", return_value=_Blind()):
        yield


def _storage(data: bytes) -> MemoryStorage:
    storage = MemoryStorage()
    node = storage._nodes[PATH] = MemoryNode(1)  # pyright: ignore[reportPrivateUsage]
    node.data = bytearray(data)
    return storage


@cache
def specimen() -> bytes:
    """Return a file with a segment, a spill, keys, attachments, a checkpoint and a full ring."""
    storage = MemoryStorage()
    environment = Environment(storage, VirtualClock(), SeededBytes("decoders"))
    values = bytes(64)
    vector = Embedding("s", "f4", 16, Attachment(hash_bytes(values), len(values)))
    unknown = UnknownBody(kind="thing", kind_version=3, data=b"\x80")
    with blind():
        log = open_log(PATH, environment=environment, ring_bytes=RING_SIZE)
        log.append(
            [draft("a"), Draft(PutFrame(text="b", metadata={"x": [1, {"y": None}]}))], key="k"
        )
        log.append([Draft(PutFrame(text="c", embedding=vector), attachments=(values,))])
        log.append([draft("large", 20_000), Draft(unknown, causation=-1)])
        publish(log)
        log.append([draft("d", 900)], key="l")
        log.append([draft("e", 20_000)])
        log.append([draft("f")])
        log.close()
    return bytes(storage._nodes[PATH].data)  # pyright: ignore[reportPrivateUsage]


def patched(patches: Iterable[Patch]) -> bytes:
    """Return the specimen with some of its bytes replaced."""
    data = bytearray(specimen())
    for patch in patches:
        offset = patch.offset % len(data)
        data[offset : offset + len(patch.data)] = patch.data[: len(data) - offset]
    return bytes(data)


def read_everything(data: bytes) -> int:
    """Open a file whose checks all hold, read all of its events, verify and salvage it.

    Returns the number of typed errors. Raises `Unwanted`.
    """
    refused = 0
    # Processor time, since the load of the machine is not the file's doing.
    started = time.process_time()
    for salvage in (False, True):
        environment = Environment(_storage(data), VirtualClock(), SeededBytes("reader"))
        with blind(), _no_code():
            try:
                with open_log(PATH, environment=environment, mode="r", salvage=salvage) as log:
                    refused += _read(log, salvage=salvage)
            except CerataError:
                refused += 1
            except BaseException as error:
                if not isinstance(error, Exception) and "Panic" not in type(error).__name__:
                    raise
                raise Unwanted(f"{repr(error)[-120:]} instead of a typed error") from error
    seconds = time.process_time() - started
    if seconds > SECONDS_MAX:
        raise Unwanted(f"reading took {seconds:.1f} s")
    return refused


def _read(log: Log, *, salvage: bool) -> int:
    refused = 0
    try:
        for event in salvaged_events(log) if salvage else log.read():
            _ = event.payload, event.leaf
            try:
                _ = event.body
            except CerataError:
                refused += 1
    except CerataError:
        refused += 1
    verify_log(log)
    return refused


_CODE = frozenset({"compile", "exec", "marshal.loads", "pickle.find_class"})
"""The audit events by which the interpreter reports that bytes become code."""


class _Guard:
    """An audit hook that refuses code while it is on; Python cannot remove a hook."""

    def __init__(self) -> None:
        self.on = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if self.on and event in _CODE:
            raise Unwanted(f"bytes of a file were to be run ({event})")


_guard = cache(_Guard)


@contextmanager
def _no_code() -> Generator[None, None, None]:
    guard = _guard()
    guard.on = True
    try:
        yield
    finally:
        guard.on = False


@dataclass(slots=True)
class FuzzTally(SweepTally):
    """Counts of a run; ``finds`` are the patches that caused problems."""

    files: int = 0
    refused: int = 0
    seconds_max: float = 0.0
    memory_max: int = 0
    finds: list[list[Patch]] = field(default_factory=list[list[Patch]])

    def summary(self) -> str:
        return (
            f"{self.files:,} hostile files, {self.refused:,} refused with a typed error; the"
            f" slowest took {self.seconds_max:.2f} s, the largest"
            f" {self.memory_max / (1 << 20):.1f} MiB; {len(self.problems)} problems"
        )


_NUMBERS = (0, 1, 2, 255, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, (1 << 64) - 1)


def draw(random: Random, used: Sequence[int]) -> list[Patch]:
    """Draw a few patches: random bytes, edge values of integers, pieces of other places."""
    patches: list[Patch] = []
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        offset = random.choice(used)
        kind = random.randrange(4)
        if kind == 0:
            data = bytes([random.randrange(256)])
        elif kind == 1:
            size = random.choice((1, 2, 4, 8))
            number = random.choice(_NUMBERS) % (1 << 8 * size)
            data = number.to_bytes(size, "big" if random.random() < 0.5 else "little")
        elif kind == 2:
            start = random.choice(used)
            data = specimen()[start : start + random.randrange(1, 64)]
        else:
            data = random.randbytes(random.randrange(1, 16))
        patches.append(Patch(offset, data))
    return patches


def fuzz(count: int, *, seed: int = 0, problems_max: int = 20) -> FuzzTally:
    """Read ``count`` hostile files, drawn by ``seed``."""
    tally = FuzzTally()
    random = Random(seed)
    used = [offset for offset, byte in enumerate(specimen()) if byte]
    # Load every lazy module now, while bytes may still become code.
    with blind():
        open_log(
            PATH, environment=Environment(_storage(specimen())), mode="r", salvage=True
        ).close()
    read_everything(specimen())
    tracemalloc.start()
    try:
        while tally.files < count and len(tally.problems) < problems_max:
            patches = draw(random, used)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            started = time.process_time()
            tally.files += 1
            try:
                tally.refused += read_everything(patched(patches)) > 0
                memory = tracemalloc.get_traced_memory()[1] - before
                if memory > MEMORY_MAX:
                    raise Unwanted(f"reading took {memory:,} bytes of memory")
                tally.memory_max = max(tally.memory_max, memory)
            except Unwanted as problem:
                tally.finds.append(patches)
                tally.problems.append(f"file {tally.files}: {problem}")
            tally.seconds_max = max(tally.seconds_max, time.process_time() - started)
    finally:
        tracemalloc.stop()
    return tally
