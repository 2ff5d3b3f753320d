"""Reads a file of format version 1 by docs/format.md alone, in at most 150 lines; checks raise."""

import struct
from collections.abc import Iterator
from functools import reduce
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import cbor2
import zstandard
from blake3 import blake3
from msgspec import msgpack

from .segment import events_of

names = "magic version number flags file_id log_id flip generation toc toc_size data_end ring"
names += (
    " ring_size ring_start sealed link recorded created incarnation must_read must_write closed"
)
Batch = tuple[int, list[Any], list[list[Any]]]  # first seq, row, wire events
unzstd = zstandard.ZstdDecompressor().decompress


class Event(NamedTuple):
    header: list[Any]
    salt: bytes | None
    payload: list[Any] | None  # None where it was erased
    leaf: bytes
    attachments: list[bytes]


def expect(fine: bool, what: str, offset: int) -> None:
    if not fine:
        raise ValueError(f"{what} at {offset}")


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.head = head = max(filter(None, map(self.page, (0, 1))), key=lambda page: page["flip"])
        self.key = blake3(head["file_id"], derive_key_context="cerata format 1 file key").digest()
        at = head["data_end"] - 512
        magic, size, toc_check, _, sealed, own = struct.unpack_from("<8sQ24sQQ8s", data, at)
        fine = magic == b"CERAFOOT" and self.check(own, b"F", at, data[at : at + 56])
        expect(fine and (size, sealed) == (head["toc_size"], head["sealed"]), "footer", at)
        toc = data[head["toc"] : head["toc"] + size]
        expect(self.check(toc_check, b"T", head["toc"], toc), "TOC", head["toc"])
        self.toc: dict[str, Any] = cbor2.loads(toc)

    def page(self, number: int) -> dict[str, Any] | None:
        at = 4096 * number
        body, own = self.data[at : at + 4064], self.data[at + 4064 : at + 4096]
        if blake3(struct.pack("<cQ", b"P", at) + body).digest() != own:
            return None
        values = struct.unpack_from("<8sHHI16s16sQQQQQQQQQ24sqqIIIQ", body)
        page: dict[str, Any] = dict(zip(names.split(), values, strict=True))
        fine = (page["magic"], page["version"], page["must_read"]) == (b"\x89CERATA\n", 1, 0)
        expect(fine and (page["flags"] < 2 and not any(body[180:])), "version or feature", at)
        return page

    def check(self, own: bytes, tag: bytes, offset: int, *parts: bytes) -> bool:
        hasher = blake3(struct.pack("<cQ", tag, offset) + b"".join(parts), key=self.key)
        return hasher.digest(len(own)) == own

    def extent(self, at: int, kind: int) -> bytes:
        magic, found, flags, length, own = struct.unpack_from("<8sIIQ32x8s", self.data, at)
        fine = self.check(own, b"e", at, self.data[at : at + 56])
        expect(fine and (magic, found, flags) == (b"CERAXTNT", kind, 0), "extent header", at)
        body, end = self.data[at + 64 : at + 64 + length], at + 64 + length
        expect(self.check(self.data[end : end + 24], b"E", at, own, body), "extent body", at)
        return body

    def segments(self) -> Iterator[tuple[int, int]]:  # (offset, first seq), highest level first
        for depth in range(len(self.toc["segments"]) - 1, -1, -1):
            rows: list[list[int]] = self.toc["segments"][depth]
            for _ in range(depth):
                pages = [page for ref in rows for page in cbor2.loads(self.extent(ref[0], 3))]
                rows = [row for page in pages for row in cbor2.loads(page)]
            yield from ((row[0], row[2]) for row in rows)

    def stored(self, at: int, kind: int, seq: int) -> Iterator[Batch]:  # a segment (1) or spill (2)
        body, base = self.extent(at, kind), at + 64
        size, raw_size, own = struct.unpack_from("<II24s", body)
        place = len(body) - size
        expect(self.check(own, b"i", base + place, body[place:]), "index", base + place)
        index = msgpack.decode(unzstd(body[place:], max_output_size=raw_size))

        def check_block(own: bytes, offset: int, block: bytes, salts: bytes) -> None:
            fine = self.check(own, b"b", base + offset, block, salts)
            expect(fine, "block", base + offset)

        events = events_of(index, body, check_block)
        for row in index[0]:
            count = 0 if row[3] else row[0]
            yield seq, row, events[:count]
            seq, events = seq + row[0], events[count:]

    def ring(self) -> Iterator[Batch]:
        head, data = self.head, self.data
        at, link, used, age = head["ring_start"], head["link"], 0, head["incarnation"]
        seq = head["sealed"] + 1
        while used < head["ring_size"]:
            first, length, incarnation, own, body_check = struct.unpack_from("<QII8s24s", data, at)
            fine = self.check(own, b"r", at, data[at : at + 16], body_check)
            body = data[at + 48 : at + 48 + length]
            fine = fine and (first == 0 or self.check(body_check, b"R", at, body))
            fine = fine and link == (body[16:40] if first else body_check)
            if not fine or incarnation < age or first not in (0, seq):
                break
            expect(first == 0 or body[8:12] in (bytes(4), b"\1\0\0\0"), "flag", at)
            if first and (count := int.from_bytes(body[12:16], "little")):
                recorded, clock, events, spill, _ = msgpack.decode(body[40:])
                yield seq, [count, recorded, clock, spill], events
                seq += count
            size = (48 + length + 511) // 512 * 512
            at, used, link, age = at + size, used + size, body_check, incarnation
            at -= head["ring_size"] if at == head["ring"] + head["ring_size"] else 0
        expect(head["closed"] < seq, "closed seq", head["number"] * 4096)
        for at in (head["ring"] - 4096, head["ring"] + head["ring_size"]):
            named, own = struct.unpack_from("<8xQ24s", data, at)
            expect(named < seq and self.check(own, b"W", at, data[at : at + 16]), "witness", at)

    def events(self) -> Iterator[Event]:
        sealed = (batch for at, seq in self.segments() for batch in self.stored(at, 1, seq))
        for seq, (count, recorded, clock, spill, *_), own in chain(sealed, self.ring()):
            events = next(self.stored(spill[0], 2, seq))[2] if spill else own
            expect(len(events) == count, "number of events", seq)
            for k, (kind, version, cause, salt, data, attachments) in enumerate(events):
                header = [seq + k, recorded, clock, kind, version, k, count, cause]
                commitment = blake3(salt + data).digest() if salt else data
                leaf = sha256(b"\0" + msgpack.encode(header) + commitment).digest()
                yield Event(header, salt, msgpack.decode(data) if salt else None, leaf, attachments)

    def chain_hash(self) -> bytes:
        start = blake3(b"\2" + self.head["log_id"]).digest()
        return reduce(lambda h, e: blake3(b"\2" + h + e.leaf).digest(), self.events(), start)


def tree_root(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + tree_root(leaves[:split]) + tree_root(leaves[split:])).digest()
