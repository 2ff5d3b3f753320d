"""Memory specs: the declarations of an agent's slots, in four tiers of defaults.

Owns `MemorySpec`, its constructors, and the check that every field is honoured. Leaves out the
results of runs (`run_results`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from cerata.engine.arguments import expect_string
from cerata.engine.errors import InvalidInput, NotFound, value_text
from cerata.engine.json_value import exact

from .text.names import check_name

TIERS: Final = ("working", "session", "episodic", "semantic")
TYPES: Final = ("dict", "list", "value")
TENANTS: Final = ("tenant", "tenant_id")
"""Names that a scope may list: each instance is within a tenant anyway."""

RUN_DIMENSION: Final = "run_id"
SESSION_DIMENSION: Final = "session_id"

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TTL: Final = re.compile(r"([1-9][0-9]{0,9})([smhdw]?)")
_PREFIX: Final = re.compile(r"[$@%&][A-Za-z0-9_]{1,15}")
_MICROSECONDS: Final = 1_000_000
_MB: Final = 1_000_000
_WORKING_TTL: Final = "1h"
_TTLS: Final = {"working": _WORKING_TTL, "session": "24h"}
_SIZE_MAX_MB: Final = 20
_PREFIX_DEFAULT: Final = "$ref"

Schema = type[msgspec.Struct]
Upcasters = Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]


class MemorySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The declaration of a slot of an agent's memory; None takes the default of the tier.

    - ``tier`` is "working", "session", "episodic" or "semantic".
    - ``scope`` has the names whose values tell instances of the slot apart.
    - ``ttl`` is the time from a write to its expiry: a number of seconds, or a number and a unit of
      s, m, h, d or w; None for never. Unset, it is that of the tier.
    - ``type`` is "dict", "list" or "value".
    - ``max_items`` bounds a list: a write beyond it closes the oldest items.
    - ``max_size_mb``, ``auto_capture`` and ``reference_syntax`` are those of a working slot: the
      bytes of the results of a run, in units of 10⁶; True if calls capture their results; and the
      start of references.
    - ``searchable`` is True if search and recall find the values.
    - ``schema`` is a msgspec Struct type, ``schema_version`` its version from 1, and ``upcasters``
      the functions from a version n to n + 1.
    """

    tier: str = "episodic"
    scope: str | tuple[str, ...] = ()
    ttl: str | int | msgspec.UnsetType | None = msgspec.UNSET
    type: str | None = None
    max_items: int | None = None
    max_size_mb: float | None = None
    auto_capture: bool | None = None
    reference_syntax: str | None = None
    searchable: bool | None = None
    schema: Schema | None = None
    schema_version: int | None = None
    upcasters: Upcasters | None = None
    description: str = ""


class WorkingSlot(NamedTuple):
    """The settings of the slot that captures the results of runs."""

    name: str = "scratchpad"
    ttl_us: int | None = _UNITS["h"] * _MICROSECONDS
    size_max: int = _SIZE_MAX_MB * _MB
    captures: bool = True
    prefix: str = _PREFIX_DEFAULT

    def expiry(self, now_us: int) -> int | None:
        """Return the expiry of a result that is captured now; None for never."""
        return None if self.ttl_us is None else now_us + self.ttl_us


def scratchpad(
    ttl: str | int | None = _WORKING_TTL,
    max_size_mb: float = _SIZE_MAX_MB,
    auto_capture: bool = True,  # noqa: FBT001, FBT002 - the field's place in the reference
    **fields: Any,
) -> MemorySpec:
    """Return the spec of a working slot: the results of a run, by reference.

    Args:
        ttl: The time from a result to its expiry; default "1h".
        max_size_mb: The bytes of the results of a run, in units of 10⁶; default 20.
        auto_capture: Capture the results of calls; default True.
        fields: Further fields of `MemorySpec`.
    """
    return _made("working", ttl=ttl, max_size_mb=max_size_mb, auto_capture=auto_capture, **fields)


def conversation_memory(
    scope: str | Collection[str] = "user_id",
    ttl: str | int | None = "30d",
    max_items: int | None = 100,
    **fields: Any,
) -> MemorySpec:
    """Return the spec of an episodic list, such as the messages of a user.

    Args:
        scope: The names that tell instances apart; default "user_id".
        ttl: The time from a write to its expiry; default "30d".
        max_items: The items that an instance keeps; default 100.
        fields: Further fields of `MemorySpec`.
    """
    all_fields = {"type": "list", **fields}
    return _made("episodic", scope=_names(scope), ttl=ttl, max_items=max_items, **all_fields)


def semantic_memory(
    scope: str | Collection[str],
    description: str = "",
    ttl: str | int | None = None,
    max_items: int | None = None,
    **fields: Any,
) -> MemorySpec:
    """Return the spec of a semantic list, which search and recall find.

    Args:
        scope: The names that tell instances apart.
        description: The meaning of the slot; default none.
        ttl: The time from a write to its expiry; default never.
        max_items: The items that an instance keeps; default all.
        fields: Further fields of `MemorySpec`.
    """
    all_fields = {"description": description, "ttl": ttl, "max_items": max_items, **fields}
    return _made("semantic", scope=_names(scope), **all_fields)


def _names(scope: str | Collection[str]) -> str | tuple[str, ...]:
    return scope if isinstance(scope, str) else tuple(scope)


def _made(tier: str, **fields: Any) -> MemorySpec:
    check_fields(fields, "MemorySpec")
    return MemorySpec(tier=tier, **fields)


def check_fields(fields: Collection[str], where: str) -> None:
    """Raise `InvalidInput` if a name is no field of `MemorySpec`; the remedy has the nearest."""
    names = MemorySpec.__struct_fields__
    for name in fields:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Fields are {', '.join(names)}."
            raise InvalidInput(
                f"{name!r:.60} is no field of a MemorySpec", where=where, remedy=remedy
            )


# --- the check of a declaration ------------------------------------------------------------------

_WORKING_ONLY: Final = ("max_size_mb", "auto_capture", "reference_syntax")
_NOT_WORKING: Final = ("searchable", "schema", "schema_version", "upcasters", "max_items")


def declared(slot: str, spec: MemorySpec) -> MemorySpec:
    """Return a spec with the defaults of its tier, after a check of every field.

    Raises:
        InvalidInput: the slot's name, a field or a combination cannot be honoured; the place is
            the field.
    """
    check_name("A slot's name", slot)
    if not isinstance(spec, MemorySpec):
        raise InvalidInput(
            f"The slot {slot!r} is declared by a {type(spec).__name__}, expected a MemorySpec",
            remedy="Pass cerata.MemorySpec(...), scratchpad(), conversation_memory() or "
            "semantic_memory().",
        )
    exactly = {name: exact(getattr(spec, name)) for name in spec.__struct_fields__}
    spec = msgspec.structs.replace(spec, **exactly)
    check = _Check(slot, spec)
    check.one_of("tier", TIERS)
    is_working = spec.tier == "working"
    check.leaves_out(_NOT_WORKING if is_working else _WORKING_ONLY)
    if not is_working:
        check.one_of("type", TYPES, default="dict")
    filled = {
        "scope": check.scope(),
        "ttl": check.ttl(),
        **(_working_fields(check) if is_working else _other_fields(check)),
    }
    check.text("description")
    return msgspec.structs.replace(spec, **filled)


def _working_fields(check: _Check) -> dict[str, object]:
    spec = check.spec
    check.number("max_size_mb")
    check.boolean("auto_capture")
    syntax = spec.reference_syntax
    if syntax is not None and (not isinstance(syntax, str) or not _PREFIX.fullmatch(syntax)):
        check.refuse(
            "reference_syntax",
            f"is {syntax!r:.40}, expected one of $ @ % & and 1 to 15 letters, digits or '_'",
            "Pass a prefix such as '$ref'.",
        )
    return {
        # One mechanism captures the results of calls, so a type has no meaning here.
        "type": None,
        "max_size_mb": _SIZE_MAX_MB if spec.max_size_mb is None else spec.max_size_mb,
        "auto_capture": spec.auto_capture is not False,
        "reference_syntax": _PREFIX_DEFAULT if syntax is None else syntax,
    }


def _other_fields(check: _Check) -> dict[str, object]:
    spec = check.spec
    kind = spec.type
    if kind is None:
        kind = "list" if spec.tier == "semantic" else "dict"
    check.number("max_items")
    if spec.max_items is not None and kind != "list":
        check.refuse("max_items", f"bounds lists, and the type is {kind!r}", "Pass type='list'.")
    check.boolean("searchable")
    check.schema()
    return {
        "type": kind,
        "searchable": spec.tier == "semantic" if spec.searchable is None else spec.searchable,
        "schema_version": spec.schema_version or (1 if spec.schema is not None else None),
    }


class _Check:
    """Checks of the fields of a spec; each raises `InvalidInput` with the field as its place."""

    def __init__(self, slot: str, spec: MemorySpec) -> None:
        self.slot = slot
        self.spec = spec

    def refuse(self, field: str, message: str, remedy: str) -> None:
        raise InvalidInput(f"{field} {message}", where=f"slot {self.slot!r}", remedy=remedy)

    def one_of(self, field: str, values: tuple[str, ...], default: str = "") -> None:
        value = getattr(self.spec, field)
        if (default if value is None else value) in values:
            return
        near = difflib.get_close_matches(value_text(value).strip("'"), values, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Pass one of {', '.join(values)}."
        self.refuse(
            field, f"is {value_text(value):.60}, expected one of {', '.join(values)}", remedy
        )

    def leaves_out(self, fields: tuple[str, ...]) -> None:
        for field in fields:
            if getattr(self.spec, field) is not None:
                self.refuse(
                    field, f"has no meaning in the tier {self.spec.tier!r}", f"Leave out {field}."
                )

    def scope(self) -> tuple[str, ...]:
        """Return the names of the scope, without the tenant and with those of the tier."""
        scope = self.spec.scope
        names = (scope,) if isinstance(scope, str) else tuple(scope)
        for name in names:
            check_name(f"A name of the scope of the slot {self.slot!r}", name)
        if len({*names}) < len(names):
            self.refuse("scope", f"repeats a name: {', '.join(names)}", "List each name once.")
        listed = tuple(name for name in names if name not in TENANTS)
        if self.spec.tier == "working":
            if listed not in ((), (RUN_DIMENSION,)):
                self.refuse("scope", "must be the run in a working slot", "Leave out scope.")
            return (RUN_DIMENSION,)
        if RUN_DIMENSION in listed:
            self.refuse(
                "scope", "names 'run_id', which tells working slots apart alone", "Leave it out."
            )
        if self.spec.tier == "session" and SESSION_DIMENSION not in listed:
            return (SESSION_DIMENSION, *listed)
        return listed

    def ttl(self) -> str | int | None:
        """Return the ttl, or that of the tier."""
        ttl = self.spec.ttl
        if isinstance(ttl, msgspec.UnsetType):
            return _TTLS.get(self.spec.tier)
        if ttl is not None and (
            isinstance(ttl, bool) or _TTL.fullmatch(value_text(ttl).strip("'")) is None
        ):
            self.refuse(
                "ttl",
                f"is {value_text(ttl):.40}, expected a positive whole number and s, m, h, d, w or "
                "no unit",
                "Pass a time such as '30d', or seconds.",
            )
        return ttl

    def number(self, field: str) -> None:
        value = getattr(self.spec, field)
        kinds = (int, float) if field == "max_size_mb" else (int,)
        if value is None or (
            isinstance(value, kinds) and not isinstance(value, bool) and value > 0
        ):
            return
        self.refuse(
            field, f"is {value_text(value):.40}, expected a positive number", f"Pass {field}=20."
        )

    def boolean(self, field: str) -> None:
        value = getattr(self.spec, field)
        if value is not None and not isinstance(value, bool):
            self.refuse(
                field, f"is {value_text(value):.40}, expected True or False", f"Pass {field}=True."
            )

    def text(self, field: str) -> None:
        value = getattr(self.spec, field)
        if not isinstance(value, str):
            self.refuse(
                field, f"is {value_text(value):.40}, expected a text", f"Pass {field}='...'."
            )

    def schema(self) -> None:
        spec = self.spec
        kind: object = spec.schema
        if kind is not None and not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            self.refuse(
                "schema",
                f"is {value_text(kind):.60}, expected a msgspec Struct type",
                "Pass the class.",
            )
        self.number("schema_version")
        if kind is None and (spec.schema_version is not None or spec.upcasters is not None):
            self.refuse("schema", "is needed with schema_version and upcasters", "Pass schema=.")
        for version, upcaster in (spec.upcasters or {}).items():
            if isinstance(version, bool) or not isinstance(version, int) or not callable(upcaster):
                self.refuse(
                    "upcasters",
                    "is not a map from versions to functions",
                    "Pass {1: lambda old: {...}}.",
                )
            if not 1 <= version < (spec.schema_version or 1):
                self.refuse(
                    "upcasters",
                    f"lifts version {version}, and schema_version is {spec.schema_version or 1}",
                    "Raise schema_version with each change of the schema.",
                )


def ttl_us(ttl: str | int | msgspec.UnsetType | None) -> int | None:
    """Return a checked ttl in microseconds; None for never."""
    if ttl is None or isinstance(ttl, msgspec.UnsetType):
        return None
    match = _TTL.fullmatch(str(ttl))
    assert match is not None, "declared() has checked it"
    return int(match[1]) * _UNITS[match[2] or "s"] * _MICROSECONDS


class WorkingSlots(NamedTuple):
    """The working slots of an agent; ``default`` captures the results of calls."""

    default: WorkingSlot
    by_name: Mapping[str, WorkingSlot]

    @property
    def prefix(self) -> str:
        """The start of references."""
        return self.default.prefix

    def named(self, slot: str | None) -> WorkingSlot:
        """Return a working slot, by default that of calls.

        Raises:
            NotFound: the agent has no such working slot; the remedy has the nearest.
        """
        if slot is None:
            return self.default
        expect_string("The name of a slot", slot)
        found = self.by_name.get(slot)
        if found is None:
            near = difflib.get_close_matches(
                value_text(slot).strip("'"), self.by_name, n=1, cutoff=0.0
            )
            raise NotFound(
                f"There is no working slot {slot!r:.60}",
                remedy=f"Pass {near[0]!r}, or write to another slot with run.keep().",
            )
        return found


def working_slots(memory: Mapping[str, MemorySpec]) -> WorkingSlots:
    """Return the working slots of checked specs; without one, the default scratchpad.

    Raises:
        InvalidInput: two working slots capture, or their references begin differently.
    """
    slots = {
        name: WorkingSlot(
            name,
            ttl_us(spec.ttl),
            round((spec.max_size_mb or _SIZE_MAX_MB) * _MB),
            bool(spec.auto_capture),
            spec.reference_syntax or _PREFIX_DEFAULT,
        )
        for name, spec in memory.items()
        if spec.tier == "working"
    }
    if not slots:
        default = WorkingSlot()
        return WorkingSlots(default, {default.name: default})
    capturing = [slot for slot in slots.values() if slot.captures]
    if len(capturing) > 1:
        raise InvalidInput(
            f"The working slots {capturing[0].name!r} and {capturing[1].name!r} both capture "
            "results",
            remedy="Pass auto_capture=False for all but one.",
        )
    prefixes = {slot.prefix for slot in slots.values()}
    if len(prefixes) > 1:
        raise InvalidInput(
            f"Working slots have different references: {', '.join(sorted(prefixes))}",
            remedy="Pass the same reference_syntax for all.",
        )
    return WorkingSlots([*capturing, *slots.values()][0], slots)
