"""Lines: facts and entities as JSON Lines, an object on each line.

Owns the types of lines of version 1 (the fields are in docs/facts.md), and their encoding. Decoding
checks each line: unknown types, fields and versions, and values of a wrong type, raise errors that
name the place in the line. Leaves out the meaning of lines together (`export`, `importing`).
"""

import base64
import binascii
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cerata.engine.arguments import expect_one_of
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import UNDECODABLE, ScopeValue
from cerata.projections.columnar.times import to_datetime, to_microseconds
from cerata.projections.facts.objects import KIND_NAMES, ObjectKind

from ..values.facts import Entity, FactObject, stored_object

VERSION: Final = 1

LINE_SIZE_MAX: Final = 64 << 20
"""Most bytes of a line, without its line end."""


PlainObject: TypeAlias = str | int | float | bool
"""An object as a line holds it: bytes in Base64, a time as ISO, an entity as its name."""


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of all lines; ``type`` is the tag of the class."""

    version: Literal[1] = VERSION


class ExportLine(Line, frozen=True, kw_only=True, tag="export"):
    """The source of the lines that follow; an import writes no event for it."""

    log_id: str
    basis: int
    recorded: str
    history: bool


class _Scoped(Line, frozen=True, kw_only=True):
    scope: dict[str, ScopeValue] | UnsetType = UNSET


class PredicateLine(_Scoped, frozen=True, kw_only=True, tag="predicate"):
    """A declaration of a predicate as functional or not."""

    predicate: str
    functional: bool


class EntityLine(_Scoped, frozen=True, kw_only=True, tag="entity"):
    """An entity, its kind, and its aliases."""

    entity: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()


class PeriodPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of time; null is open. Without ``start`` the fact begins when it is recorded."""

    start: str | None | UnsetType = UNSET
    end: str | None = None


class EvidencePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in which a fact was read: a content's hash in hex, and UTF-8 bytes [start, end).

    A chunk also has the hash of its document, and its index there. ``uri`` is for people.
    """

    content: str
    document: str | UnsetType = UNSET
    chunk: int | UnsetType = UNSET
    start: int | None = None
    end: int | None = None
    uri: str | UnsetType = UNSET


class FactLine(_Scoped, frozen=True, kw_only=True, tag="fact"):
    """A fact as it was stated; other lines refer to it by ``id``.

    ``known`` is the period in which the source knew the fact, for people; an import ignores it.
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
    """The fact of an earlier line is no longer known; causes of later facts refer to ``id``."""

    id: int
    fact: int


class MergeLine(_Scoped, frozen=True, kw_only=True, tag="merge"):
    """An entity is read as another entity."""

    entity: str
    into: str


class SplitLine(_Scoped, frozen=True, kw_only=True, tag="split"):
    """The facts of earlier lines that name an entity mean another entity."""

    entity: str
    into: str
    facts: tuple[int, ...]


SaidLine: TypeAlias = PredicateLine | EntityLine | FactLine | RetractionLine | MergeLine | SplitLine
"""A line with a statement; each is an event."""

AnyLine: TypeAlias = ExportLine | SaidLine

_KINDS: Final = ("export", "predicate", "entity", "fact", "retraction", "merge", "split")


class _Head(msgspec.Struct, frozen=True):
    """The fields that lines of every version have; decoded first."""

    type: str
    version: int


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def encode(line: AnyLine) -> str:
    """Return a line as JSON, without a line end.

    Raises:
        InvalidInput: the line would be over the limit.
    """
    data = _encode(line)
    if len(data) > LINE_SIZE_MAX:
        raise InvalidInput(
            f"A line would be over the limit of {LINE_SIZE_MAX:,} bytes",
            remedy="Retract the fact, and assert it again with fewer pieces of evidence.",
        )
    return data.decode()


def decode(data: bytes) -> AnyLine:
    """Return a decoded line.

    Raises:
        InvalidInput: the bytes are not a line; the message has the fault and its place.
        Unsupported: the line's version is newer.
    """
    try:
        head = _decode_head(data)
    except UNDECODABLE as error:
        raise _undecodable(error, "Write each line as an object with type and version.") from error
    if head.version > VERSION:
        raise Unsupported(
            f"The line is of version {head.version}, and this Cerata reads {VERSION}",
            remedy="Import the lines with the Cerata that exported them, or a newer version.",
        )
    expect_one_of("type", head.type, _KINDS, "Pass the lines of interchange.export_facts().")
    try:
        return _decoder.decode(data)
    except UNDECODABLE as error:
        raise _undecodable(error, "Use the fields of the type in docs/facts.md.") from error


def _undecodable(error: Exception, remedy: str) -> InvalidInput:
    reason = " ".join(str(error).split())
    return InvalidInput(f"The line cannot be read: {reason:.200}", remedy=remedy)


# --- objects -------------------------------------------------------------------------------------

_PLAIN_TYPES: Final[dict[ObjectKind, type]] = {
    ObjectKind.INTEGER: int,
    ObjectKind.FLOAT: float,
    ObjectKind.BOOL: bool,
}
"""The types of kinds that a line does not write as a string."""


def plain(value: FactObject) -> tuple[str, PlainObject]:
    """Return the kind of an object, and the object as a line holds it."""
    kind, stored = stored_object(value)
    if isinstance(stored, bytes):
        return kind.name.lower(), base64.b64encode(stored).decode()
    if kind is ObjectKind.TIMESTAMP:
        assert isinstance(stored, int)
        return kind.name.lower(), to_datetime(stored).isoformat()
    return kind.name.lower(), stored


def meant(kind_name: str, value: PlainObject) -> FactObject:
    """Return the object of a line.

    Raises:
        InvalidInput: the kind is unknown, or the value is not of the kind.
    """
    expect_one_of(
        "object_kind", kind_name, KIND_NAMES, "Pass the lines of interchange.export_facts()."
    )
    kind = KIND_NAMES[kind_name]
    plain_type = _PLAIN_TYPES.get(kind, str)
    if type(value) is not plain_type and not (plain_type is float and type(value) is int):
        raise InvalidInput(
            f"The object of kind {kind_name} must be a {plain_type.__name__}, "
            f"not {type(value).__name__}",
            remedy=f"Write the object as a {plain_type.__name__}.",
        )
    if not isinstance(value, str):
        return _as_float(value) if plain_type is float else value
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
            "The object is a whole number beyond the range of a float",
            remedy="Write the object as a string.",
        ) from error
