"""Embedding: the writes that add vectors to the texts of frames.

Owns the embedding of texts before a write, and the pass over frames without a vector. The embedder
runs before any lock is taken and never in a replay: its vectors are in the log. Leaves out the
look-up of vectors (`cache`) and the search by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import JsonValue, PutFrame, Scope
from cerata.engine.late import late
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.unreadable import frame_place, readable

from ..batch.writer import Writer

if TYPE_CHECKING:
    import numpy as np

    from cerata.projections.frames.filters import Filter
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders import embedder as callable_embedders
    from cerata.retrieval.embedders import embedder as embedders
    from cerata.retrieval.embedders.embedder import Embedder, Progress

    from ..batch import attempts as batch_attempts
    from ..batch import embedder_use as embedder_uses
    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot
    from . import cache as vector_cache
    from . import windows as embedding_windows
    from .cache import TextVectors
    from .windows import WindowVectors
else:
    np = late("numpy")
    built_in = late("cerata.retrieval.embedders.built_in")
    callable_embedders = late("cerata.retrieval.embedders.embedder")
    embedders = late("cerata.retrieval.embedders.embedder")
    batch_attempts = late("cerata.memory.batch.attempts")
    embedder_uses = late("cerata.memory.batch.embedder_use")
    vector_cache = late("cerata.memory.embeddings.cache")
    embedding_windows = late("cerata.memory.embeddings.windows")


BATCH_FRAMES: Final = 256
"""Frames of a batch: an interrupted call loses at most this many vectors."""


@dataclass(frozen=True, slots=True)
class EmbeddedFrames(PlainValue):
    """The result of `Store.embeddings.fill`.

    - ``frames`` counts the frames that got a vector.
    - ``asked`` counts the texts that the embedder got; texts with a vector in the log are not sent.
    - ``passed`` counts the frames that other writers embedded or closed during the call.
    - ``notices`` has a line if the memory keeps the embedder that it used before.
    """

    space: str
    frames: int
    asked: int
    passed: int
    tokens: EmbeddedFrames | None = None
    """The same for token vectors, if the embedder computes them."""
    notices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        return plain_fields(self, self.__match_args__ if self.notices else self.__match_args__[:-1])


class EmbeddingCommands(Writer):
    """Writes with embedded texts, and the embedding of stored frames."""

    @property
    def embedder(self) -> Embedder | None:
        """The embedder passed to `open`, else the remembered built-in if it is installed."""
        return self._session.embedder

    def fill(
        self,
        *,
        where: Filter | None = None,
        batch: int = BATCH_FRAMES,
        progress: Progress | None = None,
        actor: str | None = None,
    ) -> EmbeddedFrames:
        """Embed each current frame with a text and without a vector in the embedder's space.

        A token embedder also adds token vectors. Each batch is durable before the next, so a
        repeated call continues after an interrupt. Once each frame of the tenant has a vector, the
        memory uses this embedder: later openers, questions and writes. A call with ``where``, or
        of a store with a scope inside the tenant, leaves frames without, so the memory then keeps
        its embedder. Vectors of other spaces stay, and earlier views do not change
        (docs/embedders.md). Shared frames are left to a store of their scope. An embedder that
        reads turns in their conversation also replaces each vector that is not that of the turn's
        present neighbours.

        Args:
            where: The frames to embed; by default all.
            batch: Frames per batch; by default 256.
            progress: Called with the count of finished frames, and the count of all.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            EmbedderFailed: the embedder failed; earlier batches stay written.
            InvalidInput: the store has no embedder, or a transaction is open.
        """
        embedder = self._session.embedder
        if embedder is None:
            raise InvalidInput(
                "The store was opened without an embedder, and remembers none that can run here",
                remedy="Open it with embedder='minilm', or with an embedder object.",
            )
        if self._session.in_transaction:
            raise InvalidInput(
                "embeddings.fill writes several batches and cannot run in a transaction",
                remedy="Call embeddings.fill() after the block.",
            )
        callable_embedders.check_batch(batch)
        self._session.check_writable()
        session = self._session.by(actor)
        # Half, since the first vectors of each tenant record its embedder in their batch.
        size = min(batch, BATCH_EVENTS_MAX // 2)
        makers = vector_cache.makers_of(embedder)
        spaces = [maker.identity.space for maker in makers]
        written, asked_for, passed = ([0] * len(makers) for _ in range(3))
        in_context = embedders.context_embedder(embedder)
        if in_context is not None:
            windows = embedding_windows.WindowVectors(in_context)
            written[0], passed[0] = self._embed_turns(session, windows, where, size)
            asked_for[0] = windows.asked
        for _ in range(batch_attempts.ATTEMPTS):
            snapshot = self._snapshot().within(shared=False)
            lacking = [
                {frame for frame, _ in _unembedded(snapshot, where, space)} for space in spaces
            ]
            frames = sorted(set[int]().union(*lacking))
            for first in range(0, len(frames), size):
                batch_frames = frames[first : first + size]
                for place, (maker, missing) in enumerate(zip(makers, lacking, strict=True)):
                    vectors = vector_cache.TextVectors(maker)
                    numbers = [frame for frame in batch_frames if frame in missing]
                    count = self._embed(session, numbers, vectors, where)
                    written[place] += count
                    passed[place] += len(numbers) - count
                    asked_for[place] += vectors.asked
                if progress is not None:
                    progress(first + len(batch_frames), len(frames))
            notices = self._use(session, embedder, where)
            if notices is not None:
                break
        else:
            raise Conflict(
                f"Other writers appended first in each of {batch_attempts.ATTEMPTS:,} attempts",
                where="the change of the embedder",
                remedy="Call embeddings.fill() again when fewer processes write.",
            )
        counts = zip(spaces, written, asked_for, passed, strict=True)
        embedded, *tokens = (EmbeddedFrames(*count) for count in counts)
        return replace(embedded, tokens=tokens[0] if tokens else None, notices=notices)

    def _use(
        self, session: WriteSession, embedder: Embedder, where: Filter | None
    ) -> tuple[str, ...] | None:
        """Make an embedder that of the store's tenant; without a scope, of all tenants in use.

        Returns lines if the tenant keeps its first, since frames may lack a vector; None if another
        writer has put such frames or appended, so that the caller must try again.
        """
        snapshot = self._snapshot().within(shared=False)
        spaces = built_in.spaces_of(embedder)
        scopes: list[Scope] = []
        kept: list[str] = []
        for scope in session.uses.scopes(session.scope, snapshot.basis):
            used = session.uses.used(scope, snapshot.basis)
            if used is None or used.spaces != spaces:
                scopes.append(scope)
                kept += [] if used is None else [used.space]
        if kept and (where is not None or len(session.scope or ()) > 1):
            return tuple(
                f"The memory still uses the embedder of {space!r}; embeddings.fill() without "
                "where=, by a store of the whole tenant, changes it"
                for space in kept
            )
        if not scopes:
            return ()
        if kept and any(any(_unembedded(snapshot, None, space)) for space in spaces if space):
            return None
        try:
            session.write(
                [embedder_uses.use_of(embedder, scope) for scope in scopes], expect=snapshot.basis
            )
        except Conflict:
            if session.log.refresh().seq == snapshot.basis:
                raise
            return None
        return ()

    def _embed_turns(
        self, session: WriteSession, vectors: WindowVectors, where: Filter | None, size: int
    ) -> tuple[int, int]:
        """Write the vectors of turns that are missing or out of date; the count, and that passed.

        A batch is of consecutive turns, so that another writer makes few of them out of date.
        """
        snapshot = self._snapshot().within(shared=False)
        turns = [
            turn.frame for turn in embedding_windows.outdated_turns(snapshot, where, vectors.space)
        ]
        written = 0
        for first in range(0, len(turns), size):
            written += self._embed_windows(session, turns[first : first + size], vectors, where)
        return written, len(turns) - written

    def _embed_windows(
        self,
        session: WriteSession,
        frames: Sequence[int],
        vectors: WindowVectors,
        where: Filter | None,
    ) -> int:
        def attempt(newest: Snapshot) -> int:
            snapshot = newest.within(shared=False)
            drafts = vectors.drafts(
                [*embedding_windows.outdated_turns(snapshot, where, vectors.space, frames)]
            )
            if drafts:
                session.write(drafts, expect=snapshot.basis)
            return len(drafts)

        return batch_attempts.attempted(session, attempt)

    def _embed(
        self,
        session: WriteSession,
        frames: Sequence[int],
        vectors: TextVectors,
        where: Filter | None,
    ) -> int:
        def attempt(newest: Snapshot) -> int:
            snapshot = newest.within(shared=False)
            lacking = dict(_unembedded(snapshot, where, vectors.space, frames)) if frames else {}
            vectors.prepare(lacking.values(), snapshot)
            drafts = [
                vectors.of_frame(frame, body, scope)
                for frame, body in lacking.items()
                if (scope := snapshot.layers.event(frame).scope) is not None
            ]
            if drafts:
                session.write(drafts, expect=snapshot.basis)
            return len(drafts)

        return batch_attempts.attempted(session, attempt)


def _unembedded(
    snapshot: Snapshot, where: Filter | None, space: str, among: Sequence[int] | None = None
) -> Iterator[tuple[int, PutFrame]]:
    """Yield the current frames with a text that lack a vector in a space, oldest first.

    Cost: a read of each frame that lacks one.
    """
    layer = snapshot.base
    [admitted] = snapshot.layers.admitted(where)
    rows = admitted & ~layer.frames.embedded(layer.n, space)
    if among is not None:
        chosen = np.zeros_like(rows)
        chosen[layer.rows_of(np.array(among, np.int64))] = True
        rows &= chosen
    frames = layer.ids(np.flatnonzero(rows)).tolist()
    read = readable(frames, lambda frame: (frame, snapshot.layers.event(frame).body), frame_place)
    for frame, body in read:
        if isinstance(body, PutFrame) and vector_cache.embedded_text(body) is not None:
            yield frame, body
