"""Whole stores on the simulated disk: recording a workload's story, and judging recovered stores.

Owns the session that runs a workload's operations, its `Story`, and `Judge`: the opener that
recovers the log, and checks the whole store over it, once for each distinct state. Leaves out the
choice of stories (`crash_test`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from blake3 import blake3

from cerata.engine.format.extent import EXTENT_HEADER_SIZE, extent_size
from cerata.engine.log import Log
from cerata.memory.batch.session import WriteSession
from cerata.memory.store import Store, open_store
from cerata.memory.values.moved_references import attachments_in
from cerata.memory.values.options import OpenOptions
from cerata.projections.registry import Registry
from cerata.replay.checkpoint import chunk_refs

from ..judging.campaign import Story
from ..judging.model import Model, ModelEvent
from ..judging.oracle import Finding
from ..judging.past_states import check_past
from ..simulation.disk import SimulatedProcess
from ..simulation.file_layout import FileGeometry
from ..simulation.simulated_world import World
from ..simulation.write_order_monitor import OrderingMonitor
from .engine_workloads import PATH, model_from, recover, story_in, world_of
from .workload import COMMON, RING_BYTES, Workload


@dataclass(slots=True)
class StoreSession:
    """One simulated process at work on a store: runs a workload's operations by name."""

    world: World
    workload: Workload
    monitor: OrderingMonitor = field(default_factory=lambda: OrderingMonitor(FileGeometry()))
    process: SimulatedProcess = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Start a process and open the store in it."""
        self.process = self.world.disk.process()
        self.store = open_store(
            PATH,
            environment=self.world.environment(self.process, self.monitor.storage(self.process)),
            projections=self.workload.projections,
            options=OpenOptions(ring_bytes=RING_BYTES, sync=self.workload.sync),
        )

    def run(self, name: str) -> None:
        """Run one operation, and acknowledge the head if all of its writes are durable."""
        match name:
            case "checkpoint":
                self.store.checkpoint()
            case "reopen":
                self.store.close()
                self.process.kill()
                self.open()
            case "kill":
                self.process.kill()
                self.open()
            case _:
                self.workload.operations()[name](self.store)
        if not isinstance(self.workload.sync, int) or name in COMMON:
            self.acknowledge(self.store.head.seq)

    def acknowledge(self, seq: int) -> None:
        """Record that everything up to ``seq`` is durable."""
        self.world.disk.acknowledge(seq, self.process.name)
        self.monitor.acknowledge((1, self.world.disk.names[PATH].number), seq)


def prepared_image(workload: Workload) -> bytes:
    """Return the bytes of the store that each story of a workload starts from."""
    session = StoreSession(World(seed=1), workload)
    workload.prepare(session.store)
    session.store.close()
    return bytes(session.world.disk.names[PATH].data)


def record_workload(
    workload: Workload, operations: Sequence[str], base: bytes, *, seed: int = 0
) -> Story:
    """Run operations on a copy of the store in ``base`` and return their story.

    An error of an operation passes through.

    Raises:
        Finding: the opening of the prepared store lost or invented an event.
    """
    world = World(seed)
    world.disk.put(PATH, base)
    workload.random = Random(seed)
    session = StoreSession(world, workload)
    acked = session.store.head.seq
    for number, name in enumerate(operations, start=1):
        world.disk.step = f"{number}:{name}"
        session.run(name)
    trace = tuple(world.disk.trace)
    session.process.kill()
    aside = world_of(bytes(world.disk.names[PATH].data), record=False)
    log = recover(aside, aside.disk.process(), PATH)
    model = model_from(log.log_id, [ModelEvent.of(event) for event in log.read()])
    return story_in(world, model, " ".join(operations), base=base, acked=acked, trace=trace)


class Judge:
    """Opens crash images of one workload's stories for writing, and checks the recovered stores.

    The checks run once for each state that differs in its events or in the checkpoints of its
    projections, byte for byte. ``asked`` counts them. ``model`` is that of the current story.
    """

    def __init__(self, workload: type[Workload]) -> None:
        self._workload = workload
        self.model: Model | None = None
        self._checked: set[bytes] = set()
        self.asked = 0

    def open(self, world: World, process: SimulatedProcess, path: str) -> Log:
        """Recover the log, and check the store over it if its state is new; a campaign's `Opener`.

        Raises:
            Finding: a check failed.
        """
        log = recover(world, process, path)
        state = self._state(log, has_attachments=self._workload.has_attachments)
        if state not in self._checked:
            self._check(log)
            # Added last: a state that fails a check fails each time.
            self._checked.add(state)
        return log

    @staticmethod
    def _state(log: Log, *, has_attachments: bool = False) -> bytes:
        """Return a digest of everything that the checks depend on: the events, and the saved folds.

        The folds and the attachments are read through the file, so that a `Reading` records these
        reads too.
        """
        digest = blake3(log.head.chain)
        for event in log.read() if has_attachments else ():
            for attachment in attachments_in(event.body):
                digest.update(log.attachment(event.seq, attachment))
        toc = log.toc()
        for key in sorted(toc.projections):
            saved = toc.saved(key)
            digest.update(f"{key} {saved.seq} {saved.digest.hex()}".encode())
            refs = [ref for ref, _ in chunk_refs(log.file, saved)]
            for ref in (*refs, *([] if saved.ledger is None else [saved.ledger.extent])):
                # The check after the body, which a load reads, may lie in the next sector.
                extent = log.file.file.read_at(ref.offset, extent_size(ref.length))
                digest.update(extent[EXTENT_HEADER_SIZE : EXTENT_HEADER_SIZE + ref.length])
        return digest.digest()

    def _check(self, log: Log) -> None:
        self.asked += 1
        store = Store(WriteSession(log, None, Registry(self._workload.projections)))
        digests = store.stream.digests()
        replayed = store.stream.digests(replay=True)
        for name, digest in digests.items():
            if digest != replayed[name]:
                raise Finding("O10", f"{name} differs from a replay of the log")
        if self.model is not None:
            check_past(store, self.model, log.head.seq, self._workload.words)
        try:
            self._workload().check(store)
        except AssertionError as error:
            raise Finding("check", str(error) or "the workload's check failed") from error
