"""A recorded life under another chunking: the events of a log again, in a log in memory.

Each batch is appended at its recorded time, with its documents split by the other chunking. So
every point of the recorded log has its counterpart, and a recall can be asked again there. Events
of types that this process does not know, branches and erased events are left out. New chunks get
vectors from the memory's embedder, if the recorded chunks had vectors. No file is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.events import (
    AccessFrames,
    Branch,
    Draft,
    Erased,
    Event,
    EventBody,
    Evidence,
    PutEmbedding,
    PutFrame,
    PutTag,
    RecallContext,
    UnknownBody,
)
from cerata.engine.open import MEMORY_PATH, open_log
from cerata.engine.salted_hashes import NOT_COMPARABLE
from cerata.engine.unreadable import whole_events
from cerata.memory.batch.session import WriteSession
from cerata.memory.embeddings.cache import TextVectors, makers_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.moved_references import attachments_in, moved_body
from cerata.retrieval.chunking import Chunking

from .chunked_documents import ChunkedDocuments, NewParts

_BATCH_EVENTS = 4_000
"""Events of a batch at most: a document may have more chunks than a batch may have events."""

_BATCH_BYTES = 16 << 20

Progress = Callable[[str, int, int], None]
"""Called with the name of a pass, its finished steps, and all of them."""


class _RecordedClock(SystemClock):
    """A clock that stands at the recorded time of a batch."""

    def __init__(self) -> None:
        self.time_us = 0

    def now_us(self) -> int:
        return self.time_us


@dataclass(slots=True)
class _Batch:
    """The drafts of a batch that is not written yet.

    - ``names`` are the recorded seqs that a reference −k to a draft stands for.
    """

    first_seq: int = 0
    drafts: list[Draft] = field(default_factory=list[Draft])
    names: list[int] = field(default_factory=list[int])
    size: int = 0


class ReplayedLife:
    """A log in memory with the events of a snapshot's log, its documents chunked again.

    - ``snapshot`` is its newest state, within the reach of the recorded snapshot.
    - ``split`` counts the documents whose chunks differ, ``left`` the documents that could not be
      split again, and ``without_vectors`` the new chunks without a vector though the old had one.
    """

    def __init__(
        self, recorded: Snapshot, chunking: Chunking, progress: Progress | None = None
    ) -> None:
        log, _, reach = recorded.source
        self._recorded = log
        documents = ChunkedDocuments(
            whole_events(log, 1, recorded.basis, "The copy of the log"), chunking
        )
        self._documents = documents
        self.split, self.left, self.without_vectors = len(documents.new), documents.left, 0
        self._clock = _RecordedClock()
        environment = Environment(clock=self._clock)
        self._log = open_log(MEMORY_PATH, environment=environment)
        # The newest state has it: the event that names the embedder follows the first vectors.
        embedder = recorded.embedder
        self._source = recorded
        self._vectors = [] if embedder is None else [*map(TextVectors, makers_of(embedder))]
        self._batch = _Batch()
        self._written = 0
        self._heads = [0]
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}
        for event in whole_events(log, 1, recorded.basis, "The copy of the log"):
            if event.header.first_seq != self._batch.first_seq:
                self._flush()
                self._batch.first_seq = event.header.first_seq
                self._clock.time_us = event.recorded
            self._take(event)
            self._heads.append(self._written + len(self._batch.drafts))
            if progress is not None and event.seq == event.header.last_seq:
                progress("chunking again", event.seq, recorded.basis)
        self._flush()
        session = WriteSession(self._log, reach, embedder=recorded.embedders.passed)
        self.snapshot = session.snapshot_at(self._written)

    def close(self) -> None:
        """Release the memory of the log."""
        self._log.close()

    def asked(self, recall: RecallContext) -> RecallContext:
        """Return a recorded recall as a question to this log."""
        return replace(recall, basis=self._heads[recall.basis])

    def recorded_id(self, number: int) -> int:
        """Return the recorded id of a frame or fact of this log, for a new chunk the document's."""
        return self._old[number]

    # --- events ----------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        body = event.body
        documents = self._documents
        if isinstance(body, Erased | Branch | UnknownBody) or event.seq in documents.document_of:
            return
        if isinstance(body, PutEmbedding) and self._is_split(body.frame):
            return
        parts = documents.new.get(event.seq)
        if parts is not None:
            self._put_document(event, parts)
            return
        try:
            draft = self._draft(event, self._moved(body))
        except KeyError:
            # It names an event that is left out.
            return
        self._add(draft, event.seq, [event.seq])

    def _is_split(self, frame: int) -> bool:
        return frame in self._documents.document_of or frame in self._documents.new

    def _moved(self, body: EventBody) -> EventBody:
        """Return a body with the references of this log. Raises KeyError for a missing one."""
        if isinstance(body, PutTag):
            return replace(body, at=self._heads[body.at])
        new = moved_body(body, self._new.__getitem__)
        if isinstance(body, RecallContext) and isinstance(new, RecallContext):
            return replace(
                new,
                basis=self._heads[body.basis],
                frames=tuple(dict.fromkeys(new.frames)),
                omitted=tuple(dict.fromkeys(new.omitted)),
                reranked=(),
                reranked_scores=None,
                context=NOT_COMPARABLE,
            )
        if isinstance(new, AccessFrames):
            return replace(new, frames=tuple(dict.fromkeys(new.frames)))
        if "evidence" in new.references:
            return self._with_evidence(body, new)
        return new

    def _with_evidence(self, body: EventBody, new: EventBody) -> EventBody:
        """Return a fact whose ranges in frames that were split again are left out."""
        before, after = (getattr(each, "evidence", ()) for each in (body, new))
        return replace(
            new,
            evidence=tuple(
                replace(item, start=None, end=None, quote=None)
                if isinstance(item, Evidence) and self._is_split(_frame(old))
                else item
                for old, item in zip(before, after, strict=True)
            ),
        )

    def _draft(self, event: Event, body: EventBody) -> Draft:
        assert event.scope is not None
        cause = event.causation
        return Draft(
            body,
            event.scope,
            event.actor,
            event.correlation,
            None if cause is None else self._new.get(cause),
            tuple(self._recorded.attachment(event.seq, each) for each in attachments_in(body)),
            reason=event.reason,
        )

    def _put_document(self, event: Event, parts: NewParts) -> None:
        """Put a document with its new chunks in place of the recorded document."""
        drafts = [self._draft(event, moved_body(parts.document, self._new.__getitem__))]
        drafts += [self._draft(event, body) for body in parts.chunks]
        chunks_at: dict[int, list[int]] = {}
        for chunk, place in parts.place_of.items():
            chunks_at.setdefault(place, []).append(chunk)
        for place, draft in enumerate(self._embedded(drafts, parts), start=-1):
            if place >= 0:
                body = moved_body(draft.body, lambda _: self._new[event.seq])
                draft = replace(draft, body=body)
            names = chunks_at.get(place, [])
            self._add(draft, event.seq, [event.seq, *names] if place < 0 else names)

    def _embedded(self, drafts: Sequence[Draft], parts: NewParts) -> Sequence[Draft]:
        if not parts.has_vectors:
            return drafts
        embedded = drafts
        for cache in self._vectors:
            embedded = cache.of_drafts(embedded, self._source)
        self.without_vectors += sum(
            isinstance(draft.body, PutFrame) and bool(draft.body.text) and not draft.body.embeddings
            for draft in embedded
        )
        return embedded

    # --- batches ---------------------------------------------------------------------------------

    def _add(self, draft: Draft, old: int, names: Sequence[int]) -> None:
        """Add a draft; ``old`` is its recorded id, ``names`` the seqs of its references."""
        batch = self._batch
        batch.drafts.append(draft)
        batch.names += names
        self._old[self._written + len(batch.drafts)] = old
        self._new.update(dict.fromkeys(names, -len(batch.drafts)))
        batch.size += sum(map(len, draft.attachments)) + len(getattr(draft.body, "text", "") or "")
        if len(batch.drafts) >= _BATCH_EVENTS or batch.size > _BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write the open batch; its references become seqs."""
        batch = self._batch
        if not batch.drafts:
            return
        appended = self._log.append(batch.drafts)
        assert appended.first_seq == self._written + 1, "the log of a life has one writer"
        self._written = appended.last_seq
        for seq in batch.names:
            self._new[seq] = appended.first_seq - self._new[seq] - 1
        self._batch = _Batch(batch.first_seq)


def _frame(item: object) -> int:
    if isinstance(item, Evidence):
        return item.frame
    assert isinstance(item, int)
    return item
