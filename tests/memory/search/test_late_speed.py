"""What late interaction costs, by ratios to what it would without its means; and its room."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Profile, Store
from cerata.engine.segments.caches import CacheSizes
from cerata.projections.vectors import maxsim
from cerata.replay.vector_store import StoredTokens

from ...inside import fold_of
from ...timing import seconds

pytestmark = pytest.mark.unwatched("it measures")

COUNT = 4_000
TOKENS = 16
SPACE = "m@1/64/maxsim/i1"
WORDS = Profile("words", 1, {"text": 1})


def matrices(count: int) -> list[npt.NDArray[np.int8]]:
    source = np.random.default_rng(5)
    return [*source.integers(-40, 41, (count, TOKENS, 64)).astype(np.int8)]


@pytest.fixture(scope="module")
def many() -> Store:
    store = cerata.open(":memory:")
    every = matrices(COUNT)
    for start in range(0, COUNT, 1_000):
        some = every[start : start + 1_000]
        store.put_frames(
            ["tea"] * len(some), vectors=cerata.Vectors(tokens=some, tokens_space=SPACE)
        )
    return store


QUERY = matrices(7)[6]


def late(store: Store) -> object:
    return store.search(
        "", mode="vector", vectors=cerata.Vectors(tokens=QUERY), page=cerata.Page(group_by="frame")
    )


def test_signs_spare_comparing_most_frames(many: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured 4; comparing all of them is the mechanism switched off."""
    late(many)
    every = seconds(partial(late, many), 5)
    monkeypatch.setattr(maxsim, "ALL_FRAMES_MAX", 100)
    monkeypatch.setattr(maxsim, "CANDIDATES_MIN", 200)
    assert every > 2 * seconds(partial(late, many), 9)


def test_fifty_are_put_in_order_and_not_all(many: Store) -> None:
    """Comparing all takes 40 times what their order adds to the words."""
    asked: dict[str, Any] = {
        "profile": WORDS,
        "vectors": cerata.Vectors(tokens=QUERY),
        "page": cerata.Page(group_by="frame"),
    }
    many.search("tea", rerank=True, **asked)
    words = seconds(lambda: many.search("tea", k=50, **asked), 9)
    ordered = seconds(lambda: many.search("tea", rerank=True, **asked), 9)
    assert ordered - words < 0.5 * seconds(partial(late, many), 5)


def test_a_question_reads_no_tokens_a_second_time(
    many: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is read, not by a clock: each row once, and never again."""
    read, rows = StoredTokens._read, list[int]()

    def counted(self: StoredTokens, space: Any, row: int) -> Any:
        rows.append(row)
        return read(self, space, row)

    monkeypatch.setattr(StoredTokens, "_read", counted)
    fold_of(many)._stored_tokens.clear()
    late(many)
    assert sorted(rows) == list(range(COUNT))
    late(many)
    assert len(rows) == COUNT


def test_what_is_kept_is_bounded(many: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came first goes, and what is found is the same."""
    monkeypatch.setattr(CacheSizes, "tokens", 100 * TOKENS * 64)
    found = late(many)
    fold_of(many)._stored_tokens.clear()
    assert late(many) == found
    [kept] = fold_of(many)._stored_tokens.values()
    assert (len(kept._kept), kept._size) == (100, 100 * TOKENS * 64)


def test_a_token_vector_takes_little_more_than_its_numbers(tmp_path: Path) -> None:
    """Measured 1.06, cleanly closed: a byte for each of 64 numbers, and what an event adds."""
    sizes: list[int] = []
    for given in (matrices(500), None):
        path = tmp_path / f"{given is None}.cera"
        more: dict[str, Any] = {}
        if given is not None:
            more = {"vectors": cerata.Vectors(tokens=given, tokens_space=SPACE)}
        with cerata.open(path) as store:
            for _ in range(4):
                store.put_frames(["tea and a cup"] * 500, **more)
        sizes.append(path.stat().st_size)
    a_token = (sizes[0] - sizes[1]) / (2_000 * TOKENS)
    assert 64 <= a_token < 1.1 * 64
