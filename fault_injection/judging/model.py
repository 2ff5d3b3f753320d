"""The log as the reliability claims describe it: a plain list of batches, hashed independently.

Written from the formulas alone, with a separate encoder and separate hashing; no code here calls
the engine or trusts a digest that it stored.

    commitment = H(salt16 ‖ payload)           leaf  = SHA-256(0x00 ‖ header ‖ commitment)
    node       = SHA-256(0x01 ‖ left ‖ right)  chain = H(0x02 ‖ chain before ‖ leaf)

H is BLAKE3-256; the header is the MessagePack array [seq, recorded, clock, type, version, index,
count, causation]; chain 0 is H(0x02 ‖ log id); the tree's left part is the largest power of two
below its size (RFC 6962).
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, TypeAlias

import msgspec
from blake3 import blake3


class HeaderLike(Protocol):
    """The fields of an event's header, as the public API shows them."""

    @property
    def seq(self) -> int: ...
    @property
    def recorded(self) -> int: ...
    @property
    def clock(self) -> int | None: ...
    @property
    def type(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def causation(self) -> int | None: ...


class EventLike(Protocol):
    """An event read back: its header, and its payload unless that was erased."""

    @property
    def header(self) -> HeaderLike: ...
    @property
    def salt(self) -> bytes | None: ...
    @property
    def payload_bytes(self) -> bytes | None: ...
    @property
    def erased(self) -> bytes | None:
        """The commitment, if the payload was erased."""
        ...


class ModelEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event as plain values; after an erasure, the commitment replaces salt and payload.

    In a case file, an array of its fields in this order.
    """

    seq: int
    recorded: int
    clock: int | None
    type: str
    version: int
    index: int
    count: int
    causation: int | None
    salt: bytes | None
    payload: bytes | None
    commitment: bytes | None = None

    @classmethod
    def of(cls, event: EventLike) -> "ModelEvent":
        """Copy the fields that the public API shows."""
        header = event.header
        return cls(
            header.seq,
            header.recorded,
            header.clock,
            header.type,
            header.version,
            header.index,
            header.count,
            header.causation,
            event.salt,
            event.payload_bytes,
            event.erased,
        )

    def leaf(self) -> bytes:
        """Return the event's leaf, computed from the bytes in this object."""
        commitment = self.commitment
        if self.payload is not None and self.salt is not None:
            commitment = blake3(self.salt + self.payload).digest()
        if commitment is None:
            raise ValueError(f"event {self.seq} has neither payload nor commitment")
        header = pack(
            [
                self.seq,
                self.recorded,
                self.clock,
                self.type,
                self.version,
                self.index,
                self.count,
                self.causation,
            ]
        )
        return sha256(b"\x00" + header + commitment).digest()


@dataclass(frozen=True, slots=True)
class ModelBatch:
    """Events that are in the log together or not at all."""

    events: tuple[ModelEvent, ...]

    @property
    def first_seq(self) -> int:
        return self.events[0].seq

    @property
    def last_seq(self) -> int:
        return self.events[-1].seq


class Model:
    """The whole history that a workload wrote, acknowledged or not.

    ``chains[n]`` and ``root(n)`` are those after n events.
    """

    def __init__(self, log_id: bytes, batches: Sequence[ModelBatch] = ()) -> None:
        self.log_id = log_id
        self.batches: list[ModelBatch] = []
        self.events: list[ModelEvent] = []
        self.leaves: list[bytes] = []
        self.chains: list[bytes] = [blake3(b"\x02" + log_id).digest()]
        self.ends: list[int] = [0]
        self._roots: dict[int, bytes] = {}
        for batch in batches:
            self.append(batch)

    def append(self, batch: ModelBatch) -> None:
        """Add a batch, which must continue the history."""
        for index, event in enumerate(batch.events):
            if event.seq != len(self.events) + 1:
                raise ValueError(f"event {event.seq} follows {len(self.events)}")
            if (event.index, event.count) != (index, len(batch.events)):
                raise ValueError(f"event {event.seq} has a wrong place in its batch")
            leaf = event.leaf()
            self.events.append(event)
            self.leaves.append(leaf)
            self.chains.append(blake3(b"\x02" + self.chains[-1] + leaf).digest())
        self.batches.append(batch)
        self.ends.append(len(self.events))

    def root(self, size: int) -> bytes:
        """Return the Merkle root of the first ``size`` events."""
        root = self._roots.get(size)
        if root is None:
            root = self._roots[size] = _root(self.leaves[:size])
        return root


def _root(leaves: Sequence[bytes]) -> bytes:
    """The definition in RFC 6962 section 2.1, unchanged."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + _root(leaves[:split]) + _root(leaves[split:])).digest()


Packable: TypeAlias = (
    "None | bool | int | float | str | bytes | Sequence[Packable] | Mapping[str, Packable]"
)


def pack(value: Packable) -> bytes:
    """Return the shortest MessagePack of a value, maps in the order of their names.

    Covers the part of the format that the log uses; an independent second opinion on determinism.
    """
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _pack_integer(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        if len(data) < 32:
            return bytes([0xA0 | len(data)]) + data
        return _sized(len(data), (0xD9, 0xDA, 0xDB)) + data
    if isinstance(value, bytes | bytearray | memoryview):
        return _sized(len(value), (0xC4, 0xC5, 0xC6)) + bytes(value)
    if isinstance(value, Mapping):
        body = b"".join(pack(name) + pack(value[name]) for name in sorted(value))
        if len(value) < 16:
            return bytes([0x80 | len(value)]) + body
        return _sized(len(value), (None, 0xDE, 0xDF)) + body
    body = b"".join(map(pack, value))
    if len(value) < 16:
        return bytes([0x90 | len(value)]) + body
    return _sized(len(value), (None, 0xDC, 0xDD)) + body


def _pack_integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b" if value < 0 else "B", value)
    signed = value < 0
    for code, form in (
        ((0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
        if signed
        else ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"))
    ):
        try:
            return bytes([code]) + struct.pack(form, value)
        except struct.error:
            continue
    raise OverflowError(f"{value} does not fit 64 bits")


def _sized(size: int, codes: tuple[int | None, int, int]) -> bytes:
    short, middle, long = codes
    if short is not None and size < 1 << 8:
        return bytes([short, size])
    if size < 1 << 16:
        return bytes([middle]) + struct.pack(">H", size)
    return bytes([long]) + struct.pack(">I", size)
