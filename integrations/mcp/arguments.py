"""Arguments of tools and prompts: hand-written structs, and one decoding of what models send.

Owns the conversion from JSON to a struct, by the types of its fields alone:

- An optional argument that is null, empty or blank, or such a text as "null" or "n/a", is
  absent.
- A list (`Ids`, `Names`) is a list, a JSON list in a text, or a text with commas or newlines.
- A number or truth value may be a text, and a text a number or truth value; `Value` keeps the type.

Anything else that the schema excludes is an error. Leaves out the meaning of the values, which the
memory checks.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, NewType, TypeVar, cast, get_type_hints

import msgspec
from msgspec import Meta, Struct

from cerata.engine.errors import InvalidInput

IDS_MAX: Final = 100
"""Ids that a call may name."""

_DIGITS_MAX: Final = 19
"""Digits of the largest seq."""

_ABSENT_WORDS: Final = ("", "null", "none", "nil", "n/a", "undefined", "[]", "{}")
"""Texts that models send for an optional argument without a value."""

_TRUTH_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

Id = NewType("Id", int)
Ids = tuple[Id, ...]
Names = tuple[str, ...]
Value = str | bool | int | float

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

    ids: Ids
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
    tags: Names = ()
    about_time: str | None = None


class AssertArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of assert_fact."""

    subject: str
    predicate: str
    object: Value
    is_entity: bool = True
    valid_from: str | None = None
    valid_to: str | None = None
    evidence: Ids = ()


class CorrectArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of correct."""

    id: Id
    text: str | None = None
    object: Value | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    reason: str | None = None


class ForgetArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of forget."""

    ids: Ids
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
        arguments: The values of the client.
        tool: The name of the tool, for errors.

    Raises:
        InvalidInput: an argument is unknown, missing, empty, or of another type or range.
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
    values: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        value = arguments.get(field.name)
        if not field.required and _is_absent(value):
            continue
        if value is None:
            raise _refused(tool, field.name, f"{tool} needs {field.name}")
        decode = _DECODERS[fields[field.name]]
        if decode in (_text, _value) and isinstance(value, str) and not value.strip():
            raise _refused(tool, field.name, f"{tool} needs {field.name}, which is empty")
        values[field.name] = decode(value, field.name)
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        raise _refused(tool, name, f"{name} is not valid: {what}") from error


def _refused(tool: str, name: str, what: str) -> InvalidInput:
    return InvalidInput(
        what,
        where=f"{tool}, {name}",
        remedy=f"Pass {name} as the schema of {tool} describes it.",
    )


def _is_absent(value: object) -> bool:
    """Return whether a value stands for no value."""
    if isinstance(value, str):
        return value.strip().lower() in _ABSENT_WORDS
    return value is None or value in ([], {})


# --- decoders: they return an impossible value unchanged, and the struct refuses it ---------------


def _text(value: object, _name: str) -> object:
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def _truth(value: object, _name: str) -> object:
    if isinstance(value, str):
        return _TRUTH_WORDS.get(value.strip().lower(), value)
    return bool(value) if value in (0, 1) else value


def _integer(value: object, _name: str) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    digits = value.strip().removesuffix(".0")
    is_number = digits.removeprefix("-").isdecimal() and digits.isascii()
    return int(digits) if is_number and len(digits) <= _DIGITS_MAX else value


def _value(value: object, _name: str) -> object:
    return value


def _names(value: object, name: str) -> tuple[object, ...]:
    """Return the texts of a list, each once, in order."""
    texts = (_text(item, name) for item in _items(value, ",\n"))
    return tuple(dict.fromkeys(_checked(text, name) for text in texts if not _is_absent(text)))


def _checked(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(
            f"Each item of {name} must be a text, not {text!r:.60}",
            where=name,
            remedy=f"Pass {name} as a flat list of texts, or as a text such as a,b.",
        )
    return text.strip()


def _ids(value: object, name: str) -> tuple[int, ...]:
    """Return the ids of a list, each once, in order."""
    items = [item for item in _items(value, ", \t\r\n") if not _is_absent(item)]
    if not 0 < len(items) <= IDS_MAX:
        fault = f"{len(items):,} ids, and at most {IDS_MAX:,}" if items else "no id"
        raise InvalidInput(f"{name} has {fault}", where=name, remedy="Pass ids such as 12,15.")
    return tuple(dict.fromkeys(id_of(_text(_integer(item, name), name), name) for item in items))


def _id(value: object, name: str) -> int:
    ids = _ids(value, name)
    if len(ids) != 1:
        raise InvalidInput(
            f"{name} is a single id, not {len(ids):,}", where=name, remedy="Pass one id."
        )
    return ids[0]


def _items(value: object, separators: str) -> Iterable[object]:
    """Return the items of a list, of a JSON list in a text, or of a text with separators."""
    if isinstance(value, list | tuple):
        return cast("Iterable[object]", value)
    if not isinstance(value, str):
        return [value]
    text = value.strip()
    if text[:1] == "[" and text[-1:] == "]":
        try:
            return cast("list[object]", json.loads(text))
        except (ValueError, RecursionError):
            # A list of another language, such as ['a', 'b'].
            text = text[1:-1]
    for separator in separators:
        text = text.replace(separator, "\n")
    return [_unquoted(item.strip()) for item in text.split("\n")]


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


_DECODERS: Final[Mapping[Any, Callable[[object, str], object]]] = {
    **dict.fromkeys((str, str | None), _text),
    **dict.fromkeys((Value, Value | None), _value),
    bool: _truth,
    int: _integer,
    Id: _id,
    Ids: _ids,
    Names: _names,
}
"""The decoder of each type of field: a field of another type fails the first call."""


def id_of(word: object, name: str) -> int:
    """Return the id that a word names, written 12 or #12. Raises `InvalidInput`."""
    digits = word.strip().removeprefix("#") if isinstance(word, str) else ""
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
