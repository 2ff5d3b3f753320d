"""Short programs over the real engine, recorded on the simulated disk.

Owns the alphabet of operations, all sequences up to a length over it, and turning a run into a
`Story`: its trace, and the model of the events written. Short sequences find most bugs: CrashMonkey
(OSDI 2018) found nearly all of its bugs with three operations or fewer.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from cerata.engine.backup import back_up
from cerata.engine.compact import Retention, Steps
from cerata.engine.compact import compact as compact_log
from cerata.engine.errors import Locked
from cerata.engine.events import DeleteFrame, Draft, Erase, PutFrame, PutTag, SupersedeFrame
from cerata.engine.file import Flip, StateDraft
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, Toc
from cerata.engine.head import Appended
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.storage import Buffer, Storage
from cerata.replay.fold import silent

from ..crash_states.operations import AnyOperation, Mark, Name
from ..judging.campaign import Story
from ..judging.model import Model, ModelBatch, ModelEvent
from ..judging.wire_check import Written, check_written
from ..simulation.disk import SimulatedDisk, SimulatedProcess
from ..simulation.simulated_world import World
from ..simulation.write_order_monitor import OrderingMonitor

PATH = "store.cera"
RING_SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledgement: this batch is in the log from ``first_seq`` on, durably."""

    first_seq: int
    batch: Written


@dataclass(frozen=True, slots=True)
class Start:
    """A store that stories begin with: its bytes, and the acknowledged batches in it."""

    image: bytes
    written: tuple[Written, ...] = ()

    @property
    def acked(self) -> int:
        return sum(len(batch.drafts) for batch in self.written)


@dataclass(slots=True)
class Session:
    """One simulated process at work on the store, for the operations.

    ``copies`` maps the backups that it wrote to their inode numbers. ``pruned`` are the events
    whose contents a compaction gave up.
    """

    world: World
    monitor: OrderingMonitor | None = None
    sync: str | int = "commit"
    written: list[Written] = field(default_factory=list[Written])
    acknowledgements: list[Acknowledgement] = field(default_factory=list[Acknowledgement])
    copies: dict[str, int] = field(default_factory=dict[str, int])
    pruned: set[int] = field(default_factory=set[int])
    before: Model | None = None
    """The events before their contents were given up."""
    pruned_file: int = 0
    """The inode number of the first file without these contents."""
    process: SimulatedProcess = field(init=False)
    log: Log = field(init=False)

    def judged(self, story: Story) -> Story:
        """Return a story with the events that its file must have: all contents, or the rest."""
        if self.before is not None and story.node < self.pruned_file:
            return replace(story, model=self.before)
        return story

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Start a process and open the store in it."""
        self.process = self.begin()
        storage: Storage = self.process
        if self.monitor is not None:
            storage = self.monitor.storage(storage)
        self.log = open_in_world(self.world, self.process, PATH, storage=storage, sync=self.sync)

    def begin(self) -> SimulatedProcess:
        """Return the process to open the store in."""
        return self.world.disk.process()

    def end(self) -> None:
        """Kill the process: it closed the store, or never will."""
        self.process.kill()

    def append(self, drafts: Sequence[Draft], *, key: str | None = None) -> Appended:
        """Append a batch, and record its acknowledgement if it is durable."""
        # Recorded first: a batch without an acknowledgement may survive all the same.
        written = Written(tuple(drafts), key)
        self.written.append(written)
        appended = self.log.append(drafts, key=key)
        if appended.durable:
            self.acknowledgements.append(Acknowledgement(appended.first_seq, written))
            self.acknowledge(appended.last_seq)
        return appended

    def acknowledge(self, seq: int, path: str = PATH) -> None:
        """Record that all events up to ``seq`` are durable in the file at a path."""
        node = self.world.disk.names[path].number
        self.world.disk.acknowledge(seq, self.process.name, node)
        if self.monitor is not None:
            self.monitor.acknowledge((1, node), seq)

    def settle(self, act: Callable[[], None]) -> None:
        """Run a function after which all written events are durable."""
        seq = self.log.head.seq
        act()
        self.acknowledge(seq)


def open_in_world(
    world: World,
    process: SimulatedProcess,
    path: str,
    *,
    storage: Storage | None = None,
    sync: str | int = "commit",
) -> Log:
    """Open a log as a process of the world; the `Opener` of campaigns over the engine."""
    return open_log(
        path,
        environment=world.environment(process, storage),
        ring_bytes=RING_SIZE,
        sync=sync,  # type: ignore[arg-type]
    )


@cache
def _text(size: int, seed: int) -> str:
    """Return text that does not compress to almost nothing."""
    return random.Random(seed).randbytes(size // 2).hex()


def frame(text: str) -> Draft:
    """Return the plainest event."""
    return Draft(PutFrame(text=text))


def append_small(session: Session) -> None:
    """One event, in one sector."""
    session.append([frame(f"note {len(session.written)}")])


def append_long(session: Session) -> None:
    """One event over four sectors, so that it can be torn between them."""
    session.append([frame(_text(1_600, len(session.written)))])


def append_batch(session: Session) -> None:
    """Three events in one batch, with maps, a key and a reference."""
    count = len(session.written)
    tag = PutTag(tag=f"t{count}", at=0)
    metadata = {"z": 1, "a": {"y": [1, 2.5, None], "b": True}, "m": "text"}
    session.append(
        [
            Draft(PutFrame(text="doc", metadata=metadata), actor="agent"),
            Draft(PutFrame(text=_text(300, count), parent=-1), causation=-1),
            Draft(tag, scope=(("tenant", "default"), ("run_id", count)), correlation="c"),
        ],
        key=f"key {count}",
    )


def append_quarter(session: Session) -> None:
    """Just under a quarter of the ring: a few of them wrap around it."""
    session.append([frame(_text(14_000, len(session.written)))])


def append_large(session: Session) -> None:
    """More than a quarter of the ring: the payload goes to a separate extent."""
    session.append([frame(_text(20_000, len(session.written)))])


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


Act = Callable[[Session], None]
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


@cache
def fresh_image(seed: int = 1) -> bytes:
    """Return the bytes of an empty store, created by the engine in a separate world."""
    world = World(seed)
    session = Session(world)
    session.log.close()
    return bytes(world.disk.names[PATH].data)


def world_of(image: Buffer, *, seed: int = 0, record: bool = True) -> World:
    """Return a world in which a file has these bytes."""
    world = World(seed, disk=SimulatedDisk(record=record))
    world.disk.put(PATH, image)
    return world


def story_in(
    world: World,
    model: Model,
    name: str,
    *,
    base: bytes = b"",
    acked: int = 0,
    trace: Sequence[AnyOperation] = (),
) -> Story:
    """Return the story of a world's only store: its trace so far, or ``trace``.

    The store existed before if it has a ``base``.
    """
    operations = tuple(trace or world.disk.trace)
    first, *moves = _files_at_path(operations, world.disk.names[PATH].number)
    story = Story(
        trace=operations,
        node=first[0],
        path=PATH,
        model=model,
        name=name,
        existing=bool(base),
        base=base,
        acked=acked,
    )
    heirs = frozenset(node for node, _ in moves)
    successors = tuple(
        Story(
            trace=operations,
            node=node,
            path=PATH,
            model=model,
            name=f"{name}: after compaction {number}",
            acked=max(acked, acked_before),
            replaces=before,
            heirs=frozenset(heir for heir in heirs if heir > node),
        )
        for number, ((before, _), (node, acked_before)) in enumerate(
            pairwise([first, *moves]), start=1
        )
    )
    return replace(story, copies=successors, heirs=heirs)


def _files_at_path(trace: Sequence[AnyOperation], last: int) -> list[tuple[int, int]]:
    """Return the files that the path named, with the seq that was acknowledged before each.

    ``last`` is the file that it names in the end.
    """
    files: list[tuple[int, int]] = []
    acked = 0
    for operation in trace:
        if isinstance(operation, Mark):
            acked = max(acked, operation.seq)
        elif isinstance(operation, Name) and (operation.verb, operation.path) == ("rename", PATH):
            files.append((operation.node, acked))
    # A disk gives its files numbers in order, and a file that was there before has the first.
    return [(1, 0), *files] if files else [(last, 0)]


def fresh_world() -> World:
    """Return a world with an empty store in it."""
    return world_of(fresh_image())


def record(
    acts: Sequence[str],
    *,
    sync: str | int = "commit",
    monitor: OrderingMonitor | None = None,
    seed: int = 0,
    start: Start | None = None,
) -> Story:
    """Run operations on a store, by default an empty store, and return their story.

    Raises:
        Finding: the undisturbed run already differs from the appended batches.
    """
    start = start or Start(fresh_image())
    world = world_of(start.image, seed=seed)
    session = Session(world, monitor, sync, [*start.written])
    for number, name in enumerate(acts, start=1):
        world.disk.step = f"{number}:{name}"
        (ALPHABET | EXTRA)[name](session)
    name = " ".join(acts) + ("" if sync == "commit" else f" (sync={sync})")
    model = model_of(world, session.written, session.pruned)
    story = story_in(world, model, name, base=start.image, acked=start.acked)
    session.process.kill()
    backups = (
        Story(story.trace, node, path, model, f"{name}: {path}")
        for path, node in session.copies.items()
    )
    copies = tuple(map(session.judged, (*story.copies, *backups)))
    return replace(session.judged(story), copies=copies)


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


def model_of(world: World, written: Sequence[Written], pruned: Collection[int] = ()) -> Model:
    """Read the undisturbed log, compare it with the appended batches, and model it.

    Raises:
        Finding: the log differs from the appended batches.
    """
    # On a copy: reading must not change a world that other processes continue to use.
    aside = world_of(bytes(world.disk.names[PATH].data), record=False)
    log = open_in_world(aside, aside.disk.process(), PATH)
    events = [ModelEvent.of(event) for event in log.read()]
    check_written(events, written, pruned)
    return model_from(log.log_id, events)


def model_from(log_id: bytes, events: Sequence[ModelEvent]) -> Model:
    """Group events into their batches."""
    model = Model(log_id)
    place = 0
    while place < len(events):
        count = max(1, events[place].count)
        model.append(ModelBatch(tuple(events[place : place + count])))
        place += count
    return model
