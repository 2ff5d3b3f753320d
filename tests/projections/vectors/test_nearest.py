"""Scores of vectors: sums in one fixed order, whatever a processor makes of a product."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.projections.columnar.columns import F64
from cerata.projections.vectors import nearest as nearest_module
from cerata.projections.vectors.nearest import SCORE_DIGITS, Metric, exact_scores, lengths_of


def halved(numbers: list[float]) -> float:
    """Return a sum: what is beyond a power of two onto the first, then half onto half."""
    size = 1 << (len(numbers).bit_length() - 1)
    parts = numbers[:size]
    for place, number in enumerate(numbers[size:]):
        parts[place] += number
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [one + other for one, other in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


def plain_score(vector: list[float], query: list[float], metric: Metric) -> float:
    def dot(one: list[float], other: list[float]) -> float:
        return halved([a * b for a, b in zip(one, other, strict=True)])

    score = dot(vector, query)
    if metric == "cosine":
        lengths = np.sqrt(dot(vector, vector)) * np.sqrt(dot(query, query))
        score = score / lengths if lengths > 0 else 0.0
    return float(np.round(score, SCORE_DIGITS)) + 0.0


@pytest.mark.parametrize("metric", ["cosine", "dot"])
@settings(max_examples=150)
@given(
    dimension=st.integers(1, 400),
    scale=st.sampled_from([0.0, 1e-40, 1e-3, 1.0, 1e4, 1e30]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_score_is_the_sum_in_the_fixed_order(
    metric: Metric, dimension: int, scale: float, seed: int
) -> None:
    source = np.random.default_rng(seed)
    vectors = (source.standard_normal((7, dimension)) * scale).astype(np.float32)
    query = source.standard_normal(dimension).astype(np.float32)
    vectors[3] = query
    found = exact_scores(vectors, lengths_of(vectors), query, metric).tolist()
    plain = [plain_score(row, query.tolist(), metric) for row in vectors.astype(float).tolist()]
    assert found == plain


def test_what_a_processor_makes_of_a_product_is_in_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another one errs to the other side, and both are within the bound."""
    source = np.random.default_rng(7)
    vectors = (source.standard_normal((500, 64)) * 30).astype(np.float32)
    query = (source.standard_normal(64) * 30).astype(np.float32)
    lengths = lengths_of(vectors)
    error = 64 * 2.0**-53 * lengths * lengths_of(query[None])
    found = exact_scores(vectors, lengths, query, "dot")

    def vecdot(one: F64, other: F64) -> F64:
        product: F64 = (one @ other) + error
        return product

    monkeypatch.setattr(np, "vecdot", vecdot)
    assert exact_scores(vectors, lengths, query, "dot").tolist() == found.tolist()
    monkeypatch.setattr(nearest_module, "SUM_ERROR", 0.0)
    assert exact_scores(vectors, lengths, query, "dot").tolist() != found.tolist()


def test_a_bound_of_float32_sums_holds_on_a_processor_without_avx() -> None:
    """It adds 16 numbers at a time: of 65,536 its sums err by more than 1e-4 allows for."""
    code = """
import numpy as np
from cerata.projections.vectors import nearest
n, unit = 65_536, 2.0**-12
a, b = np.full(n, 1 + 0.49 * unit, np.float32), np.full(n, 1 + 0.51 * unit, np.float32)
b[np.arange(n) // 16 % 40 == 0] = np.float32(1 - unit)
rows, query = np.stack([a, b]), np.ones(n, np.float32)
lengths = nearest.lengths_of(rows)
best = int(np.argmax(nearest.exact_scores(rows, lengths, query, "dot")))
close = nearest._close(rows, lengths * nearest.lengths_of(query[None]), query, 1, "dot")
assert best in np.arange(2)[close], (best, close)
"""
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
