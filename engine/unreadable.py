"""Items that cannot be read: left out of a list, which goes on, and named by a warning.

Owns the one rule for readers of many items. A reader of a single item raises the error.
"""

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from .errors import CerataError, Corrupt, InvalidInput, UnreadableItem, Unsupported

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")

UNREADABLE: Final = (Corrupt, InvalidInput, Unsupported)
"""The errors of an item; a closed handle or a failed disk is one of the whole list."""


def readable(
    items: Iterable[_Item], read: Callable[[_Item], _Value], place: Callable[[_Item], str]
) -> Iterator[_Value]:
    """Yield the values of items; name each unreadable item by a warning `UnreadableItem`.

    Args:
        items: The items, such as ids.
        read: Returns the value of an item.
        place: Returns the name of an item, for a person.
    """
    for item in items:
        try:
            value = read(item)
        except UNREADABLE as error:
            leave_out(place(item), error)
        else:
            yield value


_EXACT: Final = ContextVar("cerata.exact", default=False)


@contextmanager
def exactly() -> Generator[None]:
    """Let the reads within stop at an unreadable item, with its error: for repetitions."""
    token = _EXACT.set(True)
    try:
        yield
    finally:
        _EXACT.reset(token)


def leave_out(place: str, error: CerataError) -> None:
    """Warn that an item was left out. Raises the error within `exactly`."""
    if _EXACT.get():
        raise error
    what = f"{place} cannot be read and was left out: {error.what}"
    # The code that iterates is not at a fixed depth.
    warnings.warn(UnreadableItem(what, where=error.where, remedy=error.remedy), stacklevel=3)


def frame_place(number: int) -> str:
    """Return the name of a frame."""
    return f"Frame {number:,}"


def event_place(number: int) -> str:
    """Return the name of an event."""
    return f"Event {number:,}"
