"""Random histories, and what each should fold to, written with dicts and lists only."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from cerata.engine.events import (
    DEFAULT_SCOPE,
    Attachment,
    DeleteFrame,
    Embedding,
    Erased,
    EventBody,
    Gap,
    PutEmbedding,
    PutFrame,
    Scope,
    SupersedeFrame,
)
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.frames.reader import Frames
from cerata.projections.fulltext.analyzer import beside_spans, stop_spans, terms
from cerata.projections.fulltext.projection import FulltextProjection, searchable
from cerata.projections.fulltext.term_weights import BESIDE, weight_of

ORIGIN = "1970-01-01T00:00:00.020000+00:00"
"""When event 20 was recorded."""

OTHER_SCOPE: Scope = (("tenant", "default"), ("session_id", "s1"))


@dataclass(frozen=True, slots=True)
class Folded:
    """An event as a projection sees it, made without the codec."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody | Erased
    causation: int | None = None


def events_of(bodies: Sequence[EventBody | Erased], kind: str = "putFrame") -> list[Folded]:
    """Return events 1, 2, … with these bodies; an erased one is of ``kind``."""
    return [
        Folded(
            seq=seq,
            type=kind if isinstance(body, Erased) else body.wire_name,
            recorded=1_000 * seq,
            scope=OTHER_SCOPE if seq % 3 == 0 else DEFAULT_SCOPE,
            body=body,
        )
        for seq, body in enumerate(bodies, start=1)
    ]


def fold(
    events: Sequence[Folded], splits: Sequence[int] = ()
) -> tuple[FramesProjection, FulltextProjection]:
    """Fold events in batches that end at ``splits`` and at the end."""
    frames, fulltext = FramesProjection(), FulltextProjection()
    feed(frames, fulltext, events, splits)
    return frames, fulltext


def feed(
    frames: FramesProjection,
    fulltext: FulltextProjection,
    events: Sequence[Folded],
    splits: Sequence[int] = (),
) -> None:
    """Fold the events that come after where the projections stand."""
    for end in [*sorted(split for split in splits if split > frames.seq), len(events)]:
        frames.apply(events[frames.seq : end])
        fulltext.apply(events[fulltext.seq : end])


# Few words, so that they meet; a stop word, an inflected one, and three scripts among them.
WORDS = (
    "index",
    "indexes",
    "decision",
    "memory",
    "the",
    "recall",
    "HNSW",
    "café",
    "東京",
    "ελλάδα",
    "x1",
)

_texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
_ids = st.integers(0, 45)
_times = st.integers(-3, 45).map(lambda seq: 1_000 * seq)
_embeddings = st.sampled_from(("small", "large")).map(
    lambda space: Embedding(space, "f4", 1, Attachment(bytes(32), 4))
)

metadata_values = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from((0.5, -0.0, 2.0, 1e300, -1e300, 2.0**53, 2.0**63))
    # Around the numbers that float64 cannot tell apart.
    | st.sampled_from((2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**64 - 1, -(2**63), -(2**63) + 1))
    | st.sampled_from(("", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefgi", "é", "東京", "𐀀"))
)
stored_values = st.recursive(
    metadata_values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("n", "a")), inner, max_size=2)
    ),
    max_leaves=4,
)
"""What metadata may hold: what compares, and what does not."""

_puts = st.builds(
    PutFrame,
    text=st.none() | _texts,
    search_text=st.none() | _texts,
    title=st.none() | _texts,
    tags=st.lists(st.sampled_from(("decision", "memory")), max_size=2).map(tuple),
    kind=st.sampled_from(("text", "note")),
    role=st.none() | st.sampled_from(("user", "tool")),
    uri=st.none() | st.sampled_from(("file:a", "file:b", "file:///home/ab", "file:///home/abc")),
    labels=st.lists(st.sampled_from(("red", "decision")), max_size=2).map(tuple),
    metadata=st.dictionaries(
        st.sampled_from(("n", "year", "tag", "n.a")), stored_values, max_size=2
    ),
    track=st.none() | st.sampled_from(("main", "side")),
    content_dates=st.lists(_times, max_size=3).map(tuple),
    embedding=st.none() | _embeddings,
    parent=st.none() | _ids,
    chunk_index=st.none() | st.integers(0, 3),
    chunk_count=st.none() | st.integers(1, 3),
    content_hash=st.none() | st.sampled_from((b"a" * 16, b"a" * 8 + b"b" * 8, b"c" * 16)),
    created=st.none() | _times | st.integers(-(1 << 50), 1 << 50),
    expires=st.none() | _times,
)
_bodies = st.one_of(
    _puts,
    _puts,
    _puts,
    st.builds(DeleteFrame, frame=_ids),
    st.builds(SupersedeFrame, old=_ids, new=_ids),
    st.builds(PutEmbedding, frame=_ids, embedding=_embeddings),
    st.just(Gap(reason="lost")),
    st.just(Erased(b"\x00" * 32)),
)

histories = st.lists(_bodies, max_size=40).map(events_of)


def weighed(parts: Sequence[Sequence[str]]) -> list[str]:
    """Return the terms of text, title, tags, role and beside, each as often as its part weighs."""
    times = (1, 2, 2, 2, 1)
    return [term for part, times in zip(parts, times, strict=False) for term in [*part] * times]


def terms_beside(parts: Sequence[str]) -> list[str]:
    """Return the terms beside the words of the parts of a row: each word once, if not accented."""
    spans = [span for part in parts for span in beside_spans(part)]
    accented = [span for span in spans if span.word.startswith(BESIDE)]
    distinct = {span.word: span.term for span in spans if span not in accented}
    return [*distinct.values(), *(span.term for span in accented)]


class Model:
    """The state after some events, the slow way."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[str]] = {}
        self.stops: dict[int, set[str]] = {}
        self.lengths: dict[int, int] = {}
        self.parts: dict[int, list[list[str]]] = {}
        self.in_order: dict[int, list[str]] = {}
        self.texts: dict[int, str] = {}
        self.bodies: dict[int, PutFrame] = {}
        self.closed: dict[int, tuple[int, int | None]] = {}
        self.direct: dict[int, int] = {}
        self.erased: set[int] = set()

    @classmethod
    def of(cls, events: Sequence[Folded]) -> "Model":
        model = cls()
        for event in events:
            model._add(event.seq, event.type, event.body)
        return model

    def _add(self, seq: int, kind: str, body: EventBody | Erased) -> None:
        if kind == "putFrame":
            parts = searchable([body if isinstance(body, PutFrame) else PutFrame()])
            fields = [terms(part) for part in parts[:-1]]
            self.parts[seq] = [*fields, terms_beside(parts)]
            self.tokens[seq] = weighed(self.parts[seq])
            # Stop words have no place, and a row of them alone still counts.
            self.stops[seq] = {span.term for part in parts for span in stop_spans(part)}
            self.lengths[seq] = len(weighed(fields)) or int(
                bool(self.tokens[seq] or self.stops[seq])
            )
            self.in_order[seq] = [term for part in self.parts[seq] for term in part]
            self.texts[seq] = "\n".join(parts)
            self.bodies[seq] = body if isinstance(body, PutFrame) else PutFrame()
            if isinstance(body, Erased):
                self.erased.add(seq)
        elif isinstance(body, DeleteFrame):
            self._close(body.frame, seq, None)
        elif isinstance(body, SupersedeFrame):
            instead = [body.new, *self.successors(body.new)]
            if body.old in self.tokens and body.old not in (*self.closed, *instead):
                self.direct[body.old] = body.new
                self._close(body.old, seq, body.new)

    def _close(self, frame: int, seq: int, by: int | None) -> None:
        if frame not in self.tokens or frame in self.closed:
            return
        # What stands in its place may stand below it; it and what is below it stay.
        instead = [] if by is None else [by, *self.successors(by)]
        below = [frame]
        for one in below:
            self.closed.setdefault(one, (seq, by or None))
            below += [child for child in self.children(one) if child not in instead]

    def successors(self, frame: int) -> list[int]:
        chain: list[int] = []
        by = self.closed.get(frame, (0, None))[1]
        while by is not None:
            assert by not in chain
            chain.append(by)
            by = self.closed.get(by, (0, None))[1]
        return chain

    def predecessors(self, frame: int) -> set[int]:
        found = {old for old, new in self.direct.items() if new == frame}
        return found.union(*map(self.predecessors, found))

    def children(self, frame: int) -> list[int]:
        return [c for c, body in self.bodies.items() if body.parent == frame and frame < c]

    def alive(self) -> list[int]:
        return [frame for frame in self.tokens if self.closing_of(frame) is None]

    def closing_of(self, frame: int) -> tuple[int, int | None] | None:
        """An erased frame is closed: by its parent, which is unknown, unless an event names it."""
        unknown = (frame, None) if frame in self.erased else None
        return self.closed.get(frame, unknown)

    def search(self, wanted: Sequence[str], k: int) -> list[tuple[int, float]]:
        """BM25 by its formula: (frame, score) of the best, equal scores in order of frame."""
        lengths = {frame: self.lengths[frame] for frame in self.alive() if self.lengths[frame]}
        average = sum(lengths.values()) / max(len(lengths), 1)
        counts = {frame: Counter([*self.tokens[frame], *self.stops[frame]]) for frame in lengths}
        scores: dict[int, float] = {}
        for term in set(wanted):
            frequency = sum(term in count for count in counts.values())
            idf = math.log(1 + (len(lengths) - frequency + 0.5) / (frequency + 0.5))
            idf *= weight_of(term)
            for frame, count in counts.items():
                if tf := count[term]:
                    norm = 1.2 * (1 - 0.75 + 0.75 * lengths[frame] / average)
                    scores[frame] = scores.get(frame, 0) + idf * tf * 2.2 / (tf + norm)
        return sorted(scores.items(), key=lambda hit: (-round(hit[1], 6), hit[0]))[:k]


FILTERS = (
    Filter(tags=["decision"], kind="note") | Filter(labels=["red"], track="main"),
    Filter(metadata={"n": (">", 0)}) | Filter(metadata={"year": ("!=", "a")}, role="user"),
    Filter(scope={"session_id": "s1"}, uri_prefix="file:///home") | ~Filter(created=(None, ORIGIN)),
    Filter(content=(ORIGIN, None)),
)

QUERIES = ("index memory", "the recall of HNSW in tokyo 東京", "cafe x1 decision", "京", "of the")


def successors(table: Frames, frame: int, n: int) -> list[int]:
    """Return what had taken a frame's place at n, what took that one's, and so on."""
    found: list[int] = []
    closing = table.closing_of(frame, n)
    while closing is not None and closing.by is not None and closing.by not in found:
        found.append(closing.by)
        closing = table.closing_of(closing.by, n)
    return found


def predecessors(table: Frames, frame: int, n: int) -> set[int]:
    """Return every frame whose place this one had taken at n, directly or not."""
    found = set(table.supersedes_of(frame, n))
    return found.union(*(predecessors(table, one, n) for one in found))


def answers(frames: FramesProjection, fulltext: FulltextProjection, n: int) -> object:
    """Return everything that a state at n says."""
    table = frames.snapshot()
    alive = table.alive(n)
    view = fulltext.snapshot().view(alive)
    ids = table.ids[: table.rows_at(n)].tolist()
    return (
        [view.search(query, k=5).rows.tolist() for query in QUERIES],
        [view.search(query, k=5).scores.tolist() for query in QUERIES],
        alive.tolist(),
        [(table.frame(i), table.closing_of(i, n), table.children(i, n)) for i in ids],
        [(successors(table, i, n), table.supersedes_of(i, n)) for i in ids],
        [table.find_content(b"a" * 16, n), table.find_uri("file:b", n)],
        [table.embedded(n, space).tolist() for space in (None, "small", "none")],
        [table.mask(where, n).tolist() for where in FILTERS],
        [table.timeline(n, by).page(among=alive, limit=9) for by in ("content", "recorded")],
        table.anomalies(n),
    )


def long_history(size: int) -> list[Folded]:
    """Return a history of several digest blocks, from a plain arithmetic generator."""
    bodies: list[EventBody] = []
    for seq in range(1, size + 1):
        draw = seq * 7919 % 101
        if draw < 4:
            bodies.append(DeleteFrame(frame=seq * 31 % size))
        elif draw < 8:
            bodies.append(SupersedeFrame(old=seq * 17 % size, new=seq - 1))
        else:
            words = (f"w{seq * step % (50 + 37 * step)}" for step in range(1, 9))
            bodies.append(PutFrame(text=" ".join(words), uri=f"u{seq % 97}"))
    return events_of(bodies)


def summary() -> str:
    """Return one line for the digests, chunks and answers of a fixed history."""
    events = long_history(6_000)
    frames, fulltext = fold(events, [5, 700])
    parts = (frames.digest(), fulltext.digest(), frames.chunk(0), fulltext.chunk(17))
    data = b"".join(parts) + repr(answers(frames, fulltext, 5_500)).encode()
    return hashlib.sha256(data).hexdigest()
