"""The fold of messages: a row for each message of a session of an agent.

Owns the choice of frames, and the values of each row. A message is a text frame of the kind
"message" with a track, which names its agent, and a session: the ``session_id`` of its scope, else
``session`` in its metadata. Other frames have no effect. Thread and mode are those of the scope;
without one they are "main" and "chat". A row never changes: a closed message keeps its row, and
readers leave it out.

A row depends on rows before it in two ways: a topic of the window before it counts at its first
mention, and a chunk that overlaps the chunk before it continues that message.
"""

from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, Final, NamedTuple, cast

import numpy as np

from cerata.engine.events import PutFrame, Scope
from cerata.projections.columnar.hash_index import hashes64
from cerata.projections.core.column_fold import ScopedFold
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.core.projection import Parameters
from cerata.projections.fulltext.analyzer import words

from .columns import WORDS_MAX, MessageColumns, Row, packed_signs
from .lexicon import LEXICON, WINDOW, Lexicon, english_lexicon, topics_of
from .line import SESSION_DIMENSION, line_of, mode_of
from .reader import Messages

MESSAGE_KIND: Final = "message"
"""The kind of the frames of messages."""

ASSISTANT: Final = "assistant"
"""The role of the agent; every other role counts as the user's."""

MESSAGE_EVENTS: Final = frozenset((PutFrame.wire_name,))
"""The wire names of the handled events."""

_BITS: Final = 64
_SESSION: Final = "session"
_SPAN: Final = "span"


class MessagesProjection(ScopedFold[MessageColumns]):
    """Folds messages into columns."""

    name: ClassVar[str] = "messages"
    version: ClassVar[int] = 3
    drafted: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        super().__init__(MessageColumns())
        self._messages: Messages | None = None
        self._windows: dict[int, deque[list[str]]] = {}
        """The topics of the last rows of each line that a step met."""

    @property
    def parameters(self) -> Parameters:
        return {"lexicon": LEXICON}

    @property
    def lexicon(self) -> Lexicon:
        """The signs and patterns that rows count."""
        return english_lexicon()

    def snapshot(self) -> Messages:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._messages is None or self._messages.seq != self.seq:
            self._messages = Messages(self._columns, self.seq)
        return self._messages

    def load(self, *chunks: bytes) -> None:
        self._windows.clear()
        super().load(*chunks)

    def _fold(self, events: EventBatch) -> None:
        if not events.has_types(MESSAGE_EVENTS):
            return
        columns = events.columns(PutFrame.wire_name)
        step = _Step(self._columns.last_row())
        # Nearly all frames of most stores are no messages: their kind alone is read.
        for place, body in enumerate(columns.bodies):
            if not isinstance(body, PutFrame) or body.kind != MESSAGE_KIND:
                continue
            scope = columns.scopes[place]
            if scope is None or not body.text or body.track is None:
                continue
            session = session_of(scope, body)
            if session is not None:
                seq = columns.seqs[place]
                causation = events[seq - events.first_seq].causation
                answers = causation if causation is not None and 0 < causation < seq else 0
                event = _Message(seq, columns.recorded[place], scope, body, session, answers)
                self._add(step, event)
        step.keep(self._columns)

    def _add(self, step: "_Step", event: "_Message") -> None:
        columns = self._columns
        seq, body, scope = event.seq, event.body, event.scope
        agent = body.track or ""
        line = columns.lines.code(line_of(agent, scope).text, seq)
        folded = words(body.text or "")
        window = self._window(line)
        stems = topics_of(folded, set(chain.from_iterable(window)))
        window.append(stems)
        is_users = body.role != ASSISTANT
        counts = self.lexicon.counts(body.text or "", folded, is_users=is_users)
        start, end = span_of(body)
        row = Row(
            seq,
            event.recorded if body.created is None else body.created,
            self._scope_code(scope, seq),
            columns.names.code(agent, seq),
            columns.names.code(event.session, seq),
            columns.names.code(mode_of(scope), seq),
            line,
            int(not is_users),
            int(step.continues(body.parent, start)),
            body.parent if end and body.parent else 0,
            end,
            event.answers,
            min(len(folded), WORDS_MAX),
            *packed_signs(counts.signs),
            counts.patterns,
            0,
        )
        step.add(row, folded, [columns.stems.code(stem, seq) for stem in stems])

    def _window(self, line: int) -> deque[list[str]]:
        """Return the topics of the last messages of a line."""
        window = self._windows.get(line)
        if window is None:
            columns = self._columns
            rows = columns.by_line.find(columns.line.view(), line)[-WINDOW:]
            earlier = columns.topics_of(np.array(rows, np.int64))
            window = self._windows[line] = deque(earlier, WINDOW)
        return window


class _Message(NamedTuple):
    """A message to be folded."""

    seq: int
    recorded: int
    scope: Scope
    body: PutFrame
    session: str
    answers: int


class _Step:
    """The rows of a step, before they are appended to the columns."""

    def __init__(self, last: Row | None) -> None:
        self._last = last
        self._rows: list[Row] = []
        self._folded: list[Sequence[bytes]] = []
        self._topics: list[tuple[int, int]] = []

    def continues(self, parent: int | None, start: int) -> bool:
        """Return whether a chunk overlaps that of the last row, in the same document."""
        last = self._last
        return bool(last and parent and last.parent == parent and start < last.end)

    def add(self, row: Row, folded: Sequence[bytes], stems: Sequence[int]) -> None:
        self._last = row
        self._rows.append(row)
        self._folded.append(folded)
        self._topics += [(row.seq, stem) for stem in stems]

    def keep(self, columns: MessageColumns) -> None:
        """Append the rows to the columns."""
        if self._rows:
            rows = zip(self._rows, simhashes(self._folded), strict=True)
            columns.rows.append([row._replace(simhash=simhash) for row, simhash in rows])
            columns.topics.append(self._topics)


def simhashes(texts: Sequence[Sequence[bytes]]) -> list[int]:
    """Return a 64-bit hash of each text, of which few bits differ between texts of alike words.

    Each word votes for the bits of its hash (M. Charikar, Similarity estimation techniques from
    rounding algorithms, STOC 2002); a bit is set if more than half of the words set it.
    """
    places: dict[bytes, int] = {}
    words_of = np.array([places.setdefault(word, len(places)) for text in texts for word in text])
    sizes = np.array([len(text) for text in texts])
    votes = np.zeros((len(texts), _BITS), np.bool_)
    spoken = np.flatnonzero(sizes)
    if len(spoken):
        hashes = hashes64([*places]).astype("<u8").view(np.uint8).reshape(-1, 8)
        bits = np.unpackbits(hashes, axis=1, bitorder="little")[words_of]
        starts = np.cumsum(sizes)[spoken] - sizes[spoken]
        votes[spoken] = 2 * np.add.reduceat(bits, starts, dtype=np.int64) > sizes[spoken][:, None]
    simhashed: list[int] = np.packbits(votes, axis=1, bitorder="little").view("<u8")[:, 0].tolist()
    return simhashed


def session_of(scope: Scope, body: PutFrame) -> str | None:
    """Return the session of a message, or None."""
    for name, value in scope:
        if name == SESSION_DIMENSION:
            return str(value)
    session: object = body.metadata.get(_SESSION)
    is_name = isinstance(session, str | int) and not isinstance(session, bool)
    return str(session) if is_name else None


def span_of(body: PutFrame) -> tuple[int, int]:
    """Return the characters of a chunk in its document, or zeros."""
    span = body.metadata.get(_SPAN)
    if body.chunk_index is None or not isinstance(span, list):
        return 0, 0
    places = cast("list[object]", span)
    match places:
        case [int(start), int(end)] if 0 <= start < end < 1 << 63:
            return start, end
        case _:
            return 0, 0
