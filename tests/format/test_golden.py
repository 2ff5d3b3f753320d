"""A file of format version 1 as it was written once: every later Cerata must read it so."""

import json
import struct
from typing import Any

import pytest
import zstandard
from blake3 import blake3
from msgspec import msgpack
from msgspec.structs import replace

from cerata.engine.events import Draft, PutTag
from cerata.engine.format.page import RING_OFFSET
from cerata.engine.log import Log
from cerata.engine.open import open_log

from ..kinds import cerata_kinds
from . import specimen
from .reader import Event, Reader, tree_root


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((specimen.GOLDEN / "v1.json").read_text(encoding="utf-8"))
    return found


def opened(mode: str) -> Log:
    place = specimen.environment(specimen.counted_bytes())
    file = place.storage.create(specimen.PATH)
    file.write_at(0, specimen.golden_file())
    file.close()
    return open_log(specimen.PATH, mode="r" if mode == "r" else "rw", environment=place)


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_golden_file_reads_as_it_did(mode: str, expected: dict[str, Any]) -> None:
    """Events, ids, chain and root; nothing to recover, since it was closed."""
    with opened(mode) as log:
        # Space that was taken for a large batch and not needed is given back.
        assert replace(log.report, trimmed_bytes=0).is_clean
        assert specimen.summary(log) == expected


def test_golden_file_reads_the_same_without_cerata(expected: dict[str, Any]) -> None:
    """The engine and the page agree about it too."""
    reader = Reader(specimen.golden_file())
    events = list(reader.events())
    assert [event.header for event in events] == [row[0] for row in expected["events"]]
    assert reader.chain_hash().hex() == expected["chain"]
    assert tree_root([event.leaf for event in events]).hex() == expected["root"]


def test_golden_file_holds_every_structure() -> None:
    """What does not occur in it, a later change could break unseen."""
    data = specimen.golden_file()
    kinds = {data[at + 8] for at in range(0, len(data), 512) if data.startswith(b"CERAXTNT", at)}
    assert kinds == {1, 2, 3, 4, 5, 6, 7}
    reader = Reader(data)
    assert spaces_of(reader) == [["small", "space-0", "space-1"], ["space-2"]]
    assert len(reader.toc["segments"]) == 2
    assert reader.toc["projections"]
    assert reader.toc["erased"] == 0
    assert any(event.payload is None for event in reader.events())
    assert any(event.header[2] is not None for event in reader.events())


def test_golden_file_has_every_event() -> None:
    """An event that joins the format joins the file, or a later change could break it unseen.

    A branch and an erasure change the file around them, so other files have them.
    """
    names = {kind.wire_name for kind in cerata_kinds()}
    stored = {event.header[3] for event in Reader(specimen.golden_file()).events()}
    assert len(names) > 20
    assert names - stored == {"branch", "erase"}


def test_golden_file_has_an_expiry_an_embedder_an_actor_and_a_reason() -> None:
    """Their fields came later than the file."""
    events = [event for event in Reader(specimen.golden_file()).events() if event.payload]
    [use] = [event for event in events if event.header[3] == "useEmbedder"]
    assert body_of(use) == {
        "identity": "letters@1",
        "space": "letters@1/8/cosine",
        "name": "letters",
        "tokens_space": "letters@1/4/maxsim/i1",
    }
    bodies = {event.header[0]: body_of(event) for event in events if event.header[3] == "putFrame"}
    assert bodies[use.header[0] - 1]["expires"] == 2 * specimen.START_US
    payloads = [event.payload for event in events if event.payload is not None]
    assert {(payload[1], payload[3]) for payload in payloads} >= {("agent", "measured")}


def test_golden_file_binds_hashes_of_content_to_salts() -> None:
    """The quote, the arguments and the context, by the formulas of docs/format.md."""
    events = list(Reader(specimen.golden_file()).events())
    salts = [event.salt or b"" for event in events]
    told = {event.header[3]: event for event in events if event.payload is not None}
    recalls = [body_of(event) for event in events if event.header[3] == "recall"]
    recall, assembly = recalls
    text = salts[int(assembly["frames"][0]) - 1] + b"[TRAITS]"
    assert (assembly["context"], assembly["entry_tokens"]) == (blake3(text).digest(), 0)
    frame, fact = int(recall["frames"][0]), int(recall["facts"][0])
    shown = salts[frame - 1] + salts[fact - 1] + specimen.SHOWN
    assert recall["context"] == blake3(shown).digest()
    quote = blake3(specimen.QUOTED, key=salts[frame - 1] + bytes(16)).digest(16)
    evidence = body_of(events[fact - 1])["evidence"]
    assert evidence == [[frame, 0, len(specimen.QUOTED), quote]]
    batch = told["importBatch"]
    assert batch.payload is not None
    first, count = batch.header[0], batch.header[6]
    lines = blake3(b"lines").digest()
    assert batch.payload[4:6] == [
        "import facts 00",
        blake3(lines + b"".join(salts[first - 1 : first - 1 + count])).digest(),
    ]


def body_of(event: Event) -> dict[str, Any]:
    """Return the body of an event that was not erased."""
    assert event.payload is not None
    body: dict[str, Any] = event.payload[6]
    return body


def spaces_of(reader: Reader) -> list[list[str]]:
    """Return the spaces of the first segment's columns, and of the first spill's."""
    found: list[list[str]] = []
    for kind in (1, 2):
        at = reader.data.index(b"CERAXTNT" + struct.pack("<I", kind))
        body = reader.extent(at, kind)
        size, raw_size = struct.unpack_from("<II", body)
        raw = zstandard.ZstdDecompressor().decompress(body[-size:], max_output_size=raw_size)
        found.append([column[0] for column in msgpack.decode(raw)[11]])
    return found


def test_what_was_cut_is_kept_with_its_place() -> None:
    """The checks of a record cover its offset: without it they could not be tried again."""
    reader = Reader(specimen.golden_file())
    ((offset, *_),) = reader.toc["quarantine"]
    kept = reader.extent(offset, 5)
    place = int.from_bytes(kept[:8], "little")
    assert place % 512 == 0
    # In the first ring: the log went on in a second one.
    assert RING_OFFSET <= place < RING_OFFSET + specimen.RING_SIZE < reader.head["ring"]
    assert kept[8:708] == blake3(b"torn").digest(700)[: len(kept) - 8]


def test_golden_file_can_be_written_to(expected: dict[str, Any]) -> None:
    """A file of an earlier Cerata goes on; its past stays."""
    with opened("rw") as log:
        log.append([Draft(PutTag(tag="later", at=1))])
        log.seal()
        assert log.head.seq == expected["head"] + 1
        assert log.chain_at(expected["head"]).hex() == expected["chain"]
        assert log.root_at(expected["head"]).hex() == expected["root"]


def test_the_story_still_makes_the_same_events(expected: dict[str, Any]) -> None:
    """Same calls, same events, on any machine: compressed bytes may differ, hashes may not."""
    place = specimen.environment(specimen.counted_bytes())
    specimen.tell_story(place)
    with open_log(specimen.PATH, mode="r", environment=place) as log:
        assert specimen.summary(log) == expected
