"""A reader that knows only docs/format.md finds what the engine finds."""

import ast
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from msgspec import msgpack, structs

from cerata.engine.disk.environment import Environment
from cerata.engine.events import Attachment, Draft, Event, PutFrame, PutTag, UnknownBody
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.open import open_log

from ..engine.words import erasing
from . import reader as reader_module
from . import specimen
from .reader import Reader, tree_root

READER = Path(reader_module.__file__ or "")


def test_reader_is_short_and_imports_nothing_of_cerata() -> None:
    """Else it would show nothing about the page."""
    modules: set[str] = set()
    for path, size_max in ((READER, 150), (READER.with_name("segment.py"), 100)):
        source = path.read_text(encoding="utf-8")
        assert len(source.splitlines()) <= size_max
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 or (path is READER and node.module == "segment")
                modules.add(node.module or "")
    modules.remove("segment")
    assert modules == {
        *("struct", "collections.abc", "functools", "hashlib", "itertools", "typing"),
        *("blake3", "cbor2", "msgspec", "zstandard"),
    }


# --- random workloads ----------------------------------------------------------------------------


class Workload:
    """Random operations on one file, all drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.place: Environment = specimen.environment(specimen.counted_bytes())
        self.tags = 0

    def open(self) -> Log:
        sync = self.dice.choice(["commit", "always"])
        return open_log(
            specimen.PATH,
            environment=self.place,
            ring_bytes=specimen.RING_SIZE,
            sync="always" if sync == "always" else "commit",
        )

    def run(self, steps: int) -> None:
        log = self.open()
        for _ in range(steps):
            step = self.dice.choices(
                [self.append, self.seal, self.append_large, self.append_erased, self.reopen],
                [70, 10, 3, 4, 6],
            )[0]
            log = step(log)
        log.close()

    def append(self, log: Log) -> Log:
        drafts = [self.draft(k) for k in range(self.dice.choice([1, 1, 2, 7]))]
        self.tags += 1
        key = f"key-{self.tags}" if self.dice.random() < 0.3 else None
        log.append(drafts, key=key, arguments=hash_bytes(b"x") if key else None)
        return log

    def draft(self, index: int) -> Draft:
        dice = self.dice
        causation = dice.choice([None, 1, -index if index else None])
        match dice.randrange(4):
            case 0:
                words = " ".join(
                    dice.choices(["wax", "tablet", "Größe", "\0", "🐝"], k=dice.randrange(400))
                )
                return Draft(PutFrame(text=words), specimen.SCOPE, causation=causation)
            case 1:
                space = dice.choice(["space", "other"])
                embedding, data = specimen.vector(dice.randrange(99), dice.choice([4, 8]), space)
                attached = dice.choice([(data,), (bytes(16), data), (data, bytes(20))])
                blobs = [Attachment(hash_bytes(one), len(one)) for one in attached if one != data]
                content = PutFrame(blob=blobs[0]) if blobs else PutFrame(text="v")
                body = structs.replace(content, embedding=embedding)
                return Draft(body, attachments=attached)
            case 2:
                return Draft(UnknownBody(kind=dice.choice("ab"), kind_version=2, data=b"\x80"))
            case _:
                return Draft(PutTag(tag=f"t{dice.random()}", at=dice.randrange(1 << 40)), actor="x")

    def seal(self, log: Log) -> Log:
        log.seal()
        return log

    def append_large(self, log: Log) -> Log:
        log.append([Draft(PutFrame(text="large " * 4000)), self.draft(1)])
        return log

    def append_erased(self, log: Log) -> Log:
        with erasing():
            log.append([Draft(PutFrame(text="gone")), Draft(PutFrame(text="gone too"))])
        return log

    def reopen(self, log: Log) -> Log:
        log.close()
        return self.open()


def plain(event: Event) -> tuple[Any, ...]:
    """Return an event as the reader gives it, but for its attachments."""
    header = [getattr(event.header, name) for name in event.header.__struct_fields__]
    payload = None
    if event.payload_bytes is not None:
        decoded = event.payload
        assert decoded is not None
        payload = [
            [list(pair) for pair in decoded.scope],
            *(decoded.actor, decoded.correlation, decoded.reason, decoded.key, decoded.arguments),
            msgpack.decode(decoded.body),
        ]
    return header, event.salt, payload, event.leaf


def compare(place: Environment) -> Reader:
    """Hold the reader against the engine on the file in an environment."""
    reader = Reader(specimen.contents(place))
    with open_log(specimen.PATH, mode="r", environment=place) as log:
        found = list(reader.events())
        assert [event[:4] for event in found] == [plain(event) for event in log.read()]
        assert [event.attachments for event in found] == [
            list(log.reader.attachments(log.snapshot, event.seq)) for event in log.read()
        ]
        assert [event.header[0] for event in found] == list(range(1, log.head.seq + 1))
        assert reader.chain_hash() == log.head.chain
        assert tree_root([event.leaf for event in found]) == log.head.root
    return reader


@pytest.mark.parametrize("number", range(8))
def test_reader_equals_the_log_on_random_workloads(number: int, seed: int) -> None:
    """Seals, spills, keys, wraps, marks and erased payloads, in any order."""
    workload = Workload(seed + number)
    workload.run(150)
    reader = compare(workload.place)
    assert len(list(reader.events())) >= 150


def test_reader_reads_an_empty_file() -> None:
    """No events: the chain is its start, the root that of nothing."""
    place = specimen.environment(specimen.counted_bytes())
    open_log(specimen.PATH, environment=place, ring_bytes=specimen.RING_SIZE).close()
    assert list(compare(place).events()) == []


def test_reader_follows_manifest_pages_of_two_levels() -> None:
    """64 segments move to a page; 64 pages would move to another, so 65 are enough for one."""
    place = specimen.environment(specimen.counted_bytes())
    with open_log(specimen.PATH, environment=place, ring_bytes=specimen.RING_SIZE) as log:
        for number in range(130):
            log.append([Draft(PutTag(tag=f"t{number}", at=1))])
            log.seal()
    assert [len(level) for level in compare(place).toc["segments"]] == [2, 2]


@pytest.mark.parametrize("place", ["page", "TOC", "extent", "salt"])
def test_reader_refuses_damage(place: str) -> None:
    """Its checks are not decoration."""
    data = bytearray(specimen.golden_file())
    reader = Reader(bytes(data))
    first = next(reader.segments())[0]
    offset = {
        "page": 20,
        "TOC": reader.head["toc"] + 20,
        "extent": first + 8,
        "salt": first + 64 + 40,
    }[place]
    data[offset] ^= 1
    if place == "page":
        data[4096 + 20] ^= 1
    with pytest.raises(ValueError, match=r"at \d+|empty"):
        list(Reader(bytes(data)).events())


def test_reader_refuses_a_feature_that_it_does_not_know() -> None:
    """So do all readers of version 1: no bit is defined."""
    data = bytearray(specimen.golden_file())
    number = Reader(bytes(data)).head["number"]
    at = 4096 * number
    data[at + 164] = 1
    body = bytes(data[at : at + 4064])
    data[at + 4064 : at + 4096] = blake3(struct.pack("<cQ", b"P", at) + body).digest()
    with pytest.raises(ValueError, match="feature"):
        Reader(bytes(data))
