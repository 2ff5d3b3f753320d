"""The events of an entity as of any n: those that made its fields, and all that touched it.

Owns the choice of events for an entity as it is read at n, with the entities merged into it. Leaves
out the events themselves.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from .entities import Entities, EntityKey
from .entity_resolution import Act, ActRow
from .objects import ObjectKind
from .reader import FactsAt

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
