"""The vectors lane: the frames whose vectors are nearest to a query's, as of a view.

Owns which space is asked, and what a transaction has gathered of it; which vectors are nearest is
`cerata.projections.nearest`'s.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Embedding, PutEmbedding, PutFrame, chosen
from cerata.projections.columns import F64, I64, Mask
from cerata.projections.nearest import Query as Asked
from cerata.projections.nearest import exact_scores, lengths_of, nearest
from cerata.projections.vector_columns import Key, Matrix, matrix_of
from cerata.projections.vectors import key_of
from cerata.retrieval.embedders.embedder import embed_texts
from cerata.retrieval.embedders.identity import Metric, metric_of
from cerata.retrieval.fusion import Lane

from .layers import both, end_to_end
from .spaces import Vector, numbers_of

if TYPE_CHECKING:
    from .view import View


LANE: Final = "vectors"
APPROXIMATE: Final = "vectors (hnsw)"
"""What the lane is called in a result where a graph chose what was compared."""

Mode: TypeAlias = Literal["hybrid", "text", "vector"]
"""What a search goes by: all there is, words, or vectors."""


class VectorQuery:
    """A vector that a view is asked for, and the space that it is of."""

    def __init__(
        self, view: "View", vector: Vector, space: str | None, *, approximate: bool = False
    ) -> None:
        """``vector`` has numbers of any kind; ``space`` may be left out where only one fits.

        With ``approximate`` a graph chooses what is compared.

        Raises:
            InvalidInput: it is no vector, no space has its dimension, or several have.
            NotFound: there is no such space by the view's basis.
        """
        self._view = view
        self.query = _checked(vector)
        self.key = _key_for(view, len(self.query), space)
        self.approximate = approximate

    def lane(self, k: int, among: Mask | None) -> Lane:
        """Return the ``k`` nearest frames.

        Of those that a mask over the rows of the view's layers lets pass, by default what is
        current. Scores are cosines, or inner products where the space says so; ties go to the older
        frame. Cost: the signs of all vectors, and the numbers of at most 8,192 of them.

        Raises:
            Corrupt: a vector is damaged.
        """
        layers, metric = self._view.layers, metric_of(self.key[0])
        if among is None:
            among = end_to_end(both(layers.active, layers.searched))
        over = _gathered(self._view, self.key)
        best = self._stored(k, among[: layers.base.rows], metric, [*over])
        if not over:
            return Lane(LANE, best.ids, best.scores)
        seen = layers.among([*over], among)
        matrix = matrix_of(b"".join(over[frame] for frame in seen), self.key)
        found = [
            *zip(
                seen,
                exact_scores(matrix, lengths_of(matrix), self.query, metric).tolist(),
                strict=True,
            )
        ]
        found += zip(best.ids.tolist(), best.scores.tolist(), strict=True)
        found.sort(key=lambda item: (-item[1], layers.moment(item[0])))
        return Lane(LANE, [frame for frame, _ in found[:k]], [score for _, score in found[:k]])

    @property
    def candidates(self) -> Mask:
        """The rows of the view's layers that have a vector in the space, current or not."""
        layers, base = self._view.layers, self._view.layers.base
        found = layers.rank_mask(_gathered(self._view, self.key))
        found[: base.rows] |= base.frames.embedded(base.n, self.key[0])
        return found

    def _stored(self, k: int, mask: Mask, metric: Metric, others: Sequence[int]) -> "_Best":
        """Return the nearest of what is in the log, but for frames that have other vectors now."""
        view = self._view
        space = view.vectors.find(self.key[0], view.basis)
        if space is None or space.key != self.key:
            return _Best(np.empty(0, np.int64), np.empty(0))
        base = view.layers.base
        gone = [row for one in others if one > 0 and (row := base.row_of(one)) is not None]
        if gone:
            mask = mask.copy()
            mask[gone] = False
        stored = view.stored_vectors(space)
        allowed = stored.of_frames(space, base.frames, mask, view.basis)
        fetch, propose = partial(stored.rows, space), None
        if self.approximate:
            propose = partial(stored.graph(metric).proposed, space, lambda rows: fetch(rows)[0])
        best = nearest(space, allowed, self.query, k, metric, fetch, propose)
        return _Best(space.frames[best.rows].astype(np.int64), best.scores)


class _Best(NamedTuple):
    ids: I64
    scores: F64


def vector_query(
    view: "View",
    query: object,
    embedding: Vector | None,
    space: str | None,
    mode: Mode,
    *,
    approximate: bool,
) -> VectorQuery | None:
    """Return the vector to search by, if there is one.

    That which is given, or the store's embedder makes of a question in plain language where it has
    made any vector in the view.

    Raises:
        InvalidInput: the mode is none, it needs a vector and there is none, or the vector is none.
        NotFound: there is no such space. EmbedderFailed: it could not embed the question.
    """
    if mode not in get_args(Mode):
        raise InvalidInput(
            f"The mode is {mode!r:.60}", remedy=f"It is one of {', '.join(get_args(Mode))}."
        )
    if embedding is not None:
        found = None if mode == "text" else embedding
        return found if found is None else VectorQuery(view, found, space, approximate=approximate)
    embedder = view.embedder
    is_text = isinstance(query, str) and bool(query.strip())
    if embedder is None or not is_text or space not in (None, embedder.identity.space):
        if mode == "vector" or space is not None:
            raise InvalidInput(
                "There is no vector to search by",
                remedy="Pass the question's vector as embedding=, or open with its embedder.",
            )
        return None
    own = embedder.identity.space
    if mode == "text" or (mode == "hybrid" and own not in (key[0] for key in _keys(view))):
        return None
    vector = embed_texts(embedder, [str(query)])[0]
    return VectorQuery(view, vector, own, approximate=approximate)


def vector_of(view: "View", frame: int, space: str | None) -> Matrix | None:
    """Return a frame's vector in a space, by default the only one that it has; None without one.

    Raises:
        InvalidInput: it has vectors in several spaces, and none was named.
    """
    found = dict[Key, Matrix]()
    for key in _keys(view):
        if space is not None and key[0] != space:
            continue
        data = _gathered(view, key).get(frame)
        if data is not None:
            found[key] = matrix_of(data, key)[0]
            continue
        stored = view.vectors.find(key[0], view.basis)
        row = None if stored is None or stored.key != key else stored.row_of(frame, view.basis)
        if stored is not None and row is not None:
            found[key] = view.stored_vectors(stored).vector(stored, row)
    if len(found) > 1:
        names = ", ".join(repr(key[0]) for key in found)
        raise InvalidInput(
            f"Frame {frame:,} has vectors in {len(found)} spaces", remedy=f"Name one: {names}."
        )
    return next(iter(found.values()), None)


def _checked(vector: Vector) -> Asked:
    """Return a query as float32. Raises `InvalidInput`."""
    numbers = numbers_of(vector).astype(np.float32)
    if numbers.ndim != 1 or not len(numbers):
        raise InvalidInput(f"A vector cannot have the shape {numbers.shape}", remedy=_REMEDY)
    if not np.isfinite(numbers).all():
        raise InvalidInput("The vector has a number that is not finite", remedy=_REMEDY)
    return numbers


_REMEDY = "Give the query's embedding: finite numbers, one for each dimension."


def _key_for(view: "View", dimension: int, space: str | None) -> Key:
    keys = _keys(view)
    named = [key for key in keys if space is None or key[0] == space]
    if not named:
        known = ", ".join(repr(key[0]) for key in keys) or "none"
        what = "There are no vectors" if space is None else f"There is no space {space!r}"
        raise NotFound(what, where=f"basis {view.basis:,}", remedy=f"The spaces are: {known}.")
    fitting = [key for key in named if key[2] == dimension]
    if not fitting:
        has = ", ".join(f"{key[0]!r} {key[2]:,}" for key in named)
        raise InvalidInput(
            f"The vector has {dimension:,} dimensions; there are: {has}",
            remedy="Use the embedder that made the space.",
        )
    if len(fitting) > 1:
        names = ", ".join(repr(key[0]) for key in fitting)
        raise InvalidInput(
            f"{len(fitting)} spaces have vectors of {dimension:,} dimensions",
            remedy=f"Name one with space=: {names}.",
        )
    return fitting[0]


def _keys(view: "View") -> list[Key]:
    """Return the spaces of a view, one for each name: those of the log, then what is gathered."""
    keys = dict[str, Key]()
    for one in view.vectors.spaces(view.basis):
        keys.setdefault(one.key[0], one.key)
    for _, embedding, _ in _gathered_vectors(view):
        keys.setdefault(embedding.space, key_of(embedding))
    return [*keys.values()]


def _gathered(view: "View", key: Key) -> dict[int, bytes]:
    """Return the vectors in a space that a transaction has gathered, by frame; the last of each."""
    return {
        frame: data
        for frame, embedding, data in _gathered_vectors(view)
        if key_of(embedding) == key
    }


def _gathered_vectors(view: "View") -> Iterator[tuple[int, Embedding, bytes]]:
    for place, draft in enumerate(view.gathered, start=1):
        body = draft.body
        if isinstance(body, PutFrame | PutEmbedding) and body.embedding is not None:
            frame = body.frame if isinstance(body, PutEmbedding) else -place
            yield frame, body.embedding, chosen(draft.attachments, body.embedding.data, -place)
