"""Vectors of turns within their conversations: which are missing or out of date, and their windows.

The window of a turn is the turn with the four nearest current turns on each side in its
conversation. A vector of a window depends on the texts of all of its turns, so its event lists them
as ``context``. It is out of date once the window has other turns: after a supersede or a deletion
of one, or after a new turn near the end. Leaves out vectors of a text alone (`cache`), and the
conversations (`cerata.projections.frames.conversations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cerata.engine.events import Attachment, Draft, Embedding, PutEmbedding, PutFrame, Scope
from cerata.engine.integrity import hash_bytes
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.columnar.turn_order import NO_ROW, REACH, TurnOrder
from cerata.retrieval.embedders.embedder import ContextEmbedder, TurnWindow, embed_windows
from cerata.retrieval.embedders.quantization import quantised

from .cache import embedded_text

if TYPE_CHECKING:
    from cerata.engine.events import Erased, EventBody
    from cerata.projections.columnar.columns import I64
    from cerata.projections.frames.filters import Filter

    from ..snapshot.snapshot import Snapshot

TURNS: Final = 4
"""Turns on each side, as in the token window: about 250 tokens of a chat, which MiniLM reads."""
assert TURNS <= REACH


class OutdatedTurn(NamedTuple):
    """A frame with its window, and the frames whose texts are in it beside its own."""

    frame: int
    scope: Scope
    window: TurnWindow
    context: tuple[int, ...]


class WindowVectors:
    """The vectors of windows by one embedder; ``asked`` counts the windows that it got."""

    def __init__(self, embedder: ContextEmbedder) -> None:
        self._embedder = embedder
        self._by_window: dict[TurnWindow, bytes] = {}
        self.space = embedder.identity.space
        self.asked = 0

    def drafts(self, turns: Sequence[OutdatedTurn]) -> list[Draft]:
        """Return the events that add the vectors; a window is embedded once.

        Raises:
            EmbedderFailed: the embedder failed; nothing was written.
        """
        missing = [*dict.fromkeys(turn.window for turn in turns)]
        missing = [window for window in missing if window not in self._by_window]
        if missing:
            matrix = embed_windows(self._embedder, missing)
            is_small = self._embedder.identity.dtype == "i1"
            rows = quantised(matrix) if is_small else matrix.astype("<f4")
            self._by_window.update(
                (window, row.tobytes()) for window, row in zip(missing, rows, strict=True)
            )
            self.asked += len(missing)
        return [self._draft(turn) for turn in turns]

    def _draft(self, turn: OutdatedTurn) -> Draft:
        identity = self._embedder.identity
        data = self._by_window[turn.window]
        attachment = Attachment(hash_bytes(data), len(data))
        embedding = Embedding(identity.space, identity.dtype, identity.dimension, attachment)
        body = PutEmbedding(frame=turn.frame, embedding=embedding, context=turn.context)
        return Draft(body, turn.scope, attachments=(data,))


def outdated_turns(
    snapshot: Snapshot, where: Filter | None, space: str, among: Sequence[int] | None = None
) -> Iterator[OutdatedTurn]:
    """Yield the current turns whose newest vector in a space is not that of their window.

    A turn without another turn in its window needs no vector of a window, unless an earlier one
    depends on turns that are gone.

    Cost: reads the turns of the conversations that changed since their vectors, and their windows.
    """
    layer = snapshot.base
    order = layer.turns
    if order is None:
        return
    [admitted] = snapshot.layers.admitted(where)
    newest = layer.frames.newest_embeddings(layer.n, space)
    rows = admitted & (order.places != NO_ROW) & (newest <= layer.frames.last_changes(layer.n))
    if among is not None:
        chosen = np.zeros_like(rows)
        chosen[layer.rows_of(np.array(among, np.int64))] = True
        rows &= chosen
    reading = _Reading(snapshot, order)
    for row in np.flatnonzero(rows).tolist():
        turn = reading.window(row)
        if turn is not None and turn.context != reading.context_of(int(newest[row])):
            yield turn


class _Reading:
    """Reads windows; each frame of a conversation once, as windows overlap."""

    def __init__(self, snapshot: Snapshot, order: TurnOrder) -> None:
        self._snapshot = snapshot
        self._order = order
        self._ids: I64 = snapshot.base.frames.ids
        self._turns: dict[int, tuple[PutFrame, Scope] | None] = {}

    def window(self, row: int) -> OutdatedTurn | None:
        """Return the window of a row; None if the row has no text to embed."""
        turn = self._turn(row)
        text = None if turn is None else embedded_text(turn[0])
        if turn is None or text is None:
            return None
        place = int(self._order.places[row])
        before = self._beside(range(place - TURNS, place))
        after = self._beside(range(place + 1, place + 1 + TURNS))
        body, scope = turn
        window = TurnWindow((*before.values(),), body.role or "", text, (*after.values(),))
        return OutdatedTurn(int(self._ids[row]), scope, window, (*before, *after))

    def context_of(self, seq: int) -> tuple[int, ...]:
        """Return the context of the vector of an event; empty without one."""
        body = self._snapshot.layers.log.event(seq).body if seq else None
        return body.context if isinstance(body, PutEmbedding) else ()

    def _beside(self, places: range) -> dict[int, str]:
        """Return the texts of the turns in places, by frame.

        A text that will expire is left out: a vector of another frame would keep it.
        """
        texts: dict[int, str] = {}
        for place in places:
            row = int(self._order.rows[place])
            turn = None if row == NO_ROW else self._turn(row)
            text = None if turn is None else embedded_text(turn[0])
            if turn is not None and text is not None and turn[0].expires is None:
                texts[int(self._ids[row])] = f"{turn[0].role}: {text}"
        return texts

    def _turn(self, row: int) -> tuple[PutFrame, Scope] | None:
        if row not in self._turns:
            self._turns[row] = None
            for body, scope in readable([int(self._ids[row])], self._read, frame_place):
                if isinstance(body, PutFrame) and scope is not None:
                    self._turns[row] = body, scope
        return self._turns[row]

    def _read(self, frame: int) -> tuple[EventBody | Erased, Scope | None]:
        event = self._snapshot.layers.event(frame)
        return event.body, event.scope
