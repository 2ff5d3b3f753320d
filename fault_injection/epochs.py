"""Cuts a trace at the syncs, and lists what each sector may hold after a power loss.

Between two syncs of a file (an *epoch*), a disk may have persisted any version of each touched
sector since the first. Looking at the end of each epoch covers every crash instant inside it: what
a power loss can leave earlier is a subset of what it can leave later. The lower bound for all
states of an epoch is the highest acknowledgement before its closing sync. (The reduction follows
the persistence models of ALICE, OSDI 2014.)

The names of files are durable when their folder was synced; until then each change of one may be
lost by itself (`Naming`). Leaves out which combinations are tried (`states`).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from blake3 import blake3

from .operations import ACK, SECTOR, AnyOperation, Mark, Name, SetSize, Sync, SyncNames, Write

_ZERO_SECTOR = bytes(SECTOR)


def sector_digest(number: int, content: bytes) -> int:
    """Return a 128-bit digest of a sector in its place; 0 for a sector of zeros.

    Images are told apart by the XOR of these: a state differs from its epoch's base in a few
    sectors, so its digest costs a few XORs instead of hashing the whole image.
    """
    if content == _ZERO_SECTOR:
        return 0
    return int.from_bytes(
        blake3(number.to_bytes(8, "little") + content).digest(length=16), "little"
    )


def sector_digests(image: bytes | bytearray) -> list[int]:
    """Return the digests of all sectors, the last padded with zeros."""
    return [_digest_of(image, number) for number in range(-(-len(image) // SECTOR))]


def image_digest(image: bytes | bytearray) -> int:
    """Return the XOR of the digests of all sectors."""
    digest = 0
    for one in sector_digests(image):
        digest ^= one
    return digest


def _digest_of(image: bytes | bytearray, number: int) -> int:
    content = bytes(image[number * SECTOR : (number + 1) * SECTOR])
    return sector_digest(number, content.ljust(SECTOR, b"\0"))


@dataclass(frozen=True, slots=True)
class SectorHistory:
    """What one touched sector held: at the epoch's start, then after each write that changed it.

    ``deltas[v]`` turns the base image's digest into that with version ``v``. ``writes[v-1]`` is
    the index, among the epoch's writes, of the one that made version ``v``.
    """

    number: int
    versions: tuple[bytes, ...]
    deltas: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Naming:
    """The names that a power loss may leave: those of the file, and those of any others.

    ``acked`` is the seq that must survive where these are the names.
    """

    own: tuple[str, ...]
    others: tuple[str, ...]
    acked: int


Kept: TypeAlias = Callable[[int], bool]
"""Tells whether a sync that failed kept what was written to a sector, by its number."""

NAME_CHANGES_MAX = 5
"""Changes of names of which every subset is tried; of more, each prefix and each single loss."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Everything that may matter for a power loss between two syncs of one file.

    ``base`` is the durable image before, ``sizes`` every size the file had, ``base``'s first.
    ``acked`` is the seq that must survive; ``acked_at`` the same before each write (for a
    process kill, which loses nothing). ``labels`` names the step of each write. ``naming`` are the
    names at the end, all changes kept; ``namings`` what they may be where some were lost.
    """

    node: int
    index: int
    start: int
    end: int
    base: bytes
    base_digest: int
    sizes: tuple[int, ...]
    sectors: tuple[SectorHistory, ...]
    labels: tuple[str, ...]
    acked: int
    acked_at: tuple[int, ...]
    naming: Naming
    namings: tuple[Naming, ...]

    @property
    def write_count(self) -> int:
        return len(self.labels)

    @property
    def likeness(self) -> Hashable:
        """Equal for two epochs of any traces if they have the same images and bounds.

        The digests stand for what the sectors hold.
        """
        sectors = tuple((one.number, one.deltas, one.writes) for one in self.sectors)
        bounds = self.acked, self.acked_at, self.labels
        names = self.naming, self.namings
        return self.base_digest, len(self.base), self.sizes, sectors, bounds, names

    @property
    def combinations(self) -> int:
        """The number of legal states at whole sectors and the final size."""
        product = 1
        for sector in self.sectors:
            product *= len(sector.versions)
        return product


class _Recorder:
    """Gathers one epoch while the trace is walked.

    ``live`` is what reads see; ``lost`` are the sectors of which the disk holds something else,
    since a sync failed: it has that until they are written again.
    """

    def __init__(
        self,
        live: bytearray,
        digests: dict[int, int],
        digest: int,
        start: int,
        lost: dict[int, bytes],
    ) -> None:
        self.live = live
        self.digests = digests
        self.lost = lost
        self.base = bytes(live)
        if lost:
            held = bytearray(live)
            for number, content in lost.items():
                held[number * SECTOR : (number + 1) * SECTOR] = content
            self.base = bytes(held[: len(live)])
        self.base_digest = digest
        self.start = start
        self.sizes = [len(live)]
        self.histories: dict[int, list[bytes]] = {}
        self.writes: dict[int, list[int]] = {}
        self.labels: list[str] = []
        self.acked_at: list[int] = []

    def _sector(self, number: int) -> bytes:
        return bytes(self.live[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def _touch(self, first: int, last: int) -> None:
        """Take the version-0 content of sectors about to change for the first time."""
        for number in range(first, last):
            if number not in self.histories:
                held = self.lost.pop(number) if number in self.lost else self._sector(number)
                self.histories[number] = [held]
                self.writes[number] = []

    def _settle(self, first: int, last: int, write: int) -> None:
        for number in range(first, last):
            content = self._sector(number)
            history = self.histories[number]
            if content != history[-1]:
                history.append(content)
                self.writes[number].append(write)

    def write(self, offset: int, data: bytes, label: str, acked: int) -> None:
        end = offset + len(data)
        if end > len(self.live):
            self.live.extend(bytes(end - len(self.live)))
        first, last = offset // SECTOR, -(-end // SECTOR)
        self._touch(first, last)
        self.live[offset:end] = data
        self._settle(first, last, len(self.labels))
        self._note(label, acked)

    def resize(self, size: int, label: str, acked: int) -> None:
        old = len(self.live)
        first, last = min(size, old) // SECTOR, -(-old // SECTOR)
        if size < old:
            # Bytes beyond a cut come back as zeros if the file grows again: a version of its own.
            self._touch(first, last)
            self.live[size:] = bytes(old - size)
            self._settle(first, last, len(self.labels))
            del self.live[size:]
        else:
            self.live.extend(bytes(size - old))
        self._note(label, acked)

    def _note(self, label: str, acked: int) -> None:
        self.labels.append(label)
        self.acked_at.append(acked)
        if len(self.live) != self.sizes[-1]:
            self.sizes.append(len(self.live))

    def sectors(self) -> tuple[SectorHistory, ...]:
        """Return the histories of the sectors that changed, in the order of their first change."""
        found: list[SectorHistory] = []
        for number, versions in self.histories.items():
            if len(versions) == 1:
                continue
            base = self.digests.get(number, 0)
            deltas = [0]
            deltas.extend(base ^ sector_digest(number, version) for version in versions[1:])
            self.digests[number] = base ^ deltas[-1]
            found.append(
                SectorHistory(number, tuple(versions), tuple(deltas), tuple(self.writes[number]))
            )
        return tuple(found)


def epochs(
    trace: Sequence[AnyOperation],
    node: int,
    *,
    base: bytes = b"",
    acked: int = 0,
    names: Mapping[str, int] | None = None,
    kept: Kept | None = None,
) -> Iterator[Epoch]:
    """Yield the epochs of one file in order; the last one ends with the trace, unsynced.

    ``kept`` says what a sync kept that failed; by default nothing.

    ``base`` is the file's image before the trace, ``acked`` what was acknowledged before it, and
    ``names`` gives the inode behind each path then.
    """
    live = bytearray(base)
    digests = {
        start // SECTOR: _digest_of(base, start // SECTOR) for start in range(0, len(base), SECTOR)
    }
    digest = image_digest(base)
    folder = _Folder(dict(names or {}))
    lost: dict[int, bytes] = {}
    recorder = _Recorder(live, digests, digest, 0, lost)
    index = 0

    def close(end: int) -> Epoch:
        nonlocal digest
        sectors = recorder.sectors()
        epoch = Epoch(
            node=node,
            index=index,
            start=recorder.start,
            end=end,
            base=recorder.base,
            base_digest=recorder.base_digest,
            sizes=tuple(recorder.sizes),
            sectors=sectors,
            labels=tuple(recorder.labels),
            acked=acked,
            acked_at=tuple(recorder.acked_at),
            naming=folder.naming(node, acked),
            namings=folder.namings(node, acked),
        )
        for sector in sectors:
            digest ^= sector.deltas[-1]
        return epoch

    for position, operation in enumerate(trace):
        match operation:
            case Write() if operation.node == node:
                recorder.write(operation.offset, operation.data, operation.step, acked)
            case SetSize() if operation.node == node:
                recorder.resize(operation.size, operation.step, acked)
            case Mark(label=label, seq=seq) if label == ACK and operation.node in (0, node):
                acked = max(acked, seq)
            case Name():
                folder.change(operation)
            case SyncNames():
                folder.sync(node, acked)
            case Sync() if operation.node == node and recorder.labels:
                epoch = close(position)
                yield epoch
                if operation.failed:
                    for sector in epoch.sectors:
                        if kept is None or not kept(sector.number):
                            digest ^= sector.deltas[-1]
                            digests[sector.number] ^= sector.deltas[-1]
                            lost[sector.number] = sector.versions[0]
                index += 1
                recorder = _Recorder(live, digests, digest, position + 1, lost)
            case _:
                pass
    yield close(len(trace))


class _Folder:
    """The names in a folder while the trace is walked: durable ones, and changes under way."""

    def __init__(self, durable: dict[str, int]) -> None:
        self._durable = durable
        self._changes: list[Name] = []
        self._before: list[tuple[dict[str, int], int]] = []
        """What the names may have been before the syncs of this epoch, with the seq acked then."""

    def change(self, operation: Name) -> None:
        self._changes.append(operation)

    def sync(self, node: int, acked: int) -> None:
        self._before += [(names, acked) for names in self._partial()]
        self._durable = _changed(self._durable, self._changes)
        self._changes.clear()

    def naming(self, node: int, acked: int) -> Naming:
        return _naming(_changed(self._durable, self._changes), node, acked)

    def namings(self, node: int, acked: int) -> tuple[Naming, ...]:
        """Return what a loss within the epoch that ends here may leave, and begin the next."""
        whole = self.naming(node, acked)
        lossy = [*self._before, *((names, acked) for names in self._partial())]
        self._before = []
        found = dict.fromkeys(_naming(names, node, bound) for names, bound in lossy)
        found.pop(whole, None)
        return tuple(found)

    def _partial(self) -> Iterator[dict[str, int]]:
        """Yield the names with some of the changes under way lost, each by itself."""
        count = len(self._changes)
        if count <= NAME_CHANGES_MAX:
            for kept in range((1 << count) - 1):
                changes = [one for at, one in enumerate(self._changes) if kept >> at & 1]
                yield _changed(self._durable, changes)
            return
        for at in range(count):
            yield _changed(self._durable, self._changes[:at])
            yield _changed(self._durable, self._changes[:at] + self._changes[at + 1 :])


def _naming(names: Mapping[str, int], node: int, acked: int) -> Naming:
    own = tuple(path for path, owner in names.items() if owner == node)
    return Naming(own, tuple(path for path, owner in names.items() if owner != node), acked)


def _changed(durable: Mapping[str, int], changes: Sequence[Name]) -> dict[str, int]:
    names = dict(durable)
    for change in changes:
        if change.verb == "unlink":
            names.pop(change.path, None)
            continue
        if change.verb == "rename" and change.source is not None:
            names.pop(change.source, None)
        names[change.path] = change.node
    return names
