"""A small file with every kind of structure in it, and a map of where each stands."""

from dataclasses import dataclass
from unittest import mock

from cerata.engine.events import Attachment, Draft, Embedding, PutFrame
from cerata.engine.format import toc as toc_module
from cerata.engine.format.extent import extent_size
from cerata.engine.format.record import decode_record_header, sectors
from cerata.engine.format.toc import Ref
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log

from ..inside import state_of
from .words import Disk, blob, one_chunk, other, put, stored


@dataclass(frozen=True)
class Place:
    """One structure: what it is, and its bytes in the file."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Specimen:
    """A file, what it says, and where its structures stand; the rest of it is free."""

    data: bytes
    events: list[tuple[object, ...]]
    attached: list[tuple[int, Attachment, bytes]]
    """Seq, what the body names, and the bytes behind it."""
    chain: bytes
    root: bytes
    places: list[Place]
    ring_start: int

    def place_of(self, offset: int) -> Place | None:
        return next((place for place in self.places if place.start <= offset < place.stop), None)


def embedded(text: str, values: bytes) -> Draft:
    vector = Embedding("s", "f4", len(values) // 4, Attachment(hash_bytes(values), len(values)))
    return Draft(PutFrame(text=text, embedding=vector), attachments=(values,))


def build(*, close: bool = True) -> Specimen:
    """Write the file: segments, a manifest page, spills, keys, a cut, a chunk, a wrapped ring."""
    disk = Disk()
    # The smallest fan-out that the format allows makes a manifest page of few segments.
    with mock.patch.object(toc_module, "_FANOUT", 3):
        log = _filled(disk)
        events = stored(log.read())
        attached = [
            (event.seq, Attachment(hash_bytes(data), len(data)), data)
            for event in log.read()
            for data in log.reader.attachments(log.snapshot, event.seq)
        ]
        chain, root = log.head.chain, log.head.root
        if close:
            log.close()
    places = sorted(_places(log, disk.image()), key=lambda place: place.start)
    return Specimen(disk.image(), events, attached, chain, root, places, log.page.ring_start)


def _filled(disk: Disk) -> Log:
    log = disk.open()
    log.append([put("first"), put("second")], key="one", arguments=b"a")
    log.seal()
    log.append([embedded("with a vector", bytes(range(64))), embedded("again", bytes(64))])
    log.append([blob(b"b" * 100)], key="two")
    log.seal()
    log.append([put("large " * 4000), other("rare", version=3)], key="large")
    log.seal()
    log.append([put("x" * 900)])
    # A writer dies in the middle of a record; whoever is next keeps what it left.
    disk.spoil(state_of(log).cursor.offset, b"torn")
    log.append([put("after the cut")], key="three")
    log.seal()
    filler = [put("f" * 14_000)]
    while log.page.ring_end - state_of(log).cursor.offset > 15_000:
        log.append(filler)
    log.publish_projections(lambda flip, _: {"frames": {**one_chunk(flip, 9, b"c" * 40), "n": 9}})
    log.append([put("p" * 9_000)])
    log.append([put("wraps " * 1000)], key="four")
    log.append([put("another large " * 2000)])
    for number in range(3):
        log.append([put(f"at the end {number}")])
    return log


def _places(log: Log, data: bytes) -> list[Place]:
    page = log.page
    places = [Place("page 0", 0, 4096), Place("page 1", 4096, 8192)]
    places += [Place(f"witness {k}", at, at + 40) for k, at in enumerate(page.witness_offsets)]
    places += [Place("TOC", page.toc_offset, page.toc_offset + page.toc_size)]
    places += [Place("footer", page.data_end - 512, page.data_end - 512 + 64)]
    toc = log.file.read_toc(page)

    def extent(name: str, ref: Ref) -> Place:
        return Place(name, ref.offset, ref.offset + 64 + ref.length + 24)

    def manifest(ref: Ref) -> tuple[Ref, ...]:
        places.append(extent("manifest", ref))
        return log.file.manifest(ref)

    for ref in toc.segments.walk(manifest):
        places.append(extent("segment", ref))
        for row in log.file.segment(ref.offset, ref.length).index.batches:
            if row.spill:
                places.append(extent("spill", Ref(row.spill.offset, row.spill.length, 0, 0)))
    places += [extent("keys", ref) for ref in toc.keys]
    places += [extent("quarantine", ref) for ref in toc.quarantine]
    saved = toc.saved("frames")
    places += [extent("chunk", ref) for page in saved.chunks for ref in manifest(page.extent)]
    places += [extent("ledger", saved.ledger.extent)] if saved.ledger is not None else []
    for batch in state_of(log).tail:
        if batch.spill:
            spill = batch.spill
            places.append(extent("spill", Ref(spill.offset, spill.length, 0, 0)))
            assert extent_size(spill.length) >= spill.length
    return places + list(_records(log, data))


def _records(log: Log, data: bytes) -> list[Place]:
    """Follow the ring's records; what they span besides is padding."""
    page, offset, used = log.page, log.page.ring_start, 0
    places: list[Place] = []
    while (header := decode_record_header(log.file.key, offset, data, offset)) is not None:
        if used >= state_of(log).cursor.used:
            break
        size = 48 + (0 if header.is_padding else header.length)
        name = "padding" if header.is_padding else "record"
        places.append(Place(name, offset, offset + size))
        step = header.size if not header.is_padding else sectors(48 + header.length)
        used += step
        offset = offset + step if offset + step < page.ring_end else page.ring_offset
    places.append(Place("end", offset, offset + 512))
    return places
