"""The lines of ``cerata-events/1``: an object a line, its type in ``type`` (docs/interchange.md).

Owns the fields and their limits. An importer reads ``header``, ``salt``, ``payload`` or
``commitment``, ``attachments`` and ``chain`` of an event; ``time``, ``scope`` and ``body`` are for
people.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cerata.engine.events import EventHeader

FORMAT: Final = "cerata-events/1"

DIALECT: Final = "cerata-events"
"""The name in `ImportBatch` of imported events. On disk: never change."""

LINE_SIZE_MAX: Final = 8 << 20
"""Most bytes of a line, without its line end."""

PART_SIZE: Final = 1 << 20
"""Most bytes of a payload or attachment in the line of its event; larger ones go into parts."""


class Line(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="type"):
    """Base of all lines; ``type`` is the tag of the class."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the export: a seq, and the chain hash and root after it, in hexadecimal."""

    seq: int
    chain: str
    root: str


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """The point before the first event: its seq, the chain hash, and the peaks of the tree."""

    seq: int
    chain: str
    peaks: tuple[str, ...]


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """The feature bits of the exported file, as its header page has them."""

    read: int = 0
    write: int = 0


class LogLine(Line, frozen=True, kw_only=True, tag="log"):
    """The first line: the log and the exported range. ``crypt`` is null: nothing is encrypted."""

    format: str
    log_id: str
    created: int
    head: Point
    features: Features = Features()
    crypt: dict[str, Any] | None = None
    before: Before | UnsetType = UNSET


class Parts(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Replaces bytes that the lines before hold: their number, and the size of all together."""

    parts: int
    size: int


Item: TypeAlias = bytes | Parts


class PartLine(Line, frozen=True, kw_only=True, tag="part"):
    """A part of a payload, or of the attachment with an ordinal, of event ``seq``."""

    seq: int
    item: Literal["payload"] | int
    part: int
    data: bytes


class EventLine(Line, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag="event"):
    """An event; the last of a batch has the chain hash after it.

    An importer does not use ``time``, ``scope`` and ``body``.
    """

    header: EventHeader
    salt: bytes | None = None
    payload: Item | None = None
    commitment: bytes | None = None
    attachments: tuple[Item, ...] = ()
    chain: str | None = None
    time: str = ""
    scope: dict[str, Any] | None = None
    body: Any = None


class EndLine(Line, frozen=True, kw_only=True, tag="end"):
    """The last line: the number of events, and the chain hash and root after the last."""

    count: int
    chain: str
    root: str


AnyLine: TypeAlias = LogLine | PartLine | EventLine | EndLine
