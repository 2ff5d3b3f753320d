"""An optional graph over the vectors of a space: approximate, and faster in a large space.

Owns the construction with hnswlib (Y. Malkov and D. Yashunin, Efficient and robust approximate
nearest neighbor search using Hierarchical Navigable Small World graphs, TPAMI 2020): in one thread,
row by row, from a fixed seed, so that equal rows give equal graphs. The graph is built on first
use, lives in memory, and is never loaded from a file. Its candidates are ranked exactly, like any
candidates.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from cerata.engine.errors import Unsupported
from cerata.engine.late import install_command, loading
from cerata.projections.columnar.columns import I64, Mask
from cerata.projections.vectors.columns import STEP_NUMBERS, Matrix
from cerata.projections.vectors.nearest import Metric, QueryVector, candidates
from cerata.projections.vectors.reader import Space

EDGES: Final = 16
"""M of the paper: links of a vector on each level."""

EFFORT_BUILDING: Final = 200
"""Candidates for the links of each new vector, efConstruction of the paper."""

EFFORT_ASKING: Final = 128
"""Fewest candidates for a question, ef of the paper."""

_SEED: Final = 100


class Graph:
    """The graph of a space; any thread may search it."""

    def __init__(self, metric: Metric, dimension: int) -> None:
        """Raises `Unsupported` without the extra hnsw."""
        try:
            with loading("hnswlib"):
                import hnswlib
        except ImportError as error:
            raise Unsupported(
                "An approximate search needs hnswlib, which is not installed",
                remedy=f"Run {install_command('hnsw')}, or leave approximate out.",
            ) from error
        index: Any = hnswlib.Index
        self._make = partial(index, space="cosine" if metric == "cosine" else "ip", dim=dimension)
        self._mutex = threading.RLock()
        # The index and its number of rows; None while rows are added, so that an interrupted index
        # is built again.
        self._built: tuple[Any, int] | None = None

    def proposed(
        self, space: Space, read: Callable[[I64], Matrix], allowed: Mask, query: QueryVector, k: int
    ) -> I64:
        """Return rows of the space that are likely the nearest that a mask allows, ascending.

        If the graph returns too few, as under a narrow filter, the signs choose. Cost: at first
        about 1 ms a vector; then O(log n), plus a call of Python for each visited vector if the
        mask excludes some.
        """
        rows = np.flatnonzero(allowed)
        effort = max(EFFORT_ASKING, 2 * k)
        if len(rows) <= effort:
            return rows
        with self._mutex:
            index, count = self._grown(space, read)
            index.set_ef(2 * effort)
            let_in = None
            if len(rows) < count:
                let_in = frozenset[int](rows.tolist()).__contains__
            try:
                nearest, _ = index.knn_query(query, k=effort, num_threads=1, filter=let_in)
            except RuntimeError:
                return candidates(space, allowed, query, k)
        return np.sort(nearest[0].astype(np.int64))

    def _grown(self, space: Space, read: Callable[[I64], Matrix]) -> tuple[Any, int]:
        """Return the index with all new rows added in their order, and the number of rows."""
        total = len(space.seqs)
        index, count = self._built or (self._empty(), 0)
        if count < total:
            self._built = None
            index.resize_index(total)
            step = max(STEP_NUMBERS // space.key[2], 1)
            for start in range(count, total, step):
                rows = np.arange(start, min(start + step, total))
                index.add_items(read(rows).astype(np.float32), rows, num_threads=1)
            count = total
        self._built = index, count
        return index, count

    def _empty(self) -> Any:
        index = self._make()
        index.init_index(
            max_elements=1, M=EDGES, ef_construction=EFFORT_BUILDING, random_seed=_SEED
        )
        return index
