"""The opt-in projection of Dynamics: how surprising each exchange of an agent is. Experimental.

Owns `Dynamics` and its readings. An unvalidated heuristic. The state follows from the messages in
order of the log alone, in integers, and is equal bit for bit however it is replayed.
"""

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec

from cerata.engine.events import EventBody, PutFrame, Scope, ScopeValue, SupersedeFrame
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.hash_index import hash_bytes64
from cerata.projections.columnar.scopes import read_scope, tenant_of_rows
from cerata.projections.core.projection import FoldedEvent, Parameters
from cerata.projections.rows.row_projection import RowProjection

from ..lexicon import LEXICON, WINDOW
from . import NAME
from .features import (
    FEATURES,
    ONE,
    RATIO,
    WORDS_OF_USER,
    Before,
    Exchange,
    Heard,
    LineBefore,
    Message,
    Moments,
    StreamKey,
    available,
    features_of,
    heard,
    question_density,
)
from .predictor import SCORES, Predictor, PredictorState, Scored, Sequel, scores_of

# --- A stream of exchanges: the messages of an agent in a scope, in order of the log --------------
#
# - A user's message opens an exchange of its session, the agent's next message closes it. The next
#   message of the user closes an exchange without a reply.
# - The newest message of a stream waits in a row until the next, since an edit puts a message first
#   and supersedes with it afterwards: such a message leaves the stream again. Readers take the
#   waiting message as the next event would. A later edit or deletion unlearns nothing.
# - Whether a topic is new to a thread and mode group is kept as a bit of 8,192 for a hash of its
#   stem, so that a row does not grow; equal bits make a new topic count as an old one.


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


# --- The opt-in projection of Dynamics: how surprising each exchange of an agent is. Experimental


_NEWEST: Final = ("", "", "newest")
"""The key, after the tenant, of the tenant's newest message."""


class _Newest(NamedTuple):
    """The newest message of a tenant, and its stream."""

    seq: int
    agent: str
    base: str


@dataclass(frozen=True, slots=True)
class Surprise(PlainValue):
    """How surprising an exchange is: mean squared errors of a prediction of its 64 states.

    - ``exchange`` is the frame of its first message.
    - ``frozen`` is the error of the running mean alone, ``learned`` that of the predictor.
    - ``available`` are the features that the exchange has.
    """

    exchange: int
    frozen: float
    learned: float
    available: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DynamicsState(PlainValue):
    """The predictor of an agent in a scope.

    - ``surprises`` are those of the last 256 exchanges, oldest first.
    - ``loss`` is the mean of ``learned``, in which an older exchange counts 63/64 of the next.
    - ``updates`` counts the exchanges that the predictor learned from, and ``surprising`` are the
      exchanges whose surprise was at least the 90th percentile of up to 256 before; all of them,
      oldest first.
    """

    agent: str
    scope: Mapping[str, ScopeValue]
    surprises: tuple[Surprise, ...]
    loss: float
    updates: int
    surprising: tuple[int, ...]


class Dynamics(RowProjection[RowKey, RowValue]):
    """Predicts the exchanges of each agent: `open(projections=[cerata.Dynamics])` enables it.

    `store.stream.projection(cerata.Dynamics).states("wyatt")` reads it, also at a past basis. Its
    rows begin with the tenant; their form belongs to the version.
    """

    name: ClassVar[str] = NAME
    version: ClassVar[int] = 3
    handles: ClassVar[Collection[type[EventBody] | str]] = (PutFrame, SupersedeFrame)
    tenant_first: ClassVar[bool] = True

    @property
    def parameters(self) -> Parameters:
        return {"lexicon": LEXICON}

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold messages; see `RowProjection.apply`."""
        streams: dict[StreamKey, Stream] = {}
        newest: dict[str | int | bytes, _Newest] = {}
        for event in events:
            body = event.body
            if isinstance(body, SupersedeFrame):
                if event.scope is not None:
                    tenant = tenant_of_rows(event.scope)
                    last = newest.get(tenant) or self._newest(tenant)
                    if last is not None and last.seq == body.new:
                        key = tenant, last.agent, last.base
                        self._stream(key, streams).leave_out(body.new)
                continue
            message = heard(event)
            if message is not None:
                self._stream(message.stream, streams).take(message)
                tenant, agent, base = message.stream
                newest[tenant] = _Newest(event.seq, agent, base)
        for stream in streams.values():
            stream.write(self.rows)
        for tenant, row in newest.items():
            self.rows[tenant, *_NEWEST] = msgspec.msgpack.encode(row)

    def _newest(self, tenant: str | int | bytes) -> "_Newest | None":
        row = self.rows.get((tenant, *_NEWEST))
        return None if row is None else msgspec.msgpack.decode(row, type=_Newest)

    def _stream(self, key: StreamKey, streams: dict[StreamKey, Stream]) -> Stream:
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = Stream(key, self.rows)
        return stream

    # --- readings --------------------------------------------------------------------------------

    def states(self, agent: str) -> list[DynamicsState]:
        """Return the predictors of an agent, one for each scope without session, thread and mode.

        Cost: the rows of the agent, and an exchange of each scope.
        """
        return [self._state(key) for key in self._streams(agent)]

    def surprising(self, agent: str) -> Iterator[tuple[Scope, int]]:
        """Yield the surprising exchanges of an agent by their first frames, each with its scope."""
        for key in self._streams(agent):
            scope = read_scope(key[2])
            for exchange in self._state(key).surprising:
                yield scope, exchange

    def _streams(self, agent: str) -> list[StreamKey]:
        return [
            cast("StreamKey", key[:3])
            for key in self.rows
            if key[1] == agent and key[3] == WAITING and len(key) == 4
        ]

    def _state(self, key: StreamKey) -> DynamicsState:
        stream = Stream(key, self.rows)
        last = stream.settle()
        surprising = [cast("int", row[4]) for row, _ in self.rows.range(prefix=(*key, SURPRISING))]
        surprising += [each.exchange for each in last if each.is_surprising]
        state = stream.predictor
        return DynamicsState(
            key[1],
            dict(read_scope(key[2])),
            tuple(_surprise(*score) for score in scores_of(state.scores)[-SCORES:]),
            state.loss / ONE,
            state.updates,
            tuple(surprising),
        )


def _surprise(exchange: int, frozen: int, learned: int, available: int) -> Surprise:
    names = tuple(name for bit, name in enumerate(FEATURES) if available >> bit & 1)
    return Surprise(exchange, frozen / ONE, learned / ONE, names)
