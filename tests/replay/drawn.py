"""Random histories of every kind of event, anomalies among them, and logs that hold them."""

import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import msgspec

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.growth.events import Judge
from cerata.agents.slots.events import PutSlot
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
    ImportBatch,
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
    UseEmbedder,
    is_token_space,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.integrations.langgraph.events import (
    DropCheckpoints,
    DroppedCheckpoints,
    PutCheckpoint,
    PutWrites,
    TaskWrite,
)

from ..engine.words import erasing
from ..format.specimen import counted_bytes, environment
from .spending import Spent

OTHER_SCOPE = (("tenant", "default"), ("session_id", "s1"))
EXPIRY = 1_700_000_000_000_000 + 40_000_000
"""A time while the log of `written` grows: before it a frame is read, and from then on not."""
TOKENS = "m@1/8/maxsim/i1"
"""The space of token vectors."""

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
    data = body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ()
    vectors = tuple(
        held
        for found in data
        for made, held in (_vector(found.space, number) for number in range(5))
        if made == found
    )
    blobs = (_BLOB,) if isinstance(body, PutFrame) and body.blob is not None else ()
    number = first + place
    return Draft(
        body,
        scope,
        actor="anna" if isinstance(body, Judge) else (None, "anna", "agent")[number % 3],
        correlation=None if number % 4 else "run 1",
        attachments=(*blobs, *vectors),
        reason=None if number % 5 else "corrected",
    )


_BLOB = b"\x00\x01 bytes"


def _vector(space: str, number: int) -> tuple[Embedding, bytes]:
    hashed = hash_bytes(f"{space} {number}".encode())
    if is_token_space(space):
        tokens = hashed[: 8 * (1 + number % 3)]
        return Embedding(space, "i1", 8, Attachment(hash_bytes(tokens), len(tokens))), tokens
    drawn = hashed[:8]
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
        space, number = source.choice(("later", "small", TOKENS)), source.randrange(5)
        frame = ref()
        context = tuple({ref()} - {frame}) if number % 2 else ()
        return PutEmbedding(frame=frame, embedding=_vector(space, number)[0], context=context)
    if draw < 0.73:
        if place % 2:
            return _use(first)
        return PutTag(tag=f"t{first}-{place}", at=first)
    if draw < 0.79:
        return _about_facts(source, ref)
    if draw < 0.795:
        return Gap(reason="lost")
    if draw < 0.80:
        return ImportBatch(dialect="cerata-facts", count=place, after=ref())
    if draw < 0.81:
        return _about_access(source, ref)
    if draw < 0.85:
        data = msgspec.msgpack.encode({"tag": "x", "cents": 1})
        return UnknownBody(kind=source.choice(("rare", "testSpent")), kind_version=9, data=data)
    if draw < 0.90:
        return _about_agents(source, ref)
    if draw < 0.92:
        return _about_threads(source)
    return Spent(tag=source.choice(WORDS), cents=source.choice((-2, -1, 1, 1, 2, 2)))


def _about_agents(source: Random, ref: Callable[[], int]) -> EventBody:
    draw = source.random()
    if draw < 0.1:
        return PutSlot(
            agent=source.choice(("analyst", "clerk")),
            slot=source.choice(("notes", "mode")),
            spec=source.choice(("{}", '{"tier":"semantic"}')),
            schema=source.choice((None, "{}")),
        )
    if draw < 0.2:
        verdict = source.choice(("approve", "reject", "revoke"))
        return Judge(proposal=ref(), verdict=verdict, content=source.choice((b"c", b"d")) * 32)
    if draw < 0.4:
        return StartActivity(
            kind=source.choice(("run", "session")),
            name=source.choice(("r1", "r2")),
            agent="analyst",
            agent_version="1",
            frame=source.choice((None, ref())),
            resumes=source.choice((None, ref())),
            replays=source.random() < 0.5,
        )
    if draw < 0.5:
        return EndActivity(activity=ref(), status=source.choice(("done", "left")))
    return RecordCall(
        activity=ref(),
        kind=source.choice(("tool", "clock")),
        name=source.choice(("fetch", "now")),
        arguments="{}",
        digest=source.choice((b"d", b"e")) * 32,
        used=(ref(),) if draw < 0.7 else (),
        results=(ref(),) if draw < 0.8 else (),
        value=None if draw < 0.9 else "1",
    )


def _about_threads(source: Random) -> EventBody:
    """Events of LangGraph: few threads, so that puts replace, and deletions hide some."""
    draw = source.random()
    thread, ns, checkpoint_id = (source.choice("ab") for _ in range(3))
    if draw < 0.5:
        return PutCheckpoint(
            thread=thread,
            ns=ns,
            checkpoint_id=checkpoint_id,
            run_id=source.choice((None, "run")),
            encoding="bytes",
            checkpoint=b"checkpoint",
            metadata_encoding="bytes",
            metadata=b"{}",
        )
    if draw < 0.8:
        write = TaskWrite(source.choice((0, -1)), "channel", "bytes", b"value")
        return PutWrites(
            thread=thread, ns=ns, checkpoint_id=checkpoint_id, task_id="t", writes=(write,)
        )
    dropped = DroppedCheckpoints(
        thread, source.choice((None, ns)), source.choice((None, checkpoint_id))
    )
    return DropCheckpoints(dropped=(dropped,))


def _use(first: int) -> EventBody:
    """An embedder, in some events with the name of a built-in embedder of a later version."""
    identity = f"model-{first % 3}@{first}"
    return UseEmbedder(
        identity=identity,
        space=f"{identity}/8/cosine",
        name="later" if first % 2 else None,
        tokens_space=None if first % 3 else f"{identity}/8/maxsim/i1",
    )


def _about_access(source: Random, ref: Callable[[], int]) -> EventBody:
    if source.random() < 0.5:
        return AccessFrames(frames=(ref(), ref()))
    return RecallContext(
        query="the index",
        basis=1,
        tokenizer="words",
        profile="default",
        profile_version=1,
        max_tokens=100,
        entry_tokens=50,
        form="text",
        context=b"h" * 32,
        include_superseded=source.random() < 0.5,
        neighbours=source.choice((0, 1)),
        frames=(ref(), ref()),
        omitted=(ref(),),
        now=source.choice((None, EXPIRY)),
        shared=source.random() < 0.5,
        reranker=source.choice((None, "model@1")),
        reranked=(ref(),),
        reranked_scores=bytes(8),
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
        expires=maybe(source.choice((-9, EXPIRY, 2**62)), 0.1),
        content_hash=maybe(source.choice((b"a" * 16, b"b" * 16))),
        embedding=maybe(_vector(source.choice(("small", "large")), source.randrange(5))[0], 0.2),
        token_embedding=maybe(_vector(TOKENS, source.randrange(5))[0], 0.2),
    )


def written(batches: Sequence[Batch], through: int | None = None) -> Log:
    """Return a log in memory with the first ``through`` events, on a clock of its own."""
    log = open_log("a.cera", environment=environment(counted_bytes()), ring_bytes=1 << 16)
    left = sum(len(batch.drafts) for batch in batches) if through is None else through
    for number, batch in enumerate(batches):
        drafts = batch.drafts[:left]
        if not drafts:
            break
        with erasing() if batch.erased else nullcontext():
            log.append(drafts)
        if number % 11 == 10:
            log.seal()
        left -= len(drafts)
    return log
