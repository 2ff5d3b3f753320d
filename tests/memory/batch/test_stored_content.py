"""The probe: what of a content is there, so that an ingest repeats no work."""

from pathlib import Path

import msgspec

import cerata
from cerata.engine.events import Attachment, DeleteFrame, Draft, Embedding, PutEmbedding, PutFrame
from cerata.engine.integrity import hash_bytes
from cerata.memory.values.frames import Stored

CONTENT = bytes(range(16))
VECTOR = bytes(4)


def in_space(space: str) -> Embedding:
    return Embedding(space, "f4", 1, Attachment(hash_bytes(VECTOR), len(VECTOR)))


def chunk(index: int, space: str | None = None) -> Draft:
    embedding = None if space is None else in_space(space)
    body = PutFrame(text="c", parent=1, chunk_index=index, embedding=embedding)
    return Draft(body, attachments=() if space is None else (VECTOR,))


def test_the_probe_says_what_of_a_document_is_still_to_be_done() -> None:
    """A crash left a document with two of three chunks; one of them has its embedding."""
    with cerata.open(":memory:") as store:
        for event in (
            PutFrame(text="", content_hash=CONTENT, chunk_count=3),
            chunk(0, "small"),
            chunk(2),
            Draft(PutEmbedding(frame=3, embedding=in_space("small")), attachments=(VECTOR,)),
            chunk(1, "large"),
            DeleteFrame(frame=2),
            DeleteFrame(frame=1),
        ):
            store.append(event)

        def probe(n: int, space: str | None = "small") -> Stored:
            (found,) = store.at(n).files.stored(CONTENT, chunk_count=3, space=space)
            return found

        assert probe(1) == Stored(1, {}, (0, 1, 2), ())
        assert probe(3) == Stored(1, {0: 2, 2: 3}, (1,), (3,))
        assert probe(4) == Stored(1, {0: 2, 2: 3}, (1,), ())
        assert probe(5) == Stored(1, {0: 2, 1: 5, 2: 3}, (), (5,))
        assert probe(5).ids == (1, 2, 5, 3)
        assert probe(5, None).is_complete
        assert not probe(5, "unheard of").is_complete
        assert probe(6) == Stored(1, {1: 5, 2: 3}, (0,), (5,))
        assert store.at(7).files.stored(CONTENT, chunk_count=3) == []
        # Cut otherwise, or not at all, it is not what is there.
        assert store.at(5).files.stored(CONTENT, chunk_count=2) == []
        assert store.at(5).files.stored(CONTENT) == []


def test_the_probe_knows_contents_of_one_frame() -> None:
    with cerata.open(":memory:") as store:
        store.append(PutFrame(text="a", content_hash=CONTENT))
        body = PutFrame(text="a", content_hash=CONTENT, embedding=in_space("s"))
        store.append(Draft(body, attachments=(VECTOR,)))
        assert store.at(1).files.stored(CONTENT) == [Stored(1, {}, (), ())]
        found = store.at(2).files.stored(CONTENT, space="s")
        assert [one.is_complete for one in found] == [False, True]


def test_what_was_cut_otherwise_is_not_resumed() -> None:
    """Its passages were taken for those of today's cuts, and the text came out mixed."""
    text = "\n\n".join(f"## Part {number}\n" + "w " * 400 for number in range(6))
    with cerata.open(":memory:") as store:
        whole = store.remember(text, uri="u")
        document = next(store.log(whole.id, whole.id)).body
        assert isinstance(document, PutFrame)
        store.delete(whole)
        stale = store.append(msgspec.structs.replace(document, chunk_count=2)).id
        again = store.remember(text, uri="u")
        assert store.frame(stale).superseded_by == again.id
        assert store.frame(again).text == text


def test_frames_that_were_put_as_they_are_are_found_by_their_content() -> None:
    """They had no hash, so a caller's own ingest could not ask what it had put already."""
    with cerata.open(":memory:") as store:
        one = store.put_frame("wax")
        store.put_frames(["tablet", "stylus"])
        blob = store.put_frame(b"wax", options=cerata.PutOptions(search_text="bees"))
        store.put_frame(b"honey")
        with store.transaction():
            store.put_frame("in a block")
            found = store.files.stored(cerata.content_hash("in a block"))
            assert [part.id for part in found] == [-1]
        assert store.files.by_content(cerata.content_hash("wax")) == [one.id, blob.id]
        assert store.files.stored(cerata.content_hash("stylus")) == [Stored(3, {}, (), ())]
        assert store.files.by_content(cerata.content_hash(b"honey")) == [5]
        assert store.files.by_content(cerata.content_hash("none")) == []


def test_the_parts_of_a_document_are_not_found_for_it() -> None:
    """The text of a part is no content of its own: remembered, it is another document."""
    text = "\n\n".join(f"## Part {number}\n" + f"w{number} " * 400 for number in range(4))
    with cerata.open(":memory:") as store:
        whole = store.remember(text)
        part = store.frame(whole.ids[1]).text
        assert store.files.by_content(cerata.content_hash(text)) == [whole.id]
        assert store.files.by_content(cerata.content_hash(part)) == []
        assert store.remember(part).added


def test_a_text_is_remembered_beside_bytes_that_are_the_same(tmp_path: Path) -> None:
    """Bytes are not searched by their words, nor is what was put with other words for it."""
    file = tmp_path / "note.txt"
    file.write_bytes(b"the harbour opens")
    with cerata.open(":memory:") as store:
        store.put_frame(b"the harbour opens")
        store.put_frame("the harbour opens", options=cerata.PutOptions(search_text="none of it"))
        assert store.remember("the harbour opens").added
        assert not store.remember("the harbour opens").added
        store.put_frame(b"the harbour opens", uri=file.as_posix())
        assert store.remember(file).added
        assert store.files.remember([file]).of("unchanged")
        assert [frame.uri for frame in store.frames() if frame.text] == [
            file.as_posix(),
            None,
            None,
        ]
        found = store.search("harbour", page=cerata.Page(group_by="frame"))
        assert [hit.id for hit in found] == [3, 5]
