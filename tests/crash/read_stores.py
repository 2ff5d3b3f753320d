"""Four kinds of store, each for one kind of read: words, facts, vectors, user projections.

Owns the writes that fill them: the same calls each time, so that two files of a kind are equal.
Leaves out the reads (`public_reads`).
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.disk.storage import OsStorage
from cerata.engine.events import PutFrame
from cerata.fault_injection.simulation.simulated_world import EPOCH_US, SeededBytes
from cerata.fault_injection.stories.engine_workloads import RING_SIZE
from cerata.memory.store import Store, open_store
from cerata.memory.values.facts import Entity
from cerata.memory.values.options import OpenOptions, PutOptions, Vectors
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.rows.row_projection import RowProjection

_WORDS = ("wax", "tablet", "stylus", "honey", "memory", "index", "café", "東京", "recall", "hive")
_NAMES = ("ann", "bob", "eve")
LATE = "late@1/8/maxsim/i1"
"""The space of the token vectors."""


class StandingClock(SystemClock):
    """The wall clock of a test: every read of a run sees the same time."""

    def now_us(self) -> int:
        return EPOCH_US + 3_600_000_000


class TagCounts(RowProjection[str, int]):
    """Counts how often each tag was put: a projection as users write them."""

    name = "tag-counts"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            if isinstance(event.body, PutFrame):
                for tag in event.body.tags:
                    self.rows[tag] = self.rows.get(tag, 0) + 1


class Longest(RowProjection[str, tuple[int, int]]):
    """Keeps the longest text of each kind, and its event: rows that are replaced."""

    name = "longest"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            if isinstance(event.body, PutFrame):
                size = len(event.body.text or "")
                if size > self.rows.get(event.body.kind, (0, 0))[0]:
                    self.rows[event.body.kind] = size, event.seq


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of store, and the function that fills it.

    ``step`` makes the ``number``-th write, of one to four events.
    """

    name: str
    step: Callable[[Store, int], object]
    projections: tuple[type[RowProjection[Any, Any]], ...] = ()

    def open(self, path: str) -> Store:
        """Open a store of this kind; two processes that open the same bytes do the same."""
        environment = Environment(OsStorage(), StandingClock(), SeededBytes(self.name))
        return open_store(
            path,
            environment=environment,
            projections=self.projections,
            options=OpenOptions(ring_bytes=RING_SIZE * 4),
        )

    def image(self, events: int, saved: int = 0) -> bytes:
        """Return the file of a store of this many events, with a checkpoint after ``saved``."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "a.cera")
            store = self.open(path)
            number = 0
            while store.head.seq < events:
                number += 1
                self.step(store, number)
                if saved and store.head.seq >= saved:
                    store.checkpoint()
                    saved = 0
            # Not closed: closing may save a checkpoint.
            store._log.close()  # pyright: ignore[reportPrivateUsage]
            return Path(path).read_bytes()


def _words(number: int, count: int = 8) -> str:
    return " ".join(_WORDS[(number * 7 + place * place) % len(_WORDS)] for place in range(count))


def _word_step(store: Store, number: int) -> None:
    draw = number % 9
    if draw == 4:
        store.delete(store.put_frame(f"gone {_words(number)}", tags=["red"]))
    elif draw == 6:
        old = store.put_frame(f"old {_words(number)}", uri=f"file:{number}")
        store.supersede(old, f"new {_words(number)}")
    elif draw == 8:
        store.history.tag(f"tag-{number}")
    elif draw == 7:
        parts = ". ".join(f"Passage {place} of {number}: {_words(place, 90)}" for place in range(4))
        store.remember(f"{parts}.", uri=f"file:document-{number}", title=f"Document {number}")
    else:
        store.put_frame(
            f"{_words(number)} {number}",
            kind="note" if number % 2 else "text",
            role="user" if number % 3 else None,
            title=f"Title {number % 5}",
            tags=[("red", "blue")[number % 2]],
            metadata={"n": number},
            options=PutOptions(content_dates=[f"2023-0{1 + number % 9}-11"]),
        )


def _fact_step(store: Store, number: int) -> None:
    name = _NAMES[number % 3]
    draw = number % 12
    if draw == 1:
        store.graph.declare("lives in", functional=True)
    elif draw == 2:
        store.graph.name(name, kind="person", aliases=[f"{name} {number}"])
    elif draw == 3:
        frame = store.put_frame(f"{name} likes honey and {_words(number)}")
        store.assert_fact(name, "likes", "honey", evidence=[(frame.id, 0, 4)])
    elif draw == 4:
        first = store.assert_fact(name, "knows", Entity(_NAMES[(number + 1) % 3]))
        second = store.assert_fact(name, "is", number)
        store.graph.link(second.id, "depends_on", first.id)
    elif draw == 5:
        store.retract_fact(store.assert_fact(name, "was", f"at {number}"))
    elif draw == 6:
        store.assert_fact(f"twin {number}", "is", "a twin")
        store.graph.merge(f"twin {number}", name)
    elif draw == 7:
        fact = store.assert_fact(name, "owns", f"thing {number}")
        store.graph.split(name, f"other {number}", [fact.id])
    elif draw == 8:
        store.correct_fact(store.assert_fact(name, "counts", number), object=number + 1)
    elif draw == 9:
        first = store.assert_fact(name, "says", f"yes {number}")
        store.graph.link(
            store.assert_fact(name, "says", f"no {number}").id, "contradicts", first.id
        )
    else:
        store.assert_fact(
            name, "lives in", _WORDS[number % 7], valid_from=f"20{10 + number % 10}-01-01"
        )


def vector(number: int) -> np.ndarray[Any, Any]:
    """Return a vector, (8,) float32: one of thirteen."""
    return np.cos(np.arange(8) * (1 + number % 13)).astype(np.float32)


def tokens(number: int) -> np.ndarray[Any, Any]:
    """Return token vectors, (3, 8) float32: one of eleven matrices."""
    return np.sin(np.arange(24).reshape(3, 8) * (1 + number % 11)).astype(np.float32)


def _vector_step(store: Store, number: int) -> None:
    embedding = vector(number)
    matrix = tokens(number)
    if number % 5 == 4:
        store.put_frames(
            [_words(number), _words(number + 1)],
            vectors=Vectors(dense=np.stack([embedding, vector(number + 1)]), space="small"),
        )
    elif number % 7 == 6:
        store.delete(
            store.put_frame(_words(number), vectors=Vectors(dense=embedding, space="small"))
        )
    else:
        store.put_frame(
            f"{_words(number)} {number}",
            tags=[("red", "blue")[number % 2]],
            vectors=Vectors(dense=embedding, space="small", tokens=matrix, tokens_space=LATE),
        )


def _own_step(store: Store, number: int) -> None:
    with store.transaction():
        frame = store.put_frame(f"{_words(number)} {number}", tags=[_WORDS[number % 7], "all"])
        if number % 4 == 3:
            store.assert_fact("ann", "wrote", number, evidence=[frame.id])
        if number % 6 == 5:
            store.supersede(frame, f"better {_words(number)}")


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("words", _word_step),
        Kind("facts", _fact_step),
        Kind("vectors", _vector_step),
        Kind("own projections", _own_step, (TagCounts, Longest)),
    )
}
