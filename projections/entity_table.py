"""Entities as of any event: who there is, by which names, and how often facts name them.

Owns the directory of entities at one n, made from the facts and acts by then. Entities of two
tenants are never the same, though their names may be.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .entity_roles import Act
from .fact_table import FactsAt
from .fact_values import ObjectKind
from .text import folded_name


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


class Entities:
    """The entities at one n, within a scope; immutable. Cost: a pass over its facts and acts."""

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
        tenants = np.array(columns.scope_tenant, np.int64)[columns.scope.view()[rows]]
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

    @cached_property
    def _said(self) -> tuple[dict[_Key, int], dict[_Key, list[int]]]:
        """The last kind that each was given, and its aliases."""
        kinds: dict[_Key, int] = {}
        aliases: dict[_Key, list[int]] = {}
        for _, tenant, what, one, other, _ in self._facts.acts:
            if what == Act.ENTITY and other:
                kinds[tenant, one] = other
            elif what == Act.ALIAS:
                aliases.setdefault((tenant, one), []).append(other)
        return kinds, aliases

    @cached_property
    def _by_folded(self) -> dict[str, list[_Key]]:
        """The entities by each of their names and aliases, folded."""
        found: dict[str, list[_Key]] = {}
        text = self._columns.strings.text
        for key in self._first_seqs:
            found.setdefault(folded_name(text(key[1])), []).append(key)
        for key, codes in self._said[1].items():
            for code in codes:
                found.setdefault(folded_name(text(code)), []).append(key)
        return found

    def resolve(self, name: str) -> list[str]:
        """Return the entities with a name or alias, as they are read, in order of first event."""
        text = self._columns.strings.text
        code = self._columns.strings.find(name)
        keys = {key for key in self._by_folded.get(folded_name(name), ()) if folded_name(name)}
        keys |= {key for key in self._first_seqs if key[1] == code}
        roots = {(tenant, self._facts.roles.root(tenant, one)) for tenant, one in keys}
        return list(
            dict.fromkeys(text(one) for tenant, one in self._members if (tenant, one) in roots)
        )

    def find(self, name: str) -> EntityRow | None:
        """Return an entity by its exact name, or that of one that is read as it."""
        code = self._columns.strings.find(name)
        for key in self._first_seqs:
            if key[1] == code:
                return self._row((key[0], self._facts.roles.root(*key)))
        return None

    def all(self) -> Iterator[EntityRow]:
        """Yield the entities, in order of first event; one that is read as another is not one."""
        for root in self._members:
            yield self._row(root)

    def _row(self, root: _Key) -> EntityRow:
        text, (kinds, aliases) = self._columns.strings.text, self._said
        members = self._members.get(root, [root])
        kind = next((kinds[key] for key in members if key in kinds), 0)
        name = text(root[1])
        rows = {
            *self._facts.find(name),
            *self._facts.find(object_=(ObjectKind.ENTITY, name)),
        }
        return EntityRow(
            name,
            self._columns.kinds.text(kind),
            tuple(dict.fromkeys(text(code) for key in members for code in aliases.get(key, ()))),
            tuple(text(code) for _, code in members),
            min(self._first_seqs[key] for key in members if key in self._first_seqs),
            len(self._facts.of_tenant(rows, root[0])),
        )
