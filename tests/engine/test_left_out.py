"""What a segment leaves out of payloads and salts, and how a reader puts it back."""

import numpy as np
import pytest
from msgspec.structs import replace

from cerata.engine.codec import Batch, prepare
from cerata.engine.copies.backup import back_up
from cerata.engine.errors import Corrupt
from cerata.engine.events import (
    Attachment,
    Draft,
    Embedding,
    Event,
    PutEmbedding,
    PutFrame,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.salted_hashes import with_hash, without_hash
from cerata.engine.segments.segment_reader import Segment
from cerata.engine.segments.segment_writer import SegmentDraft
from cerata.engine.verify import verify_log

from .words import Disk, blob, erasing, put, stored

DIMENSION = 96
ROWS = np.random.default_rng(5).standard_normal((300, DIMENSION)).astype(np.float32)


def embedding(row: int) -> tuple[Embedding, bytes]:
    data = ROWS[row].tobytes()
    return Embedding("s", "f4", DIMENSION, Attachment(hash_bytes(data), len(data))), data


def document(row: int, **fields: object) -> Draft:
    """Return a frame with a text, its content hash and a vector, as a store makes it."""
    named, data = embedding(row)
    text = f"document {row}: µ 漢 " * 3
    body = PutFrame(text=text, content_hash=hash_bytes(text.encode())[:16], embedding=named)
    return Draft(replace(body, **fields), attachments=(data,))


def mixed(count: int) -> list[Draft]:
    """Return events of every form: with a vector or without, and with other fields after it."""
    drafts: list[Draft] = []
    for row in range(count):
        named, data = embedding(row)
        drafts += [
            document(row),
            document(row, content_hash=bytes([row % 256]) * 16),
            document(row, content_hash=None),
            document(row, title="t", tags=("a", "b"), metadata={"a": 1}),
            Draft(PutFrame(text="x", content_hash=hash_bytes(b"x")[:16])),
            Draft(PutFrame(text="", content_hash=hash_bytes(b"")[:16])),
            Draft(PutEmbedding(frame=-1, embedding=named), attachments=(data,)),
            blob(b"y" * 40),
            put("plain"),
        ]
    return drafts


def segments_of(log: Log) -> list[Segment]:
    """Return the segments and the spills that they name."""
    found: list[Segment] = []
    for ref in log.reader.segment_refs(log.snapshot):
        segment = log.file.segment(ref.offset, ref.length)
        spills = [row.spill for row in segment.index.batches if row.spill is not None]
        found += [segment, *(log.file.segment(spill.offset, spill.length) for spill in spills)]
    return found


def sealed_bytes(disk: Disk, log: Log) -> bytes:
    """Return the bytes of all segments and spills."""
    image = disk.image()
    return b"".join(image[row.offset : row.offset + row._length] for row in segments_of(log))


@pytest.mark.parametrize("count", [1, 4, 30])
def test_a_sealed_event_has_every_byte_that_was_appended(count: int) -> None:
    """Salts, payloads, commitments and leaves; read alone, in order, and by another process."""
    disk = Disk()
    with disk.log() as log:
        for start in range(3):
            log.append(mixed(count)[start:])
        written = stored(log.read())
        leaves = [event.leaf for event in log.read()]
        log.seal()
        assert stored(log.read()) == written
    with disk.log(mode="r") as log:
        assert stored(log.read()) == written
        assert [log.event(seq).leaf for seq in range(1, len(leaves) + 1)] == leaves
        assert stored(log.read(7, 9)) == written[6:9]
        assert verify_log(log).problems == ()


@pytest.mark.parametrize("count", [3, 100])
def test_hashes_of_vectors_are_not_stored(count: int) -> None:
    """Neither in a segment nor in the extent of a large batch."""
    disk = Disk()
    with disk.log() as log:
        log.append([document(row) for row in range(count)])
        log.seal()
        image = sealed_bytes(disk, log)
        payloads = b"".join(
            segment._block(number)[0]
            for segment in segments_of(log)
            for number in range(len(segment.index.blocks))
        )
    for row in range(count):
        named, data = embedding(row)
        assert data in image
        assert named.data.hash not in payloads
    assert b"document 2" in payloads


def damaged_log(at: int) -> tuple[Disk, list[Event]]:
    """Return a disk with twenty documents, one byte of the fourth vector flipped."""
    disk = Disk()
    with disk.log() as log:
        log.append([document(row) for row in range(20)])
        log.seal()
        events = list(log.read())
    place = disk.image().rindex(ROWS[3].tobytes())
    disk.spoil(place + at)
    return disk, events


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("at", [0, 1, 200, 4 * DIMENSION - 1])
def test_a_damaged_vector_leaves_the_fields_of_its_event_readable(at: int) -> None:
    """The vector and the proof of the event are lost, in no silence; other events are whole."""
    disk, events = damaged_log(at)
    with disk.log(mode="r") as log:
        for before, event in zip(events, log.read(), strict=True):
            assert isinstance(event.body, PutFrame)
            assert isinstance(before.body, PutFrame)
            assert event.body.text == before.body.text
            assert event.body.content_hash == before.body.content_hash
            named, data = embedding(event.seq - 1)
            if event.seq != 4:
                assert event.leaf == before.leaf
                assert event.attached(named.data) == data
                continue
            with pytest.raises(Corrupt, match="vector of event 4 is damaged"):
                _ = event.leaf
            with pytest.raises(Corrupt, match="is damaged"):
                event.attached(event.body.embedding.data if event.body.embedding else named.data)
        with pytest.raises(Corrupt):
            log.root_at(10)
        assert "The vector of event 4 is damaged" in map(str, verify_log(log).problems)


@pytest.mark.unwatched("the test writes over the file")
def test_every_damaged_byte_of_a_segment_is_detected() -> None:
    """Or harmless: the zeros of padding. Nothing reads differently in silence."""
    disk = Disk()
    with disk.log() as log:
        log.append([document(row) for row in range(5)])
        log.seal()
        written = stored(log.read())
        (ref,) = log.reader.segment_refs(log.snapshot)
    image = disk.image()
    for at in range(ref.offset, ref.offset + ref.length):
        damaged = Disk.holding(image)
        damaged.spoil(at)
        with damaged.log(mode="r") as log:
            assert verify_log(log).problems or stored(log.read()) == written, at
            try:
                events = list(log.read())
                read = stored(events)
                _ = [event.leaf for event in events]
            except Corrupt:
                continue
            assert read == written, at


# --- seeds ---------------------------------------------------------------------------------------


def seeds_of(log: Log) -> list[bytes | None]:
    return [row.seed for segment in segments_of(log) for row in segment.index.batches]


@pytest.mark.parametrize(("count", "is_seeded"), [(1, False), (3, False), (4, True), (900, True)])
def test_a_batch_of_four_events_stores_a_seed_in_place_of_salts(
    count: int, is_seeded: bool
) -> None:
    """Also a large batch, whose extent has several blocks."""
    disk = Disk()
    with disk.log() as log:
        log.append([put(f"word {row} " * 9) for row in range(count)])
        salts = [event.salt for event in log.read()]
        log.seal()
        assert [event.salt for event in log.read()] == salts
        assert len({*salts}) == count
        assert any(seeds_of(log)) == is_seeded
        image = sealed_bytes(disk, log)
        assert [salt in image for salt in salts if salt] == [not is_seeded] * count
        for row in (0, count // 2, count - 1):
            assert log.event(row + 1).salt == salts[row]


def test_batches_with_and_without_seeds_share_a_segment() -> None:
    """The salts stored are those of the batches without one, in order."""
    disk = Disk()
    with disk.log() as log:
        for count in (1, 5, 2, 300, 1, 4, 3):
            log.append([put("a" * 60) for _ in range(count)])
        written = stored(log.read())
        log.seal()
        assert stored(log.read()) == written
    with disk.log(mode="r") as log:
        assert stored(log.read()) == written
        for seq in range(1, len(written) + 1, 7):
            assert stored(log.read(seq, seq)) == written[seq - 1 : seq]
        assert verify_log(log).problems == ()


@pytest.mark.parametrize("count", [6, 700])
def test_an_erased_event_takes_the_seed_of_its_batch_with_it(count: int) -> None:
    """The seed would give its salt back: the salts of the others are stored one by one."""
    disk = Disk()
    drafts = [put(f"word {row} " * 4) for row in range(count)]
    with disk.log() as log:
        state = disk.random.getstate()
        prepared = prepare(drafts, disk.random.randbytes)
        assert prepared.seed is not None
        disk.random.setstate(state)
        with erasing(2, 5):
            log.append(drafts)
        log.seal()
        events = list(log.read())
        salts = [event.salt for event in events]
        assert [seq for seq, salt in enumerate(salts, start=1) if salt is None] == [2, 5]
        assert seeds_of(log) == [None] * len(seeds_of(log))
        image = sealed_bytes(disk, log)
        assert prepared.seed not in image
        gone = [prepared.events[place].salt for place in (1, 4)]
        assert not any(salt in image for salt in gone if salt is not None)
        assert all(salt in image for salt in salts if salt is not None)
        assert verify_log(log).problems == ()
        assert [event.commitment for event in events] == [
            Event(event.header, wire.salt, wire.payload).commitment
            for event, wire in zip(events, prepared.events, strict=True)
        ]


def test_a_draft_with_its_own_salt_makes_its_batch_store_salts() -> None:
    """As a frame that evidence of its own batch quotes."""
    drafts = [put(f"{row}") for row in range(5)]
    drafts[2] = replace(drafts[2], salt=b"s" * 16)
    disk = Disk()
    with disk.log() as log:
        log.append(drafts)
        log.seal()
        assert seeds_of(log) == [None]
        assert log.event(3).salt == b"s" * 16


def test_a_seed_that_does_not_give_the_salts_is_not_stored() -> None:
    """Whatever a batch says: the salts are what commitments cover."""
    prepared = prepare([put(f"{row}") for row in range(5)], Disk().random.randbytes)
    batch = Batch(1, 5, 0, None, prepared.events, None, bytes(32))
    body = SegmentDraft([batch]).encode(bytes(32), 512)
    assert all(event.salt is not None and event.salt in body for event in prepared.events)


def test_a_backup_has_the_seeds_of_the_log() -> None:
    """Of batches in segments, in extents and in the ring."""
    disk = Disk()
    with disk.log() as log:
        for count in (5, 400, 2):
            log.append([put("b" * 60) for _ in range(count)])
        log.seal()
        log.append([put("c") for _ in range(6)])
        written = stored(log.read())
        back_up(log, "copy.cera")
        log.seal()
        seeds = {seed for seed in seeds_of(log) if seed}
    with disk.log(path="copy.cera") as copy:
        assert stored(copy.read()) == written
        assert {seed for seed in seeds_of(copy) if seed} == seeds
        assert len(seeds) == 3


# --- the rule itself -----------------------------------------------------------------------------


def test_a_payload_without_its_hash_gives_the_payload_back() -> None:
    """Wherever the hash lies; a payload without it stays as it is."""
    named, _ = embedding(1)
    hashed = named.data.hash
    for draft in mixed(2):
        payload = prepare([draft], bytes).events[0].payload
        left, after = without_hash(payload, hashed)
        if after is None:
            assert left == payload
        else:
            assert len(left) == len(payload) - 32
            assert with_hash(left, after, hashed) == payload


def test_a_row_that_does_not_fit_its_payload_is_refused() -> None:
    """An index that verifies may still come from a faulty writer."""
    with pytest.raises(Corrupt, match="does not fit"):
        with_hash(b"abc", 4, bytes(32))
    assert with_hash(b"abc", 3, bytes(32)) == bytes(32) + b"abc"


def test_vectors_that_another_program_named_wrongly_are_stored_with_their_hash() -> None:
    """Only a hash that is equal can be put back."""
    drafts = [document(row) for row in range(3)]
    prepared = prepare(drafts, Disk().random.randbytes)
    wrong = replace(prepared.events[1], attachments=(ROWS[7].tobytes(),))
    events = (prepared.events[0], wrong, prepared.events[2])
    body = SegmentDraft([Batch(1, 3, 0, None, events)]).encode(bytes(32), 512)
    disk = Disk()
    file = disk.storage.create("segment")
    file.write_at(512 + 64, body)
    segment = Segment(file, bytes(32), 512, len(body))
    assert [event.payload for event in segment.events(0, 3)] == [one.payload for one in events]
    assert [row.after is None for row in segment.index.cuts] == [False, True, False]


@pytest.mark.parametrize("name", ["alike", "mixed", "another space", "a blob too", "none"])
def test_a_batch_of_drafts_is_laid_out_as_its_payloads_say(name: str) -> None:
    """The bodies of drafts spare a decoding, and frames that are alike a loop; the bytes stay."""
    drafts = {
        "alike": [document(row) for row in range(9)],
        "mixed": mixed(9),
        "another space": [document(0), _in_space("t", 1), document(2)],
        "a blob too": [
            document(0),
            replace(document(1), attachments=(*document(1).attachments,) * 2),
        ],
        "none": [put("a"), document(1), put("b")],
    }[name]
    prepared = prepare([replace(draft, is_checked=True) for draft in drafts], bytes)
    batch = Batch(0, len(drafts), 0, None, prepared.events, None, prepared.seed)
    short = SegmentDraft([batch], bodies=[draft.body for draft in drafts])
    assert short.encode(bytes(32), 4_096) == SegmentDraft([batch]).encode(bytes(32), 4_096)


def _in_space(space: str, row: int) -> Draft:
    draft = document(row)
    named, data = embedding(row)
    body = replace(draft.body, embedding=replace(named, space=space))
    return replace(draft, body=body, attachments=(data,))
