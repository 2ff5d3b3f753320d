"""Frames as of any event: the reader over the columns that `projection` folds.

Owns queries for the frames that exist, or are current, at seq n. Methods take n, at most the
snapshot's ``seq``; the answer equals that of a store that stopped at n.

A mask over the rows at n selects the frames that a read admits. Masks combine with ``&``::

    among = frames.alive(n) & frames.mask(Filter(tags=["decision"]), n)
    page = frames.timeline(n).page(among=among)
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from cerata.engine.events import Scope
from cerata.engine.integrity import hash_bytes

from ..columnar.columns import I64, U32, Mask, concatenate, distinct, rows_up_to, views
from ..columnar.hash_index import hash_halves
from ..columnar.names import Names
from ..columnar.scopes import Reach, read_scope
from ..columnar.turn_order import NO_CONVERSATION
from ..columnar.typed_values import ValueType, key_time, time_key
from . import attributes
from .columns import (
    FLAG_BLOB,
    FLAG_CONTENT_HASH,
    FLAG_ERASED,
    FLAG_SEARCH_TEXT,
    FLAG_TEXT,
    NO_INDEX,
    ClosingKind,
    FrameAnomaly,
    FrameColumns,
)
from .conversations import Name, Turns
from .filter_masks import FilterMasks
from .filters import Filter
from .timeline import NO_TIME, Timeline, TimelineOrder
from .value_counts import TypedValue, field_counts

_HASHED_TEXT: Final = FLAG_TEXT | FLAG_CONTENT_HASH

_NO_TEXT: Final = tuple(int(half[0]) for half in hash_halves([hash_bytes(b"")]))

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""Spreads small numbers over 64 bits: 2**64 divided by the golden ratio."""


class Closing(msgspec.Struct, frozen=True):
    """How and when a frame was closed; ``by`` is the replacement frame, if any.

    - ``seq`` is the frame itself if the event is unknown: the payload was erased, and with it the
      parent along with which the frame was closed.
    """

    seq: int
    kind: ClosingKind
    by: int | None

    @property
    def superseded_by(self) -> int | None:
        """The replacement frame, or None for a deletion."""
        return self.by


class FrameRow(msgspec.Struct, frozen=True):
    """The part of a frame that the columns store; the rest is in the event."""

    frame: int
    recorded: int
    created: int | None
    kind: str | None
    role: str | None
    scope: Scope | None
    parent: int | None
    chunk_index: int | None
    chunk_count: int | None
    uri: str | None
    title: str | None
    track: str | None
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    content_dates: tuple[int, ...]
    expires: int | None
    has_text: bool
    has_blob: bool
    has_search_text: bool


class Frames:
    """Reads frames at any n up to ``seq``. Immutable, for any thread, also during a fold.

    - Rows are in order of frame id; a mask or column over "rows at n" has `rows_at(n)` items.
    """

    def __init__(self, columns: FrameColumns, seq: int) -> None:
        self.seq = seq
        self._columns = columns
        self._attributes = columns.attributes.view()
        self.ids: I64
        self.ids, self._recorded, self._created = views(
            columns.seq, columns.recorded, columns.created
        )
        self._closing_seq, self._closing_row, self._closing_kind, self._closing_by = views(
            columns.closings.seq, columns.closing_row, columns.closing_kind, columns.closing_by
        )
        self._anomaly_seq, self._anomaly_kind = views(columns.anomalies.seq, columns.anomaly_kind)
        self._embedding_seq, self._embedding_row, self._embedding_space = views(
            columns.embeddings.seq, columns.embedding_row, columns.embedding_space
        )

    # --- rows ------------------------------------------------------------------------------------

    def rows_at(self, n: int) -> int:
        """Return the count of frames put by event n."""
        return rows_up_to(self.ids, n)

    def touched(self, after: int, through: int) -> list[int]:
        """Return the frames that the events after one, through another, put or closed."""
        put = self.ids[self.rows_at(after) : self.rows_at(through)]
        start, end = (rows_up_to(self._closing_seq, n) for n in (after, through))
        closed = self.ids[self._closing_row[start:end]]
        frames: list[int] = np.union1d(put, closed).tolist()
        return frames

    def retired(self, horizon: int, kept: Sequence[int]) -> I64:
        """Return the rows of frames that an event or an earlier one closed, and no point needs.

        Rows of which the payload was erased are left out. Ascending.

        Args:
            horizon: The event.
            kept: The seqs of the points; a frame that was current at one of them is needed.
        """
        end = rows_up_to(self._closing_seq, horizon)
        rows = self._closing_row[:end].astype(np.int64)
        closed = self._closing_seq[:end]
        is_retired = self._columns.flags.view()[rows] & FLAG_ERASED == 0
        for point in kept:
            is_retired &= (self.ids[rows] > point) | (closed <= point)
        return np.sort(rows[is_retired])

    def payloads_of(self, rows: I64) -> I64:
        """Return the events that hold the contents and the vectors of frames; ascending.

        Args:
            rows: The rows of the frames; ascending.
        """
        own = self._embedding_row.astype(np.int64)
        at = np.minimum(rows.searchsorted(own), max(len(rows) - 1, 0))
        embedded = self._embedding_seq[rows[at] == own] if len(rows) else self._embedding_seq[:0]
        events: I64 = np.union1d(self.ids[rows], embedded)
        return events

    def scope_codes(self, rows: I64) -> U32:
        """Return the codes of the scopes of rows."""
        return self._columns.scope.view()[rows]

    def scope_of_code(self, code: int) -> Scope | None:
        """Return the scope with a code that `scope_codes` returned; None if it is unknown."""
        text = self._columns.scopes.text(code)
        return None if text is None else read_scope(text)

    def row_of(self, frame: int) -> int | None:
        """Return the row of a frame, or None; a row below `rows_at(n)` exists at n."""
        ids = self.ids
        row = int(ids.searchsorted(frame))
        return row if row < len(ids) and ids.item(row) == frame else None

    def alive(
        self, n: int, *, include_superseded: bool = False, include_deleted: bool = False
    ) -> Mask:
        """Return a mask over the rows at n of current frames; about 0.1 ms per 100,000.

        ``include_superseded`` and ``include_deleted`` admit frames closed so, with descendants.
        """
        alive = np.ones(self.rows_at(n), np.bool_)
        end = rows_up_to(self._closing_seq, n)
        rows = self._closing_row[:end]
        kinds = self._closing_kind[:end]
        if include_superseded or include_deleted:
            deleted = (kinds == ClosingKind.DELETE) | (kinds == ClosingKind.WITH_DELETED)
            rows = rows[(~deleted & (not include_superseded)) | (deleted & (not include_deleted))]
        alive[rows] = False
        if not (include_superseded and include_deleted):
            alive[self._closed_with_parent(n)] = False
        return alive

    def _is_erased(self, row: int) -> bool:
        """Return whether a payload was erased; that of a later version is no erased one."""
        is_missing = self._columns.flags.item(row) & FLAG_ERASED > 0
        return is_missing and int(self.ids[row]) not in self.unread(self.seq)

    def _closed_with_parent(self, n: int) -> I64:
        """Return the rows at n without a payload whose parent closed them; ascending.

        Only closed frames are erased. A delete or a supersede names its frame; the frames below it
        are closed by their parent, which they lose with the payload.
        """
        rows = np.flatnonzero(self._columns.flags.view()[: self.rows_at(n)] & FLAG_ERASED)
        if len(rows):
            closed = self._closing_row[: rows_up_to(self._closing_seq, n)]
            rows = rows[~np.isin(rows, closed)]
            rows = rows[~np.isin(self.ids[rows], self.unread(n))]
        return rows

    def chunk_index(self, frame: int) -> int | None:
        """Return the chunk index of a frame, or None for no chunk; reads a single column."""
        row = self.row_of(frame)
        return None if row is None else _optional(self._columns.chunk_index.item(row), NO_INDEX)

    def parent(self, frame: int) -> int | None:
        """Return the parent of a frame, or None; reads a single column."""
        row = self.row_of(frame)
        return None if row is None else _optional(self._columns.parent.item(row), 0)

    def scope_of(self, frame: int) -> Scope | None:
        """Return the scope of a frame, or None if it is unknown; reads a single column."""
        row = self.row_of(frame)
        columns = self._columns
        scope = None if row is None else columns.scopes.text(columns.scope.item(row))
        return None if scope is None else read_scope(scope)

    def frame(self, frame: int) -> FrameRow | None:
        """Return the stored columns of a frame, or None if no such frame exists."""
        row = self.row_of(frame)
        if row is None:
            return None
        columns = self._columns
        flags = columns.flags.item(row)
        scope = columns.scopes.text(columns.scope.item(row))
        strings: dict[str, list[str]] = {}
        dates: list[int] = []
        expires: int | None = None
        for field, kind, key in self._attributes.of_row(row):
            if field == attributes.DATE:
                dates.append(key_time(key))
            elif field == attributes.EXPIRES:
                expires = key_time(key)
            elif kind is ValueType.STRING:
                strings.setdefault(field, []).append(self._attributes.strings.text(key))
        uri, title, track = (
            next(iter(strings.get(field, ())), None)
            for field in (attributes.URI, attributes.TITLE, attributes.TRACK)
        )
        return FrameRow(
            frame=frame,
            recorded=columns.recorded.item(row),
            created=_optional(columns.created.item(row), NO_TIME),
            kind=columns.kinds.text(columns.kind.item(row)),
            role=columns.roles.text(columns.role.item(row)),
            scope=None if scope is None else read_scope(scope),
            parent=_optional(columns.parent.item(row), 0),
            chunk_index=_optional(columns.chunk_index.item(row), NO_INDEX),
            chunk_count=_optional(columns.chunk_count.item(row), NO_INDEX),
            uri=uri,
            title=title,
            track=track,
            tags=tuple(strings.get(attributes.TAG, ())),
            labels=tuple(strings.get(attributes.LABEL, ())),
            content_dates=tuple(dates),
            expires=expires,
            has_text=bool(flags & FLAG_TEXT),
            has_blob=bool(flags & FLAG_BLOB),
            has_search_text=bool(flags & FLAG_SEARCH_TEXT),
        )

    def anomalies(self, n: int) -> Mapping[FrameAnomaly, int]:
        """Return the count of each anomaly at n."""
        kinds: list[int] = self._anomaly_kind[: rows_up_to(self._anomaly_seq, n)].tolist()
        return {FrameAnomaly(kind): count for kind, count in sorted(Counter(kinds).items())}

    def unread(self, n: int) -> list[int]:
        """Return the events up to n whose body this process could not decode, in order."""
        if not len(self._anomaly_seq):
            return []
        end = rows_up_to(self._anomaly_seq, n)
        seqs: list[int] = self._anomaly_seq[:end][
            self._anomaly_kind[:end] == FrameAnomaly.UNREAD
        ].tolist()
        return seqs

    def roles(self, mask: Mask) -> set[str]:
        """Return the distinct roles of the rows in a mask over the first rows."""
        columns = self._columns
        is_there = np.zeros(len(columns.roles) + 1, np.bool_)
        is_there[columns.role.view()[: len(mask)][mask]] = True
        texts = (columns.roles.text(code) for code in np.flatnonzero(is_there).tolist())
        return {text for text in texts if text is not None}

    @property
    def role_codes(self) -> U32:
        """The code of each row's role in `role_names`, `NO_NAME` without one; also later rows."""
        return self._columns.role.view()

    @property
    def role_names(self) -> Names:
        """All roles, also those that only a later event has."""
        return self._columns.roles

    @property
    def has_uris(self) -> bool:
        """True if a frame has a URI, also one that only a later event puts."""
        return self._attributes.has(attributes.URI)

    def times_at(self, rows: I64) -> tuple[I64, I64]:
        """Return the recorded, created and content times of rows, and the place of each time's row.

        Times are in microseconds since 1970 UTC.
        """
        recorded = self._recorded[rows]
        created = self._created[rows]
        stated = np.flatnonzero(created != NO_TIME)
        dates, places = self._attributes.times_of(rows, attributes.DATE)
        times = (recorded, created[stated], dates)
        return np.concatenate(times), np.concatenate([np.arange(len(rows)), stated, places])

    def uri_codes(self, rows: I64) -> tuple[I64, I64]:
        """Return the codes of the URIs of rows, and the place of each code's row."""
        return self._attributes.codes_of(rows, attributes.URI)

    def uri(self, code: int) -> str:
        """Return the URI of a code of `uri_codes`."""
        return self._attributes.strings.text(code)

    # --- conversations ---------------------------------------------------------------------------

    def conversations(self, n: int) -> I64:
        """Return the code of each frame's conversation at n, or `NO_CONVERSATION`; (rows,)."""
        count = len(self.ids)
        columns = self._columns
        turns = Turns(
            columns.role.view()[:count],
            columns.parent.view()[:count],
            columns.scope.view()[:count],
        )
        codes = columns.conversations.codes(turns, self._attributes, columns.scope_parts)
        return codes[: self.rows_at(n)]

    def last_changes(self, n: int) -> I64:
        """Return the last event up to n that put or closed a turn of each row's conversation.

        For a row that is no turn the result has no meaning; (rows,) int64.
        """
        codes = self.conversations(n)
        changes = np.zeros(int(codes.max(initial=NO_CONVERSATION)) + 2, np.int64)
        np.maximum.at(changes, codes, self.ids[: len(codes)])
        end = rows_up_to(self._closing_seq, n)
        np.maximum.at(changes, codes[self._closing_row[:end]], self._closing_seq[:end])
        return changes[codes]

    def conversation(self, name: Name) -> int | None:
        """Return the code of a conversation, or None if `conversations` never returned it."""
        columns = self._columns
        return columns.conversations.code(name, self._attributes.strings, columns.scopes)

    # --- closings and children -------------------------------------------------------------------

    def closing_of(self, frame: int, n: int) -> Closing | None:
        """Return the closing of a frame by n, or None for a frame that is open or unknown."""
        row = self.row_of(frame)
        return None if row is None else self._closing_at(row, n)

    def _closing_at(self, row: int, n: int) -> Closing | None:
        closing = self._columns.closed_at.buffer.item(row)
        # An index beyond this snapshot's closings belongs to a later event.
        if closing >= len(self._closing_seq) or int(self._closing_seq[closing]) > n:
            is_missing = self._columns.flags.buffer.item(row) & FLAG_ERASED > 0
            if not is_missing or not self._is_erased(row):
                return None
            return Closing(self.ids.item(row), ClosingKind.WITH_DELETED, None)
        by = int(self._closing_by[closing])
        return Closing(
            seq=int(self._closing_seq[closing]),
            kind=ClosingKind(int(self._closing_kind[closing])),
            by=by or None,
        )

    def supersedes_of(self, frame: int, n: int) -> list[int]:
        """Return the frames that a frame had superseded by n, ascending; O(log² closings)."""
        end = rows_up_to(self._closing_seq, n) if len(self._closing_seq) else 0
        if not end:
            return []
        closings = self._columns.replaced_index.find(self._closing_by[:end].view(np.uint64), frame)
        direct = [at for at in closings if self._closing_kind[at] == ClosingKind.SUPERSEDE]
        return sorted(int(self.ids[self._closing_row[at]]) for at in direct)

    def replacements(self, n: int) -> tuple[I64, I64, Mask]:
        """Return the rows superseded by n, the rows that superseded them, and which are erased.

        (supersedes,) each; the mask is of the superseded rows. Cost: about 0.1 us a supersede.
        """
        end = rows_up_to(self._closing_seq, n)
        stated = self._closing_kind[:end] == ClosingKind.SUPERSEDE
        replaced = self._closing_row[:end][stated].astype(np.int64)
        frames = self._closing_by[:end][stated]
        ids = self.ids[: self.rows_at(n)]
        replacing = np.searchsorted(ids, frames).astype(np.int64)
        are_known = replacing < len(ids)
        are_known[are_known] = ids[replacing[are_known]] == frames[are_known]
        replaced = replaced[are_known]
        erased = self._columns.flags.view()[replaced] & FLAG_ERASED > 0
        return replaced, replacing[are_known], erased

    def children(self, frame: int, n: int) -> list[int]:
        """Return the children of a frame by n, open or closed, in order."""
        row = self.row_of(frame)
        limit = self.rows_at(n)
        if row is None or row >= limit:
            return []
        return [int(self.ids[child]) for child in self._columns.links.children(row, limit)]

    # --- lookups ---------------------------------------------------------------------------------

    def text_hashes(self, rows: I64) -> list[tuple[int, int] | None]:
        """Return the halves of the hash of each row's text; None without a text or its hash."""
        columns = self._columns
        has_hash = columns.flags.view()[rows] & _HASHED_TEXT == _HASHED_TEXT
        first = columns.content.view()[rows].tolist()
        second = columns.content_low.view()[rows].tolist()
        return [
            halves if is_hashed and halves != _NO_TEXT else None
            for is_hashed, halves in zip(
                has_hash.tolist(), zip(first, second, strict=True), strict=True
            )
        ]

    def similar_contents(self, frames: I64) -> I64:
        """Return those of distinct frames that may have the content of another, in order.

        Chunks are similar at the same index in documents of similar content.
        """
        columns = self._columns
        rows = self.ids.searchsorted(frames)
        content = columns.content.view()
        numbers = content[rows]
        listed = numbers.tolist()
        if len({*listed}) == len(listed):
            return frames[:0]
        parts = np.flatnonzero(numbers == 0)
        if len(parts):
            # Only a whole frame has a hash.
            wholes = self.ids.searchsorted(columns.parent.view()[rows[parts]])
            indexes = columns.chunk_index.view()[rows[parts]].astype(np.uint64)
            numbers[parts] = content[wholes.clip(max=len(self.ids) - 1)] + _MIX * indexes
        _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return frames[counts[places] > 1]

    def find_content(self, content_hash: bytes, n: int) -> list[int]:
        """Return the frames current at n whose content hash starts with these 16 bytes."""
        return [
            int(self.ids[row])
            for row in self.content_rows(content_hash, n)
            if self._closing_at(row, n) is None
        ]

    def content_rows(self, content_hash: bytes, n: int) -> list[int]:
        """Return the rows at n of frames with this content hash, open or closed, in order."""
        high, low = (int(half[0]) for half in hash_halves([content_hash]))
        columns = self._columns
        rows = columns.content_index.find(columns.content.view()[: self.rows_at(n)], high)
        return [
            row
            for row in rows
            if columns.content_low.item(row) == low and columns.flags.item(row) & FLAG_CONTENT_HASH
        ]

    def find_uri(self, uri: str, n: int) -> list[int]:
        """Return the frames current at n with this URI, in order."""
        frames: list[int] = []
        for row in self.uri_rows(uri, n):
            if self._closing_at(row, n) is None:
                frames.append(self.ids.item(row))
        return frames

    def uri_rows(self, uri: str, n: int) -> list[int]:
        """Return the rows at n of frames with this URI, open or closed, in order."""
        code = self._attributes.strings.find(uri)
        if code is None:
            return []
        limit = self.rows_at(n)
        rows: set[int] = set()
        for posting in self._attributes.find(attributes.URI, ValueType.STRING, code, code):
            rows.update(posting.rows[posting.rows < limit].tolist())
        return sorted(rows)

    # --- masks and order -------------------------------------------------------------------------

    def mask(self, where: Filter, n: int) -> Mask:
        """Return a mask over the rows at n of frames that match a filter, open or closed."""
        count = self.rows_at(n)
        return FilterMasks(self._columns, self._attributes, count).mask(where.expression)

    @property
    def has_expiry(self) -> bool:
        """True if any frame of the log may expire."""
        return self._attributes.has(attributes.EXPIRES)

    def expired(self, n: int, now: int) -> U32:
        """Return the rows at n of frames that expired by a time, open or closed, in no order.

        Cost: a bisection of the frames with an expiry; a look-up of a name without any.
        """
        kind = ValueType.TIME
        postings = self._attributes.find(attributes.EXPIRES, kind, high=time_key(now))
        if not postings:
            return np.empty(0, np.uint32)
        rows = concatenate([posting.rows for posting in postings], np.uint32)
        # Postings may include later rows.
        return rows[rows < self.rows_at(n)]

    def counts(self, field: str, mask: Mask) -> Counter[TypedValue]:
        """Return how many rows of a mask have each value of a field; see `field_counts`."""
        return field_counts(self._columns, self._attributes, field, mask)

    def admitted(self, reach: Reach, n: int) -> Mask:
        """Return a mask over the rows at n of frames that a reach admits, open or closed."""
        passes = self._columns.admitted_scopes.mask(reach)
        return passes[self._columns.scope.view()[: self.rows_at(n)]]

    def admits_row(self, reach: Reach, row: int) -> bool:
        """Return whether a reach admits the frame of a row."""
        columns = self._columns
        return columns.scope.item(row) in columns.admitted_scopes.codes(reach)

    def embedded(self, n: int, space: str | None = None) -> Mask:
        """Return a mask over the rows at n of frames with an embedding, in a space or any."""
        mask = np.zeros(self.rows_at(n), np.bool_)
        end = rows_up_to(self._embedding_seq, n)
        rows = self._embedding_row[:end]
        spaces = self._embedding_space[:end]
        if space is not None:
            code = self._columns.spaces.find(space) or 0
            rows = rows[spaces == code]
        mask[rows] = True
        return mask

    def newest_embeddings(self, n: int, space: str) -> I64:
        """Return the newest event up to n that gave each row an embedding in a space, or 0."""
        end = rows_up_to(self._embedding_seq, n)
        chosen = self._embedding_space[:end] == (self._columns.spaces.find(space) or 0)
        newest = np.zeros(self.rows_at(n), np.int64)
        np.maximum.at(newest, self._embedding_row[:end][chosen], self._embedding_seq[:end][chosen])
        return newest

    def embeddings_of(self, frame: int, space: str, n: int) -> list[int]:
        """Return the events up to n that gave a frame an embedding in a space, in order.

        Cost: a pass over the embeddings.
        """
        row = self.row_of(frame)
        code = self._columns.spaces.find(space) or 0
        end = rows_up_to(self._embedding_seq, n)
        if row is None:
            return []
        matches = (self._embedding_row[:end] == row) & (self._embedding_space[:end] == code)
        seqs: list[int] = self._embedding_seq[:end][matches].tolist()
        return seqs

    def embedding_events(self, frame: int, n: int) -> list[int]:
        """Return the events up to n that gave a frame an embedding in any space, in order.

        Cost: a pass over the embeddings.
        """
        row = self.row_of(frame)
        end = rows_up_to(self._embedding_seq, n)
        if row is None:
            return []
        seqs: list[int] = self._embedding_seq[:end][self._embedding_row[:end] == row].tolist()
        return list(dict.fromkeys(seqs))

    def first_embedding(
        self, space: str, sees: Callable[[Scope], bool] | None = None
    ) -> int | None:
        """Return the first event that gave a frame an embedding in a space, or None.

        ``sees`` returns whether a frame with a scope counts; default all frames.
        """
        code = self._columns.spaces.find(space) or 0
        indices = np.flatnonzero(self._embedding_space == code)
        if sees is not None:
            scopes = self._columns.scope.view()[self._embedding_row[indices]]
            texts = {scope: self._columns.scopes.text(scope) for scope in distinct(scopes).tolist()}
            visible = [scope for scope, text in texts.items() if sees(read_scope(text or "[]"))]
            indices = indices[np.isin(scopes, visible)]
        return int(self._embedding_seq[indices[0]]) if len(indices) else None

    def timeline(self, n: int, by: TimelineOrder = "content") -> Timeline:
        """Return the frames at n in order of their content times, or of their recording."""
        ids = self.ids[: self.rows_at(n)]
        index = self._columns.timeline
        if by == "recorded":
            # Times of recording ascend with the rows: each batch is recorded after the last.
            return Timeline(ids, [(self._recorded[: len(ids)], index.rows(len(ids)))])
        pieces = index.content(self._created, self._recorded, self._attributes)
        return Timeline(ids, pieces)

    def chunk_mask(self, n: int) -> Mask:
        """Return a mask over the rows at n of document chunks, and of erased parts of frames."""
        mask = np.asarray(self._columns.chunk_index.view()[: self.rows_at(n)] != NO_INDEX)
        mask[self._closed_with_parent(n)] = True
        return mask


def _optional(value: int, missing: int) -> int | None:
    return None if value == missing else value
