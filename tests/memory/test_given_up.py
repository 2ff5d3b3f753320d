"""What `compact(horizon=)` removes from the file, and what it leaves: the claims of the docs.

Each word below is written in one place only, so its presence in the file is that of the place.
"""

from contextlib import suppress
from pathlib import Path

import zstandard

import cerata
from cerata import Draft
from cerata.integrations.langgraph.events import DropCheckpoints, DroppedCheckpoints, PutCheckpoint

MAGIC = b"\x28\xb5\x2f\xfd"

GONE = {
    "text",
    "title",
    "tag",
    "uri",
    "metadata",
    "role",
    "track",
    "key",
    "keyed-text",
    "writer",
    "put-reason",
    "heading",
    "passage",
    "first-version",
    "run-result",
    "old-slot-value",
}
"""Parts of closed frames, and of the events that put these."""

KEPT = {
    "question",
    "answered-question",
    "delete-reason",
    "supersede-reason",
    "deleter",
    "copied",
    "summary",
    "fact",
    "retracted-fact",
    "retract-reason",
    "call-argument",
    "tag-name",
    "tagged",
    "checkpoint",
    "current",
}
"""Recorded questions, later acts, copies, facts, calls, checkpoints, and frames at tags."""


def word(name: str) -> str:
    assert name in GONE | KEPT
    return f"{name}-kumquat"


def contents(path: Path) -> bytes:
    """Return every byte of a file, and those that are compressed in it."""
    data = path.read_bytes()
    parts = [data]
    at = data.find(MAGIC)
    while at >= 0:
        with suppress(zstandard.ZstdError):
            parts.append(zstandard.ZstdDecompressor().decompressobj().decompress(data[at:]))
        at = data.find(MAGIC, at + 1)
    return b"\n".join(parts)


def found(path: Path) -> set[str]:
    data = contents(path)
    return {name for name in GONE | KEPT if word(name).encode() in data}


def _look_up(place: str) -> dict[str, str]:
    return {"found": word("run-result"), "near": place.upper()}


def live(store: cerata.Store) -> None:
    """Write each word in its place, and close what can be closed."""
    tagged = store.put_frame(f"Tagged {word('tagged')}.")
    store.history.tag(word("tag-name"))
    with store.transaction(actor=word("writer"), reason=word("put-reason")):
        note = store.put_frame(
            f"A note {word('text')}.",
            title=word("title"),
            tags=[word("tag")],
            uri=f"note:{word('uri')}",
            metadata={"name": word("metadata")},
            role=word("role"),
            options=cerata.PutOptions(track=word("track")),
        )
    keyed = store.put_frame(
        f"Keyed {word('keyed-text')}.", options=cerata.PutOptions(key=word("key"))
    )
    long = "A passage of a document. " * 200
    document = store.remember(f"# {word('heading')}\n\n{long}{word('passage')}", uri="document")
    first = store.put_frame(f"Version one {word('first-version')}.")
    copied = store.put_frame(f"Copied {word('copied')}.")
    source = store.put_frame(f"A long talk about {word('summary')}.")
    store.put_frame(f"A copy: {word('copied')}.")
    store.put_frame(f"In short: {word('summary')}.", kind="summary")
    store.put_frame(f"Current {word('current')}.")
    store.assert_fact("anna", "owns", word("fact"), evidence=[note])
    wrong = store.assert_fact("anna", "sold", word("retracted-fact"), evidence=[note])
    store.recall(f"nothing {word('question')}", record=True)
    assert word("text") in store.recall(f"note {word('answered-question')}", record=True).text
    slots = cerata.Agent(store, "ann", memory={"prefs": cerata.MemorySpec()})
    slots.slot("prefs").set("colour", word("old-slot-value"))
    slots.slot("prefs").set("colour", "green")
    with slots.run("r-1") as run:
        run.call("look.up", _look_up, place=word("call-argument"))
    checkpoint = word("checkpoint").encode()
    store.append(
        Draft(
            PutCheckpoint(
                thread="t",
                checkpoint_id="1",
                encoding="json",
                checkpoint=checkpoint,
                metadata_encoding="json",
                metadata=b"{}",
            )
        ),
        Draft(DropCheckpoints(dropped=(DroppedCheckpoints("t", None, None),))),
    )
    store.supersede(first, "Version two.", reason=word("supersede-reason"))
    store.delete(note, actor=word("deleter"), reason=word("delete-reason"))
    for frame in (tagged, keyed, document, copied, source):
        store.delete(frame)
    store.retract_fact(wrong, reason=word("retract-reason"))


def test_a_horizon_removes_what_the_docs_say_and_nothing_else(tmp_path: Path) -> None:
    """Pages said that nothing can be erased, and the reader must know what stays."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        live(store)
        store.checkpoint()
        assert found(path) == GONE | KEPT
        store.upkeep.compact()
        assert found(path) == GONE | KEPT  # without a horizon nothing is given up
        store.upkeep.compact(horizon="HEAD")
        assert found(path) == KEPT
        assert [other for other in tmp_path.iterdir() if other != path] == []
    with cerata.open(path) as store:
        store.upkeep.rebuild()
        store.checkpoint()
        assert found(path) == KEPT
        assert store.verify().log.problems == ()
