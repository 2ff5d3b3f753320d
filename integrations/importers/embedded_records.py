"""Records with vectors: frames that keep the vector that the other memory computed.

Owns when a vector is written: with its frame, beside the vector of the store's embedder, or later
to the frame of an earlier import without vectors. Leaves out the vectors of a source
(`chroma_vectors`).
"""

from dataclasses import dataclass

from cerata.engine.events import Draft, PutEmbedding
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store

from .records import FrameRecord, MemoryAt, StoredVector, imported_version


@dataclass(frozen=True, slots=True)
class EmbeddedRecord(FrameRecord):
    """A text with metadata, and its vector.

    A record whose frame is current and unchanged, and has no vector in the space, is not known: the
    frame gets the vector by an event.
    """

    vector: StoredVector | None = None

    def is_known(self, memory: MemoryAt) -> bool:
        return FrameRecord.is_known(self, memory) and self._frame_without_vector(memory) is None

    def is_event(self, memory: MemoryAt) -> bool:
        return FrameRecord.is_known(self, memory)

    def draft(self, memory: MemoryAt) -> Draft | None:
        if FrameRecord.is_known(self, memory):
            return None
        # The embedder of the store leaves out frames that have a vector.
        return self.draft_with(memory, None if memory.has_embedder else self.vector)

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        if self.vector is None:
            return
        if FrameRecord.is_known(self, memory):
            target = self._frame_without_vector(memory)
        else:
            # Without an embedder the frame has the vector.
            target = frame if memory.has_embedder else None
        if target is not None:
            embedding, data = self.vector
            body = PutEmbedding(frame=target, embedding=embedding)
            session_of(store).write([Draft(body, memory.scope, attachments=(data,))])

    def _frame_without_vector(self, memory: MemoryAt) -> int | None:
        """Return the current frame of this very text if it has no vector in the space."""
        if self.vector is None:
            return None
        space = self.vector[0].space
        for frame in memory.frames(self.name):
            is_same = imported_version(frame) == self.version and frame.text == self.text
            if (
                frame.closed is None
                and is_same
                and memory.view.embeddings.of(frame.id, space) is None
            ):
                return frame.id
        return None
