"""Large batches: their events stand beside the ring, in an extent of their own."""

from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from cerata.engine.codec import Batch, prepare
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.errors import Conflict, Corrupt, NotFound, OutcomeUnknown, StorageFailed
from cerata.engine.events import Attachment, Draft, Embedding, PutFrame
from cerata.engine.format.extent import EXTENT_HEADER_SIZE, decode_extent_header
from cerata.engine.integrity import hash_bytes
from cerata.engine.open import open_log
from cerata.engine.segments.segment_index import BatchRow
from cerata.engine.segments.segment_writer import SegmentDraft

from ..inside import state_of
from .test_log import whole
from .words import RING, Disk, blob, failing, other, put


def test_a_large_batch_goes_beside_the_ring() -> None:
    """Only a record that names it goes through, so the ring stays small."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a" * RING), put("b")])
        assert state_of(log).cursor.used == 512
    whole(disk, ["a" * RING, "b"])


def test_bodies_give_the_extent_that_payloads_give() -> None:
    """The bodies of the drafts name the columns; decoding each payload gives the same ones."""

    def embedded(data: bytes, space: str, *blobs: bytes) -> Draft:
        vector = Embedding(space, "f4", len(data) // 4, Attachment(hash_bytes(data), len(data)))
        named = [Attachment(hash_bytes(one), len(one)) for one in blobs]
        body = PutFrame(text=None if blobs else "t", blob=named[0] if blobs else None)
        body = msgspec.structs.replace(body, embedding=vector)
        return Draft(body, attachments=(*blobs, data))

    drafts = [
        embedded(b"a" * 16, "s"),
        # A blob of the vector's size, and one of the same bytes.
        embedded(b"b" * 16, "s", b"c" * 16),
        embedded(b"d" * 16, "r", b"d" * 16),
        blob(b"e" * 16),
        put("text"),
        other(),
        embedded(b"f" * 8, "s"),
    ]
    prepared = prepare(drafts, bytes)
    batch = Batch(0, len(drafts), 0, None, prepared.events)
    by_payloads = SegmentDraft([batch]).encode(bytes(32), 512)
    bodies = [draft.body for draft in prepared.drafts]
    assert SegmentDraft([batch], bodies=bodies).encode(bytes(32), 512) == by_payloads


def test_an_unsealed_large_batch_outlives_reopening() -> None:
    """Opening alone once trimmed what only a ring record names: acknowledged events were lost."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a" * 40_000)])
        log.append([put("b")])
    for _ in range(3):
        whole(disk, ["a" * 40_000, "b"])
    disk.open()
    disk.kill()
    whole(disk, ["a" * 40_000, "b"])


def test_a_large_batch_of_a_killed_writer_outlives_it() -> None:
    """The same where recovery has to seal it."""
    disk = Disk()
    disk.open().append([put("a" * 40_000)])
    disk.kill()
    with disk.log() as log:
        assert log.report.sealed_events == 1
    whole(disk, ["a" * 40_000])


def test_a_refused_large_batch_leaves_only_dead_space() -> None:
    """Its extent was written before the refusal; the next opener that is alone trims it."""
    disk = Disk()
    with disk.log() as log:
        size = len(disk.image())
        with pytest.raises(Conflict):
            log.append([put("a" * 40_000)], expect=7)
        assert len(disk.image()) > size
    with disk.log() as log:
        assert log.report.trimmed_bytes > 0
        assert len(disk.image()) == size


def test_attachments_come_back_by_their_hash() -> None:
    """From ring, segment and spill; and no others do."""
    small, large = b"s" * 100, b"l" * 100_000
    with Disk().log() as log:
        log.append([blob(small)])
        log.append([blob(large), blob(small)])
        for _ in range(2):
            for seq, data in ((1, small), (2, large), (3, small)):
                assert log.attachment(seq, Attachment(hash_bytes(data), len(data))) == data
            with pytest.raises(NotFound):
                log.attachment(1, Attachment(hash_bytes(large), len(large)))
            log.seal()


def test_attachments_of_one_size_are_told_apart() -> None:
    """By their hash; one that is there with another hash is damaged, not missing."""
    one, two = b"1" * 100, b"2" * 100
    with Disk().log() as log:
        log.append([Draft(other().body, attachments=(one, two))])
        for data in (one, two):
            assert log.attachment(1, Attachment(hash_bytes(data), 100)) == data
        with pytest.raises(Corrupt, match="An attachment of event 1 is damaged"):
            log.attachment(1, Attachment(hash_bytes(b"3" * 100), 100))


# --- where they stand ----------------------------------------------------------------------------


def sized(size: int) -> Draft:
    """Return a draft that is prepared to so many bytes."""
    spare = size - prepare([put("")], bytes).size
    while prepare([put("x" * spare)], bytes).size > size:
        spare -= 1
    return put("x" * spare)


def test_a_quarter_of_the_ring_goes_through_it_and_more_does_not() -> None:
    """Three of them and a mark have room before anything must be sealed."""
    with Disk().log() as log:
        for size, spilled in ((RING // 4, False), (RING // 4 + 1, True)):
            assert prepare([sized(size)], bytes).size == size
            log.append([sized(size)])
            assert (state_of(log).tail[-1].spill is not None) is spilled


def test_several_large_batches_stand_side_by_side() -> None:
    """No page names the first when the second looks for a place."""
    disk = Disk()
    with disk.log() as log:
        for word in "abc":
            log.append([put(word * 40_000)])
    whole(disk, ["a" * 40_000, "b" * 40_000, "c" * 40_000])


@pytest.mark.parametrize("meanwhile", ["a large batch", "a seal"])
def test_a_place_that_was_taken_is_nobody_elses(meanwhile: str) -> None:
    """Others write while a large batch is still on its way into it."""
    disk = Disk()
    encode = SegmentDraft.encode
    with disk.log() as one, disk.log() as two:
        two.append([put("first")])

        def interposed(self: SegmentDraft, key: bytes, offset: int) -> Any:
            encoding.stop()
            if meanwhile == "a seal":
                two.seal()
            else:
                two.append([put("b" * 40_000)])
            return encode(self, key, offset)

        encoding = mock.patch.object(SegmentDraft, "encode", interposed)
        encoding.start()
        one.append([put("a" * 40_000)])
    whole(disk, ["first", *(["b" * 40_000] if meanwhile != "a seal" else []), "a" * 40_000])


def test_a_large_batch_says_only_what_is_known_before_its_record() -> None:
    """Neither seq nor time; and which TOC will name it, by which later ones are told."""
    with Disk().log() as log:
        log.append([put("a" * 40_000), put("b")])
        spill = state_of(log).tail[0].spill
        assert spill is not None
        data = log.file.file.read_at(spill.offset, EXTENT_HEADER_SIZE)
        header = decode_extent_header(log.file.key, spill.offset, data)
        assert header is not None
        assert (header.first_seq, header.last_seq) == (0, 0)
        rows = log.file.segment(spill.offset, spill.length).index.batches
        assert list(rows) == [BatchRow(2, 0, None, None)]
        log.seal()
        assert header.generation == log.page.generation


def test_a_large_batch_is_durable_before_a_record_names_it() -> None:
    """A crash in between leaves an orphan; the other way round it left a log that did not open."""
    with Disk().log() as log:
        ring = range(log.page.ring_offset, log.page.ring_end)
        steps: list[str] = []
        write, sync = MemoryFile.write_at, MemoryFile.sync

        def writing(self: MemoryFile, offset: int, data: bytes) -> None:
            steps.append("record" if offset in ring else "batch")
            write(self, offset, data)

        def syncing(self: MemoryFile) -> None:
            steps.append("sync")
            sync(self)

        with (
            mock.patch.object(MemoryFile, "write_at", writing),
            mock.patch.object(MemoryFile, "sync", syncing),
        ):
            log.append([put("a" * 40_000)])
        assert steps[-3:] == ["sync", "record", "sync"]
        assert set(steps[:-3]) == {"batch"}


def test_a_large_batch_whose_sync_fails_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that named it could stand where it does not."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("sync", monkeypatch)
    with pytest.raises(OutcomeUnknown):
        log.append([put("b" * 40_000)])
    assert not log.is_open
    log.close()
    whole(disk, ["a"])


def test_a_large_batch_on_a_failed_handle_says_what_failed(tmp_path: Path) -> None:
    """It looked for its place first, and said that the file was closed meanwhile."""
    log = open_log(str(tmp_path / "memory.cera"))
    failed = log._lock.give_up(log.file.file, StorageFailed("The disk is gone"))
    for size in (1, 450_000):
        with pytest.raises(type(failed)):
            log.append([Draft(PutFrame(text="x" * size))])
