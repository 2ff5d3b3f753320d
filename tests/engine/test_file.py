"""The structures behind a header page: read with every check, published in the one right order."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import StorageFile
from cerata.engine.errors import CerataError, Corrupt, Unsupported
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.page import RING_OFFSET, HeaderPage, decode_page
from cerata.engine.format.record import EMPTY_SECTOR
from cerata.engine.format.toc import Ref, RefList, Toc
from cerata.engine.integrity import Tree
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log_file import file as file_module
from cerata.engine.log_file.create import first_toc, new_page, write_empty
from cerata.engine.log_file.file import PAGES_SIZE, Flip, LogFile, choose_page, is_whole, turned
from cerata.engine.segments.caches import CacheSizes
from cerata.engine.segments.segment_writer import SegmentDraft
from cerata.fault_injection.crash_states.operations import Sync, Write
from cerata.fault_injection.simulation.disk import SimulatedDisk

from .test_layouts import forged_page
from .words import PATH, RING, Disk

pytestmark = pytest.mark.unwatched("it writes by hand")

CHUNK = ExtentKind.CHUNK
KEYS = ExtentKind.KEYS


class Reads:
    """A file that notes what is read of it."""

    def __init__(self, inner: StorageFile) -> None:
        self.inner = inner
        self.reads: list[tuple[int, int]] = []

    def read_at(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.inner.read_at(offset, size)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


class Plain:
    """A file without events, and what is needed to read and flip it."""

    def __init__(self) -> None:
        self.file = MemoryStorage().create(PATH)
        page = new_page(Disk().environment, RING)
        write_empty(self.file, PATH, page)
        self.page = self.stored()
        self.reads = Reads(self.file)
        self.log_file = LogFile(self.reads, PATH, page.file_id)  # type: ignore[arg-type]

    def stored(self) -> HeaderPage:
        page, bad = choose_page(self.file.read_at(0, PAGES_SIZE), PATH)
        assert bad == ()
        return page

    @property
    def toc(self) -> Toc:
        return self.log_file.read_toc(self.page)

    def flip(self) -> Flip:
        return Flip(self.log_file, self.page)

    def add(self, *bodies: bytes, toc: Callable[[Toc], Toc] = lambda toc: toc) -> list[Ref]:
        """Publish extents, under a TOC with changes."""
        flip = self.flip()
        refs = [flip.add(CHUNK, body, 3, 9) for body in bodies]
        flip.write(toc(replace(self.toc, generation=self.page.generation + 1)))
        self.page = flip.publish()
        return refs

    def spoil(self, offset: int) -> None:
        byte = self.file.read_at(offset, 1)[0]
        self.file.write_at(offset, bytes([byte ^ 1]))


# --- header pages --------------------------------------------------------------------------------


def test_either_page_alone_proves_a_file_ours() -> None:
    """Of this version or of a newer one, in its own place; anything else does not."""
    log_pages = Plain().log_file.read_pages()
    newer = log_pages[:8] + (9).to_bytes(2, "little") + log_pages[10:]
    for number in (0, 1):
        at = number * PAGE_SIZE
        for pages in (log_pages, newer[:8] + newer[8:]):
            data = bytearray(PAGES_SIZE)
            data[at : at + PAGE_SIZE] = forged_page(pages[at : at + PAGE_SIZE], number)
            assert is_whole(bytes(data))
    newer_page = forged_page(newer[:PAGE_SIZE])
    assert is_whole(newer_page + bytes(PAGE_SIZE))
    assert decode_page(newer_page, 0) is None
    assert not is_whole(bytes(PAGE_SIZE) + newer_page)
    assert not is_whole(bytes(PAGES_SIZE))
    assert not is_whole(b"")


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("offset", [12, 13, 15, 180, 2_000, 4_063])
def test_a_page_with_something_that_is_not_known_is_unsupported(number: int, offset: int) -> None:
    """A later Cerata would have set a feature bit: without one, to go on might undo it."""
    pages = bytearray(Plain().log_file.read_pages())
    at = number * PAGE_SIZE
    pages[at + offset] |= 4
    pages[at : at + PAGE_SIZE] = forged_page(bytes(pages[at : at + PAGE_SIZE]), number)
    with pytest.raises(Unsupported, match=f"Header page {number} has .* does not know") as caught:
        choose_page(bytes(pages), PATH)
    assert (caught.value.where, caught.value.remedy) == (PATH, "Upgrade Cerata.")
    # A write feature explains it: who does not know that one only reads.
    pages[at + 168] = 1
    pages[at : at + PAGE_SIZE] = forged_page(bytes(pages[at : at + PAGE_SIZE]), number)
    choose_page(bytes(pages), PATH)


@pytest.mark.parametrize(
    ("versions", "error", "says"),
    [
        ((1, 1), Corrupt, "salvage=True"),
        ((1, 2), Corrupt, "salvage=True"),
        ((2, 1), Corrupt, "salvage=True"),
        ((2, 3), Corrupt, "salvage=True"),
        ((0, 0), Corrupt, "salvage=True"),
        ((2, None), Corrupt, "salvage=True"),
        ((None, 2), Corrupt, "salvage=True"),
        ((2, 2), Unsupported, "Upgrade"),
    ],
)
def test_rotten_pages_name_a_newer_format_only_if_they_agree(
    versions: tuple[int | None, int | None], error: type[CerataError], says: str
) -> None:
    """Any one version field is as likely to be rot as the rest of its page: no upgrade mends it."""
    pages = bytearray(Plain().log_file.read_pages())
    for at, version in zip((0, PAGE_SIZE), versions, strict=True):
        pages[at + 100] ^= 1
        if version is None:
            pages[at] ^= 1
        else:
            pages[at + 8 : at + 10] = version.to_bytes(2, "little")
    with pytest.raises(error, match=r"Both header pages|format version 2") as caught:
        choose_page(bytes(pages), PATH)
    assert says in str(caught.value.remedy)


def test_one_whole_page_of_a_newer_format_is_believed_beside_a_rotten_one() -> None:
    """Its check holds in every version, so no rot can have made it."""
    for number in (0, 1):
        pages = bytearray(Plain().log_file.read_pages())
        at = number * PAGE_SIZE
        page = bytes(pages[at : at + PAGE_SIZE])
        pages[at : at + PAGE_SIZE] = forged_page(page[:8] + b"\2\0" + page[10:], number)
        pages[PAGE_SIZE - at + 100] ^= 1
        with pytest.raises(Unsupported, match="format version 2"):
            choose_page(bytes(pages), PATH)


def test_pages_of_two_files_are_no_file() -> None:
    """One of them was written here by mistake, and verifies on its own."""
    plain = Plain()
    stranger = replace(plain.page, number=0, file_id=bytes(16)).encode()
    pages = stranger + plain.log_file.read_pages()[PAGE_SIZE:]
    with pytest.raises(Corrupt, match="different files"):
        choose_page(pages, PATH)


def test_the_page_to_write_is_the_other_one_and_newer() -> None:
    """Whichever is overwritten, the newest whole one stays."""
    page = Plain().page
    assert (page.number, page.flip) == (1, 2)
    assert [(one.number, one.flip) for one in (turned(page), turned(turned(page)))] == [
        (0, 3),
        (1, 4),
    ]


# --- reading -------------------------------------------------------------------------------------


def test_a_toc_is_read_by_one_read_of_what_the_page_names() -> None:
    """However long the file is behind it."""
    plain = Plain()
    page = plain.page
    plain.file.set_size(1 << 20)
    toc = plain.log_file.read_toc(page)
    assert (toc.generation, toc.ring_offset, toc.log_id) == (1, page.ring_offset, page.log_id)
    assert plain.reads.reads == [(page.toc_offset, page.data_end - page.toc_offset)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"toc_size": 1},
        {"generation": 1},
        {"sealed_seq": 1},
        {"toc_offset": 512},
        {"data_end": 512},
        {"data_end": -512},
    ],
)
def test_a_page_that_disagrees_with_its_toc_is_told(wrong: dict[str, int]) -> None:
    """It says another size, another state, another place: never is the TOC half believed."""
    plain = Plain()
    changes = {name: getattr(plain.page, name) + more for name, more in wrong.items()}
    with pytest.raises(Corrupt):
        plain.log_file.read_toc(replace(plain.page, **changes))


def test_damage_to_a_toc_or_its_footer_is_told_with_its_place() -> None:
    """The one, the other, or the file cut short between them."""
    page = Plain().page
    footer = page.data_end - 512
    for place in (page.toc_offset, footer):
        plain = Plain()
        plain.spoil(place + 3)
        with pytest.raises(Corrupt) as caught:
            plain.log_file.read_toc(page)
        assert caught.value.offset == place
        plain = Plain()
        plain.file.set_size(place)
        with pytest.raises(Corrupt):
            plain.log_file.read_toc(page)


def test_a_toc_whose_hash_is_wrong_is_not_read() -> None:
    """However well it reads: an id or a time in it has no other check."""
    plain = Plain()
    data = plain.file.read_at(plain.page.toc_offset, plain.page.toc_size)
    plain.spoil(plain.page.toc_offset + data.index(plain.page.log_id))
    with pytest.raises(Corrupt, match="The TOC is damaged"):
        plain.log_file.read_toc(plain.page)


def test_a_toc_that_bears_a_feature_which_no_page_does_is_refused() -> None:
    """It is set in both before anything depends on it, and a page may be an older one's."""
    plain = Plain()
    plain.add(toc=lambda toc: replace(toc, read_features=2))
    with pytest.raises(Unsupported, match="0x2"):
        plain.log_file.read_toc(replace(plain.page, read_features=0))


@pytest.mark.parametrize(
    ("kind", "more", "place", "error"),
    [
        (CHUNK, 0, None, None),
        (KEYS, 0, None, Corrupt),
        (CHUNK, 1, None, Corrupt),
        (CHUNK, 0, 9, Corrupt),
        (CHUNK, 0, 60, Corrupt),
        (CHUNK, 0, 64, Corrupt),
        (CHUNK, 0, 163, Corrupt),
        (CHUNK, 0, 164, Corrupt),
        (CHUNK, 0, 187, Corrupt),
        (CHUNK, 0, 188, None),
    ],
)
def test_an_extent_is_what_its_reference_says(
    kind: ExtentKind, more: int, place: int | None, error: type[Corrupt] | None
) -> None:
    """Of that kind and length, and whole: header, body and check; behind it nothing counts."""
    plain = Plain()
    _, ref = plain.add(b"a", b"b" * 100)
    ref = ref._replace(length=ref.length + more)
    if place is not None:
        plain.spoil(ref.offset + place)
    if error is None:
        assert plain.log_file.read_extent(ref, kind) == b"b" * 100
        assert plain.log_file.extent_header(ref, kind).last_seq == 9
        return
    with pytest.raises(error) as caught:
        plain.log_file.read_extent(ref, kind)
    assert caught.value.offset == ref.offset


def test_structures_that_do_not_change_are_read_once() -> None:
    """And the last 256 of each are kept, so that a log of any length needs no more memory."""
    plain = Plain()
    flip = plain.flip()
    chain, tree = plain.toc.chain, plain.toc.tree
    draft = SegmentDraft([], chain, tree)
    segments: list[Ref] = []
    for _ in range(258):
        body = draft.encode(plain.log_file.key, flip.offset)
        segments.append(flip.add(ExtentKind.SEGMENT, body))
    manifests = [flip.add_manifest([ref, *segments[:3]]) for ref in segments]
    flip.write(replace(plain.toc, generation=2))
    flip.publish()

    # The cache of segments has a limit in bytes: here that of 256 equal segments.
    size = plain.log_file.segment(segments[0].offset, segments[0].length).size_bytes
    caches = CacheSizes(256 * size * (CacheSizes().total // CacheSizes().segments))
    log_file = LogFile(plain.reads, PATH, plain.page.file_id, caches)  # type: ignore[arg-type]

    def segment(ref: Ref) -> object:
        return log_file.segment(ref.offset, ref.length)

    for read, refs in ((segment, segments), (plain.log_file.manifest, manifests)):
        first = read(refs[0])
        assert read(refs[0]) is first
        for ref in refs[1:256]:
            read(ref)
        assert read(refs[0]) is first
        read(refs[256])
        last = read(refs[257])
        assert read(refs[257]) is last
        assert read(refs[0]) is not first
    assert plain.log_file.manifest(manifests[7]) == (segments[7], *segments[:3])


# --- publishing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("join", [1, 64, 600, 1 << 20])
def test_extents_stand_where_their_references_say(
    monkeypatch: pytest.MonkeyPatch, join: int
) -> None:
    """Whether pieces are written one by one or joined; each bears the generation to come."""
    monkeypatch.setattr(file_module, "_JOIN_SIZE_MAX", join)
    plain = Plain()
    bodies = [b"", b"a" * 600, b"b", b"c" * 601, b"d" * 5000, b"e" * 424]
    end = plain.page.data_end
    refs = plain.add(*bodies)
    assert refs[0].offset == end
    for ref, body in zip(refs, bodies, strict=True):
        assert (ref.length, ref.first_seq, ref.last_seq) == (len(body), 3, 9)
        assert plain.log_file.read_extent(ref, CHUNK) == body
        header = plain.log_file.extent_header(ref, CHUNK)
        assert (header.first_seq, header.last_seq, header.generation) == (3, 9, 2)
        assert ref.offset == end
        end = header.end
    assert plain.page.toc_offset == end
    assert plain.toc.generation == 2
    assert plain.stored() == plain.page


@pytest.mark.parametrize("size", [0, 1, 512, 700])
def test_a_flip_begins_behind_everything_that_is_there(size: int) -> None:
    """Also what no TOC names yet: another writer's large batch. Never before the page's own end."""
    plain = Plain()
    end = plain.page.data_end
    plain.file.write_at(end, b"x" * size)
    expected = end + -(-size // 512) * 512
    assert plain.flip().offset == expected
    (ref,) = plain.add(b"body")
    assert ref.offset == expected
    assert plain.file.read_at(end, size) == b"x" * size
    plain.file.set_size(0)
    assert plain.flip().offset == plain.page.data_end


@pytest.mark.parametrize("size", [0, 1, 99, 100, 250])
def test_what_is_written_again_is_all_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Each byte once, as it was, in pieces that do not fill the memory."""
    monkeypatch.setattr(file_module, "_JOIN_SIZE_MAX", 100)
    disk = SimulatedDisk()
    file = disk.process().create(PATH)
    data = bytes(range(256)) * 2
    file.write_at(0, data)
    del disk.trace[:]
    LogFile(file, PATH, bytes(16)).write_again(7, 7 + size)
    writes = [one for one in disk.trace if isinstance(one, Write)]
    assert b"".join(one.data for one in writes) == data[7 : 7 + size]
    assert [one.offset for one in writes] == list(range(7, 7 + size, 100))
    assert file.read_at(0, 512) == data


def test_a_manifest_page_covers_what_it_names() -> None:
    """From the first event of its first reference to the last of its last."""
    plain = Plain()
    flip = plain.flip()
    refs = [Ref(512 * number, 9, 3 * number + 1, 3 * number + 3) for number in range(70)]
    ref = flip.add_manifest(refs)
    assert (ref.first_seq, ref.last_seq) == (1, 210)
    listed = RefList()
    for row in refs:
        listed = flip.append(listed, row)
    flip.write(replace(plain.toc, generation=2))
    flip.publish()
    assert plain.log_file.manifest(ref) == tuple(refs)
    assert list(listed.walk(plain.log_file.manifest)) == refs


@pytest.mark.parametrize("clear", [None, RING_OFFSET + 1024])
def test_a_page_is_written_only_when_all_that_it_names_is_durable(clear: int | None) -> None:
    """Extents, TOC and footer; a sync; the page, and with it what is cleared; a sync."""
    disk = SimulatedDisk()
    file = disk.process().create(PATH)
    page = new_page(Disk().environment, RING)
    file.set_size(page.data_end)
    file.write_at(page.ring_offset, b"r" * 2048)
    flip = Flip(LogFile(file, PATH, page.file_id), page)
    flip.add(CHUNK, b"body")
    del disk.trace[:]
    flip.write(first_toc(page))
    assert [type(one) for one in disk.trace] == [Write]
    published = flip.publish(incarnation=5, clear=clear)
    writes = [one for one in disk.trace if isinstance(one, Write)]
    assert [one.offset for one in writes] == [
        page.data_end,
        *([] if clear is None else [clear]),
        published.number * PAGE_SIZE,
    ]
    kinds = [type(one) for one in disk.trace]
    assert kinds == [Write, Sync, *([] if clear is None else [Write]), Write, Sync]
    assert published.incarnation == 5
    assert choose_page(file.read_at(0, PAGES_SIZE), PATH)[0] == published
    cleared = file.read_at(page.ring_offset, 2048)
    expected = b"r" * 2048 if clear is None else b"r" * 1024 + EMPTY_SECTOR + b"r" * 512
    assert cleared == expected


def test_a_flip_says_in_its_page_what_its_toc_says() -> None:
    """Whoever reads the page needs no TOC to go on in the ring."""
    plain = Plain()
    before = plain.page

    def changed(toc: Toc) -> Toc:
        return replace(
            toc,
            ring_start=toc.ring_offset + 512,
            sealed_seq=4,
            tree=Tree(4, (b"p" * 32,)),
            link=b"l" * 24,
            recorded=77,
            write_features=8,
        )

    plain.add(toc=changed)
    toc_end = plain.page.toc_offset + -(-plain.page.toc_size // 512) * 512
    assert plain.stored() == replace(
        turned(before),
        generation=2,
        toc_offset=before.data_end,
        toc_size=len(plain.toc.encode()),
        data_end=toc_end + 512,
        ring_start=before.ring_offset + 512,
        sealed_seq=4,
        link=b"l" * 24,
        recorded=77,
        write_features=8,
    )
    assert plain.file.size() == plain.page.data_end
    plain.add()
    assert (plain.stored(), plain.page.number) == (plain.page, 1)


def test_a_turned_page_is_seen_whichever_it_is() -> None:
    """One small read between the two pages shows it; without a turn nothing else is read."""
    plain = Plain()
    pages = plain.log_file.read_pages()
    plain.reads.reads.clear()
    assert plain.log_file.read_turned(pages) is pages
    ((offset, size),) = plain.reads.reads
    assert offset > 0
    assert size < 512
    for _ in range(2):
        plain.add(b"")
        newer = plain.log_file.read_turned(pages)
        assert newer == plain.file.read_at(0, PAGES_SIZE) != pages
        pages = newer
    assert plain.log_file.read_turned(b"") == pages
