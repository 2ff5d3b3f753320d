"""The speed of the vectors lane, by ratios to what it would be without its means, in one run."""

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Store
from cerata.projections.columnar.columns import I64
from cerata.projections.vectors import nearest
from cerata.projections.vectors.columns import Matrix
from cerata.projections.vectors.reader import Space
from cerata.replay.vector_store import StoredVectors

from ...timing import seconds

pytestmark = pytest.mark.unwatched("it measures")

COUNT = 20_000
DIMENSION = 256


@pytest.fixture(scope="module")
def many() -> Store:
    source = np.random.default_rng(5)
    rows = source.standard_normal((COUNT, DIMENSION)).astype(np.float32)
    store = cerata.open(":memory:")
    for start in range(0, COUNT, 5_000):
        some = rows[start : start + 5_000]
        store.put_frames(["text"] * len(some), embeddings=some, space="s")
    return store


def query() -> npt.NDArray[np.float32]:
    return np.random.default_rng(6).standard_normal(DIMENSION).astype(np.float32)


def test_signs_spare_reading_most_vectors(many: Store) -> None:
    """Measured 5 to 7; scoring all of them is the mechanism switched off."""
    asked = query()
    by_signs = seconds(lambda: many.search(asked), 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "ALL_ROWS_MAX", COUNT)
        every = seconds(lambda: many.search(asked), 5)
    assert every > 2 * by_signs


def test_the_past_costs_what_the_present_does(many: Store) -> None:
    """Of half the events at most 1.3 times that of all: nothing is built for a past state."""
    asked = query()
    half, whole = many.at(COUNT // 2), many.at("HEAD")
    half.search(asked)
    assert seconds(lambda: half.search(asked), 15) < 1.3 * seconds(lambda: whole.search(asked), 15)


def test_one_question_alone_reads_what_it_compares(many: Store) -> None:
    """A command line waited for all of a space: of 100,000 vectors it needs 2,000."""
    read: list[int] = []
    whole = StoredVectors._read

    def count(stored: StoredVectors, space: Space, wanted: I64) -> Matrix:
        read.append(len(wanted))
        return whole(stored, space, wanted)

    many._fold._stored.clear()
    asked = query()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredVectors, "_read", count)
        first = [hit.id for hit in many.search(asked)]
        assert read == [nearest.CANDIDATES_MIN]
        assert [hit.id for hit in many.search(asked)] == first
        assert len(read) == 1
        many.search(-asked)
        assert sum(read) == COUNT
        assert [hit.id for hit in many.search(asked)] == first


def test_a_question_reads_no_vector_a_second_time(many: Store) -> None:
    """The second reads and hashes all that the first left; measured 100 and more."""
    asked = query()
    many.search(asked)
    many.search(-asked)
    stored = many._fold._stored["s", "f4", DIMENSION]
    assert stored._has[:COUNT].all()
    later = seconds(lambda: many.search(asked), 5)
    many._fold._stored.clear()
    first = seconds(lambda: [many.search(asked), many.search(-asked)], 1)
    assert first > 5 * later
