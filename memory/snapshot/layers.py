"""The layers of a view: the log's and, inside a transaction, that of the pending drafts.

Owns the relations of frames over both layers: existence, closings, parents, chunks and
replacements, and the rows that a read admits. The rows of the joint full text are the rows of both
layers, end to end, the log's first. Leaves out the values that a caller gets (`snapshot`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.arguments import is_unicode
from cerata.engine.errors import NotFound, number_text
from cerata.engine.events import (
    Draft,
    Event,
    PutFrame,
    Scope,
    UnknownBody,
    names_unread,
    once,
)
from cerata.engine.late import late
from cerata.projections.columnar.scopes import admits, is_same
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.columnar.turn_order import TurnOrder, first_versions, turn_order
from cerata.projections.frames.columns import ClosingKind
from cerata.projections.frames.filters import Filter, check_filter
from cerata.projections.fulltext.query import Query

from .layer import Layer, LogLayer

if TYPE_CHECKING:
    from cerata.engine.log import Log
    from cerata.projections.columnar.columns import I64, Mask
    from cerata.projections.frames.reader import Closing, FrameRow
    from cerata.projections.fulltext.bm25 import FulltextView

    from . import basis_columns
    from . import pending as pending_turns
    from .basis_columns import BasisColumns
    from .pending import PendingEvent, PendingEvents
else:
    basis_columns = late("cerata.memory.snapshot.basis_columns")
    pending_turns = late("cerata.memory.snapshot.pending")


_ROWS_TOGETHER: Final = 256
"""Rows whose mask is read at first by a read of the newest frames; later reads double."""

_DELETED = (ClosingKind.DELETE, ClosingKind.WITH_DELETED)


@dataclass(frozen=True)
class Layers:
    """The layers of one view, immutable; the id of a pending frame is negative."""

    log: Log
    base: LogLayer
    present: Callable[[], datetime]
    """Returns "now": the times in words of a filter count from it, and frames expire by it."""
    pending: PendingEvents | None = None

    @once
    def all(self) -> tuple[Layer, ...]:
        """The layers, the log's first."""
        pending = self.pending
        if pending is None:
            return (self.base,)
        return self.base, Layer(pending.folds, pending.count, self.base.reach, sign=-1)

    # --- frames ----------------------------------------------------------------------------------

    def layer_of(self, frame: int) -> Layer | None:
        """Return the layer that has frames with such ids, or None."""
        if frame > 0:
            return self.base
        return None if self.pending is None else self.all[1]

    @property
    def drafts(self) -> Sequence[Draft]:
        """The drafts of an open transaction, as they will be appended."""
        return () if self.pending is None else self.pending.drafts[: self.pending.count]

    def has(self, frame: int) -> bool:
        """Return whether a frame, current or closed, exists within the scope."""
        layer = self.layer_of(frame)
        return layer is not None and layer.row_of(frame) is not None

    def check_has(self, frame: int) -> None:
        """Raise `NotFound` if a frame does not exist within the scope."""
        if self.has(frame):
            return
        remedy = "Find frame ids with search, frames or log."
        if frame <= 0:
            remedy = "Pass the id of a stored frame; ids below 0 belong to an open transaction."
        raise NotFound(
            f"There is no frame {number_text(frame)}",
            where=f"basis {number_text(self.base.n)}",
            remedy=remedy,
        )

    def event(self, frame: int) -> Event | PendingEvent:
        """Return the event that put a frame, or its draft.

        Raises:
            NotFound: no frame with this id exists within the scope.
        """
        if frame <= 0 or self.base.row_of(frame) is None:
            self.check_has(frame)
        if frame < 0 and self.pending is not None:
            return self.pending.event(frame)
        return self.log.event(frame)

    def scope_of(self, frame: int) -> Scope | None:
        """Return the scope of a frame without reading its event; None if the frame was erased.

        Raises:
            NotFound: no frame with this id exists within the scope.
        """
        self.check_has(frame)
        layer = self.layer_of(frame)
        return None if layer is None else layer.frames.scope_of(frame * layer.sign)

    def salts(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the salts of the events, or of the drafts, that created frames and facts."""
        of_log = {number for number in numbers if number > 0 or self.pending is None}
        salts = {event.seq: event.salt for event in self.log.events_at(sorted(of_log))}
        if self.pending is not None:
            for number in numbers:
                if number < 0:
                    salts[number] = self.pending.drafts[-number - 1].salt
        return [*map(salts.__getitem__, numbers)]

    def moment(self, frame: int) -> int:
        """Return the seq of a frame, or of a draft as if no other writer appended first."""
        return frame if frame > 0 else self.base.n - frame

    def closing_of(self, frame: int) -> Closing | None:
        """Return how a frame stopped being current, or None while it is."""
        closed = None if self.pending is None else self.pending.closings.get(frame)
        if closed is None and frame > 0:
            closed = self.base.frames.closing_of(frame, self.base.n)
        return closed

    def supersedes_of(self, frame: int) -> tuple[int, ...]:
        """Return the frames that a frame superseded, in the order of their seqs."""
        frames = self.base.frames.supersedes_of(frame, self.base.n) if frame > 0 else []
        if self.pending is not None:
            frames = sorted([*frames, *self.pending.replaced.get(frame, ())], key=self.moment)
        return tuple(frames)

    def children(self, frame: int) -> list[int]:
        """Return the frames put directly below a frame, in order."""
        stored = self.base.frames.children(frame, self.base.n) if frame > 0 else []
        return stored if self.pending is None else [*stored, *self.pending.below(frame)]

    def chunks(self, document: int) -> dict[int, int]:
        """Return the current chunks by index, or those of a closed document at its closing."""
        closed = self.closing_of(document)
        chunks: dict[int, int] = {}
        for child in self.children(document):
            index, closing = self.chunk_of(child), self.closing_of(child)
            is_there = closed is None or self.moment(child) < closed.seq
            is_part = closing is None or (closed is not None and closing.seq >= closed.seq)
            if index is not None and is_there and is_part:
                chunks.setdefault(index, child)
        return dict(sorted(chunks.items()))

    def parent_of(self, frame: int) -> int | None:
        """Return the frame directly above a frame, or None."""
        if frame > 0:
            return self.base.frames.parent(frame)
        # The fold of the drafts has no frames of the log, so read the draft.
        body = self.event(frame).body
        return body.parent if isinstance(body, PutFrame) else None

    def is_below(self, frame: int, frames: Collection[int]) -> bool:
        """Return whether a frame is below one of several frames, at any depth."""
        above = self.parent_of(frame)
        while above is not None and above not in frames:
            above = self.parent_of(above)
        return above is not None

    def chunk_of(self, frame: int) -> int | None:
        """Return the index of a frame that is a chunk, from 0; None for a whole frame."""
        layer = self.layer_of(frame)
        return None if layer is None else layer.frames.chunk_index(frame * layer.sign)

    def row(self, frame: int) -> FrameRow | None:
        """Return the columns of a frame, or None."""
        layer = self.layer_of(frame)
        return None if layer is None else layer.frames.frame(frame * layer.sign)

    def current(self, find: Callable[[Layer], Sequence[int]]) -> list[int]:
        """Return the current frames within the scope that ``find`` returns for the layers."""
        frames: list[int] = []
        for layer in self.all:
            for seq in find(layer):
                frame = seq * layer.sign
                if layer.row_of(frame) is not None and self.closing_of(frame) is None:
                    frames.append(frame)
        return frames

    def expired_open(self) -> list[int]:
        """Return the open frames within the scope that have expired, without chunks, in order."""
        if self.expired is None:
            return []
        masks = self.whole(both(self.open, self.expired))
        return [*self.newest(masks)][::-1]

    def is_above_unexpired(self, frame: int) -> bool:
        """Return whether an open frame below, of any scope, has not expired; no chunk counts."""
        waiting = [frame]
        while waiting:
            children = self.children(waiting.pop())
            for child in children:
                is_part = self.chunk_of(child) is not None
                if not is_part and self.closing_of(child) is None and not self._has_expired(child):
                    return True
            waiting += children
        return False

    def _has_expired(self, frame: int) -> bool:
        """Return whether a frame of any scope has expired, open or closed."""
        if self.expired is None:
            return False
        layer = self.all[0 if frame > 0 else 1]
        row = layer.frames.row_of(frame * layer.sign)
        return row is not None and bool(self.expired[0 if frame > 0 else 1][row])

    def unexpired(self, frames: Sequence[int]) -> list[int]:
        """Return the frames that have not expired. Cost: a look-up of each."""
        if not any(layer.frames.has_expiry for layer in self.all):
            return list(frames)
        return [frame for frame in frames if not self._is_past(self.row(frame))]

    def _is_past(self, row: FrameRow | None) -> bool:
        return row is not None and row.expires is not None and row.expires <= self.now

    def equal_contents(self, frames: Sequence[int]) -> dict[int, object]:
        """Return a key for each of distinct frames that has the text of another, which shares it.

        Closed frames, and frames without text, equal none. A chunk, which has no hash, equals the
        chunk at its index in a document of equal content that was split alike.

        Cost: a look-up in columns, and more for each candidate of equal content; no text is read.
        """
        ids = np.array(frames, np.int64)
        if self.pending is None:
            ids = self.base.frames.similar_contents(ids)
        if not len(ids):
            return {}
        rows = self.rows_at(ids)
        is_open = end_to_end(self.open)[rows]
        ids, rows = ids[is_open], rows[is_open]
        words = self.ranking.text_lengths[rows].tolist()
        equal: dict[object, list[int]] = {}
        for layer, places, of_layer in self.by_layer(rows):
            hashes = layer.frames.text_hashes(of_layer)
            for place, hashed in zip(places.tolist(), hashes, strict=True):
                frame = ids.item(place)
                key = hashed or self._chunk_key(frame, words[place])
                if key is not None:
                    equal.setdefault(key, []).append(frame)
        return {frame: key for key, each in equal.items() if len(each) > 1 for frame in each}

    def _chunk_key(self, frame: int, words: int) -> object:
        """Return what equal chunks share; None for a frame that is no chunk."""
        index, document = self.chunk_of(frame), self.parent_of(frame)
        layer = None if document is None else self.layer_of(document)
        if index is None or document is None or layer is None:
            return None
        row = layer.row_of(document)
        [hashed] = [None] if row is None else layer.frames.text_hashes(np.array([row]))
        # Another kind or version of a document may be split at other places.
        return None if hashed is None else (hashed, index, words)

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the current frames with a content hash."""
        frames = self.current(lambda layer: layer.frames.find_content(content_hash, layer.n))
        return self.unexpired(frames)

    def copies(self, content_hash: bytes) -> list[int]:
        """Return the frames within the scope with a content hash, current or closed."""
        frames = (
            int(layer.frames.ids[row]) * layer.sign
            for layer in self.all
            for row in layer.frames.content_rows(content_hash, layer.n)
        )
        return [frame for frame in frames if self.has(frame)]

    def find_uri(self, uri: str) -> list[int]:
        """Return the current frames with a URI, chunks included."""
        return self.unexpired(self._open_of_uri(uri))

    def _open_of_uri(self, uri: str) -> list[int]:
        if not is_unicode(uri):
            return []
        return self.current(lambda layer: layer.frames.find_uri(uri, layer.n))

    def whole_of_uri(self, uri: str, scope: Scope) -> list[int]:
        """Return the open frames with a URI and exactly a scope, without chunks, in order.

        Expired frames are open until a sweep.
        """
        rows = ((frame, self.row(frame)) for frame in self._open_of_uri(uri))
        return [
            frame
            for frame, row in rows
            if row is not None and row.chunk_index is None and is_same(row.scope, scope)
        ]

    def ever_of_uri(self, uri: str, scope: Scope) -> list[int]:
        """Return the frames with a URI and exactly a scope, current or closed, without chunks."""
        if not is_unicode(uri):
            return []
        frames = (
            int(layer.frames.ids[row]) * layer.sign
            for layer in self.all
            for row in layer.frames.uri_rows(uri, layer.n)
        )
        rows = ((frame, self.row(frame)) for frame in frames if self.has(frame))
        return [
            frame
            for frame, row in rows
            if row is not None and row.chunk_index is None and is_same(row.scope, scope)
        ]

    def newest_of_uri(self, uri: str) -> int | None:
        """Return the newest current frame with a URI, first of exactly the scope; no chunk."""
        reach = self.base.reach
        scope = None if reach is None else reach.pairs
        frames = [frame for frame in self.find_uri(uri) if self.chunk_of(frame) is None]
        if len(frames) == 1:
            return frames[0]
        rows = [
            (is_same(row.scope, scope), self.moment(frame), frame)
            for frame in frames
            if (row := self.row(frame)) is not None
        ]
        return max(rows)[-1] if rows else None

    def counts(self, where: Filter | None = None) -> tuple[int, int]:
        """Return how many frames are current and how many are not, without chunks."""
        current = total = 0
        passing = [layer.visible for layer in self.all]
        if where is not None:
            passing = [*both(passing, self.passing(where))]
        for layer, active, admitted in zip(self.all, self.active, passing, strict=True):
            counted = admitted & ~layer.is_chunk
            current += int((counted & active).sum())
            total += int(counted.sum())
        return current, total - current

    def created(self, frame: int) -> int:
        """Return a frame's ``created``, else its recorded time, in microseconds since 1970 UTC."""
        row = self.row(frame)
        if row is None:
            return 0
        return row.recorded if row.created is None else row.created

    @cached_property
    def unread(self) -> Mapping[int, Sequence[int]]:
        """Events of later versions by the frames that they put or name; they have no effect."""
        by_frame: dict[int, list[int]] = {}
        for seq in self.base.frames.unread(self.base.n):
            event = self.log.event(seq)
            body = event.body
            if admits(event.scope, self.base.reach) and isinstance(body, UnknownBody):
                for frame in dict.fromkeys((seq, *names_unread(event.header, body))):
                    by_frame.setdefault(frame, []).append(seq)
        return by_frame

    # --- masks -----------------------------------------------------------------------------------

    @cached_property
    def now(self) -> int:
        """The time by which frames have expired, in microseconds since 1970 UTC."""
        return to_microseconds(self.present())

    @once
    def expired(self) -> tuple[Mask, ...] | None:
        """Rows whose frames have expired, open or closed, by layer; None without any."""
        if not self.base.has_expiry and (self.pending is None or not self.all[1].has_expiry):
            return None
        rows = [layer.frames.expired(layer.n, self.now) for layer in self.all]
        if not any(map(len, rows)):
            return None
        masks = tuple(np.zeros(layer.rows, np.bool_) for layer in self.all)
        for mask, expired in zip(masks, rows, strict=True):
            mask[expired] = True
        return masks

    def _unexpired(self, masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
        if self.expired is None:
            return masks
        return both(masks, [~mask for mask in self.expired])

    @cached_property
    def open(self) -> tuple[Mask, ...]:
        """Rows within the scope that no event closed, by layer."""
        if self.pending is None:
            return (self.base.current,)
        return self.opened(include_superseded=False, include_deleted=False)

    @cached_property
    def active(self) -> tuple[Mask, ...]:
        """Rows within the scope that are current: open and not expired, by layer."""
        return self._unexpired(self.open)

    @cached_property
    def ranked(self) -> Mask:
        """Rows whose statistics the ranking uses. No clock: an expired row counts until closed."""
        if self.pending is None:
            return self.base.sought
        return end_to_end(both(self.open, self.memories))

    @cached_property
    def sought(self) -> Mask:
        """Rows of the ranking that a search returns by default."""
        if self.expired is None:
            return self.ranked
        return end_to_end(both(self.active, self.memories))

    def admitted(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
    ) -> tuple[Mask, ...]:
        """Return the rows that a read admits, by layer.

        Raises:
            InvalidInput: ``where`` is not a `Filter`, asks for the times of a question, or includes
                closed frames.
        """
        passing = None if where is None else self.passing(where)
        if include_superseded or include_deleted:
            masks = self._unexpired(
                self.opened(include_superseded=include_superseded, include_deleted=include_deleted)
            )
        else:
            masks = self.active
        return masks if passing is None else both(masks, passing)

    def chosen(self, where: Filter | None) -> tuple[Mask, ...]:
        """Return the rows of a read whose filter may include closed frames, by layer.

        Raises:
            InvalidInput: ``where`` is not a `Filter`, or asks for the times of a question.
        """
        if where is None:
            return self.admitted()
        check_filter(where)
        return self.admitted(
            where.of_frames(),
            include_superseded=where.include_superseded,
            include_deleted=where.include_deleted,
        )

    def passing(self, where: Filter) -> tuple[Mask, ...]:
        """Return the rows that a filter alone admits, by layer."""
        check_filter(where)
        where.check_plain()
        if where.is_relative:
            where = where.resolved(self.present())
        masks: list[Mask] = []
        for layer in self.all:
            masks.append(layer.frames.mask(where, layer.n))
        return (*masks,)

    def opened(self, *, include_superseded: bool, include_deleted: bool) -> tuple[Mask, ...]:
        """Return the rows within the scope that are open, or closed in a way that counts too."""
        masks = tuple(
            layer.open(include_superseded=include_superseded, include_deleted=include_deleted)
            for layer in self.all
        )
        if self.pending is not None:
            closed = np.array(
                [
                    frame
                    for frame, closing in self.pending.closings.items()
                    if not (include_deleted if closing.kind in _DELETED else include_superseded)
                ],
                np.int64,
            )
            for layer, mask in zip(self.all, masks, strict=True):
                mask[layer.rows_of(closed[closed * layer.sign > 0])] = False
        return masks

    def whole(self, masks: Sequence[Mask]) -> tuple[Mask, ...]:
        """Return the rows that are not chunks, by layer."""
        return tuple(mask & ~layer.is_chunk for layer, mask in zip(self.all, masks, strict=True))

    def parts(self, masks: Sequence[Mask]) -> tuple[Mask, ...]:
        """Return the rows that are chunks, by layer."""
        return tuple(mask & layer.is_chunk for layer, mask in zip(self.all, masks, strict=True))

    @cached_property
    def searched(self) -> tuple[Mask, ...]:
        """Rows that a search ranks, also of closed frames, by layer."""
        return tuple(layer.searched for layer in self.all)

    @cached_property
    def memories(self) -> tuple[Mask, ...]:
        """Rows of `searched` that are memories, by layer."""
        return tuple(layer.memories for layer in self.all)

    def newest(self, masks: Sequence[Mask], *, by_first: bool = False) -> Iterator[int]:
        """Yield the frames in rows, newest first; if ``by_first``, by their first versions.

        Cost: the frames yielded; with ``by_first`` also a sort of the later versions in the rows.
        """
        firsts = self._first_versions if by_first else None
        if firsts is not None:
            yield from self._newest_by_first(end_to_end(masks), firsts)
            return
        for layer, mask in zip(reversed(self.all), reversed(masks), strict=True):
            for rows in _descending(mask):
                yield from layer.ids(rows).tolist()

    def _newest_by_first(self, mask: Mask, firsts: I64) -> Iterator[int]:
        """Merge the rows at their own place with the later versions, which have another."""
        is_later = firsts != np.arange(len(firsts))
        later = np.flatnonzero(mask & is_later)
        later = later[np.argsort(firsts[later], kind="stable")[::-1]]
        placed = chain.from_iterable(rows.tolist() for rows in _descending(mask & ~is_later))
        newest = merge(
            placed, later.tolist(), key=lambda row: (firsts.item(row), row), reverse=True
        )
        for row in newest:
            yield from self.ids_at(np.array([row])).tolist()

    # --- full text -------------------------------------------------------------------------------

    @once
    def ranking(self) -> FulltextView:
        """The ranking over the rows of all layers, with the statistics of the current frames."""
        if self.pending is None:
            return self.base.ranking
        return self.pending.folds.fulltext().view(self.ranked, self.turns)

    @once
    def columns(self) -> BasisColumns:
        """The columns of all layers by row of the ranking, kept with the layer of the log."""
        if self.pending is None:
            return self.base.columns
        drafts = self.all[1]
        frames, rows = (self.base.frames, drafts.frames), (self.base.rows, drafts.rows)
        count = len(self.base.frames.role_names)
        return basis_columns.BasisColumns(frames, rows, count, self.ranking, self.turns)

    @once
    def turns(self) -> TurnOrder | None:
        """The order of the current turns over the rows of all layers; None without any."""
        if self.pending is None:
            return self.base.turns
        return turn_order(self._conversations, self.ranked, self._first_versions)

    @cached_property
    def _conversations(self) -> I64:
        """The conversation of each row of an open transaction."""
        assert self.pending is not None
        pending = self.all[1]
        seqs: list[int] = pending.frames.ids[: pending.rows].tolist()
        drafts = (self.pending.drafts[seq - 1] for seq in seqs)
        return pending_turns.conversations_with(self.base, drafts)

    @cached_property
    def _first_versions(self) -> I64 | None:
        """As of the layer of the log, over the rows of all layers."""
        if self.pending is None:
            return self.base.first_versions
        replaced, replacing, erased = self.base.frames.replacements(self.base.n)
        pairs = [(old, new) for new, olds in self.pending.replaced.items() for old in olds]
        if pairs:
            drafted = self.rows_at(np.array(pairs, np.int64).ravel()).reshape(-1, 2)
            replaced = np.concatenate([replaced, drafted[:, 0]])
            replacing = np.concatenate([replacing, drafted[:, 1]])
            erased = np.concatenate([erased, np.zeros(len(drafted), np.bool_)])
        return first_versions(self._conversations, replaced, replacing, erased)

    def places_in_conversation(self, frames: Sequence[int]) -> list[tuple[int, int]]:
        """Return the sort keys of frames in conversations: the first version, then the frame."""
        rows = self.rows_at(np.array(frames, np.int64))
        firsts = self._first_versions
        of_firsts = rows if firsts is None else firsts[rows]
        return [*zip(of_firsts.tolist(), rows.tolist(), strict=True)]

    @cached_property
    def speakers(self) -> tuple[str, ...]:
        """The distinct roles of the frames that the ranking counts, sorted."""
        if self.pending is None:
            return tuple(sorted(self.base.speakers_sought))
        masks = both(self.open, self.memories)
        roles = (layer.speakers(mask) for layer, mask in zip(self.all, masks, strict=True))
        return tuple(sorted(set[str]().union(*roles)))

    def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]:
        """Return the characters [start, end) of a text that match a query, ascending."""
        return [(mark.start, mark.end) for mark in self.ranking.highlights(text, query)]

    def rank_row(self, frame: int) -> int | None:
        """Return the row of the ranking of a frame within the scope, or None."""
        layer = self.layer_of(frame)
        row = None if layer is None else layer.row_of(frame)
        return row if row is None or layer is self.base else row + self.base.rows

    def rows_at(self, ids: I64) -> I64:
        """Return the rows of the ranking of existing frames; the inverse of `ids_at`."""
        stored = ids > 0
        if stored.all():
            return self.base.rows_of(ids)
        rows = np.empty(len(ids), np.int64)
        rows[stored] = self.base.rows_of(ids[stored])
        rows[~stored] = self.all[1].rows_of(ids[~stored]) + self.base.rows
        return rows

    def by_layer(self, rows: I64) -> Iterator[tuple[Layer, I64, I64]]:
        """Yield each layer with the places of its rows among the given ones, and its rows."""
        first = 0
        for layer in self.all:
            places = np.flatnonzero((rows >= first) & (rows < first + layer.rows))
            if len(places):
                yield layer, places, rows[places] - first
            first += layer.rows

    def among(self, frames: Sequence[int], mask: Mask) -> list[int]:
        """Return the frames that a mask over the ranking's rows admits, in the given order."""
        rows = ((frame, self.rank_row(frame)) for frame in frames)
        return [frame for frame, row in rows if row is not None and mask[row]]

    def rank_mask(self, frames: Iterable[int]) -> Mask:
        """Return the rows of the ranking of the frames."""
        mask = np.zeros(sum(layer.rows for layer in self.all), np.bool_)
        mask[[row for frame in frames if (row := self.rank_row(frame)) is not None]] = True
        return mask

    def mask_of(self, where: Filter) -> Mask:
        """Return the rows of the ranking that a filter admits."""
        return end_to_end(self.passing(where))

    def ids_at(self, rows: I64) -> I64:
        """Return the frames in rows of the ranking."""
        if len(self.all) == 1:
            return self.base.ids(rows)
        base, drafts = self.base.rows, self.all[1]
        ids = np.empty(len(rows), np.int64)
        ids[rows < base] = self.base.ids(rows[rows < base])
        ids[rows >= base] = drafts.ids(rows[rows >= base] - base)
        return ids


def _descending(mask: Mask) -> Iterator[I64]:
    """Yield the rows in a mask, last first, in arrays; the first array costs a few rows."""
    end = len(mask)
    size = _ROWS_TOGETHER
    while end:
        start = max(0, end - size)
        yield np.flatnonzero(mask[start:end])[::-1] + start
        end = start
        size *= 2


def end_to_end(masks: Sequence[Mask]) -> Mask:
    """Return the masks of layers as one over all their rows."""
    return masks[0] if len(masks) == 1 else np.concatenate(masks)


def both(first: Sequence[Mask], second: Sequence[Mask]) -> tuple[Mask, ...]:
    """Return the rows that are in both masks of each layer."""
    masks: list[Mask] = []
    for mask, limit in zip(first, second, strict=True):
        masks.append(mask & limit)
    return (*masks,)
