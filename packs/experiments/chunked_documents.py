"""The documents of a log under another chunking: their frames, as `remember` would have put them.

Owns which documents can be split again, and their new frames. A new chunk takes its title, role,
dates and metadata from the recorded chunk in which it begins. Leaves out the log that gets the
frames (`replayed_life`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from cerata.engine.events import (
    DeleteFrame,
    Event,
    PutEmbedding,
    PutFrame,
    SupersedeFrame,
)
from cerata.memory.values.arguments import (
    DOCUMENT_KIND,
    SPAN,
    TABLE_HEADER,
    chunk_span,
    content_hash,
    joined_text,
)
from cerata.retrieval.chunking import Chunking, Passage, Stretch, split_passages, split_sections

_UNKNOWN = 0
"""The parent of a new chunk: its document is not written yet."""


@dataclass(frozen=True, slots=True)
class NewParts:
    """The frames of a document under another chunking.

    - ``document`` is the first frame: the whole text, if it has a single passage.
    - ``chunks`` follow it; each ``parent`` is a number without a meaning, to be replaced.
    - ``place_of`` has, for each recorded chunk, the place of the new chunk with most of its text;
      −1 is the document.
    """

    document: PutFrame
    chunks: tuple[PutFrame, ...]
    place_of: dict[int, int]
    has_vectors: bool


@dataclass(slots=True)
class _Recorded:
    """A document as recorded; ``chunks`` has the seq and body of each, by index."""

    body: PutFrame
    chunks: dict[int, tuple[int, PutFrame]] = field(default_factory=dict[int, tuple[int, PutFrame]])
    is_apart: bool = False
    has_vectors: bool = False


class ChunkedDocuments:
    """The documents of a log that another chunking splits at other places.

    - ``new`` has the new frames of each, by the seq of its frame.
    - ``document_of`` has the document of each chunk that is replaced.
    - ``left`` counts the documents that stay as recorded though they have several chunks: a chunk
      is missing, or was changed or closed by itself.
    """

    def __init__(self, events: Iterable[Event], chunking: Chunking) -> None:
        self.new: dict[int, NewParts] = {}
        self.document_of: dict[int, int] = {}
        self.left = 0
        for seq, recorded in _documents(events).items():
            text = _text(recorded)
            if text is None:
                self.left += 1
                continue
            parts = _split(seq, recorded, text, chunking)
            if parts is not None:
                self.new[seq] = parts
                chunks = recorded.chunks.values()
                self.document_of.update((chunk, seq) for chunk, _ in chunks)


def _documents(events: Iterable[Event]) -> dict[int, _Recorded]:
    """Return the documents, and the frames with a URI that could have been split."""
    documents: dict[int, _Recorded] = {}
    of_chunk: dict[int, int] = {}
    for event in events:
        body = event.body
        if isinstance(body, PutFrame):
            if body.chunk_index is not None and body.parent in documents:
                document = documents[body.parent]
                document.is_apart |= body.chunk_index in document.chunks
                document.has_vectors |= bool(body.embeddings)
                document.chunks[body.chunk_index] = event.seq, body
                of_chunk[event.seq] = body.parent
            elif body.chunk_count is not None or _is_single(body):
                documents[event.seq] = _Recorded(body, has_vectors=bool(body.embeddings))
        elif isinstance(body, PutEmbedding):
            document_seq = of_chunk.get(body.frame, body.frame)
            if document_seq in documents:
                documents[document_seq].has_vectors = True
        elif isinstance(body, SupersedeFrame | DeleteFrame):
            ends = (body.frame,) if isinstance(body, DeleteFrame) else (body.old, body.new)
            for seq in ends:
                if seq in of_chunk:
                    documents[of_chunk[seq]].is_apart = True
    return documents


def _is_single(body: PutFrame) -> bool:
    """Return whether a frame looks like a document of one passage: a text with a URI."""
    is_text = bool(body.text) and body.search_text is None
    return is_text and body.uri is not None and body.chunk_index is None


def _text(recorded: _Recorded) -> str | None:
    """Return the whole text of a document; None if it cannot be split again."""
    body = recorded.body
    if body.chunk_count is None:
        return body.text
    ordered = [recorded.chunks[index][1] for index in sorted(recorded.chunks)]
    if recorded.is_apart or len(ordered) != body.chunk_count:
        return None
    text = joined_text(ordered)
    return text if content_hash(text) == body.content_hash else None


def _split(seq: int, recorded: _Recorded, text: str, chunking: Chunking) -> NewParts | None:
    """Return the new frames; None if the passages stay the same."""
    body = recorded.body
    if body.chunk_count is None:
        if len(split_passages(text)) != 1:
            # A call that never splits has put it.
            return None
        chunks = [(seq, body)]
        spans = [(0, len(text))]
        stretches = split_sections(text)
    else:
        chunks = [recorded.chunks[index] for index in sorted(recorded.chunks)]
        spans = [*_spans(part for _, part in chunks)]
        stretches = _stretches(text, [part for _, part in chunks], spans)
    passages = split_passages(text, stretches, chunking=chunking)
    if [(passage.start, passage.end) for passage in passages] == spans:
        return None
    new = [*_chunks(text, passages, [part for _, part in chunks], spans)]
    if len(new) == 1:
        document = replace(
            new[0],
            title=body.title,
            uri=body.uri,
            parent=body.parent,
            chunk_index=None,
            metadata=_plain(new[0].metadata) | body.metadata,
        )
        return NewParts(document, (), dict.fromkeys(_seqs(chunks), -1), recorded.has_vectors)
    document = replace(
        body,
        text="",
        kind=body.kind if body.chunk_count is not None else DOCUMENT_KIND,
        chunk_count=len(new),
        content_hash=content_hash(text),
        embedding=None,
        token_embedding=None,
    )
    ends = [(passage.start, passage.end) for passage in passages]
    places = {chunk: _nearest(span, ends) for (chunk, _), span in zip(chunks, spans, strict=True)}
    places.pop(seq, None)
    return NewParts(document, tuple(new), places, recorded.has_vectors)


def _seqs(chunks: Sequence[tuple[int, PutFrame]]) -> list[int]:
    return [seq for seq, _ in chunks]


def _spans(chunks: Iterable[PutFrame]) -> Iterator[tuple[int, int]]:
    end = 0
    for body in chunks:
        start, end = chunk_span(body, end)
        yield start, end


def _stretches(
    text: str, chunks: Sequence[PutFrame], spans: Sequence[tuple[int, int]]
) -> list[Stretch]:
    """Return the parts of a document that no passage crosses.

    Those of Markdown are found again. In any other format two chunks are of one part if they are
    alike, and the second repeats the end of the first or a table header.
    """
    sections = split_sections(text)
    if [(passage.start, passage.end) for passage in split_passages(text, sections)] == spans:
        return sections
    stretches: list[tuple[int, int]] = []
    for place, (body, (start, end)) in enumerate(zip(chunks, spans, strict=True)):
        joins = place and (start < spans[place - 1][1] or TABLE_HEADER in body.metadata)
        if joins and _likeness(body) == _likeness(chunks[place - 1]):
            stretches[-1] = stretches[-1][0], end
        else:
            stretches.append((start, end))
    return [(start, end, ()) for start, end in stretches]


def _likeness(body: PutFrame) -> PutFrame:
    return PutFrame(
        kind=body.kind,
        role=body.role,
        title=body.title,
        created=body.created,
        metadata=_plain(body.metadata),
    )


def _plain(metadata: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name not in (SPAN, TABLE_HEADER)}


def _chunks(
    text: str,
    passages: Sequence[Passage],
    chunks: Sequence[PutFrame],
    spans: Sequence[tuple[int, int]],
) -> Iterator[PutFrame]:
    for index, passage in enumerate(passages):
        touched = [
            place
            for place, (start, end) in enumerate(spans)
            if start < passage.end and passage.start < end
        ]
        template = chunks[touched[-1] if _begins_last(passage, spans, touched) else touched[0]]
        dates = {date for place in touched for date in chunks[place].content_dates}
        metadata = {**_plain(template.metadata), SPAN: [passage.start, passage.end]}
        start, end = passage.header
        if start < end:
            metadata[TABLE_HEADER] = end - start
        yield replace(
            template,
            text=passage.text_in(text),
            parent=_UNKNOWN,
            chunk_index=index,
            chunk_count=None,
            content_hash=None,
            content_dates=tuple(sorted(dates)),
            metadata=metadata,
            embedding=None,
            token_embedding=None,
        )


def _begins_last(
    passage: Passage, spans: Sequence[tuple[int, int]], touched: Sequence[int]
) -> bool:
    """Return whether a passage begins with the last recorded chunk that it touches.

    Recorded chunks overlap, so the chunk before may touch the passage with its end only.
    """
    return spans[touched[-1]][0] <= passage.start


def _nearest(span: tuple[int, int], passages: Sequence[tuple[int, int]]) -> int:
    """Return the place of the passage with most of a span; the first of equals."""
    shared = [min(span[1], end) - max(span[0], start) for start, end in passages]
    return shared.index(max(shared))
