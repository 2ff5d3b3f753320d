"""Reads the events of a segment or spill by docs/format.md alone: the second file of the reader.

Puts back what a segment leaves out: salts that follow from a seed, hashes of vectors in columns.
"""

import struct
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import zstandard
from blake3 import blake3

unzstd = zstandard.ZstdDecompressor().decompress
Check = Callable[[bytes, int, bytes, bytes], None]  # check, offset in the body, block, salts


def events_of(index: list[Any], body: bytes, check: Check) -> list[list[Any]]:
    batches, types, codes, sizes, causations, erased, blocks, *held, columns, cuts, _, _, _ = index
    count = len(sizes) // 4
    sizes = b"".join(sizes[k::count] for k in range(count))
    salts, raw = block_contents(batches, numbers(sizes), blocks, body, check)
    attached: dict[int, list[bytes]] = {}
    lists = [numbers(x, form) for form, x in zip("IIQQ", held, strict=True)]
    lists[0] = [event & 0xFFFFFFFF for event in accumulate(lists[0])]
    lists[2] = [offset & 0xFFFFFFFFFFFFFFFF for offset in accumulate(lists[2])]
    for event, _, offset, size in sorted(zip(*lists, strict=True)):
        attached.setdefault(event, []).append(body[offset : offset + size])
    vectors = rows(columns, lists[0], body)
    causes, gone, start = dict(causations), dict(erased), 0
    after, later = None, dict(cuts)
    events: list[list[Any]] = []
    for k, (size, code) in enumerate(zip(numbers(sizes), numbers(codes), strict=True)):
        after = later.get(k, after)
        salt = None if k in gone else salts[k]
        data = gone[k] if k in gone else raw[start : start + size]
        if k not in gone and after is not None:
            place = len(data) - after
            data = data[:place] + blake3(vectors[k]).digest() + data[place:]
        events.append([*types[code], causes.get(k), salt, data, attached.get(k, [])])
        start += size
    return events


def numbers(column: bytes, form: str = "I") -> list[int]:
    return [number for (number,) in struct.iter_unpack("<" + form, column)]


def block_contents(
    batches: list[list[Any]], sizes: list[int], blocks: list[list[Any]], body: bytes, check: Check
) -> tuple[list[bytes], bytes]:
    """Return the salts of the own events, stored or derived, and their joined payloads."""
    salts: list[bytes] = []
    stored: list[bytes] = []  # the salt of each own event as stored, empty if derived
    at = 32
    for count, _, _, spill, seed in batches:
        for k in range(0 if spill else count):
            stored.append(b"" if seed else body[at : at + 16])
            salts.append(blake3(b"", key=seed).digest(16, seek=16 * k) if seed else stored[-1])
            at += len(stored[-1])
    raw, firsts = b"", [row[0] for row in blocks] + [len(sizes)]
    for (first, offset, size, raw_size, own), stop in zip(blocks, firsts[1:], strict=True):
        block = body[offset : offset + size]
        check(own, offset, block, b"".join(stored[first:stop]))
        raw += unzstd(block, max_output_size=raw_size) if raw_size else b""
    return salts, raw


def rows(columns: list[list[Any]], events: list[int], body: bytes) -> dict[int, bytes]:
    """Return the vector in a column of each event that has one."""
    return {
        events[first + row]: body[offset + row * size : offset + (row + 1) * size]
        for _, _, _, offset, size, first, count in columns
        for row in range(count)
    }
