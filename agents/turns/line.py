"""Lines of talk: the messages of an agent that are each other's context.

Owns `Line`, the names of the dimensions that make it, and the mode groups.
"""

from functools import lru_cache
from typing import Final

import msgspec

from cerata.engine.events import Scope
from cerata.projections.columnar.columns import damaged
from cerata.projections.columnar.scopes import by_name

SESSION_DIMENSION: Final = "session_id"
THREAD_DIMENSION: Final = "thread"
MODE_DIMENSION: Final = "mode"
MAIN_THREAD: Final = "main"
CHAT_MODE: Final = "chat"

_CHAT_GROUP: Final = frozenset({"chat", "booth"})
_OF_LINE: Final = frozenset({SESSION_DIMENSION, THREAD_DIMENSION, MODE_DIMENSION})


def group_of(mode: str) -> str:
    """Return the mode group of a mode: chat and booth are one, every other mode is its own."""
    return CHAT_MODE if mode in _CHAT_GROUP else mode


class Line(msgspec.Struct, frozen=True, array_like=True):
    """An agent's thread in a mode group, for one scope."""

    agent: str
    thread: str
    group: str
    base: Scope
    """The scope without session, thread and mode: the tenant, then in order of name."""

    @property
    def scope(self) -> Scope:
        """The scope of what is written about the line: its base, thread and mode group."""
        return (*self.base, (THREAD_DIMENSION, self.thread), (MODE_DIMENSION, self.group))

    @property
    def text(self) -> str:
        """The canonical text of the line."""
        return msgspec.json.encode(self).decode()


@lru_cache(1 << 12)
def read_line(text: str) -> Line:
    """Return the line with a canonical text. Raises `Corrupt`."""
    try:
        return msgspec.json.decode(text, type=Line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(f"a line of talk cannot be decoded ({error})") from error


def mode_of(scope: Scope) -> str:
    """Return the mode of a scope."""
    return str(dict(scope).get(MODE_DIMENSION, CHAT_MODE))


def line_of(agent: str, scope: Scope) -> Line:
    """Return the line of a message of an agent in a scope."""
    values = dict(scope)
    thread = str(values.get(THREAD_DIMENSION, MAIN_THREAD))
    base = by_name(tuple(pair for pair in scope if pair[0] not in _OF_LINE))
    return Line(agent, thread, group_of(mode_of(scope)), base)
