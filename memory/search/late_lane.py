"""Late interaction: the lane "late", and the order of the best hits by their tokens.

Owns the token vectors of frames in a snapshot. Leaves out their comparison
(`cerata.projections.vectors.maxsim`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

import numpy as np

from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.projections.vectors.columns import Key, matrix_of
from cerata.projections.vectors.maxsim import (
    SHARES,
    TOKEN_SCALE,
    Tokens,
    beside,
    best_matches,
    compares_all,
    evidence_of,
    pooled_query,
    token_candidates,
    token_question,
    total_weight,
    window_scores,
)
from cerata.replay.vector_store import NO_VECTOR
from cerata.retrieval.ranking.fusion import LaneRanking, Shares

from ..values.explanation import TokenShare
from ..values.token_vectors import checked_weights, token_matrix
from .space_lane import SpaceLane, key_for, key_of_frame, pending_vectors

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I32, I64, Mask
    from cerata.projections.columnar.turn_order import TurnOrder

    from ..snapshot.snapshot import Snapshot
    from ..values.vectors import Vector, Vectors


QuestionTokens: TypeAlias = Sequence[str]
"""The text of each token of a question."""

BEST_BY_SIGNS: Final = 128
"""Of many frames so many, or more results, are scored again with the turns beside them."""


class LateLane(SpaceLane):
    """A question's token vectors and their space in a snapshot.

    Scores are the means of the best cosines by weight, with the evidence of neighbouring turns
    (`cerata.projections.vectors.maxsim`). A frame without evidence is not found. Every
    returned score is exact, for any filter.

    Cost of a search: the signs of all frames, and the token vectors of at most 16,384 frames and of
    2,000 turns beside the best.
    """

    name: ClassVar[str] = "late"

    def __init__(
        self,
        snapshot: Snapshot,
        tokens: Vectors,
        space: str | None,
        *,
        weights: Vector | None = None,
        text: QuestionTokens | None = None,
    ) -> None:
        """``space`` may be None if a single space fits.

        Args:
            snapshot: The searched state.
            tokens: The token vectors of the question; (tokens, dimension).
            space: The name of their space.
            weights: The weight of each token; (tokens,). None: all are equal.
            text: The text of each token, for an explanation.

        Raises:
            InvalidInput: the token vectors or weights are not valid, or not exactly one space fits.
            NotFound: no space is named, and there are no vectors at the snapshot's basis.
        """
        self.tokens = token_matrix(tokens)
        self.weights = None if weights is None else checked_weights(weights, len(self.tokens))
        self.text = text
        self._question = token_question(self.tokens, self.weights)
        super().__init__(snapshot, key_for(snapshot, self.tokens.shape[1], space, tokens=True))

    @cached_property
    def _rows(self) -> TokenRows:
        return TokenRows(self._snapshot, self.key)

    @property
    def _order(self) -> TurnOrder | None:
        return self._snapshot.layers.turns

    def _ranked(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames with evidence among the rows of a mask."""
        layers = self._snapshot.layers
        targets = np.flatnonzero((layers.sought if among is None else among) & self._rows.has)
        sources = self._with_neighbours(targets)
        if not compares_all(len(sources), k):
            targets = self._best_by_signs(targets, sources, k)
            sources = self._with_neighbours(targets)
        scores = self._windowed(targets, sources)
        targets, scores = targets[scores > 0], scores[scores > 0]
        # Rows are in order of age, which decides ties.
        best = np.argsort(-scores, kind="stable")[:k]
        return LaneRanking(self.name, layers.ids_at(targets[best]), scores[best])

    def _best_by_signs(self, targets: I64, sources: I64, k: int) -> I64:
        """Return the rows to score of many: those with the best evidence, and the turns beside.

        The signs choose the rows to compare; their scores count the evidence in these rows alone.
        So a turn beside the best is scored even if its signs agree little with the question.
        """
        question = self._question
        chosen = sources[:0]
        if len(question.tokens):
            pooled = pooled_query(question.tokens, question.weights)
            chosen = self._rows.candidates(sources, pooled, k)
        is_target = np.zeros(len(self._rows.has), np.bool_)
        is_target[targets] = True
        first = chosen[is_target[chosen]]
        scores = self._windowed(first, chosen)
        best = first[np.argsort(-scores, kind="stable")[: max(k, BEST_BY_SIGNS)]]
        near = self._with_neighbours(np.sort(best))
        return near[is_target[near]]

    def _with_neighbours(self, rows: I64) -> I64:
        """Return rows, and the turns beside them that have token vectors, ascending."""
        order = self._order
        if order is None:
            return rows
        return np.flatnonzero(beside(order, rows) & self._rows.has)

    def _windowed(self, rows: I64, sources: I64) -> F64:
        if not len(rows):
            return np.empty(0)
        return window_scores(self._question, rows, sources, self._rows.read, self._order)

    def token_shares(self, frame: int) -> list[TokenShare]:
        """Return the shares of the question's tokens in a frame's score, the largest first.

        None for a frame without token vectors.
        """
        row = self._snapshot.layers.rank_row(frame)
        if row is None or not self._rows.has[row]:
            return []
        sources = self._with_neighbours(np.array([row]))
        question = self._question
        matches = best_matches(self._rows.read(sources), question.tokens)
        evidence = evidence_of(matches)
        frames = self._snapshot.layers.ids_at(sources).tolist()
        factors = self._factors(row, sources)
        total = total_weight(question)
        used = np.flatnonzero(self.weights > 0) if self.weights is not None else None
        shares: list[TokenShare] = []
        for token, weight in enumerate(question.weights.tolist()):
            number = token if used is None else int(used[token])
            values = [factor * float(evidence[at, token]) for at, factor in factors]
            best = max(range(len(values)), key=lambda place: values[place])
            at, factor = factors[best]
            shares.append(
                TokenShare(
                    token=str(number + 1) if self.text is None else self.text[number],
                    weight=weight,
                    cosine=round(float(matches[at, token]) / TOKEN_SCALE**2, SCORE_DECIMALS),
                    turn=None if at == factors[0][0] else frames[at],
                    factor=factor,
                    added=weight * values[best] / total,
                )
            )
        return sorted(shares, key=lambda share: -share.added)

    def _factors(self, row: int, sources: I64) -> list[tuple[int, float]]:
        """Return the places in the sources of a row and its neighbours, and what each counts."""
        order = self._order
        factors = [(int(sources.searchsorted(row)), 1.0)]
        if order is None or int(order.places[row]) < 0:
            return factors
        for offset, share in SHARES:
            near = int(order.rows[int(order.places[row]) + offset])
            at = int(sources.searchsorted(near))
            if near >= 0 and at < len(sources) and int(sources[at]) == near:
                factors.append((at, share))
        return factors

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return the share of each frame, as `Lane.shares`."""
        embedded = self._rows.has[rows]
        shares = np.zeros(len(rows))
        if not embedded.all():
            shares[~embedded] = self.least
        scored = np.unique(rows[embedded])
        scores = self._windowed(scored, self._with_neighbours(scored))
        shares[embedded] = scores[scored.searchsorted(rows[embedded])]
        return Shares(shares, embedded & (shares > 0))

    def score_of(self, frame: int) -> float | None:
        """Return the score of a frame, or None without token vectors."""
        return self.scores_of([frame]).get(frame)

    def scores_of(self, frames: Sequence[int]) -> dict[int, float]:
        """Return the scores of the frames that have token vectors in the space.

        Raises:
            Corrupt: the token vectors of a frame are damaged.
        """
        layers = self._snapshot.layers
        rows = {row: frame for frame in frames if (row := layers.rank_row(frame)) is not None}
        embedded = [row for row in sorted(rows) if self._rows.has[row]]
        scored = np.array(embedded, np.int64)
        scores = self._windowed(scored, self._with_neighbours(scored)).tolist()
        return {rows[row]: score for row, score in zip(embedded, scores, strict=True)}


def tokens_of(snapshot: Snapshot, frame: int, space: str | None) -> Tokens | None:
    """Return a frame's token vectors in a space, or None; ``space`` names it among several.

    Raises:
        InvalidInput: the frame has token vectors in several spaces, and ``space`` names no space.
    """
    key = key_of_frame(snapshot, frame, space, tokens=True)
    return None if key is None else tokens_at(snapshot, key, [frame]).get(frame)


def tokens_at(snapshot: Snapshot, key: Key, frames: Sequence[int]) -> dict[int, Tokens]:
    """Return the token vectors in a space of the frames that have any. Raises `Corrupt`."""
    pending = pending_vectors(snapshot, key)
    drafts = {frame: _tokens_in(pending[frame], key) for frame in frames if frame in pending}
    space = snapshot.vectors.find(key, snapshot.basis)
    if space is None:
        return drafts
    rows = {frame: space.row_of(frame, snapshot.basis) for frame in frames if frame not in drafts}
    embedded = {frame: row for frame, row in rows.items() if row is not None}
    stored = snapshot.stored_tokens(space).rows(space, np.array([*embedded.values()], np.int64))
    return {**drafts, **dict(zip(embedded, stored, strict=True))}


def _tokens_in(data: bytes, key: Key) -> Tokens:
    return cast("Tokens", matrix_of(data, key))


# --- The token vectors of a snapshot's frames, by the row of the ranking --------------------------


class TokenRows:
    """The token vectors in a space; rows are those of the snapshot's layers, end to end."""

    def __init__(self, snapshot: Snapshot, key: Key) -> None:
        layers = snapshot.layers
        base = layers.base
        pending = pending_vectors(snapshot, key)
        self._drafts: Final[dict[int, Tokens]] = {
            row: cast("Tokens", matrix_of(data, key))
            for frame, data in pending.items()
            if (row := layers.rank_row(frame)) is not None
        }
        self._space = snapshot.vectors.find(key, snapshot.basis)
        self._by_row = np.full(base.rows, NO_VECTOR)
        if self._space is not None:
            self._stored = snapshot.stored_tokens(self._space)
            self._by_row = self._stored.by_frame_row(self._space, base.frames, base.rows, base.n)
        self._is_draft = np.zeros(sum(layer.rows for layer in layers.all), np.bool_)
        self._is_draft[[*self._drafts]] = True
        has = self._is_draft.copy()
        has[: base.rows] |= self._by_row != NO_VECTOR
        self.has: Final = has
        """The rows with token vectors."""

    def read(self, rows: I64) -> Iterator[Tokens]:
        """Return the token vectors of rows that have them, in order. Raises `Corrupt`."""
        drafts = self._drafts
        if not drafts:
            return self._stored_rows(rows)
        stored = self._stored_rows(rows[~self._is_draft[rows]])
        return (drafts[row] if row in drafts else next(stored) for row in rows.tolist())

    def _stored_rows(self, rows: I64) -> Iterator[Tokens]:
        if self._space is None or not len(rows):
            return iter(())
        return self._stored.rows(self._space, self._by_row[rows])

    def candidates(self, rows: I64, pooled: I32, k: int) -> I64:
        """Return the rows to compare, ascending: by their signs, and those of drafts in any case.

        Args:
            rows: Rows with token vectors, ascending; (n,).
            pooled: The sum of the question's token vectors; (dimension,).
            k: The number of results.
        """
        space = self._space
        if space is None:
            return rows
        is_stored = ~self._is_draft[rows]
        stored = rows[is_stored]
        of_space = self._by_row[stored]
        # A mask, since a sort of many rows takes longer than their comparison.
        is_asked = np.zeros(len(space.seqs), np.bool_)
        is_asked[of_space] = True
        chosen = token_candidates(space, np.flatnonzero(is_asked), pooled, k)
        is_chosen = np.zeros(len(space.seqs), np.bool_)
        is_chosen[chosen] = True
        is_kept = ~is_stored
        is_kept[is_stored] = is_chosen[of_space]
        return rows[is_kept]
