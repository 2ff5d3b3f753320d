"""The TOC: what the file holds, as one map of deterministic CBOR before each footer.

Owns the TOC's fields, extent references and the append-only lists of them (`RefList`, a radix
tree of manifest pages, so that the TOC stays small however long the log grows). Names that a
process does not know are carried unchanged. docs/format.md gives the CDDL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import cbor2

from ..errors import Corrupt
from ..integrity import HASH_SIZE, Tree
from ..limits import TOC_SIZE_MAX
from .checks import CHECK_SIZE

MANIFEST_ENTRIES_MAX = 256
_FANOUT = 64
"""Entries of a list kept in the TOC before they move to a manifest page: 64 are about 1.5 KB."""


class Ref(NamedTuple):
    """Where an extent stands: file offset, body bytes, and the seqs that it covers."""

    offset: int
    length: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class RefList:
    """An append-only list of references in O(log n) of TOC.

    ``levels[0]`` are the newest references; ``levels[i]`` are manifest pages of what went before,
    each covering 64 entries of the level below. Seqs ascend from the highest level to level 0.
    """

    levels: tuple[tuple[Ref, ...], ...] = ((),)

    def append(self, ref: Ref, write_page: "Callable[[Sequence[Ref]], Ref]") -> "RefList":
        """Return the list with ``ref`` added; full levels move out through ``write_page``."""
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
            for ref in reversed(level):
                if _covers(ref, seq):
                    for _ in range(depth):
                        below = next((row for row in read_page(ref) if _covers(row, seq)), None)
                        if below is None:
                            return None
                        ref = below
                    return ref
        return None

    def pages(self) -> Iterator[Ref]:
        """Yield the manifest pages that the TOC itself names."""
        for level in self.levels[1:]:
            yield from level


def _covers(ref: Ref, seq: int) -> bool:
    return ref.first_seq <= seq <= ref.last_seq


def _expand(ref: Ref, depth: int, read_page: "Callable[[Ref], Sequence[Ref]]") -> Iterator[Ref]:
    if depth == 0:
        yield ref
        return
    for below in read_page(ref):
        yield from _expand(below, depth - 1, read_page)


def encode_manifest(refs: Sequence[Ref]) -> bytes:
    """Return the body of a manifest page: at most 256 references."""
    assert len(refs) <= MANIFEST_ENTRIES_MAX
    return cbor2.dumps([list(ref) for ref in refs], canonical=True)


def decode_manifest(body: bytes, offset: int) -> list[Ref]:
    """Decode a manifest page. Raises `Corrupt` where it is not one."""
    rows = _loads(body, offset)
    if not isinstance(rows, list) or len(rows) > MANIFEST_ENTRIES_MAX:
        raise Corrupt("A manifest page is not a list of references", offset=offset)
    return [_ref(row, offset) for row in rows]


@dataclass(frozen=True, slots=True)
class Toc:
    """The decoded TOC.

    ``tree`` has ``sealed_seq`` leaves; ``chain`` and ``recorded`` are those of the sealed seq.
    ``projections`` maps a projection's key to its own entry, which the engine does not read
    except for ``chunks``, the references that a walk must find whole.
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
    tree: Tree = field(default_factory=Tree)
    segments: RefList = field(default_factory=RefList)
    keys: tuple[Ref, ...] = ()
    projections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quarantine: tuple[Ref, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the TOC's bytes. Raises `Corrupt` if they pass the limit."""
        fields: dict[str, Any] = {
            **self.unknown,
            "file": self.file_id,
            "log": self.log_id,
            "created": self.created,
            "generation": self.generation,
            "ring": [self.ring_offset, self.ring_size, self.ring_start, self.incarnation],
            "sealed": [self.sealed_seq, self.recorded, self.chain, self.link],
            "peaks": list(self.tree.peaks),
            "segments": _encode_levels(self.segments),
            "keys": [list(ref) for ref in self.keys],
            "projections": self.projections,
            "quarantine": [list(ref) for ref in self.quarantine],
        }
        data = cbor2.dumps(fields, canonical=True)
        if len(data) > TOC_SIZE_MAX:
            raise Corrupt(f"The TOC would be {len(data):,} bytes", remedy="Run 'cerata compact'.")
        return data

    def references(self) -> Iterator[Ref]:
        """Yield every extent that the TOC names directly."""
        for level in self.segments.levels:
            yield from level
        yield from self.keys
        yield from self.quarantine
        for entry in self.projections.values():
            for row in entry.get("chunks", ()):
                yield Ref(*row)


def decode_toc(data: bytes, offset: int) -> Toc:
    """Decode and check a TOC whose hash already verified. Raises `Corrupt`."""
    fields = _loads(data, offset)
    if not isinstance(fields, dict):
        raise Corrupt("The TOC is not a map", offset=offset)
    rest = dict(fields)
    try:
        sealed_seq, recorded, chain, link = rest.pop("sealed")
        ring_offset, ring_size, ring_start, incarnation = rest.pop("ring")
        peaks = tuple(rest.pop("peaks"))
        toc = Toc(
            file_id=rest.pop("file"),
            log_id=rest.pop("log"),
            created=rest.pop("created"),
            generation=rest.pop("generation"),
            ring_offset=ring_offset,
            ring_size=ring_size,
            ring_start=ring_start,
            incarnation=incarnation,
            sealed_seq=sealed_seq,
            recorded=recorded,
            chain=chain,
            link=link,
            tree=Tree(sealed_seq, peaks),
            segments=_decode_levels(rest.pop("segments"), offset),
            keys=tuple(_ref(row, offset) for row in rest.pop("keys")),
            projections=_projections(rest.pop("projections")),
            quarantine=tuple(_ref(row, offset) for row in rest.pop("quarantine")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(
            f"The TOC lacks a field or has a wrong one: {error}", offset=offset
        ) from error
    numbers = (
        *(toc.created, toc.generation, toc.ring_offset, toc.ring_size, toc.ring_start),
        *(toc.incarnation, toc.sealed_seq, toc.recorded),
    )
    if not all(isinstance(number, int) for number in numbers) or sealed_seq < 0:
        raise Corrupt("The TOC has a field that is no number", offset=offset)
    hashes = (chain, *peaks, link)
    if not all(isinstance(value, bytes) for value in hashes):
        raise Corrupt("The TOC has a hash that is no bytes", offset=offset)
    if any(len(value) != HASH_SIZE for value in hashes[:-1]) or len(link) != CHECK_SIZE:
        raise Corrupt("The TOC has a hash of the wrong size", offset=offset)
    if len(peaks) != sealed_seq.bit_count():
        raise Corrupt("The TOC's tree does not fit its sealed seq", offset=offset)
    return replace(toc, unknown=rest)


def _encode_levels(refs: RefList) -> list[list[list[int]]]:
    return [[list(ref) for ref in level] for level in refs.levels]


def _decode_levels(value: object, offset: int) -> RefList:
    if not isinstance(value, list) or not value:
        raise Corrupt("A list of references in the TOC is malformed", offset=offset)
    if not all(isinstance(level, list) for level in value):
        raise Corrupt("A list of references in the TOC is malformed", offset=offset)
    return RefList(tuple(tuple(_ref(row, offset) for row in level) for level in value))


def _projections(value: object) -> dict[str, dict[str, Any]]:
    """Check the entries' shape, and that of their chunks, which the engine follows."""
    if not isinstance(value, dict):
        raise TypeError("projections are not a map")
    for name, entry in value.items():
        if not isinstance(name, str) or not isinstance(entry, dict):
            raise TypeError("a projection's entry is not a map")
        for row in entry.get("chunks", ()):
            _ref(row, 0)
    return value


def _ref(row: object, offset: int) -> Ref:
    if (
        not isinstance(row, list)
        or len(row) != 4
        or not all(isinstance(value, int) and value >= 0 for value in row)
    ):
        raise Corrupt("A reference to an extent is malformed", offset=offset)
    return Ref(*row)


def _loads(data: bytes, offset: int) -> object:
    """Decode CBOR; its Rust core signals a bug in itself by a BaseException, mapped here too."""
    try:
        value: object = cbor2.loads(data)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise Corrupt(f"Not deterministic CBOR: {error}", offset=offset) from error
    return value
