"""Arguments of tools and prompts: types, defaults and lists, checked by hand-written structs.

Owns the conversion from JSON to a struct for each tool. Numbers and truth values may be texts,
and ids numbers, because clients change types; anything else that the schema excludes is an error.
Leaves out the meaning of the values, which the memory checks.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Final, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from cerata.engine.errors import InvalidInput

IDS_MAX: Final = 100
"""Ids that a call may name."""

_DIGITS_MAX: Final = 19
"""Digits of the largest seq."""

_Limit = Annotated[int, Meta(ge=1, le=100)]


class RecallArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of recall."""

    query: str
    max_tokens: Annotated[int, Meta(ge=100, le=8000)] = 1500
    at: str | None = None
    valid_at: str | None = None
    where: str | None = None


class ShowArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of show."""

    ids: str
    history: bool = False
    at: str | None = None


class FactsArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of facts."""

    subject: str | None = None
    predicate: str | None = None
    question: str | None = None
    at: str | None = None
    valid_at: str | None = None
    limit: _Limit = 20


class ChangesArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of changes."""

    since: str
    until: str = "HEAD"
    limit: _Limit = 20


class RememberArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of remember."""

    text: str
    tags: str | None = None
    about_time: str | None = None


class AssertArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of assert_fact."""

    subject: str
    predicate: str
    object: str
    is_entity: bool = True
    valid_from: str | None = None
    valid_to: str | None = None
    evidence: str | None = None


class CorrectArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of correct."""

    id: str
    text: str | None = None
    object: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    reason: str | None = None


class ForgetArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of forget."""

    ids: str
    reason: str | None = None


class TopicArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of the prompt recall."""

    topic: str


class SinceArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of the prompt what_changed."""

    since: str


_Arguments = TypeVar("_Arguments", bound=Struct)


def converted(kind: type[_Arguments], arguments: Mapping[str, object], tool: str) -> _Arguments:
    """Return the arguments of a call as a struct.

    Args:
        kind: The struct of the tool.
        arguments: The values of the client; null counts as absent.
        tool: The name of the tool, for errors.

    Raises:
        InvalidInput: an argument is unknown, missing, or of another type or range.
    """
    fields = get_type_hints(kind)
    unknown = next((name for name in arguments if name not in fields), None)
    if unknown is not None:
        near = get_close_matches(unknown, list(fields), n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(
            f"{tool} has no argument {unknown!r:.60}",
            where=tool,
            remedy=f"{hint}Pass only {', '.join(fields)}.",
        )
    values = {
        name: str(value) if _is_number_for_text(value, fields[name]) else value
        for name, value in arguments.items()
        if value is not None
    }
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        missing = re.fullmatch(r"Object missing required field `(\w+)`", what)
        name = missing[1] if missing else place.rstrip("`")
        raise InvalidInput(
            f"{tool} needs {name}" if missing else f"{name} is not valid: {what}",
            where=f"{tool}, {name}",
            remedy=f"Pass {name} as the schema of {tool} describes it.",
        ) from error


def _is_number_for_text(value: object, kind: object) -> bool:
    """Return whether a client sent a number, such as an event or id, for an argument of text."""
    return type(value) is int and kind in (str, str | None)


def ids_of(text: str, name: str) -> list[int]:
    """Return the ids in a text such as "12, #15", each once, in order.

    Args:
        text: Ids with commas or blanks between them.
        name: The argument, for errors.

    Raises:
        InvalidInput: the text has no id, more than 100, or other words.
    """
    words = text.replace(",", " ").split()
    if not 0 < len(words) <= IDS_MAX:
        fault = f"{len(words):,} ids, and at most {IDS_MAX:,}" if words else "no id"
        raise InvalidInput(f"{name} has {fault}", where=name, remedy="Pass ids such as 12,15.")
    return list(dict.fromkeys(id_of(word, name) for word in words))


def id_of(word: str, name: str) -> int:
    """Return the id that a word names, written 12 or #12. Raises `InvalidInput`."""
    digits = word.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX):
        raise InvalidInput(
            f"An id is a number such as 12 or #12, not {word!r:.60}",
            where=name,
            remedy="Pass ids that recall, facts or changes printed.",
        )
    return int(digits)


def basis_of(text: str) -> str:
    """Return a point of the log as `Store.at` takes it; "#12" is event 12."""
    basis = text.strip()
    return basis[1:] if basis[:1] == "#" and basis[1:].isdecimal() else basis


def tags_of(text: str | None) -> list[str]:
    """Return the tags in a text such as "a, b", each once."""
    tags = (tag.strip() for tag in (text or "").split(","))
    return list(dict.fromkeys(tag for tag in tags if tag))
