"""Embedding: when the texts of frames get vectors, and of which embedder.

Owns what a store with an embedder does before it writes, and the pass over frames that lack a
vector. An embedder is asked before any lock is taken and never by a replay: what it said is in the
log. Leaves out looking vectors up (`text_vectors`) and searching by them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import Draft, JsonValue, PutFrame, Scope
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.projections.filters import Filter
from cerata.retrieval.embedders.embedder import Embedder, Progress, check_batch

from .appending import Appends, asked
from .drafting import arguments_hash
from .text_vectors import TextVectors, embedded_text, makers_of
from .values import Receipt
from .view import View

_TRIES: Final = 1_000
"""Looks at the memory before giving up on busy writers; the vectors of the batch are kept."""

BATCH_FRAMES: Final = 256
"""Frames a batch: whoever is stopped loses at most this many vectors."""


@dataclass(frozen=True, slots=True)
class EmbeddedFrames:
    """What `Store.embed_missing` did: ``frames`` were given a vector.

    ``asked`` is how many texts the embedder was given; what has one in the log is not among them.
    ``passed`` are frames that others embedded or closed meanwhile.
    """

    space: str
    frames: int
    asked: int
    passed: int
    tokens: "EmbeddedFrames | None" = None
    """The same of token vectors, where the embedder makes them."""

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "space": self.space,
            "frames": self.frames,
            "asked": self.asked,
            "passed": self.passed,
            "tokens": None if self.tokens is None else self.tokens.to_dict(),
        }


class Embeds(Appends):
    """Writes whose texts are embedded first, and the embedding of what is there already."""

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors of texts, as given at open."""
        return self._embedder

    def embed_missing(
        self,
        *,
        where: Filter | None = None,
        batch: int = BATCH_FRAMES,
        progress: Progress | None = None,
    ) -> EmbeddedFrames:
        """Give each current frame with a text a vector in the embedder's space, if it lacks one.

        And, of an embedder that makes them, token vectors.

        Each ``batch`` of frames is durable before the next, so whoever was stopped calls again.
        Vectors of other spaces stay, as does what any earlier basis has (docs/embedders.md).
        ``progress`` is told how many frames are done, and of how many.

        Raises:
            EmbedderFailed: with the batches before it written. InvalidInput: the store has no
            embedder; inside a transaction.
        """
        if self._embedder is None:
            raise InvalidInput(
                "The store was opened without an embedder",
                remedy="Open it with embedder=….",
            )
        if self.in_transaction:
            raise InvalidInput(
                "Frames are embedded in batches, not in a transaction",
                remedy="Call embed_missing outside it.",
            )
        check_batch(batch)
        self._check_writable()
        size = min(batch, BATCH_EVENTS_MAX)
        view, makers = self.view(), makers_of(self._embedder)
        spaces = [maker.identity.space for maker in makers]
        lacking = [{frame for frame, _ in _unembedded(view, where, space)} for space in spaces]
        asked_for, written = [0] * len(makers), [0] * len(makers)
        frames = sorted(set[int]().union(*lacking))
        for first in range(0, len(frames), size):
            some = frames[first : first + size]
            for place, (maker, own) in enumerate(zip(makers, lacking, strict=True)):
                vectors = TextVectors(maker)
                written[place] += self._embed([one for one in some if one in own], vectors, where)
                asked_for[place] += vectors.asked
            if progress is not None:
                progress(first + len(some), len(frames))
        counts = zip(spaces, written, asked_for, lacking, strict=True)
        done, *others = (
            EmbeddedFrames(space, count, asked, len(own) - count)
            for space, count, asked, own in counts
        )
        return replace(done, tokens=others[0]) if others else done

    def _embed(self, frames: Sequence[int], vectors: TextVectors, where: Filter | None) -> int:
        """Write the vectors of those frames that still lack one; how many they were."""
        for _ in range(_TRIES):
            view = self.view()
            lacking = dict(_unembedded(view, where, vectors.space, frames)) if frames else {}
            vectors.prepare(lacking.values(), view)
            drafts = [
                vectors.of_frame(frame, body, scope)
                for frame, body in lacking.items()
                if (scope := view.layers.event(frame).scope) is not None
            ]
            if not drafts:
                return 0
            try:
                self.write(drafts, expect=view.basis)
            except Conflict:
                if self.refresh().seq == view.basis:
                    raise
            else:
                return len(drafts)
        raise Conflict("Other writers came first every time", remedy="Call again when fewer write.")

    # --- before a write --------------------------------------------------------------------------

    def _put(self, drafts: Sequence[Draft], key: str | None = None) -> Receipt:
        """Append drafts, with the vectors of the texts that they put.

        A key stands for them without: vectors are not what the caller gave.
        """
        arguments = None if key is None else arguments_hash(asked(drafts))
        drafts = self.with_vectors(drafts, self.text_vectors(), key)
        return self.write(drafts, key=key, arguments=arguments)

    def text_vectors(self) -> Sequence[TextVectors]:
        """Return what gathers the vectors of a call, or of the open transaction, if any do."""
        if self._embedder is None:
            return ()
        transaction = self._transaction.get()
        if transaction is not None and transaction.vectors is not None:
            return transaction.vectors
        made = [TextVectors(maker) for maker in makers_of(self._embedder)]
        if transaction is not None:
            transaction.vectors = made
        return made

    def with_vectors(
        self, drafts: Sequence[Draft], vectors: Sequence[TextVectors], key: str | None = None
    ) -> Sequence[Draft]:
        """Return drafts with the vectors of their texts; ``vectors`` are those of the call.

        A repetition of what was done under a key asks no embedder, since it writes nothing; nor
        does a batch that is too large, which is refused.

        Raises:
            EmbedderFailed: and nothing was written. ReadOnly: before it was asked.
        """
        if not any(one.lacks(draft.body) for one in vectors for draft in drafts):
            return drafts
        if self.next_place() - 1 + len(drafts) > BATCH_EVENTS_MAX:
            return drafts
        self._check_writable()
        transaction = self._transaction.get()
        if transaction is not None:
            is_done = transaction.first is not None
        else:
            is_done = key is not None and self._is_used(key, drafts[0].scope)
        if is_done:
            return drafts
        newest = View(self._log, self._fold, self._log.refresh().seq, self._scope)
        for one in vectors:
            drafts = one.of_drafts(drafts, newest)
        return drafts

    def _is_used(self, key: str, scope: Scope) -> bool:
        return self._log.find_key(key, tenant_of(scope), sees=self._sees) is not None


def _unembedded(
    view: View, where: Filter | None, space: str, among: Sequence[int] | None = None
) -> Iterator[tuple[int, PutFrame]]:
    """Yield the current frames with a text that lack a vector in a space, oldest first.

    Cost: a read of each frame that lacks one.
    """
    layer = view.base
    [admitted] = view.layers.admitted(where)
    rows = admitted & ~layer.frames.embedded(layer.n, space)
    if among is not None:
        wanted = np.zeros_like(rows)
        wanted[layer.rows_of(np.array(among, np.int64))] = True
        rows &= wanted
    for frame in layer.ids(np.flatnonzero(rows)).tolist():
        body = view.layers.event(frame).body
        if isinstance(body, PutFrame) and embedded_text(body) is not None:
            yield frame, body
