"""The frames projection: frames, their place in a hierarchy, and their closings.

Owns the effects: *births* (a row per putFrame, whose columns never change), *attributes* (optional
values of frames), *embeddings* (a frame and a space), *closings* (a delete or supersede, and the
descendants closed along) and *anomalies* (events that were skipped). Only this projection
determines which frames are current; other projections hold births and apply its mask. Leaves out
reading (`reader`).

Rules of the fold, which never fails:

- The rule of closings is below.
- A reference to an id that is no earlier putFrame, a payload that was erased or has a later
  version, and a number beyond the range of its column (which counts as absent) are anomalies.
- Event types that are not handled leave no trace, so that a process with more types has the same
  state.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, Literal, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from cerata.engine.events import (
    DeleteFrame,
    Erased,
    EventBody,
    PutEmbedding,
    PutFrame,
    SupersedeFrame,
    UnknownBody,
)
from cerata.engine.integrity import hashes_of
from cerata.engine.salted_hashes import CONTENT_HASH_SIZE, content_hash_of

from ..columnar.columns import U8, U64
from ..columnar.hash_index import halves_of, hash_halves
from ..core.column_fold import ScopedFold
from ..core.event_batch import EventBatch, EventColumns
from ..core.projection import FoldedEvent
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
from .reader import Frames
from .timeline import NO_TIME

_PUT: Final = PutFrame.wire_name
_LATER: Final = frozenset(kind.wire_name for kind in (DeleteFrame, SupersedeFrame, PutEmbedding))

_UNREADABLE: Final = PutFrame()
"""Placeholder for a frame whose payload cannot be read; compared by identity."""

_I32_END: Final = 1 << 31
_I64_END: Final = 1 << 63
"""A signed 64-bit column holds −_I64_END ≤ value < _I64_END; _I32_END likewise."""


class FramesProjection(ScopedFold[FrameColumns]):
    """Folds putFrame, deleteFrame, supersedeFrame and putEmbedding into columns."""

    name: ClassVar[str] = "frames"
    version: ClassVar[int] = 5

    def __init__(self) -> None:
        super().__init__(FrameColumns())

    def snapshot(self) -> Frames:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        return Frames(self._columns, self.seq)

    # --- folding ---------------------------------------------------------------------------------

    def _fold(self, events: EventBatch) -> None:
        births = events.columns(_PUT)
        if births.seqs:
            self._bear(births)
        for event in events.of_types(_LATER):
            if event.type == PutEmbedding.wire_name:
                self._embed(event)
            else:
                self._close(event)
        self._columns.keep_batch()

    def _bear(self, births: EventColumns) -> None:
        """Append births, column by column; about 1.5 us per frame in a batch."""
        columns = self._columns
        seqs = births.seqs
        bodies = [
            body if isinstance(body, PutFrame) else self._unreadable(seq, body)
            for seq, body in zip(seqs, births.bodies, strict=True)
        ]
        first_row = len(columns.seq)
        columns.attributes.add(first_row, seqs, self._without_invalid_times(bodies, seqs))
        self._embed_births(first_row, seqs, bodies)
        kinds = [None if body is _UNREADABLE else body.kind for body in bodies]
        parents = [body.parent for body in bodies]
        content, content_low, flags = _contents(bodies)
        columns.bear(
            seqs,
            births.recorded,
            self._in_range([body.created for body in bodies], _I64_END, NO_TIME, seqs),
            columns.kinds.codes(kinds, seqs),
            columns.roles.codes([body.role for body in bodies], seqs),
            self._scope_codes(births.scopes, seqs),
            [0 if parent is None else _clamped_reference(parent) for parent in parents],
            self._in_range([body.chunk_index for body in bodies], _I32_END, NO_INDEX, seqs),
            self._in_range([body.chunk_count for body in bodies], _I32_END, NO_INDEX, seqs),
            content,
            content_low,
            flags,
        )

    def _embed_births(
        self, first_row: int, seqs: Sequence[int], bodies: Sequence[PutFrame]
    ) -> None:
        spaces = {None if body.embedding is None else body.embedding.space for body in bodies}
        tokens = [body.token_embedding for body in bodies]
        if len(spaces) == 1 and tokens.count(None) == len(bodies):
            [space] = spaces
            if space is not None:
                self._columns.embed_births(first_row, seqs, space)
            return
        embed = self._columns.embed
        count = len(bodies)
        if [body.embedding for body in bodies].count(None) == count and [
            body.token_embedding for body in bodies
        ].count(None) == count:
            return
        for row, (seq, body) in enumerate(zip(seqs, bodies, strict=True), start=first_row):
            if body.embedding is not None:
                embed(row, seq, body.embedding.space)
            if body.token_embedding is not None:
                embed(row, seq, body.token_embedding.space)

    def _unreadable(self, seq: int, body: EventBody | Erased) -> PutFrame:
        self._columns.note(seq, _missing(body))
        return _UNREADABLE

    def _in_range(
        self, values: Sequence[int | None], end: int, missing: int, seqs: Sequence[int]
    ) -> npt.ArrayLike:
        """Return a column of values in [−end, end), with ``missing`` for None and out of range."""
        if values.count(None) == len(values):
            return np.full(len(values), missing)
        column: list[int] = []
        for value, seq in zip(values, seqs, strict=True):
            if value is not None and not -end <= value < end:
                self._columns.note(seq, FrameAnomaly.OUT_OF_RANGE)
                value = None
            column.append(missing if value is None else value)
        return column

    def _without_invalid_times(
        self, bodies: Sequence[PutFrame], seqs: Sequence[int]
    ) -> Sequence[PutFrame]:
        if (
            not any([body.content_dates for body in bodies])  # noqa: C419 - twice as fast
            and [body.expires for body in bodies].count(None) == len(bodies)
        ):
            return bodies
        return [
            self._without_invalid_time(body, seq) for body, seq in zip(bodies, seqs, strict=True)
        ]

    def _without_invalid_time(self, body: PutFrame, seq: int) -> PutFrame:
        dates = tuple(date for date in body.content_dates if -_I64_END <= date < _I64_END)
        expires = body.expires
        if expires is not None and not -_I64_END <= expires < _I64_END:
            expires = None
        if len(dates) == len(body.content_dates) and expires == body.expires:
            return body
        self._columns.note(seq, FrameAnomaly.OUT_OF_RANGE)
        return msgspec.structs.replace(body, content_dates=dates, expires=expires)

    def _embed(self, event: FoldedEvent) -> None:
        columns = self._columns
        body = event.body
        seq = event.seq
        row = columns.row_of(body.frame, before=seq) if isinstance(body, PutEmbedding) else None
        if isinstance(body, PutEmbedding) and row is not None:
            columns.embed(row, seq, body.embedding.space)
        else:
            is_read = isinstance(body, PutEmbedding)
            columns.note(seq, FrameAnomaly.UNKNOWN_REFERENCE if is_read else _missing(body))

    def _close(self, event: FoldedEvent) -> None:
        """Close a frame and its descendants, unless the frame is closed already."""
        columns = self._columns
        body = event.body
        seq = event.seq
        by = 0
        new_row: int | None = None
        kind: StatedKind
        if isinstance(body, DeleteFrame):
            target = body.frame
            kind = ClosingKind.DELETE
        elif isinstance(body, SupersedeFrame):
            target = body.old
            by = _clamped_reference(body.new)
            kind = ClosingKind.SUPERSEDE
            new_row = columns.row_of(by, before=seq)
            if new_row is None:
                columns.note(seq, FrameAnomaly.UNKNOWN_REFERENCE)
        else:
            columns.note(seq, _missing(body))
            return
        row = columns.row_of(target, before=seq)
        if row is None:
            columns.note(seq, FrameAnomaly.UNKNOWN_REFERENCE)
            return
        closed = frames_closed(_FramesBefore(columns, seq), row, kind, new_row)
        if isinstance(closed, FrameAnomaly):
            columns.note(seq, closed)
        else:
            for closed_row, closed_kind in closed:
                columns.close(closed_row, seq, closed_kind, by)


class _FramesBefore:
    """The frames before an event, by row, for the rule of closings."""

    def __init__(self, columns: FrameColumns, seq: int) -> None:
        self._columns = columns
        self.seq = seq
        self._row_count = columns.rows_before(seq)
        self.is_closed = columns.is_closed

    def replacement_of(self, row: int) -> int | None:
        by = self._columns.closed_by(row)
        return None if by is None else self._columns.row_of(by, before=self.seq)

    def children_of(self, row: int) -> Iterator[int]:
        return self._columns.links.children(row, self._row_count)


def _missing(body: EventBody | Erased) -> FrameAnomaly:
    return FrameAnomaly.UNREAD if isinstance(body, UnknownBody) else FrameAnomaly.ERASED


def _contents(bodies: Sequence[PutFrame]) -> tuple[U64, U64, U8]:
    """Return the halves of the hashes of the frames' contents, and the flags of the frames."""
    count = len(bodies)
    flags = np.zeros(count, np.uint8)
    flags[[body is _UNREADABLE for body in bodies]] = FLAG_ERASED
    for flag, column in (
        (FLAG_TEXT, [body.text for body in bodies]),
        (FLAG_BLOB, [body.blob for body in bodies]),
        (FLAG_SEARCH_TEXT, [body.search_text for body in bodies]),
    ):
        if column.count(None) < count:
            flags[[value is not None for value in column]] |= flag
    has_none = [body.content_hash for body in bodies].count(None) == count
    if has_none and not (flags & (FLAG_TEXT | FLAG_BLOB)).any():
        return np.zeros(count, np.uint64), np.zeros(count, np.uint64), flags
    if has_none and bool((flags == FLAG_TEXT).all()) and not _have_chunks(bodies):
        # `content_hash_of`, for a column of texts.
        utf8 = [(body.text or "").encode("utf-8", "surrogatepass") for body in bodies]
        flags |= FLAG_CONTENT_HASH
        return *halves_of(b"".join(hashes_of(utf8, CONTENT_HASH_SIZE))), flags
    hashes = [content_hash_of(body) for body in bodies]
    flags[[hashed is not None for hashed in hashes]] |= FLAG_CONTENT_HASH
    return *hash_halves(hashes), flags


def _have_chunks(bodies: Sequence[PutFrame]) -> bool:
    """Return whether a frame is a chunk, or has chunks."""
    indices = [body.chunk_index for body in bodies]
    counts = [body.chunk_count for body in bodies]
    return indices.count(None) + counts.count(None) < 2 * len(bodies)


def _clamped_reference(seq: int) -> int:
    """Return a seq clamped to 64 bits; a seq beyond names no event in either form."""
    return min(max(seq, -_I64_END), _I64_END - 1)


# --- The rule of closings: the frames that a delete or a supersede closes -------------------------
#
# - The first closing of a frame wins; a later closing is an anomaly, and so is a supersede that
#   would form a cycle of replacements.
# - The frames below a closed frame are closed along with it. The replacement of a frame, and its
#   replacements in turn, stay open with the frames below them.


StatedKind: TypeAlias = Literal[ClosingKind.DELETE, ClosingKind.SUPERSEDE]

_ALONG = {
    ClosingKind.DELETE: ClosingKind.WITH_DELETED,
    ClosingKind.SUPERSEDE: ClosingKind.WITH_SUPERSEDED,
}


class FrameStates(Protocol):
    """The frames before a closing, each by a number that the implementation chooses."""

    def is_closed(self, frame: int, /) -> bool:
        """Return whether a frame is closed."""
        ...

    def replacement_of(self, frame: int, /) -> int | None:
        """Return the frame that replaced a frame, or None if none did."""
        ...

    def children_of(self, frame: int, /) -> Iterable[int]:
        """Return the frames put directly below a frame, in order."""
        ...


def frames_closed(
    frames: FrameStates, target: int, kind: StatedKind, replacement: int | None
) -> list[tuple[int, ClosingKind]] | FrameAnomaly:
    """Return the frames that an event closes, or the anomaly for which it closes none.

    Args:
        frames: The frames before the event.
        target: The frame that the event names.
        kind: How the event closes the target.
        replacement: The frame that replaces the target, or None.
    """
    successors = _successors(frames, replacement)
    if frames.is_closed(target):
        return FrameAnomaly.ALREADY_CLOSED
    if target in successors:
        return FrameAnomaly.CYCLE
    closed: list[tuple[int, ClosingKind]] = [(target, kind)]
    pending = [target]
    while pending:
        for child in frames.children_of(pending.pop()):
            if child not in successors:
                pending.append(child)
                if not frames.is_closed(child):
                    closed.append((child, _ALONG[kind]))
    return closed


def _successors(frames: FrameStates, replacement: int | None) -> set[int]:
    """Return a frame, its replacement, the replacement of that frame, and so on."""
    chain = set[int]()
    while replacement is not None and replacement not in chain:
        chain.add(replacement)
        replacement = frames.replacement_of(replacement)
    return chain
