"""The operations of stories over the engine, all sequences of them, and the longer stories.

Short sequences find most bugs: CrashMonkey (OSDI 2018) found nearly all of its bugs with three
operations or fewer.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from cerata.engine.copies.backup import back_up
from cerata.engine.copies.compact import Retention, Steps
from cerata.engine.copies.compact import compact as compact_log
from cerata.engine.errors import Locked
from cerata.engine.events import DeleteFrame, Draft, Erase, PutFrame, PutTag, SupersedeFrame
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, Toc
from cerata.engine.log import Log
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.engine.open import open_log
from cerata.fault_injection.judging.campaign import Story
from cerata.fault_injection.judging.wire_check import Written
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    Act,
    Session,
    append_long,
    append_small,
    frame,
    fresh_image,
    model_of,
    story_in,
    text_of,
    world_of,
)
from cerata.fault_injection.stories.engine_workloads import record as record_story
from cerata.replay.fold import silent


def append_batch(session: Session) -> None:
    """Three events in one batch, with maps, a key and a reference."""
    count = len(session.written)
    tag = PutTag(tag=f"t{count}", at=0)
    metadata = {"z": 1, "a": {"y": [1, 2.5, None], "b": True}, "m": "text"}
    session.append(
        [
            Draft(PutFrame(text="doc", metadata=metadata), actor="agent"),
            Draft(PutFrame(text=text_of(300, count), parent=-1), causation=-1),
            Draft(tag, scope=(("tenant", "default"), ("run_id", count)), correlation="c"),
        ],
        key=f"key {count}",
    )


def append_quarter(session: Session) -> None:
    """Just under a quarter of the ring: a few of them wrap around it."""
    session.append([frame(text_of(14_000, len(session.written)))])


def append_large(session: Session) -> None:
    """More than a quarter of the ring: the payload goes to a separate extent."""
    session.append([frame(text_of(20_000, len(session.written)))])


def delete(session: Session) -> None:
    """Close the newest frame; an event like any other to the log."""
    session.append([Draft(DeleteFrame(frame=max(1, session.log.head.seq)))])


def supersede(session: Session) -> None:
    """A new frame in an old frame's place: two events that refer to each other in one batch."""
    old = max(1, session.log.head.seq)
    session.append([frame(f"instead of {old}"), Draft(SupersedeFrame(old=old, new=-1))])


def tag(session: Session) -> None:
    """Name the head."""
    name = f"tag{len(session.written)}"
    session.append([Draft(PutTag(tag=name, at=session.log.head.seq))])


def seal(session: Session) -> None:
    """Move the ring's events into a segment."""
    session.settle(session.log.seal)


def grow(session: Session) -> None:
    """Seal, and continue in a new ring behind the data."""
    session.settle(partial(session.log.seal, ring_bytes=RING_SIZE))


def checkpoint(session: Session) -> None:
    """Seal, and publish a projection's chunk with its entry, as a store's checkpoint does."""
    session.settle(partial(publish, session.log))


def publish(log: Log) -> None:
    """Seal, and save one chunk of a projection."""
    head = log.head.seq

    def build(flip: Flip, _toc: Toc) -> dict[str, dict[str, Any]]:
        chunk = flip.add(ExtentKind.CHUNK, b"state" * 100, 1, head)
        ledger = [LedgerEntry(head, bytes(32))]
        states = {
            # The second shares manifest and ledger with the first.
            "model/1": StateDraft(head, bytes(32), [[chunk]], ledger),
            "model/2": StateDraft(head, bytes(32), [[chunk]], ledger),
        }
        return {key: saved.to_entry() for key, saved in flip.add_states(states).items()}

    log.publish_projections(build)


def backup(session: Session) -> None:
    """Copy the log into a new file, which is complete once it has its name."""
    path = f"copy{len(session.copies)}.cera"
    back_up(session.log, path)
    session.copies[path] = session.world.disk.names[path].number
    session.acknowledge(session.log.head.seq, path)


def compact(session: Session) -> None:
    """Put a copy without dead space in the place of the file, unless another process does."""
    with suppress(Locked):
        compact_log(session.log, _steps(lambda: None))
        session.acknowledge(session.log.head.seq)


def prune(session: Session) -> None:
    """Compact the file, and give up the contents of its first event."""
    if not session.log.head.seq or session.pruned:
        compact(session)
        return
    session.before = model_of(session.world, session.written)
    draft = Draft(Erase(targets=((1, 1),), reason="retention", horizon=1))
    retention = Retention(np.array([1]), (draft,))
    session.written.append(Written((draft,)))
    session.pruned.add(1)
    compact_log(session.log, _steps(lambda: retention))
    session.pruned_file = session.world.disk.names[PATH].number
    session.acknowledge(session.log.head.seq)


def _steps(retain: Callable[[], Retention | None]) -> Steps:
    # Short stories leave little dead space; without a swap a crash would have nothing to hit.
    return Steps(retain, publish, silent, lambda: False, any_size=True)


def read(session: Session) -> None:
    """Another process opens for reading and reads all events, which must stay."""
    reader = session.world.disk.process()
    # A reader syncs before it returns events: its syncs count for all writers.
    storage = None if session.monitor is None else session.monitor.storage(reader)
    log = open_log(PATH, mode="r", environment=session.world.environment(reader, storage))
    count = sum(1 for _ in log.read())
    session.acknowledge(count)
    log.close()
    reader.kill()


def reopen(session: Session) -> None:
    """Close cleanly and open again."""
    session.settle(session.log.close)
    session.end()
    session.open()


def kill(session: Session) -> None:
    """Die without closing, and open in a new process."""
    session.end()
    session.open()


def clock_back(session: Session) -> None:
    """The clock is set back by an hour; recorded times must rise all the same."""
    session.world.clock.elapsed_us -= 3_600_000_000


ALPHABET: dict[str, Act] = {
    "small": append_small,
    "long": append_long,
    "batch": append_batch,
    "large": append_large,
    "delete": delete,
    "supersede": supersede,
    "tag": tag,
    "seal": seal,
    "grow": grow,
    "checkpoint": checkpoint,
    "backup": backup,
    "compact": compact,
    "prune": prune,
    "read": read,
    "reopen": reopen,
    "kill": kill,
}
"""The operations of sequences."""

EXTRA: dict[str, Act] = {"quarter": append_quarter, "clock back": clock_back}
"""Operations of the longer stories only."""


def sequences(length_max: int) -> Iterator[tuple[str, ...]]:
    """Yield all sequences of operations, short sequences first."""
    for length in range(1, length_max + 1):
        yield from product(ALPHABET, repeat=length)


def fresh_world() -> World:
    """Return a world with an empty store in it."""
    return world_of(fresh_image())


record = partial(record_story, alphabet=ALPHABET | EXTRA)
"""Run operations by their names; see `cerata.fault_injection.stories.engine_workloads.record`."""


def record_creation(*, monitor: OrderingMonitor | None = None) -> Story:
    """Create a store and append one event: the trace from the first byte on."""
    world = World(seed=2)
    session = Session(world, monitor)
    append_small(session)
    story = story_in(world, model_of(world, session.written), "creation")
    session.process.kill()
    return story


STORIES: tuple[tuple[tuple[str, ...], str | int], ...] = (
    (("quarter",) * 6, "commit"),
    (("quarter", "small", "long", "kill") * 2, "commit"),
    (("small", "long", "small", "small"), 1 << 20),
    (("long", "small", "batch", "seal", "small"), 1 << 20),
    (("small", "long", "reopen", "batch"), "always"),
    (("small", "clock back", "small", "kill", "clock back", "batch"), "commit"),
    (
        ("quarter", "grow", "quarter", "quarter", "quarter", "kill", "grow", "large", "small"),
        "commit",
    ),
    (("small", "grow", "long", "small", "grow", "small"), 1 << 20),
)
"""Longer stories and their sync policies: around the ring, unsynced groups, proofs, the clock."""
