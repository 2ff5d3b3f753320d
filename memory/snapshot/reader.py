"""Readers: the base of every group of reads.

A group (`frames.reads`, `search.reads`, …) reads the snapshot that its reader gives: a view its
snapshot, a store the newest. So the same methods serve both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from .snapshot import Snapshot


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Reader = TypeVar("_Reader", bound="Reader")


class Reader(ABC):
    """A handle that reads."""

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """Return the state to read."""


def store_call(
    call: Callable[Concatenate[_Reader, _Arguments], _Result],
) -> Callable[Concatenate[_Reader, _Arguments], _Result]:
    """Decorate a function of a pack over a store or view, so that a traced one makes it a span."""

    @wraps(call)
    def run(reader: _Reader, /, *given: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        around: Any = getattr(type(reader), "around_call", None)
        if around is None:
            return call(reader, *given, **named)
        return cast("_Result", around(reader, call.__name__, call, *given, **named))

    return run


def snapshot_of(reader: Reader) -> Snapshot:
    """Return the state that a reader reads now."""
    return reader._snapshot()  # pyright: ignore[reportPrivateUsage]
