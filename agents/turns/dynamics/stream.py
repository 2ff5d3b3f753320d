"""A stream of exchanges: the messages of an agent in a scope, in order of the log.

Owns the pairs of messages and the states of threads and sessions between them, as rows.

- A user's message opens an exchange of its session, the agent's next message closes it. The next
  message of the user closes an exchange without a reply.
- The newest message of a stream waits in a row until the next, since an edit puts a message first
  and supersedes with it afterwards: such a message leaves the stream again. Readers take the
  waiting message as the next event would. A later edit or deletion unlearns nothing.
- Whether a topic is new to a thread and mode group is kept as a bit of 8,192 for a hash of its
  stem, so that a row does not grow; equal bits make a new topic count as an old one.
"""

from collections.abc import Mapping, MutableMapping
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from cerata.projections.columnar.hash_index import hash_bytes64

from ..topics import WINDOW
from .features import (
    RATIO,
    WORDS_OF_USER,
    Before,
    Exchange,
    LineBefore,
    Moments,
    available,
    features_of,
    question_density,
)
from .message import Heard, Message, StreamKey
from .predictor import Predictor, PredictorState, Scored, Sequel

RowKey: TypeAlias = tuple[str | int | bytes, ...]
RowValue: TypeAlias = bytes
"""MessagePack: one value costs a row less than its many fields."""

WAITING: Final = "waiting"
PREDICTOR: Final = "predictor"
SURPRISING: Final = "surprising"
_LINE: Final = "line"
_SESSION: Final = "session"
_BITS: Final = 1 << 13


class _Line(NamedTuple):
    """A thread in a mode group: the topics of its last 12 messages, and a bit for each topic."""

    window: tuple[tuple[str, ...], ...] = ()
    known: bytes = bytes(_BITS // 8)
    before: LineBefore = LineBefore()


class _Session(NamedTuple):
    """A session: its open question with the counts of its topics, and its last exchange."""

    opened: Message | None = None
    new_topics: int = 0
    topics: int = 0
    before: Before = Before()
    sequel: Sequel = Sequel()


_encode: Final = msgspec.msgpack.Encoder().encode
_MESSAGE: Final = msgspec.msgpack.Decoder(Message | None)
_LINE_ROW: Final = msgspec.msgpack.Decoder(_Line)
_SESSION_ROW: Final = msgspec.msgpack.Decoder(_Session)
_LEARNER_ROW: Final = msgspec.msgpack.Decoder(tuple[bytes, PredictorState])


class Stream:
    """The state of a stream, read from rows; `write` writes the changes."""

    def __init__(self, key: StreamKey, rows: Mapping[RowKey, RowValue]) -> None:
        self.key = key
        self._rows = rows
        self._changed: dict[RowKey, _Line | _Session] = {}
        waiting = rows.get((*key, WAITING))
        self._waiting = None if waiting is None else _MESSAGE.decode(waiting)
        self._surprising: list[Scored] = []

    @cached_property
    def _learner(self) -> tuple[Moments, Predictor]:
        """The moments and the predictor, decoded when an exchange ends."""
        row = self._rows.get((*self.key, PREDICTOR))
        if row is None:
            return Moments(), Predictor(PredictorState())
        moments, state = _LEARNER_ROW.decode(row)
        return Moments(moments), Predictor(state)

    @property
    def predictor(self) -> PredictorState:
        """The state of the predictor."""
        return self._learner[1].state

    def take(self, message: Heard) -> list[Scored]:
        """Take the next message, and return the scores of the exchange that ended before it."""
        waiting = self._waiting
        if waiting and message.parent == waiting.parent > 0 and message.start < waiting.end:
            earlier = {*self._topics(waiting.thread, waiting.group), *waiting.topics}
            self._waiting = waiting.continued(message.counted(earlier))
            return []
        scored = self.settle()
        self._waiting = message.counted(self._topics(message.thread, message.group))
        return scored

    def leave_out(self, seq: int) -> None:
        """Leave out the waiting message if it has this seq: it replaces another message."""
        if self._waiting is not None and self._waiting.seq == seq:
            self._waiting = None

    def settle(self) -> list[Scored]:
        """Take over the waiting message, and return the scores of an exchange that it ends."""
        message, self._waiting = self._waiting, None
        if message is None:
            return []
        new_topics = self._note_topics(message)
        key = (*self.key, _SESSION, message.session)
        session = self._session(key)
        scored: list[Scored] = []
        if message.by_agent:
            reply = message
            topics = session.topics + len(message.topics)
            exchange = Exchange(session.opened, reply, session.new_topics + new_topics, topics)
            session = self._end(session, exchange, scored)
        else:
            if session.opened is not None:
                exchange = Exchange(session.opened, None, session.new_topics, session.topics)
                session = self._end(session, exchange, scored)
            session = session._replace(
                opened=message, new_topics=new_topics, topics=len(message.topics)
            )
        self._changed[key] = session
        return scored

    def _end(self, session: _Session, exchange: Exchange, scored: list[Scored]) -> _Session:
        """Score an ended exchange and learn from it."""
        first = exchange.first
        key = (*self.key, _LINE, first.thread, first.group)
        line = self._line(key)
        values, before, line_before = features_of(exchange, session.before, line.before)
        moments, predictor = self._learner
        scores = moments.scores(values)
        moments.add(values)
        score, state = predictor.take(first.seq, scores, available(values), session.sequel)
        scored.append(score)
        if score.is_surprising:
            self._surprising.append(score)
        self._changed[key] = line._replace(before=line_before)
        length, ratio = int(scores[WORDS_OF_USER]), int(scores[RATIO])
        sequel = Sequel(state, length, question_density(exchange), ratio)
        return _Session(before=before, sequel=sequel)

    def _note_topics(self, message: Message) -> int:
        """Add the topics of a message to its thread, and return how many are new there."""
        key = (*self.key, _LINE, message.thread, message.group)
        line = self._line(key)
        known = bytearray(line.known)
        count = 0
        for stem in message.topics:
            place, bit = divmod(hash_bytes64(stem.encode()) % _BITS, 8)
            count += not known[place] >> bit & 1
            known[place] |= 1 << bit
        window = (*line.window, message.topics)[-WINDOW:]
        self._changed[key] = line._replace(window=window, known=bytes(known))
        return count

    def _topics(self, thread: str, group: str) -> set[str]:
        line = self._line((*self.key, _LINE, thread, group))
        return set(chain.from_iterable(line.window))

    def _line(self, key: RowKey) -> _Line:
        line = self._changed.get(key)
        if line is not None:
            return cast("_Line", line)
        row = self._rows.get(key)
        return _Line() if row is None else _LINE_ROW.decode(row)

    def _session(self, key: RowKey) -> _Session:
        session = self._changed.get(key)
        if session is not None:
            return cast("_Session", session)
        row = self._rows.get(key)
        return _Session() if row is None else _SESSION_ROW.decode(row)

    def write(self, rows: MutableMapping[RowKey, RowValue]) -> None:
        """Write the changes into rows."""
        rows[*self.key, WAITING] = _encode(self._waiting)
        if "_learner" in self.__dict__:
            moments, predictor = self._learner
            rows[*self.key, PREDICTOR] = _encode((moments.encoded(), predictor.state))
        for key, value in self._changed.items():
            rows[key] = _encode(value)
        for score in self._surprising:
            rows[*self.key, SURPRISING, score.exchange] = _encode(score.learned)
