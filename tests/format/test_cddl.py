"""The CDDL of docs/format.md against what the engine writes: every value of real files."""

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import cbor2
import cddl_verifier
import pytest
import zstandard
from msgspec import msgpack

from . import page as document
from . import specimen
from .reader import Reader


@cache
def validator() -> Any:
    return cddl_verifier.Validator(document.cddl())


def refusal(rule: str, value: object) -> str | None:
    """Return why a value does not fit a rule, or None; MessagePack values go as CBOR."""
    result = validator().validate(cbor2.dumps(value), root_type=rule)
    return None if result.valid else str(result.format())


def test_the_rules_are_sound() -> None:
    """Every name that is used is defined."""
    assert list(cddl_verifier.schema_diagnostics(document.cddl())) == []


def extents(data: bytes, kind: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, body) of the extents of a kind, dead ones too."""
    reader = Reader(data)
    for at in range(0, len(data), 512):
        if data.startswith(b"CERAXTNT" + struct.pack("<I", kind), at):
            yield at, reader.extent(at, kind)


def tocs(data: bytes) -> Iterator[bytes]:
    """Yield the TOCs before all footers."""
    for at in range(512, len(data), 512):
        if data.startswith(b"CERAFOOT", at):
            size = int.from_bytes(data[at + 8 : at + 16], "little")
            start = at - (size + 511) // 512 * 512
            yield data[start : start + size]


@pytest.fixture(scope="module")
def golden() -> bytes:
    return specimen.golden_file()


def test_tocs_fit(golden: bytes) -> None:
    """All generations, from the empty file to one with manifests, chunks and quarantine."""
    found = [cbor2.loads(toc) for toc in tocs(golden)]
    assert len(found) >= 64
    assert {refusal("toc", toc) for toc in found} == {None}
    assert all(found[-1][name] for name in ("segments", "keys", "projections", "quarantine"))


def test_cbor_is_deterministic(golden: bytes) -> None:
    """The same value has one encoding."""
    shared = [body for kind in (3, 7) for _, body in extents(golden, kind)]
    sections = [section for body in shared for section in cbor2.loads(body)]
    for data in [*tocs(golden), *shared, *sections]:
        assert cbor2.dumps(cbor2.loads(data), canonical=True) == data


@pytest.mark.parametrize(("kind", "rule"), [(3, "manifest"), (7, "ledger")])
def test_manifests_and_ledgers_fit(golden: bytes, kind: int, rule: str) -> None:
    """Pages of references, and digests; some have sections of several projections."""
    found = [cbor2.loads(body) for _, body in extents(golden, kind)]
    assert max(map(len, found)) > 1
    assert {refusal(rule, sections) for sections in found} == {None}


@pytest.mark.parametrize("kind", [1, 2], ids=["segment", "spill"])
def test_segment_indexes_fit(golden: bytes, kind: int) -> None:
    """Those of segments and of spills."""
    found: list[Any] = []
    for _, body in extents(golden, kind):
        size, raw_size = struct.unpack_from("<II", body)
        raw = zstandard.ZstdDecompressor().decompress(body[-size:], max_output_size=raw_size)
        found.append(msgpack.decode(raw))
    assert found
    assert {refusal("segment-index", index) for index in found} == {None}


def test_record_contents_fit(golden: bytes) -> None:
    """Records with events, and one that names a spill."""
    head = Reader(golden).head
    found: list[Any] = []
    for at in range(head["ring"], head["ring"] + head["ring_size"], 512):
        first, length, incarnation = struct.unpack_from("<QII", golden, at)
        whole = 0 < first < 1 << 20 and incarnation < 9 and 88 < length + 48 < 1 << 16
        if whole and at + 48 + length <= head["ring"] + head["ring_size"]:
            found.append(msgpack.decode(golden[at + 88 : at + 48 + length]))
    assert len(found) >= 30
    assert {refusal("record-content", content) for content in found} == {None}
    assert any(content[3] for content in found)


def test_events_fit(golden: bytes) -> None:
    """Headers, payloads, and the body of each kind."""
    kinds: set[str] = set()
    for event in Reader(golden).events():
        assert refusal("event-header", event.header) is None
        if event.payload is not None:
            assert refusal("payload", event.payload) is None
            kind = event.header[3]
            if kind in document.rules():
                assert refusal(kind, event.payload[6]) is None
                kinds.add(kind)
    assert kinds >= document.rules() & {"putFrame", "putTag", "assertFact", "supersedeFrame"}


HASH = bytes(32)
TOC: dict[str, object] = {
    "file": bytes(16),
    "log": bytes(16),
    "created": 1,
    "features": [0, 0],
    "generation": 1,
    "erased": 0,
    "ring": [8192, 65536, 8192, 1],
    "sealed": [0, 0, HASH, bytes(24)],
    "peaks": [],
    "segments": [[]],
    "keys": [],
    "projections": {},
    "quarantine": [],
}


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        ({}, True),
        ({"later": {"anything": 1}}, True),
        ({"file": bytes(15)}, False),
        ({"erased": -1}, False),
        ({"segments": []}, False),
        ({"segments": [[[0, 1, 2]]]}, False),
        ({"ring": [8192, 65536, 8192]}, False),
        ({"features": [0]}, False),
        ({"sealed": [0, 0, HASH, bytes(23)]}, False),
        ({"projections": {"p": {"chunks": [[1, 2, 3]]}}}, False),
    ],
)
def test_the_rules_refuse_what_is_wrong(changed: dict[str, object], fits: bool) -> None:
    """A rule that everything fits would say nothing."""
    assert (refusal("toc", TOC | changed) is None) is fits
