"""Repeats: the events of facts that would add nothing to the state at one n.

Owns the look-up of the fact, declaration, entity or merge that a new event would only repeat, in
exactly the same scope. Leaves out the decision to write (`cerata.memory.facts.commands`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from cerata.engine.events import AssertFact, PutEntity, Scope

from ..columnar.scopes import by_name, scope_text
from ..columnar.times import ENDLESS
from ..fulltext.analyzer import folded_name
from .columns import CONFIDENCE_UNIT, FLAG_FROM_RECORDED, FactBirth
from .entity_resolution import Act
from .objects import TEXT_KINDS, ObjectKind, kind_of_value, number_of, text_of
from .reader import FactsAt

_FEW: Final = 32
"""Up to this many rows with an object, the rows of the subject are not looked up, too."""

_MANY: Final = 16
"""From this many assertions on, their strings are looked up together."""


class Repeats:
    """The facts, declarations, entities and merges that events up to n recorded, in every scope."""

    def __init__(self, facts: FactsAt) -> None:
        """``facts`` has no scope and no labels."""
        self.facts = facts
        self._columns = facts.facts.columns
        self._last_scope: tuple[Scope, int | None] | None = None

    def row(self, scope: Scope, body: AssertFact, now: int) -> int | None:
        """Return the row of the fact that an assertion repeats without adding to it, or None.

        Evidence names frames by their seqs. Cost: a look-up, and the facts with the subject or
        with the object, whichever are fewer.
        """
        known_rows = self.facts.known_rows(self.rows(scope, body))
        row = max(known_rows, default=None)
        if row is None or not self._has_all(row, body) or self._has_moved_on(row, body, now):
            return None
        return row

    def rows(self, scope: Scope, body: AssertFact) -> list[int]:
        """Return the rows of an assertion's scope, triple and stated range, known or not."""
        columns = self._columns
        code = self._scope(scope)
        predicate = columns.predicates.find(body.predicate)
        kind = kind_of_value(body.object_kind, body.object)
        if code is None or predicate is None or kind is None:
            return []
        subject = columns.strings.find(body.subject)
        number = None if subject is None else self._number(kind, body.object)
        if subject is None or number is None:
            return []
        flags = FLAG_FROM_RECORDED if body.valid_from is None else 0
        start = body.valid_from or 0
        end = ENDLESS if body.valid_to is None else body.valid_to
        expected = FactBirth(
            0, 0, code, subject, predicate, kind, number, start, end, 0, 0, 0, flags
        ).identity
        state = self.facts.facts
        return [
            row
            for row in self._rows(subject, number)
            if state.subjects[row] == subject
            and state.objects[row] == number
            and columns.birth(row).identity == expected
        ]

    def stored(self, scope: Scope, bodies: Sequence[AssertFact]) -> list[int]:
        """Return the indexes of the assertions for which `rows` returns rows."""
        if len(bodies) < _MANY:
            return [index for index, body in enumerate(bodies) if self.rows(scope, body)]
        # Most new facts have a new subject or a new object.
        known = self._columns.strings.known({body.subject for body in bodies})
        likely = [index for index, body in enumerate(bodies) if body.subject in known]
        known |= self._columns.strings.known(
            {text for index in likely for text in _texts(bodies[index])} - known
        )
        return [
            index
            for index in likely
            if known.issuperset(_texts(bodies[index])) and self.rows(scope, bodies[index])
        ]

    def may_be_alias(self, name: str) -> bool:
        """Return whether an entity of any scope has a name as an alias."""
        if not self.facts.any_aliases:
            return False
        alias = self._columns.strings.find(folded_name(name))
        return alias is not None and any(True for _ in self.facts.acts_of_alias(alias))

    def is_functional(self, scope: Scope, name: str) -> bool:
        """Return whether a value of a predicate ends when the next begins; unsure is True."""
        predicate = self._columns.predicates.find(name)
        if predicate is None:
            return False
        code = self._scope(scope)
        if code is None:
            # The tenant may have declared the predicate in another scope.
            return True
        return self.facts.roles.is_functional(self._columns.scopes.tenants[code], predicate)

    def related(self, name: str) -> object:
        """Return a key that entities share if a merge or split that holds may join them."""
        roles = self.facts.roles
        code = None if roles.is_plain else self._columns.strings.find(name)
        return name if code is None else roles.related(code)

    def _number(self, kind: ObjectKind, value: object) -> int | None:
        if kind in TEXT_KINDS:
            return self._columns.strings.find(text_of(value))
        return number_of(kind, value)

    def _rows(self, subject: int, number: int) -> list[int]:
        columns = self._columns
        facts = self.facts.facts
        rows = columns.by_object.find(facts.object_numbers, number)
        if len(rows) <= _FEW:
            return rows
        of_subject = columns.by_subject.find(facts.subject_codes, subject)
        if min(len(rows), len(of_subject)) <= _FEW:
            return min(rows, of_subject, key=len)
        common: list[int] = np.intersect1d(rows, of_subject).tolist()
        return common

    def _has_all(self, row: int, body: AssertFact) -> bool:
        """Return whether a fact has all that an assertion states beside the triple."""
        facts = self.facts
        confidence = round(body.confidence * CONFIDENCE_UNIT) / CONFIDENCE_UNIT
        if facts.last_assertion_of(row) != (confidence, body.source):
            return False
        places = {place[:3] for place in facts.evidence_of(row)}
        return all(
            (place.frame, place.start, place.end) in places for place in body.evidence
        ) and not {*body.assumptions}.difference(facts.assumptions_of(row))

    def _has_moved_on(self, row: int, body: AssertFact, now: int) -> bool:
        """Return whether another value has begun since, so that the assertion is a new fact.

        The rule of the fold: `FactFold`.
        """
        facts = self.facts
        state = facts.facts
        tenant = facts.tenant_of(row)
        predicate = state.predicates[row]
        if body.valid_from is not None or not facts.roles.is_functional(tenant, predicate):
            return False
        began = state.starts[row]
        value = state.kinds[row], state.objects[row]
        return any(
            began < state.starts[rival] <= now
            and state.starts[rival] < state.ends[rival]
            and (state.kinds[rival], state.objects[rival]) != value
            for rival in facts.of_tenant(facts.group_of(row), tenant)
        )

    # --- declarations ----------------------------------------------------------------------------

    def declaration(self, scope: Scope, name: str, *, functional: bool) -> int | None:
        """Return the event that declared a predicate so, or None if a repeat has an effect.

        A repeat has none if, for every reader of the scope, the last declaration has this value.
        """
        code = self._scope(scope)
        predicate = self._columns.predicates.find(name)
        if code is None or predicate is None:
            return None
        tenant = self._columns.scopes.tenants[code]
        declared = self.facts.roles.declarations(tenant, predicate)
        return _last_of(code, functional, [(seq, at, bool(value)) for seq, at, value in declared])

    def entity(self, scope: Scope, body: PutEntity) -> int | None:
        """Return the last event that put an entity, or None if a repeat has an effect."""
        columns = self._columns
        code = self._scope(scope)
        name = columns.strings.find(body.entity)
        if code is None or name is None:
            return None
        puts: list[int] = []
        kinds: list[tuple[int, int, str | None]] = []
        aliases: set[int] = set()
        for at, act in self.facts.scoped_acts_naming(name):
            if act.tenant != columns.scopes.tenants[code] or act.subject != name:
                continue
            if act.kind == Act.ENTITY and act.target:
                kinds.append((act.seq, at, columns.kinds.text(act.target)))
            if at == code and act.kind == Act.ENTITY:
                puts.append(act.seq)
            elif at == code and act.kind == Act.ALIAS:
                aliases.add(act.target)
        has_kind = body.kind is None or _last_of(code, body.kind, kinds) is not None
        has_aliases = all(columns.strings.find(alias) in aliases for alias in body.aliases)
        return puts[-1] if puts and has_kind and has_aliases else None

    def merge(self, scope: Scope, entity: str, into: str) -> int | None:
        """Return the merge that holds of an entity into another, or None."""
        code = self._scope(scope)
        source = self._columns.strings.find(entity)
        target = self._columns.strings.find(into)
        if code is None or source is None or target is None:
            return None
        tenant = self._columns.scopes.tenants[code]
        return self.facts.roles.merge_into(tenant, source, target, code)

    def _scope(self, scope: Scope) -> int | None:
        # The facts of a call have one scope. Threads share this, so read it once.
        last = self._last_scope
        if last is None or last[0] is not scope:
            self._last_scope = last = scope, self._columns.scopes.find(scope_text(by_name(scope)))
        return last[1]


def _texts(body: AssertFact) -> tuple[str, ...]:
    """Return the strings that a row of an assertion has among `FactColumns.strings`."""
    kind = kind_of_value(body.object_kind, body.object)
    return (body.subject, text_of(body.object)) if kind in TEXT_KINDS else (body.subject,)


def _last_of(scope: int, value: object, items: Sequence[tuple[int, int, object]]) -> int | None:
    """Return the last seq of a scope in (seq, scope, value), if no later item has another value."""
    for seq, at, stated in reversed(items):
        if stated != value:
            return None
        if at == scope:
            return seq
    return None
