"""Entities as of any event: who there is, by which names, and how often facts name them.

Owns the directory of entities at one n, made from the facts and acts by then. Entities of two
tenants are never the same, though their names may be.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from .entity_roles import Act, ActRow
from .fact_table import FactsAt
from .fact_values import ObjectKind
from .text import folded_name, term_of


class EntityRow(NamedTuple):
    """An entity: its name, kind, aliases, the names read as it, first event, and mentions."""

    name: str
    kind: str | None
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    first_seq: int
    mentions: int


_Key = tuple[int, int]
"""A tenant, and the code of an entity's name."""

_Moment = tuple[int, int]
"""An event, and whether it names as subject (0) or object (1)."""

_NEVER: Final = (1 << 63, 0)

_NAME_WORDS_MAX: Final = 6
"""Words of a name that is looked for in a question."""


class Entities:
    """The entities at one n, within a scope; immutable.

    Cost: of one by its name its facts and what was said of it and of those read as it; of all of
    them a pass over the facts.
    """

    def __init__(self, facts: FactsAt) -> None:
        self._facts = facts
        self._columns = facts.facts.columns

    @cached_property
    def _first_seqs(self) -> dict[_Key, int]:
        """The first event that names each entity, in order of these and of its names.

        A merge or split that was taken back names nobody.
        """
        columns, facts = self._columns, self._facts
        rows = facts.visible
        tenants = np.array(columns.scopes.tenants, np.int64)[columns.scope.view()[rows]]
        seqs = facts.facts.seqs[rows]
        is_entity = columns.kind.view()[rows] == ObjectKind.ENTITY
        subjects = columns.subject.view()[rows].astype(np.int64)
        objects = columns.object.view()[rows][is_entity].astype(np.int64)
        first: dict[_Key, tuple[int, int]] = {}
        for place, (codes, theirs, when) in enumerate(
            (
                (subjects, tenants, seqs),
                (objects, tenants[is_entity], seqs[is_entity]),
            )
        ):
            keys, rows_of = np.unique((theirs << 32) | codes, return_index=True)
            for key, seq in zip(keys.tolist(), when[rows_of].tolist(), strict=True):
                named = key >> 32, key & 0xFFFF_FFFF
                first[named] = min((seq, place), first.get(named, (seq, place)))
        for seq, tenant, what, one, other, _ in facts.acts:
            if what == Act.ENTITY:
                pair: tuple[int, ...] = (one,)
            elif what in (Act.MERGE, Act.SPLIT) and facts.roles.holds(seq):
                pair = (one, other)
            else:
                continue
            for place, code in enumerate(pair):
                named = tenant, code
                first[named] = min((seq, place), first.get(named, (seq, place)))
        return {key: seq for key, (seq, _) in sorted(first.items(), key=lambda item: item[1])}

    @cached_property
    def _members(self) -> dict[_Key, list[_Key]]:
        """The entities that are read as each, itself first; both in order of first event."""
        found: dict[_Key, list[_Key]] = {}
        for key in self._first_seqs:
            root = key[0], self._facts.roles.root(*key)
            found.setdefault(root, [root])
            if key != root:
                found[root].append(key)
        return found

    def _keys(self, code: int) -> dict[_Key, _Moment]:
        """Return the entities with a name, of each tenant, and when each was first named."""
        named = self._facts.first_named(code)
        found: dict[_Key, _Moment] = {(tenant, code): when for tenant, when in named.items()}
        for act in self._facts.acts_naming(code):
            if self._names(act):
                key, moment = (act.tenant, code), (act.seq, int(act.one != code))
                found[key] = min(moment, found.get(key, _NEVER))
        return found

    def _names(self, act: ActRow) -> bool:
        """Tell whether an act names entities: an alias does not, and no merge that has ended."""
        return act.what == Act.ENTITY or (
            act.what != Act.ALIAS and self._facts.roles.holds(act.seq)
        )

    def has(self, name: str) -> bool:
        """Tell whether anything names an entity so. Cost: up to the first that does."""
        code = self._columns.strings.find(name)
        if code is None:
            return False
        return bool(self._facts.first_named(code)) or any(
            map(self._names, self._facts.acts_naming(code))
        )

    def _read_as(self, root: _Key) -> dict[_Key, _Moment]:
        """Return the entities that are read as one, itself if it is named, and when they were."""
        found: dict[_Key, _Moment] = {}
        for code in self._facts.roles.names_of(*root):
            moment = self._keys(code).get((root[0], code))
            if moment is not None:
                found[root[0], code] = moment
        return found

    def _root(self, key: _Key) -> _Key:
        return key[0], self._facts.roles.root(*key)

    def _named(self, folded: str, code: int | None = None) -> list[_Key]:
        """Return the entities of a folded name or alias, or an exact one, as they are read.

        In order of their first event.
        """
        codes = set(self._columns.folded_names.find(folded)) if folded else set[int]()
        if code is not None:
            codes.add(code)
        keys = {key for one in codes for key in self._keys(one)}
        alias = self._columns.strings.find(folded) if folded else None
        if alias is not None:
            keys.update((act.tenant, act.one) for act in self._facts.acts_of_alias(alias))
        roots = {self._root(key) for key in keys}
        if len(roots) < 2:
            return list(roots)
        return sorted(roots, key=lambda root: min(self._read_as(root).values(), default=_NEVER))

    def resolve(self, name: str) -> list[str]:
        """Return the entities with a name or alias, as they are read, in order of first event."""
        strings = self._columns.strings
        found = self._named(folded_name(name), strings.find(name))
        return list(dict.fromkeys(strings.text(code) for _, code in found))

    def named_in(self, words: Sequence[str]) -> list[tuple[int, str]]:
        """Return the entities that folded words name, in their order, each with its tenant.

        A longer name is taken first. A word that stands for nothing in a search names nobody,
        unless there is no other word. Cost: a look-up for each run of up to six words.
        """
        found: dict[tuple[int, str], None] = {}
        empty = {word for word in words if term_of(word.encode()) is None}
        if empty == set(words):
            empty.clear()
        start = 0
        while start < len(words):
            for size in range(min(_NAME_WORDS_MAX, len(words) - start), 0, -1):
                if size == 1 and words[start] in empty:
                    continue
                named = self._named(" ".join(words[start : start + size]))
                if named:
                    text = self._columns.strings.text
                    found.update(((tenant, text(code)), None) for tenant, code in named)
                    start += size
                    break
            else:
                start += 1
        return list(found)

    def find(self, name: str) -> EntityRow | None:
        """Return an entity by its exact name, or that of one that is read as it."""
        code = self._columns.strings.find(name)
        keys = {} if code is None else self._keys(code)
        if not keys:
            return None
        return self._row(self._root(min(keys, key=keys.__getitem__)))

    def all(self) -> Iterator[EntityRow]:
        """Yield the entities, in order of first event; one that is read as another is not one."""
        for root in self._members:
            yield self._row(root)

    def _row(self, root: _Key) -> EntityRow:
        text = self._columns.strings.text
        moments = self._read_as(root)
        others = sorted((key for key in moments if key != root), key=moments.__getitem__)
        members = [root, *others]
        said = [self._said(key) for key in members]
        kind = next((kind for kind, _ in said if kind), 0)
        name = text(root[1])
        rows = {
            *self._facts.find(name),
            *self._facts.find(object_=(ObjectKind.ENTITY, name)),
        }
        aliases = (text(code) for _, codes in said for code in codes)
        return EntityRow(
            name,
            self._columns.kinds.text(kind),
            tuple(dict.fromkeys(aliases)),
            tuple(text(code) for _, code in members),
            min(moments.values())[0],
            len(self._facts.of_tenant(rows, root[0])),
        )

    def _said(self, key: _Key) -> tuple[int, list[int]]:
        """Return the last kind that was said of an entity, or 0, and its aliases."""
        kind, aliases = 0, list[int]()
        for act in self._facts.acts_naming(key[1]):
            if (act.tenant, act.one) == key:
                if act.what == Act.ENTITY:
                    kind = act.other or kind
                elif act.what == Act.ALIAS:
                    aliases.append(act.other)
        return kind, aliases
