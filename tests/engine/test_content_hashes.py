"""The content hash that a putFrame does not store: computed, found by, and bound by commitments."""

import pytest

import cerata
from cerata.engine.events import Attachment, PutFrame
from cerata.engine.integrity import commitment_of, hash_bytes
from cerata.engine.salted_hashes import content_hash_of

STORED = bytes(range(16))
BLOB = Attachment(hash_bytes(b"wax"), 3)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PutFrame(text="wax"), cerata.content_hash("wax")),
        (PutFrame(text=""), cerata.content_hash("")),
        (PutFrame(blob=BLOB, search_text="bees"), cerata.content_hash(b"wax")),
        (PutFrame(text="wax", content_hash=STORED), STORED),
        (PutFrame(text="", chunk_count=2, content_hash=STORED), STORED),
        (PutFrame(text="", chunk_count=2), None),
        (PutFrame(text="wax", parent=1, chunk_index=0), None),
        (PutFrame(kind="erased"), None),
    ],
)
def test_the_hash_follows_from_the_content(body: PutFrame, expected: bytes | None) -> None:
    """A document's content is in its chunks, and a chunk is found by its document."""
    assert content_hash_of(body) == expected


def test_a_draft_without_utf8_has_a_hash() -> None:
    """A fold must not fail at a draft that the append refuses."""
    assert len(content_hash_of(PutFrame(text="\ud800")) or b"") == 16


def test_payloads_of_texts_and_blobs_have_no_hash() -> None:
    """16 bytes that do not compress; only the hash of a document with chunks is stored."""
    long = "\n\n".join(f"## Part {number}\n" + f"w{number} " * 400 for number in range(4))
    with cerata.open(":memory:") as store:
        text = store.put_frame("a text")
        blob = store.put_frame(b"a blob")
        store.put_frames(["one of many", "two of many"])
        document = store.remember(long)
        bodies = [event.body for event in store.log() if isinstance(event.body, PutFrame)]
        stored = [body.content_hash for body in bodies if body.content_hash is not None]
        assert stored == [cerata.content_hash(long)]
        assert store.frame(text).content_hash == cerata.content_hash("a text")
        assert store.frame(blob).content_hash == cerata.content_hash(b"a blob")
        assert store.frame(document).content_hash == stored[0]
        assert store.frame(document.ids[1]).content_hash is None


def test_a_commitment_binds_the_content_without_its_hash() -> None:
    """The payload has the text, and for a blob the whole hash."""
    with cerata.open(":memory:") as store:
        store.put_frame("a text that is bound")
        store.put_frame(b"a blob that is bound")
        text, blob = store.log()
        for event, content in (
            (text, b"a text that is bound"),
            (blob, hash_bytes(b"a blob that is bound")),
        ):
            assert event.salt is not None
            assert event.payload_bytes is not None
            assert content in event.payload_bytes
            assert commitment_of(event.salt, event.payload_bytes) == event.commitment


def test_a_text_that_was_appended_without_a_hash_is_found() -> None:
    """A caller's own events had none, so an ingest put the same text again."""
    with cerata.open(":memory:") as store:
        frame = store.append(PutFrame(text="wax")).id
        assert store.files.by_content(cerata.content_hash("wax")) == [frame]
        assert not store.remember("wax").added
