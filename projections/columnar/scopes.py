"""Scopes: the events that a reader may see, canonical text, and codes for columns of projections.

Owns `Reach` and `admits`, which decides for every read, codes that do not depend on the order of a
scope's names, the number of each tenant, and the set of codes that a reach admits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Scope, ScopeValue
from cerata.engine.late import late

from .columns import Columns, Mask, damaged, require
from .names import LoadedNames, Names

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

TENANT: Final = "tenant"

_CACHED_REACHES_MAX: Final = 1024
_LOOKS_MAX: Final = 4
"""Reaches for which the texts of all scopes are read, before an index is built."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The events that a reader may see; `admits` is the rule.

    - ``pairs``: names and values, the tenant first.
    - ``shared``: events that lack names of ``pairs`` other than the tenant are admitted too.
    """

    pairs: Scope
    shared: bool = False

    @property
    def private(self) -> "Reach":
        """This reach without shared events."""
        return Reach(self.pairs) if self.shared else self

    @property
    def is_tenant(self) -> bool:
        """True if the pairs have no name but the tenant, so that ``shared`` changes nothing."""
        return all(name == TENANT for name, _ in self.pairs)

    @property
    def has_shared(self) -> bool:
        """True if an event may be admitted that lacks one of the names."""
        return self.shared and not self.is_tenant

    @property
    def key(self) -> str:
        """A text that equal reaches share; in it 1, "1" and True differ."""
        text = scope_text(tuple(sorted(self.pairs, key=itemgetter(0))))
        return f"shared {text}" if self.has_shared else text


class MissingReach(Reach):
    """The reach of a store that requires a scope and has none: each use of its pairs raises.

    A read that no check refuses therefore fails, and shows nothing.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    shared: bool = False

    def __init__(self) -> None:
        """Set no field."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "MISSING"

    @property
    def pairs(self) -> Scope:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise InvalidInput(
            "The store requires a scope, and the call has none",
            remedy="Call store.scoped({'tenant': 'name'}), or read "
            "store.history.view().within({…}) or store.at(basis).within({…}), at a tag "
            "store.scoped({…}).at('v1'); a write may have scope={…}.",
        )


MISSING: Final = MissingReach()


def check_reach(reach: Reach | None) -> None:
    """Raise `InvalidInput` if a scope is required and missing."""
    if isinstance(reach, MissingReach):
        _ = reach.pairs


def pairs_of(reach: Reach | None) -> Scope | None:
    """Return the pairs of a reach, to be shown; None if every event or none is admitted."""
    return None if reach is None or reach is MISSING else reach.pairs


def admits(scope: Scope | None, reach: Reach | None) -> bool:
    """Return whether a reader sees the events of a scope; the one rule of every read.

    - The event has each pair of the reach with its value; True is not 1.
    - In a shared reach the event may lack any name but the tenant.
    - None, the unknown scope of an erased event, is admitted only without a reach.
    """
    if reach is None:
        return True
    if scope is None:
        return False
    values = dict(scope)
    for name, value in reach.pairs:
        if name not in values:
            if not reach.shared or name == TENANT:
                return False
        elif values[name] != value or isinstance(values[name], bool) is not isinstance(value, bool):
            return False
    return True


def sees_same(first: Reach | None, second: Reach | None) -> bool:
    """Return whether two readers see the same events."""
    if first is None or second is None:
        return first is second
    return first.key == second.key


def is_same(first: Scope | None, second: Scope | None) -> bool:
    """Return whether two scopes have the same names and values; None equals only None."""
    if first is None or second is None:
        return first is second
    return Reach(first).key == Reach(second).key


def by_name(scope: Scope) -> Scope:
    """Return a scope with the names after its tenant sorted, since their order has no meaning."""
    return (*scope[:1], *sorted(scope[1:], key=itemgetter(0)))


def scope_text(scope: Scope) -> str:
    """Return the canonical text of a scope."""
    return msgspec.json.encode(scope).decode()


_decode: Final = msgspec.json.Decoder(Scope).decode
_skip: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


# Each projection keeps the scopes of its own events: a text is decoded once for all of them.
@lru_cache(1 << 17)
def read_scope(text: str) -> Scope:
    """Return the scope with a canonical text. Raises `Corrupt`."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(f"a scope cannot be decoded ({error})") from error


def check_texts(texts: Sequence[str]) -> None:
    """Raise `Corrupt` unless each text is JSON; about 0.3 us a text, since none is decoded."""
    try:
        count = len(_skip(f"[{','.join(texts)}]"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(f"a scope cannot be decoded ({error})") from error
    require(count == len(texts), "a scope is not one text")


def tenant_in(scope: Scope) -> str:
    """Return the `tenant_key` of a scope's first value; an empty text for an empty scope."""
    return tenant_key(scope[0][1]) if scope else ""


def tenant_key(tenant: ScopeValue) -> str:
    """Return a tenant as text, in which 1, "1" and True differ."""
    return msgspec.json.encode(tenant).decode()


def tenant_of_rows(scope: Scope) -> str | int | bytes:
    """Return the tenant of a scope as the first item of a row's key; a bool as bytes of JSON."""
    tenant = scope[0][1] if scope else ""
    return msgspec.json.encode(tenant) if isinstance(tenant, bool) else tenant


class AdmittedCodes:
    """The codes of the scopes that a reach admits, for a dictionary of scope texts.

    Cost: the first time for a reach, a look at the text of each scope, about 0.1 us, and a call of
    `admits` for each that has the pairs; later only for the scopes that are new. After many
    reaches an index of the values of each name replaces the look, for about 3 us a scope.
    """

    def __init__(self, scopes: Names) -> None:
        self._names = scopes
        self._by_reach: dict[str, tuple[int, frozenset[int]]] = {}
        self._last: tuple[Reach | None, str] = None, ""
        """The reach of the last look-up, and its key: most look-ups follow one of the same."""
        self._looks = 0
        self._indexes: dict[str, _ValueIndex] = {}

    def codes(self, reach: Reach) -> frozenset[int]:
        """Return the codes of the scopes that a reach admits."""
        last, key = self._last
        if last is not reach:
            key = reach.key
            self._last = reach, key
        count = self._names.size
        through, codes = self._by_reach.get(key, (0, frozenset[int]()))
        if through < count:
            candidates = range(through + 1, count + 1) if through else self._fewest(reach, count)
            new = candidates
            if through or not _is_decided(reach):
                new = [code for code in candidates if admits(self.scope(code), reach)]
            codes = codes.union(new) if new else codes
            if len(self._by_reach) >= _CACHED_REACHES_MAX:
                self._by_reach.clear()
            self._by_reach[key] = count, codes
        return codes

    def mask(self, reach: Reach) -> Mask:
        """Return a mask over the codes, from 0, of the scopes that a reach admits."""
        codes = self.codes(reach)
        mask = np.zeros(len(self._names) + 1, np.bool_)
        mask[list(codes)] = True
        return mask

    def scope(self, code: int) -> Scope:
        """Return the scope with a code."""
        return read_scope(self._names.text(code) or "[]")

    def _fewest(self, reach: Reach, count: int) -> Iterable[int]:
        """Return the fewest codes, up to ``count``, among which are those that a reach admits."""
        if not reach.pairs:
            return range(1, count + 1)
        if not reach.has_shared and self._looks < _LOOKS_MAX:
            self._looks += 1
            return self._with_texts(reach, count)
        return min((self._candidates(pair, reach, count) for pair in reach.pairs), key=len)

    def _with_texts(self, reach: Reach, count: int) -> list[int]:
        """Return the codes of the scopes whose text has each pair of a reach.

        A text within a value has its quotes escaped, so it equals no pair.
        """
        *further, last = (scope_text((pair,))[1:-1] for pair in reach.pairs)
        texts = self._names.texts()
        codes = [code for code, text in enumerate(texts[:count], start=1) if last in text]
        for pair in further:
            codes = [code for code in codes if pair in texts[code - 1]]
        return codes

    def _candidates(self, pair: tuple[str, ScopeValue], reach: Reach, count: int) -> list[int]:
        name, value = pair
        index = self._indexes.get(name) or self._indexes.setdefault(name, _ValueIndex(name))
        for code in range(index.count + 1, count + 1):
            index.add(code, self.scope(code))
        codes = index.by_value.get(value, [])
        return [*index.lacking, *codes] if reach.shared and name != TENANT else codes


def _is_decided(reach: Reach) -> bool:
    """Return whether the index of the only pair decides: no other type equals a text."""
    return not reach.shared and len(reach.pairs) == 1 and isinstance(reach.pairs[0][1], str)


class _ValueIndex:
    """The codes of scopes by their value of a name; equal values of two types share a list."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.count = 0
        self.by_value: dict[ScopeValue, list[int]] = {}
        self.lacking: list[int] = []

    def add(self, code: int, scope: Scope) -> None:
        value = dict(scope).get(self._name)
        codes = self.lacking if value is None else self.by_value.setdefault(value, [])
        codes.append(code)
        self.count = code


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
        self._values: dict[int, dict[str, ScopeValue]] = {}
        self._admitted = AdmittedCodes(self)

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, a new code if event ``seq`` is the first with the scope."""
        code = self.code(scope_text(by_name(scope)), seq)
        if code == len(self.tenants):
            tenant = tenant_in(scope)
            self.tenants.append(self._numbers.setdefault(tenant, len(self._numbers) + 1))
        return code

    def _numbers_of(self, texts: Sequence[str], numbers: dict[str, int]) -> list[int]:
        """Return the number of the tenant of each scope, and add new tenants to ``numbers``.

        Most texts begin with the tenant of the one before, so few are decoded.
        """
        begin, number = "\0", 0
        of_texts: list[int] = []
        for text in texts:
            if not text.startswith(begin):
                scope = read_scope(text)
                number = numbers.setdefault(tenant_in(scope), len(numbers) + 1)
                begin = scope_text(scope[:1])[:-1] if scope else "\0"
            of_texts.append(number)
        return of_texts

    def scope(self, code: int) -> Scope:
        """Return the scope with a code."""
        scope = self._scopes.get(code)
        if scope is None:
            scope = self._scopes[code] = read_scope(self.text(code) or "[]")
        return scope

    def values(self, code: int) -> dict[str, ScopeValue]:
        """Return the names and values of the scope with a code, in a new dict."""
        values = self._values.get(code)
        if values is None:
            values = self._values[code] = dict(self.scope(code))
        return values.copy()

    def admitted(self, reach: Reach | None) -> frozenset[int] | None:
        """Return the codes of the scopes that a reach admits, or None (all) without a reach."""
        return None if reach is None else self._admitted.codes(reach)

    def tenant_number(self, tenant: str) -> int | None:
        """Return the number of a tenant, or None."""
        return self._numbers.get(tenant)

    def tenant_name(self, number: int) -> str:
        """Return the tenant with a number."""
        return list(self._numbers)[number - 1]

    def tenants_after(self, loaded: LoadedNames) -> list[int]:
        """Return the value of ``tenants`` after a `load` of these names."""
        return [*self.tenants, *self._numbers_of(loaded.texts, dict(self._numbers))]

    def share(self, names: Names, through: int) -> None:
        super().share(names, through)
        self.tenants += self._numbers_of(self._texts, self._numbers)

    def read(self, columns: Columns, after: int, through: int) -> LoadedNames:
        loaded = super().read(columns, after, through)
        check_texts(loaded.texts)
        return loaded

    def load(self, loaded: LoadedNames) -> None:
        super().load(loaded)
        self.tenants += self._numbers_of(loaded.texts, self._numbers)
