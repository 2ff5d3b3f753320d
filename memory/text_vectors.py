"""The vectors of texts: found in the log where a text has one already, else made.

The log is the cache, addressed by content: nothing is kept beside it, and what another process or
an earlier version embedded is found too; a document's parts, by their document. Owns what of a
frame is embedded, and the look-up. Leaves out when it is done (`embedding`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import msgspec

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
from cerata.engine.log import Log
from cerata.projections.columns import Mask
from cerata.projections.frame_table import Frames
from cerata.retrieval.embedders.embedder import (
    Embedder,
    embed_texts,
    embed_token_texts,
    token_embedder,
)
from cerata.retrieval.embedders.identity import EmbedderIdentity
from cerata.retrieval.embedders.quantising import quantised, quantised_tokens

from .drafting import content_hash
from .view import View

StoredVector: TypeAlias = tuple[Embedding, bytes]
"""A vector as an event names it, and its bytes, which stand beside."""


def embedded_text(body: PutFrame) -> str | None:
    """Return what an embedder is given of a frame: its text, else its ``search_text``.

    None where there is no word to read, and of a document that was split: its chunks are embedded.
    """
    if body.chunk_count is not None and body.chunk_index is None:
        return None
    text = body.text if body.text and body.text.strip() else body.search_text
    return text if text and text.strip() else None


class Maker(NamedTuple):
    """What an embedder makes of texts: a vector of each, or one of each of its tokens.

    ``field`` is that of a `PutFrame` which has it; ``make`` returns the bytes for each text.
    """

    identity: EmbedderIdentity
    field: Literal["embedding", "token_embedding"]
    make: Callable[[Sequence[str]], list[bytes]]


def makers_of(embedder: Embedder) -> tuple[Maker, ...]:
    """Return what an embedder makes: vectors, and token vectors if it does."""
    identity = embedder.identity

    def vectors(texts: Sequence[str]) -> list[bytes]:
        matrix = embed_texts(embedder, texts)
        rows = quantised(matrix) if identity.dtype == "i1" else matrix.astype("<f4")
        return [row.tobytes() for row in rows]

    makers = [Maker(identity, "embedding", vectors)]
    by_token = token_embedder(embedder)
    if by_token is not None:
        given = by_token

        def tokens(texts: Sequence[str]) -> list[bytes]:
            return [quantised_tokens(one).tobytes() for one in embed_token_texts(given, texts)]

        makers.append(Maker(by_token.token_identity, "token_embedding", tokens))
    return tuple(makers)


class TextVectors:
    """What one maker makes of texts, each once: of one call, or of one transaction."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._known: dict[str, StoredVector] = {}
        self.asked = 0
        """How many texts the embedder was given; the others had a vector already."""

    @property
    def space(self) -> str:
        """The space of what is made."""
        return self._maker.identity.space

    def lacks(self, body: EventBody) -> bool:
        """Tell whether a frame that is about to be put has something to embed, and has it not."""
        if not isinstance(body, PutFrame) or getattr(body, self._maker.field) is not None:
            return False
        return embedded_text(body) is not None

    def of_drafts(self, drafts: Sequence[Draft], view: View) -> list[Draft]:
        """Return drafts with the vectors of the frames that they put without one.

        Raises:
            EmbedderFailed: with nothing written.
        """
        bodies = (draft.body for draft in drafts if self.lacks(draft.body))
        self.prepare((one for one in bodies if isinstance(one, PutFrame)), view)
        return [self._embedded(draft) for draft in drafts]

    def _embedded(self, draft: Draft) -> Draft:
        body = draft.body
        if not isinstance(body, PutFrame) or not self.lacks(body):
            return draft
        embedding, data = self._known[embedded_text(body) or ""]
        return msgspec.structs.replace(
            draft,
            body=msgspec.structs.replace(body, **{self._maker.field: embedding}),
            attachments=(*draft.attachments, data),
        )

    def of_frame(self, frame: int, body: PutFrame, scope: Scope) -> Draft:
        """Return the event that gives a frame that is there its vector, which was prepared."""
        embedding, data = self._known[embedded_text(body) or ""]
        return Draft(PutEmbedding(frame=frame, embedding=embedding), scope, attachments=(data,))

    def prepare(self, bodies: Iterable[PutFrame], view: View) -> None:
        """Have a vector for each text of these frames: look it up, and make what is not there."""
        texts: dict[str, PutFrame] = {}
        for body in bodies:
            text = embedded_text(body)
            if text is not None and text not in self._known:
                texts.setdefault(text, body)
        identity = self._maker.identity
        stored = Stored(view, identity)
        for text, body in texts.items():
            found = stored.find(text, body)
            if found is not None:
                self._known[text] = found
        missing = [text for text in texts if text not in self._known]
        if not missing:
            return
        made = self._maker.make(missing)
        self.asked += len(missing)
        for text, data in zip(missing, made, strict=True):
            attachment = Attachment(hash_bytes(data), len(data))
            embedding = Embedding(identity.space, identity.dtype, identity.dimension, attachment)
            self._known[text] = embedding, data

    def learn(self, frames: Iterable[int], view: View) -> None:
        """Take over what frames have: a new version of a document says most of it again."""
        stored = Stored(view, self._maker.identity)
        for frame in frames:
            body = view.layers.event(frame).body if frame > 0 else None
            text = embedded_text(body) if isinstance(body, PutFrame) else None
            found = None if text is None or text in self._known else stored.of_frame(frame)
            if text is not None and found is not None:
                self._known[text] = found


class Stored:
    """The vectors of one space that the log has at a view's basis, within its scope."""

    def __init__(self, view: View, identity: EmbedderIdentity) -> None:
        self._log: Log = view.layers.log
        self._layer = view.base
        self._frames: Frames = view.base.frames
        self._n = view.basis
        self._identity = identity

    def find(self, text: str, body: PutFrame) -> StoredVector | None:
        """Return the vector that a frame of the same text has, current or not.

        Cost: O(log n), a look at each frame of this content, and a read of one that has a vector.
        """
        hashes = {content_hash(text), body.content_hash or b""} - {b""}
        for hashed in sorted(hashes):
            for row in self._frames.content_rows(hashed, self._n):
                if not self._embedded[row]:
                    continue
                frame = int(self._frames.ids[row])
                if self._says(frame, text):
                    return self.of_frame(frame)
        return None

    def _says(self, frame: int, text: str) -> bool:
        body = self._log.event(frame).body
        return isinstance(body, PutFrame) and embedded_text(body) == text

    @cached_property
    def _embedded(self) -> Mask:
        """Which rows have a vector and are within the scope: once, and not for each frame.

        Of other scopes no event is read: a common text may have many.
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
            for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
                if self._is_alike(embedding):
                    return embedding, self._log.attachment(seq, embedding.data)
        return None

    def _events_of(self, frame: int) -> Iterator[int]:
        """Yield the events that may hold a frame's vector: mostly it came with the frame."""
        yield frame
        yield from self._frames.embeddings_of(frame, self._identity.space, self._n)

    def _is_alike(self, embedding: Embedding) -> bool:
        identity = self._identity
        wanted = identity.space, identity.dtype, identity.dimension
        return (embedding.space, embedding.dtype, embedding.dimension) == wanted
