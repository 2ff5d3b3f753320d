"""Lines: what is said of facts and entities as JSON Lines, one object a line, each by itself.

Owns the kinds of lines of version 1, docs/facts.md as types, and their encoding. A line is checked
as it is decoded: unknown kinds, fields and versions, and wrong types, are errors that name the
place in the line. What lines mean together is `fact_export`'s and `fact_import`'s.
"""

import base64
import binascii
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import UNDECODABLE, ScopeValue
from cerata.projections.fact_values import KIND_NAMES, ObjectKind
from cerata.projections.times import to_datetime, to_microseconds

from .fact_values import Entity, FactObject, stored_object

VERSION: Final = 1

LINE_SIZE_MAX: Final = 64 << 20
"""Bytes of one line, its end left out."""


PlainObject: TypeAlias = str | int | float | bool
"""What stands for an object in a line: bytes in Base64, a time as ISO, an entity's name."""


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of every kind of line; ``type`` says which one it is."""

    version: Literal[1] = VERSION


class ExportLine(Line, frozen=True, kw_only=True, tag="export"):
    """Where the lines below are from; an import passes it over."""

    log_id: str
    basis: int
    recorded: str
    history: bool


class _Scoped(Line, frozen=True, kw_only=True):
    scope: dict[str, ScopeValue] | UnsetType = UNSET


class PredicateLine(_Scoped, frozen=True, kw_only=True, tag="predicate"):
    """Whether a predicate has one value at a time."""

    predicate: str
    functional: bool


class EntityLine(_Scoped, frozen=True, kw_only=True, tag="entity"):
    """An entity, its kind, and more names of it."""

    entity: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()


class PeriodPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of time; null is open. Without ``start`` it begins when it is recorded."""

    start: str | None | UnsetType = UNSET
    end: str | None = None


class EvidencePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a fact is said: a content by its hash in hex, and the bytes of its text.

    A chunk is also named by the hash of its document and its index there. ``uri`` is for people.
    """

    content: str
    document: str | UnsetType = UNSET
    chunk: int | UnsetType = UNSET
    start: int | None = None
    end: int | None = None
    uri: str | UnsetType = UNSET


class FactLine(_Scoped, frozen=True, kw_only=True, tag="fact"):
    """A fact as it was stated; ``id`` is what other lines name it by.

    ``known`` is when the source knew it, for people: an import records its own times.
    """

    id: int
    subject: str
    predicate: str
    object: PlainObject
    object_kind: str
    valid: PeriodPart = PeriodPart()
    confidence: float = 1.0
    source: str = "observed"
    evidence: tuple[EvidencePart, ...] = ()
    assumptions: tuple[str, ...] = ()
    because: int | None = None
    known: PeriodPart | UnsetType = UNSET


class RetractionLine(_Scoped, frozen=True, kw_only=True, tag="retraction"):
    """The fact of an earlier line is known no longer; ``id`` is what led to others."""

    id: int
    fact: int


class MergeLine(_Scoped, frozen=True, kw_only=True, tag="merge"):
    """An entity is read as another."""

    entity: str
    into: str


class SplitLine(_Scoped, frozen=True, kw_only=True, tag="split"):
    """Where the facts of earlier lines name an entity they mean another."""

    entity: str
    into: str
    facts: tuple[int, ...]


SaidLine: TypeAlias = PredicateLine | EntityLine | FactLine | RetractionLine | MergeLine | SplitLine
"""A line that says something; each is one event."""

AnyLine: TypeAlias = ExportLine | SaidLine

_KINDS: Final = ("export", "predicate", "entity", "fact", "retraction", "merge", "split")


class _Head(msgspec.Struct, frozen=True):
    """What is looked at first of a line, whatever version it is of."""

    type: str
    version: int


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def encode(line: AnyLine) -> str:
    """Return a line as JSON, without a line end.

    Raises:
        InvalidInput: it would be longer than what can be read.
    """
    data = _encode(line)
    if len(data) > LINE_SIZE_MAX:
        raise InvalidInput(
            f"A line would be over the limit of {LINE_SIZE_MAX:,} bytes",
            remedy="Correct the fact to fewer pieces of evidence.",
        )
    return data.decode()


def decode(data: bytes) -> AnyLine:
    """Return what a line says.

    Raises:
        InvalidInput: it is none; says what is wrong and where in it. Unsupported: its version is
        newer.
    """
    try:
        head = _decode_head(data)
    except UNDECODABLE as error:
        raise _undecodable(error, "Each line is one object with type and version.") from error
    if head.version > VERSION:
        raise Unsupported(
            f"The line is of version {head.version}, and this Cerata reads {VERSION}",
            remedy="Import it with the Cerata that exported it, or a newer one.",
        )
    if head.type not in _KINDS:
        raise InvalidInput(
            f"{head.type!r:.60} is no type of line", remedy=f"There are {', '.join(_KINDS)}."
        )
    try:
        return _decoder.decode(data)
    except UNDECODABLE as error:
        raise _undecodable(error, "docs/facts.md has the fields of each type.") from error


def _undecodable(error: Exception, remedy: str) -> InvalidInput:
    said = " ".join(str(error).split())
    return InvalidInput(f"The line cannot be read: {said:.200}", remedy=remedy)


# --- objects -------------------------------------------------------------------------------------

_PLAIN_TYPES: Final[dict[ObjectKind, type]] = {
    ObjectKind.INTEGER: int,
    ObjectKind.FLOAT: float,
    ObjectKind.BOOL: bool,
}
"""How kinds are written that are no strings."""


def plain(value: FactObject) -> tuple[str, PlainObject]:
    """Return the kind of an object and what stands for it in a line."""
    kind, stored = stored_object(value)
    if isinstance(stored, bytes):
        return kind.name.lower(), base64.b64encode(stored).decode()
    if kind is ObjectKind.TIMESTAMP:
        assert isinstance(stored, int)
        return kind.name.lower(), to_datetime(stored).isoformat()
    return kind.name.lower(), stored


def meant(kind_name: str, value: PlainObject) -> FactObject:
    """Return the object that a line has.

    Raises:
        InvalidInput: kind and value do not go together.
    """
    kind = KIND_NAMES.get(kind_name)
    if kind is None:
        raise InvalidInput(
            f"{kind_name!r:.60} is no kind of object", remedy=f"There are {', '.join(KIND_NAMES)}."
        )
    wanted = _PLAIN_TYPES.get(kind, str)
    if type(value) is not wanted and not (wanted is float and type(value) is int):
        raise InvalidInput(
            f"The object of kind {kind_name} is a {type(value).__name__}",
            remedy=f"It is written as a {wanted.__name__}.",
        )
    if not isinstance(value, str):
        return _as_float(value) if wanted is float else value
    if kind is ObjectKind.BYTES:
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(
                f"The object is not Base64: {error}",
                remedy="Encode the bytes with base64.b64encode.",
            ) from error
    if kind is ObjectKind.TIMESTAMP:
        return to_datetime(to_microseconds(value))
    return Entity(value) if kind is ObjectKind.ENTITY else value


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidInput(
            "The object is a whole number that no float reaches", remedy="Give it as a string."
        ) from error
