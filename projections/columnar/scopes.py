"""Scopes: containment, canonical text, and codes for the columns of projections.

Owns codes that do not depend on the order of a scope's names, the number of each tenant, and the
set of codes that lie within a scope.
"""

from functools import lru_cache
from operator import itemgetter

import msgspec

from cerata.engine.events import Scope, ScopeValue

from .columns import Columns, damaged
from .names import LoadedNames, Names


def is_within(scope: Scope | None, outer: Scope) -> bool:
    """Return whether an event's scope has every name of ``outer`` with its value; True is not 1.

    None, the unknown scope of an erased event, lies within no scope.
    """
    if scope is None:
        return False
    values = dict(scope)
    return all(
        values.get(name) == value and isinstance(values[name], bool) is isinstance(value, bool)
        for name, value in outer
    )


def is_same(first: Scope | None, second: Scope | None) -> bool:
    """Return whether two scopes admit the same events; None admits all events."""
    if first is None or second is None:
        return first is second
    return is_within(first, second) and is_within(second, first)


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


class ScopeNames(Names):
    """Scopes and their codes, from 1, by first occurrence.

    - A tenant is a text that `tenant_in` returned.
    - ``tenants[code]`` is the number of a scope's tenant, from 1 by first occurrence.
    """

    def __init__(self) -> None:
        super().__init__("scopes")
        self.tenants: list[int] = [0]
        self._numbers: dict[str, int] = {}
        self._scopes: dict[int, Scope] = {}
        # Keyed by text: scopes with 1 and with True are equal tuples.
        self._within: dict[str, tuple[int, frozenset[int]]] = {}

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, a new code if event ``seq`` is the first with the scope."""
        code = self.code(scope_text(by_name(scope)), seq)
        if code == len(self.tenants):
            self._add(tenant_in(scope))
        return code

    def _add(self, tenant: str) -> None:
        self.tenants.append(self._numbers.setdefault(tenant, len(self._numbers) + 1))

    def scope(self, code: int) -> Scope:
        """Return the scope with a code."""
        scope = self._scopes.get(code)
        if scope is None:
            scope = self._scopes[code] = read_scope(self.text(code) or "[]")
        return scope

    def within(self, outer: Scope | None) -> frozenset[int] | None:
        """Return the codes of the scopes within ``outer``, or None (all) without a scope."""
        if outer is None:
            return None
        text = scope_text(by_name(outer))
        cached = self._within.get(text)
        if cached is None or cached[0] < len(self):
            count = len(self)
            codes = (code for code in range(1, count + 1) if is_within(self.scope(code), outer))
            cached = self._within[text] = count, frozenset(codes)
        return cached[1]

    def tenant_number(self, tenant: str) -> int | None:
        """Return the number of a tenant, or None."""
        return self._numbers.get(tenant)

    def tenant_name(self, number: int) -> str:
        """Return the tenant with a number."""
        return list(self._numbers)[number - 1]

    def tenants_after(self, loaded: LoadedNames) -> list[int]:
        """Return the value of ``tenants`` after a `load` of these names."""
        numbers = dict(self._numbers)
        tenants = list(self.tenants)
        for text in loaded.texts:
            tenant = tenant_in(read_scope(text))
            tenants.append(numbers.setdefault(tenant, len(numbers) + 1))
        return tenants

    def share(self, names: Names, through: int) -> None:
        super().share(names, through)
        for text in self._texts:
            self._add(tenant_in(read_scope(text)))

    def read(self, columns: Columns, after: int, through: int) -> LoadedNames:
        loaded = super().read(columns, after, through)
        for text in loaded.texts:
            read_scope(text)
        return loaded

    def load(self, loaded: LoadedNames) -> None:
        super().load(loaded)
        for text in loaded.texts:
            self._add(tenant_in(read_scope(text)))
