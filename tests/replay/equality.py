"""One past, four ways to it: random histories, every read, at every event.

At each n of a random history of every kind of event these must answer alike:

- *native*: a view at n of a store whose state is that of the whole log;
- *checkpoint plus tail*: what an opener has who restores a checkpoint and folds no further than n;
- *full replay*: the events alone, from the first one;
- *stopped*: another store, to which nothing was ever written after event n.

``python -m tests.replay.equality 100`` does so for 100 histories in two processes with different
hash seeds, compares what they saw, and prints the figures.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from cerata.engine.errors import NotFound, ProjectionFailed
from cerata.engine.events import (
    DEFAULT_SCOPE,
    AccessFrames,
    AssertFact,
    Attachment,
    DeleteFrame,
    Draft,
    Embedding,
    EventBody,
    Evidence,
    Gap,
    LinkFacts,
    MergeEntities,
    PutEmbedding,
    PutEntity,
    PutFrame,
    PutPredicate,
    PutTag,
    RecallContext,
    RetractFact,
    SplitEntity,
    SupersedeFrame,
    UnknownBody,
    UnlinkFacts,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.memory.fact_values import Entity
from cerata.memory.values import Frame, TimelinePage
from cerata.memory.view import View
from cerata.projections.fact_text import FactTextProjection
from cerata.projections.facts import FactsProjection
from cerata.projections.filters import Filter
from cerata.projections.frames import FramesProjection
from cerata.projections.fulltext import FulltextProjection
from cerata.projections.links import LinksProjection
from cerata.projections.registry import Registry
from cerata.projections.row_fold import MakeOwn
from cerata.projections.timeline import Position
from cerata.projections.vectors import VectorsProjection
from cerata.replay.fold import Fold, replay
from cerata.retrieval.query import query

from ..format.specimen import counted_bytes, environment, erased_payloads
from .spending import Spending, Spent

OTHER_SCOPE = (("tenant", "default"), ("session_id", "s1"))
WORDS = (
    "index",
    "indexes",
    "memory",
    "the",
    "recall",
    "HNSW",
    "café",
    "東京",
    "ελλάδα",
    "x1",
    "été",
)
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
FILTERS = (
    Filter(kind="note"),
    Filter(tags=["red"]) | ~Filter(role="user"),
    Filter(metadata={"n": (">=", 2)}, uri_prefix="file:"),
    Filter(track="main") | Filter(labels=["red"]),
)
OWN: Sequence[MakeOwn] = (Spending,)


# --- histories -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """What is appended at once; ``erased`` loses its payloads as an erasure will."""

    drafts: tuple[Draft, ...]
    erased: bool = False


def history(source: Random, events: int) -> list[Batch]:
    """Return batches of one to six events, ``events`` of them in all."""
    batches: list[Batch] = []
    count = 0
    while count < events:
        size = min(source.choice((1, 1, 1, 2, 3, 6)), events - count)
        drafts = [_draft(source, count + 1, place) for place in range(size)]
        batches.append(Batch(tuple(drafts), erased=source.random() < 0.04))
        count += size
    return batches


def _draft(source: Random, first: int, place: int) -> Draft:
    scope = OTHER_SCOPE if source.random() < 0.3 else DEFAULT_SCOPE
    body = _body(source, first, place)
    data = [body.embedding] if isinstance(body, PutFrame | PutEmbedding) else []
    vectors = tuple(
        held
        for found in data
        if found is not None
        for made, held in (_vector(found.space, number) for number in range(5))
        if made == found
    )
    blobs = (_BLOB,) if isinstance(body, PutFrame) and body.blob is not None else ()
    return Draft(body, scope, attachments=(*blobs, *vectors))


_BLOB = b"\x00\x01 bytes"


def _vector(space: str, number: int) -> tuple[Embedding, bytes]:
    drawn = hash_bytes(f"{space} {number}".encode())[:8]
    data = bytes(struct.pack("<8f", *(one - 128 for one in drawn)))
    return Embedding(space, "f4", 8, Attachment(hash_bytes(data), len(data))), data


def _earlier(source: Random, first: int, place: int) -> int:
    """Return a seq, mostly of an earlier event; or a reference into the batch."""
    if place and source.random() < 0.3:
        return -source.randint(1, place)
    return source.randint(1, max(1, first + place - 1))


def _body(source: Random, first: int, place: int) -> EventBody:
    ref = partial(_earlier, source, first, place)
    draw = source.random()
    if draw < 0.45:
        return _put(source, ref)
    if draw < 0.53:
        return DeleteFrame(frame=ref())
    if draw < 0.65:
        return SupersedeFrame(old=ref(), new=ref())
    if draw < 0.70:
        space, number = source.choice(("later", "small")), source.randrange(5)
        return PutEmbedding(frame=ref(), embedding=_vector(space, number)[0])
    if draw < 0.73:
        return PutTag(tag=f"t{first}-{place}", at=first)
    if draw < 0.79:
        return _about_facts(source, ref)
    if draw < 0.80:
        return Gap(reason="lost")
    if draw < 0.81:
        return _about_access(source, ref)
    if draw < 0.85:
        data = msgspec.msgpack.encode({"tag": "x", "cents": 1})
        return UnknownBody(kind=source.choice(("rare", "testSpent")), kind_version=9, data=data)
    return Spent(tag=source.choice(WORDS), cents=source.choice((-2, -1, 1, 1, 2, 2)))


def _about_access(source: Random, ref: Callable[[], int]) -> EventBody:
    if source.random() < 0.5:
        return AccessFrames(frames=(ref(), ref()))
    return RecallContext(
        query="the index",
        basis=1,
        tokenizer="words",
        profile="balanced",
        profile_version=1,
        max_tokens=100,
        entry_tokens=50,
        form="text",
        context=b"h" * 32,
        frames=(ref(), ref()),
        omitted=(ref(),),
    )


def _about_facts(source: Random, ref: Callable[[], int]) -> EventBody:
    name = partial(source.choice, ("ann", "bob", "Ánn"))
    draw = source.random()
    if draw < 0.6:
        kind, value = source.choice(
            (("entity", "ann"), ("string", "ann"), ("integer", 3), ("bool", True), ("odd", None))
        )
        return AssertFact(
            subject=name(),
            predicate=source.choice(("knows", "is")),
            object_kind=kind,
            object=value,
            valid_from=source.choice((None, 5, 10)),
            valid_to=source.choice((None, None, 7, 12)),
            confidence=source.choice((1.0, 0.5)),
            evidence=(Evidence(ref(), 0, 2),) if draw < 0.2 else (),
            assumptions=("sober",) if draw < 0.1 else (),
        )
    if draw < 0.75:
        return RetractFact(fact=ref())
    if draw < 0.80:
        return PutPredicate(predicate="is", functional=draw < 0.79)
    if draw < 0.85:
        return PutEntity(entity=name(), kind="person", aliases=("Annie",))
    if draw < 0.90:
        return MergeEntities(entity=name(), into=name())
    if draw < 0.94:
        return SplitEntity(entity=name(), into="eve", facts=(ref(), ref()))
    if draw < 0.97:
        return UnmergeEntities(merge=ref()) if draw < 0.955 else UnsplitEntity(split=ref())
    if draw < 0.99:
        kind = source.choice(("invalidates", "supersedes", "depends_on", "odd"))
        return LinkFacts(fact=ref(), kind=kind, target=ref())
    return UnlinkFacts(link=ref())


def _put(source: Random, ref: Callable[[], int]) -> PutFrame:
    def maybe(value: Any, chance: float = 0.3) -> Any:
        return value if source.random() < chance else None

    def words() -> str:
        return " ".join(source.choices(WORDS, k=source.randint(0, 6)))

    blob = maybe(Attachment(hash_bytes(_BLOB), len(_BLOB)), 0.1)
    return PutFrame(
        text=None if blob else words(),
        blob=blob,
        search_text=maybe(words(), 0.5 if blob else 0.1),
        title=maybe(words()),
        kind=source.choice(("text", "note", "document")),
        role=maybe(source.choice(("user", "tool"))),
        uri=maybe(source.choice(("file:a", "file:b", "http:c"))),
        tags=tuple(source.sample(("red", "blue", "memory"), source.choice((0, 0, 1, 2)))),
        labels=tuple(source.sample(("red", "l"), source.choice((0, 0, 1)))),
        metadata={} if source.random() < 0.6 else {"n": source.choice((1, 2, 3.5, "two", None))},
        track=maybe(source.choice(("main", "side"))),
        parent=maybe(ref()),
        chunk_index=maybe(source.randint(0, 2)),
        chunk_count=maybe(source.randint(1, 3), 0.1),
        content_dates=tuple(
            source.choices((-5, 10, 1_700_000_000_000_000), k=source.choice((0, 1, 2)))
        ),
        created=maybe(source.choice((-7, 12, 1_700_000_001_000_000))),
        content_hash=maybe(source.choice((b"a" * 16, b"b" * 16))),
        embedding=maybe(_vector(source.choice(("small", "large")), source.randrange(5))[0], 0.2),
    )


def written(batches: Sequence[Batch], through: int | None = None) -> Log:
    """Return a log in memory with the first ``through`` events, on a clock of its own."""
    log = Log.open("a.cera", environment=environment(counted_bytes()), ring_bytes=1 << 16)
    left = sum(len(batch.drafts) for batch in batches) if through is None else through
    for number, batch in enumerate(batches):
        drafts = batch.drafts[:left]
        if not drafts:
            break
        with erased_payloads() if batch.erased else nullcontext():
            log.append(drafts)
        if number % 11 == 10:
            log.seal()
        left -= len(drafts)
    return log


# --- reads ---------------------------------------------------------------------------------------


def answers(log: Log, fold: Fold, n: int, step: int = 1) -> str:
    """Return everything that a view at n says, as text; of a single frame at each ``step``-th."""
    views = [View(log, fold, n), View(log, fold, n, OTHER_SCOPE)]
    said = [_said(view, step) for view in views]
    return json.dumps([*said, _tabled(fold, n), _own(fold, n)], default=str)


def _said(view: View, step: int) -> object:
    every = list(view.frames(**EVERYTHING))[::step]
    return [
        (view.basis, str(view.now), view.count(), len(view)),
        [
            [frame.to_dict() for frame in islice(view.frames(where=where), 0, None, step)]
            for where in (None, *FILTERS)
        ],
        [(frame.to_dict(), view.source_of(frame)) for frame in every],
        [_tried(view.frame, number) for number in range(0, view.basis + 2, step)],
        [_tried(view.access, number) for number in range(0, view.basis + 2, step)],
        [(view.content(one).hex(), view.children(one), view.chunks(one)) for one in every],
        [[version.to_dict() for version in view.history(one)] for one in every],
        [view.find_content(found * 16) for found in (b"a", b"b")],
        [
            repr(view.find_stored(found * 16, chunk_count=count, space=space))
            for found in (b"a", b"b")
            for count in (None, 1, 2)
            for space in (None, "small")
        ],
        [view.find_uri(uri) for uri in ("file:a", "http:c")],
        [
            [hit.to_dict() for hit in view.search(asked, k=k, where=where, **closed)]
            for asked in QUERIES
            for k, where, closed in ((3, None, {}), (50, FILTERS[1], {}), (50, None, CLOSED))
        ],
        [view.explain(hit).to_dict() for asked in QUERIES[::3] for hit in view.search(asked, k=3)],
        [view.highlights("the index of memory", asked) for asked in QUERIES],
        [view.recall(asked, max_tokens=200).to_dict() for asked in QUERIES[::4]],
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
        [(event.seq, event.type) for event in view.log()],
        view.tags(),
        _said_of_facts(view),
        [_nearest(view, space, every) for space in ("small", "large", "later")],
    ]


def _nearest(view: View, space: str, every: Sequence[Frame]) -> object:
    """What a view says of the vectors in a space."""
    asked = np.linspace(-1, 1, 8)
    questions: list[tuple[Any, dict[str, Any]]] = [(asked, {}), ("index", {"embedding": asked})]
    try:
        return [
            [
                [hit.to_dict() for hit in view.search(query, space=space, k=4, where=where, **more)]
                for query, more in questions
                for where in (None, FILTERS[1])
            ],
            [str(view.embedding(frame, space)) for frame in every],
        ]
    except NotFound as error:
        return str(error)


def _said_of_facts(view: View) -> object:
    """What a view says of facts and entities."""
    at_seven = view.true_at(EPOCH + timedelta(microseconds=7))
    return [
        [
            [fact.to_dict() for fact in facts(*bound, include_retracted=retracted)]
            for facts in (view.facts, at_seven.facts)
            for bound in BOUND
            for retracted in (False, True)
        ],
        [_tried(view.fact, number) for number in range(view.basis + 2)],
        [[one.to_dict() for one in view.evidence(fact)] for fact in view.facts()],
        [
            [hit.to_dict() for hit in view.search_facts(question, k=4, valid_at=instant)]
            for instant in (None, EPOCH + timedelta(microseconds=7))
            for question in ("is ann eve", "annie likes", "what has bob got")
        ],
        [[fact.to_dict() for fact in view.fact_history(name)] for name in ("ann", "eve")],
        [one.to_dict() for one in view.conflicts()],
        [one.to_dict() for one in view.links(include_unlinked=True)],
        [_tried(view.why, number) for number in range(0, view.basis + 2, 3)],
        [one.to_dict() for one in view.entities()],
        [_tried(view.entity, name) for name in ("ann", "eve", "zoe")],
        [view.resolve(name) for name in ("ANN", "annie", "zoe")],
        [one.to_dict() for one in view.neighbours("ann")],
        [one.to_dict() for one in view.walk(["ann", "bob"], hops=3)],
        [one.to_dict() for one in view.paths("ann", "bob")],
        [one.to_dict() for one in view.cooccurring("ann")],
        [list(view.export_facts(history=history)) for history in (False, True)],
        [one.to_dict() for one in view.neighbours("ann")],
        [one.to_dict() for one in view.walk(["ann", "bob"], hops=3)],
        [one.to_dict() for one in view.paths("ann", "bob")],
        [one.to_dict() for one in view.cooccurring("ann")],
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


CLOSED: dict[str, Any] = {"include_superseded": True, "include_deleted": True}
EVERYTHING: dict[str, Any] = {**CLOSED, "include_chunks": True}


def _pages(view: View, limit: int, **asked: Any) -> Iterator[TimelinePage]:
    """Yield the pages of a timeline of everything, one after the other."""
    after: Position | None = None
    while True:
        page = view.timeline(limit=limit, after=after, **EVERYTHING, **asked)
        yield page
        after = page.next
        if after is None:
            return


def _tried(read: Callable[[Any], Any], number: object) -> object:
    try:
        return read(number).to_dict()
    except NotFound as error:
        return str(error)


def _tabled(fold: Fold, n: int) -> object:
    """What only the frames' table says."""
    table = fold.frames(n)
    ids = table.ids[: table.rows_at(n)].tolist()
    return [
        sorted((int(kind), count) for kind, count in table.oddities(n).items()),
        [table.embedded(n, space).tolist() for space in (None, "small", "later")],
        [(repr(table.closing_of(one, n)), table.supersedes_of(one, n)) for one in ids],
    ]


_BUILT_IN = tuple(
    kind.name
    for kind in (
        FramesProjection,
        FulltextProjection,
        FactsProjection,
        FactTextProjection,
        LinksProjection,
        VectorsProjection,
    )
)


def _own(fold: Fold, n: int) -> object:
    found: list[object] = []
    for name in fold.registry.names:
        if name in _BUILT_IN:
            continue
        try:
            found.append(list(fold.own(name, n).rows.items()))
        except ProjectionFailed as error:
            found.append(str(error))
    return found


# --- comparing -----------------------------------------------------------------------------------


class Unequal(AssertionError):
    """Two ways to one state gave different answers."""


@dataclass
class Tally:
    """What was compared, and a hash of all answers in order."""

    histories: int = 0
    events: int = 0
    states: int = 0
    answers: Any = None

    def __post_init__(self) -> None:
        self.answers = hashlib.sha256()

    def __str__(self) -> str:
        return (
            f"{self.histories:,} histories of {self.events:,} events; "
            f"{self.states:,} states, each reached in 4 ways, all equal; "
            f"answers {self.answers.hexdigest()[:16]}"
        )


def compare(
    seed: int,
    events: int,
    tally: Tally,
    *,
    own: Sequence[MakeOwn] = OWN,
    every: int = 1,
    first: int = 0,
    step: int = 1,
) -> None:
    """Compare the four ways at each n of one history, or at each ``every``-th from ``first`` on.

    With ``step`` only each so many-th frame is read by itself; every read is made.

    Raises:
        Unequal: naming seed, n and the ways.
    """
    source = Random(seed)
    batches = history(source, events)
    registry = Registry(own)
    with written(batches) as log:
        Fold(log, registry, last=source.randint(0, events // 2)).save()
        native = Fold(log, registry)
        for n in range(first, events + 1, every):
            ways = {"native": answers(log, native, n, step)}
            ways["checkpoint plus tail"] = answers(log, Fold(log, registry, last=n), n, step)
            ways["full replay"] = answers(log, replay(log, n, registry), n, step)
            with written(batches, n) as stopped:
                ways["stopped"] = answers(stopped, Fold(stopped, registry), n, step)
            for name, answer in ways.items():
                if answer != ways["native"]:
                    raise Unequal(f"seed {seed}, event {n}: native and {name} differ")
            tally.answers.update(ways["native"].encode())
            tally.states += 1
    tally.histories += 1
    tally.events += events


# --- the command ---------------------------------------------------------------------------------


def run(histories: int, first_seed: int, events: int = 40) -> Tally:
    """Compare short histories at every event, and for each twenty of them two long ones at some.

    The longer one has two largest ranges, and of it single frames are read by sample.
    """
    tally = Tally()
    for number in range(histories):
        compare(first_seed + number, events, tally)
        if number % 20 == 19:
            compare(first_seed + number, 1_300, tally, every=97)
            compare(first_seed + number, 9_000, tally, first=4_090, every=982, step=100)
    return tally


def run_elsewhere(
    histories: int, first_seed: int, hash_seeds: Sequence[int], events: int = 40
) -> list[str]:
    """Return the line that a process with each of these hash seeds prints, run side by side."""
    command = [sys.executable, "-m", "tests.replay.equality", "--here"]
    running = [
        subprocess.Popen(
            [*command, str(histories), str(first_seed), str(events)],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for hash_seed in hash_seeds
    ]
    said = [(process.communicate(), process.returncode) for process in running]
    for (_, errors), code in said:
        if code:
            raise Unequal(errors)
    return [line.strip() for (line, _), _ in said]


def main() -> None:
    here = "--here" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    histories, first_seed, events = [*numbers, *(100, 20_240_229, 40)[len(numbers) :]]
    if here:
        sys.stdout.write(f"{run(histories, first_seed, events)}\n")
        return
    started = time.monotonic()
    lines = run_elsewhere(histories, first_seed, (1, 2), events)
    if len(set(lines)) > 1:
        raise Unequal(f"processes with different hash seeds saw different answers: {lines}")
    sys.stdout.write(f"{lines[0]}\nthe same in 2 processes with hash seeds 1 and 2, ")
    sys.stdout.write(f"{time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
