"""The open file: its header pages, TOC and extents, and the flip that publishes new extents.

Owns the verified reads of these structures, and `Flip`, which writes everything except ring
records. Leaves out the decisions of recovery (`recovery`) and the log itself (`log`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from msgspec.structs import replace

from ..disk.storage import Buffer, StorageFile
from ..errors import Corrupt, Unsupported
from ..format.checksums import TAG_EXTENT_BODY, check, file_key
from ..format.extent import (
    EXTENT_HEADER_SIZE,
    ExtentHeader,
    ExtentKind,
    decode_extent_header,
    encode_extent,
)
from ..format.footer import decode_footer, encode_footer, toc_is_whole
from ..format.page import (
    PAGE_CHECK_SIZE,
    PAGE_FIELDS_SIZE,
    READ_FEATURES,
    VERSION,
    WRITE_FEATURES,
    HeaderPage,
    decode_page,
    newer_version,
    stored_version,
    unknown_content,
)
from ..format.record import EMPTY_SECTOR, sectors
from ..format.toc import (
    LedgerEntry,
    Ref,
    RefList,
    SavedProjection,
    Section,
    Toc,
    decode_ledger,
    decode_refs,
    decode_sections,
    decode_toc,
    encode_ledger,
    encode_manifest,
)
from ..format.witness import WITNESS_SIZE, WITNESS_SPACE, decode_witness, encode_witness
from ..limits import PAGE_SIZE, SECTOR_SIZE
from ..segments.caches import CacheSizes, SegmentCache
from ..segments.segment_reader import Segment, forget_oldest

PAGES_SIZE = 2 * PAGE_SIZE
_TURN_OFFSET = PAGE_SIZE - PAGE_CHECK_SIZE
_TURN_STOP = PAGE_SIZE + PAGE_FIELDS_SIZE
_TURN_SIZE = _TURN_STOP - _TURN_OFFSET
_MANIFESTS_KEPT_MAX = 256
_JOIN_SIZE_MAX = 8 << 20
"""Pieces up to this many bytes are joined and written by one call."""


def choose_page(pages: bytes, path: str) -> tuple[HeaderPage, tuple[int, ...]]:
    """Return the newest valid header page and the numbers of the bad pages.

    Raises:
        Unsupported: a valid page, or two invalid pages alike, name a newer format; a valid page has
            unknown flags or bytes; or the file is not a Cerata file at all.
        Corrupt: neither page verifies, and they do not agree on a newer format.
    """
    found: list[HeaderPage] = []
    bad: list[int] = []
    for number in (0, 1):
        data = pages[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]
        page = decode_page(data, number)
        if page is None:
            version = newer_version(data, number)
            if version is not None:
                raise _newer(path, version)
            bad.append(number)
        else:
            unknown = unknown_content(data, page)
            if unknown is not None:
                raise Unsupported(
                    f"Header page {number} has {unknown}, which this Cerata does not know",
                    where=path,
                    remedy="Upgrade Cerata.",
                )
            found.append(page)
    if found:
        newest = max(found, key=lambda page: page.flip)
        if any(page.file_id != newest.file_id for page in found):
            raise Corrupt(
                "The two header pages are of different files",
                where=f"{path}, offsets 0 and {PAGE_SIZE:,}",
                remedy="Restore a backup.",
                offset=0,
            )
        check_readable(newest.read_features, path)
        return newest, tuple(bad)
    versions = [stored_version(pages[at : at + PAGE_SIZE]) for at in (0, PAGE_SIZE)]
    if versions == [None, None]:
        if not pages:
            raise Unsupported(
                "The file is empty, not a Cerata file",
                where=path,
                remedy="Remove it and open the path again, or name another path.",
            )
        raise Unsupported(
            "The file is not a Cerata file: it does not start with the magic bytes",
            where=path,
            remedy="Check the path; nothing was changed.",
        )
    # Neither page verifies in any version, so a version field of 2 may be one flipped bit. Two
    # pages that agree are a damaged file of that version, which only a newer Cerata can read.
    first, second = versions
    if first is not None and first > VERSION and first == second:
        raise _newer(path, first)
    raise Corrupt(
        "Both header pages are damaged",
        where=f"{path}, offsets 0 and {PAGE_SIZE:,}",
        remedy="Restore a backup, or open it with OpenOptions(salvage=True) to read the "
        "intact events.",
        offset=0,
    )


def _newer(path: str, version: int) -> Unsupported:
    return Unsupported(
        f"The file has format version {version}; this Cerata reads version {VERSION}",
        where=path,
        remedy="Upgrade Cerata.",
    )


def is_whole(pages: bytes) -> bool:
    """Return whether either header page verifies, in this version or a newer version."""
    return any(
        decode_page(data, number) is not None or newer_version(data, number) is not None
        for number, data in enumerate((pages[:PAGE_SIZE], pages[PAGE_SIZE:]))
    )


def check_readable(read_features: int, path: str) -> None:
    """Refuse to read a file that this Cerata would misread. Raises `Unsupported`."""
    unknown = read_features & ~READ_FEATURES
    if unknown:
        raise Unsupported(
            f"The file uses features that this Cerata does not know (0x{unknown:x})",
            where=path,
            remedy="Upgrade Cerata.",
        )


def check_writable(page: HeaderPage, path: str) -> None:
    """Refuse to write to a file whose newer features this Cerata would undo.

    Raises:
        Unsupported: the page names a feature that a writer must know, and this Cerata does not.
    """
    unknown = page.write_features & ~WRITE_FEATURES
    if unknown:
        raise Unsupported(
            f"The file uses features that this Cerata cannot write (0x{unknown:x})",
            where=path,
            remedy="Open it with mode='r', or upgrade Cerata.",
        )


class LogFile:
    """Typed access to an open file.

    Positional and stateless except for caches of immutable structures, so threads may share it.
    """

    def __init__(
        self, file: StorageFile, path: str, file_id: bytes, caches: CacheSizes | None = None
    ) -> None:
        self.file = file
        self.path = path
        self.key = file_key(file_id)
        self.caches = caches or CacheSizes()
        self._segments = SegmentCache(self.key, self.caches.segments)
        self._manifests: dict[Ref, list[bytes]] = {}
        self._pages: dict[Section, tuple[Ref, ...]] = {}

    def again(self, file_id: bytes, file: StorageFile | None = None) -> "LogFile":
        """Return the same file, or the file that replaced it, with empty caches of these sizes."""
        return LogFile(file or self.file, self.path, file_id, self.caches)

    def read_pages(self) -> bytes:
        """Return both header pages' bytes; fewer than 8,192 if the file is shorter."""
        return self.file.read_at(0, PAGES_SIZE)

    def read_turned(self, known: bytes) -> bytes:
        """Return both header pages' bytes: ``known``, unless a page changed since.

        A new page has another flip number, which changes the check of page 0 and the fields of page
        1; the two are adjacent. Without the writer lock a page may be half written: then its flip
        is unfinished, and either answer is right.
        """
        if known and self.file.read_at(_TURN_OFFSET, _TURN_SIZE) == known[_TURN_OFFSET:_TURN_STOP]:
            return known
        return self.read_pages()

    def read_witnesses(self, page: HeaderPage) -> tuple[int | None, int | None]:
        """Return the seqs that the two witnesses name; None for a damaged witness."""
        first, second = page.witness_offsets
        return self._read_witness(first), self._read_witness(second)

    def older_witness(self, page: HeaderPage) -> int:
        """Return the number of the witness that names the lower seq, or is damaged."""
        first, second = self.read_witnesses(page)
        return 0 if first is None or (second is not None and first < second) else 1

    def _read_witness(self, offset: int) -> int | None:
        seq = decode_witness(self.key, offset, self.file.read_at(offset, WITNESS_SIZE))
        if seq is None:
            # A reader takes no lock, and may see half of a write.
            seq = decode_witness(self.key, offset, self.file.read_at(offset, WITNESS_SIZE))
        return seq

    def write_witnesses(
        self, page: HeaderPage, durable_through: int, numbers: Sequence[int] = (0, 1)
    ) -> None:
        """Name a durable event outside the ring; the caller's next sync covers it."""
        for number in numbers:
            offset = page.witness_offsets[number]
            self.file.write_at(offset, encode_witness(self.key, offset, durable_through))

    def write_again(self, start: int, stop: int) -> None:
        """Write bytes over themselves, so that the next sync covers them.

        After a failed sync the system may show bytes as clean that never reached the disk.
        """
        for at in range(start, stop, _JOIN_SIZE_MAX):
            self.file.write_at(at, self.file.read_at(at, min(_JOIN_SIZE_MAX, stop - at)))

    def read_toc(self, page: HeaderPage) -> Toc:
        """Return the TOC that a header page names. Raises `Corrupt`."""
        data = self.file.read_at(page.toc_offset, page.data_end - page.toc_offset)
        at = page.data_end - SECTOR_SIZE - page.toc_offset
        footer = decode_footer(self.key, page.toc_offset + at, data[at:])
        toc = data[: page.toc_size]
        if footer is None or footer.toc_size != page.toc_size:
            raise Corrupt(
                "The footer that the header names is damaged", offset=page.data_end - SECTOR_SIZE
            )
        if not toc_is_whole(self.key, footer, toc):
            raise Corrupt("The TOC is damaged", offset=page.toc_offset)
        decoded = decode_toc(toc, page.toc_offset)
        check_readable(decoded.read_features, self.path)
        if decoded.generation != page.generation or decoded.sealed_seq != page.sealed_seq:
            raise Corrupt("The TOC and the header disagree", offset=page.toc_offset)
        return decoded

    def extent_header(self, ref: Ref, kind: ExtentKind) -> ExtentHeader:
        """Return the verified header of a referenced extent. Raises `Corrupt`."""
        header = decode_extent_header(
            self.key, ref.offset, self.file.read_at(ref.offset, EXTENT_HEADER_SIZE)
        )
        if header is not None and header.flags:
            raise Unsupported(
                f"An extent has flags that this Cerata does not know (0x{header.flags:x})",
                where=f"offset {ref.offset:,}",
                remedy="Upgrade Cerata.",
            )
        if header is None or header.kind != kind or header.length != ref.length:
            raise Corrupt(
                f"The header of a {kind.name.lower()} extent is damaged",
                offset=ref.offset,
                remedy="Run 'cerata file verify' to see what is affected.",
            )
        return header

    def read_extent(self, ref: Ref, kind: ExtentKind) -> bytes:
        """Return an extent's verified body as bytes. Raises `Corrupt`."""
        header = self.extent_header(ref, kind)
        body = self.file.read_at(header.body_offset, header.length)
        own = check(self.key, TAG_EXTENT_BODY, ref.offset, header.own_check, body)
        if own != self.file.read_at(header.body_offset + header.length, len(own)):
            raise Corrupt(
                f"The body of a {kind.name.lower()} extent is damaged",
                offset=ref.offset,
                remedy="Run 'cerata file verify' to see what is affected.",
            )
        return body

    def segment(self, offset: int, length: int) -> Segment:
        """Return a segment or spill with its decoded index; the last are cached."""
        return self._segments.get(self.file, offset, length)

    def drop_segments(self) -> None:
        """Drop the cached segments; a running read keeps its own."""
        self._segments.clear()

    def manifest(self, ref: Ref) -> tuple[Ref, ...]:
        """Return the references in the first section of a manifest, the only one of segments."""
        return self.page(Section(*ref, 0))

    def pages(self, ref: Ref) -> list[tuple[Ref, ...]]:
        """Return the references in each section of a manifest."""
        count = len(self._sections_of(ref, ExtentKind.MANIFEST))
        return [self.page(Section(*ref, number)) for number in range(count)]

    def page(self, section: Section) -> tuple[Ref, ...]:
        """Return the references in a section of a manifest; the last 256 pages are cached."""
        refs = self._pages.get(section)
        if refs is None:
            data = _numbered(self._sections_of(section.extent, ExtentKind.MANIFEST), section)
            refs = self._pages[section] = tuple(decode_refs(data, section.offset))
            forget_oldest(self._pages, _MANIFESTS_KEPT_MAX)
        return refs

    def _sections_of(self, ref: Ref, kind: ExtentKind) -> list[bytes]:
        """Return the encoded sections of a manifest or ledger; those of the last 256 are cached."""
        sections = self._manifests.get(ref)
        if sections is None:
            body = self.read_extent(ref, kind)
            sections = self._manifests[ref] = decode_sections(body, ref.offset)
            forget_oldest(self._manifests, _MANIFESTS_KEPT_MAX)
        return sections

    def ledger(self, section: Section) -> list[LedgerEntry]:
        """Return the entries of a projection's ledger, oldest first."""
        data = _numbered(self._sections_of(section.extent, ExtentKind.LEDGER), section)
        return decode_ledger(data, section.offset)


def _numbered(sections: Sequence[bytes], section: Section) -> bytes:
    """Return the section that a reference names. Raises `Corrupt` if there is none."""
    if section.number >= len(sections):
        raise Corrupt(
            f"A manifest or ledger has {len(sections)} sections, none with number {section.number}",
            offset=section.offset,
        )
    return sections[section.number]


class StateDraft(NamedTuple):
    """A checkpoint to be named: pages in order, stored or new, and digests, none for no ledger."""

    seq: int
    digest: bytes
    pages: Sequence[Section | Sequence[Ref]]
    ledger: Sequence[LedgerEntry] = ()


def turned(page: HeaderPage) -> HeaderPage:
    """Return the page for the next write, which replaces the older of the two."""
    return replace(page, number=1 - page.number, flip=page.flip + 1)


class Flip:
    """New extents, a TOC and a header page: add, `write`, `publish`. Needs the writer lock.

    Invariant: before `publish`, nothing on disk references the new bytes, and the header page is
    written only after all of them are durable. So a crash at any instant leaves the older state or
    the newer state.
    """

    def __init__(self, log_file: LogFile, page: HeaderPage) -> None:
        self._log_file = log_file
        self._page = page
        self._start = sectors(max(log_file.file.size(), page.data_end))
        self._at = self._start
        self._pieces: list[Buffer] = []
        self._flipped: HeaderPage

    @property
    def offset(self) -> int:
        """Offset of the next extent."""
        return self._at

    def add(self, kind: ExtentKind, body: Buffer, first_seq: int = 0, last_seq: int = 0) -> Ref:
        """Add an extent and return its reference."""
        pieces = encode_extent(
            self._log_file.key,
            self._at,
            kind,
            body,
            first_seq,
            last_seq,
            generation=self._page.generation + 1,
        )
        ref = Ref(self._at, len(body), first_seq, last_seq)
        self._pieces += pieces
        self._at += sum(map(len, pieces))
        return ref

    def append(self, refs: RefList, ref: Ref) -> RefList:
        """Append to a list of references, moving a full list into a manifest page."""
        return refs.append(ref, self.add_manifest)

    def add_manifest(self, *pages: Sequence[Ref]) -> Ref:
        """Add a manifest of pages of at most 256 references each, and return its reference."""
        first, last = pages[0][0].first_seq, 0
        for refs in pages:
            first = min(first, refs[0].first_seq)
            last = max(last, refs[-1].last_seq)
        return self.add(ExtentKind.MANIFEST, encode_manifest(pages), first, last)

    def add_states(self, drafts: Mapping[str, StateDraft]) -> dict[str, SavedProjection]:
        """Add the manifests and the ledger of checkpoints, and return what names them, by key.

        The new pages of one place, mostly the last, share a manifest, and all digests a ledger.
        """
        pages = {key: [*draft.pages] for key, draft in drafts.items()}
        for place in range(max(map(len, pages.values()), default=0)):
            added = {
                key: page
                for key, listed in pages.items()
                for page in listed[place : place + 1]
                if not isinstance(page, Section)
            }
            ref = self.add_manifest(*added.values()) if added else None
            for number, key in enumerate(added):
                assert ref is not None
                pages[key][place] = Section(*ref, number)
        ledgers = {key: draft.ledger for key, draft in drafts.items() if draft.ledger}
        sections = dict[str, Section]()
        if ledgers:
            last = max(entries[-1].seq for entries in ledgers.values())
            ref = self.add(ExtentKind.LEDGER, encode_ledger([*ledgers.values()]), 1, last)
            sections = {key: Section(*ref, number) for number, key in enumerate(ledgers)}
        return {
            key: SavedProjection(
                seq=draft.seq,
                digest=draft.digest,
                # Each page is a section by now.
                chunks=tuple(cast("list[Section]", pages[key])),
                ledger=sections.get(key),
            )
            for key, draft in drafts.items()
        }

    def add_ring(self, size: int, durable_through: int) -> int:
        """Add an empty ring between two witnesses, and return its offset.

        Both witnesses name the event ``durable_through``. They lie in blocks of 4,096 bytes that
        the disk writes for nothing else.
        """
        padding = -self._at % WITNESS_SPACE
        first = self._at + padding
        offset = first + WITNESS_SPACE
        witnesses = [
            encode_witness(self._log_file.key, at, durable_through).ljust(WITNESS_SPACE, b"\0")
            for at in (first, offset + size)
        ]
        self._pieces += [bytes(padding), witnesses[0], bytes(size), witnesses[1]]
        self._at = offset + size + WITNESS_SPACE
        return offset

    def write(self, toc: Toc) -> None:
        """Write the extents, the TOC and its footer; nothing references them until `publish`.

        Raises:
            StorageFailed: the disk refused; the file's state is unchanged.
        """
        toc_bytes = toc.encode()
        toc_offset = self._at
        footer_offset = toc_offset + sectors(len(toc_bytes))
        footer = encode_footer(
            self._log_file.key, footer_offset, toc_bytes, toc.generation, toc.sealed_seq
        )
        self._pieces += [toc_bytes.ljust(sectors(len(toc_bytes)), b"\0"), footer]
        self._write()
        self._flipped = replace(
            turned(self._page),
            generation=toc.generation,
            toc_offset=toc_offset,
            toc_size=len(toc_bytes),
            data_end=footer_offset + SECTOR_SIZE,
            ring_offset=toc.ring_offset,
            ring_size=toc.ring_size,
            ring_start=toc.ring_start,
            sealed_seq=toc.sealed_seq,
            link=toc.link,
            recorded=toc.recorded,
            read_features=toc.read_features,
            write_features=toc.write_features,
        )

    def publish(self, *, incarnation: int | None = None, clear: int | None = None) -> HeaderPage:
        """Sync the written bytes, then write the other header page and sync again.

        ``clear`` is the offset of a ring sector to zero: recovery cut it, and an extent has a copy.
        Durable on return; after an error either state may be on disk.
        """
        file = self._log_file.file
        file.sync()
        flipped = self._flipped
        if incarnation is not None:
            flipped = replace(flipped, incarnation=incarnation)
        if clear is not None:
            file.write_at(clear, EMPTY_SECTOR)
        file.write_at(flipped.number * PAGE_SIZE, flipped.encode())
        file.sync()
        return flipped

    def _write(self) -> None:
        at = self._start
        small: list[Buffer] = []
        for piece in self._pieces:
            if len(piece) > _JOIN_SIZE_MAX:
                at = self._write_joined(at, small)
                self._log_file.file.write_at(at, piece)
                at += len(piece)
            else:
                small.append(piece)
        self._write_joined(at, small)

    def _write_joined(self, at: int, pieces: list[Buffer]) -> int:
        joined = b"".join(pieces)
        pieces.clear()
        if joined:
            self._log_file.file.write_at(at, joined)
        return at + len(joined)
