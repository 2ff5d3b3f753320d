"""What the format may grow into, and bugs of the file that outside eyes found: each its story."""

import struct
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from cerata.engine.codec import WireBatch, encode_content, prepare
from cerata.engine.copies.backup import back_up
from cerata.engine.errors import Corrupt, InvalidInput, Unsupported
from cerata.engine.events import (
    AssertFact,
    Attachment,
    Draft,
    Embedding,
    PutEmbedding,
    PutFrame,
    UnknownBody,
)
from cerata.engine.format.checksums import TAG_EXTENT_HEADER, TAG_PAGE, check
from cerata.engine.format.extent import EXTENT_HEADER_SIZE, ExtentKind, extent_size
from cerata.engine.format.page import HeaderPage
from cerata.engine.format.toc import Toc
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file import file as file_module
from cerata.engine.log_file.file import PAGES_SIZE, Flip, StateDraft, choose_page, turned
from cerata.engine.segments import segment_writer as segment_draft
from cerata.engine.segments.segment_index import ColumnRow
from cerata.engine.verify import verify_log

from .words import PATH, Disk, other, put, texts

SALVAGE: dict[str, Any] = {"mode": "r", "salvage": True}
WAYS_IN: list[dict[str, Any]] = [{"mode": "r"}, {"mode": "rw"}, SALVAGE]


def written(*words: str) -> Disk:
    """Return a disk with a log of these texts, the first one sealed."""
    disk = Disk()
    with disk.log() as log:
        for word in words:
            log.append([put(word)])
            if word == words[0]:
                log.seal()
    return disk


def page_of(disk: Disk) -> HeaderPage:
    return choose_page(disk.image()[:PAGES_SIZE], PATH)[0]


def refuses(disk: Disk, *ways: dict[str, Any]) -> bool:
    """Tell whether each way in is Unsupported, and nothing was written."""
    before = disk.image()
    for way in ways:
        with pytest.raises(Unsupported):
            disk.open(**way)
    return disk.image() == before


# --- header pages --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("way", WAYS_IN)
def test_a_page_of_a_newer_version_is_never_mended_away(number: int, way: dict[str, Any]) -> None:
    """Beside an old page it looked like a damaged one, and the next flip would have replaced it."""
    disk = written("a", "b")
    body = bytearray(replace(page_of(disk), number=number, flip=9).encode()[: PAGE_SIZE - 32])
    body[8:10] = (2).to_bytes(2, "little")
    place = struct.pack("<cQ", TAG_PAGE, number * PAGE_SIZE)
    disk.spoil(number * PAGE_SIZE, bytes(body) + hash_bytes(place + bytes(body)))
    assert refuses(disk, way)


def test_a_version_that_only_damage_shows_is_damage() -> None:
    """The page does not verify, so what it says of its version is nothing."""
    disk = written("a", "b")
    disk.spoil(page_of(disk).number * PAGE_SIZE + 8, b"\x02\x00")
    with disk.log() as log:
        assert texts(log) == ["a", "b"]
        assert len(log.report.bad_pages) == 1


def test_an_unknown_read_feature_refuses_every_reader() -> None:
    """Its bytes would be misread."""
    disk = written("a", "b")
    page = replace(turned(page_of(disk)), read_features=1 << 31)
    disk.spoil(page.number * PAGE_SIZE, page.encode())
    assert refuses(disk, *WAYS_IN)


def test_an_unknown_write_feature_leaves_reading() -> None:
    """A writer would undo what it does not know; a reader cannot."""
    disk = written("a", "b")
    page = replace(turned(page_of(disk)), write_features=1)
    disk.spoil(page.number * PAGE_SIZE, page.encode())
    assert refuses(disk, {"mode": "rw"})
    with disk.log(mode="r") as log:
        assert texts(log) == ["a", "b"]
        with pytest.raises(Unsupported):
            back_up(log, "copy.cera")
    assert disk.storage.identity("copy.cera") is None


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_writer_that_is_there_stops_at_an_unknown_write_feature(*, refreshed: bool) -> None:
    """A newer Cerata joins, and begins what the older one would undo."""
    disk = written("a", "b")
    log = disk.open()
    page = replace(turned(page_of(disk)), write_features=1)
    disk.spoil(page.number * PAGE_SIZE, page.encode())
    before = disk.image()
    if refreshed:
        log.refresh()
    for _ in range(2):
        with pytest.raises(Unsupported):
            log.append([put("c")])
        with pytest.raises(Unsupported):
            log.seal()
    assert texts(log) == ["a", "b"]
    assert disk.image() == before


@pytest.mark.parametrize("lost", ["the flip", "one page", "both pages"])
def test_a_feature_outlives_the_page_that_names_it(lost: str) -> None:
    """Through a lost page an older Cerata came to a footer whose bytes it would misread."""
    disk = written("a", "b")
    old_pages = disk.image()[:PAGES_SIZE]
    with mock.patch.object(file_module, "READ_FEATURES", 1), disk.log() as log:
        log.reader.remember_toc(log.page, replace(log.toc(), read_features=1))
        log.seal()
        assert log.page.read_features == log.toc().read_features == 1
    assert refuses(disk, *WAYS_IN)
    disk.spoil(0, bytes(PAGES_SIZE) if lost == "both pages" else old_pages)
    if lost == "one page":
        disk.spoil(20)
    # Alone, after a lost flip, only an opener for writing looks for a newer footer.
    ways = {
        "the flip": [{"mode": "rw"}],
        "one page": WAYS_IN,
        "both pages": WAYS_IN,
    }[lost]
    assert refuses(disk, *ways)


# --- records and extents -------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_record_with_an_unknown_flag_is_refused_not_cut(way: dict[str, Any]) -> None:
    """It is whole: to take it for the log's torn end would lose what a newer Cerata wrote."""
    disk = written("a", "b")
    log = disk.open()
    events = prepare([put("c")], disk.random.randbytes).events
    content = encode_content(WireBatch(log.head.recorded + 1, None, events))
    with log._lock.writing():
        log._writer.write_record(3, 1, 1 << 9, content)
    disk.kill()
    assert refuses(disk, way)


def test_a_record_with_an_unknown_field_is_refused_not_cut_short() -> None:
    """An array that is longer than it should be says something that this version does not know."""
    disk = written("a", "b")
    log = disk.open()
    events = prepare([put("c")], disk.random.randbytes).events
    longer = [*msgspec.to_builtins(events[0], builtin_types=(bytes,)), "more"]
    with log._lock.writing():
        log._writer.write_record(
            3, 1, 0, msgspec.msgpack.encode([log.head.recorded + 1, None, [longer]])
        )
    disk.kill()
    before = disk.image()
    for mode in ("r", "rw"):
        with pytest.raises(Corrupt, match="cannot be decoded"):
            disk.open(mode=mode)
    assert disk.image() == before


def test_an_extent_with_unknown_flags_is_refused() -> None:
    """Its body may be packed by other means."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")], key="k")
        log.seal()
        (keys,) = log.toc().keys
        fields = bytearray(disk.image()[keys.offset : keys.offset + EXTENT_HEADER_SIZE - 8])
        fields[12] = 1
        own = check(log.file.key, TAG_EXTENT_HEADER, keys.offset, fields, size=8)
        disk.spoil(keys.offset, bytes(fields) + own)
        with pytest.raises(Unsupported, match="flags"):
            log.file.read_extent(keys, ExtentKind.KEYS)


# --- flips ---------------------------------------------------------------------------------------


def test_a_mark_from_before_a_seal_is_not_cut() -> None:
    """It bears the seq of the event that comes next, and stands behind what was sealed."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    with disk.log() as log:
        log.seal()
    for _ in range(2):
        with disk.log() as log:
            assert log.report.is_clean
            assert texts(log) == ["a"]


@pytest.mark.unwatched("the test writes over the file")
def test_a_footer_is_not_adopted_where_a_manifest_page_names_a_lost_segment() -> None:
    """Each 64th seal moves the newest segment's reference into a page written by the same flip."""
    disk = Disk()
    log = disk.open()
    for number in range(63):
        log.append([put(f"{number}")])
        log.seal()
    log.append([put("acknowledged")])
    old_pages = disk.image()[:PAGES_SIZE]
    log.seal()
    toc = log.toc()
    assert [len(level) for level in toc.segments.levels] == [0, 1]
    newest = log.file.manifest(toc.segments.levels[1][0])[-1]
    assert newest.last_seq == 64
    # Power fails before the second sync: the pages are the old ones, and the newest segment is
    # the one write of the first group that did not reach the disk.
    disk.kill()
    disk.spoil(0, old_pages)
    disk.spoil(newest.offset, bytes(extent_size(newest.length)))
    with disk.log() as log:
        assert not log.report.adopted_footer
        assert texts(log)[-1] == "acknowledged"
        assert log.head.seq == 64


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("number", [0, 1])
def test_a_footer_is_not_adopted_where_a_shared_manifest_names_a_lost_chunk(number: int) -> None:
    """Each of its sections is read: a later one may name the only write that is missing."""
    disk = Disk()
    log = disk.open()
    log.append([put("acknowledged")])
    old_pages = disk.image()[:PAGES_SIZE]

    def build(flip: Flip, _: Toc) -> dict[str, dict[str, Any]]:
        chunks = {key: flip.add(ExtentKind.CHUNK, key.encode(), 1, 1) for key in ("a", "b")}
        states = {key: StateDraft(1, bytes(32), [[ref]]) for key, ref in chunks.items()}
        return {key: saved.to_entry() for key, saved in flip.add_states(states).items()}

    log.publish_projections(build)
    toc = log.toc()
    (page,) = toc.saved("ab"[number]).chunks
    assert page.number == number
    (lost,) = log.file.page(page)
    disk.kill()
    disk.spoil(0, old_pages)
    disk.spoil(lost.offset, bytes(extent_size(lost.length)))
    with disk.log() as log:
        assert not log.report.adopted_footer
        assert texts(log) == ["acknowledged"]


def test_a_footer_is_adopted_where_all_that_its_flip_wrote_is_there() -> None:
    """The same crash without the loss: the flip is finished."""
    disk = Disk()
    log = disk.open()
    for number in range(63):
        log.append([put(f"{number}")])
        log.seal()
    log.append([put("acknowledged")])
    old_pages = disk.image()[:PAGES_SIZE]
    log.seal()
    disk.kill()
    disk.spoil(0, old_pages)
    with disk.log() as log:
        assert log.report.adopted_footer
        assert texts(log)[-1] == "acknowledged"
        assert log.head.seq == 64


def test_a_toc_rebuilt_from_many_segments_can_be_sealed_on() -> None:
    """They went into one list, which was moved into a manifest page when it was over its limit."""
    disk = Disk()
    words = [f"{number}" for number in range(300)]
    with disk.log() as log:
        for word in words:
            log.append([put(word)])
            log.seal()
    disk.spoil(page_of(disk).toc_offset)
    with disk.log() as log:
        assert log.report.rebuilt_toc
        assert [len(level) for level in log.toc().segments.levels] == [300 % 64, 300 // 64]
        for word in ("more", "and more"):
            log.append([put(word)])
            log.seal()
    with disk.log() as log:
        assert log.report.is_clean
        assert texts(log) == [*words, "more", "and more"]


# --- segments ------------------------------------------------------------------------------------


def test_a_changed_salt_is_seen_at_the_read() -> None:
    """It stands outside the compressed block, and gave a leaf that no proof would fit."""
    disk = written("a")
    with disk.log() as log:
        (ref,) = log.toc().segments.levels[0]
    disk.spoil(ref.offset + EXTENT_HEADER_SIZE + 32)
    with disk.log(mode="r") as log, pytest.raises(Corrupt, match="block 0"):
        log.event(1)


def vector(space: str, values: "list[float]", dtype: str = "f4") -> tuple[Embedding, bytes]:
    data = np.array(values, "<f4" if dtype == "f4" else "i1").tobytes()
    return Embedding(space, dtype, len(values), Attachment(hash_bytes(data), len(data))), data


def column(disk: Disk, log: Log, space: str) -> "np.ndarray[Any, np.dtype[Any]]":
    """Return a space's column, read from the file's bytes at the place that the index names."""
    (ref,) = log.toc().segments.levels[0]
    index = log.file.segment(ref.offset, ref.length).index
    (row,) = [row for row in index.columns if row.space == space]
    start = ref.offset + EXTENT_HEADER_SIZE + row.offset
    assert start % 64 == 0
    dtype = {"f4": "<f4", "i1": "i1"}[row.dtype]
    found = np.frombuffer(disk.image(), dtype, count=row.count * row.dimension, offset=start)
    return found.reshape(row.count, row.dimension)


def test_embeddings_of_one_space_stand_in_one_aligned_column() -> None:
    """Vectors of two spaces, and a blob of their size, were mixed where only width told them."""
    disk = Disk()
    log = disk.open()
    held: dict[str, list[list[float]]] = {"s": [], "t": [], "small": []}
    for number in range(5):
        for space in ("t", "s"):
            values = [number + k / 8 for k in range(8)]
            embedding, data = vector(space, values)
            blob = bytes([number]) * 32
            body = PutFrame(blob=Attachment(hash_bytes(blob), 32), embedding=embedding)
            log.append([Draft(body, attachments=(blob, data))])
            held[space].append(values)
        embedding, data = vector("small", [number, -1, 1], "i1")
        log.append([Draft(PutEmbedding(frame=1, embedding=embedding), attachments=(data,))])
        held["small"].append([number, -1, 1])
    before = [log.reader.attachments(log.snapshot, seq) for seq in range(1, 16)]
    log.seal()
    for space, rows in held.items():
        assert column(disk, log, space).tolist() == rows
    assert [log.reader.attachments(log.snapshot, seq) for seq in range(1, 16)] == before


def test_a_column_has_one_row_an_event_and_rows_of_one_size() -> None:
    """A blob may equal the vector, and a body that is not known may say anything of its own."""
    disk = Disk()
    log = disk.open()
    embedding, same = vector("s", [1, 2])
    frame = PutFrame(blob=Attachment(hash_bytes(same), len(same)), embedding=embedding)
    log.append([Draft(frame, attachments=(same, same))])
    for said in (["s", "f4", 2, [hash_bytes(bytes(12)), 12]], ["s", "", 0, [b"", 12]], 7):
        data = msgspec.msgpack.encode({"embedding": said})
        body = UnknownBody(kind="later", kind_version=1, data=data)
        log.append([Draft(body, attachments=(bytes(12),))])
    log.seal()
    assert column(disk, log, "s").tolist() == [[1, 2]]
    attached = [log.reader.attachments(log.snapshot, seq) for seq in range(1, 5)]
    assert attached == [(same, same), *[(bytes(12),)] * 3]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"count": 3}, {"count": 0}, {"first": 1}, {"first": -1}, {"offset": 64}),
        *({"offset": -64}, {"row_size": 4}, {"dimension": 3}),
    ],
)
def test_a_column_that_is_not_its_attachments_is_refused(wrong: dict[str, int]) -> None:
    """Its index verifies, and yet a faulty or hostile writer made it."""

    def bent(*values: Any) -> ColumnRow:
        return msgspec.structs.replace(ColumnRow(*values), **wrong)

    disk = Disk()
    log = disk.open()
    for number in range(2):
        embedding, data = vector("s", [number, number])
        body = PutEmbedding(frame=1, embedding=embedding)
        log.append([Draft(body, attachments=(data,))])
    with mock.patch.object(segment_draft, "ColumnRow", bent):
        log.seal()
    # What needs no vector is read: all but its hash.
    named = vector("s", [0, 0])[0]
    unnamed = msgspec.structs.replace(named, data=Attachment(bytes(32), named.data.size))
    assert log.event(1).body == PutEmbedding(frame=1, embedding=unnamed)
    key, seqs = ("s", "f4", 2), np.array([1, 2])
    for read in (
        lambda: log.event(1).attached(vector("s", [0, 0])[0].data),
        lambda: log.embeddings(key, seqs),
        lambda: [*log.embedding_columns(key, seqs)],
    ):
        with pytest.raises(Corrupt, match="a column does not fit"):
            read()
    first, *others = verify_log(log).problems
    assert first.text == "A segment is damaged: a column does not fit"
    assert [problem.text for problem in others] == [
        f"The vector of event {seq} is damaged" for seq in (1, 2)
    ]


# --- facts ---------------------------------------------------------------------------------------

OBJECTS: list[Any] = [
    *("words", "", 7, -(2**63), 2**63 - 1, 0.5, True, False, None, b"bytes", [], {}),
    [1, "two", [3.0, None]],
    {"from": "Kiel", "to": {"name": "Lübeck", "km": [61, 62.5]}},
]


def fact(value: object) -> Draft:
    return Draft(AssertFact(subject="s", predicate="p", object_kind="any", object=value))


def objects(log: Log) -> list[object]:
    return [event.body.object for event in log.read() if isinstance(event.body, AssertFact)]


def test_a_fact_holds_any_plain_value() -> None:
    """A list, a map or nothing at all was refused when it was read back."""
    disk = Disk()
    with disk.log() as log:
        log.append([fact(value) for value in OBJECTS])
        assert objects(log) == OBJECTS
        log.seal()
    with disk.log() as log:
        assert objects(log) == OBJECTS
        assert [type(found) for found in objects(log)] == [type(value) for value in OBJECTS]


@pytest.mark.parametrize(
    "value", [{1, 2}, datetime.now(UTC), [object()], {1: 2}, float("nan"), 1 << 70]
)
def test_a_fact_holds_nothing_that_comes_back_as_something_else(value: object) -> None:
    """A set would come back as a list; a date as a date only here."""
    with Disk().log() as log:
        with pytest.raises(InvalidInput):
            log.append([fact(value)])
        assert log.head.seq == 0


def test_other_kinds_are_carried() -> None:
    """A kind of a later version, beside those that are known."""
    disk = Disk()
    with disk.log() as log:
        log.append([other("later", version=9), fact("now")])
        log.seal()
        assert [event.type for event in log.read()] == ["later", "assertFact"]
