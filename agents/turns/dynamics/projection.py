"""The opt-in projection of Dynamics: how surprising each exchange of an agent is. Experimental.

Owns `Dynamics` and its readings. An unvalidated heuristic. The state follows from the messages in
order of the log alone, in integers, and is equal bit for bit however it is replayed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, cast

import msgspec

from cerata.engine.events import EventBody, PutFrame, Scope, ScopeValue, SupersedeFrame
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.scopes import read_scope, tenant_of_rows
from cerata.projections.core.projection import FoldedEvent, Parameters
from cerata.projections.rows.row_projection import RowProjection

from ..lexicon import LEXICON
from . import NAME
from .features import FEATURES, ONE
from .message import StreamKey, heard
from .predictor import SCORES, scores_of
from .stream import SURPRISING, WAITING, RowKey, RowValue, Stream

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
