"""The vectors of texts: read from the log if a text has a vector there, else computed.

The log is the only cache, addressed by content, so vectors that another process or an earlier
version computed are reused; those of a document's chunks, through their document. Owns the embedded
text of a frame, and the look-up. Leaves out when vectors are computed (`commands`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from cerata.engine.errors import Corrupt
from cerata.engine.events import (
    Attachment,
    Draft,
    Embedding,
    EventBody,
    PutEmbedding,
    PutFrame,
    Scope,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.late import late
from cerata.engine.salted_hashes import content_hash_of

from ..values.arguments import content_hash

if TYPE_CHECKING:
    from cerata.engine.log import Log
    from cerata.projections.columnar.columns import Mask
    from cerata.projections.frames.reader import Frames
    from cerata.retrieval.embedders import embedder as embedders
    from cerata.retrieval.embedders import quantization
    from cerata.retrieval.embedders.embedder import Embedder
    from cerata.retrieval.embedders.identity import EmbedderIdentity

    from ..snapshot.snapshot import Snapshot
else:
    embedders = late("cerata.retrieval.embedders.embedder")
    quantization = late("cerata.retrieval.embedders.quantization")

StoredVector: TypeAlias = tuple[Embedding, bytes]
"""The embedding that an event stores for a vector, and the attachment's bytes."""


_RESULT_KIND: Final = "tool_result"
"""The kind of the frames that hold results of calls."""


def embedded_text(body: PutFrame) -> str | None:
    """Return the text of a frame to embed: its text, else its ``search_text``.

    None if both are blank, for a split document, whose chunks are embedded, and for the result of a
    call of a run, which would fill the space of the texts.
    """
    if body.chunk_count is not None and body.chunk_index is None:
        return None
    if body.kind == _RESULT_KIND and body.blob is not None and body.parent is not None:
        return None
    text = body.text if body.text and body.text.strip() else body.search_text
    return text if text and text.strip() else None


class Maker(NamedTuple):
    """A function of an embedder: a vector of each text, or a vector of each token.

    ``field`` is the field of a `PutFrame` for the result; ``make`` returns the bytes of each text.
    """

    identity: EmbedderIdentity
    field: Literal["embedding", "token_embedding"]
    make: Callable[[Sequence[str]], list[bytes]]


def makers_of(embedder: Embedder) -> tuple[Maker, ...]:
    """Return the makers of an embedder: for vectors, and for token vectors if supported."""
    identity = embedder.identity

    def vectors(texts: Sequence[str]) -> list[bytes]:
        matrix = embedders.embed_texts(embedder, texts)
        rows = quantization.quantised(matrix) if identity.dtype == "i1" else matrix.astype("<f4")
        return [row.tobytes() for row in rows]

    makers = [Maker(identity, "embedding", vectors)]
    by_token = embedders.token_embedder(embedder)
    if by_token is not None:
        tokens_embedder = by_token

        def tokens(texts: Sequence[str]) -> list[bytes]:
            matrices = embedders.embed_token_texts(tokens_embedder, texts)
            return [quantization.quantised_tokens(matrix).tobytes() for matrix in matrices]

        makers.append(Maker(by_token.token_identity, "token_embedding", tokens))
    return tuple(makers)


class TextVectors:
    """The vectors of one maker, each text once, for a call or a transaction."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._by_text: dict[str, StoredVector] = {}
        self.asked = 0
        """The count of texts passed to the embedder; the rest had a vector already."""

    @property
    def space(self) -> str:
        """The space of the vectors."""
        return self._maker.identity.space

    def lacks(self, body: EventBody) -> bool:
        """Return whether an event puts a frame with a text to embed and without a vector."""
        if not isinstance(body, PutFrame) or getattr(body, self._maker.field) is not None:
            return False
        return embedded_text(body) is not None

    def of_drafts(
        self, drafts: Sequence[Draft], snapshot: Snapshot, chunks_max: int | None = None
    ) -> list[Draft]:
        """Return drafts with vectors added to the frames that lack a vector.

        Args:
            drafts: The drafts; those of other events stay as they are.
            snapshot: The state whose vectors are looked up.
            chunks_max: Chunks from this index on get a vector only if the log has it; None for all.

        Raises:
            EmbedderFailed: the embedder failed; nothing was written.
        """
        bodies = [draft.body for draft in drafts if self.lacks(draft.body)]
        frames = [body for body in bodies if isinstance(body, PutFrame)]
        if chunks_max is not None:
            self._find((body for body in frames if (body.chunk_index or 0) >= chunks_max), snapshot)
            frames = [body for body in frames if (body.chunk_index or 0) < chunks_max]
        self.prepare(frames, snapshot)
        return [self._embedded(draft) for draft in drafts]

    def _embedded(self, draft: Draft) -> Draft:
        body = draft.body
        if not isinstance(body, PutFrame) or not self.lacks(body):
            return draft
        vector = self._by_text.get(embedded_text(body) or "")
        if vector is None:
            return draft
        embedding, data = vector
        return msgspec.structs.replace(
            draft,
            body=msgspec.structs.replace(body, **{self._maker.field: embedding}),
            attachments=(*draft.attachments, data),
            # A vector that another writer stored may have numbers that are not finite.
            is_checked=False,
        )

    def of_frame(self, frame: int, body: PutFrame, scope: Scope) -> Draft:
        """Return the event that adds the prepared vector to a stored frame."""
        embedding, data = self._by_text[embedded_text(body) or ""]
        return Draft(PutEmbedding(frame=frame, embedding=embedding), scope, attachments=(data,))

    def prepare(self, bodies: Iterable[PutFrame], snapshot: Snapshot) -> None:
        """Look up the vector of each text of these frames, and compute the missing vectors."""
        missing = self._find(bodies, snapshot)
        if not missing:
            return
        identity = self._maker.identity
        computed = self._maker.make(missing)
        self.asked += len(missing)
        for text, data in zip(missing, computed, strict=True):
            attachment = Attachment(hash_bytes(data), len(data))
            embedding = Embedding(identity.space, identity.dtype, identity.dimension, attachment)
            self._by_text[text] = embedding, data

    def _find(self, bodies: Iterable[PutFrame], snapshot: Snapshot) -> list[str]:
        """Look up the vector of each text of these frames; return the texts without one."""
        texts: dict[str, PutFrame] = {}
        for body in bodies:
            text = embedded_text(body)
            if text is not None and text not in self._by_text:
                texts.setdefault(text, body)
        stored = Stored(snapshot, self._maker.identity)
        for text, body in texts.items():
            vector = stored.find(text, body)
            if vector is not None:
                self._by_text[text] = vector
        return [text for text in texts if text not in self._by_text]

    def learn(self, frames: Iterable[int], snapshot: Snapshot) -> None:
        """Take over the vectors of frames: a new version of a document repeats most texts.

        A vector that cannot be read is computed again.
        """
        stored = Stored(snapshot, self._maker.identity)
        for frame in frames:
            with suppress(Corrupt):
                body = snapshot.layers.event(frame).body if frame > 0 else None
                text = embedded_text(body) if isinstance(body, PutFrame) else None
                vector = None if text is None or text in self._by_text else stored.of_frame(frame)
                if text is not None and vector is not None:
                    self._by_text[text] = vector


class Stored:
    """The vectors of one space that the log has at a view's basis, within its scope."""

    def __init__(self, snapshot: Snapshot, identity: EmbedderIdentity) -> None:
        self._log: Log = snapshot.layers.log
        self._layer = snapshot.base
        self._frames: Frames = snapshot.base.frames
        self._n = snapshot.basis
        self._identity = identity

    def find(self, text: str, body: PutFrame) -> StoredVector | None:
        """Return the vector of a frame, current or closed, with the same text.

        Cost: O(log n), a row of each frame of this content, and a read of a frame with a vector.
        """
        hashes = {content_hash(text), content_hash_of(body) or b""} - {b""}
        for hashed in sorted(hashes):
            for row in self._frames.content_rows(hashed, self._n):
                if not self._embedded[row]:
                    continue
                frame = int(self._frames.ids[row])
                # A copy that cannot be read lends no vector.
                with suppress(Corrupt):
                    if self._has_text(frame, text):
                        return self.of_frame(frame)
        return None

    def _has_text(self, frame: int, text: str) -> bool:
        body = self._log.event(frame).body
        return isinstance(body, PutFrame) and embedded_text(body) == text

    @cached_property
    def _embedded(self) -> Mask:
        """The rows that have a vector and are within the scope, computed once for all frames.

        A common text may have many frames in other scopes; their events are not read.
        """
        return self._layer.visible & self._frames.embedded(self._n, self._identity.space)

    def _has_vector(self, frame: int) -> bool:
        row = self._frames.row_of(frame)
        return row is not None and bool(self._embedded[row])

    def of_frame(self, frame: int) -> StoredVector | None:
        """Return a frame's vector in the space, or None."""
        if not self._has_vector(frame):
            return None
        for seq in self._events_of(frame):
            body = self._log.event(seq).body
            if isinstance(body, PutEmbedding) and body.context:
                # A vector of the text in its conversation is no vector of the text alone.
                continue
            for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
                if self._is_alike(embedding):
                    return embedding, self._log.attachment(seq, embedding.data)
        return None

    def _events_of(self, frame: int) -> Iterator[int]:
        """Yield the events that may have a frame's vector, first the event of the frame."""
        yield frame
        yield from self._frames.embeddings_of(frame, self._identity.space, self._n)

    def _is_alike(self, embedding: Embedding) -> bool:
        identity = self._identity
        expected = identity.space, identity.dtype, identity.dimension
        return (embedding.space, embedding.dtype, embedding.dimension) == expected
