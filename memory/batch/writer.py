"""Writers: the base of every group of commands.

A group (`frames.commands`, `facts.commands`, …) writes through the session that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from cerata.engine.handle import Handle
from cerata.engine.late import late

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from cerata.engine.events import ScopeValue
    from cerata.engine.packs import Role
    from cerata.projections.columnar import scopes

    from ..snapshot.snapshot import Snapshot
    from .session import WriteSession
else:
    scopes = late("cerata.projections.columnar.scopes")


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Writer = TypeVar("_Writer", bound="Writer")


class Writer(Reader, Handle):
    """A handle that writes, and reads the newest state."""

    def __init__(self, session: WriteSession) -> None:
        self._session = session
        self._log = session.log
        self._fold = session.fold

    def _snapshot(self) -> Snapshot:
        return self._session.snapshot()


def takes_scope(
    command: Callable[Concatenate[_Writer, _Arguments], _Result],
) -> Callable[Concatenate[_Writer, _Arguments], _Result]:
    """Decorate a command whose scope replaces a required scope that is missing.

    The call is then one of `Store.scoped`, so its look-ups and checks stay within the scope too.
    """

    @wraps(command)
    def call(
        writer: _Writer, /, *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Result:
        session = session_of(writer)
        if session.reach is scopes.MISSING and (scope := _scope_of(named)) is not None:
            scoped = session.scoped(cast("Mapping[str, ScopeValue]", scope))
            writer = type(writer)(scoped)
        return command(writer, *arguments, **named)

    return call


def _scope_of(named: Mapping[str, object]) -> object:
    """Return the scope of a call, its own argument or one of its options."""
    return named.get("scope") or getattr(named.get("options"), "scope", None)


def session_of(writer: Writer) -> WriteSession:
    """Return the session through which a handle writes."""
    return writer._session  # pyright: ignore[reportPrivateUsage]


def acting(writer: _Writer, role: Role) -> _Writer:
    """Return a handle on the same file whose writes obey the table of owners (`owners`)."""
    return type(writer)(session_of(writer).acting(role))
