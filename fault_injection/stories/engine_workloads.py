"""Short programs over the real engine, recorded on the simulated disk.

Owns the process that runs them, its recovery, and turning a run into a `Story`: its trace, and the
model of the events written. Leaves out the other operations (tests/crash).
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from cerata.engine.disk.storage import Buffer, Storage
from cerata.engine.events import Draft, PutFrame
from cerata.engine.format.extent import ExtentKind
from cerata.engine.head import Appended
from cerata.engine.log import Log
from cerata.engine.open import open_log

from ..crash_states.operations import SECTOR, AnyOperation, Mark, Name
from ..judging.campaign import Story
from ..judging.model import Model, ModelBatch, ModelEvent
from ..judging.oracle import Finding
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


def recover(world: World, process: SimulatedProcess, path: str) -> Log:
    """Open a crashed file for writing, and check the bytes that recovery set aside.

    Raises:
        Finding: recovery cut bytes and did not set them aside, or set other bytes aside.
    """
    log = open_in_world(world, process, path)
    report = log.report
    if report.cut_bytes and report.cut_offset is not None:
        quarantine = log.toc().quarantine
        if not quarantine or quarantine[-1].length < report.cut_bytes:
            raise Finding("O4", f"{report.cut_bytes} bytes were cut and not set aside")
        # Recovery zeroes the first sector of the tail; the rest is still in the ring to compare
        # with. Read through the file, so that a `Reading` records this read too.
        start = report.cut_offset + SECTOR
        stop = report.cut_offset + report.cut_bytes
        body = log.file.read_extent(quarantine[-1], ExtentKind.QUARANTINE)
        if start < stop <= log.page.ring_end:
            cut = log.file.file.read_at(start, stop - start)
            if body[-len(cut) :] != cut:
                raise Finding("O4", "the bytes set aside are not the bytes that were cut")
    return log


@cache
def text_of(size: int, seed: int) -> str:
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
    session.append([frame(text_of(1_600, len(session.written)))])


Act = Callable[[Session], None]


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


def record(
    acts: Sequence[str],
    *,
    alphabet: Mapping[str, Act],
    sync: str | int = "commit",
    monitor: OrderingMonitor | None = None,
    seed: int = 0,
    start: Start | None = None,
) -> Story:
    """Run operations on a store, by default an empty store, and return their story.

    ``alphabet`` has the operations by name.

    Raises:
        Finding: the undisturbed run already differs from the appended batches.
    """
    start = start or Start(fresh_image())
    world = world_of(start.image, seed=seed)
    session = Session(world, monitor, sync, [*start.written])
    for number, name in enumerate(acts, start=1):
        world.disk.step = f"{number}:{name}"
        alphabet[name](session)
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
