"""A tiny log for testing the harness itself: one event a record, one record a group of sectors.

It keeps the rules that the harness checks, and breaks any of them on request, so that the tests
can show that each breach is noticed. It shares no code with the engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from blake3 import blake3

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import LockName, StorageFile
from cerata.fault_injection.judging.model import Model, ModelBatch, ModelEvent

LOG_ID = b"toy log, 16 byte"
SECTOR = 512
HEADER = 56


@dataclass(frozen=True, slots=True)
class ToyEvent:
    """An event as the toy shows it; it is its own header."""

    seq: int
    payload_bytes: bytes | None
    recorded: int = 0
    clock: int | None = None
    type: str = "toy"
    version: int = 1
    index: int = 0
    count: int = 1
    causation: int | None = None
    salt: bytes | None = b"s" * 16
    erased: bytes | None = None

    @property
    def header(self) -> "ToyEvent":
        return self


@dataclass(frozen=True, slots=True)
class ToyHead:
    seq: int
    chain: bytes
    root: bytes


@dataclass(frozen=True, slots=True)
class ToyBugs:
    """What the toy does wrong."""

    ack_before_sync: bool = False
    sync_every_second: bool = False
    body_unchecked: bool = False
    previous_unchecked: bool = False
    length_unchecked: bool = False
    no_lock: bool = False
    stored_chain: bool = False


@dataclass(slots=True)
class ToyLog:
    """Records of [seq 8 | length 8 | previous check 16 | own check 16 | 8 spare | payload]."""

    file: StorageFile
    environment: Environment
    bugs: ToyBugs = ToyBugs()
    end: int = 0
    last: bytes = b"\0" * 16
    payloads: list[bytes] = field(default_factory=list[bytes])
    appends: int = 0

    @classmethod
    def open(cls, environment: Environment, path: str, bugs: ToyBugs | None = None) -> "ToyLog":
        if environment.storage.identity(path) is None:
            file = environment.storage.create(path)
            environment.storage.sync_dir(path)
        else:
            file = environment.storage.open(path, mode="rw")
        log = cls(file, environment, bugs or ToyBugs())
        log.refresh()
        return log

    @property
    def head(self) -> ToyHead:
        model = toy_model(self.payloads)
        count = len(self.payloads)
        return ToyHead(count, model.chains[count], model.root(count))

    def read(self, first: int = 1, last: int | None = None) -> Iterator[ToyEvent]:
        for seq, payload in enumerate(self.payloads, start=1):
            yield ToyEvent(seq, payload)

    def refresh(self) -> None:
        """Accept records from the known end to the first that is not right."""
        while True:
            header = self.file.read_at(self.end, HEADER)
            length = int.from_bytes(header[8:16], "little")
            if len(header) < HEADER or length > 1 << 20:
                return
            if int.from_bytes(header[:8], "little") != len(self.payloads) + 1:
                return
            payload = self.file.read_at(self.end + HEADER, length)
            if len(payload) < length and not self.bugs.length_unchecked:
                return
            if header[16:32] != self.last and not self.bugs.previous_unchecked:
                return
            check = self._check(self.end, header[:32], payload)
            if check != header[32:48] and not self.bugs.body_unchecked:
                return
            self._accept(header[32:48], payload)

    def _check(self, offset: int, header: bytes, payload: bytes) -> bytes:
        return blake3(offset.to_bytes(8, "little") + header + payload).digest(length=16)

    def _accept(self, check: bytes, payload: bytes) -> None:
        self.payloads.append(payload)
        self.last = check
        self.end += -(-(HEADER + len(payload)) // SECTOR) * SECTOR

    def append(self, payload: bytes) -> int:
        """Append one event; durable on return."""
        if not self.bugs.no_lock:
            while not self.file.try_lock(LockName.WRITER, exclusive=True):
                self.environment.clock.sleep(50e-6)
        self.refresh()
        seq = len(self.payloads) + 1
        header = seq.to_bytes(8, "little") + len(payload).to_bytes(8, "little") + self.last
        check = self._check(self.end, header, payload)
        record = (header + check).ljust(HEADER, b"\0") + payload
        offset = self.end
        self.file.write_at(offset, record)
        self._accept(check, payload)
        if not self.bugs.no_lock:
            self.file.unlock(LockName.WRITER)
        self.appends += 1
        skips = self.bugs.sync_every_second and self.appends % 2
        if not skips and not self.bugs.ack_before_sync:
            self.file.sync()
        return seq


def toy_model(payloads: list[bytes]) -> Model:
    """Return the model of these payloads, one event a batch."""
    return Model(
        LOG_ID,
        [
            ModelBatch((ModelEvent.of(ToyEvent(seq, payload)),))
            for seq, payload in enumerate(payloads, start=1)
        ],
    )
