"""Scopes and tenants by small number, for the columns of projections.

Owns codes that do not depend on the order of a scope's names, the number of each tenant, and the
set of codes that lie within a scope.
"""

from cerata.engine.events import Scope

from .columns import Columns
from .names import LoadedNames, Names
from .scopes import by_name, is_within, read_scope, scope_text, tenant_in


class ScopeNames(Names):
    """Scopes and their codes, from 1, by first occurrence.

    - A tenant is a text that `tenant_in` returned.
    - ``tenants[code]`` is the number of a scope's tenant, from 1 by first occurrence.
    """

    def __init__(self) -> None:
        super().__init__()
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

    def within(self, wanted: Scope | None) -> frozenset[int] | None:
        """Return the codes of the scopes within ``wanted``, or None (all) without a scope."""
        if wanted is None:
            return None
        text = scope_text(by_name(wanted))
        cached = self._within.get(text)
        if cached is None or cached[0] < len(self):
            count = len(self)
            codes = (code for code in range(1, count + 1) if is_within(self.scope(code), wanted))
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

    def read(self, columns: Columns, prefix: str, after: int, through: int) -> LoadedNames:
        loaded = super().read(columns, prefix, after, through)
        for text in loaded.texts:
            read_scope(text)
        return loaded

    def load(self, loaded: LoadedNames) -> None:
        super().load(loaded)
        for text in loaded.texts:
            self._add(tenant_in(read_scope(text)))
