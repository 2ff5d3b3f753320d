"""All that a view says, by every read, as one text that can be compared."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from cerata import agents
from cerata.engine.errors import HistoryPruned, NotFound, ProjectionFailed
from cerata.engine.log import Log
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.facts import Entity
from cerata.memory.values.frames import Frame, TimelinePage
from cerata.memory.values.options import Layout, Mode, Vectors
from cerata.memory.view import View
from cerata.projections.columnar.scopes import Reach
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.timeline import Position
from cerata.projections.rows.row_fold import RowFold
from cerata.replay.fold import Fold
from cerata.retrieval.query_language.parser import query

from .drawn import OTHER_SCOPE, TOKENS

PLAIN = (
    "index memory",
    "the recall of HNSW in 東京",
    '"memory index" cafe x1',
    "京",
    "of the",
    "red",
)
FULL = tuple(
    map(
        query,
        (
            '"index memory" OR (re* AND NOT the)',
            "title:index tags:red",
            "tag:red kind:note index",
            "h?sw OR metadata.n:>=2",
        ),
    )
)
QUERIES = (*PLAIN, *FULL)
REACHES = (
    None,
    Reach(OTHER_SCOPE),
    # Admits the events of the tenant alone, which lack the name.
    Reach((*OTHER_SCOPE[:1], ("session_id", "s2")), shared=True),
)
FILTERS = (
    Filter(kind="note"),
    Filter(tags=["red"]) | ~Filter(role="user"),
    Filter(metadata={"n": (">=", 2)}, uri_prefix="file:"),
    Filter(track="main") | Filter(labels=["red"]),
)


def answers(log: Log, fold: Fold, n: int, step: int = 1) -> str:
    """Return everything that a view at n says, as text; of a single frame at each ``step``-th."""
    views = [View(Snapshot(log, fold, n, reach)) for reach in REACHES]
    said = [_said(view, step) for view in views]
    return json.dumps([*said, _tabled(fold, n), _own(fold, n)], default=str)


def _said(view: View, step: int) -> object:
    every = list(view.frames(where=CLOSED, include_chunks=True))[::step]
    return [
        (view.basis, str(view.now), view.count(), len(view)),
        [
            [frame.to_dict() for frame in islice(view.frames(where=where), 0, None, step)]
            for where in (None, *FILTERS)
        ],
        [(frame.to_dict(), view.files.source(frame)) for frame in every],
        [_tried(view.frame, number) for number in range(0, view.basis + 2, step)],
        [_tried(partial(agents.access, view), number) for number in range(0, view.basis + 2, step)],
        [_tried(view.history.rerun, number) for number in range(0, view.basis + 2, step)],
        [one.to_dict() for one in agents.accesses(view)],
        [(_content(view, one), view.files.children(one), view.files.chunks(one)) for one in every],
        [[version.to_dict() for version in view.history.of(one)] for one in every],
        view.history.audit().to_dict(),
        [
            _tried(read, thing)
            for read in (view.history.blame, view.history.of)
            for thing in (*range(0, view.basis + 2, step), "ann", "eve", "zoe")
        ],
        [[one.id for one in view.history.around(frame, before=2)] for frame in every],
        [
            [
                one.to_dict()
                for one in view.history.last(3, track=track, where=where, include_chunks=closed)
            ]
            for track in (None, "main")
            for where, closed in ((None, False), (FILTERS[1], True))
        ],
        agents.messages(view),
        agents.messages(view, 2, track="main", where=FILTERS[1]),
        [view.files.by_content(found * 16) for found in (b"a", b"b")],
        [
            repr(view.files.stored(found * 16, chunk_count=count, space=space))
            for found in (b"a", b"b")
            for count in (None, 1, 2)
            for space in (None, "small")
        ],
        [view.files.by_uri(uri) for uri in ("file:a", "http:c")],
        [view.get(uri) for uri in ("file:a", "http:c")],
        [view.count(where) for where in FILTERS],
        [
            [value.to_dict() for value in view.files.values(field, where=where)]
            for field in ("tag", "label", "kind", "role", "track", "uri", "metadata", "metadata.n")
            for where in (None, FILTERS[1])
        ],
        [
            [hit.to_dict() for hit in view.search(asked, k=k, where=where)]
            for asked in QUERIES
            for k, where in ((3, None), (50, FILTERS[1]), (50, CLOSED))
        ],
        [
            view.history.explain(hit).to_dict()
            for asked in QUERIES[::3]
            for hit in view.search(asked, k=3)
        ],
        [view.files.highlights("the index of memory", asked) for asked in QUERIES],
        [
            view.recall(asked, max_tokens=200, **told).to_dict()
            for asked in QUERIES[::4]
            for told in ({}, TOLD, GATED)
        ],
        [
            (
                [(one.id, str(one.time)) for one in page.entries],
                [one.to_dict() for one in page.entries[::step]],
                page.next,
            )
            for by in ("content", "recorded")
            for where in (None, FILTERS[1])
            for newest in (True, False)
            for page in _pages(view, 7 * step, by=by, where=where, newest_first=newest)
        ],
        [(event.seq, event.type, event.actor, event.reason) for event in view.log()],
        [event.seq for event in view.log(actor="anna", type="putFrame", correlation="run 1")],
        view.history.tags(),
        None if (used := view.embeddings.used()) is None else used.to_dict(),
        _said_of_facts(view),
        [_nearest(view, space, every) for space in ("small", "large", "later")],
        _late(view, every),
    ]


def _nearest(view: View, space: str, every: Sequence[Frame]) -> object:
    """What a view says of the vectors in a space."""
    asked = np.linspace(-1, 1, 8)
    questions: list[tuple[Any, Vectors]] = [
        (asked, Vectors(space=space)),
        ("index", Vectors(dense=asked, space=space)),
    ]
    try:
        return [
            [
                [hit.to_dict() for hit in view.search(query, k=4, where=where, vectors=vectors)]
                for query, vectors in questions
                for where in (None, FILTERS[1])
            ],
            [str(view.embeddings.of(frame, space)) for frame in every],
        ]
    except NotFound as error:
        return str(error)


def _late(view: View, every: Sequence[Frame]) -> object:
    """What a view says of token vectors."""
    asked = np.linspace(-1, 1, 24).reshape(3, 8)
    questions: list[tuple[str, Mode]] = [("", "vector"), ("index", "hybrid")]
    try:
        hits = [
            view.search(
                query,
                k=4,
                where=where,
                mode=mode,
                rerank=rerank,
                vectors=Vectors(tokens=asked, token_weights=weights),
            )
            for query, mode in questions
            for where in (None, FILTERS[1])
            for rerank, weights in ((False, None), (True, None), (False, [1.0, 0.0, 2.5]))
        ]
    except NotFound as error:
        return str(error)
    return [
        [[hit.to_dict() for hit in found] for found in hits],
        [view.history.explain(hit).to_dict() for found in hits for hit in found[:1]],
        [str(view.embeddings.tokens_of(frame, TOKENS)) for frame in every],
    ]


def _said_of_facts(view: View) -> object:
    """What a view says of facts and entities."""
    at_seven = view.true_at(EPOCH + timedelta(microseconds=7))
    return [
        [
            [fact.to_dict() for fact in facts(*bound, include_ended=ended, include_retracted=ended)]
            for facts in (view.facts, at_seven.facts)
            for bound in BOUND
            for ended in (False, True)
        ],
        [_tried(view.graph.fact, number) for number in range(view.basis + 2)],
        [
            view.recall(question, max_tokens=600, where=where).to_dict()
            for question in ("likes is", "what has bob got")
            for where in (None, *FILTERS)
        ],
        [[one.to_dict() for one in view.graph.evidence(fact)] for fact in view.facts()],
        [
            [hit.to_dict() for hit in view.graph.search(question, k=4, valid_at=instant)]
            for instant in (None, EPOCH + timedelta(microseconds=7))
            for question in ("is ann eve", "annie likes", "what has bob got")
        ],
        [[fact.to_dict() for fact in view.graph.versions(name)] for name in ("ann", "eve")],
        [one.to_dict() for one in view.graph.conflicts()],
        [one.to_dict() for one in view.graph.links(include_unlinked=True)],
        [_tried(view.graph.why, number) for number in range(0, view.basis + 2, 3)],
        [one.to_dict() for one in view.graph.entities()],
        [_tried(view.graph.entity, name) for name in ("ann", "eve", "zoe")],
        [view.graph.resolve(name) for name in ("ANN", "annie", "zoe")],
        [one.to_dict() for one in view.graph.neighbours("ann")],
        [one.to_dict() for one in view.graph.walk(["ann", "bob"], hops=3)],
        [one.to_dict() for one in view.graph.paths("ann", "bob")],
        [one.to_dict() for one in view.graph.cooccurring("ann")],
        [list(view.interchange.export_facts(history=history)) for history in (False, True)],
        [one.to_dict() for one in view.graph.neighbours("ann")],
        [one.to_dict() for one in view.graph.walk(["ann", "bob"], hops=3)],
        [one.to_dict() for one in view.graph.paths("ann", "bob")],
        [one.to_dict() for one in view.graph.cooccurring("ann")],
    ]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOUND: tuple[tuple[Any, ...], ...] = (
    (),
    ("ann",),
    (None, "is"),
    ("ann", "is"),
    (None, None, Entity("ann")),
    ("bob", None, 3),
    ("bob", "is", Entity("ann")),
)


TOLD: dict[str, Any] = {
    "policy": "tiered",
    "profile": "used",
    "layout": Layout(order="time", framing=True, neighbours=1),
    "where": Filter(include_superseded=True),
}
GATED: dict[str, Any] = {"profile": "continuity"}
CLOSED = Filter(include_superseded=True, include_deleted=True)


def _pages(
    view: View, limit: int, *, where: Filter | None = None, **asked: Any
) -> Iterator[TimelinePage]:
    """Yield the pages of a timeline of everything, one after the other."""
    where = CLOSED if where is None else where & CLOSED
    after: Position | None = None
    while True:
        page = view.history.timeline(
            limit=limit, after=after, where=where, include_chunks=True, **asked
        )
        yield page
        after = page.next
        if after is None:
            return


def _content(view: View, frame: Frame) -> str:
    """Return the content of a frame; of an erased frame the error."""
    try:
        return view.files.content(frame).hex()
    except HistoryPruned as error:
        return str(error)


def _tried(read: Callable[[Any], Any], number: object) -> object:
    try:
        answer = read(number)
    except NotFound as error:
        return str(error)
    to_dict: Callable[[], object] | None = getattr(answer, "to_dict", None)
    return [one.to_dict() for one in answer] if to_dict is None else to_dict()


def _tabled(fold: Fold, n: int) -> object:
    """What only the frames' table says."""
    table = fold.frames(n)
    ids = table.ids[: table.rows_at(n)].tolist()
    return [
        sorted((int(kind), count) for kind, count in table.anomalies(n).items()),
        [table.embedded(n, space).tolist() for space in (None, "small", TOKENS)],
        [(repr(table.closing_of(one, n)), table.supersedes_of(one, n)) for one in ids],
    ]


def _own(fold: Fold, n: int) -> object:
    found: list[object] = []
    for name in fold.registry.names:
        if not isinstance(fold.registry.make(name), RowFold):
            # It has readers of its own.
            continue
        try:
            found.append(list(fold.own(name, n).rows.items()))
        except ProjectionFailed as error:
            found.append(str(error))
    return found
