"""The speed of the vectors lane, by ratios to what it would be without its means, in one run."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Store
from cerata.projections.columnar.columns import I64, U8
from cerata.projections.vectors import nearest
from cerata.replay.vector_places import VectorPlaces

from ...inside import fold_of
from ...timing import ratio, seconds

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
        store.put_frames(["text"] * len(some), vectors=cerata.Vectors(dense=some, space="s"))
    return store


def query() -> npt.NDArray[np.float32]:
    return np.random.default_rng(6).standard_normal(DIMENSION).astype(np.float32)


@contextmanager
def reads() -> Generator[list[int]]:
    """Count the vectors of each read from the file within."""
    counts: list[int] = []
    whole = VectorPlaces.read

    def count(places: VectorPlaces, seqs: I64, rows: I64, *, again: bool = False) -> U8:
        counts.append(len(rows))
        return whole(places, seqs, rows, again=again)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VectorPlaces, "read", count)
        yield counts


def test_the_past_costs_what_the_present_does(many: Store) -> None:
    """Of half the events at most 1.3 times that of all: nothing is built for a past state."""
    asked = query()
    half, whole = many.at(COUNT // 2), many.at("HEAD")
    half.search(asked, page=cerata.Page(group_by="frame"))
    assert (
        ratio(
            lambda: half.search(asked, page=cerata.Page(group_by="frame")),
            lambda: whole.search(asked, page=cerata.Page(group_by="frame")),
            15,
        )
        < 1.3
    )


def test_a_question_reads_what_it_compares_alone(many: Store) -> None:
    """A command line waited for all of a space, then a second question did: 2 of 100 are enough.

    A count, since the times differ by 2 to 3; scoring all is the mechanism off.
    """
    fold_of(many)._stored.clear()
    asked = query()
    with reads() as read:
        first = [hit.id for hit in many.search(asked, page=cerata.Page(group_by="frame"))]
        assert read == [nearest.CANDIDATES_MIN]
        assert [hit.id for hit in many.search(asked, page=cerata.Page(group_by="frame"))] == first
        assert len(read) == 1
        many.search(-asked, page=cerata.Page(group_by="frame"))
        assert len(read) == 2
        assert read[1] <= nearest.CANDIDATES_MIN
        assert [hit.id for hit in many.search(asked, page=cerata.Page(group_by="frame"))] == first
    fold_of(many)._stored.clear()
    with pytest.MonkeyPatch.context() as patch, reads() as read:
        patch.setattr(nearest, "ALL_ROWS_MAX", COUNT)
        many.search(asked, page=cerata.Page(group_by="frame"))
    assert sum(read) == COUNT


def test_a_question_reads_no_vector_a_second_time(many: Store) -> None:
    """The first reads and hashes 1,024 of 20,000; measured 8 to 10."""
    asked = query()
    many.search(asked, page=cerata.Page(group_by="frame"))
    later = seconds(lambda: many.search(asked, page=cerata.Page(group_by="frame")), 5)

    def first() -> None:
        fold_of(many)._stored.clear()
        many.search(asked, page=cerata.Page(group_by="frame"))

    assert seconds(first, 5) > 2 * later


def test_the_second_question_takes_little_longer_than_a_later_one(many: Store) -> None:
    """It read the rest of the space: 100 times as long; measured 2 to 3."""
    source = np.random.default_rng(8)
    questions = source.standard_normal((12, DIMENSION)).astype(np.float32)

    def second() -> float:
        fold_of(many)._stored.clear()
        many.search(questions[0], page=cerata.Page(group_by="frame"))
        return seconds(lambda: many.search(questions[1], page=cerata.Page(group_by="frame")), 1)

    slow = min(second() for _ in range(5))
    later = min(seconds(partial(many.search, question), 1) for question in questions[2:])
    assert slow < 6 * later
