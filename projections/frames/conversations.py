"""Conversations: which frames are turns of the same conversation.

Owns the rule. A turn is a frame with a role and a conversation, which is the first of these that
the frame has, together with its exact scope:

1. its parent;
2. the ``session_id`` of its scope;
3. ``session`` in its metadata;
4. its track.

A frame with a role alone is no turn: its neighbours in the log may be of another conversation.
Turns are in the order of the log, a new version in the place of the first. A frame's conversation
never changes, so the codes are not saved, and the codes at n are those of the rows at n. Leaves out
the places of turns (`cerata.projections.columnar.turn_order`), which depend on the current frames.
"""

import threading
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

import numpy as np

from cerata.engine.events import JsonValue, Scope

from ..columnar.columns import I64, U32, Column, run_starts
from ..columnar.names import NO_NAME, Names
from ..columnar.scopes import scope_text
from ..columnar.strings import Strings
from ..columnar.turn_order import NO_CONVERSATION
from ..columnar.typed_values import ValueType, number_key
from .attributes import METADATA, TRACK, AttributeView, ScopeParts

SESSION_OF_SCOPE: Final = "session_id"
SESSION: Final = "session"

_VALUES: Final = (ValueType.STRING, ValueType.NUMBER)
"""Types of a session: a bool or null names none."""

# Kinds of keys; a metadata session has that of its value's type, above these.
_NONE: Final = 0
_PARENT: Final = 1
_SCOPE: Final = 2
_TRACK: Final = 3
_METADATA: Final = 8


class Key(NamedTuple):
    """The identity of a conversation: how it is named, the name's code, and its scope's code."""

    kind: int
    value: int
    scope: int


class Name(NamedTuple):
    """A conversation by its values, as `Key` with the string and the scope's text themselves."""

    kind: int
    value: int | str
    scope: str


class Turnlike(Protocol):
    """The fields of a frame that name its conversation."""

    @property
    def role(self) -> str | None: ...
    @property
    def parent(self) -> int | None: ...
    @property
    def metadata(self) -> Mapping[str, JsonValue]: ...
    @property
    def track(self) -> str | None: ...


class Turns(NamedTuple):
    """The columns of frames that name conversations, up to a row; (rows,) each."""

    role: U32
    parent: I64
    scope: U32


class ConversationIndex:
    """The code of each frame's conversation, in order of row; extended when it is read."""

    def __init__(self) -> None:
        self._codes = Column(np.int64)
        self._known: dict[Key, int] = {}
        self._lock = threading.RLock()

    def codes(self, turns: Turns, attributes: AttributeView, scope_parts: ScopeParts) -> I64:
        """Return the code of each row's conversation, or `NO_CONVERSATION`; (rows,) int64.

        Cost: about 20 ns for each new row.
        """
        count = len(turns.role)
        if len(self._codes) < count:
            with self._lock:
                first = len(self._codes)
                if first < count:
                    self._codes.extend(self._of_rows(first, turns, attributes, scope_parts))
        return self._codes.view()[:count]

    def code(self, name: Name, strings: Strings, scopes: Names) -> int | None:
        """Return the code of a conversation that rows have, or None."""
        value = strings.find(name.value) if isinstance(name.value, str) else name.value
        scope = scopes.find(name.scope)
        if value is None or scope is None:
            return None
        return self._known.get(Key(name.kind, value, scope))

    def _of_rows(
        self, first: int, turns: Turns, attributes: AttributeView, scope_parts: ScopeParts
    ) -> I64:
        role, parent, scope = turns.role[first:], turns.parent[first:], turns.scope[first:]
        count = len(role)
        kinds = np.full(count, _NONE)
        values = np.zeros(count, np.int64)
        if not role.any():
            return np.full(count, NO_CONVERSATION)
        end = first + count
        # From the last choice to the first: an earlier choice overwrites a later one.
        names = [(_TRACK, TRACK, ValueType.STRING)]
        names += [(_METADATA + kind, METADATA + SESSION, kind) for kind in _VALUES]
        for source, field, kind in names:
            posting = attributes.within(first, end, field, kind)
            rows = posting.rows - np.uint32(first)
            kinds[rows] = source
            values[rows] = posting.keys.view(np.int64)
        sessions = _scopes_with_sessions(scope_parts)
        of_scope = np.isin(scope, sessions) if len(sessions) else np.zeros(count, np.bool_)
        kinds[of_scope] = _SCOPE
        values[of_scope] = 0
        below = parent != 0
        kinds[below] = _PARENT
        values[below] = parent[below]
        kinds[role == NO_NAME] = _NONE
        return self._coded(kinds, values, scope)

    def _coded(self, kinds: I64, values: I64, scope: U32) -> I64:
        heads = np.flatnonzero(run_starts(kinds, values, scope))
        known = self._known
        codes: list[int] = []
        for head in heads.tolist():
            key = Key(int(kinds[head]), int(values[head]), int(scope[head]))
            is_turn = key.kind != _NONE
            codes.append(known.setdefault(key, len(known)) if is_turn else NO_CONVERSATION)
        return np.repeat(np.array(codes, np.int64), np.diff(heads, append=len(kinds)))

    @property
    def size_bytes(self) -> int:
        """Memory of the codes."""
        return self._codes.size_bytes


def _scopes_with_sessions(scope_parts: ScopeParts) -> U32:
    """Return the codes of the scopes that have a session."""
    view = scope_parts.view()
    last = np.iinfo(np.uint32).max
    parts = [view.within(0, last, SESSION_OF_SCOPE, kind).rows for kind in _VALUES]
    return np.concatenate(parts)


def name_of(body: Turnlike, scope: Scope) -> Name | None:
    """Return the conversation of a frame by its values, or None for a frame that is no turn."""
    if body.role is None:
        return None
    if body.parent:
        return Name(_PARENT, body.parent, scope_text(scope))
    for name, value in scope:
        if name == SESSION_OF_SCOPE and not isinstance(value, bool):
            return Name(_SCOPE, 0, scope_text(scope))
    session = body.metadata.get(SESSION)
    if isinstance(session, str):
        return Name(_METADATA + ValueType.STRING, session, scope_text(scope))
    if isinstance(session, int | float) and not isinstance(session, bool):
        kind, key = number_key(session)
        if kind is ValueType.NUMBER:
            return Name(_METADATA + kind, int(np.uint64(key).astype(np.int64)), scope_text(scope))
    return None if body.track is None else Name(_TRACK, body.track, scope_text(scope))
