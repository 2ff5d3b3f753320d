"""Cuts a trace at the syncs, and lists the possible contents of each sector after a power loss.

Between two syncs of a file (an *epoch*), a disk may have persisted any version of each touched
sector since the first. The end of each epoch covers every crash instant inside it: the states that
a power loss can leave earlier are a subset of those that it can leave later. The lower bound for
all states of an epoch is the highest acknowledgement before its closing sync. (The reduction
follows the persistence models of ALICE, OSDI 2014.)

The names of files are durable when their folder was synced; until then each change of a name may be
lost independently (`Naming`). Leaves out which combinations are tried (`states`).
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from blake3 import blake3

from .operations import ACK, SECTOR, AnyOperation, Mark, Name, SetSize, Sync, SyncNames, Write

_ZERO_SECTOR = bytes(SECTOR)


def sector_digest(number: int, content: bytes) -> int:
    """Return a 128-bit digest of a sector in its place; 0 for a sector of zeros.

    The XOR of these digests identifies an image: a state differs from its epoch's base in a few
    sectors, so its digest costs a few XORs instead of a hash of the whole image.
    """
    if content == _ZERO_SECTOR:
        return 0
    return int.from_bytes(
        blake3(number.to_bytes(8, "little") + content).digest(length=16), "little"
    )


def sector_digests(image: bytes | bytearray) -> list[int]:
    """Return the digests of all sectors, the last padded with zeros."""
    return [
        sector_digest(start // SECTOR, bytes(image[start : start + SECTOR]).ljust(SECTOR, b"\0"))
        for start in range(0, len(image), SECTOR)
    ]


@dataclass(frozen=True, slots=True)
class SectorHistory:
    """The versions of one touched sector: at the epoch's start, then after each write to it.

    ``deltas[v]`` turns the base image's digest into that with version ``v``. ``writes[v-1]`` is the
    index, among the epoch's writes, of the write that produced version ``v``.
    """

    number: int
    versions: tuple[bytes, ...]
    deltas: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Naming:
    """The names that a power loss may leave: those of the file, and those of other files.

    ``acked`` is the seq that must survive if these are the names.
    """

    own: tuple[str, ...]
    others: tuple[str, ...]
    acked: int


Kept: TypeAlias = Callable[[int], bool]
"""Returns whether a failed sync persisted the writes to a sector, given its number."""

NAME_CHANGES_MAX = 5
"""Up to this many changes of names, every subset is tried; beyond, each prefix and single loss."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Everything that decides the states of a power loss between two syncs of one file.

    ``base`` is the durable image before, ``sizes`` every size the file had, ``base``'s first.
    ``acked`` is the seq that must survive; ``acked_at`` the same before each write (for a process
    kill, which loses nothing). ``labels`` names the step of each write. ``naming`` are the names at
    the end with all changes; ``namings`` the possible names after the loss of some changes.
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
        """A key that is equal for two epochs of any traces if they have the same images and bounds.

        The digests represent the contents of the sectors.
        """
        sectors = tuple(
            (history.number, history.deltas, history.writes) for history in self.sectors
        )
        bounds = (self.acked, self.acked_at, self.labels)
        names = (self.naming, self.namings)
        return self.base_digest, len(self.base), self.sizes, sectors, bounds, names

    @property
    def combinations(self) -> int:
        """The number of legal states at whole sectors and the final size."""
        product = 1
        for sector in self.sectors:
            product *= len(sector.versions)
        return product


class _Recorder:
    """Collects one epoch during the walk over the trace.

    ``live`` is the content that reads return; ``lost`` maps sectors to the older content that the
    disk holds since a sync failed, until the sector is written again.
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
            durable = bytearray(live)
            for number, content in lost.items():
                durable[number * SECTOR : (number + 1) * SECTOR] = content
            self.base = bytes(durable[: len(live)])
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
        """Save the version-0 content of sectors that are about to change for the first time."""
        for number in range(first, last):
            if number not in self.histories:
                content = self.lost.pop(number) if number in self.lost else self._sector(number)
                self.histories[number] = [content]
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
        first = offset // SECTOR
        last = -(-end // SECTOR)
        self._touch(first, last)
        self.live[offset:end] = data
        self._settle(first, last, len(self.labels))
        self._note(label, acked)

    def resize(self, size: int, label: str, acked: int) -> None:
        old = len(self.live)
        first = min(size, old) // SECTOR
        last = -(-old // SECTOR)
        if size < old:
            # Bytes beyond a cut come back as zeros if the file grows again: a new version.
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
        histories: list[SectorHistory] = []
        for number, versions in self.histories.items():
            if len(versions) == 1:
                continue
            base = self.digests.get(number, 0)
            deltas = [0]
            deltas.extend(base ^ sector_digest(number, version) for version in versions[1:])
            self.digests[number] = base ^ deltas[-1]
            histories.append(
                SectorHistory(number, tuple(versions), tuple(deltas), tuple(self.writes[number]))
            )
        return tuple(histories)


def epochs(
    trace: Sequence[AnyOperation],
    node: int,
    *,
    base: bytes = b"",
    acked: int = 0,
    names: Mapping[str, int] | None = None,
    kept: Kept | None = None,
    heirs: Collection[int] = (),
) -> Iterator[Epoch]:
    """Yield the epochs of one file in order; the last epoch ends with the trace, unsynced.

    Args:
        trace: the operations on the disk, in order.
        node: the inode number of the file.
        base: the file's image before the trace.
        acked: the seq acknowledged before the trace.
        names: the inode behind each path before the trace.
        kept: which sectors a failed sync persisted; by default none.
        heirs: the files that replace this file; their acknowledgements count here.
    """
    acknowledging = {0, node, *heirs}
    live = bytearray(base)
    digests = dict(enumerate(sector_digests(base)))
    digest = 0
    for sector_hash in digests.values():
        digest ^= sector_hash
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
            case Mark(label=label, seq=seq) if label == ACK and operation.node in acknowledging:
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
    """The names in a folder during the walk over the trace: durable names, and pending changes."""

    def __init__(self, durable: dict[str, int]) -> None:
        self._durable = durable
        self._changes: list[Name] = []
        self._before: list[tuple[dict[str, int], int]] = []
        """The possible names before the syncs of this epoch, with the seq acknowledged then."""

    def change(self, operation: Name) -> None:
        self._changes.append(operation)

    def sync(self, node: int, acked: int) -> None:
        self._before += [(names, acked) for names in self._partial()]
        self._durable = _changed(self._durable, self._changes)
        self._changes.clear()

    def naming(self, node: int, acked: int) -> Naming:
        return _naming(_changed(self._durable, self._changes), node, acked)

    def namings(self, node: int, acked: int) -> tuple[Naming, ...]:
        """Return the names that a loss in the current epoch may leave, and begin the next epoch."""
        whole = self.naming(node, acked)
        lossy = [*self._before, *((names, acked) for names in self._partial())]
        self._before = []
        namings = dict.fromkeys(_naming(names, node, bound) for names, bound in lossy)
        namings.pop(whole, None)
        return tuple(namings)

    def _partial(self) -> Iterator[dict[str, int]]:
        count = len(self._changes)
        if count <= NAME_CHANGES_MAX:
            for mask in range((1 << count) - 1):
                changes = [change for at, change in enumerate(self._changes) if mask >> at & 1]
                yield _changed(self._durable, changes)
            return
        for at in range(count):
            yield _changed(self._durable, self._changes[:at])
            yield _changed(self._durable, self._changes[:at] + self._changes[at + 1 :])


def _naming(names: Mapping[str, int], node: int, acked: int) -> Naming:
    paths = tuple(path for path, owner in names.items() if owner == node)
    return Naming(paths, tuple(path for path, owner in names.items() if owner != node), acked)


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
