"""Entities as of any event: their names, kinds, aliases, and mentions in facts.

Owns the directory of entities at n, derived from the facts and acts up to n. Entities of two
tenants are never the same, even with equal names.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from ..fulltext.analyzer import folded_name, terms_of
from .entity_resolution import Act, ActRow
from .objects import ObjectKind
from .reader import FactsAt


class EntityRow(NamedTuple):
    """An entity; ``names`` are all names read as this entity, ``mentions`` counts its facts."""

    name: str
    kind: str | None
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    first_seq: int
    mentions: int


EntityKey = tuple[int, int]
"""A tenant, and the code of an entity's name."""

_Moment = tuple[int, int]
"""An event, and the place of the name in the event: subject (0) or object (1)."""

_NEVER: Final = (1 << 63, 0)

_NAME_WORDS_MAX: Final = 6
"""Maximum words of a name that `Entities.entities_in` looks up."""


class Entities:
    """The entities at n, within a scope; immutable.

    Cost: for an entity by name, its facts and acts and those of its merged names; for all
    entities, a pass over the facts.
    """

    def __init__(self, facts: FactsAt) -> None:
        self._facts = facts
        self._columns = facts.facts.columns

    @cached_property
    def _first_seqs(self) -> dict[EntityKey, int]:
        """The first event that names each entity, in order of (event, place).

        An undone merge or split names no entity.
        """
        columns = self._columns
        facts = self._facts
        rows = facts.visible
        tenants = np.array(columns.scopes.tenants, np.int64)[columns.scope.view()[rows]]
        seqs = facts.facts.seqs[rows]
        is_entity = columns.kind.view()[rows] == ObjectKind.ENTITY
        subjects = columns.subject.view()[rows].astype(np.int64)
        objects = columns.object.view()[rows][is_entity].astype(np.int64)
        first: dict[EntityKey, tuple[int, int]] = {}
        for place, (codes, fact_tenants, when) in enumerate(
            ((subjects, tenants, seqs), (objects, tenants[is_entity], seqs[is_entity]))
        ):
            keys, rows_of = np.unique((fact_tenants << 32) | codes, return_index=True)
            for key, seq in zip(keys.tolist(), when[rows_of].tolist(), strict=True):
                named = key >> 32, key & 0xFFFF_FFFF
                first[named] = min((seq, place), first.get(named, (seq, place)))
        for seq, tenant, kind, entity, target, _ in facts.acts:
            if kind == Act.ENTITY:
                pair: tuple[int, ...] = (entity,)
            elif kind in (Act.MERGE, Act.SPLIT) and facts.roles.holds(seq):
                pair = (entity, target)
            else:
                continue
            for place, code in enumerate(pair):
                named = tenant, code
                first[named] = min((seq, place), first.get(named, (seq, place)))
        return {key: seq for key, (seq, _) in sorted(first.items(), key=lambda item: item[1])}

    @cached_property
    def _members(self) -> dict[EntityKey, list[EntityKey]]:
        """The entities read as each entity, itself first; all in order of first event."""
        members: dict[EntityKey, list[EntityKey]] = {}
        for key in self._first_seqs:
            root = key[0], self._facts.roles.root(*key)
            members.setdefault(root, [root])
            if key != root:
                members[root].append(key)
        return members

    def _keys(self, code: int) -> dict[EntityKey, _Moment]:
        """Return the entity with a name in each tenant, and its first mention."""
        named = self._facts.first_named(code)
        moments: dict[EntityKey, _Moment] = {(tenant, code): when for tenant, when in named.items()}
        for act in self._facts.acts_naming(code):
            if self._names(act):
                key = (act.tenant, code)
                moment = (act.seq, int(act.subject != code))
                moments[key] = min(moment, moments.get(key, _NEVER))
        return moments

    def _names(self, act: ActRow) -> bool:
        """Return whether an act names entities: no alias, and no merge or split that ended."""
        return act.kind == Act.ENTITY or (
            act.kind != Act.ALIAS and self._facts.roles.holds(act.seq)
        )

    def has(self, name: str) -> bool:
        """Return whether an event names an entity so. Cost: the events up to the first match."""
        code = self._columns.strings.find(name)
        if code is None:
            return False
        return bool(self._facts.first_named(code)) or any(
            map(self._names, self._facts.acts_naming(code))
        )

    def _read_as(self, root: EntityKey) -> dict[EntityKey, _Moment]:
        """Return the first mention of each entity that is read as ``root``, root included."""
        moments: dict[EntityKey, _Moment] = {}
        for code in self._facts.roles.names_of(*root):
            moment = self._keys(code).get((root[0], code))
            if moment is not None:
                moments[root[0], code] = moment
        return moments

    def _root(self, key: EntityKey) -> EntityKey:
        return key[0], self._facts.roles.root(*key)

    def _named(self, folded: str, codes: Iterable[int]) -> list[EntityKey]:
        """Return the roots of the entities with the codes of names, or with a folded alias.

        In order of their first event.
        """
        keys = {key for name_code in codes for key in self._keys(name_code)}
        return self._roots(keys.union(self._with_alias(folded)))

    def _with_alias(self, folded: str) -> set[EntityKey]:
        if not self._columns.acts.any_aliases:
            return set()
        alias = self._columns.strings.find(folded) if folded else None
        acts = () if alias is None else self._facts.acts_of_alias(alias)
        return {(act.tenant, act.subject) for act in acts}

    def of_alias(self, name: str) -> list[EntityKey]:
        """Return the roots of the entities with an alias, in order of their first event."""
        if not self._facts.any_aliases:
            return []
        return self._roots(self._with_alias(folded_name(name)))

    def name_of(self, key: EntityKey) -> str:
        """Return the name of an entity."""
        return self._columns.strings.text(key[1])

    def denoted(self, name: str) -> list[EntityKey]:
        """Return the entity that a name denotes where one is meant: by its exact name, or an alias.

        Several, if the alias is of several entities of the tenant that named one first.
        """
        key = self.key_of(name)
        if key is not None:
            return [key]
        keys = self.of_alias(name)
        return [key for key in keys if key[0] == keys[0][0]]

    def _roots(self, keys: Collection[EntityKey]) -> list[EntityKey]:
        """Return the roots of entities, in order of their first event."""
        roots = {self._root(key) for key in keys}
        if len(roots) < 2:
            return list(roots)
        return sorted(roots, key=lambda root: min(self._read_as(root).values(), default=_NEVER))

    def resolve(self, name: str) -> list[str]:
        """Return the names of the entities that a name or alias denotes, by first event."""
        strings = self._columns.strings
        folded, code = folded_name(name), strings.find(name)
        codes = set(self._columns.folded_names.find(folded)) if folded else set[int]()
        if code is not None:
            codes.add(code)
        roots = self._named(folded, codes)
        return list(dict.fromkeys(strings.text(code) for _, code in roots))

    def entities_in(self, words: Sequence[str]) -> list[tuple[int, str]]:
        """Return the entities that folded words name, in order of the words, each with its tenant.

        The longest match wins. A stop word alone names no entity, unless all words are stop words.
        Cost: a look-up for each run of up to six words.
        """
        matches: dict[tuple[int, str], None] = {}
        empty: set[str] = set()
        encoded = [*map(str.encode, words)]
        for word, term in zip(words, terms_of(encoded), strict=True):
            if term is None:
                empty.add(word)
        if empty == set(words):
            empty.clear()
        # Most runs of words name nothing: one look-up decides.
        find, any_aliases = self._columns.folded_names.find, self._columns.acts.any_aliases
        start = 0
        while start < len(words):
            for size in range(min(_NAME_WORDS_MAX, len(words) - start), 0, -1):
                if size == 1 and words[start] in empty:
                    continue
                folded = " ".join(words[start : start + size])
                codes = find(folded)
                roots = self._named(folded, codes) if codes or any_aliases else ()
                if roots:
                    text = self._columns.strings.text
                    matches.update(((tenant, text(code)), None) for tenant, code in roots)
                    start += size
                    break
            else:
                start += 1
        return list(matches)

    def find(self, name: str) -> EntityRow | None:
        """Return an entity by its exact name, or by the exact name of an entity merged into it."""
        key = self.key_of(name)
        return None if key is None else self.row(key)

    def key_of(self, name: str) -> EntityKey | None:
        """Return the key of an entity as read, by its exact name or that of a merged entity."""
        code = self._columns.strings.find(name)
        keys = {} if code is None else self._keys(code)
        return self._root(min(keys, key=keys.__getitem__)) if keys else None

    def first_events(self, root: EntityKey) -> dict[EntityKey, int]:
        """Return the first event of an entity and of each entity merged into it, root first."""
        moments = self._read_as(root)
        merged = sorted((key for key in moments if key != root), key=moments.__getitem__)
        return {key: moments[key][0] for key in (root, *merged) if key in moments}

    def all(self) -> Iterator[EntityRow]:
        """Yield the entities in order of first event, without merged entities."""
        for root in self._members:
            yield self.row(root)

    def row(self, root: EntityKey) -> EntityRow:
        """Return an entity by the key of its root."""
        text = self._columns.strings.text
        first_events = self.first_events(root)
        members = [root, *(key for key in first_events if key != root)]
        declarations = [self._declared(key) for key in members]
        kind = next((kind for kind, _ in declarations if kind), 0)
        name = text(root[1])
        rows = {*self._facts.find(name), *self._facts.find(object_=(ObjectKind.ENTITY, name))}
        aliases = (text(code) for _, codes in declarations for code in codes)
        return EntityRow(
            name,
            self._columns.kinds.text(kind),
            tuple(dict.fromkeys(aliases)),
            tuple(text(code) for _, code in members),
            min(first_events.values()),
            len(self._facts.of_tenant(rows, root[0])),
        )

    def _declared(self, key: EntityKey) -> tuple[int, list[int]]:
        """Return the code of an entity's last declared kind, or 0, and its aliases."""
        kind = 0
        aliases = list[int]()
        for act in self._facts.acts_naming(key[1]):
            if (act.tenant, act.subject) == key:
                if act.kind == Act.ENTITY:
                    kind = act.target or kind
                elif act.kind == Act.ALIAS:
                    aliases.append(act.target)
        return kind, aliases


# --- The events of an entity as of any n: those that made its fields, and all that touched it -----


_VERBS: Final = {Act.ENTITY: "named", Act.ALIAS: "named", Act.MERGE: "merged", Act.SPLIT: "split"}
_ENDS: Final = {Act.MERGE: "unmerged", Act.SPLIT: "unsplit"}


class Origin(NamedTuple):
    """The value of a field of an entity, and the seq of the event that made it so."""

    field: str
    value: str
    seq: int


class EntityEvents:
    """The events of one entity at n, within the reader's scope."""

    def __init__(self, facts: FactsAt, key: EntityKey) -> None:
        """Read the events of the entity with a key of `Entities.key_of`."""
        self._facts = facts
        self._columns = facts.facts.columns
        self._root = key
        self._first = Entities(facts).first_events(key)

    def origins(self) -> Iterator[Origin]:
        """Yield name, kind, aliases and merged names, each with the event that set it."""
        text = self._columns.strings.text
        first = self._first.get(self._root, min(self._first.values()))
        yield Origin("name", text(self._root[1]), first)
        kind = next(filter(None, map(self._kind_of, self._first)), None)
        if kind is not None:
            yield kind
        aliases = dict[int, int]()
        for key in self._first:
            for act in self._acts(key):
                if act.kind == Act.ALIAS and (act.tenant, act.subject) == key:
                    aliases.setdefault(act.target, act.seq)
        for alias, seq in aliases.items():
            yield Origin(f"aliases.{text(alias)}", text(alias), seq)
        for key in self._first:
            merge = self._merge_of(key)
            if merge is not None:
                yield Origin(f"names.{text(key[1])}", text(key[1]), merge)

    def acts(self) -> dict[int, str]:
        """Return the seqs of acts on the entity's names, also of ended ones, with a verb each.

        Cost: a pass over the acts, to find the ends of merges and splits.
        """
        acts: dict[int, str] = {}
        kinds: dict[int, int] = {}
        for key in self._first:
            for act in self._acts(key):
                acts[act.seq] = _VERBS[Act(act.kind)]
                kinds[act.seq] = act.kind
        for act in self._facts.acts:
            if act.kind == Act.END and act.number in acts:
                acts[act.seq] = _ENDS[Act(kinds[act.number])]
        return acts

    def rows(self) -> list[int]:
        """Return the rows of facts with the entity as subject or object, also retracted ones."""
        name = self._columns.strings.text(self._root[1])
        as_subject = self._facts.find(name, closed=True, invalid=True)
        entity = ObjectKind.ENTITY, name
        as_object = self._facts.find(object_=entity, closed=True, invalid=True)
        rows = {*as_subject, *as_object}
        return sorted(row for row in rows if self._facts.tenant_of(row) == self._root[0])

    def _acts(self, key: EntityKey) -> Iterator[ActRow]:
        acts = self._facts.acts_naming(key[1])
        return (act for act in acts if act.tenant == key[0])

    def _kind_of(self, key: EntityKey) -> Origin | None:
        """Return the last kind that an event declared for a name, or None."""
        origin = None
        for act in self._acts(key):
            if act.kind == Act.ENTITY and (act.subject, bool(act.target)) == (key[1], True):
                kind = self._columns.kinds.text(act.target) or ""
                # A repeat of the kind changes nothing.
                if origin is None or origin.value != kind:
                    origin = Origin("kind", kind, act.seq)
        return origin

    def _merge_of(self, key: EntityKey) -> int | None:
        """Return the merge that holds and made a name another entity's, or None."""
        merges = [
            act.seq
            for act in self._acts(key)
            if act.kind == Act.MERGE and act.subject == key[1] and self._facts.roles.holds(act.seq)
        ]
        return max(merges, default=None)
