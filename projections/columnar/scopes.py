"""Scopes: containment, and the canonical text by which dictionaries store them."""

from functools import lru_cache
from operator import itemgetter

import msgspec

from cerata.engine.events import Scope, ScopeValue

from .columns import damaged


def is_within(scope: Scope | None, wanted: Scope) -> bool:
    """Return whether an event's scope has every name of ``wanted`` with its value; True is not 1.

    None, the unknown scope of an erased event, lies within no scope.
    """
    if scope is None:
        return False
    values = dict(scope)
    return all(
        values.get(name) == value and isinstance(values[name], bool) is isinstance(value, bool)
        for name, value in wanted
    )


def is_same(one: Scope | None, other: Scope | None) -> bool:
    """Return whether two scopes admit the same events; None admits all events."""
    if one is None or other is None:
        return one is other
    return is_within(one, other) and is_within(other, one)


def by_name(scope: Scope) -> Scope:
    """Return a scope with the names after its tenant sorted, since their order has no meaning."""
    return (*scope[:1], *sorted(scope[1:], key=itemgetter(0)))


def scope_text(scope: Scope) -> str:
    """Return the canonical text of a scope."""
    return msgspec.json.encode(scope).decode()


@lru_cache(4096)
def read_scope(text: str) -> Scope:
    """Return the scope with a canonical text. Raises `Corrupt`."""
    try:
        return msgspec.json.decode(text, type=Scope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(f"a scope cannot be decoded ({error})") from error


def tenant_in(scope: Scope) -> str:
    """Return the `tenant_key` of a scope's first value; an empty text for an empty scope."""
    return tenant_key(scope[0][1]) if scope else ""


def tenant_key(tenant: ScopeValue) -> str:
    """Return a tenant as text, in which 1, "1" and True differ."""
    return msgspec.json.encode(tenant).decode()
