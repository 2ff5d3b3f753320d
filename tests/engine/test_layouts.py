"""The structures of the file: what is encoded comes back, and no bit of it can change unseen."""

import time
from collections.abc import Callable
from random import Random

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.errors import Corrupt, Unsupported
from cerata.engine.format import footer as footer_module
from cerata.engine.format import page as page_module
from cerata.engine.format.checksums import TAG_FOOTER, TAG_RECORD_BODY, check, file_key
from cerata.engine.format.extent import (
    EXTENT_HEADER_SIZE,
    ExtentKind,
    decode_extent_header,
    encode_extent,
    extent_is_whole,
    extent_size,
)
from cerata.engine.format.footer import (
    FOOTER_MAGIC,
    decode_footer,
    encode_footer,
    stored_toc_size,
    toc_is_whole,
)
from cerata.engine.format.page import HeaderPage, decode_page, newer_version, stored_version
from cerata.engine.format.record import (
    RecordPrefix,
    decode_record_body,
    decode_record_header,
    encode_padding,
    encode_record,
    sectors,
)
from cerata.engine.format.toc import (
    Ref,
    RefList,
    Toc,
    decode_refs,
    decode_sections,
    decode_toc,
    encode_manifest,
)
from cerata.engine.limits import BATCH_EVENTS_MAX, RING_SIZE_MAX, TOC_SIZE_MAX

KEY = file_key(b"f" * 16)
OTHER_KEY = file_key(b"g" * 16)
LINK = b"l" * 24

PAGE = HeaderPage(
    number=0,
    file_id=b"f" * 16,
    log_id=b"l" * 16,
    flip=7,
    generation=3,
    toc_offset=81_920,
    toc_size=100,
    data_end=83_968,
    ring_offset=12_288,
    ring_size=65_536,
    ring_start=12_800,
    sealed_seq=5,
    link=LINK,
    recorded=1_700_000_000_000_000,
    created=1_600_000_000_000_000,
    incarnation=2,
)

TOC = Toc(
    file_id=b"f" * 16,
    log_id=b"l" * 16,
    created=1,
    generation=3,
    ring_offset=12_288,
    ring_size=65_536,
    ring_start=12_800,
    incarnation=1,
    sealed_seq=0,
    recorded=9,
    chain=b"c" * 32,
    link=LINK,
)


def survivors(data: bytes, verifies: Callable[[bytes], bool]) -> list[int]:
    """Return the bits that can be flipped without anyone noticing."""
    found: list[int] = []
    for bit in range(8 * len(data)):
        bent = bytearray(data)
        bent[bit // 8] ^= 1 << bit % 8
        if verifies(bytes(bent)):
            found.append(bit)
    return found


def test_a_page_round_trips_and_no_bit_of_it_can_change() -> None:
    """All 4,096 bytes, the zeros too."""
    data = PAGE.encode()
    assert decode_page(data, 0) == PAGE
    for page in (replace(PAGE, moved=True), replace(PAGE, number=1)):
        assert decode_page(page.encode(), page.number) == page
    assert survivors(data, lambda bent: decode_page(bent, 0) is not None) == []


def test_a_page_verifies_only_in_its_own_place() -> None:
    """A disk may write a page where the other belongs."""
    assert decode_page(PAGE.encode(), 1) is None
    assert decode_page(PAGE.encode()[:4000], 0) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"ring_size": 1 << 31},
        {"ring_size": 65_537},
        {"ring_start": 12_289},
        {"ring_start": 12_288 + 65_536},
        {"ring_offset": 8192},
        {"toc_size": 1 << 40},
        {"toc_offset": 83_900},
        {"toc_offset": 4096},
    ],
)
def test_a_page_that_contradicts_itself_is_none(wrong: dict[str, int]) -> None:
    """It verifies, and yet a faulty or hostile writer made it."""
    assert decode_page(replace(PAGE, **wrong).encode(), 0) is None


@pytest.mark.parametrize(
    "right",
    [
        {"ring_size": RING_SIZE_MAX},
        {"ring_start": 12_288},
        {"ring_start": 12_288 + 65_536 - 512},
        {"toc_offset": 8192},
        {"toc_size": 83_968 - 81_920},
        {"toc_size": TOC_SIZE_MAX, "data_end": 81_920 + TOC_SIZE_MAX},
    ],
)
def test_a_page_at_its_limits_is_one(right: dict[str, int]) -> None:
    """The largest ring and TOC; a TOC right behind the pages, or up to the data's end."""
    page = replace(PAGE, **right)
    assert decode_page(page.encode(), 0) == page


def forged_page(data: bytes, number: int = 0) -> bytes:
    """Return a page with the check that its bytes should have."""
    body = data[:-32]
    return body + page_module._page_check(number, body)


def test_a_page_of_another_magic_version_or_number_is_none() -> None:
    """However right its check is."""
    data = PAGE.encode()
    assert forged_page(data) == data
    assert decode_page(forged_page(b"X" + data[1:]), 0) is None
    assert decode_page(forged_page(data[:8] + b"\2" + data[9:]), 0) is None
    assert decode_page(forged_page(data, number=1), 1) is None


def test_the_version_is_read_without_believing_the_rest() -> None:
    """So a newer file can be told from a damaged one."""
    assert stored_version(PAGE.encode()) == 1
    assert stored_version(replace(PAGE, number=1).encode()) == 1
    assert stored_version(PAGE.encode()[:10]) == 1
    assert stored_version(PAGE.encode()[:9]) is None
    assert stored_version(b"SQLite format 3\0") is None
    assert stored_version(b"") is None


@pytest.mark.parametrize("number", [0, 1])
def test_a_whole_page_of_a_newer_version_is_known_for_one(number: int) -> None:
    """Its check proves it: a damaged one, or one of this version, says nothing."""
    data = replace(PAGE, number=number).encode()
    newer = forged_page(data[:8] + (513).to_bytes(2, "little") + data[10:], number)
    assert newer_version(newer, number) == 513
    assert newer_version(newer, 1 - number) is None
    assert newer_version(data, number) is None
    assert newer_version(newer[:-1] + b"?", number) is None
    assert newer_version(newer[:4000], number) is None
    assert newer_version(b"", number) is None


def record(content: bytes = b"content", **changes: int) -> bytes:
    prefix = RecordPrefix(changes.get("durable", 4), 0, 1, LINK)
    return encode_record(KEY, 8192, 5, 2, prefix, content)[0]


def body_of(data: bytes, key: bytes = KEY, offset: int = 8192) -> RecordPrefix | None:
    header = decode_record_header(key, offset, data)
    if header is None:
        return None
    return decode_record_body(key, offset, header, data[48 : 48 + header.length])


@given(st.binary(max_size=2000), st.integers(1, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_a_record_round_trips_in_whole_sectors(content: bytes, seq: int, incarnation: int) -> None:
    """And its header says all that a walker needs before the body is believed."""
    prefix = RecordPrefix(seq - 1, 0, 3, LINK)
    data, check = encode_record(KEY, 8192, seq, incarnation, prefix, content)
    header = decode_record_header(KEY, 8192, data)
    assert header is not None
    assert (header.first_seq, header.incarnation, header.body_check) == (seq, incarnation, check)
    assert header.size == len(data) == sectors(len(data))
    assert body_of(data) == prefix


@pytest.mark.parametrize(("size", "whole"), [(0, 0), (1, 512), (512, 512), (513, 1024)])
def test_sizes_are_rounded_up_to_whole_sectors(size: int, whole: int) -> None:
    """A last byte takes a sector of its own."""
    assert sectors(size) == whole


def test_a_record_is_decoded_only_from_all_its_bytes() -> None:
    """Wherever in a read it begins; a body that has no room for its prefix is none."""
    data = record()
    assert decode_record_header(KEY, 8192, b"--" + data[:48], 2) is not None
    for there in (data[:47], b"-" + data[:47]):
        assert decode_record_header(KEY, 8192, there, len(there) - 47) is None
    header = decode_record_header(KEY, 8192, data)
    assert header is not None
    body = data[48 : 48 + header.length]
    assert decode_record_body(KEY, 8192, header, body + b"\0") is None
    short = bytes(39)
    own = check(KEY, TAG_RECORD_BODY, 8192, short)
    assert decode_record_body(KEY, 8192, replace(header, length=39, body_check=own), short) is None


def test_a_record_of_more_events_than_there_may_be_is_none() -> None:
    """And one with flags that nobody knows yet is refused, not cut off as damage."""
    for count, whole in ((BATCH_EVENTS_MAX, True), (BATCH_EVENTS_MAX + 1, False)):
        prefix = RecordPrefix(4, 1, count, LINK)
        data = encode_record(KEY, 8192, 5, 2, prefix, b"")[0]
        assert body_of(data) == (prefix if whole else None)
    data = encode_record(KEY, 8192, 5, 2, RecordPrefix(4, 2, 1, LINK), b"")[0]
    with pytest.raises(Unsupported, match="flags"):
        body_of(data)


def test_no_bit_of_a_record_can_change() -> None:
    """Padding after the body is not part of it."""
    data = record()[: 48 + 40 + 7]
    assert survivors(data, lambda bent: body_of(bent) is not None) == []


def test_a_record_verifies_only_in_its_file_and_place() -> None:
    """A store kept inside a payload, or a block that a disk misplaced, is never taken for one."""
    data = record()
    assert body_of(data) is not None
    assert body_of(data, OTHER_KEY) is None
    assert body_of(data, offset=8704) is None


def test_padding_names_what_it_follows() -> None:
    """So that of an earlier lap never connects."""
    data = encode_padding(KEY, 8192, 2, 1024, LINK)
    header = decode_record_header(KEY, 8192, data)
    assert header is not None
    assert header.is_padding
    assert (header.size, header.body_check) == (1024, LINK)
    assert survivors(data, lambda bent: decode_record_header(KEY, 8192, bent) is not None) == []


def test_no_bit_of_an_extent_can_change() -> None:
    """Header, body and the check after it; sectors are filled up with zeros that say nothing."""
    data = b"".join(encode_extent(KEY, 512, ExtentKind.KEYS, b"body" * 20, 3, 9))
    assert len(data) == extent_size(80)

    def whole(bent: bytes, key: bytes = KEY, offset: int = 512) -> bool:
        file = MemoryStorage().create("a")
        file.write_at(offset, bent)
        header = decode_extent_header(key, offset, bent[:EXTENT_HEADER_SIZE])
        return header is not None and extent_is_whole(key, file, header)

    assert whole(data)
    assert not whole(data, OTHER_KEY)
    assert not whole(data, offset=1024)
    assert survivors(data[: 64 + 80 + 24], whole) == []


@pytest.mark.parametrize("length", [0, 1, 423, 424, 425, 5000])
def test_an_extent_takes_whole_sectors(length: int) -> None:
    """Header, body and the check after it; flags and what is reserved are zero."""
    data = b"".join(encode_extent(KEY, 512, ExtentKind.KEYS, b"b" * length, 3, 9, generation=7))
    header = decode_extent_header(KEY, 512, data)
    assert header is not None
    assert (header.offset, header.kind, header.length) == (512, ExtentKind.KEYS, length)
    assert (header.first_seq, header.last_seq, header.generation, header.flags) == (3, 9, 7, 0)
    assert (data[48:56], data[header.body_offset - 512 :][:length]) == (bytes(8), b"b" * length)
    assert len(data) == extent_size(length) == sectors(64 + length + 24)
    assert header.end == 512 + len(data)
    file = MemoryStorage().create("a")
    file.write_at(512, data[: 64 + length + 24])
    assert extent_is_whole(KEY, file, header)
    file.set_size(512 + 64 + max(0, length - 1))
    assert not extent_is_whole(KEY, file, header)


def forged_footer(magic: bytes, toc_size: int, offset: int) -> bytes:
    """Return the footer that a faulty or hostile writer could make."""
    fields = footer_module._LAYOUT.pack(magic, toc_size, bytes(24), 3, 0)
    return fields + check(KEY, TAG_FOOTER, offset, fields, size=8)


@pytest.mark.parametrize(
    ("magic", "toc_size", "whole"),
    [
        (FOOTER_MAGIC, 0, False),
        (FOOTER_MAGIC, 1, True),
        (FOOTER_MAGIC, TOC_SIZE_MAX, True),
        (FOOTER_MAGIC, TOC_SIZE_MAX + 1, False),
        (b"CERATOOF", 1, False),
    ],
)
def test_a_footer_that_contradicts_itself_is_none(magic: bytes, toc_size: int, whole: bool) -> None:
    """Its check is right; its magic or the size of its TOC is not."""
    offset = 2 * TOC_SIZE_MAX
    data = forged_footer(magic, toc_size, offset)
    footer = decode_footer(KEY, offset, data)
    assert stored_toc_size(data) == (toc_size if whole else None)
    assert stored_toc_size(data[:63]) is None
    if not whole:
        assert footer is None
        return
    assert footer is not None
    assert (footer.toc_offset, footer.end) == (offset - sectors(toc_size), offset + 512)
    assert decode_footer(KEY, offset, data[:63]) is None


def test_a_footer_has_room_for_its_toc_before_it() -> None:
    """A TOC that would begin before the file does is none."""
    assert decode_footer(KEY, 512, forged_footer(FOOTER_MAGIC, 512, 512)) is not None
    assert decode_footer(KEY, 512, forged_footer(FOOTER_MAGIC, 513, 512)) is None


def test_no_bit_of_a_footer_or_its_toc_can_change() -> None:
    """A footer is looked for by its magic, so it is held to it hard."""
    toc = TOC.encode()
    data = encode_footer(KEY, 8192, toc, 3, 0)[:64]
    footer = decode_footer(KEY, 8192, data)
    assert footer is not None
    assert (footer.toc_size, footer.generation, footer.sealed_seq) == (len(toc), 3, 0)
    assert toc_is_whole(KEY, footer, toc)
    assert decode_footer(KEY, 8704, data) is None
    assert decode_footer(OTHER_KEY, 8192, data) is None
    assert survivors(data, lambda bent: decode_footer(KEY, 8192, bent) is not None) == []
    assert survivors(toc, lambda bent: toc_is_whole(KEY, footer, bent)) == []


def test_a_toc_carries_what_it_does_not_know() -> None:
    """A newer Cerata's field outlives an older one's flips."""
    data = cbor2.dumps(
        {**cbor2.loads(TOC.encode()), "from later": [1, {"a": b"b"}]}, canonical=True
    )
    toc = decode_toc(data, 0)
    assert toc.unknown == {"from later": [1, {"a": b"b"}]}
    assert toc.encode() == data


def test_a_toc_of_garbage_is_corrupt(seed: int) -> None:
    """Whatever it decodes to: its hash may be right and its writer wrong."""
    random = Random(seed)
    good = TOC.encode()
    fields = cbor2.loads(good)
    wrong: list[object] = [None, 1, -1, "a", b"b", [], [[]], {}, 1.5, [1, 2, 3, 4], {"a": 1}]
    tried = 0
    for name in fields:
        for value in wrong:
            data = cbor2.dumps({**fields, name: value}, canonical=True)
            try:
                decode_toc(data, 0)
            except Corrupt:
                tried += 1
        # Files from before erasures have all names but one.
        with pytest.raises(Unsupported if name == "erased" else Corrupt):
            decode_toc(cbor2.dumps({key: fields[key] for key in fields if key != name}), 0)
    assert tried > len(fields) * 6
    for _ in range(2000):
        bent = bytearray(good)
        bent[random.randrange(len(bent))] = random.randrange(256)
        try:
            decode_toc(bytes(bent), 0)
        except (Corrupt, Unsupported):
            continue


@pytest.mark.parametrize("decode", [decode_sections, decode_refs, decode_toc])
def test_no_part_of_the_contents_is_larger_than_its_limit(
    decode: Callable[[bytes, int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte of CBOR can be an array of 64 bytes, and the decoder heeds no Ctrl-C."""

    def decoded(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(cbor2, "loads", decoded)
    empty = b"\x9a" + TOC_SIZE_MAX.to_bytes(4) + b"\x80" * TOC_SIZE_MAX
    with pytest.raises(Corrupt, match=f"{len(empty):,} bytes; the limit is {TOC_SIZE_MAX:,}"):
        decode(empty, 0)


@pytest.mark.parametrize("payload", [b"\x01", b"\x42\x01\x02", b"\x63abc", b"\x82\x01\x02"])
def test_a_toc_has_no_tags(payload: bytes) -> None:
    """CBOR has tags for numbers, dates and expressions; a decoder of these has no limit."""
    for tag in (*range(2_000), 43_000, 55_799, 1 << 40):
        with pytest.raises(Corrupt):
            decode_sections(b"\x81\xdb" + tag.to_bytes(8) + payload, 0)


def test_a_long_number_of_a_toc_takes_no_time() -> None:
    """As a decimal it takes the square of its length, minutes for 4 MB."""
    number = b"\xc4\x82\x01\xc2" + cbor2.dumps(b"\xff" * (TOC_SIZE_MAX - 64))
    started = time.process_time()
    with pytest.raises(Corrupt, match="tag"):
        decode_toc(number, 0)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", cbor2.dumps([[1, 2, 3, 4]]), cbor2.dumps({})]
    + [
        cbor2.dumps([cbor2.dumps([ref] * count)])
        for ref, count in (([1, 2, 3], 1), ([1, 2, 3, -4], 1), ([1, 2, 3, 4], 257), ("4", 1))
    ],
)
def test_a_manifest_of_garbage_is_corrupt(body: bytes) -> None:
    """The same for the pages that lists of references are kept in."""
    with pytest.raises(Corrupt):
        _ = [decode_refs(section, 0) for section in decode_sections(body, 0)]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 4095, 4096, 4097, 9000])
def test_a_list_of_references_grows_through_its_levels(count: int) -> None:
    """64 in the TOC, then pages of 64, then pages of pages: the TOC grows with the logarithm."""
    pages: dict[Ref, bytes] = {}

    def write(refs: "list[Ref] | tuple[Ref, ...]") -> Ref:
        ref = Ref(1_000_000 + len(pages), 1, refs[0].first_seq, refs[-1].last_seq)
        pages[ref] = encode_manifest([refs])
        return ref

    def read(ref: Ref) -> list[Ref]:
        (section,) = decode_sections(pages[ref], 0)
        return decode_refs(section, 0)

    refs = RefList()
    rows = [Ref(512 * number, 9, 3 * number + 1, 3 * number + 3) for number in range(count)]
    for row in rows:
        refs = refs.append(row, write)  # type: ignore[arg-type]
    assert list(refs.walk(read)) == rows
    assert all(len(level) < 64 for level in refs.levels)
    assert sum(map(len, refs.levels)) < 64 * len(refs.levels)
    for row in rows[:: max(1, count // 50)]:
        assert refs.find(row.last_seq, read) == row
    assert refs.find(3 * count + 1, read) is None
    assert refs.find(0, read) is None
