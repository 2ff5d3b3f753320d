"""Fewer numbers a token: a map that keeps inner products, the same bits everywhere."""

import numpy as np

from cerata.engine.integrity import hash_bytes
from cerata.retrieval.embedders.minilm import reduced

EVERY = reduced(np.eye(384, dtype=np.float32))
"""The map itself, (384, 128)."""


def test_its_rows_are_orthogonal_and_of_one_length() -> None:
    assert (384 * np.eye(128) == EVERY.T @ EVERY).all()
    assert set(np.abs(EVERY).ravel().tolist()) == {1.0}


def test_it_is_this_map_and_no_other() -> None:
    """What was stored by it is compared with what will be: its name stands for these bits."""
    assert hash_bytes(EVERY.astype(np.int8).tobytes()).hex()[:16] == "8bbdb012cc649415"


def test_inner_products_stay_in_the_mean() -> None:
    source = np.random.default_rng(4)
    vectors = source.standard_normal((300, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    few = reduced(vectors) / np.sqrt(384 * 128 / 384)
    few = few / np.linalg.norm(few, axis=1, keepdims=True)
    differences = (few @ few.T - vectors @ vectors.T)[~np.eye(300, dtype=bool)]
    assert abs(float(differences.mean())) < 0.005
    assert float(differences.std()) < 0.09


def test_it_is_linear_to_the_last_bits_and_works_row_by_row() -> None:
    source = np.random.default_rng(5)
    vectors = source.standard_normal((9, 384)).astype(np.float32)
    together = reduced(vectors)
    assert (together == np.vstack([reduced(one[None]) for one in vectors])).all()
    assert np.allclose(together, vectors.astype(np.float64) @ EVERY, atol=1e-5)
