"""Every public read of a store and of a view, as calls whose answers can be compared.

An answer is plain values, so that two runs are equal or not. Leaves out the stores (`read_stores`),
the exceptions, and the judgement (`sweeps.interrupted_reads`, `sweeps.timer_signals`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from cerata.engine.errors import CerataError
from cerata.engine.events import PutFrame
from cerata.memory.store import Store
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter
from cerata.retrieval.query_language.parser import query

from .read_stores import LATE, Kind, TagCounts, tokens, vector

Face: TypeAlias = Store | View
"""An object that has the public reads."""

Read: TypeAlias = Callable[[Any], object]
"""A call of one public name of a store or a view."""

_QUERY = "honey tablet of ann"
_EVERYTHING = {"include_superseded": True, "include_deleted": True, "include_chunks": True}


def _ids(face: Face, count: int = 4) -> list[int]:
    return [frame.id for frame in islice(face.frames(), count)]


def _facts(face: Face, count: int = 3) -> list[int]:
    return [fact.id for fact in face.facts()[:count]]


def _explained(face: Face) -> object:
    return [str(face.explain(hit)) for hit in face.search(_QUERY, k=2)]


def _of_recalls(face: Face, read: str) -> list[str]:
    """Call a read on the recorded recalls, which a view of an early point lacks."""
    recalls = [event.seq for event in islice(face.log(type="recall"), 2)]
    return [str(getattr(face, read)(seq)) for seq in recalls]


EVERY_READ: dict[str, Read] = {
    "search": lambda face: face.search(_QUERY),
    "search, full language": lambda face: face.search(query('"wax" OR ho* OR title:2'), k=4),
    "search, by words": lambda face: face.search(_QUERY, mode="text", where=Filter(tags=["red"])),
    "search, closed too": lambda face: face.search(
        "old gone wax", include_superseded=True, include_deleted=True
    ),
    "recall": lambda face: face.recall(_QUERY, max_tokens=200),
    "recall, markdown": lambda face: face.recall(
        "東京", form="markdown", framing=True, order="time", policy="tiered"
    ),
    "explain": _explained,
    "explain, of a recall": lambda face: _of_recalls(face, "explain"),
    "rerun_recall": lambda face: _of_recalls(face, "rerun_recall"),
    "highlights": lambda face: face.highlights("honey on the tablet", _QUERY),
    "source_of": lambda face: [face.source_of(frame) for frame in islice(face.frames(), 3)],
    "count": lambda face: face.count(),
    "len": len,
    "frames": lambda face: face.frames(),
    "frames, closed too": lambda face: face.frames(**_EVERYTHING),
    "frame": lambda face: [face.frame(frame) for frame in _ids(face)],
    "content": lambda face: [face.content(frame) for frame in _ids(face)],
    "around": lambda face: [face.around(frame, before=2) for frame in _ids(face)],
    "get": lambda face: face.get("file:6"),
    "last": lambda face: face.last(4),
    "last, where": lambda face: face.last(4, where=Filter(tags=["red"]), include_chunks=True),
    "messages": lambda face: face.messages(),
    "values": lambda face: [face.values(field) for field in ("tag", "kind", "metadata.n")],
    "values, by prefix": lambda face: face.values("uri", prefix="file:", include_chunks=True),
    "remembered_embedder": lambda face: face.remembered_embedder(),
    "timeline": lambda face: face.timeline(limit=9),
    "timeline, recorded": lambda face: face.timeline(by="recorded", limit=9, newest_first=False),
    "history": lambda face: [face.history(frame) for frame in _ids(face, 9)],
    "audit": lambda face: str(face.audit()),
    "blame": lambda face: [repr(face.blame(frame)) for frame in _ids(face, 9)],
    "children": lambda face: [face.children(frame) for frame in _ids(face, 9)],
    "chunks": lambda face: [face.chunks(frame) for frame in _ids(face, 9)],
    "find_content": lambda face: face.find_content(b"a" * 16),
    "find_stored": lambda face: face.find_stored(b"a" * 16),
    "find_uri": lambda face: face.find_uri("file:6"),
    "access": lambda face: [face.access(frame) for frame in _ids(face)],
    "accesses": lambda face: face.accesses(),
    "log": lambda face: [(event.seq, event.type) for event in face.log()],
    "tags": lambda face: face.tags(),
    "facts": lambda face: face.facts(
        include_ended=True, include_retracted=True, include_invalid=True
    ),
    "search_facts": lambda face: face.search_facts("where does ann live"),
    "links": lambda face: face.links(),
    "entities": lambda face: face.entities(),
}
"""The reads that a store of any kind answers."""

_FACT_READS: dict[str, Read] = {
    "facts, true now": lambda face: face.facts(valid_at="now"),
    "facts of one": lambda face: face.facts("ann", "lives in"),
    "fact": lambda face: [face.fact(fact) for fact in _facts(face)],
    "fact_history": lambda face: face.fact_history("ann"),
    "blame, of facts": lambda face: [repr(face.blame(fact)) for fact in _facts(face, 9)],
    "blame, of an entity": lambda face: repr(face.blame("ann")),
    "history, of facts": lambda face: [repr(face.history(fact)) for fact in _facts(face, 9)],
    "history, of an entity": lambda face: repr(face.history("ann")),
    "evidence": lambda face: [
        repr(evidence) for fact in _facts(face, 9) for evidence in face.evidence(fact)
    ],
    "conflicts": lambda face: face.conflicts(),
    "resolve": lambda face: face.resolve("Ann"),
    "entity": lambda face: face.entity("ann"),
    "neighbours": lambda face: [repr(neighbour) for neighbour in face.neighbours("ann")],
    "walk": lambda face: [repr(visit) for visit in face.walk("ann", hops=3)],
    "paths": lambda face: [repr(path) for path in face.paths("ann", "bob")],
    "cooccurring": lambda face: face.cooccurring("ann"),
    "why": lambda face: [str(face.why(fact)) for fact in _facts(face, 6)],
    "export_facts": lambda face: face.export_facts(history=True),
    "true_at": lambda face: face.view().true_at("2015-01-01").facts(),
}

_VECTOR_READS: dict[str, Read] = {
    "search, by vectors": lambda face: face.search(vector(3), space="small"),
    "search, both": lambda face: face.search(_QUERY, embedding=vector(3), space="small"),
    "search, by tokens": lambda face: face.search(
        "", token_embedding=tokens(3), tokens_space=LATE, mode="vector"
    ),
    "search, reranked": lambda face: face.search(
        _QUERY, token_embedding=tokens(3), tokens_space=LATE, rerank=True
    ),
    "embedding": lambda face: [face.embedding(frame, "small") for frame in _ids(face)],
    "token_embedding": lambda face: [face.token_embedding(frame) for frame in _ids(face)],
    "find_stored, in a space": lambda face: face.find_stored(b"a" * 16, space="small"),
}

_OWN_READS: dict[str, Read] = {
    "projection": lambda face: dict(face.projection(TagCounts).rows),
    "projection, by name": lambda face: dict(face.projection("longest").rows),
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


def _in_transaction(store: Store) -> object:
    answers: list[object] = []
    try:
        with store.transaction():
            frame = store.put_frame("honey of the transaction", tags=["red", "all"])
            store.assert_fact("ann", "reads", "a draft", evidence=[frame.id])
            answers.append([read(store) for read in (len, Store.facts, Store.entities)])
            answers += [store.search(_QUERY), store.frame(frame), store.search_facts("ann draft")]
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
    with store.fork() as fork:
        fork.put_frame("in the fork")
        # Hits read their frames later, when the fork is closed.
        return plain(read(fork))


STORE_READS: dict[str, Read] = {
    "at": lambda store: (_past(store).count(), _past(store).search(_QUERY)),
    "view": lambda store: store.view().count(),
    "within": lambda store: (
        store.view().within((("tenant", "default"), ("session", "s"))).search(_QUERY)
    ),
    "at, of a view": lambda store: store.view().at(_past(store).basis).search(_QUERY),
    "speculate": lambda store: store.speculate(PutFrame(text="honey to come")).search(_QUERY),
    "speculate, in the past": lambda store: (
        _past(store).speculate(PutFrame(text="honey to come")).search(_QUERY)
    ),
    "replay": lambda store: store.replay().search(_QUERY),
    "diff": lambda store: store.diff(_past(store)),
    "diff, with a question": lambda store: store.diff(_past(store), query=_QUERY).to_dict(),
    "since": lambda store: store.view().since(_past(store).basis).to_dict(),
    "branches": lambda store: store.branches(),
    "fork": lambda store: _forked(store, lambda fork: fork.search(_QUERY)),
    "compare": lambda store: _forked(store, lambda fork: bool(store.compare(fork))),
    "drafts_after": lambda store: _forked(store, lambda fork: len(fork.drafts_after(store))),
    "bisect": lambda store: [repr(probe) for probe in store.bisect(_is_empty).probes],
    "info": lambda store: store.info()["head"],
    "head": lambda store: (store.head.seq, store.head.chain, store.head.root),
    "refresh": lambda store: store.refresh().seq,
    "digests": lambda store: store.digests(),
    "verify": _verified,
    "checkpoint": lambda store: store.checkpoint(),
    "rebuild": lambda store: store.rebuild("fulltext").digests,
    "follow": lambda store: [event.seq for event in store.follow(0, timeout=0)],
    "salvaged": lambda store: [event.seq for event in store.salvaged()],
    "backup": _copied,
    "export_events": lambda store: store.export_events(BytesIO()),
    "transaction": _in_transaction,
}
"""The reads of a store alone, and the calls that write nothing but indexes."""

_OWN_REBUILDS: dict[str, dict[str, Read]] = {
    "own projections": {"rebuild, own": lambda store: store.rebuild("longest").digests}
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
