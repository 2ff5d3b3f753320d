"""The systems of the comparison: one protocol, Cerata itself, and the list of peers.

Owns the questions that a system must answer; leaves out time (`rounds`) and the adapters of
peers (`sqlite`, `lancedb`, `chroma`). A document is known by its number from 0.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

import cerata
from cerata.engine.late import install_command
from cerata.memory.store import Store
from cerata.memory.values.frames import Hit
from cerata.memory.view import View

from .documents import Batch, K, Question, Vector

SPACE: Final = "bench"


class System(Protocol):
    """An open store of texts and vectors in a folder; a new folder makes a new store."""

    def add(self, batch: Batch) -> None:
        """Write a batch, as durably as the system offers."""
        ...

    def finish(self) -> None:
        """Build the indexes that the system does not keep up to date."""
        ...

    def text(self, question: str, k: int = K) -> list[int]:
        """Return the best documents by words."""
        ...

    def vector(self, vector: Vector) -> list[int]:
        """Return the nearest documents, by cosine."""
        ...

    def hybrid(self, question: Question) -> list[int]:
        """Return the best documents by words and vector."""
        ...

    def past(self, question: Question) -> list[int] | None:
        """Return the answer of `hybrid` after half of the log, or None without the ability."""
        ...

    def delete(self, number: int) -> None:
        """Delete a document, as durably as the system offers."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A system of the list: how to open it, how durable a batch is, and where answers differ."""

    name: str
    open: Callable[[Path], System]
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    extra: str
    durability: str
    note: str
    imports_late: bool = False
    """True if most modules are imported when a store uses them."""

    def missing(self) -> str | None:
        """Return the remedy if a package of the system is not installed."""
        try:
            self.versions()
        except PackageNotFoundError:
            return install_command(self.extra)
        return None

    def load(self) -> None:
        """Import the modules of the system."""
        for module in self.modules:
            importlib.import_module(module)

    def versions(self) -> str:
        """Return the versions of the system's packages. Raises `PackageNotFoundError`."""
        return ", ".join(f"{package} {version(package)}" for package in self.packages)


class Cerata:
    """A memory, which syncs every batch before the call returns."""

    def __init__(self, folder: Path) -> None:
        self._store: Store = cerata.open(folder / "bench.cera")
        self._half: View | None = None

    def add(self, batch: Batch) -> None:
        receipt = self._store.put_frames(
            batch.texts, vectors=cerata.Vectors(dense=batch.vectors, space=SPACE)
        )
        # Documents are the only events, so a frame's id is the document's number plus 1.
        assert receipt.ids[0] == batch.first + 1

    def finish(self) -> None:
        pass

    def text(self, question: str, k: int = K) -> list[int]:
        return [hit.id - 1 for hit in self._search(question, k=k, mode="text")]

    def vector(self, vector: Vector) -> list[int]:
        return [hit.id - 1 for hit in self._search(np.asarray(vector), k=K)]

    def hybrid(self, question: Question) -> list[int]:
        return _numbers(self._store, question)

    def past(self, question: Question) -> list[int] | None:
        if self._half is None:
            self._half = self._store.at(self._store.head.seq // 2)
        return _numbers(self._half, question)

    def delete(self, number: int) -> None:
        self._store.delete(number + 1)

    def _search(self, query: Any, **arguments: Any) -> list[Hit]:
        return self._store.search(query, page=cerata.Page(group_by="frame"), **arguments)

    def close(self) -> None:
        self._store.close()


def _numbers(view: Store | View, question: Question) -> list[int]:
    hits = view.search(
        question.text,
        k=K,
        vectors=cerata.Vectors(dense=question.vector),
        page=cerata.Page(group_by="frame"),
    )
    return [hit.id - 1 for hit in hits]


def _peer(module: str, name: str) -> Callable[[Path], System]:
    """Return a function that imports an adapter with its peer when it opens a store."""

    def opened(folder: Path) -> System:
        adapter = importlib.import_module(f"{__package__}.{module}")
        system: System = getattr(adapter, name)(folder)
        return system

    return opened


SYSTEMS: Final = {
    "cerata": Entry(
        "Cerata",
        Cerata,
        ("cerata.memory.store",),
        (),
        "",
        "sync a batch",
        "its checkpoints are part of the batches and of the close",
        imports_late=True,
    ),
    "sqlite": Entry(
        "SQLite",
        _peer("sqlite", "SQLite"),
        ("benchmarks.beside.sqlite", "apsw", "sqlite_vec"),
        ("apsw", "sqlite-vec"),
        "bench",
        "sync a batch",
        "FTS5 with a Porter stemmer, vec0 (scores all vectors), WAL and synchronous=FULL; the best"
        " 100 of each are fused by reciprocal ranks",
    ),
    "lancedb": Entry(
        "LanceDB",
        _peer("lancedb", "LanceDB"),
        ("benchmarks.beside.lancedb", "lancedb"),
        ("lancedb",),
        "peers",
        "no sync",
        "the text index is built after the batches, all vectors are scored; a batch is not synced,"
        " so a power failure may lose it",
    ),
    "chroma": Entry(
        "Chroma",
        _peer("chroma", "Chroma"),
        ("benchmarks.beside.chroma", "chromadb"),
        ("chromadb",),
        "peers",
        "sync a batch",
        "words are a filter without a ranking; vectors are in an HNSW index, which is approximate",
    ),
}
"""The systems by the name of the option --peers, in the order of the columns."""
