"""Checks of a caller's arguments, shared by all rooms.

Each raises `InvalidInput`, and formats a message only then. Leaves out the limits of stored values
(`draft_validation`).
"""

import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager
from types import UnionType
from typing import TypeGuard

from .errors import InvalidInput, value_text
from .json_value import exact, type_name


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a finite number that a float can hold; a bool is not."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    # Not math.isfinite, which raises for an int above every float; NaN fails a comparison.
    return abs(value) <= sys.float_info.max


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def wrong_type(name: str, expected: str, value: object, remedy: str) -> InvalidInput:
    """Return the error of an argument whose type is not the expected type."""
    return InvalidInput(f"{name} must be {expected}, not {type_name(value)}", remedy=remedy)


def expect_type(name: str, value: object, kind: type | UnionType, noun: str, remedy: str) -> None:
    """Refuse a value of another type; ``noun`` names the type, as in "a string"."""
    if not isinstance(value, kind):
        raise wrong_type(name, noun, value, remedy)


def expect_integer(
    name: str, value: object, noun: str = "a number", remedy: str = "Pass a whole number."
) -> int:
    """Return an integer, of the type `int`, or refuse the value; a bool is no integer."""
    number = exact(value)
    if type(number) is not int:
        raise wrong_type(name, noun, value, remedy)
    return number


def expect_positive(name: str, value: object, where: str | None = None) -> int:
    """Return an integer from 1 on, of the type `int`, or refuse the value."""
    number = exact(value)
    if type(number) is not int or number < 1:
        raise InvalidInput(
            f"{name} must be a whole number from 1, not {value_text(value):.60}",
            where=where,
            remedy=f"Pass {name}=1 or more.",
        )
    return number


def expect_bool(name: str, value: object, where: str | None = None) -> bool:
    """Return a bool, of the type `bool`, or refuse the value."""
    flag = exact(value)
    if not isinstance(flag, bool):
        raise InvalidInput(
            f"{name} must be True or False, not {value_text(value):.60}",
            where=where,
            remedy=f"Pass {name}=True or {name}=False.",
        )
    return flag


def expect_string(name: str, value: object) -> str:
    """Return a string, of the type `str`, or refuse the value."""
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise wrong_type(name, "a string", value, "Pass a str.")
    return str.__str__(value)


def exact_string(text: str) -> str:
    """Return a string of the type `str`, which one of a subclass is not.

    The hash and the format of a subclass may differ from those of the string that is stored.
    """
    return text if type(text) is str else str.__str__(text)


def expect_text(name: str, value: object) -> str:
    """Return a string that can be encoded as UTF-8, or refuse the value."""
    if type(value) is str and value.isascii():
        return value
    text = expect_string(name, value)
    if not is_unicode(text):
        raise InvalidInput(
            f"{name} is not valid Unicode: {text!r}", remedy="Decode it with errors='replace'."
        )
    return text


def expect_one_of(name: str, value: object, allowed: Collection[str], remedy: str) -> None:
    """Refuse a value that is none of the allowed."""
    if value not in allowed:
        raise InvalidInput(
            f"{name} must be one of {', '.join(allowed)}, not {value_text(value):.60}",
            remedy=remedy,
        )


@contextmanager
def located(where: str | None) -> Generator[None]:
    """Add a place to the bad input that is raised inside without a place."""
    try:
        yield
    except InvalidInput as error:
        if error.where is not None:
            raise
        raise InvalidInput(error.what, where=where, remedy=error.remedy) from error
