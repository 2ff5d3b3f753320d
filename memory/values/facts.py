"""The values of facts and entities that callers get: frozen, typed, plain through ``to_dict()``.

Owns the types, ids and objects of facts. Leaves out the reads (`facts.reads`) and the writes
(`facts.commands`).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from cerata.engine.arguments import expect_integer, expect_text, is_unicode, wrong_type
from cerata.engine.draft_validation import check_not_pending
from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.projections.columnar.times import (
    BEGINNING,
    ENDLESS,
    Interval,
    to_datetime,
    to_microseconds,
)
from cerata.projections.facts.objects import ObjectKind, Standing

from .frames import Receipt, id_in

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue, ScopeValue

    from .pending_ids import PendingIds


@dataclass(frozen=True, slots=True)
class Entity:
    """A reference to an entity by its name, as the object of a fact: ``Entity("paris")``."""

    name: str

    def __str__(self) -> str:
        return self.name


_ENTITY: Final = int(ObjectKind.ENTITY)
_TIMESTAMP: Final = int(ObjectKind.TIMESTAMP)

StoredObject: TypeAlias = str | int | float | bool | bytes
"""An object as an event holds it."""

FactObject: TypeAlias = str | int | float | bool | bytes | datetime | Entity
"""An object. A str is a string; a reference to an entity is an `Entity`."""

OPEN: Final = "open"
"""Marks a side of a period without an end."""

Source: TypeAlias = Literal["observed", "inferred", "hypothesis", "synthetic"]
SOURCES: Final[tuple[Source, ...]] = ("observed", "inferred", "hypothesis", "synthetic")


@dataclass(frozen=True, slots=True)
class Period(PlainValue):
    """A half-open range of time, [start, end). None is no beginning, or no end."""

    start: datetime | None
    end: datetime | None

    def __contains__(self, when: date | str) -> bool:
        return self.interval.contains(to_microseconds(when))

    def __str__(self) -> str:
        start = OPEN if self.start is None else self.start.isoformat()
        return f"[{start}, {OPEN if self.end is None else self.end.isoformat()})"

    @property
    def interval(self) -> Interval:
        """The period in microseconds since 1970 UTC."""
        return Interval(
            BEGINNING if self.start is None else to_microseconds(self.start),
            ENDLESS if self.end is None else to_microseconds(self.end),
        )


def period_of(interval: Interval) -> Period:
    """Return a range of microseconds as a period."""
    start, end = interval
    return Period(
        None if start <= BEGINNING else to_datetime(start),
        None if end >= ENDLESS else to_datetime(end),
    )


@dataclass(frozen=True, slots=True)
class FactEvidence(PlainValue):
    """A place in which a fact was read: a frame, and UTF-8 bytes [start, end) of its text.

    - Without ``start`` and ``end`` the place is the whole frame.
    - ``quote`` is 16 bytes of BLAKE3 over these bytes at the assertion, keyed by the salt of the
      frame's event.
    """

    frame: int
    start: int | None = None
    end: int | None = None
    quote: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class EvidenceText(PlainValue):
    """The text of evidence as of a view: the bytes of its range, or the frame's whole text.

    - ``text`` is None if the frame's content was erased.
    - ``is_intact`` is True if the bytes equal those at the assertion; None without their hash.
    - ``is_current`` is False if the frame was deleted or superseded since.
    """

    place: FactEvidence
    text: str | None
    source: str
    is_intact: bool | None
    is_current: bool

    def to_dict(self) -> dict[str, JsonValue]:
        return {**self.place.to_dict(), **plain_fields(self, self.__match_args__[1:])}


@dataclass(frozen=True, slots=True)
class Fact(PlainValue):
    """A fact as of a view.

    - ``stated`` is the period given by the caller.
    - ``valid`` is the same period, cut at the start of fact ``ended_by`` if a later value of a
      functional predicate ends this value.
    - ``known`` lasts from the assertion to the retraction by event ``retracted_by``.
    - ``confidence`` and ``source`` are those stated last.
    - ``is_ended`` is True if ``valid`` ended by the view's ``now``, or by the ``valid_at`` of the
      read; it does not enter comparisons.
    """

    id: int
    subject: str
    predicate: str
    object: FactObject
    valid: Period
    stated: Period
    known: Period
    confidence: float
    source: str
    evidence: tuple[FactEvidence, ...]
    assumptions: tuple[str, ...]
    depth: int
    """0, or the depth of the causing fact plus 1."""
    scope: Mapping[str, ScopeValue]
    ended_by: int | None
    retracted_by: int | None
    standing: Standing = Standing.STANDS
    """The standing by the fact's links; invalid if the fact is retracted."""
    is_ended: bool = field(default=False, compare=False)

    @property
    def is_known(self) -> bool:
        """True unless the fact is retracted."""
        return self.retracted_by is None

    def __str__(self) -> str:
        return f"{self.subject} · {self.predicate} · {plain_object(self.object)}"

    def to_dict(self) -> dict[str, JsonValue]:
        kind, _ = stored_object(self.object)
        objects = {"object": plain_object(self.object), "object_kind": kind.name.lower()}
        names = self.__match_args__
        at = names.index("object")
        return {**plain_fields(self, names[:at]), **objects, **plain_fields(self, names[at + 1 :])}


@dataclass(frozen=True, slots=True)
class Contradiction(PlainValue):
    """Two facts that cannot both be true during ``period``; ``first`` was asserted first.

    ``link`` is the id of the link "contradicts" between them, if a link is the reason.
    """

    first: Fact
    second: Fact
    period: Period
    link: int | None = None


@dataclass(frozen=True, slots=True)
class EntityInfo(PlainValue):
    """An entity as of a view.

    - ``names`` are the entity's name, then the names of the entities merged into it.
    - ``first_seen`` is the seq of the first event with any of these names.
    - ``mentions`` counts the known facts with the entity as subject or object.
    """

    name: str
    kind: str | None
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    first_seen: int
    mentions: int


FactId: TypeAlias = int | Receipt | Fact
"""A fact, its id, or the receipt of its assertion."""


def fact_id(value: FactId, inside: PendingIds | None = None) -> int:
    """Return the id of a fact; ``inside`` are the ids of the reader's transaction.

    Raises:
        InvalidInput: the value is no fact, id or receipt.
        NotFound: the value is the receipt of a transaction that wrote nothing.
    """
    if isinstance(value, Receipt):
        return id_in(value, inside)
    if isinstance(value, Fact):
        return exact(value.id)
    remedy = "Pass the fact's id, its receipt, or the fact."
    return expect_integer("A fact", value, "an id, a receipt or a Fact", remedy)


_OBJECT_TYPES: Final = frozenset((str, int, float, bool, bytes, datetime, Entity))


def _exact_object(value: FactObject) -> FactObject:
    check_not_pending("The object", value)
    return exact(value)


def stored_object(value: FactObject) -> tuple[ObjectKind, StoredObject]:
    """Return the kind of an object, and the object as an event holds it.

    A value of a subclass (an enum's, numpy's) becomes the plain value.

    Raises:
        InvalidInput: the object's type is not in `FactObject`, or the value is out of range.
    """
    if type(value) not in _OBJECT_TYPES:
        value = _exact_object(value)
    if isinstance(value, bool):
        return ObjectKind.BOOL, value
    if isinstance(value, Entity):
        return ObjectKind.ENTITY, checked_name("An entity's name", value.name)
    if isinstance(value, str):
        if not is_unicode(value):
            raise InvalidInput(
                f"The object is not valid Unicode: {value!r}",
                remedy="Decode it with errors='replace', or pass bytes.",
            )
        return ObjectKind.STRING, value
    if isinstance(value, datetime):
        return ObjectKind.TIMESTAMP, to_microseconds(value)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InvalidInput(
                f"The object, of {value.bit_length():,} bits, does not fit in 64 bits",
                remedy="Pass the number as a string.",
            )
        return ObjectKind.INTEGER, value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(
                f"The object must be a finite number, not {value}", remedy="Pass a finite number."
            )
        return ObjectKind.FLOAT, value + 0.0
    if isinstance(value, bytes):
        return ObjectKind.BYTES, bytes(value)
    remedy = "Pass a str, int, float, bool, bytes, aware datetime, or cerata.Entity."
    raise wrong_type("object", "a plain value or Entity", value, remedy)


def shown_object(kind: int, value: StoredObject) -> FactObject:
    """Return the object of a kind and a stored value."""
    if kind == _ENTITY:
        assert isinstance(value, str)
        return Entity(value)
    if kind == _TIMESTAMP:
        assert isinstance(value, int)
        return to_datetime(value)
    return value


def plain_object(value: FactObject) -> JsonValue:
    """Return an object as a JSON value: bytes in Base64, a time as ISO, an entity as its name."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    return value.name if isinstance(value, Entity) else value


def entity_name(role: str, value: object) -> str:
    """Return the name of an entity, from its name or an `Entity`. Raises `InvalidInput`."""
    if type(value) is str and value.isascii() and value and not value.isspace():
        return value
    return checked_name(role, value.name if isinstance(value, Entity) else value)


def checked_name(role: str, value: object) -> str:
    """Return a name that can be stored; ``role`` begins messages. Raises `InvalidInput`."""
    if type(value) is str and value.isascii() and value and not value.isspace():
        return value
    name = expect_text(role, value)
    if not name.strip():
        raise InvalidInput(f"{role} is empty", remedy="Pass a name.")
    return str.__str__(name)
