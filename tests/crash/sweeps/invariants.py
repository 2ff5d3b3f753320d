"""Promises besides crash states: about files, locks, forks, failed syncs, interrupts and folds.

Owns one small check for each, quick enough for every run; each yields its findings. They are the
detectors of planted bugs that no crash state shows. Leaves out sweeps over every place at which
these faults can strike: the engine's tests do those.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from cerata.engine.disk.storage import LockName, OsStorage
from cerata.engine.errors import CerataError, Closed, Corrupt, OutcomeUnknown
from cerata.engine.format.toc import Ref
from cerata.engine.integrity import HASH_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file import log_state
from cerata.engine.log_file.ring import Walk, walk
from cerata.engine.open import open_log
from cerata.fault_injection.crash_states.operations import SECTOR
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    frame,
    fresh_image,
    open_in_world,
    world_of,
)
from cerata.memory.store import Store, open_store
from cerata.memory.values.options import OpenOptions
from cerata.replay.checkpoint import chunk_refs

from ..injected_exceptions import Strikes
from ..operations import fresh_world
from ..system_calls import SHORT, Fault, FaultySystem
from .bench import forked

_ENGINE = os.path.dirname(sys.modules[Log.__module__].__file__ or "")
_LAP = "lap " * 1_000
_INTERRUPT_EVERY = 5
"""One in this many bytecodes of an append is struck; `exception_sweep` strikes all of them."""


def check_short_writes() -> Iterator[Finding]:
    """Write to a real file through a system call that takes a half: all bytes must arrive."""
    data = bytes(range(256)) * 4
    system = FaultySystem()
    with tempfile.TemporaryDirectory() as folder, system.installed():
        file = OsStorage().create(str(Path(folder) / "file"))
        try:
            with system.armed(Fault(1, SHORT, forever=True)):
                file.write_at(100, data)
            if file.read_at(0, file.size()) != bytes(100) + data:
                yield Finding("O4", "the file differs from the data that a write stored in parts")
        finally:
            file.close()


def check_locks() -> Iterator[Finding]:
    """Lock a real file twice from one process, and close another descriptor of it in between."""
    if sys.platform != "linux":
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = str(Path(folder) / "file")
        storage = OsStorage()
        storage.create(path).close()
        first, second = (storage.open(path, mode="rw") for _ in range(2))
        stack.callback(first.close)
        stack.callback(second.close)
        first.try_lock(LockName.WRITER, exclusive=True)
        storage.open(path, mode="rw").close()
        if second.try_lock(LockName.WRITER, exclusive=True):
            yield Finding("F5", "two open files hold the writer lock at once")


def check_fork() -> Iterator[Finding]:
    """Append in a forked child through its parent's handle: the handle must refuse."""
    if not hasattr(os, "fork"):
        return
    world = fresh_world()
    log = open_in_world(world, world.disk.process(), PATH)

    def append() -> None:
        with suppress(Closed):
            log.append([frame("from the child")])
            raise RuntimeError

    _, status = os.waitpid(forked(append), 0)
    if status:
        yield Finding("F4", "a forked child appended through its parent's handle")


def check_changed_files() -> Iterator[Finding]:
    """Cut an open file short, and write an older copy over it: an append must be refused."""
    for how in ("cut short", "older"):
        world = fresh_world()
        log = open_in_world(world, world.disk.process(), PATH)
        data = world.disk.names[PATH].data
        log.append([frame("in both")])
        older = bytes(data)
        log.append([frame("in one")])
        data[:] = older if how == "older" else data[:-SECTOR]
        try:
            log.append([frame("after it")])
        except Corrupt:
            continue
        yield Finding("O4", f"an append to a file that was {how} while it was open succeeded")


def check_wrapped_ring() -> Iterator[Finding]:
    """Let a writer go around the ring while a reader walks it: the reader must read again."""
    world = fresh_world()
    writer = open_in_world(world, world.disk.process(), PATH)
    writer.append([frame("before")])
    environment = world.environment(world.disk.process())
    reader = open_log(PATH, mode="r", environment=environment)
    writer.append([frame("news")])

    def overtaken(*arguments: Any) -> Walk:
        if not laps:
            laps.append(writer.page.ring_size // len(_LAP) + 2)
            for _ in range(laps[0]):
                writer.append([frame(_LAP)])
        return walk(*arguments)

    laps: list[int] = []
    with mock.patch.object(log_state, "walk", overtaken):
        try:
            seq = reader.refresh().seq
        except CerataError as error:
            yield Finding("O1", f"a reader that a writer overtook raised {error!r}")
            return
    if not laps or seq != writer.head.seq:
        yield Finding("O1", f"a reader that a writer overtook is at event {seq}")


def check_failed_sync() -> Iterator[Finding]:
    """Make one sync fail: the append is not acknowledged, and the handle refuses all later calls.

    The system may have dropped the written data and call the next sync a success.
    """
    world = fresh_world()
    log = open_in_world(world, world.disk.process(), PATH)
    world.disk.fail_sync = 1
    for number, expected in enumerate(("acknowledged the append", "accepted a later append")):
        try:
            log.append([frame(f"note {number}")])
        except OutcomeUnknown:
            continue
        except CerataError as error:
            yield Finding("O1", f"a failed sync is reported as {error!r}")
        else:
            yield Finding("O1", f"a sync failed, and the handle {expected}")


def check_interrupts() -> Iterator[Finding]:
    """Interrupt an append at some of its bytecodes: the handle must show the file's events."""
    fresh_image()
    strikes = Strikes(_ENGINE)
    strikes.run(_appending()[2])
    firsts = {site: place for place, site in reversed(list(enumerate(strikes.sites)))}
    places = sorted(place for site, place in firsts.items() if not strikes.leaves(site))
    for place in places[::_INTERRUPT_EVERY]:
        world, log, append = _appending()
        with suppress(KeyboardInterrupt):
            strikes.run(append, at=place)
        try:
            log.append([frame("after")])
            read = [event.payload_bytes for event in log.read()]
        except CerataError:
            continue  # A handle may refuse, but must not lie.
        except Exception as error:  # noqa: BLE001 - any error is a finding
            yield Finding("F2", f"interrupted at {place}, the next append raised {error!r}")
            return
        aside = open_in_world(world, world.disk.process(), PATH)
        in_file = [event.payload_bytes for event in aside.read()]
        if read != in_file or len(in_file) not in (2, 3):
            counts = f"the handle shows {len(read)} events, the file has {len(in_file)}"
            yield Finding("F2", f"interrupted at {place}: {counts}")
            return


def _appending() -> tuple[World, Log, Callable[[], object]]:
    """Return a world, its log with one event, and a function that appends another."""
    world = world_of(fresh_image(), record=False)
    log = open_in_world(world, world.disk.process(), PATH)
    log.append([frame("before")])
    return world, log, lambda: log.append([frame("meanwhile")])


def check_folds() -> Iterator[Finding]:
    """Run a store's story, and compare its projections with a replay of the log at each step.

    The steps: in the writing store, in the store reopened from a checkpoint, and with a flipped bit
    in a saved chunk, from which derived data is rebuilt.
    """
    world = fresh_world()
    with _open(world) as store:
        notes = [store.put_frame(f"note {number}", tags=["t"]) for number in range(6)]
        store.history.tag("before")
        store.checkpoint()
        store.supersede(notes[0], "another note")
        store.delete(notes[1])
        yield from _compared(store, "in the writing store")
        store.checkpoint()
    with _open(world) as store:
        yield from _compared(store, "in the reopened store")
        expected = store.stream.digests(replay=True)
    image = bytes(world.disk.names[PATH].data)
    chunk = max(_chunks(world), key=lambda ref: ref.length)
    for place in range(chunk.offset + HASH_SIZE, chunk.offset + chunk.length, 6):
        copy = bytearray(image)
        copy[place] ^= 1
        world.disk.put(PATH, copy)
        with _open(world) as store:
            if store.stream.digests() != expected:
                yield Finding("O10", f"a saved chunk is accepted with a bit flipped at {place}")


def _chunks(world: World) -> list[Ref]:
    log = open_in_world(world, world.disk.process(), PATH)
    toc = log.toc()
    refs = [ref for key in toc.projections for ref, _ in chunk_refs(log.file, toc.saved(key))]
    log.close()
    return refs


def _compared(store: Store, when: str) -> Iterator[Finding]:
    try:
        saved = store.stream.digests()
        replayed = store.stream.digests(replay=True)
    except Exception as error:  # noqa: BLE001 - any error is a finding
        yield Finding("O10", f"{when}, folding raised {error!r}")
        return
    wrong = sorted(name for name, digest in replayed.items() if saved.get(name) != digest)
    if wrong:
        yield Finding("O10", f"{when}, {', '.join(wrong)} differ from a replay")


def _open(world: World) -> Store:
    environment = world.environment(world.disk.process())
    return open_store(PATH, environment=environment, options=OpenOptions(ring_bytes=RING_SIZE))


PROMISES = (
    check_short_writes,
    check_locks,
    check_fork,
    check_changed_files,
    check_wrapped_ring,
    check_failed_sync,
    check_folds,
    check_interrupts,
)
