"""Every public read of a store and of a view, as calls whose answers can be compared.

An answer is plain values, so that two runs are equal or not. Leaves out the stores (`read_stores`),
the exceptions, and the judgement (`sweeps.interrupted_reads`, `sweeps.timer_signals`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from cerata import agents
from cerata.engine.errors import CerataError
from cerata.engine.events import PutFrame
from cerata.memory.store import Store
from cerata.memory.values.options import Layout, Vectors
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter
from cerata.retrieval.query_language.parser import query

from .read_stores import LATE, Kind, TagCounts, tokens, vector

Face: TypeAlias = Store | View
"""An object that has the public reads."""

Read: TypeAlias = Callable[[Any], object]
"""A call of one public name of a store or a view."""

_QUERY = "honey tablet of ann"
_EVERYTHING = Filter(include_superseded=True, include_deleted=True)


def _ids(face: Face, count: int = 4) -> list[int]:
    return [frame.id for frame in islice(face.frames(), count)]


def _facts(face: Face, count: int = 3) -> list[int]:
    return [fact.id for fact in face.facts()[:count]]


def _explained(face: Face) -> object:
    return [str(face.history.explain(hit)) for hit in face.search(_QUERY, k=2)]


def _of_recalls(face: Face, read: str) -> list[str]:
    """Call a read on the recorded recalls, which a view of an early point lacks."""
    recalls = [event.seq for event in islice(face.log(type="recall"), 2)]
    return [str(attrgetter(read)(face)(seq)) for seq in recalls]


EVERY_READ: dict[str, Read] = {
    "search": lambda face: face.search(_QUERY),
    "search, full language": lambda face: face.search(query('"wax" OR ho* OR title:2'), k=4),
    "search, by words": lambda face: face.search(_QUERY, mode="text", where=Filter(tags=["red"])),
    "search, closed too": lambda face: face.search("old gone wax", where=_EVERYTHING),
    "recall": lambda face: face.recall(_QUERY, max_tokens=200),
    "recall, markdown": lambda face: face.recall(
        "東京", policy="tiered", layout=Layout(form="markdown", framing=True, order="time")
    ),
    "history.explain": _explained,
    "history.explain, of a recall": lambda face: _of_recalls(face, "history.explain"),
    "history.rerun": lambda face: _of_recalls(face, "history.rerun"),
    "files.highlights": lambda face: face.files.highlights("honey on the tablet", _QUERY),
    "files.source": lambda face: [face.files.source(frame) for frame in islice(face.frames(), 3)],
    "count": lambda face: face.count(),
    "len": len,
    "frames": lambda face: face.frames(),
    "frames, closed too": lambda face: face.frames(where=_EVERYTHING, include_chunks=True),
    "frame": lambda face: [face.frame(frame) for frame in _ids(face)],
    "files.content": lambda face: [face.files.content(frame) for frame in _ids(face)],
    "history.around": lambda face: [face.history.around(frame, before=2) for frame in _ids(face)],
    "get": lambda face: face.get("file:6"),
    "history.last": lambda face: face.history.last(4),
    "history.last, where": lambda face: face.history.last(
        4, where=Filter(tags=["red"]), include_chunks=True
    ),
    "messages": agents.messages,
    "files.values": lambda face: [
        face.files.values(field) for field in ("tag", "kind", "metadata.n")
    ],
    "files.values, by prefix": lambda face: face.files.values(
        "uri", prefix="file:", include_chunks=True
    ),
    "embeddings.used": lambda face: face.embeddings.used(),
    "history.timeline": lambda face: face.history.timeline(limit=9),
    "history.timeline, recorded": lambda face: face.history.timeline(
        by="recorded", limit=9, newest_first=False
    ),
    "history.of": lambda face: [face.history.of(frame) for frame in _ids(face, 9)],
    "history.audit": lambda face: str(face.history.audit()),
    "history.blame": lambda face: [repr(face.history.blame(frame)) for frame in _ids(face, 9)],
    "files.children": lambda face: [face.files.children(frame) for frame in _ids(face, 9)],
    "files.chunks": lambda face: [face.files.chunks(frame) for frame in _ids(face, 9)],
    "files.by_content": lambda face: face.files.by_content(b"a" * 16),
    "files.stored": lambda face: face.files.stored(b"a" * 16),
    "files.by_uri": lambda face: face.files.by_uri("file:6"),
    "access": lambda face: [agents.access(face, frame) for frame in _ids(face)],
    "accesses": agents.accesses,
    "log": lambda face: [(event.seq, event.type) for event in face.log()],
    "history.tags": lambda face: face.history.tags(),
    "facts": lambda face: face.facts(
        include_ended=True, include_retracted=True, include_invalid=True
    ),
    "graph.search": lambda face: face.graph.search("where does ann live"),
    "graph.links": lambda face: face.graph.links(),
    "graph.entities": lambda face: face.graph.entities(),
}
"""The reads that a store of any kind answers."""

_FACT_READS: dict[str, Read] = {
    "facts, true now": lambda face: face.facts(valid_at="now"),
    "facts of one": lambda face: face.facts("ann", "lives in"),
    "graph.fact": lambda face: [face.graph.fact(fact) for fact in _facts(face)],
    "graph.versions": lambda face: face.graph.versions("ann"),
    "history.blame, of facts": lambda face: [
        repr(face.history.blame(fact)) for fact in _facts(face, 9)
    ],
    "history.blame, of an entity": lambda face: repr(face.history.blame("ann")),
    "history.of, of facts": lambda face: [repr(face.history.of(fact)) for fact in _facts(face, 9)],
    "history.of, of an entity": lambda face: repr(face.history.of("ann")),
    "graph.evidence": lambda face: [
        repr(evidence) for fact in _facts(face, 9) for evidence in face.graph.evidence(fact)
    ],
    "graph.conflicts": lambda face: face.graph.conflicts(),
    "graph.resolve": lambda face: face.graph.resolve("Ann"),
    "graph.entity": lambda face: face.graph.entity("ann"),
    "graph.neighbours": lambda face: [
        repr(neighbour) for neighbour in face.graph.neighbours("ann")
    ],
    "graph.walk": lambda face: [repr(visit) for visit in face.graph.walk("ann", hops=3)],
    "graph.paths": lambda face: [repr(path) for path in face.graph.paths("ann", "bob")],
    "graph.cooccurring": lambda face: face.graph.cooccurring("ann"),
    "graph.why": lambda face: [str(face.graph.why(fact)) for fact in _facts(face, 6)],
    "interchange.export_facts": lambda face: face.interchange.export_facts(history=True),
    "true_at": lambda face: face.history.view().true_at("2015-01-01").facts(),
}

_VECTOR_READS: dict[str, Read] = {
    "search, by vectors": lambda face: face.search(vector(3), vectors=Vectors(space="small")),
    "search, both": lambda face: face.search(
        _QUERY, vectors=Vectors(dense=vector(3), space="small")
    ),
    "search, by tokens": lambda face: face.search(
        "", mode="vector", vectors=Vectors(tokens=tokens(3), tokens_space=LATE)
    ),
    "search, reranked": lambda face: face.search(
        _QUERY, rerank=True, vectors=Vectors(tokens=tokens(3), tokens_space=LATE)
    ),
    "embeddings.of": lambda face: [face.embeddings.of(frame, "small") for frame in _ids(face)],
    "embeddings.tokens_of": lambda face: [face.embeddings.tokens_of(frame) for frame in _ids(face)],
    "files.stored, in a space": lambda face: face.files.stored(b"a" * 16, space="small"),
}

_OWN_READS: dict[str, Read] = {
    "stream.projection": lambda face: dict(face.stream.projection(TagCounts).rows),
    "stream.projection, by name": lambda face: dict(face.stream.projection("longest").rows),
}

READS: dict[str, dict[str, Read]] = {
    "words": {},
    "facts": _FACT_READS,
    "vectors": _VECTOR_READS,
    "own projections": _OWN_READS,
}
"""The additional reads of the stores of each kind."""


def _past(store: Store, part: int = 3) -> View:
    return store.at(store.head.seq * (part - 1) // part)


def _is_empty(view: View) -> bool:
    return not len(view)


class _Dropped(Exception):
    """Ends a transaction without writing."""


def _entities(store: Store) -> object:
    return store.graph.entities()


def _in_transaction(store: Store) -> object:
    answers: list[object] = []
    try:
        with store.transaction():
            frame = store.put_frame("honey of the transaction", tags=["red", "all"])
            store.assert_fact("ann", "reads", "a draft", evidence=[frame.id])
            answers.append([read(store) for read in (len, Store.facts, _entities)])
            answers += [store.search(_QUERY), store.frame(frame), store.graph.search("ann draft")]
            answers.append(plain(answers.pop()))
            answers = [plain(part) for part in answers]
            raise _Dropped
    except _Dropped:
        return answers


def _copied(store: Store) -> object:
    copy = f"{store.path}-copy"
    Path(copy).unlink(missing_ok=True)
    store.backup(copy)
    size = os.path.getsize(copy)
    Path(copy).unlink()
    return size > 0


def _verified(store: Store) -> object:
    verification = store.verify()
    return verification.ok, verification.to_dict() if not verification.ok else None


def _forked(store: Store, read: Callable[[Store], object]) -> object:
    with store.upkeep.fork() as fork:
        fork.put_frame("in the fork")
        # Hits read their frames later, when the fork is closed.
        return plain(read(fork))


STORE_READS: dict[str, Read] = {
    "at": lambda store: (_past(store).count(), _past(store).search(_QUERY)),
    "history.view": lambda store: store.history.view().count(),
    "within": lambda store: (
        store.history.view().within((("tenant", "default"), ("session", "s"))).search(_QUERY)
    ),
    "at, of a view": lambda store: store.history.view().at(_past(store).basis).search(_QUERY),
    "upkeep.speculate": lambda store: store.upkeep.speculate(PutFrame(text="honey to come")).search(
        _QUERY
    ),
    "upkeep.speculate, in the past": lambda store: (
        _past(store).upkeep.speculate(PutFrame(text="honey to come")).search(_QUERY)
    ),
    "stream.replay": lambda store: store.stream.replay().search(_QUERY),
    "diff": lambda store: store.diff(_past(store)),
    "diff, with a question": lambda store: store.diff(_past(store), query=_QUERY).to_dict(),
    "history.since": lambda store: store.history.view().history.since(_past(store).basis).to_dict(),
    "upkeep.branches": lambda store: store.upkeep.branches(),
    "upkeep.fork": lambda store: _forked(store, lambda fork: fork.search(_QUERY)),
    "history.compare": lambda store: _forked(store, lambda fork: bool(store.history.compare(fork))),
    "upkeep.drafts_after": lambda store: _forked(
        store, lambda fork: len(fork.upkeep.drafts_after(store))
    ),
    "history.bisect": lambda store: [
        repr(probe) for probe in store.history.bisect(_is_empty).probes
    ],
    "upkeep.info": lambda store: store.upkeep.info()["head"],
    "head": lambda store: (store.head.seq, store.head.chain, store.head.root),
    "stream.refresh": lambda store: store.stream.refresh().seq,
    "stream.digests": lambda store: store.stream.digests(),
    "verify": _verified,
    "checkpoint": lambda store: store.checkpoint(),
    "upkeep.rebuild": lambda store: store.upkeep.rebuild("fulltext").digests,
    "stream.follow": lambda store: [event.seq for event in store.stream.follow(0, timeout=0)],
    "history.salvaged": lambda store: [event.seq for event in store.history.salvaged()],
    "backup": _copied,
    "interchange.export_events": lambda store: store.interchange.export_events(BytesIO()),
    "transaction": _in_transaction,
}
"""The reads of a store alone, and the calls that write nothing but indexes."""

_OWN_REBUILDS: dict[str, dict[str, Read]] = {
    "own projections": {"rebuild, own": lambda store: store.upkeep.rebuild("longest").digests}
}


def reads_of(kind: Kind) -> dict[str, Read]:
    """Return every read of a kind of store; the reads of a view run at its head and in the past.

    Each is called with the store.
    """
    faces = {**EVERY_READ, **READS[kind.name]}

    def past(read: Read) -> Read:
        return lambda store: read(_past(store))

    past_reads = {f"{name}, in the past": past(read) for name, read in faces.items()}
    return {**faces, **past_reads, **STORE_READS, **_OWN_REBUILDS.get(kind.name, {})}


# --- answers -------------------------------------------------------------------------------------


def plain(value: Any) -> object:
    """Return an answer as plain values that compare by content."""
    if isinstance(value, View):
        return f"view {value.basis}"
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, Mapping):
        pairs: list[tuple[Any, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
        return {str(key): plain(part) for key, part in pairs}
    if isinstance(value, str | bytes | int | float | None):
        return value
    to_dict = getattr(value, "to_dict", None)
    if to_dict is not None:
        return cast("object", to_dict())
    if isinstance(value, list | tuple | Iterator):
        return [plain(part) for part in cast("Iterator[Any]", value)]
    return repr(value)


def answer(read: Read, store: Store) -> object:
    """Return the answer of a read, or the `CerataError` that it raises, as plain values.

    Any other error passes through: it is raw.
    """
    try:
        return plain(read(store))
    except CerataError as error:
        return f"{type(error).__name__}: {error.what}"
