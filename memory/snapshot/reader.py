"""Readers: the base of every group of reads.

A group (`frames.reads`, `search.reads`, …) reads the snapshot that its reader gives: a view its
snapshot, a store the newest. So the same methods serve both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .snapshot import Snapshot


class Reader(ABC):
    """A handle that reads."""

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """Return the state to read."""


def snapshot_of(reader: Reader) -> Snapshot:
    """Return the state that a reader reads now."""
    return reader._snapshot()  # pyright: ignore[reportPrivateUsage]
