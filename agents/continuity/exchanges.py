"""Messages and exchanges of an agent, as of a basis.

Owns their order and their pairs. Leaves out how they are written (`recorder`).

- A new version of a message has the place of the first. A closed message does not count.
- A chunk that overlaps the chunk before it, in the same document, continues that message.
- An exchange is a message and the reply whose causation names it. Otherwise, in order within a
  session, a user's message opens an exchange, and the agent's next message closes it. A message
  without the other half is an exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.frame_conversion import FrameText
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.arguments import SPAN
from cerata.projections.columnar.columns import I64
from cerata.projections.columnar.times import to_datetime

from ..turns.line import Line, line_of
from ..turns.reader import MessagesAt
from ..turns.reads import messages_at

USER = "user"
ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message(PlainValue):
    """A message: ``id`` is the frame that holds it, ``role`` "user" or "assistant"."""

    id: int
    role: str
    text: str
    created: datetime
    session: str


@dataclass(frozen=True, slots=True)
class Exchange(PlainValue):
    """A user's message and the agent's reply; either may be missing.

    ``id`` is that of the first of the two.
    """

    question: Message | None
    reply: Message | None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, in order."""
        return tuple(filter(None, (self.question, self.reply)))

    @property
    def id(self) -> int:
        """The id of the first message."""
        return self.messages[0].id

    @property
    def session(self) -> str:
        """The session of the exchange."""
        return self.messages[0].session

    @property
    def created(self) -> datetime:
        """The time of the first message."""
        return self.messages[0].created


class Pair(NamedTuple):
    """An exchange by the rows of its two messages; each is empty if the message is missing.

    A message that chunks continue has several rows.
    """

    question: tuple[int, ...]
    reply: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of both messages, in order."""
        return self.question + self.reply


class Talk:
    """The current messages of an agent in a snapshot, narrowed to a thread and a mode group."""

    def __init__(
        self,
        snapshot: Snapshot,
        agent: str,
        *,
        thread: str | None = None,
        group: str | None = None,
        session: str | None = None,
        line: Line | None = None,
    ) -> None:
        """Read the messages of an agent; None is any thread, mode group, session or line.

        A transaction's drafts are no messages yet.
        """
        self.snapshot = snapshot.log_only
        self.agent = agent
        self.messages: MessagesAt = messages_at(self.snapshot)
        rows = self.messages.rows_of(agent, thread=thread, group=group)
        if line is not None:
            code = self.messages.columns.lines.find(line.text) or 0
            rows = rows[self.messages.columns.line.view()[rows] == code]
        if session is not None:
            code = self.messages.columns.names.find(session) or 0
            rows = rows[self.messages.columns.session.view()[rows] == code]
        self.rows, self.firsts = self._current(rows)
        """The rows of the messages in their order, and the frames of their first versions."""
        self._texts: Mapping[int, FrameText] = {}

    def _current(self, rows: I64) -> tuple[I64, I64]:
        layer = self.snapshot.base
        [active] = self.snapshot.layers.active
        frames = layer.rows_of(self.messages.columns.seq.view()[rows])
        is_active = active[frames]
        rows, frames = rows[is_active], frames[is_active]
        firsts = layer.first_versions
        if firsts is None:
            return rows, self.messages.columns.seq.view()[rows]
        origin = firsts[frames]
        order = np.argsort(origin, kind="stable")
        return rows[order], layer.ids(origin[order])

    def __len__(self) -> int:
        return len(self.rows)

    def before(self, seq: int) -> Talk:
        """Return the messages whose first version is older than an event."""
        return self.at(np.flatnonzero(self.firsts < seq))

    def newest(self, count: int) -> Talk:
        """Return the newest messages alone, without a cut through a message of several chunks."""
        first = max(0, len(self.rows) - count)
        continues = self.messages.columns.continues.view()
        while first and continues[self.rows[first]]:
            first -= 1
        return self.at(np.arange(first, len(self.rows)))

    def at(self, places: I64) -> Talk:
        """Return the messages of ascending places alone."""
        talk = copy(self)
        talk.__dict__.pop("_origins", None)
        talk.rows, talk.firsts = self.rows[places], self.firsts[places]
        return talk

    @cached_property
    def _origins(self) -> dict[int, int]:
        return dict(zip(self.rows.tolist(), self.firsts.tolist(), strict=True))

    def origin(self, row: int) -> int:
        """Return the frame of the first version of a message's row; edits keep it."""
        return self._origins[row]

    def grouped(self) -> list[tuple[int, ...]]:
        """Return the rows of each message, in order; several for a message in chunks."""
        continues = self.messages.columns.continues.view()[self.rows].tolist()
        groups: list[list[int]] = []
        for row, is_continued in zip(self.rows.tolist(), continues, strict=True):
            if is_continued and groups:
                groups[-1].append(row)
            else:
                groups.append([row])
        return [tuple(group) for group in groups]

    # --- exchanges -------------------------------------------------------------------------------

    def pairs(self) -> list[Pair]:
        """Return the exchanges, in order of their first messages."""
        if self._alternate():
            rows = self.rows.tolist()
            return [
                Pair((question,), (reply,))
                for question, reply in zip(rows[::2], rows[1::2], strict=True)
            ]
        columns = self.messages.columns
        rows = self.rows.tolist()
        sessions = columns.session.view()[self.rows].tolist()
        by_agent = columns.by_agent.view()[self.rows].tolist()
        continues = columns.continues.view()[self.rows].tolist()
        answers = columns.answers.view()[self.rows].tolist()
        pairs: list[list[list[int]]] = []
        opened: dict[int, int] = {}
        """The exchange of each session that waits for a reply."""
        questions: dict[int, int] = {}
        """The exchange of each question, by the seq of any of its versions."""
        last: list[int] | None = None
        firsts = self.firsts.tolist()
        seqs = columns.seq.view()[self.rows].tolist()
        for place, row in enumerate(rows):
            if continues[place] and last is not None:
                last.append(row)
                continue
            last = [row]
            session = sessions[place]
            if not by_agent[place]:
                opened[session] = len(pairs)
                questions[seqs[place]] = questions[firsts[place]] = len(pairs)
                pairs.append([last, []])
                continue
            number = questions.get(answers[place])
            if number is None or pairs[number][1]:
                number = opened.get(session)
            if number is None or pairs[number][1]:
                pairs.append([[], last])
                continue
            pairs[number][1] = last
            if opened.get(session) == number:
                del opened[session]
        return [Pair(tuple(question), tuple(reply)) for question, reply in pairs]

    def _alternate(self) -> bool:
        """Return whether each second message answers the message before it: the usual case."""
        columns = self.messages.columns
        by_agent = columns.by_agent.view()[self.rows]
        answers = columns.answers.view()[self.rows[1::2]].astype(np.int64)
        seqs = columns.seq.view()[self.rows[::2]]
        return (
            len(self.rows) % 2 == 0
            and not by_agent[::2].any()
            and bool(by_agent[1::2].all())
            and not columns.continues.view()[self.rows].any()
            and bool(((answers == seqs) | (answers == self.firsts[::2])).all())
        )

    def exchange(self, pair: Pair) -> Exchange:
        """Return an exchange with its texts. Cost: a read for each row."""
        question = self.message(pair.question) if pair.question else None
        return Exchange(question, self.message(pair.reply) if pair.reply else None)

    def exchanges(self, pairs: Sequence[Pair]) -> list[Exchange]:
        """Return exchanges with their texts, which are read together."""
        self.read_texts([row for pair in pairs for row in pair.rows])

        def place(pair: Pair) -> str:
            columns = self.messages.columns
            return f"Exchange of message {columns.seq.item(pair.rows[0]):,}"

        return [*readable(pairs, self.exchange, place)]

    def read_texts(self, rows: Sequence[int]) -> None:
        """Read the texts of rows together, for `message`; one that is damaged is left to it."""
        self._texts = self.snapshot.texts_at(map(self.messages.columns.seq.item, rows))

    def texts(self, messages: Iterable[Sequence[int]]) -> Iterator[Message]:
        """Yield messages with their texts, each by its rows, without those that are unreadable."""
        seqs = self.messages.columns.seq
        return readable(messages, self.message, lambda rows: frame_place(seqs.item(rows[0])))

    def message(self, rows: Sequence[int]) -> Message:
        """Return the message of one row, or of the rows that continue each other."""
        columns = self.messages.columns
        first = rows[0]
        number = columns.seq.item(first)
        texts = self._texts
        frames = [
            texts.get(frame) or self.snapshot.text_at(frame)
            for frame in map(columns.seq.item, rows)
        ]
        return Message(
            id=number,
            role=ASSISTANT if columns.by_agent.item(first) else USER,
            text=joined_text(frames),
            created=to_datetime(columns.created.item(first)),
            session=columns.names.text(columns.session.item(first)) or "",
        )


def frames_of_exchange(snapshot: Snapshot, agent: str, first: int) -> tuple[int, ...]:
    """Return the current frames of the exchange that starts with a message, by its first version.

    The exchange must be in the snapshot.
    """
    scope = snapshot.layers.scope_of(first)
    assert scope is not None
    talk = Talk(snapshot, agent, line=line_of(agent, scope))
    columns = talk.messages.columns
    sessions, seqs = columns.session.view()[talk.rows], columns.seq
    code = columns.session.item(int(np.searchsorted(seqs.view(), first)))
    session = talk.at(np.flatnonzero(sessions == code))
    pair = next(pair for pair in session.pairs() if session.origin(pair.rows[0]) == first)
    return tuple(seqs.item(row) for row in pair.rows)


def joined_text(chunks: Sequence[FrameText]) -> str:
    """Return the text of chunks that overlap, each character once."""
    text = chunks[0].text
    for before, chunk in pairwise(chunks):
        end, start = _span(before)[1], _span(chunk)[0]
        text += chunk.text[max(0, end - start) :]
    # The lines between turns belong to no message.
    return text.rstrip("\n") if chunks[0].body.chunk_index is not None else text


def _span(chunk: FrameText) -> tuple[int, int]:
    span = chunk.body.metadata.get(SPAN)
    bounds = cast("list[object]", span) if isinstance(span, list) else []
    if len(bounds) == 2:
        start, end = bounds
        if isinstance(start, int) and isinstance(end, int):
            return start, end
    return 0, 0
