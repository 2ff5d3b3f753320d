"""Handles of a store: its calls by subject, such as ``store.graph.link(…)``.

Owns the handles of a store but ``upkeep``, whose forks are stores (`store`), and their making.
Leaves out the calls themselves: each group of calls is a class of its room.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, overload

from .batch.writer import Writer, session_of
from .embeddings.commands import EmbeddingCommands
from .event_interchange import InterchangeCommands
from .event_stream import StreamReads
from .facts.bulk_commands import FactExtraction, FactImport
from .facts.commands import FactGraphCommands
from .facts.reads import FactExport
from .forks import ForkComparison
from .frames.log_reads import ProjectionReads
from .frames.version_commands import RestoreCommands
from .ingest.commands import FileCommands
from .links.commands import LinkCommands
from .points_in_time import PastCommands, ReplayReads
from .read_groups import FileGroup, GraphGroup, HistoryGroup
from .search.reads import VectorReads
from .upkeep import SalvageReads, SyncCommands
from .view import ViewHandle


class Graph(GraphGroup, FactGraphCommands, FactExtraction, LinkCommands):
    """Facts, entities and links: many at once, their names, and walks over them."""


class History(HistoryGroup, PastCommands, ForkComparison, RestoreCommands, SalvageReads):
    """The past: versions, events, recalls, tags, and frames in order of time."""


class Files(FileGroup, FileCommands):
    """Files and contents: documents, chunks, sources and values of fields."""


class Stream(StreamReads, ProjectionReads, ReplayReads, SyncCommands):
    """The log as it grows, and the states that are folded from it."""


class Interchange(FactExport, FactImport, InterchangeCommands):
    """Lines for other memories, and from them."""


class Embeddings(VectorReads, EmbeddingCommands):
    """The embedder and its vectors."""


_OfStore = TypeVar("_OfStore", bound=Writer)


class StoreHandle(Generic[_OfStore]):
    """A handle of a store, made at its first use over the store's session."""

    def __init__(self, kind: type[_OfStore]) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, store: None, _: object) -> type[_OfStore]: ...

    @overload
    def __get__(self, store: Writer, _: object) -> _OfStore: ...

    def __get__(self, store: Writer | None, _: object) -> type[_OfStore] | _OfStore:
        if store is None:
            return self.kind
        made = self.kind(session_of(store))
        # The next look-up finds it without a call.
        object.__setattr__(store, self._name, made)
        return made


def kind_of(handle: Any) -> type[Any]:
    """Return the class of a handle of a store or view."""
    kind: type[Any] = handle.kind
    return kind


def public_names(kind: type) -> Iterator[str]:
    """Yield the public names of a store or view; those of a handle as ``graph.link``."""
    for name, member in inspect.getmembers_static(kind):
        if isinstance(member, StoreHandle | ViewHandle):
            yield from (f"{name}.{each}" for each in public_names(kind_of(member)))
        elif not name.startswith("_"):
            yield name
