"""Declarations: the slots of an agent in the log, and the scope of their instances.

Owns the event that declares a slot, the changes that are refused, and the values of dimensions.
Leaves out the fields (`spec`) and the values (`slot`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from cerata.engine.errors import Conflict, Corrupt, InvalidInput, NotFound, value_text
from cerata.engine.events import DEFAULT_SCOPE, Draft, Scope, ScopeValue

from .schemas import json_schema
from .slots.events import PutSlot
from .slots.rows import DeclaredSlot
from .spec import MemorySpec, declared
from .text.summaries import canonical

Source = tuple[str, Mapping[str, ScopeValue | None]]
"""The name of a source of dimensions, and its values; None for one that it lacks."""

TENANT: Final = "tenant"
_CODE: Final = ("schema", "upcasters")
"""Fields that are Python objects, which the log does not keep."""

_FIXED: Final = ("tier", "scope", "type")


class Declaration(NamedTuple):
    """The spec of a slot, and the JSON Schema of its values if this program lacks their class."""

    spec: MemorySpec
    json_schema: str | None = None


def spec_text(spec: MemorySpec) -> str:
    """Return the canonical JSON of a checked spec, without schema and upcasters."""
    fields = msgspec.to_builtins(msgspec.structs.replace(spec, schema=None, upcasters=None))
    return canonical({name: fields[name] for name in fields if name not in _CODE}, "A MemorySpec")


def spec_of(row: DeclaredSlot) -> MemorySpec:
    """Return the spec that an event declares.

    Raises:
        Corrupt: the declaration cannot be read.
    """
    try:
        # A schema_version without its class is valid here alone.
        return msgspec.json.decode(row.spec, type=MemorySpec)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(
            f"The declaration of slot {row.agent}/{row.slot} cannot be read: {error}",
            where=f"event {row.seq:,}",
            remedy="Declare the slot again.",
        ) from error


def new_declarations(
    agent: str, memory: Mapping[str, MemorySpec], rows: Iterable[DeclaredSlot], scope: Scope
) -> list[Draft]:
    """Return the events that declare new and changed slots.

    Args:
        agent: The name of the agent.
        memory: The checked specs, by slot.
        rows: The declared slots of the agent.
        scope: The scope of the agent.

    Raises:
        Conflict: tier, scope or type changed, or the schema without its version.
    """
    present = {row.slot: row for row in rows}
    drafts: list[Draft] = []
    for slot, spec in memory.items():
        row, text, schema = present.get(slot), spec_text(spec), json_schema(spec)
        if row is not None:
            if (row.spec, row.schema) == (text, schema):
                continue
            _check_change(slot, spec_of(row), spec, is_schema_new=row.schema != schema)
        drafts.append(Draft(PutSlot(agent=agent, slot=slot, spec=text, schema=schema), scope))
    return drafts


def _check_change(slot: str, old: MemorySpec, new: MemorySpec, *, is_schema_new: bool) -> None:
    for field in _FIXED:
        before, after = getattr(old, field), getattr(new, field)
        if _plain(before) != _plain(after):
            raise Conflict(
                f"The slot {slot!r} has {field} {before!r}, and the new declaration {after!r}",
                remedy="Declare another slot, since stored values follow the old declaration.",
            )
    if is_schema_new and (old.schema_version or 0) >= (new.schema_version or 0):
        raise Conflict(
            f"The schema of the slot {slot!r} changed, and schema_version is "
            f"{new.schema_version or 'missing'} (before: {old.schema_version})",
            remedy="Raise schema_version, and pass an upcaster for the old version.",
        )


def _plain(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def checked_memory(memory: Mapping[str, MemorySpec] | None) -> dict[str, MemorySpec]:
    """Return the specs of an agent with the defaults of their tiers. Raises `InvalidInput`."""
    if memory is not None and not isinstance(memory, Mapping):
        raise InvalidInput(
            f"memory is a {type(memory).__name__}, expected a map from slots to MemorySpecs",
            remedy="Pass memory={'notes': cerata.semantic_memory('user_id')}.",
        )
    return {slot: declared(slot, spec) for slot, spec in (memory or {}).items()}


def slot_named(slot: str, declared: Mapping[str, Declaration], agent: str) -> Declaration:
    """Return the declaration of a slot that has values.

    Raises:
        NotFound: the agent has no such slot; the remedy has the nearest.
        InvalidInput: the slot is a working slot.
    """
    declaration = declared.get(slot)
    if declaration is None:
        near = difflib.get_close_matches(value_text(slot).strip("'"), declared, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else "Declare it with Agent(memory={...})."
        raise NotFound(
            f"There is no slot {value_text(slot):.60}", where=f"agent {agent!r}", remedy=advice
        )
    if declaration.spec.tier == "working":
        raise InvalidInput(
            f"The slot {slot!r} is a working slot, which has the results of runs",
            remedy="Read run.refs(), or capture a value with run.put().",
        )
    return declaration


class Dimensions:
    """The scope names of an instance and their values, from several sources in order."""

    def __init__(self, scope: Scope | None) -> None:
        """Begin with the scope of the store, or that of the tenant "default"."""
        self._fixed = dict(DEFAULT_SCOPE if scope is None else scope)
        self._values: dict[str, ScopeValue] = dict(self._fixed)

    def add(self, source: str, values: Mapping[str, ScopeValue | None]) -> None:
        """Add the values of a source; None adds nothing.

        Raises:
            InvalidInput: a value differs from that of an earlier source.
        """
        for name, value in values.items():
            if value is None:
                continue
            before = self._values.setdefault(name, value)
            if before != value:
                raise InvalidInput(
                    f"The {source} sets {name!r} to {value!r:.60}, and it is {before!r:.60}",
                    remedy=f"Leave out {name}, or use a store of another scope.",
                )

    def scope_of(self, slot: str, spec: MemorySpec, passed: Mapping[str, Any]) -> Scope:
        """Return the scope of an instance.

        Args:
            slot: The slot.
            spec: Its checked spec.
            passed: The dimensions of the call.

        Raises:
            InvalidInput: a dimension is missing, empty, not listed by the slot, or changed; or the
                slot does not list a name of the store's scope.
        """
        names = cast("tuple[str, ...]", spec.scope)
        for name in passed:
            if name not in names:
                raise InvalidInput(
                    f"{name!r} is no dimension of the slot {slot!r}",
                    remedy=f"Its dimensions are {', '.join(names) or 'none'}.",
                )
        self.add("call", passed)
        unlisted = [name for name in self._fixed if name != TENANT and name not in names]
        if unlisted and spec.tier in ("episodic", "semantic"):
            raise InvalidInput(
                f"The store's scope has {unlisted[0]!r}, which the slot {slot!r} does not list, so "
                f"its values could not be as wide as declared",
                remedy=f"Add {unlisted[0]!r} to the slot's scope, or open a wider store.",
            )
        scope = dict(self._fixed)
        for name in names:
            value = self._values.get(name)
            if value is None or value == "":
                raise InvalidInput(
                    f"The slot {slot!r} needs a value of {name!r}",
                    remedy=f"Pass {name}=..., or use the slot of a session or store that has it.",
                )
            scope[name] = value
        return tuple(scope.items())
