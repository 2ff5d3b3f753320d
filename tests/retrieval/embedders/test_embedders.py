"""Embedders: any callable is one, and what comes back is looked at."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import CallableEmbedder, EmbedderFailed
from cerata.retrieval.embedders.embedder import embed_texts
from cerata.retrieval.embedders.quantization import quantised

from ...embedders import Hashing, words_hashed

TEXTS = ["wax", "tablet of wax", "wax"]


def sized(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def embedder(function: Any = sized, **changed: Any) -> CallableEmbedder:
    given: dict[str, Any] = {"name": "sized", "revision": "1", "dimension": 2, **changed}
    return CallableEmbedder(function, **given)


# --- callables -----------------------------------------------------------------------------------


def test_any_callable_is_an_embedder() -> None:
    one = embedder(max_tokens=256)
    assert one.identity == cerata.EmbedderIdentity("sized", "1", 2)
    assert one.max_tokens == 256
    found = one.embed(TEXTS)
    assert found.dtype == np.float32
    assert found.tolist() == [[3.0, 1.0], [13.0, 1.0], [3.0, 1.0]]
    assert one.embed([]).shape == (0, 2)
    assert repr(one) == "<CallableEmbedder sized@1/2/cosine>"


def test_texts_are_given_in_batches() -> None:
    """A model has room for so many; what comes back is in the order of the texts."""
    sizes: list[int] = []

    def function(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return sized(texts)

    texts = ["x" * size for size in range(1, 8)]
    found = embedder(function, batch=3).embed(texts)
    assert sizes == [3, 3, 1]
    assert found[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("batch", [0, -1, True, 2.0, None])
def test_a_batch_is_a_number_of_texts(batch: Any) -> None:
    with pytest.raises(cerata.InvalidInput, match="batch must be"):
        embedder(batch=batch)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(cerata.InvalidInput, match="must be callable"):
        embedder("sized")


# --- answers -------------------------------------------------------------------------------------

WRONG = {
    "shape (2, 2)": [[1.0, 2.0]] * 2,
    "shape (3, 3)": [[1.0, 2.0, 3.0]] * 3,
    "shape (3,)": [1.0, 2.0, 3.0],
    "shape ()": 1.0,
    "returned no vectors": [[1.0], [1.0, 2.0], [1.0, 2.0]],
    "returned object": [None, None, None],
    "returned <U1": [["a", "b"]] * 3,
    "returned bool": [[True, False]] * 3,
    "returned complex128": [[1j, 1.0]] * 3,
    "not finite": [[1.0, 2.0], [1.0, float("nan")], [1.0, 2.0]],
    "is not finite": [[1e300, 2.0]] * 3,
}


@pytest.mark.parametrize("said", WRONG)
def test_what_are_no_vectors_is_refused_and_the_embedder_named(said: str) -> None:
    def function(_texts: list[str]) -> Any:
        return WRONG[said]

    with pytest.raises(EmbedderFailed, match=re.escape(said)) as caught:
        embedder(function).embed(TEXTS)
    assert caught.value.embedder == "sized@1/2/cosine"
    assert "'sized@1/2/cosine'" in str(caught.value)


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyError("x")])
def test_what_an_embedder_raises_is_the_cause(error: BaseException) -> None:
    one = Hashing()
    one.says = error
    with pytest.raises(EmbedderFailed, match=type(error).__name__) as caught:
        embed_texts(one, TEXTS)
    assert caught.value.__cause__ is error
    assert caught.value.embedder == "hashing@1/8/cosine"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_an_interrupt_is_no_failure_of_the_embedder(error: BaseException) -> None:
    one = Hashing()
    one.says = error
    with pytest.raises(type(error)) as caught:
        embed_texts(one, TEXTS)
    assert caught.value is error


def test_an_embedder_of_ones_own_is_looked_at_too() -> None:
    one = Hashing()
    one.says = np.zeros((3, 7), np.float32)
    with pytest.raises(EmbedderFailed, match=r"shape \(3, 7\), not \(3, 8\)"):
        embed_texts(one, TEXTS)


class OnGraphicsCard:
    """In the place of a tensor, which numpy cannot read there."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def test_an_answer_that_cannot_be_read_is_a_failure_of_the_embedder() -> None:
    """The error of whoever made the tensor came through as it was."""
    one = Hashing()
    one.says = OnGraphicsCard()
    with pytest.raises(EmbedderFailed, match="no vectors: can't convert cuda"):
        embed_texts(one, TEXTS)

    def function(_texts: list[str]) -> Any:
        return OnGraphicsCard()

    with pytest.raises(EmbedderFailed, match="no vectors: can't convert cuda"):
        embedder(function).embed(TEXTS)


def test_an_embedder_may_change_the_list_that_it_is_given() -> None:
    """It is its own: else a text would not be known by what it was."""

    class Prefixing(Hashing):
        def embed(self, texts: Any) -> npt.NDArray[np.float32]:
            for at, text in enumerate(texts):
                texts[at] = f"document: {text}"
            return super().embed(texts)

    given = ["wax", "tablet"]
    found = embed_texts(Prefixing(), given)
    assert given == ["wax", "tablet"]
    assert found.tolist() == [words_hashed(f"document: {text}") for text in given]
    with cerata.open(":memory:", embedder=Prefixing()) as store:
        assert store.put_frames(given).ids == (1, 2)


# --- int8 ----------------------------------------------------------------------------------------


def test_the_largest_number_becomes_127() -> None:
    """Written out, so that no version quantises otherwise in the same space."""
    vectors = np.array([[0.5, -1.0, 0.0], [3.0, 2.0, 1.0], [0.0, 0.0, 0.0]], np.float32)
    assert quantised(vectors).tolist() == [[64, -127, 0], [127, 85, 42], [0, 0, 0]]
    assert quantised(np.zeros((0, 3), np.float32)).shape == (0, 3)


@given(
    st.lists(
        st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=4, max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_each_number_is_off_by_half_a_step_at_most(rows: list[list[float]]) -> None:
    vectors = np.array(rows, np.float32)
    whole = quantised(vectors)
    largest = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float64)
    assert np.abs(whole.astype(int)).max() <= 127
    again = whole * (largest / 127)
    assert (np.abs(again - vectors) <= largest / 254 * (1 + 1e-9)).all()
    assert (quantised(vectors[::-1]) == whole[::-1]).all()
