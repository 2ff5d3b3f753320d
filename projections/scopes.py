"""Scopes: what lies within what, and the one text that a dictionary keeps them by."""

from operator import itemgetter

import msgspec

from cerata.engine.events import Scope

from .columns import damaged


def is_within(scope: Scope | None, wanted: Scope) -> bool:
    """Tell whether an event's scope has every name of ``wanted`` with its value; True is not 1.

    None, the unknown scope of an erased event, lies within no scope.
    """
    if scope is None:
        return False
    have = dict(scope)
    return all(
        have.get(name) == value and isinstance(have[name], bool) is isinstance(value, bool)
        for name, value in wanted
    )


def by_name(scope: Scope) -> Scope:
    """Return a scope with the names after its tenant in order: which came first says nothing."""
    return (*scope[:1], *sorted(scope[1:], key=itemgetter(0)))


def scope_text(scope: Scope) -> str:
    """Return the one text of a scope."""
    return msgspec.json.encode(scope).decode()


def read_scope(text: str) -> Scope:
    """Return the scope behind its one text. Raises `Corrupt`."""
    try:
        return msgspec.json.decode(text, type=Scope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(f"a scope cannot be read ({error})") from error


def tenant_in(scope: Scope) -> str:
    """Return the tenant of a scope, its first name."""
    return str(scope[0][1]) if scope else ""
