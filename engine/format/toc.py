"""The TOC: the content of the file, as one map of deterministic CBOR before each footer.

Owns the TOC's fields, extent references and the append-only lists of them (`RefList`, a radix tree
of manifest pages, so that the TOC stays small however long the log grows), and the bodies of
manifests and ledgers, which several projections share: one section each. Names that a process does
not know are carried unchanged. docs/format.md gives the CDDL.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

import cbor2
import msgspec
from msgspec import UNSET, UnsetType

from ..errors import Corrupt, Unsupported
from ..integrity import HASH_SIZE, Tree
from ..limits import TOC_SIZE_MAX
from .checksums import CHECK_SIZE
from .page import HeaderPage

MANIFEST_ENTRIES_MAX = 256
LEDGER_ENTRIES_MAX = 64
_FANOUT = 64
"""Entries of a list in the TOC before they move to a manifest page: 64 are about 1.5 KB."""


_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Instant: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Short: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Id: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
_Hash: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=HASH_SIZE, max_length=HASH_SIZE)]
_Link: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=CHECK_SIZE, max_length=CHECK_SIZE)]


class Ref(NamedTuple):
    """A reference to an extent: file offset, body bytes, and the seqs that the extent covers."""

    offset: _Number
    length: _Number
    first_seq: _Number
    last_seq: _Number


class Section(NamedTuple):
    """A reference to a section of a manifest or ledger: the fields of its `Ref`, and its number."""

    offset: _Number
    length: _Number
    first_seq: _Number
    last_seq: _Number
    number: _Number

    @property
    def extent(self) -> Ref:
        """The extent that the section is in."""
        return Ref(*self[:4])


_FIRST_SEQ = attrgetter("first_seq")


class RefList(msgspec.Struct, frozen=True):
    """An append-only list of references in O(log n) of TOC.

    ``levels[0]`` are the newest references; ``levels[i]`` are manifest pages of earlier references,
    each covering 64 entries of the level below. Seqs ascend from the highest level to level 0.
    """

    levels: tuple[tuple[Ref, ...], ...] = ((),)

    def append(self, ref: Ref, write_page: "Callable[[Sequence[Ref]], Ref]") -> "RefList":
        """Return the list with ``ref`` added; ``write_page`` stores full levels."""
        levels = [list(level) for level in self.levels]
        carried: Ref | None = ref
        for level in levels:
            assert carried is not None
            level.append(carried)
            if len(level) < _FANOUT:
                carried = None
                break
            carried = write_page(level)
            level.clear()
        if carried is not None:
            levels.append([carried])
        return RefList(tuple(tuple(level) for level in levels))

    def walk(self, read_page: "Callable[[Ref], Sequence[Ref]]") -> Iterator[Ref]:
        """Yield every reference in seq order, reading manifest pages on the way."""
        for depth in range(len(self.levels) - 1, -1, -1):
            for ref in self.levels[depth]:
                yield from _expand(ref, depth, read_page)

    def find(self, seq: int, read_page: "Callable[[Ref], Sequence[Ref]]") -> Ref | None:
        """Return the reference that covers ``seq``; O(log n) pages read."""
        for depth, level in enumerate(self.levels):
            place = bisect_right(level, seq, key=_FIRST_SEQ)
            ref = level[place - 1] if place else None
            if ref is not None and ref.last_seq >= seq:
                for _ in range(depth):
                    ref = _covering(read_page(ref), seq)
                    if ref is None:
                        return None
                return ref
        return None

    def pages(self) -> Iterator[Ref]:
        """Yield the manifest pages that the TOC names directly."""
        for level in self.levels[1:]:
            yield from level


def _covering(refs: Sequence[Ref], seq: int) -> Ref | None:
    """Return the reference that covers ``seq``; references are in order of seq."""
    place = bisect_right(refs, seq, key=_FIRST_SEQ)
    if not place:
        return None
    ref = refs[place - 1]
    return ref if ref.last_seq >= seq else None


def _expand(ref: Ref, depth: int, read_page: "Callable[[Ref], Sequence[Ref]]") -> Iterator[Ref]:
    if depth == 0:
        yield ref
        return
    for below in read_page(ref):
        yield from _expand(below, depth - 1, read_page)


def decode_sections(body: bytes, offset: int) -> list[bytes]:
    """Return the encoded sections of a manifest or ledger. Raises `Corrupt` for other bytes."""
    return _converted(_loads(body, offset), list[bytes], "A manifest or ledger", offset)


def encode_manifest(pages: Sequence[Sequence[Ref]]) -> bytes:
    """Return the body of a manifest: pages of at most 256 references, one a section."""
    assert all(len(refs) <= MANIFEST_ENTRIES_MAX for refs in pages)
    return _encode_sections([[list(ref) for ref in refs] for refs in pages])


def _encode_sections(sections: Sequence[list[Any]]) -> bytes:
    parts = [cbor2.dumps(part, canonical=True) for part in sections]
    return _encoded(parts, "A manifest or ledger")


def _encoded(value: object, part: str) -> bytes:
    """Return the CBOR of a part of the contents. Raises `Corrupt` for one that no reader takes."""
    data = cbor2.dumps(value, canonical=True)
    if len(data) > TOC_SIZE_MAX:
        raise Corrupt(
            f"{part} needs {len(data):,} bytes; the limit is {TOC_SIZE_MAX:,}",
            remedy="Copy the memory with 'cerata file backup NEW'; the copy has a smaller one.",
        )
    return data


def decode_refs(section: bytes, offset: int) -> list[Ref]:
    """Decode a page of references. Raises `Corrupt` for other bytes."""
    refs = _converted(_loads(section, offset), list[Ref], "A manifest page", offset)
    if len(refs) > MANIFEST_ENTRIES_MAX:
        raise Corrupt(
            f"A manifest page has {len(refs):,} references; the limit is {MANIFEST_ENTRIES_MAX}",
            offset=offset,
        )
    return refs


class LedgerEntry(NamedTuple):
    """A projection's digest at an event, from the time a checkpoint was saved."""

    seq: _Number
    digest: _Hash


def encode_ledger(ledgers: Sequence[Sequence[LedgerEntry]]) -> bytes:
    """Return the body of a ledger: at most 64 entries a section, seqs ascending."""
    assert all(len(entries) <= LEDGER_ENTRIES_MAX for entries in ledgers)
    return _encode_sections([[list(entry) for entry in entries] for entries in ledgers])


def decode_ledger(section: bytes, offset: int) -> list[LedgerEntry]:
    """Decode a section of a ledger. Raises `Corrupt` for other bytes."""
    entries = _converted(_loads(section, offset), list[LedgerEntry], "A ledger", offset)
    if len(entries) > LEDGER_ENTRIES_MAX:
        raise Corrupt(
            f"A ledger has {len(entries):,} entries; the limit is {LEDGER_ENTRIES_MAX}",
            offset=offset,
        )
    for earlier, later in pairwise(entries):
        if later.seq <= earlier.seq:
            raise Corrupt("The seqs of a ledger do not ascend", offset=offset)
    return entries


class SavedProjection(msgspec.Struct, frozen=True):
    """The part of a projection's TOC entry that the engine reads, to follow the references.

    ``chunks`` are pages of at most 256 chunks each, in order of seq; ``ledger`` holds the digests
    of earlier checkpoints. ``seq`` and ``digest`` describe the state of the chunks.
    """

    seq: _Number = 0
    digest: bytes = b""
    chunks: tuple[Section, ...] = ()
    ledger: Section | None = None

    def to_entry(self) -> dict[str, Any]:
        """Return the entry as stored in the TOC."""
        entry: dict[str, Any] = {"seq": self.seq, "digest": self.digest}
        if self.chunks:
            entry["chunks"] = [list(page) for page in self.chunks]
        if self.ledger is not None:
            entry["ledger"] = list(self.ledger)
        return entry

    def extents(self) -> Iterator[Ref]:
        """Yield the manifests and the ledger that have a section of this projection."""
        for page in self.chunks:
            yield page.extent
        if self.ledger is not None:
            yield self.ledger.extent


class Toc(msgspec.Struct, frozen=True):
    """The decoded TOC.

    ``tree`` has ``sealed_seq`` leaves; ``chain`` and ``recorded`` are those of the sealed seq. The
    features are the header page's, so that a page built from a footer has them too. ``erased`` is
    the seq of the newest `erase` event that the file reflects, 0 for none: state computed under
    another value may hold content that is erased now. ``branch`` is the seq of the newest sealed
    `branch` event, 0 for none. ``projections`` maps a projection's key to
    its entry, of which the engine reads only the fields of `SavedProjection`: a walk over the file
    must find every extent that the entry references.
    """

    file_id: bytes
    log_id: bytes
    created: int
    generation: int
    ring_offset: int
    ring_size: int
    ring_start: int
    incarnation: int
    sealed_seq: int
    recorded: int
    chain: bytes
    link: bytes
    tree: Tree = msgspec.field(default_factory=Tree)
    segments: RefList = msgspec.field(default_factory=RefList)
    keys: tuple[Ref, ...] = ()
    projections: Mapping[str, Mapping[str, Any]] = msgspec.field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    quarantine: tuple[Ref, ...] = ()
    read_features: int = 0
    write_features: int = 0
    erased: int = 0
    branch: int = 0
    unknown: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @classmethod
    def of_page(
        cls, page: HeaderPage, chain: bytes, tree: Tree | None = None, segments: Sequence[Ref] = ()
    ) -> "Toc":
        """Return the TOC that fits a header page, over these segments in seq order.

        They form one flat level: the next flip moves a long level into manifest pages.
        """
        return cls(
            file_id=page.file_id,
            log_id=page.log_id,
            created=page.created,
            generation=page.generation,
            ring_offset=page.ring_offset,
            ring_size=page.ring_size,
            ring_start=page.ring_start,
            incarnation=page.incarnation,
            sealed_seq=page.sealed_seq,
            recorded=page.recorded,
            chain=chain,
            link=page.link,
            tree=tree or Tree(),
            read_features=page.read_features,
            write_features=page.write_features,
            segments=RefList((tuple(segments),)),
        )

    def encode(self) -> bytes:
        """Return the TOC's bytes. Raises `Corrupt` if they exceed the limit."""
        fields: dict[str, Any] = {
            **self.unknown,
            "file": self.file_id,
            "log": self.log_id,
            "created": self.created,
            "features": [self.read_features, self.write_features],
            "generation": self.generation,
            "erased": self.erased,
            **({"branch": self.branch} if self.branch else {}),
            "ring": [self.ring_offset, self.ring_size, self.ring_start, self.incarnation],
            "sealed": [self.sealed_seq, self.recorded, self.chain, self.link],
            "peaks": list(self.tree.peaks),
            "segments": [[list(ref) for ref in level] for level in self.segments.levels],
            "keys": [list(ref) for ref in self.keys],
            "projections": self.projections,
            "quarantine": [list(ref) for ref in self.quarantine],
        }
        return _encoded(fields, "The table of contents")

    def references(self) -> Iterator[Ref]:
        """Yield every extent that the TOC names directly, each once."""
        for level in self.segments.levels:
            yield from level
        yield from self.keys
        yield from self.quarantine
        yield from {ref: None for key in self.projections for ref in self.saved(key).extents()}

    def saved(self, key: str) -> SavedProjection:
        """Return the saved state of a projection; an empty state if it has no entry."""
        return msgspec.convert(
            self.projections.get(key, {}), SavedProjection, builtin_types=(bytes,)
        )


class _Fields(msgspec.Struct, frozen=True):
    """The names of the TOC that this version knows, as stored."""

    file: _Id
    log: _Id
    created: _Instant
    features: tuple[_Short, _Short]
    generation: _Number
    ring: tuple[_Number, _Number, _Number, _Short]
    sealed: tuple[_Number, _Instant, _Hash, _Link]
    peaks: tuple[_Hash, ...]
    segments: Annotated[tuple[tuple[Ref, ...], ...], msgspec.Meta(min_length=1)]
    keys: tuple[Ref, ...]
    projections: dict[str, dict[str, Any]]
    quarantine: tuple[Ref, ...]
    branch: _Number = 0
    erased: _Number | UnsetType = UNSET


def decode_toc(data: bytes, offset: int) -> Toc:
    """Decode and check a TOC whose hash is verified.

    Raises:
        Corrupt: the TOC is malformed.
        Unsupported: the file is older than the field ``erased``.
    """
    loaded = _loads(data, offset)
    fields = _converted(loaded, _Fields, "The TOC", offset)
    if fields.erased is UNSET:
        raise Unsupported(
            "The file was written by an unreleased version of Cerata: its TOC has no 'erased'",
            where=f"offset {offset:,}",
            remedy="Read it with the version that wrote it, and put its memories into a new file.",
        )
    names = cast("dict[str, Any]", loaded)
    if set(map(type, names)) != {str}:
        raise Corrupt("The TOC is malformed: a name in it is not text", offset=offset)
    for entry in fields.projections.values():
        _converted(entry, SavedProjection, "A projection in the TOC", offset)
    sealed_seq, recorded, chain, link = fields.sealed
    if len(fields.peaks) != sealed_seq.bit_count():
        raise Corrupt("The TOC's tree does not fit its sealed seq", offset=offset)
    ring_offset, ring_size, ring_start, incarnation = fields.ring
    return Toc(
        file_id=fields.file,
        log_id=fields.log,
        created=fields.created,
        generation=fields.generation,
        ring_offset=ring_offset,
        ring_size=ring_size,
        ring_start=ring_start,
        incarnation=incarnation,
        sealed_seq=sealed_seq,
        recorded=recorded,
        chain=chain,
        link=link,
        tree=Tree(sealed_seq, fields.peaks),
        segments=RefList(fields.segments),
        keys=fields.keys,
        projections=fields.projections,
        quarantine=fields.quarantine,
        read_features=fields.features[0],
        write_features=fields.features[1],
        erased=fields.erased,
        branch=fields.branch,
        unknown={name: names[name] for name in names.keys() - _Fields.__struct_fields__},
    )


_Value = TypeVar("_Value")


def _converted(value: object, kind: type[_Value], part: str, offset: int) -> _Value:
    try:
        return msgspec.convert(value, kind, builtin_types=(bytes,))
    except (msgspec.ValidationError, RecursionError) as error:
        raise Corrupt(f"{part} is malformed: {error}", offset=offset) from error


def _refuse_tag(*_: object) -> NoReturn:
    raise ValueError("it has a tag")


_TAGS = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004)
_NO_TAGS: "dict[int, Callable[..., NoReturn]]" = dict.fromkeys(
    (*_TAGS, 43_000, 55_799), _refuse_tag
)
"""The tags that cbor2 decodes itself: an integer of 4 MB as a decimal takes minutes."""


def _loads(data: bytes, offset: int) -> object:
    """Decode CBOR without tags; bugs of the Rust core, a BaseException, are `Corrupt`, too."""
    if len(data) > TOC_SIZE_MAX:
        raise Corrupt(
            f"A part of the contents has {len(data):,} bytes; the limit is {TOC_SIZE_MAX:,}",
            offset=offset,
        )
    try:
        value: object = cbor2.loads(data, semantic_decoders=_NO_TAGS, tag_hook=_refuse_tag)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise Corrupt(f"The bytes are not deterministic CBOR: {error}", offset=offset) from error
    return value
