"""The envelope of format version 1 carries what comes later, with no change to the format.

Each case writes what a later feature will write, as an event that nobody has registered where
the feature does not exist yet, and folds it in a few lines: the stored bytes suffice.
"""

import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cerata.engine.codec import Prepared, WireEvent
from cerata.engine.copies.backup import back_up
from cerata.engine.events import (
    AssertFact,
    Attachment,
    Draft,
    Embedding,
    Erased,
    EventBody,
    PutFrame,
    RetractFact,
    UnknownBody,
    event,
)
from cerata.engine.integrity import hash_bytes, inclusion_proof, verify_inclusion
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import RING, Disk, put


def later(kind: str, /, version: int = 1, **fields: Any) -> UnknownBody:
    """Return a body as a Cerata that knows the kind would write it."""
    return UnknownBody(kind=kind, kind_version=version, data=msgspec.msgpack.encode(fields))


def kept(disk: Disk) -> Log:
    """Seal, close, and open again: what a fold reads has been through segment and disk."""
    with disk.log() as log:
        log.seal()
    return disk.open()


def fields(log: Log, kind: str) -> list[dict[str, Any]]:
    return [
        {"seq": row.seq, **row.body.fields()}
        for row in log.read()
        if row.type == kind and isinstance(row.body, UnknownBody)
    ]


def test_a_tool_result_is_referenced_later_by_name() -> None:
    """Scope names are open: who, which user, which portfolio."""
    disk = Disk()
    scope = (("tenant", "fund"), ("user_id", "u7"), ("portfolio_id", 42))
    with disk.log() as log:
        log.append([Draft(later("toolResult", name="var95", value=1.25), scope, actor="risk")])
        log.append([Draft(later("toolResult", name="var95", value=9.0), (("tenant", "other"),))])
        log.append([Draft(later("step", uses=["var95"]), scope)])
    results: dict[tuple[object, str], tuple[int, float]] = {}
    used: list[tuple[int, float]] = []
    for row in kept(disk).read():
        if not isinstance(row.body, UnknownBody):
            continue
        said: dict[str, Any] = dict(row.body.fields())
        if row.type == "toolResult":
            results[row.scope, said["name"]] = row.seq, said["value"]
        else:
            used += [results[row.scope, name] for name in said["uses"]]
    assert used == [(1, 1.25)]


def test_a_foreign_log_line_keeps_its_old_hash() -> None:
    """An import says where each line came from, and the old chain can still be checked."""
    lines = [b'{"n":1}', b'{"n":2}', b'{"n":3}']
    disk, old = Disk(), b""
    with disk.log() as log:
        for number, line in enumerate(lines):
            old = hash_bytes(old + line)
            log.append(
                [Draft(later("importedLine", source="audit.log", line=number, text=line, hash=old))]
            )
    check = b""
    for row in fields(kept(disk), "importedLine"):
        check = hash_bytes(check + row["text"])
        assert row["hash"] == check


def test_a_conversation_is_two_turns_in_a_thread() -> None:
    """Frames with roles; the thread is a name in the scope, the answer's cause its question."""
    disk = Disk()
    scope = (("tenant", "default"), ("thread", "t1"))
    with disk.log() as log:
        log.append([Draft(PutFrame(text="Which index?", role="user", kind="message"), scope)])
        log.append(
            [Draft(PutFrame(text="HNSW.", role="assistant", kind="message"), scope, causation=1)]
        )
        log.append([put("elsewhere")])
    thread = [
        (row.body.role, row.body.text, row.causation)
        for row in kept(disk).read()
        if dict(row.scope or ()).get("thread") == "t1" and isinstance(row.body, PutFrame)
    ]
    assert thread == [("user", "Which index?", None), ("assistant", "HNSW.", 1)]


def test_an_approval_names_a_proposals_hash() -> None:
    """The leaf binds header and payload: what was approved cannot be exchanged afterwards."""
    disk = Disk()
    with disk.log() as log:
        log.append([Draft(later("proposal", action="sell", shares=100))])
        leaf = log.event(1).leaf
        log.append([Draft(later("approval", of=1, leaf=leaf), actor="ana", causation=1)])
    log = kept(disk)
    (approval,) = fields(log, "approval")
    assert log.event(approval["of"]).leaf == approval["leaf"]


def test_a_leaf_outlives_its_payload() -> None:
    """Erased in the ring and in a segment: chain, root and proof are those of the whole event."""
    disk, twin = Disk(), Disk()
    whole: list[WireEvent] = []
    with disk.log() as log:
        for text in ("kept", "to be erased", "kept too"):
            log.append([put(text)])
            whole += state_of(log).tail[-1].events
        head = log.head.chain, log.head.root
        leaves = [row.leaf for row in log.read()]
        commitment = log.event(2).commitment
    proof = inclusion_proof(leaves, 1)

    # The same events in a twin of the same log id and clock, the second with no payload.
    twin.random.seed(7)
    with twin.log() as log:
        gone = WireEvent("putFrame", 1, None, None, commitment)
        for row in (whole[0], gone, whole[2]):
            with log._lock.writing():
                log._writer.write_batch(Prepared((row,), 200, None, None, "default"), None)
        for _ in range(2):
            assert [row.leaf for row in state_of(log).events(1)] == leaves
            log.seal()
        assert (log.head.chain, log.head.root) == head
        erased = log.event(2)
        assert erased.body == Erased(commitment)
        assert (erased.payload, erased.salt, erased.type) == (None, None, "putFrame")
        assert verify_inclusion(erased.leaf, 1, 3, proof, log.head.root)
        assert verify_log(log).problems == ()
    assert b"to be erased" not in twin.image()


def test_a_fact_has_two_clocks() -> None:
    """When it is true in the world, and when the log knew it."""
    disk = Disk()

    def ceo(name: str, start: int, stop: int | None = None) -> Draft:
        return Draft(
            AssertFact(subject="acme", predicate="ceo", object_kind="str", object=name,
                       valid_from=start, valid_to=stop)
        )  # fmt: skip

    with disk.log() as log:
        log.append([ceo("Ann", 2010)])
        log.append([Draft(RetractFact(fact=1)), ceo("Ann", 2010, 2020), ceo("Bob", 2020)])
    log = kept(disk)

    def known(seq: int, year: int) -> set[object]:
        facts: dict[int, AssertFact] = {}
        for row in log.read(1, seq):
            if isinstance(row.body, AssertFact):
                facts[row.seq] = row.body
            elif isinstance(row.body, RetractFact):
                facts.pop(row.body.fact)
        return {
            fact.object
            for fact in facts.values()
            if (fact.valid_from or 0) <= year < (fact.valid_to or 9999)
        }

    assert [known(1, 2021), known(4, 2021), known(4, 2015)] == [{"Ann"}, {"Bob"}, {"Ann"}]


def test_an_embedding_of_384_floats() -> None:
    """It comes back bit for bit, and enters the payload by its hash."""
    disk = Disk()
    rows = np.random.default_rng(7).standard_normal((50, 384), dtype="<f4")
    with disk.log() as log:
        for row in rows:
            data = row.tobytes()
            held = Embedding("minilm", "f4", 384, Attachment(hash_bytes(data), len(data)))
            log.append([Draft(PutFrame(text="a", embedding=held), attachments=(data,))])
    log = kept(disk)
    read: list[np.ndarray[Any, np.dtype[np.float32]]] = []
    for event_read in log.read():
        assert isinstance(event_read.body, PutFrame)
        assert event_read.body.embedding is not None
        data = log.attachment(event_read.seq, event_read.body.embedding.data)
        read.append(np.frombuffer(data, "<f4"))
    assert np.array_equal(np.stack(read), rows)


@pytest.mark.slow("writes 200 MiB and compares times")
def test_a_blob_of_200_mib(tmp_path: Path) -> None:
    """In one append, through a spill, a seal and a reopening."""
    data = np.random.default_rng(7).bytes(200 << 20)
    held = Attachment(hash_bytes(data), len(data))
    path = str(tmp_path / "a.cera")
    started = time.monotonic()
    with open_log(path, ring_bytes=RING) as log:
        log.append([Draft(PutFrame(blob=held, kind="blob"), attachments=(data,))])
        log.append([put("after")])
        log.seal()
    with open_log(path, mode="r") as log:
        body = log.event(1).body
        assert isinstance(body, PutFrame)
        assert body.blob is not None
        assert log.attachment(1, body.blob) == data
        assert Path(path).stat().st_size < len(data) + (1 << 20)
    assert time.monotonic() - started < 60


def test_what_is_not_known_is_carried_unchanged() -> None:
    """An unknown kind, and a newer version of a known one, through seal, backup and reopening."""

    @event("test.known")
    class Known(EventBody, frozen=True, kw_only=True):
        number: int

    disk = Disk()
    with disk.log() as log:
        log.append([Draft(Known(number=1))])
        log.append([Draft(later("test.known", 2, number=[1, 2], more={"a": None}))])
        log.append([Draft(later("test.unheard", 7, x=b"\xff"), attachments=(b"beside",))])
        before = [(row.header, row.payload_bytes, row.leaf) for row in log.read()]
        back_up(log, "copy.cera")
    for path in ("brain.cera", "copy.cera"):
        with disk.log(path=path) as log:
            log.seal()
            assert [(row.header, row.payload_bytes, row.leaf) for row in log.read()] == before
            bodies = [row.body for row in log.read()]
            assert bodies == [
                Known(number=1),
                later("test.known", 2, number=[1, 2], more={"a": None}),
                later("test.unheard", 7, x=b"\xff"),
            ]
            assert log.reader.attachments(log.snapshot, 3) == (b"beside",)


def test_a_flip_carries_what_it_does_not_know() -> None:
    """Another projection's entry, and a TOC field from a later version, outlive our flips."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        theirs: dict[str, dict[str, Any]] = {"theirs": {"anything": [1, b"2"], "chunks": []}}
        log.publish_projections(lambda flip, toc: theirs)  # noqa: ARG005
    with disk.log() as log:
        log.append([put("b")])
        log.publish_projections(lambda flip, toc: {"ours": {"n": 2}})  # noqa: ARG005
        assert dict(log.toc().projections) == {**theirs, "ours": {"n": 2}}
