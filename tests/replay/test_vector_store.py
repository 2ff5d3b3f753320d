"""Vectors in the log: which bytes a question reads, and that each is verified before its use."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Store
from cerata.engine.disk.storage import OsStorage
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log_file.file import LogFile
from cerata.engine.segments.caches import CacheSizes
from cerata.projections.columnar.columns import I64
from cerata.projections.vectors import nearest as nearest_module
from cerata.replay.vector_places import NO_RUNS, RUN, UNPLACED, PlaceDirectory, Runs, read_rows
from cerata.replay.vector_store import KeptVectors, VerifiedVectors, sums_of

Vectors = npt.NDArray[np.float32]

COUNT = 3_000
DIMENSION = 64
SIZE = 4 * DIMENSION
CANDIDATES = 32
OTHERS_SIZE = 1_024
"""Bytes of reads that look for a new page or record."""
RING_SIZE = 1 << 16
DATA_OFFSET = RING_SIZE + 4 * PAGE_SIZE


def drawn(seed: int) -> Vectors:
    source = np.random.default_rng(seed)
    return source.standard_normal((COUNT, DIMENSION)).astype(np.float32)


class CountedFile:
    """A file that counts the reads of vectors: the offset and the size of each."""

    def __init__(self, file: LogFile) -> None:
        self.real = file.file
        self.reads: list[tuple[int, int]] = []

    def read_at(self, offset: int, size: int) -> bytes:
        # Each question looks at the header and the ring for news.
        if offset >= DATA_OFFSET:
            self.reads.append((offset, size))
        return self.real.read_at(offset, size)

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def take(self) -> tuple[int, int]:
        """Return the number of reads, and of their bytes, since the last call."""
        reads, self.reads = self.reads, []
        return len(reads), sum(size for _, size in reads)


def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> CountedFile:
    file = CountedFile(store._log.file)
    monkeypatch.setattr(store._log.file, "file", file)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of vectors in large batches, of which a question compares 32."""
    for name in ("ALL_ROWS_MAX", "CANDIDATES_MIN", "CANDIDATES_MAX"):
        monkeypatch.setattr(nearest_module, name, CANDIDATES)
    path = tmp_path / "memory.cera"
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=RING_SIZE)) as store:
        rows = drawn(1)
        for start in range(0, COUNT, 500):
            part = rows[start : start + 500]
            store.put_frames(["text"] * 500, vectors=cerata.Vectors(dense=part, space="s"))
        store.checkpoint()
    return path


def asked(store: Store, question: npt.NDArray[np.float32]) -> list[tuple[int, float]]:
    return [
        (hit.id, hit.score)
        for hit in store.search(question, k=5, page=cerata.Page(group_by="frame"))
    ]


def test_no_question_reads_vectors_that_it_does_not_compare(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second question read all of a space: 1 s of 100,000 vectors."""
    questions = drawn(2)
    with cerata.open(path, mode="r") as store:
        store.search("text", k=1, page=cerata.Page(group_by="frame"))
        file = counted(store, monkeypatch)
        asked(store, questions[0])
        file.take()
        for place in range(1, 6):
            asked(store, questions[place])
            reads, size = file.take()
            assert reads <= CANDIDATES + 2
            assert size <= CANDIDATES * SIZE + OTHERS_SIZE
        asked(store, questions[5])
        assert file.take()[1] < SIZE


@pytest.mark.parametrize("kept_size", [1, 1 << 30])
def test_answers_do_not_depend_on_what_is_in_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept_size: int
) -> None:
    """Vectors that are kept, read again or read first are the same."""
    monkeypatch.setattr(CacheSizes, "vectors", kept_size)
    questions = drawn(3)[:8]
    with cerata.open(path, mode="r") as store:
        first = [asked(store, question) for question in questions]
        assert [asked(store, question) for question in questions] == first
    for question, answer in zip(questions, first, strict=True):
        with cerata.open(path, mode="r") as store:
            assert asked(store, question) == answer


@pytest.mark.unwatched("it damages the file")
def test_a_vector_that_changes_after_it_was_verified_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector that is read again is not hashed again, but any changed byte changes its sum."""
    monkeypatch.setattr(CacheSizes, "vectors", 1)
    row = drawn(1)[70]
    data = path.read_bytes()
    place = data.index(row.tobytes())
    with cerata.open(path, mode="r") as store:
        assert asked(store, row)[0] == (71, 1.0)
        for offset in (0, 1, SIZE // 2, SIZE - 1):
            with path.open("r+b") as file:
                file.seek(place + offset)
                file.write(bytes([data[place + offset] ^ 0x10]))
            with pytest.raises(cerata.Corrupt, match="event 71 is damaged"):
                asked(store, row)
            with path.open("r+b") as file:
                file.seek(place + offset)
                file.write(data[place + offset : place + offset + 1])
        assert asked(store, row)[0] == (71, 1.0)


# --- saved places --------------------------------------------------------------------------------


def cold_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the reads of the vectors of a first question, once the projections are loaded."""
    with cerata.open(path, mode="r") as store:
        store.search("text", k=1, page=cerata.Page(group_by="frame"))
        store._fold.vectors()
        file = counted(store, monkeypatch)
        asked(store, drawn(2)[0])
        return file.take()


def test_a_first_question_reads_no_index_of_a_segment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking up 1,000,000 vectors in their 10,000 batches took 2.5 s."""
    reads, size = cold_reads(path, monkeypatch)
    assert reads <= CANDIDATES + 2
    assert size <= CANDIDATES * SIZE + OTHERS_SIZE

    def ignore(_directory: PlaceDirectory, _stored: bytes, _file: LogFile) -> None: ...

    monkeypatch.setattr(PlaceDirectory, "add", ignore)
    # Without saved places, three more reads for each segment and batch.
    assert cold_reads(path, monkeypatch)[0] > reads + 6


def test_saved_places_that_are_wrong_are_looked_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place is a hint: the vector there has another hash, and the index has the right place."""
    questions = drawn(3)[:4]
    with cerata.open(path, mode="r") as store:
        expected = [asked(store, question) for question in questions]
    add = PlaceDirectory.add

    def bent(field: str, shift: int) -> Callable[[PlaceDirectory, bytes, LogFile], None]:
        def add_bent(directory: PlaceDirectory, stored: bytes, log_file: LogFile) -> None:
            table = np.frombuffer(stored, RUN).copy()
            table[field] += shift
            add(directory, table.tobytes(), log_file)

        return add_bent

    for field, shift in (("offset", SIZE), ("offset", 1 << 40), ("first", 7), ("count", 40)):
        monkeypatch.setattr(PlaceDirectory, "add", bent(field, shift))
        for kept_size in (1, 1 << 30):
            monkeypatch.setattr(CacheSizes, "vectors", kept_size)
            with cerata.open(path, mode="r") as store:
                assert [asked(store, question) for question in questions] == expected


@pytest.mark.parametrize("stored", [b"x" * 7, b"\xff" * 48, bytes(24)])
def test_impossible_runs_are_ignored(path: Path, stored: bytes) -> None:
    """Only a faulty or hostile writer makes them: the check of the chunk covers them."""
    with cerata.open(path, mode="r") as store:
        [space] = store._fold.vectors().spaces(COUNT)
        directory = PlaceDirectory(store._log)
        directory.add(stored, store._log.file)
        places = directory.places(space.rows)
        found = places.read(space.seqs, np.array([5, 7]))
        assert found.tobytes() == drawn(1)[[5, 7]].tobytes()


@pytest.mark.parametrize("is_kept", [True, False])
def test_small_batches_before_a_large_batch_are_read_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """A large batch has places before the events in the ring do: intact vectors were refused."""
    vectors = drawn(5)[:400]
    with cerata.open(
        tmp_path / "a.cera", options=cerata.OpenOptions(ring_bytes=RING_SIZE)
    ) as store:
        if not is_kept:
            monkeypatch.setattr(CacheSizes, "vectors", 0)
        at = 0
        for count in (1, 150, 2, 150, 1):
            rows = vectors[at : at + count]
            store.put_frames(
                [f"{at + row}" for row in range(count)],
                vectors=cerata.Vectors(dense=rows, space="s"),
            )
            at += count
        assert store._log.page.sealed_seq == 0
        for row in (0, 7, 151, 152, 200, 303):
            assert [hit.text for hit in store.search(vectors[row], k=1)] == [str(row)]
        store._log.seal()
        assert [hit.text for hit in store.search(vectors[152], k=1)] == ["152"]


def test_places_are_saved_of_large_batches_and_of_sealed_events(tmp_path: Path) -> None:
    """Those of the ring are not: the same flip writes their segment. The next join has them."""
    rows = drawn(1)
    with cerata.open(
        tmp_path / "a.cera", options=cerata.OpenOptions(ring_bytes=RING_SIZE)
    ) as store:
        store.put_frames(["text"] * 500, vectors=cerata.Vectors(dense=rows[:500], space="s"))
        store.put_frame("sealed", vectors=cerata.Vectors(dense=rows[500], space="s"))
        store.checkpoint()
        store.put_frame("in the ring", vectors=cerata.Vectors(dense=rows[501], space="s"))
        store.put_frame("no vector")
        store.put_frames(["text"] * 500, vectors=cerata.Vectors(dense=rows[502:1002], space="t"))
        vectors = store._fold.vectors()
        table = np.frombuffer(store._fold._directory().encoded(vectors, (0, 1_003)), RUN)
        found = table[["first", "count", "space"]].tolist()
        assert found == [(0, 500, 1), (500, 1, 1), (0, 500, 2)]
        for run in table:
            length = int(run["count"]) * SIZE
            data = store._log.file.file.read_at(int(run["offset"]), length)
            first = int(run["first"]) + (502 if run["space"] == 2 else 0)
            assert data == rows[first : first + int(run["count"])].tobytes()


# --- in memory -----------------------------------------------------------------------------------


def matrix_of_rows(rows: I64) -> Vectors:
    return np.repeat(rows.astype(np.float32)[:, None], 3, axis=1)


def test_kept_vectors_are_those_of_their_rows_while_the_space_grows() -> None:
    """Each growth adds a piece; slots are in order of arrival, and rows are not."""
    kept = KeptVectors(np.empty((0, 3), np.float32))
    source = np.random.default_rng(4)
    count = 10
    assert kept.find(np.array([0])) is None
    for _ in range(30):
        rows = np.flatnonzero(source.random(count) < 0.3)
        missing = kept.missing(rows)
        kept.add(missing, matrix_of_rows(missing), missing.astype(float), count)
        found = kept.find(rows)
        assert found is not None
        assert found[0].tolist() == [[row] * 3 for row in rows.tolist()]
        assert found[1].tolist() == rows.tolist()
        count += int(source.integers(0, 40))
    assert kept.find(np.array([count])) is None


def test_vectors_side_by_side_in_memory_are_not_copied() -> None:
    """A question to a small memory reads all of them; the view is read-only, since all share it."""
    cache = KeptVectors(np.empty((0, 3), np.float32))
    for rows in (np.array([4, 5]), np.arange(4)):
        cache.add(rows, matrix_of_rows(rows), rows.astype(float), 6)
    [piece] = cache._state.pieces
    for rows, is_shared in ((np.arange(4), True), (np.array([2, 4]), False), (np.arange(6), False)):
        vectors, lengths = cache.find(rows) or pytest.fail("a vector is missing")
        assert vectors.tolist() == matrix_of_rows(rows).tolist()
        assert lengths.tolist() == rows.tolist()
        assert np.shares_memory(vectors, piece.vectors) is is_shared
        assert vectors.flags.writeable is lengths.flags.writeable is not is_shared


def test_a_piece_added_during_a_look_up_is_read() -> None:
    """Another thread may fill the slots of a reader; the pieces before them lack these vectors."""
    cache = KeptVectors(np.empty((0, 3), np.float32))

    def add(rows: I64, count: int) -> None:
        cache.add(rows, matrix_of_rows(rows), rows.astype(float), count)

    class Slots:
        """The slots of a reader that waits while another thread adds a piece."""

        def __len__(self) -> int:
            return len(state.slots)

        def take(self, rows: I64) -> npt.NDArray[np.int32]:
            cache._state = state
            add(np.arange(6, 15), 15)
            return state.slots.take(rows)

    # The slots grow to 15, while the piece has room for 10 vectors.
    add(np.arange(5), 10)
    add(np.arange(5, 6), 11)
    state = cache._state
    cache._state = state._replace(slots=cast("npt.NDArray[np.int32]", Slots()))
    rows = np.arange(6, 15)
    vectors, lengths = cache.find(rows) or pytest.fail("a vector is missing")
    assert len(cache._state.pieces) == 2
    assert vectors.tolist() == matrix_of_rows(rows).tolist()
    assert lengths.tolist() == rows.tolist()


def test_a_row_is_known_by_its_sum_alone() -> None:
    """Rows that were never verified, or past the last, have none."""
    verified = VerifiedVectors()
    rows = np.array([1, 4])
    sums = np.array([7, 8], np.uint64)
    assert verified.is_known(rows, sums).tolist() == [False, False]
    verified.add(rows, sums, np.array([1.0, 2.0]), 5)
    asked = np.array([0, 1, 4, 9])
    assert verified.is_known(asked, np.array([0, 7, 9, 8], np.uint64)).tolist() == [
        False,
        True,
        False,
        False,
    ]
    assert verified.lengths(asked)[1:3].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("size", [3, 4, 8, 12, 96, 1_536])
def test_any_changed_byte_changes_the_sum_of_a_row(size: int) -> None:
    """So it is no check against other data, but against a flipped bit it is."""
    source = np.random.default_rng(5)
    row = source.integers(0, 256, (1, size)).astype(np.uint8)
    before = sums_of(row)[0]
    for place in range(size):
        for bit in range(8):
            row[0, place] ^= 1 << bit
            assert sums_of(row)[0] != before
            row[0, place] ^= 1 << bit


# --- places --------------------------------------------------------------------------------------


def runs(*items: tuple[int, int, int]) -> Runs:
    return Runs.of(*(np.array(column, np.int64) for column in zip(*items, strict=True)))


def test_a_place_is_that_of_the_run_of_its_row() -> None:
    """Rows before, between and after the runs have none."""
    some = runs((10, 3, 5_000), (2, 2, 100))
    found = some.places(np.arange(15), 8).tolist()
    none = UNPLACED
    expected = [none, none, 100, 108, *[none] * 6, 5_000, 5_008, 5_016, none, none]
    assert found == expected
    assert NO_RUNS.places(np.arange(3), 8).tolist() == [none] * 3


def test_later_runs_replace_those_that_start_in_them() -> None:
    """A wrong place is looked up again, and must not be found a second time."""
    some = runs((0, 4, 100), (4, 2, 900), (8, 2, 500))
    replaced = some.replaced_by(runs((3, 4, 1_000)))
    assert replaced.places(np.arange(10), 1).tolist() == [
        100,
        101,
        102,
        1_000,
        1_001,
        1_002,
        1_003,
        UNPLACED,
        500,
        501,
    ]
    assert len(replaced.replaced_by(NO_RUNS).firsts) == len(replaced.firsts)


def test_rows_are_read_the_same_together_or_alone(tmp_path: Path) -> None:
    """Rows may lie in any order; those past the end of the file are blanks."""
    path = tmp_path / "bytes"
    data = np.random.default_rng(6).integers(0, 256, 400).astype(np.uint8).tobytes()
    path.write_bytes(data)
    storage = OsStorage()
    places = [0, 8, 16, 30, 31, 100, 60, 384, 392, 400, 398, 500]
    file = storage.open(str(path), mode="r")
    try:
        found = read_rows(file, np.array(places), 8).tobytes()
        assert read_rows(file, np.array([], np.int64), 8).shape == (0, 8)
    finally:
        file.close()
    padded = data.ljust(600, b" ")
    assert found == b"".join(padded[place : place + 8] for place in places)
