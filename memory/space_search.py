"""Searching one space, as of a view: what vectors and token vectors have in common.

Owns which spaces a view has, and how what a transaction has gathered stands over what is in the
log. What is compared, and how, is `vector_search`'s and `token_search`'s.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Embedding, PutEmbedding, PutFrame, chosen, is_token_space
from cerata.projections.columns import Mask
from cerata.projections.nearest import Nearest
from cerata.projections.vector_columns import Key
from cerata.projections.vector_table import Space
from cerata.projections.vectors import key_of
from cerata.replay.stored_vectors import StoredSpace
from cerata.retrieval.fusion import Lane

if TYPE_CHECKING:
    from .view import View


Mode: TypeAlias = Literal["hybrid", "text", "vector"]
"""What a search goes by: all there is, words, or vectors."""


def check_mode(mode: object) -> None:
    """Refuse what is no mode: `InvalidInput`."""
    if mode not in get_args(Mode):
        raise InvalidInput(
            f"The mode is {mode!r:.60}", remedy=f"It is one of {', '.join(get_args(Mode))}."
        )


class SpaceQuery(ABC):
    """What a view is asked for in one space."""

    name: ClassVar[str]
    """The lane's."""

    def __init__(self, view: "View", key: Key) -> None:
        self._view = view
        self.key = key

    @abstractmethod
    def _nearest(self, space: Space, allowed: Mask, k: int) -> Nearest:
        """Return the best rows of those allowed, and their scores."""

    @abstractmethod
    def _scores(self, data: Sequence[bytes]) -> list[float]:
        """Return the scores of what a transaction has gathered."""

    @abstractmethod
    def _kept(self, space: Space) -> StoredSpace:
        """What is kept of the space for all views."""

    def lane(self, k: int, among: Mask | None) -> Lane:
        """Return the best ``k`` frames.

        Of those that a mask over the rows of the view's layers lets pass, by default what is
        current. Ties go to the older frame.

        Raises:
            Corrupt: a vector is damaged.
        """
        layers = self._view.layers
        if among is None:
            among = layers.sought
        over = gathered(self._view, self.key)
        own = among if len(layers.all) == 1 else among[: layers.base.rows]
        best = self._stored(k, own, [*over])
        if not over:
            return best
        seen = layers.among([*over], among)
        found = [*zip(seen, self._scores([over[frame] for frame in seen]), strict=True)]
        found += zip(np.asarray(best.ids).tolist(), np.asarray(best.scores).tolist(), strict=True)
        found.sort(key=lambda item: (-item[1], layers.moment(item[0])))
        return Lane(self.name, [frame for frame, _ in found[:k]], [one for _, one in found[:k]])

    @property
    def candidates(self) -> Mask:
        """The rows of the view's layers that have a vector in the space, current or not."""
        layers, base = self._view.layers, self._view.layers.base
        found = layers.rank_mask(gathered(self._view, self.key))
        found[: base.rows] |= _rows_with(self._view, self.key)
        return found

    def _stored(self, k: int, mask: Mask, others: Sequence[int]) -> Lane:
        """Return the best of what is in the log, but for frames that have other vectors now."""
        view = self._view
        space = view.vectors.find(self.key, view.basis)
        if space is None:
            return Lane(self.name, np.empty(0, np.int64), np.empty(0))
        base = view.layers.base
        gone = [row for one in others if one > 0 and (row := base.row_of(one)) is not None]
        if gone:
            mask = mask.copy()
            mask[gone] = False
        allowed = self._kept(space).of_frames(space, base.frames, mask, view.basis)
        best = self._nearest(space, allowed, k)
        return Lane(self.name, space.frames[best.rows].astype(np.int64), best.scores)


def key_for(view: "View", dimension: int, space: str | None, *, tokens: bool) -> Key:
    """Return the space of a question's vectors, which may go unnamed where only one fits.

    Raises:
        InvalidInput: no space has the dimension, or several have. NotFound: there is no such space.
    """
    what = "token vectors" if tokens else "vectors"
    keys = keys_of(view, tokens=tokens)
    named = [key for key in keys if space is None or key[0] == space]
    if not named:
        known = ", ".join(repr(key[0]) for key in keys) or "none"
        missing = f"There are no {what}" if space is None else f"There is no space {space!r}"
        raise NotFound(
            missing, where=f"basis {view.basis:,}", remedy=f"The spaces of {what} are: {known}."
        )
    fitting = [key for key in named if key[2] == dimension]
    if not fitting:
        has = ", ".join(f"{key[0]!r} {key[2]:,}" for key in named)
        raise InvalidInput(
            f"The question has {what} of {dimension:,} dimensions; there are: {has}",
            remedy="Use the embedder that made the space.",
        )
    several = dict.fromkeys(key[0] for key in fitting)
    if len(several) > 1:
        names = ", ".join(map(repr, several))
        raise InvalidInput(
            f"{len(several)} spaces have {what} of {dimension:,} dimensions",
            remedy=f"Name one with {'tokens_' if tokens else ''}space=: {names}.",
        )
    return fitting[0]


def key_of_frame(view: "View", frame: int, space: str | None, *, tokens: bool) -> Key | None:
    """Return the space in which a frame has vectors, by default the only one; None without one.

    Raises:
        InvalidInput: it has vectors in several spaces, and none was named.
    """
    keys = [
        key
        for key in keys_of(view, tokens=tokens)
        if space in (None, key[0]) and _has_vector(view, key, frame)
    ]
    several = dict.fromkeys(key[0] for key in keys)
    if len(several) > 1:
        names = ", ".join(map(repr, several))
        raise InvalidInput(
            f"Frame {frame:,} has vectors in {len(several)} spaces", remedy=f"Name one: {names}."
        )
    return next(iter(keys), None)


def _has_vector(view: "View", key: Key, frame: int) -> bool:
    return frame in gathered(view, key) or stored_row(view, key, frame) is not None


class StoredRow(NamedTuple):
    """Where a vector stands in the log."""

    space: Space
    row: int


def stored_row(view: "View", key: Key, frame: int) -> StoredRow | None:
    """Return where a frame's vector in a space stands in the log, or None."""
    space = view.vectors.find(key, view.basis)
    row = None if space is None else space.row_of(frame, view.basis)
    return None if space is None or row is None else StoredRow(space, row)


def keys_of(view: "View", *, tokens: bool) -> list[Key]:
    """Return the spaces in which a view has vectors: those of the log, then what is gathered.

    Those of token vectors, or the others. Spaces of two tenants may have one name and two shapes.
    """
    stored = [one.key for one in view.vectors.spaces(view.basis)]
    keys = [key for key in stored if is_token_space(key[0]) is tokens and _is_within(view, key)]
    keys += [key_of(embedding) for _, embedding, _ in _gathered_vectors(view)]
    return [key for key in dict.fromkeys(keys) if is_token_space(key[0]) is tokens]


def _is_within(view: "View", key: Key) -> bool:
    """Tell whether a frame within the view's scope has a vector in a space."""
    return view.scope is None or bool((_rows_with(view, key) & view.layers.base.visible).any())


def _rows_with(view: "View", key: Key) -> Mask:
    """Return the rows of the log's layer that have a vector in a space."""
    base = view.layers.base
    found = base.frames.embedded(base.n, key[0])
    space = view.vectors.find(key, view.basis)
    if space is None:
        return np.zeros_like(found)
    if sum(one.key[0] == key[0] for one in view.vectors.spaces(view.basis)) > 1:
        # Frames know the name alone, which two tenants may use for vectors of two shapes.
        found &= np.isin(base.frames.ids[: base.rows], space.frames.astype(np.int64))
    return found


def gathered(view: "View", key: Key) -> dict[int, bytes]:
    """Return the vectors in a space that a transaction has gathered, by frame; the last of each."""
    return {
        frame: data
        for frame, embedding, data in _gathered_vectors(view)
        if key_of(embedding) == key
    }


def _gathered_vectors(view: "View") -> Iterator[tuple[int, Embedding, bytes]]:
    for place, draft in enumerate(view.layers.drafts, start=1):
        body = draft.body
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            frame = body.frame if isinstance(body, PutEmbedding) else -place
            if view.scope is not None and not view.layers.has(frame):
                continue
            yield frame, embedding, chosen(draft.attachments, embedding.data, -place)
