"""Checkpoints: aligned, small, and mended range by range."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.format.toc import LedgerEntry, decode_ledger, decode_sections, encode_ledger
from cerata.projections.core.seal import complete_ranges, is_range
from cerata.projections.registry import projection_key
from cerata.replay.checkpoint import ledger_of, thinned

from ..inside import fold_of, log_of
from .words import NAMES, chunks, fill, opened, spans, spoil

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
            read = log_of(store).file.file.read_at
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
    """After the append that completes 4,096 events, in a few steps, and without the rest."""
    with opened(tmp_path / "a.cera") as store:
        fill(store, 4_000)
        assert spans(store, "frames") == []
        fill(store, 250)
        fill(store, 30, batch=1)
        assert spans(store, "frames") == [(1, 4096)]
        fill(store, 3_000)
        assert spans(store, "fulltext") == [(1, 4096)]
        fill(store, 1_500)
        fill(store, 30, batch=1)
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
        return path, store.stream.digests()


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
        assert store.stream.digests() == saved_file[1]
        reports = {kind: fold_of(store).reports[kind] for kind in NAMES}
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
    """The projections that were saved together share it, so each folds them again."""
    path = tmp_path / "a.cera"
    path.write_bytes(saved_file[0].read_bytes())
    with opened(path, "r") as store:
        (page,) = (
            log_of(store).toc().saved(projection_key(fold_of(store).registry.make("frames"))).chunks
        )
    spoil(path, page.offset + 70)
    with opened(path) as store:
        assert store.stream.digests() == saved_file[1]
        reports = fold_of(store).reports
        assert [reports[name].replayed_events for name in NAMES] == [CHUNKS[-1][1]] * 3
        store.checkpoint()
        assert store.verify().ok


def test_a_damaged_ledger_costs_the_digests_of_earlier_checkpoints(
    tmp_path: Path, saved_file: tuple[Path, dict[str, bytes]]
) -> None:
    """No state comes from it: verify tells, and the next checkpoint begins another."""
    path = tmp_path / "a.cera"
    path.write_bytes(saved_file[0].read_bytes())
    with opened(path) as store:
        # The only digest of a first checkpoint is in the entry itself.
        key = projection_key(fold_of(store).registry.make("fulltext"))
        assert log_of(store).toc().saved(key).ledger is None
        store.checkpoint()
        ledger = log_of(store).toc().saved(key).ledger
        assert ledger is not None
    spoil(path, ledger.offset + 70)
    with opened(path) as store:
        assert store.stream.digests() == saved_file[1]
        assert [fold_of(store).reports[name].replayed_events for name in NAMES] == [0, 0, 0]
        assert not store.verify().ok
        store.checkpoint()
        assert store.verify().ok
        assert len(ledger_of(log_of(store).file, log_of(store).toc().saved(key)) or ()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_ledger_is_mended_where_nothing_is_new(tmp_path: Path, name: str) -> None:
    """A checkpoint of the same head wrote nothing, so the damage stayed until the next event."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 560)
        store.checkpoint()
        fill(store, 40)
        store.checkpoint()
        key = projection_key(fold_of(store).registry.make(name))
        ledger = log_of(store).toc().saved(key).ledger
        before = {kind: chunks(store, kind) for kind in NAMES}
    assert ledger is not None
    spoil(path, ledger.offset + 70)
    with opened(path) as store:
        assert not store.verify().ok
        store.checkpoint()
        assert store.verify().ok
        assert {kind: chunks(store, kind) for kind in NAMES} == before
        seqs = [
            entry.seq
            for entry in ledger_of(log_of(store).file, log_of(store).toc().saved(key)) or ()
        ]
        assert seqs == [600]
        size = path.stat().st_size
        store.checkpoint()
        assert path.stat().st_size == size


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
    (section,) = decode_sections(encode_ledger([ledger]), 0)
    assert decode_ledger(section, 0) == list(ledger)
