"""Feedback: the vector of a question, moved toward the vectors of its first hits.

Owns the formula of J. Rocchio (*Relevance Feedback in Information Retrieval*, in *The SMART
Retrieval System*, 1971) without judged documents: the best hits count as relevant, and none as
irrelevant. In a space of embeddings (H. Li, A. Mourad, S. Zhuang, B. Koopman and G. Zuccon, *Pseudo
Relevance Feedback with Deep Language Models and Dense Retrievers*, TOIS 2023), with all vectors of
length 1:

    moved = question + WEIGHT · mean of the hits

Leaves out the choice of the hits (`cerata.memory.search.search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.late import late

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64
    from cerata.projections.vectors import nearest
    from cerata.projections.vectors.columns import Matrix
    from cerata.projections.vectors.nearest import QueryVector
else:
    nearest = late("cerata.projections.vectors.nearest")

FEEDBACK_MAX: Final = 100
"""Most hits of a profile's feedback; more than ten hits are rarely all relevant."""

WEIGHT: Final = 0.5
"""The weight of the mean: the question counts twice as much as its hits. A larger weight finds more
in Cranfield, and leaves the question where its first hits are of another subject."""


def moved(question: QueryVector, vectors: Sequence[Matrix]) -> QueryVector | None:
    """Return a question's vector moved toward vectors, or None without a direction.

    Each number is a sum in the order of the vectors, so it has the same bits on every machine.

    Args:
        question: The vector of the question, of any length; (dimension,).
        vectors: The vectors of the hits, of any length; (dimension,) each.

    >>> moved(np.array([2, 0], np.float32), [np.array([0, 3], np.float32)])
    array([1. , 0.5], dtype=float32)
    """
    units = [unit for vector in vectors if (unit := _unit(vector)) is not None]
    start = _unit(question)
    if start is None or not units:
        return None
    total = np.zeros(len(question))
    for unit in units:
        total += unit
    result: QueryVector = (start + total * (WEIGHT / len(units))).astype(np.float32)
    return result


def _unit(vector: Matrix) -> F64 | None:
    length = float(nearest.lengths_of(vector[None])[0])
    return vector.astype(np.float64) / length if length > 0 else None
