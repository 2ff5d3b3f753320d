"""Checkpoints: aligned, small, mended range by range, and rebuilt on the side."""

import itertools
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.engine.events import PutFrame
from cerata.engine.format.toc import LedgerEntry, Ref, decode_ledger, encode_ledger
from cerata.engine.storage import Buffer
from cerata.memory.store import Store
from cerata.projections.fulltext import FulltextProjection
from cerata.projections.projection import FoldedEvent, Parameters, Projection
from cerata.projections.ranges import complete_ranges, is_range
from cerata.projections.registry import Registry, projection_key
from cerata.projections.row_fold import row_fold
from cerata.replay import checkpoint
from cerata.replay import events as feeding
from cerata.replay.checkpoint import ledger_of, thinned
from cerata.replay.fold import Fold, replay
from cerata.replay.rebuild import rebuild

from ..engine.words import Disk
from .spending import Spending, Spent

NAMES = ("frames", "fulltext", "spending")


def opened(path: Path, mode: str = "rw") -> Store:
    return cerata.open(path, mode="r" if mode == "r" else "rw", projections=[Spending])


def fill(store: Store, count: int, seed: int = 1, batch: int = 250) -> None:
    """Append events of every kind that a projection here handles, in batches."""
    source = Random(seed)
    first = store.head.seq + 1
    for start in range(0, count, batch):
        drafts = [draft(source, first + start + n) for n in range(min(batch, count - start))]
        store.write(drafts)


def draft(source: Random, seq: int) -> cerata.Draft:
    if source.random() < 0.4:
        return cerata.Draft(Spent(tag=f"t{source.randrange(50)}", cents=source.randrange(1, 9)))
    words = " ".join(source.choices(("wax", "tablet", "stylus", "honey", f"n{seq % 90}"), k=6))
    return cerata.Draft(PutFrame(text=words))


def chunks(store: Store, name: str) -> list[Ref]:
    """The chunks of a projection's checkpoint, in order."""
    saved = store._log.toc().saved(projection_key(store._fold.registry.make(name)))
    return [ref for page in saved.chunks for ref in store._log.file.manifest(page)]


def spans(store: Store, name: str) -> list[tuple[int, int]]:
    return [(ref.first_seq, ref.last_seq) for ref in chunks(store, name)]


def spoil(path: Path, offset: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


# --- the layout ----------------------------------------------------------------------------------


@given(st.integers(0, 5_000_000))
def test_ranges_are_aligned_and_cover_all_but_a_rest(seq: int) -> None:
    """Any two states share the ranges that they both have."""
    found = complete_ranges(seq)
    ends = [0, *(through for _, through in found)]
    assert [after for after, _ in found] == ends[:-1]
    assert 0 <= seq - ends[-1] < 512
    assert all(is_range(*span) for span in found)
    sizes = [through - after for after, through in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes.count(512) < 8


def test_the_layout_does_not_depend_on_when_it_was_saved(tmp_path: Path) -> None:
    """One saved often, one once: the same ranges, and chunks of the same bytes."""
    found: list[list[tuple[int, int, bytes]]] = []
    for name, often in (("a", True), ("b", False)):
        with opened(tmp_path / f"{name}.cera") as store:
            for part in range(9):
                fill(store, 600, seed=part)
                if often:
                    store.checkpoint()
            store.checkpoint()
            read = store._log.file.file.read_at
            found.append(
                [
                    (ref.first_seq, ref.last_seq, read(ref.offset + 64, 32))
                    # In frames stand the times of the two logs.
                    for kind in ("fulltext", "spending")
                    for ref in chunks(store, kind)
                ]
            )
    assert found[0] == found[1]
    assert [row[:2] for row in found[0][:4]] == [
        (1, 4096),
        (4097, 4608),
        (4609, 5120),
        (5121, 5400),
    ]


def test_a_complete_range_is_saved_by_itself(tmp_path: Path) -> None:
    """After the append that completes 4,096 events, and without the rest."""
    with opened(tmp_path / "a.cera") as store:
        fill(store, 4_000)
        assert spans(store, "frames") == []
        fill(store, 250)
        assert spans(store, "frames") == [(1, 4096)]
        fill(store, 3_000)
        assert spans(store, "fulltext") == [(1, 4096)]
        fill(store, 1_500)
        assert spans(store, "spending") == [(1, 4096), (4097, 8192)]


@pytest.mark.parametrize(("count", "expected"), [(200, []), (201, [(1, 201)])])
def test_closing_saves_what_would_take_longer_than_5_ms_to_fold(
    tmp_path: Path, count: int, expected: list[tuple[int, int]]
) -> None:
    """Forty events a millisecond, counted and not clocked."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, count)
    with opened(path, "r") as store:
        assert spans(store, "frames") == expected


def test_a_checkpoint_of_nothing_new_writes_nothing(tmp_path: Path) -> None:
    """Asking twice costs one."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 700)
        store.checkpoint()
        size = path.stat().st_size
        store.checkpoint()
        assert path.stat().st_size == size


# --- damage --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A file with chunks of two sizes and a partial one, and a tail after them."""
    path = tmp_path_factory.mktemp("saved") / "a.cera"
    with opened(path) as store:
        fill(store, 4_096 + 3 * 512 + 100)
        store.checkpoint()
        fill(store, 30)
        return path, store.digests()


CHUNKS = [(1, 4096), (4097, 4608), (4609, 5120), (5121, 5632), (5633, 5732)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(len(CHUNKS)))
def test_a_damaged_chunk_costs_folding_its_own_events(
    tmp_path: Path, saved_file: tuple[Path, dict[str, bytes]], name: str, number: int
) -> None:
    """Each chunk in turn: counted, and mended by the next checkpoint, alone."""
    path = tmp_path / "a.cera"
    path.write_bytes(saved_file[0].read_bytes())
    first, last = CHUNKS[number]
    with opened(path, "r") as store:
        assert spans(store, name) == CHUNKS
        ref = chunks(store, name)[number]
    spoil(path, ref.offset + 64 + ref.length // 2)
    with opened(path) as store:
        assert store.digests() == saved_file[1]
        reports = {kind: store._fold.reports[kind] for kind in NAMES}
        assert {kind: report.replayed_events for kind, report in reports.items()} == {
            kind: last - first + 1 if kind == name else 0 for kind in NAMES
        }
        assert [len(reports[kind].bad_chunks) for kind in NAMES].count(1) == 1
        before = chunks(store, name)
        store.checkpoint()
        after = chunks(store, name)
        assert [old == new for old, new in zip(before, after, strict=True)] == [
            place not in (number, len(CHUNKS) - 1) for place in range(len(CHUNKS))
        ]
        assert store.verify().ok


def test_a_damaged_page_costs_the_events_of_its_chunks(
    tmp_path: Path, saved_file: tuple[Path, dict[str, bytes]]
) -> None:
    """And only those of its own projection."""
    path = tmp_path / "a.cera"
    path.write_bytes(saved_file[0].read_bytes())
    with opened(path, "r") as store:
        (page,) = store._log.toc().saved(projection_key(store._fold.registry.make("frames"))).chunks
    spoil(path, page.offset + 70)
    with opened(path) as store:
        assert store.digests() == saved_file[1]
        reports = store._fold.reports
        assert [reports[name].replayed_events for name in NAMES] == [CHUNKS[-1][1], 0, 0]
        store.checkpoint()
        assert store.verify().ok


def test_a_damaged_ledger_costs_the_digests_of_earlier_checkpoints(
    tmp_path: Path, saved_file: tuple[Path, dict[str, bytes]]
) -> None:
    """No state comes from it: verify tells, and the next checkpoint begins another."""
    path = tmp_path / "a.cera"
    path.write_bytes(saved_file[0].read_bytes())
    with opened(path, "r") as store:
        key = projection_key(store._fold.registry.make("fulltext"))
        ledger = store._log.toc().saved(key).ledger
        assert ledger is not None
    spoil(path, ledger.offset + 70)
    with opened(path) as store:
        assert store.digests() == saved_file[1]
        assert [store._fold.reports[name].replayed_events for name in NAMES] == [0, 0, 0]
        assert not store.verify().ok
        store.checkpoint()
        assert store.verify().ok
        assert len(ledger_of(store._log.file, store._log.toc().saved(key))) == 1


def _of_other_bytes(_: bytes) -> bytes:
    return bytes(32)


def test_verify_finds_a_chunk_with_the_id_of_other_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading leaves the id alone: the extent's own check holds what is stored."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 600)
        monkeypatch.setattr(checkpoint, "hash_bytes", _of_other_bytes)
        store.checkpoint()
        monkeypatch.undo()
    with opened(path, "r") as store:
        assert store.digests() == store.digests(replay=True)
        assert [report.bad_chunks for report in store._fold.reports.values()] == [(), (), (), ()]
        found = store.verify()
        assert not found.ok
        assert {one.text for one in found.divergences} == {"a chunk has the id of other bytes"}


# --- the ledger ----------------------------------------------------------------------------------


def test_a_ledger_is_dense_at_its_end_and_sparse_at_its_start() -> None:
    """Sixty-four entries of any number; the first and the newest stay."""
    ledger: tuple[LedgerEntry, ...] = ()
    for seq in range(100, 100_100, 100):
        ledger = thinned(ledger, LedgerEntry(seq, seq.to_bytes(32, "little")))
    seqs = [entry.seq for entry in ledger]
    assert len(seqs) == 64
    assert (seqs[0], seqs[-3:]) == (100, [99_800, 99_900, 100_000])
    gaps = [later - earlier for earlier, later in pairwise(seqs)]
    assert max(gaps[-8:]) < max(gaps[8:16]) / 4
    assert decode_ledger(encode_ledger(ledger), 0) == list(ledger)


# --- rebuilding ----------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_rebuild_goes_on_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old state serves until the new one is whole; then nothing of the rebuild is left."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()
        digests, old = store.digests(), chunks(store, "fulltext")
    seen: list[int] = []

    def until(stop: int) -> Callable[[str, int, int], None]:
        def progress(_what: str, done: int, total: int) -> None:
            assert total == 3_000
            seen.append(done)
            if done >= stop:
                raise Killed

        return progress

    with opened(path) as store:
        with pytest.raises(Killed):
            store.rebuild("fulltext", until(1_536))
        store._log.abandon()
    with opened(path) as store:
        assert chunks(store, "fulltext") == old
        assert [key for key in store._log.toc().projections if key.endswith("~")] != []
        assert store.search("honey")
        seen.clear()
        store.rebuild("fulltext", until(10_000))
        assert seen[0] == 2_048
        assert seen[-1] == 3_000
        assert [key for key in store._log.toc().projections if key.endswith("~")] == []
        assert chunks(store, "fulltext") != old
        assert store.digests() == digests
    with opened(path) as store:
        assert store.digests() == digests
        assert store._fold.reports["fulltext"].restored_events == 3_000
        assert store.verify().ok


def killed_at(stop: int) -> Callable[[str, int, int], None]:
    """Return a progress that ends the process once so many events are rebuilt."""

    def progress(_what: str, done: int, _total: int) -> None:
        if done >= stop:
            raise Killed

    return progress


@pytest.fixture
def half_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 3,000 events whose full text is being rebuilt: 1,024 are saved on the side."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()
    kill_rebuild(path, 1_024)
    return path


def kill_rebuild(path: Path, stop: int) -> None:
    """Rebuild the full text up to an event, and end."""
    with opened(path) as store:
        with pytest.raises(Killed):
            store.rebuild("fulltext", killed_at(stop))
        store._log.abandon()


def check_is_rebuilt(path: Path) -> None:
    """Nothing of the side is left, and all was restored from whole chunks."""
    with opened(path) as store:
        assert [key for key in store._log.toc().projections if key.endswith("~")] == []
        assert store.digests() == store.digests(replay=True)
        report = store._fold.reports["fulltext"]
        assert (report.restored_events, report.bad_chunks) == (3_000, ())
        assert store.verify().ok


def test_a_damaged_chunk_of_a_killed_rebuild_is_made_anew(half_rebuilt: Path) -> None:
    """It was carried into the result, which was damaged then and served."""
    with opened(half_rebuilt, "r") as store:
        toc = store._log.toc()
        (side,) = (key for key in toc.projections if key.endswith("~"))
        chunk = store._log.file.manifest(toc.saved(side).chunks[0])[0]
    spoil(half_rebuilt, chunk.offset + 64 + chunk.length // 2)
    with opened(half_rebuilt) as store:
        store.rebuild("fulltext")
        assert store._fold.reports.get("frames") is None
    check_is_rebuilt(half_rebuilt)


def test_of_two_rebuilds_at_once_both_end_and_a_checkpoint_stays(half_rebuilt: Path) -> None:
    """The second one to end found its side gone, and took the checkpoint out of the file."""
    ended: list[int] = []

    def beside(_what: str, done: int, total: int) -> None:
        if done == total and not ended:
            ended.append(done)
            with opened(half_rebuilt) as other:
                other.rebuild("fulltext")

    with opened(half_rebuilt) as store:
        store.rebuild("fulltext", beside)
    assert ended == [3_000]
    check_is_rebuilt(half_rebuilt)


def test_a_rebuild_that_another_overtook_and_left_is_whole(half_rebuilt: Path) -> None:
    """What the other one saved and did not finish is not put in the place of what serves."""
    seen: list[int] = []

    def beside(_what: str, done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 1:
            kill_rebuild(half_rebuilt, 2_560)

    with opened(half_rebuilt) as store:
        store.rebuild("fulltext", beside)
    assert seen[-1] == 3_000
    check_is_rebuilt(half_rebuilt)


def test_what_is_being_rebuilt_is_told_from_what_serves(half_rebuilt: Path) -> None:
    """Both went by one name, and the side's seq was shown."""
    with opened(half_rebuilt, "r") as store:
        shown = store.info()["checkpoints"]
        version = FulltextProjection.version
        assert isinstance(shown, dict)
        assert shown[f"fulltext/{version}"] == 3_000
        assert shown[f"fulltext/{version}~"] == 1_024


def test_a_new_version_is_folded_from_the_start_and_saved_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in the middle costs one step; the old version's entry stays for who runs it."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()

    class Newer(Spending):
        version = 2

    applied = itertools.count()

    class Dying(Newer):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            if next(applied) == 3:
                raise Killed
            super().apply(events)

    with cerata.open(path, projections=[Dying]) as store:
        with pytest.raises(Killed):
            store.projection("spending")
        store._log.abandon()
    with cerata.open(path, projections=[Newer]) as store:
        rows = dict(store.projection(Newer).rows)
        assert store._fold.reports["spending"].restored_events == 1_536
    with opened(path, "r") as store:
        assert dict(store.projection(Spending).rows) == rows
        assert store._fold.reports["spending"].restored_events == 3_000


class SpendingParted(Spending):
    """With a parameter: another projection of the same name."""

    @property
    def parameters(self) -> Parameters:
        return {"part": 1}


class SpendingNewer(Spending):
    version = 2


class SpendingLatest(Spending):
    version = 3


SPENDINGS = (Spending, SpendingParted, SpendingNewer, SpendingLatest)


def entries(store: Store) -> set[str]:
    """The kinds of ``spending`` that have an entry in a file."""
    there = store._log.toc().projections
    return {kind.__name__ for kind in SPENDINGS if projection_key(row_fold(kind)) in there}


def test_the_entry_of_a_version_that_nobody_runs_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was carried for ever, and with it everything that it names."""
    monkeypatch.setattr(checkpoint, "OUTLIVED_SEQS", 1_024)
    path = tmp_path / "a.cera"
    for kind in SPENDINGS:
        with cerata.open(path, projections=[kind]) as store:
            fill(store, 100)
            store.checkpoint()
    with cerata.open(path, projections=[SpendingNewer]) as store:
        fill(store, 600)
        store.checkpoint()
        assert entries(store) == {kind.__name__ for kind in SPENDINGS}
        with cerata.open(path, projections=[SpendingParted]) as other:
            other.checkpoint()
        fill(store, 600)
        store.checkpoint()
        # Still there: one that somebody runs, and a later version, which is not ours to drop.
        assert entries(store) == {"SpendingParted", "SpendingNewer", "SpendingLatest"}
        assert store.verify().ok
    with cerata.open(path, projections=[Spending]) as store:
        rows = dict(store.projection(Spending).rows)
        assert store._fold.reports["spending"].restored_events == 0
        assert rows == dict(
            replay(store._log, registry=Registry([Spending])).own("spending", 1_600).rows
        )
        store.checkpoint()
        assert "Spending" in entries(store)


@pytest.mark.parametrize(
    "key", ["spending", "spending/1", "spending/x/0123456789abcdef", "spendings/1/0123456789abcdef"]
)
def test_a_name_that_is_no_key_of_a_lower_version_is_carried(key: str) -> None:
    with cerata.open(":memory:", projections=[SpendingLatest]) as store:
        store.checkpoint()
        toc = msgspec.structs.replace(store._log.toc(), projections={key: {}})
        own = projection_key(row_fold(SpendingLatest))
        assert list(checkpoint.outlived(toc, own, 1 << 40)) == []


# --- verification --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frames", "fulltext"])
def test_verify_names_the_first_event_that_diverges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A fold that loses one event's effect is found in its chunk, to the event."""
    path = tmp_path / "a.cera"
    lost = 2_222
    kind: type[Any] = type(Registry().make(name))
    apply = kind.apply

    def forgetful(one: Projection, events: Sequence[FoldedEvent]) -> None:
        apply(one, [event if event.seq != lost else _Emptied(event) for event in events])

    with opened(path) as store:
        fill(store, 3_000)
        while store._log.event(lost).type != "putFrame":
            lost += 1
        with monkeypatch.context() as patched:
            patched.setattr(kind, "apply", forgetful)
            store.checkpoint()
    with opened(path, "r") as store:
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [(name, lost)]
        assert not found.ok
        assert f"event {lost:,}" in str(found.divergences[0])
    with opened(path) as store:
        store.rebuild()
        assert store.verify().ok


class _Emptied:
    """An event whose kind nobody handles."""

    type = "nothing"

    def __init__(self, event: FoldedEvent) -> None:
        self.seq, self.recorded = event.seq, event.recorded
        self.scope, self.body = event.scope, event.body


def test_verify_names_the_event_of_a_user_s_row(tmp_path: Path) -> None:
    """The first event that changes the row that differs."""
    path = tmp_path / "a.cera"

    class Forgetful(Spending):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            super().apply([one for one in events if getattr(one.body, "tag", "") != "rare"])

    with cerata.open(path, projections=[Forgetful]) as store:
        fill(store, 900)
        rare = store.write([cerata.Draft(Spent(tag="rare", cents=3))]).id
        fill(store, 300)
        store.checkpoint()
    with opened(path, "r") as store:
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [("spending", rare)]


def test_verify_finds_a_fold_that_went_wrong_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is saved yet; the state that serves is bisected by its digests."""
    with opened(tmp_path / "a.cera") as store:
        fill(store, 150)
        apply = FulltextProjection.apply
        lost = next(event.seq for event in store.log(100) if event.type == "putFrame")

        def forgetful(one: FulltextProjection, events: Sequence[FoldedEvent]) -> None:
            apply(one, [event if event.seq != lost else _Emptied(event) for event in events])

        with monkeypatch.context() as patched:
            patched.setattr(FulltextProjection, "apply", forgetful)
            store.search("wax")
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [("fulltext", lost)]


class _Seen:
    """What a rebuild said of its progress."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def __call__(self, _what: str, done: int, _total: int) -> None:
        self.done.append(done)


def test_a_rebuild_may_be_killed_at_any_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each write, whole or half: the file opens, the old state serves, the rebuild ends."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    disk = Disk()
    registry = Registry([Spending])
    source = Random(3)
    with disk.open() as log:
        for first in range(1, 1_500, 250):
            log.append([draft(source, first + n) for n in range(250)])
        fold = Fold(log, registry)
        fold.save()
        digests = fold.digests()
        before = disk.image()
        writes: list[tuple[int, bytes]] = []
        write_at = type(log.file.file).write_at

        def recorded(file: Any, offset: int, data: Buffer) -> None:
            writes.append((offset, bytes(data)))
            write_at(file, offset, data)

        with monkeypatch.context() as patched:
            patched.setattr(type(log.file.file), "write_at", recorded)
            rebuild(log, fold, "fulltext")
    assert len(writes) >= 6
    begun: set[int] = set()
    for count, (offset, data) in enumerate(writes):
        for part in (b"", data[: len(data) // 2]):
            image = bytearray(before)
            for at, written in [*writes[:count], (offset, part)]:
                image.extend(bytes(max(0, at + len(written) - len(image))))
                image[at : at + len(written)] = written
            with Disk.holding(image).open() as log:
                fold = Fold(log, registry)
                assert fold.digests() == digests
                assert {report.replayed_events for report in fold.reports.values()} == {0}
                seen = _Seen()
                rebuild(log, fold, "fulltext", seen)
                begun.add(seen.done[0])
                assert fold.digests() == digests == replay(log, registry=registry).digests()
    # It went on from each of the saves, from the start, and over a whole one.
    assert begun == {512, 1_024, 1_500}
