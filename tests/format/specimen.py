"""Files whose every byte is known: the golden file of format version 1 and the worked example.

Owns the deterministic environment (storage in memory, a clock that ticks, counted dice) and the
story that the golden file tells: every structure that docs/format.md describes occurs in it. Run
as a script it writes golden/v1.cera.zst and golden/v1.json beside itself, once; a golden file of
a released format is never made again, since it stands for files that are out there.
"""

import json
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from blake3 import blake3

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.growth.events import Judge
from cerata.agents.slots.events import PutSlot
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import (
    AccessFrames,
    AssertFact,
    Attachment,
    DeleteFrame,
    Draft,
    Embedding,
    EventBody,
    Evidence,
    ExtractFacts,
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
    Scope,
    SplitEntity,
    SupersedeFrame,
    UnknownBody,
    UnlinkFacts,
    UnmergeEntities,
    UnsplitEntity,
    UseEmbedder,
)
from cerata.engine.format.checksums import file_key
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.page import RING_OFFSET
from cerata.engine.format.toc import LedgerEntry, Toc
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.engine.open import open_log
from cerata.engine.salted_hashes import context_hash, judged_hash
from cerata.integrations.langgraph.events import (
    DropCheckpoints,
    DroppedCheckpoints,
    PutCheckpoint,
    PutWrites,
    TaskWrite,
)

from ..clocks import StandingClock
from ..engine.words import erasing
from ..inside import state_of

GOLDEN = Path(__file__).parent / "golden"
PATH = "specimen.cera"
RING_SIZE = 64 << 10
START_US = 1_700_000_000_000_000
SCOPE: Scope = (("tenant", "acme"), ("user_id", "u1"), ("portfolio_id", 7), ("trial", True))


class TickingClock(StandingClock):
    """A clock that goes on by one second whenever it is asked."""

    def __init__(self) -> None:
        super().__init__(START_US - 1_000_000)

    def now_us(self) -> int:
        self.time_us += 1_000_000
        return super().now_us()


def counted_bytes() -> Callable[[int], bytes]:
    """Return dice whose n-th throw is BLAKE3 of n."""
    count = iter(range(1 << 32))
    return lambda size: blake3(next(count).to_bytes(8, "little")).digest(size)


def plain_bytes() -> Callable[[int], bytes]:
    """Return dice whose n-th throw is the byte n, repeated: easy to find in a dump."""
    count = iter(range(1, 256))
    return lambda size: bytes([next(count)]) * size


def environment(dice: Callable[[int], bytes]) -> Environment:
    """Return an environment in which the same calls make the same bytes."""
    return Environment(MemoryStorage(), TickingClock(), dice)


def contents(place: Environment, path: str = PATH) -> bytes:
    """Return the bytes of a file in an environment."""
    file = place.storage.open(path, mode="r")
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def vector(seed: int, dimension: int, space: str) -> tuple[Embedding, bytes]:
    """Return an embedding and the bytes that it names."""
    data = struct.pack(f"<{dimension}f", *((seed * 31 + k) % 97 / 97 for k in range(dimension)))
    return Embedding(space, "f4", dimension, Attachment(hash_bytes(data), len(data))), data


# --- the golden file -----------------------------------------------------------------------------


def tell_story(place: Environment) -> None:
    """Write a file in which every structure of the format occurs."""
    log = open_log(PATH, environment=place, ring_bytes=RING_SIZE)
    _first_words(log)
    _salted_hashes(log)
    _vectors(log)
    log.seal()
    _many_segments(log)
    _spill(log, "sealed")
    with erasing():
        log.append([Draft(PutFrame(text="this is gone"))])
    log.seal()
    log.publish_projections(_save_chunk)
    log.append([Draft(PutTag(tag="before-the-cut", at=log.head.seq))])
    log.close()
    _tear(place)
    log = open_log(PATH, environment=place)
    assert log.report.cut_bytes
    _embedder(log)
    _graph(log)
    _agents(log)
    _threads(log)
    assert isinstance(place.clock, TickingClock)
    place.clock.time_us -= 60_000_000  # The wall clock goes back; recorded times do not.
    log.seal(ring_bytes=RING_SIZE)
    _wrap(log)
    log.close()


def _first_words(log: Log) -> None:
    log.append([Draft(PutFrame(text="We chose Annoy: it fits in memory.", tags=("decision",)))])
    new = PutFrame(
        text="We chose HNSW: recall under 5 ms. Größe 12 µm.",
        uri="https://example.org/hnsw",
        title="Index",
        labels=("a", "b"),
        metadata={"z": [1, -2, 3.5, None, True], "a": {"nested": "yes"}},
        content_dates=(START_US - 86_400_000_000,),
        created=START_US,
        content_hash=bytes(range(16)),
    )
    drafts = [
        Draft(new, SCOPE, actor="agent", correlation="c-1", causation=1, reason="measured"),
        Draft(SupersedeFrame(old=1, new=-1), SCOPE, causation=-1),
    ]
    log.append(drafts, key="first-key", arguments=hash_bytes(b"arguments"))
    log.append([Draft(DeleteFrame(frame=1))], key="second-key")
    fact = {
        "subject": "hnsw",
        "predicate": "recall_ms",
        "object_kind": "float",
        "object": 5.0,
        "valid_from": START_US,
        "evidence": [[2, 0, 13], [2, None, None]],
    }
    # As bytes, so that this page's idea of a fact is held against the type.
    data = msgspec.msgpack.encode(fact)
    asserted = UnknownBody(kind="assertFact", kind_version=1, data=data)
    log.append([Draft(asserted), Draft(RetractFact(fact=-1))])
    for value in ([1, "two", None, True, b"3"], {"from": "Kiel", "km": 62.5}, None):
        nested = AssertFact(subject="a", predicate="b", object_kind="any", object=value)
        log.append([Draft(nested)])
    log.append([Draft(UnknownBody(kind="spending", kind_version=3, data=b"\x81\xa5cents\x07"))])


def _salted_hashes(log: Log) -> None:
    """Append a quote and a context, computed as docs/format.md says, and a batch of an import."""
    frame = log.event(2).salt
    assert frame is not None
    quote = blake3(QUOTED, key=frame + bytes(16)).digest(16)
    fact = AssertFact(
        subject="we",
        predicate="chose",
        object_kind="string",
        object="HNSW",
        evidence=(Evidence(2, 0, len(QUOTED), quote),),
    )
    batch = [Draft(ImportBatch(dialect="cerata-facts", count=1)), Draft(fact)]
    done = log.append(batch, key="import facts 00", arguments=hash_bytes(b"lines"))
    salt = log.event(done.last_seq).salt
    assert salt is not None
    recall = RecallContext(
        query="which index?",
        basis=done.last_seq,
        tokenizer="words",
        profile="default",
        profile_version=1,
        max_tokens=100,
        entry_tokens=50,
        form="text",
        context=blake3(frame + salt + SHOWN).digest(),
        frames=(2,),
        facts=(done.last_seq,),
        shared=True,
    )
    log.append([Draft(recall)])


QUOTED = b"We chose HNSW"
SHOWN = b"[#2] We chose HNSW: recall under 5 ms."


def _vectors(log: Log) -> None:
    for number in range(6):
        # Two spaces of one width, and a blob that is as wide.
        embedding, data = vector(number, 8, f"space-{number % 2}")
        blob = bytes([number]) * (32 + number)
        body = PutFrame(
            blob=Attachment(hash_bytes(blob), len(blob)), kind="image", embedding=embedding
        )
        log.append([Draft(body, attachments=(blob, data))])
    embedding, data = vector(9, 8, "space-1")
    log.append([Draft(PutEmbedding(frame=1, embedding=embedding), attachments=(data,))])
    data = bytes(range(250, 256)) + bytes(range(6))
    small = Embedding("small", "i1", len(data), Attachment(hash_bytes(data), len(data)))
    log.append([Draft(PutEmbedding(frame=1, embedding=small), attachments=(data,))])


def _embedder(log: Log) -> None:
    """Append a frame that expires with the first vector of a tenant, and the tenant's embedder."""
    identity = "letters@1"
    embedding, data = vector(13, 8, f"{identity}/8/cosine")
    frame = PutFrame(text="The ferry waits.", embedding=embedding, expires=START_US * 2)
    use = UseEmbedder(
        identity=identity,
        space=embedding.space,
        name="letters",
        tokens_space=f"{identity}/4/maxsim/i1",
    )
    log.append([Draft(frame, SCOPE, attachments=(data,)), Draft(use, SCOPE, actor="agent")])


def _graph(log: Log) -> None:
    """Append entities, predicates and links, and what takes each back."""
    first = log.head.seq + 1
    fact = AssertFact(subject="ann", predicate="likes", object_kind="entity", object="tea")
    bodies: list[EventBody] = [
        PutPredicate(predicate="likes", functional=False),
        PutEntity(entity="ann", kind="person", aliases=("anna",)),
        fact,
        AssertFact(subject="ann", predicate="lives in", object_kind="string", object="Bern"),
        MergeEntities(entity="anne", into="ann"),
        UnmergeEntities(merge=first + 4),
        SplitEntity(entity="ann", into="ann-2", facts=(first + 3,)),
        UnsplitEntity(split=first + 6),
        ExtractFacts(frame=1, extractor="rules", extractor_version="1", count=1),
        LinkFacts(fact=first + 2, kind="supports", target=first + 3),
        LinkFacts(fact=first + 2, kind="derived_from", frame=1),
        UnlinkFacts(link=first + 9),
        AccessFrames(frames=(1, 2)),
        Gap(reason="lost by a repair"),
    ]
    log.append([Draft(body, SCOPE) for body in bodies])


def _agents(log: Log) -> None:
    """Append a slot's declaration, and a run with an input, a call and an end."""
    first = log.head.seq + 1
    result = b'{"AAPL":[152.3,198.2]}'
    frame = PutFrame(
        blob=Attachment(hash_bytes(result), len(result)),
        kind="tool_result",
        parent=first + 2,
        track="analyst/scratchpad",
        search_text="{AAPL: 2 numbers} \u00b7 22 B",
        expires=START_US * 2,
    )
    called = RecordCall(
        activity=first + 3,
        kind="tool",
        name="market.fetch",
        version="2",
        turn=3,
        arguments='{"tickers":["AAPL"]}',
        digest=hash_bytes(b'market.fetch\0{"tickers":["AAPL"]}'),
        used=(1,),
        results=(first + 4,),
        overlaps=1,
    )
    declared = '{"scope":["user_id"],"tier":"semantic","type":"list"}'
    drawn = RecordCall(
        activity=first + 3,
        kind="random",
        name="random",
        arguments="{}",
        digest=hash_bytes(b"random\0{}"),
        value="0.25",
    )
    failed = msgspec.structs.replace(drawn, kind="model", value=None, error="ValueError: no")
    run = StartActivity(
        kind="run",
        name="r-1",
        agent="analyst",
        agent_version="1",
        workflow="review",
        parent=first + 1,
        frame=first + 2,
        function="analyst:analyse",
        code=hash_bytes(b"code"),
    )
    session = StartActivity(kind="session", name="s-1", agent="analyst", agent_version="1")
    drafts = [
        Draft(PutSlot(agent="analyst", slot="notes", spec=declared, schema='{"type":"object"}')),
        Draft(session),
        Draft(PutFrame(text="", kind="run", title="r-1", track="analyst")),
        Draft(run),
        Draft(frame, attachments=(result,)),
        *(Draft(body) for body in (called, drawn, failed)),
        Draft(msgspec.structs.replace(run, frame=None, resumes=first + 3, replays=True)),
        Draft(EndActivity(activity=first + 3, status="failed", error="ValueError: no")),
        Draft(EndActivity(activity=first + 1, status="left")),
    ]
    log.append(drafts)
    proposal = PutFrame(
        text="I answer in the language of the question.",
        kind="proposal",
        track="analyst",
        metadata={"target": "identity", "candidate": 1},
    )
    appended = log.append([Draft(proposal)])
    salt = log.event(appended.first_seq).salt
    assert salt is not None
    content = judged_hash(salt, "identity", "I answer in the language of the question.")
    verdict = Judge(proposal=appended.first_seq, verdict="reject", content=content)
    log.append([Draft(verdict, actor="anna", reason="too early")])
    shown = RecallContext(
        query="So?",
        basis=log.head.seq,
        tokenizer="cl100k_base",
        profile="default",
        profile_version=1,
        max_tokens=500,
        entry_tokens=0,
        form="text",
        context=context_hash([salt], "[TRAITS]"),
        frames=(appended.first_seq,),
        now=log.head.recorded,
        assembly='{"blocks":["continuity"],"name":"continuity","version":1}',
        activity=first + 1,
        blocks=("continuity", "handoff"),
    )
    log.append([Draft(shown)])


def _threads(log: Log) -> None:
    """Append a checkpoint of LangGraph with its writes, and what drops both."""
    checkpoint = PutCheckpoint(
        thread="t-1",
        ns="child",
        checkpoint_id="c-1",
        parent_id="c-0",
        run_id="r-1",
        encoding="msgpack",
        checkpoint=b"\x81\xa1a\x01",
        metadata_encoding="json",
        metadata=b"{}",
    )
    write = TaskWrite(0, "messages", "msgpack", b"\x01")
    writes = PutWrites(
        thread="t-1", ns="child", checkpoint_id="c-1", task_id="k-1", task_path="p", writes=(write,)
    )
    dropped = DropCheckpoints(dropped=(DroppedCheckpoints("t-1", None, "c-1"),))
    log.append([Draft(checkpoint), Draft(writes), Draft(dropped)])


def _many_segments(log: Log) -> None:
    """Seal often enough that references move to a manifest page, and keys into merged runs."""
    for number in range(66):
        key = f"key-{number}" if number % 3 == 0 else None
        log.append([Draft(PutTag(tag=f"tag-{number}", at=log.head.seq))], key=key)
        log.seal()


def _spill(log: Log, word: str) -> None:
    """Append a batch larger than a quarter of the ring."""
    embedding, data = vector(11, 16, "space-2")
    drafts = [Draft(PutFrame(text=f"{word} {k} " * 900), SCOPE) for k in range(3)]
    drafts.append(Draft(PutFrame(text="one more", embedding=embedding), attachments=(data,)))
    log.append(drafts, key=f"spill-{word}")


def _save_chunk(flip: Flip, _toc: Toc) -> Mapping[str, Mapping[str, Any]]:
    """Two projections that share a manifest and a ledger, and one without a chunk."""
    body = hash_bytes(b"opaque") + zstandard.compress(b"opaque")
    refs = [flip.add(ExtentKind.CHUNK, body, first, last) for first, last in ((1, 64), (65, 70))]
    ledger = [LedgerEntry(64, hash_bytes(b"64")), LedgerEntry(70, hash_bytes(b"70"))]
    states = {
        "specimen-1": StateDraft(70, ledger[-1].digest, [refs], ledger),
        "specimen-2": StateDraft(70, hash_bytes(b"another"), [refs[1:]], ledger[1:]),
        "specimen-3": StateDraft(70, hash_bytes(b"nothing"), ()),
    }
    return {key: saved.to_entry() for key, saved in flip.add_states(states).items()}


def _tear(place: Environment) -> None:
    """Leave what a torn write leaves where the next record would have stood."""
    log = open_log(PATH, mode="r", environment=place)
    offset = state_of(log).cursor.offset  # pyright: ignore[reportPrivateUsage]
    log.close()
    file = place.storage.open(PATH, mode="rw")
    file.write_at(offset, blake3(b"torn").digest(700))
    file.close()


def _wrap(log: Log) -> None:
    """Append past the ring's end, so that padding and an automatic seal occur."""
    for number in range(75):
        log.append([Draft(PutFrame(text=f"{number} " * 400))])
    _spill(log, "unsealed")
    log.append([Draft(PutTag(tag="end", at=log.head.seq)), Draft(PutTag(tag="end-2", at=1))])


def summary(log: Log) -> dict[str, Any]:
    """Return what a reader must find in a file, as JSON: hashes in hex, headers as lists."""
    events: list[Any] = []
    for event in log.read():
        header = event.header
        attachments = log.reader.attachments(log.snapshot, event.seq)
        events.append(
            [
                [getattr(header, name) for name in header.__struct_fields__],
                None if event.salt is None else event.salt.hex(),
                event.commitment.hex(),
                [hash_bytes(data).hex() for data in attachments],
            ]
        )
    return {
        "file_id": log.page.file_id.hex(),
        "log_id": log.log_id.hex(),
        "head": log.head.seq,
        "recorded": log.head.recorded,
        "chain": log.head.chain.hex(),
        "root": log.head.root.hex(),
        "events": events,
    }


def golden_file() -> bytes:
    """Return the golden file's bytes as stored in the repository."""
    packed = (GOLDEN / "v1.cera.zst").read_bytes()
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=8 << 20)


# --- the worked example --------------------------------------------------------------------------


EXAMPLE_OFFSET = RING_OFFSET
EXAMPLE_PARTS = (
    (8, "first seq: 1"),
    (4, "length of the body: 129"),
    (4, "incarnation: 1"),
    (8, "header check"),
    (24, "body check"),
    (8, "durable through: 0"),
    (4, "flags: 0"),
    (4, "count: 1 event"),
    (24, "link: none before it"),
    (1, "array of 5: the content"),
    (9, "recorded: 1,700,000,001,000,000"),
    (1, "clock: null, the same"),
    (1, "array of 1: the events"),
    (1, "array of 6: the event"),
    (9, "type: putFrame"),
    (1, "version: 1"),
    (1, "causation: null"),
    (18, "salt, 16 bytes"),
    (2, "payload, 42 bytes"),
    (1, "  array of 7"),
    (2, "  scope: array of 1 pair"),
    (7, "    tenant"),
    (8, "    default"),
    (5, "  actor, correlation, reason, key, arguments: null"),
    (3, "  body: map of 1, its header wider than need be"),
    (5, "    text"),
    (11, "    Wax keeps."),
    (1, "attachments: none"),
    (1, "spill: null, since the events are here"),
    (1, "seed: null, since a batch of one event has none"),
    (335, "zeros to the next sector"),
)
"""The first record of the example, cut into (size, meaning)."""


def example_file() -> bytes:
    """Return a new file with one event: ids 02… and 03…, salt 04…."""
    place = environment(plain_bytes())
    log = open_log(PATH, environment=place, ring_bytes=RING_SIZE)
    log.append([Draft(PutFrame(text="Wax keeps."))])
    data = contents(place)
    log.close()
    return data


def example_lines() -> list[str]:
    """Return the worked example as docs/format.md shows it."""
    data = example_file()
    lines = ["```text"]
    at = EXAMPLE_OFFSET
    for size, meaning in EXAMPLE_PARTS:
        part = data[at : at + size]
        pieces = [part[k : k + 12] for k in range(0, size, 12)] if any(part) or size < 25 else []
        for number, piece in enumerate(pieces or [b""]):
            shown = piece.hex(" ") if pieces else f"{size} times 00"
            said = meaning if number == 0 else ""
            lines.append(f"{at + 12 * number:<6}{shown:<37}{said}".rstrip())
        at += size
    return [*lines, "```", "", *_example_hashes(data)]


def _example_hashes(data: bytes) -> list[str]:
    place = environment(plain_bytes())
    with open_log(PATH, environment=place, ring_bytes=RING_SIZE) as log:
        log.append([Draft(PutFrame(text="Wax keeps."))])
        assert contents(place) == data
        event = log.event(1)
        rows = [
            ("file key", file_key(log.page.file_id)),
            ("event header", msgspec.msgpack.encode(event.header)),
            ("commitment", event.commitment),
            ("leaf, the root of a log of one", event.leaf),
            ("chain 0", log.chain_at(0)),
            ("chain 1", log.chain_at(1)),
        ]
    return ["| value | bytes |", "|---|---|", *(f"| {name} | `{v.hex()}` |" for name, v in rows)]


def main() -> int:
    """Write the golden file, unless it is there."""
    if (GOLDEN / "v1.cera.zst").exists() and "--before-release" not in sys.argv:
        sys.stderr.write("The golden file is there, and is never made again.\n")
        return 1
    place = environment(counted_bytes())
    tell_story(place)
    log = open_log(PATH, mode="r", environment=place)
    found = summary(log)
    log.close()
    data = contents(place)
    (GOLDEN / "v1.cera.zst").write_bytes(zstandard.compress(data, 19))
    rows = ",\n  ".join(json.dumps(row) for row in found.pop("events"))
    head = json.dumps(found, indent=1)[:-2]
    (GOLDEN / "v1.json").write_text(f'{head},\n "events": [\n  {rows}\n ]\n}}\n')
    sys.stdout.write(f"{len(data):,} bytes, {found['head']} events\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
