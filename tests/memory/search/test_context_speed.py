"""The speed of a context, by ratios to what it would be without its means, in one run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata.retrieval.tokenizer import BpeTokenizer, tokenizer

from ...inside import log_of

pytestmark = pytest.mark.unwatched("it measures")


def texts(count: int) -> list[str]:
    source = np.random.default_rng(7)
    words = source.integers(0, 2_000, (count, 40)).tolist()
    return [" ".join(["harbour", *(f"word{word}" for word in row)]) for row in words]


def counted_as_a_batch(counter: BpeTokenizer, text: str) -> int:
    return counter.count_many((text,))[0]


def test_a_text_is_not_counted_as_a_batch_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are counted: the ratio of the times fell from 3 to 1.4 with a faster package."""
    counter = tokenizer()
    if not isinstance(counter, BpeTokenizer):
        pytest.skip("tokens are bytes here")
    # The package counts, as in a process that has counted much.
    monkeypatch.setattr(counter, "_table", None)
    store = cerata.open(":memory:")
    store.put_frames(texts(1_000))
    view = store.at("HEAD")
    sizes: list[int] = []
    count_many = BpeTokenizer.count_many

    def counted(each: BpeTokenizer, batch: Sequence[str]) -> list[int]:
        sizes.append(len(batch))
        return count_many(each, batch)

    monkeypatch.setattr(BpeTokenizer, "count_many", counted)
    assert view.recall("harbour").items
    assert 1 not in sizes
    # The check sees the mechanism switched off.
    monkeypatch.setattr(BpeTokenizer, "count", counted_as_a_batch)
    assert view.recall("harbour").items
    assert sizes.count(1) > 10


def test_a_text_is_read_without_a_look_at_the_vectors_of_its_batch(tmp_path: Path) -> None:
    """Where a batch's vectors stand took a third of opening it: each of a hundred hits has one."""
    path = tmp_path / "a.cera"
    vectors = np.random.default_rng(8).standard_normal((100, 384)).astype(np.float32)
    with cerata.open(path) as store:
        for _ in range(4):
            store.put_frames(texts(100), vectors=cerata.Vectors(dense=vectors, space="s"))
    with cerata.open(path, mode="r") as store:
        assert len(store.recall("harbour").items) > 5
        opened = list(log_of(store).file._segments._segments.values())
        with_vectors = [segment for segment in opened if segment.has_attachments]
        assert with_vectors
        assert not any("_attached" in vars(segment) for segment in with_vectors)
        assert store.embeddings.of(5) is not None
        with_vectors[0].attachments(3)
        assert "_attached" in vars(with_vectors[0])
