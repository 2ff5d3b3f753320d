"""Scopes by small number, and their tenants: what columns keep of where an event was written.

Owns codes that do not depend on the order of a scope's names, the number of each tenant, and which
codes lie within a scope.
"""

from cerata.engine.events import Scope

from .columns import Columns
from .names import LoadedNames, Names
from .scopes import by_name, is_within, read_scope, scope_text, tenant_in


class ScopeNames(Names):
    """Scopes and their codes, from 1, by first occurrence.

    - A tenant is a text of `tenant_in`.
    - ``tenants[code]`` is the number of the tenant of a scope, from 1 by first occurrence.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tenants: list[int] = [0]
        self._numbers: dict[str, int] = {}
        self._scopes: dict[int, Scope] = {}
        # By text: two scopes with 1 and True are equal tuples.
        self._within: dict[str, tuple[int, frozenset[int]]] = {}

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, a new one if event ``seq`` is the first to have it."""
        code = self.code(scope_text(by_name(scope)), seq)
        if code == len(self.tenants):
            self._add(tenant_in(scope))
        return code

    def _add(self, tenant: str) -> None:
        self.tenants.append(self._numbers.setdefault(tenant, len(self._numbers) + 1))

    def scope(self, code: int) -> Scope:
        """Return the scope with a code."""
        found = self._scopes.get(code)
        if found is None:
            found = self._scopes[code] = read_scope(self.text(code) or "[]")
        return found

    def within(self, wanted: Scope | None) -> frozenset[int] | None:
        """Return the codes of the scopes that lie within one; None where all do."""
        if wanted is None:
            return None
        text = scope_text(by_name(wanted))
        known = self._within.get(text)
        if known is None or known[0] < len(self):
            count = len(self)
            codes = (code for code in range(1, count + 1) if is_within(self.scope(code), wanted))
            known = self._within[text] = count, frozenset(codes)
        return known[1]

    def tenant_number(self, tenant: str) -> int | None:
        """Return the number of a tenant, or None."""
        return self._numbers.get(tenant)

    def tenant_name(self, number: int) -> str:
        """Return the tenant of a number."""
        return list(self._numbers)[number - 1]

    def tenants_after(self, loaded: LoadedNames) -> list[int]:
        """Return what ``tenants`` will be once names that `read` returned are loaded."""
        numbers, found = dict(self._numbers), list(self.tenants)
        for text in loaded.texts:
            tenant = tenant_in(read_scope(text))
            found.append(numbers.setdefault(tenant, len(numbers) + 1))
        return found

    def read(self, columns: Columns, prefix: str, after: int, through: int) -> LoadedNames:
        loaded = super().read(columns, prefix, after, through)
        for text in loaded.texts:
            read_scope(text)
        return loaded

    def load(self, loaded: LoadedNames) -> None:
        super().load(loaded)
        for text in loaded.texts:
            self._add(tenant_in(read_scope(text)))
