"""The crash states of an epoch: which combinations of sector versions are tried, and their images.

Owns the persistence models and the search plan. A state names all its choices, so it can be
printed, saved and rebuilt. Leaves out the use of an image.

Models (a state carries those it used):
- P0, the process is killed: every write so far persists;
- P1, power is lost: each touched sector holds any version since the last sync;
- P2, up to two of those sectors are torn as well;
- P3, the size is any the file had since, and a gap below it holds zeros or garbage;
- P4, each change of a name is lost independently until the folder was synced.

Disks that lie, fail or rot are in tests/crash.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import cache
from itertools import combinations, product

from .epochs import Epoch, Naming, SectorHistory, sector_digest
from .operations import SECTOR


class Models(Flag):
    """Which ways of losing data a run tries."""

    KILL = auto()
    """P0."""
    SECTORS = auto()
    """P1."""
    TORN = auto()
    """P2."""
    SIZES = auto()
    """P3."""
    NAMES = auto()
    """P4."""
    LIES = auto()
    """P5: the epoch is really several, since a sync between them lied."""
    ALL = KILL | SECTORS | TORN | SIZES | NAMES

    def __str__(self) -> str:
        return "+".join(f"P{number}" for number, model in enumerate(Models) if model in self)


CUTS = (1, 8, 16, 48, 63, 64, 128, 256, 448, 511)
"""Offsets at which a torn sector changes, in bytes: inside and at the edges of the format's
headers.
"""

SIDES = ("prefix", "suffix", "middle")
FILLS = ("old", "zero", "ones", "garbage")


@dataclass(frozen=True, slots=True)
class Tear:
    """Sector ``sector`` (an index into the epoch's) got only a part of its chosen version.

    ``side`` names the part that arrived: all before ``cut``, all after it, or all but the bytes
    between ``cut`` and ``cut_end``. The rest holds the version before, or a fill.
    """

    sector: int
    side: str
    cut: int
    cut_end: int
    fill: str


@dataclass(frozen=True, slots=True)
class CrashState:
    """One legal content of the disk after a crash in ``epoch``.

    ``versions`` has one entry per sector of the epoch. ``acked`` is the least seq that recovery
    must find. Two states with the same ``key``, of any epochs, have the same image and names.
    """

    epoch: Epoch
    models: Models
    versions: tuple[int, ...]
    size: int
    acked: int
    digest: int
    gap: str = "zero"
    tears: tuple[Tear, ...] = ()
    lost_names: Naming | None = None
    """The names that are left, if some changes of names were lost."""

    @property
    def naming(self) -> Naming:
        """The names of the file, and those of other files beside it."""
        return self.lost_names or self.epoch.naming

    @property
    def key(self) -> Hashable:
        names = self.naming.own, self.naming.others
        if self.gap == "zero":
            return self.digest, self.size, names
        # Garbage fills each sector beyond the old end at version 0; the digest does not cover it.
        base_size = len(self.epoch.base)
        written = tuple(
            history.number
            for history, version in zip(self.epoch.sectors, self.versions, strict=True)
            if version and (history.number + 1) * SECTOR > base_size
        )
        return self.digest, self.size, names, base_size, written

    def changes(self) -> list[int]:
        """Return, for each sector of the epoch, the XOR of its digests in the base and here."""
        changes = [
            history.deltas[version]
            for history, version in zip(self.epoch.sectors, self.versions, strict=True)
        ]
        for tear in self.tears:
            history = self.epoch.sectors[tear.sector]
            content = torn(history, self.versions[tear.sector], tear)
            changes[tear.sector] = sector_digest(history.number, content) ^ sector_digest(
                history.number, history.versions[0]
            )
        return changes

    def word(self, place: int) -> int:
        """Return the little-endian number that begins a sector of the epoch."""
        history = self.epoch.sectors[place]
        content = history.versions[self.versions[place]]
        for tear in self.tears:
            if tear.sector == place:
                content = torn(history, self.versions[place], tear)
        return int.from_bytes(content[:8], "little")

    def image(self) -> bytearray:
        """Build the file's content; about 10 us for 75 KiB and a few patches."""
        epoch = self.epoch
        image = bytearray(epoch.base)
        base_size = len(image)
        size = self.size
        if size > base_size:
            image.extend(
                bytes(size - base_size)
                if self.gap == "zero"
                else _garbage(size - base_size, base_size)
            )
        for history, version in zip(epoch.sectors, self.versions, strict=True):
            if version:
                start = history.number * SECTOR
                image[start : start + SECTOR] = history.versions[version]
        for tear in self.tears:
            history = epoch.sectors[tear.sector]
            start = history.number * SECTOR
            image[start : start + SECTOR] = torn(history, self.versions[tear.sector], tear)
        if len(image) != size:
            del image[size:]
        return image

    def describe(self) -> str:
        """Return the choices in one line, for failures and case files."""
        epoch = self.epoch
        vector = " ".join(
            f"{history.number}:{version}/{len(history.versions) - 1}"
            for history, version in zip(epoch.sectors, self.versions, strict=True)
        )
        tears = "".join(
            f" torn {epoch.sectors[tear.sector].number}:{tear.side}@{tear.cut}-{tear.cut_end}"
            f"/{tear.fill}"
            for tear in self.tears
        )
        lost = self.lost_names
        names = "" if lost is None else f" names {[*lost.own]} beside {[*lost.others]}"
        return (
            f"epoch {epoch.index} (operations {epoch.start}-{epoch.end}) {self.models}"
            f" size {self.size} gap {self.gap} acked {self.acked} sectors [{vector}]{tears}{names}"
        )


@cache
def _garbage(size: int, place: int) -> bytes:
    return random.Random(f"garbage/{place}").randbytes(size)


def torn(history: SectorHistory, version: int, tear: Tear) -> bytes:
    """Return the content of a sector that got only a part of ``version``."""
    new = history.versions[version]
    match tear.fill:
        case "old":
            rest = history.versions[version - 1]
        case "zero":
            rest = bytes(SECTOR)
        case "ones":
            rest = b"\xff" * SECTOR
        case _:
            rest = _garbage(SECTOR, history.number)
    match tear.side:
        case "prefix":
            return new[: tear.cut] + rest[tear.cut :]
        case "suffix":
            return rest[: tear.cut] + new[tear.cut :]
        case _:
            return new[: tear.cut] + rest[tear.cut : tear.cut_end] + new[tear.cut_end :]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of an epoch's states is tried.

    Up to ``exhaustive`` combinations, all are; beyond, the structured set and ``samples`` random
    combinations. ``tears`` and ``pair_drops`` bound the tried tears and pairs of an epoch.
    """

    models: Models = Models.ALL
    exhaustive: int = 4_096
    samples: int = 256
    tears: int = 256
    pair_drops: int = 512
    seed: int = 0


def crash_states(epoch: Epoch, plan: Plan | None = None) -> Iterator[CrashState]:
    """Yield crash states of an epoch, first the plain states; images may repeat (see ``key``)."""
    plan = plan or Plan()
    source = random.Random(f"{plan.seed}/{epoch.node}/{epoch.index}")
    if Models.KILL in plan.models:
        yield from _kills(epoch)
    if Models.SECTORS in plan.models:
        yield from _sectors(epoch, plan, source)
    if Models.NAMES in plan.models:
        yield from _names(epoch)
    if Models.SIZES in plan.models:
        yield from _sizes(epoch)
    if Models.TORN in plan.models:
        yield from _tears(epoch, plan, source)


def state_of(
    epoch: Epoch, versions: tuple[int, ...], models: Models, acked: int | None = None
) -> CrashState:
    """Return the state in which each sector of an epoch holds the given version."""
    digest = epoch.base_digest
    for history, version in zip(epoch.sectors, versions, strict=True):
        if version:
            digest ^= history.deltas[version]
    return CrashState(
        epoch=epoch,
        models=models,
        versions=versions,
        size=epoch.sizes[-1],
        acked=epoch.acked if acked is None else acked,
        digest=digest,
    )


def after(epoch: Epoch, write_count: int) -> tuple[int, ...]:
    """Return the versions of the sectors after the first writes of the epoch."""
    return tuple(
        sum(1 for write in history.writes if write < write_count) for history in epoch.sectors
    )


def _final(epoch: Epoch) -> tuple[int, ...]:
    return tuple(len(history.versions) - 1 for history in epoch.sectors)


def _kills(epoch: Epoch) -> Iterator[CrashState]:
    for count in range(epoch.write_count):
        yield state_of(epoch, after(epoch, count), Models.KILL, epoch.acked_at[count])
    yield state_of(epoch, _final(epoch), Models.KILL)


def _sectors(epoch: Epoch, plan: Plan, source: random.Random) -> Iterator[CrashState]:
    if epoch.combinations <= plan.exhaustive:
        ranges = [range(len(history.versions)) for history in epoch.sectors]
        for versions in product(*ranges):
            yield state_of(epoch, versions, Models.SECTORS)
        return
    for versions in _structured(epoch, plan, source):
        yield state_of(epoch, versions, Models.SECTORS)
    highest = _final(epoch)
    for _ in range(plan.samples):
        # The bias of each sample differs, so nearly empty and nearly full states are drawn too.
        bias = source.random()
        yield state_of(
            epoch,
            tuple(source.randint(1, last) if source.random() < bias else 0 for last in highest),
            Models.SECTORS,
        )


def _structured(epoch: Epoch, plan: Plan, source: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield the states that found bugs before: prefixes, drops, keeps, pairs and label cuts."""
    final = _final(epoch)
    nothing = (0,) * len(final)
    yield from _prefixes(epoch)
    for place, last in enumerate(final):
        for version in range(last):
            yield (*final[:place], version, *final[place + 1 :])
        for version in range(1, last + 1):
            yield (*nothing[:place], version, *nothing[place + 1 :])
    pairs = list(combinations(range(len(final)), 2))
    if len(pairs) > plan.pair_drops:
        pairs = source.sample(pairs, plan.pair_drops)
    for first, second in pairs:
        versions = list(final)
        versions[first] = versions[second] = 0
        yield tuple(versions)
    yield from _label_cuts(epoch)


def _prefixes(epoch: Epoch) -> Iterator[tuple[int, ...]]:
    """Yield every prefix of the sector writes, in the order in which they were issued."""
    events = sorted(
        (write, place, version)
        for place, history in enumerate(epoch.sectors)
        for version, write in enumerate(history.writes, start=1)
    )
    versions = [0] * len(epoch.sectors)
    yield tuple(versions)
    for _, place, version in events:
        versions[place] = version
        yield tuple(versions)


def _label_cuts(epoch: Epoch) -> Iterator[tuple[int, ...]]:
    """Yield, for each write and each labelled step, the states without it and with it alone."""
    groups = [{index} for index in range(epoch.write_count)]
    for label in dict.fromkeys(epoch.labels):
        groups.append({index for index, step in enumerate(epoch.labels) if step == label})
    for group in groups:
        without: list[int] = []
        only: list[int] = []
        for history in epoch.sectors:
            hit = any(write in group for write in history.writes)
            last = len(history.versions) - 1
            without.append(0 if hit else last)
            only.append(last if hit else 0)
        yield tuple(without)
        yield tuple(only)


def _names(epoch: Epoch) -> Iterator[CrashState]:
    """Yield each loss of names with the file's content at the end, at the start, and between.

    The content of a file and its names persist independently.
    """
    moments = dict.fromkeys((epoch.write_count, 0, epoch.write_count // 2))
    for naming in epoch.namings:
        for count in moments:
            state = state_of(
                epoch, after(epoch, count), Models.NAMES, min(naming.acked, epoch.acked)
            )
            yield replace(state, lost_names=naming)


def _sizes(epoch: Epoch) -> Iterator[CrashState]:
    bases = dict.fromkeys(
        (_final(epoch), (0,) * len(epoch.sectors), after(epoch, epoch.write_count // 2))
    )
    for size in dict.fromkeys(epoch.sizes):
        for gap in ("zero", "garbage") if size > len(epoch.base) else ("zero",):
            for versions in bases:
                state = state_of(epoch, versions, Models.SECTORS | Models.SIZES)
                yield replace(state, size=size, gap=gap)


def _tears(epoch: Epoch, plan: Plan, source: random.Random) -> Iterator[CrashState]:
    """Yield torn states of the versions after each write, singly and in pairs."""
    if not epoch.sectors:
        return
    bases = list(dict.fromkeys(after(epoch, count) for count in range(1, epoch.write_count + 1)))
    candidates = [
        (versions, place) for versions in bases for place, version in enumerate(versions) if version
    ]
    if not candidates:
        return
    singles = len(candidates) * len(CUTS) * len(SIDES) * len(FILLS)
    if singles <= plan.tears:
        for versions, place in candidates:
            for cut, side, fill in product(CUTS, SIDES, FILLS):
                tear = Tear(place, side, cut, min(cut + 48, SECTOR), fill)
                yield _torn_state(epoch, versions, (tear,))
    else:
        for _ in range(plan.tears - plan.tears // 4):
            versions, place = source.choice(candidates)
            yield _torn_state(epoch, versions, (_draw_tear(place, source),))
    for _ in range(plan.tears // 4):
        versions, place = source.choice(candidates)
        second_places = [at for at, version in enumerate(versions) if version and at != place]
        if second_places:
            pair = (_draw_tear(place, source), _draw_tear(source.choice(second_places), source))
            yield _torn_state(epoch, versions, pair)


def _draw_tear(place: int, source: random.Random) -> Tear:
    cut = source.choice((*CUTS, source.randrange(1, SECTOR)))
    cut_end = source.randrange(cut + 1, SECTOR + 1)
    return Tear(place, source.choice(SIDES), cut, cut_end, source.choice(FILLS))


def _torn_state(epoch: Epoch, versions: tuple[int, ...], tears: Sequence[Tear]) -> CrashState:
    state = state_of(epoch, versions, Models.SECTORS | Models.TORN)
    digest = state.digest
    for tear in tears:
        history = epoch.sectors[tear.sector]
        version = versions[tear.sector]
        content = torn(history, version, tear)
        digest ^= history.deltas[version]
        digest ^= sector_digest(history.number, content)
        digest ^= sector_digest(history.number, history.versions[0])
    return replace(state, digest=digest, tears=tuple(tears))
