"""The fold that knows frames: what was put, under what, and when it stopped being current.

Owns the effects: *births* (a row per putFrame, its columns never change), *closings* (a delete or
supersede, and the chunks that went with it) and *oddities* (what could not be followed). Only
this projection knows life and death; others hold births and take a mask from here. Reading is
`frame_table`'s.

Rules of the fold, which never fails: the first closing of a frame wins, a later one is passed
over; a reference to what is not an earlier putFrame, and a payload that was erased, count as
oddities. Kinds of events that are not handled leave no trace, so that a process that knows more
kinds has the same state.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from cerata.engine.events import DeleteFrame, PutFrame, Scope, SupersedeFrame

from .columns import AnyColumn, decode_columns, encode_columns
from .frame_columns import (
    FLAG_BLOB,
    FLAG_CONTENT_HASH,
    FLAG_EMBEDDING,
    FLAG_ERASED,
    FLAG_TEXT,
    FLAG_URI,
    NO_INDEX,
    NO_TIME,
    BirthRow,
    ClosingKind,
    FrameColumns,
    Oddity,
)
from .frame_table import Frames
from .hash_index import hash_halves, uri_halves
from .projection import (
    BlockDigests,
    FoldedEvent,
    Parameters,
    check_follows,
    check_head,
    check_range,
    chunk_head,
    salt_of,
)

_HANDLED: Final = frozenset((PutFrame.wire_name, DeleteFrame.wire_name, SupersedeFrame.wire_name))


class FramesProjection:
    """Folds putFrame, deleteFrame and supersedeFrame into columns."""

    name: ClassVar[str] = "frames"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        self._seq = 0
        self._columns = FrameColumns()
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))
        # The last scope seen and its code: neighbours mostly share one object.
        self._last_scope: tuple[Scope, int] = ((), 0)

    @property
    def parameters(self) -> Parameters:
        return {}

    @property
    def seq(self) -> int:
        return self._seq

    def snapshot(self) -> Frames:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        return Frames(self._columns, self._seq)

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if not events:
            return
        check_follows(self._seq, events)
        handled = [event for event in events if event.type in _HANDLED]
        put_name = PutFrame.wire_name
        self._bear([event for event in handled if event.type == put_name])
        for event in handled:
            if event.type != put_name:
                self._close(event)
        self._columns.keep_notes()
        self._seq += len(events)
        self._digests.complete(self._seq, self._effects)

    def _bear(self, events: Sequence[FoldedEvent]) -> None:
        """Append births; about 3 us a frame in a batch."""
        if events:
            self._columns.bear([self._birth(event) for event in events])

    def _birth(self, event: FoldedEvent) -> BirthRow:
        columns, seq, body = self._columns, event.seq, event.body
        scope = self._scope_code(event.scope, seq)
        if not isinstance(body, PutFrame):
            columns.note(seq, Oddity.ERASED)
            unknown = (NO_TIME, 0, 0, scope, 0, NO_INDEX, NO_INDEX)
            return (seq, event.recorded, *unknown, 0, 0, 0, 0, FLAG_ERASED)
        flags = 0
        content = content_low = uri = uri_low = 0
        if body.text is not None:
            flags = FLAG_TEXT
        if body.blob is not None:
            flags |= FLAG_BLOB
        if body.embedding is not None:
            flags |= FLAG_EMBEDDING
        if body.content_hash is not None:
            flags |= FLAG_CONTENT_HASH
            content, content_low = hash_halves(body.content_hash)
        if body.uri is not None:
            flags |= FLAG_URI
            uri, uri_low = uri_halves(body.uri)
        return (
            seq,
            event.recorded,
            NO_TIME if body.created is None else body.created,
            columns.kinds.code(body.kind, seq),
            0 if body.role is None else columns.roles.code(body.role, seq),
            scope,
            body.parent or 0,
            NO_INDEX if body.chunk_index is None else body.chunk_index,
            NO_INDEX if body.chunk_count is None else body.chunk_count,
            content,
            content_low,
            uri,
            uri_low,
            flags,
        )

    def _scope_code(self, scope: Scope, seq: int) -> int:
        last, code = self._last_scope
        if (scope is not last and scope != last) or not code:
            code = self._columns.scopes.code(scope_text(scope), seq)
            self._last_scope = (scope, code)
        return code

    def _close(self, event: FoldedEvent) -> None:
        """Close a frame and what hangs below it, unless it is closed already."""
        columns, body, seq = self._columns, event.body, event.seq
        new_row = None
        if isinstance(body, DeleteFrame):
            target, by, kind = body.frame, 0, ClosingKind.DELETE
        elif isinstance(body, SupersedeFrame):
            target, by, kind = body.old, body.new, ClosingKind.SUPERSEDE
            new_row = columns.row_of(by, before=seq)
            if new_row is None:
                columns.note(seq, Oddity.UNKNOWN_REFERENCE)
        else:
            columns.note(seq, Oddity.ERASED)
            return
        row = columns.row_of(target, before=seq)
        if row is None:
            columns.note(seq, Oddity.UNKNOWN_REFERENCE)
            return
        if target == by or columns.is_closed(row):
            columns.note(seq, Oddity.ALREADY_CLOSED)
            return
        columns.close(row, seq, kind, by)
        below = (
            ClosingKind.WITH_DELETED if kind is ClosingKind.DELETE else ClosingKind.WITH_SUPERSEDED
        )
        # A new version may be put below the old one: it does not go with it.
        for child in columns.below(row, before=seq, but=new_row):
            if not columns.is_closed(child):
                columns.close(child, seq, below, by)

    # --- digest and chunks -----------------------------------------------------------------------

    def digest(self) -> bytes:
        return self._digests.root(self._seq, self._effects)

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at an earlier seq; O(one block of events)."""
        check_range(0, seq, self._seq)
        return self._digests.root(seq, self._effects)

    def chunk(self, after: int, through: int | None = None) -> bytes:
        end = self._seq if through is None else through
        check_range(after, end, self._seq)
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, end),
                "blocks": self._digests.leaves(after, end),
                **self._effects(after, end),
            }
        )

    def load(self, chunk: bytes) -> None:
        columns = decode_columns(chunk)
        through = check_head(columns, self._digests.salt, self._seq)
        self._digests.check(columns.u8("blocks"), self._seq, through)
        self._columns.load(columns, self._seq, through)
        self._digests.load(columns.u8("blocks"))
        self._seq = through

    def _effects(self, after: int, through: int) -> Mapping[str, AnyColumn]:
        return self._columns.effects(after, through)

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns."""
        return self._columns.size_bytes


def scope_text(scope: Scope) -> str:
    """Return the one text of a scope: JSON of its pairs, in their order."""
    return msgspec.json.encode(scope).decode()
