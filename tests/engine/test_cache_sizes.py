"""The caches of an open file: a file far larger than its allowance opens and answers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata import InvalidInput, Store
from cerata.engine.segments.caches import CACHE_BYTES_MIN, CacheSizes, SegmentCache, cache_sizes

from ..inside import fold_of, log_of

FRAMES = 6_000
DIMENSION = 384


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of about 12 MiB, mostly vectors and texts that hardly compress, in 60 segments."""
    path = tmp_path_factory.mktemp("large") / "a.cera"
    source = np.random.default_rng(7)
    with cerata.open(path) as store:
        for first in range(0, FRAMES, 100):
            vectors = source.standard_normal((100, DIMENSION), np.float32)
            numbers = source.integers(0, 1 << 60, (100, 20)).tolist()
            texts = [f"wax {first + place} {row}" for place, row in enumerate(numbers)]
            store.put_frames(texts, vectors=cerata.Vectors(dense=vectors, space="s"))
            log_of(store).seal()
    return path


def answers(store: Store) -> Iterator[object]:
    """Yield answers from texts and vectors all over the file."""
    question = np.random.default_rng(1).standard_normal(DIMENSION, np.float32)
    yield [
        (hit.id, hit.score)
        for hit in store.search(question, k=50, vectors=cerata.Vectors(space="s"))
    ]
    yield [(hit.id, hit.text) for hit in store.search("wax", k=50)]
    for frame in range(1, FRAMES, 97):
        yield store.frame(frame).text


def test_the_parts_are_within_the_allowance() -> None:
    """The four caches together stay below it."""
    sizes = CacheSizes(1 << 30)
    parts = (sizes.vectors, sizes.tokens, sizes.segments, sizes.recent)
    assert sum(parts) < sizes.total
    assert cache_sizes(None) == sizes


@pytest.mark.parametrize("cache_bytes", [0, -1, CACHE_BYTES_MIN - 1, 1.5, "1 GiB", True])
def test_an_unusable_allowance_is_refused(cache_bytes: object) -> None:
    """Before a file is created."""
    with pytest.raises(InvalidInput, match="cache_bytes"):
        cerata.open(":memory:", options=cerata.OpenOptions(cache_bytes=cache_bytes))  # type: ignore[arg-type]


def test_a_file_larger_than_its_caches_answers_the_same(large_file: Path) -> None:
    """A twelfth of the file: each cache holds its part, and reads again what it dropped."""
    with cerata.open(large_file, mode="r") as store:
        expected = list(answers(store))
    with cerata.open(
        large_file, mode="r", options=cerata.OpenOptions(cache_bytes=CACHE_BYTES_MIN)
    ) as store:
        assert large_file.stat().st_size > 10 * CACHE_BYTES_MIN
        assert list(answers(store)) == expected
        assert _held(store) < CACHE_BYTES_MIN
        assert store.verify().ok
        assert list(answers(store)) == expected


def test_without_the_limit_more_would_be_held(
    large_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of the allowance."""

    def drop_nothing(_: SegmentCache) -> None: ...

    monkeypatch.setattr(SegmentCache, "_drop", drop_nothing)
    with cerata.open(
        large_file, mode="r", options=cerata.OpenOptions(cache_bytes=CACHE_BYTES_MIN)
    ) as store:
        list(answers(store))
        assert _held(store) > CACHE_BYTES_MIN


def _held(store: Store) -> int:
    """Return the bytes in the caches, the last segment aside, which is always held."""
    segments = list(log_of(store).file._segments._segments.values())
    vectors: int = sum(each._cache._count for each in fold_of(store)._stored.values())
    held: int = sum(segment.size_bytes for segment in segments[:-1])
    return held + 4 * DIMENSION * vectors


def test_two_spaces_share_the_cache_of_vectors(tmp_path: Path) -> None:
    """Each had the whole limit for itself."""
    with cerata.open(tmp_path / "a.cera") as store:
        for space in ("one", "two"):
            store.put_frame(
                "wax", vectors=cerata.Vectors(dense=np.ones(4, np.float32), space=space)
            )
        for space in ("one", "two"):
            store.search(np.ones(4, np.float32), vectors=cerata.Vectors(space=space))
        stored = fold_of(store)._stored.values()
        assert [each.size_max for each in stored] == [CacheSizes().vectors // 2] * 2


def test_the_size_of_the_segments_is_counted(large_file: Path) -> None:
    """A segment that reads a block grows, and one that is dropped is no longer counted."""
    with cerata.open(
        large_file, mode="r", options=cerata.OpenOptions(cache_bytes=8 * CACHE_BYTES_MIN)
    ) as store:
        for frame in range(1, FRAMES, 50):
            store.frame(frame)
            segments = log_of(store).file._segments
            sizes = [segment.size_bytes for segment in segments._segments.values()]
            assert segments.size_bytes == sum(sizes)
            assert segments.size_bytes <= CACHE_BYTES_MIN or len(sizes) == 1
