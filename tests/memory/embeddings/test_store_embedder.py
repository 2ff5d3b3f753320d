"""A store with an embedder: each text that is put has its vector, and no text is embedded twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import CallableEmbedder, EmbedderFailed, InvalidInput, Store
from cerata.engine.events import Embedding, Event, PutEmbedding, PutFrame
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.retrieval.embedders.quantization import quantised

from ...embedders import DIMENSION, Hashing, words_hashed
from ...inside import log_of

SPACE = "hashing@1/8/cosine"


@pytest.fixture
def embedder() -> Hashing:
    return Hashing()


@pytest.fixture
def store(embedder: Hashing) -> Iterator[Store]:
    with cerata.open(":memory:", embedder=embedder) as opened:
        yield opened


def vectors_of(store: Store) -> dict[str, list[float]]:
    """Each text, or title where there is none, with its vector, from the log; checks the space."""
    found: dict[str, list[float]] = {}
    for event in store.log():
        body = event.body
        embedding = body.embedding if isinstance(body, PutFrame | PutEmbedding) else None
        if not isinstance(embedding, Embedding):
            continue
        put = body if isinstance(body, PutFrame) else log_of(store).event(body.frame).body  # type: ignore[union-attr]
        assert isinstance(put, PutFrame)
        data = log_of(store).attachment(event.seq, embedding.data)
        assert (embedding.space, embedding.dimension) == (SPACE, DIMENSION)
        found[put.text or put.search_text or ""] = np.frombuffer(data, "<f4").tolist()
    return found


def expected(*texts: str) -> dict[str, list[float]]:
    return {text: np.array(words_hashed(text), np.float32).tolist() for text in texts}


# --- what is embedded ----------------------------------------------------------------------------


def test_every_way_of_putting_a_text_embeds_it(store: Store, embedder: Hashing) -> None:
    """The vector is in the event that puts the frame."""
    note = store.put_frame("wax")
    store.put_frames(["tablet", "stylus"])
    store.remember("a note")
    store.supersede(note, "beeswax")
    texts = ["wax", "tablet", "stylus", "a note", "beeswax"]
    assert vectors_of(store) == expected(*texts)
    assert embedder.asked == texts
    assert not any(isinstance(event.body, PutEmbedding) for event in store.log())


def test_many_texts_are_one_call(store: Store, embedder: Hashing) -> None:
    """A model takes them together."""
    store.put_frames([f"text {number}" for number in range(100)])
    assert (embedder.calls, len(embedder.asked)) == (1, 100)


def test_of_a_document_the_chunks_are_embedded_and_not_the_whole(
    store: Store, embedder: Hashing
) -> None:
    text = "".join(f"# Part {part}\n" + "some words of it " * 50 for part in range(4))
    document = store.remember(text)
    chunks = [store.frame(chunk).text for chunk in store.files.chunks(document).values()]
    assert len(chunks) == 4
    assert embedder.asked == chunks
    assert vectors_of(store) == expected(*chunks)


def test_of_bytes_their_search_text_is_embedded_if_there_is_one(
    store: Store, embedder: Hashing
) -> None:
    store.put_frame(b"\x89PNG", title="a picture")
    assert embedder.asked == []
    store.put_frame(b"\x89PNG", options=cerata.PutOptions(search_text="a dog on a beach"))
    assert vectors_of(store) == expected("a dog on a beach")


def test_what_has_no_word_is_not_embedded(store: Store, embedder: Hashing) -> None:
    store.put_frame("  \n")
    assert embedder.asked == []


def test_an_empty_text_is_refused_before_it_is_embedded(store: Store, embedder: Hashing) -> None:
    with pytest.raises(InvalidInput, match="The text is empty"):
        store.put_frame("")
    assert embedder.asked == []
    assert len(store) == 0


def test_a_vector_that_is_given_is_taken(store: Store, embedder: Hashing) -> None:
    """It may be of another space, which is searched by itself."""
    store.put_frame("wax", vectors=cerata.Vectors(dense=[1.0, 2.0], space="mine"))
    store.put_frames(["tablet"], vectors=cerata.Vectors(dense=[[1.0, 2.0]], space="mine"))
    assert embedder.asked == []
    store.put_frame("stylus", vectors=cerata.Vectors(dense=[1.0] * DIMENSION, space=SPACE))
    assert embedder.asked == []


def test_int8_vectors_are_quantised_before_they_are_put() -> None:
    with cerata.open(":memory:", embedder=Hashing(dtype="i1")) as store:
        store.put_frame("wax tablet")
        event = next(store.log())
        assert isinstance(event.body, PutFrame)
        embedding = event.body.embedding
        assert embedding is not None
        assert (embedding.space, embedding.dtype) == (SPACE + "/i1", "i1")
        wanted = quantised(np.array([words_hashed("wax tablet")], np.float32))
        assert log_of(store).attachment(event.seq, embedding.data) == wanted.tobytes()


def test_without_an_embedder_nothing_is_embedded() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("wax")
        assert store.embeddings.embedder is None
        assert vectors_of(store) == {}


# --- no text twice -------------------------------------------------------------------------------


def test_a_text_that_has_a_vector_is_not_embedded_again(store: Store, embedder: Hashing) -> None:
    """Found in the log by its content; of closed frames too, and put by whom it may."""
    note = store.put_frame("wax")
    store.put_frames(["wax", "tablet", "tablet"])
    store.supersede(note, "stylus")
    store.put_frame("wax", tags=["again"])
    store.put_frame(b"\x00", options=cerata.PutOptions(search_text="tablet"))
    assert embedder.asked == ["wax", "tablet", "stylus"]
    assert len([event for event in store.log() if isinstance(event.body, PutFrame)]) == 7
    assert all(
        isinstance(event.body, PutFrame) and event.body.embedding is not None
        for event in store.log()
        if isinstance(event.body, PutFrame)
    )


def test_the_same_bytes_are_not_embedded_again(store: Store, embedder: Hashing) -> None:
    for _ in range(2):
        store.put_frame(b"\x89PNG", options=cerata.PutOptions(search_text="a dog"))
    assert embedder.asked == ["a dog"]


def test_another_process_finds_what_this_one_embedded(tmp_path: Path, embedder: Hashing) -> None:
    path = tmp_path / "a.cera"
    with cerata.open(path, embedder=embedder) as store:
        store.put_frame("wax")
    other = Hashing()
    with cerata.open(path, embedder=other) as store:
        store.put_frame("wax")
        assert other.asked == []
        assert vectors_of(store) == expected("wax")


def test_what_another_tenant_embedded_is_not_looked_at(tmp_path: Path) -> None:
    """How long a call takes must not tell what others have."""
    path, embedder = tmp_path / "a.cera", Hashing()
    for tenant in ("a", "b", "a"):
        with cerata.open(path, scope={"tenant": tenant}, embedder=embedder) as store:
            store.put_frame("wax")
    assert embedder.asked == ["wax", "wax"]


def test_of_what_other_tenants_have_no_event_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up read every "ok" of every tenant, in 10 us each, before it found its own."""
    path, embedder, read = tmp_path / "a.cera", Hashing(), list[int]()
    with cerata.open(path, scope={"tenant": "a"}, embedder=embedder) as store:
        store.put_frames(["ok"] * 1_000)
    with cerata.open(path, scope={"tenant": "b"}, embedder=embedder) as store:
        store.put_frame("ok")
        event = log_of(store).event

        def reading(seq: int) -> Event:
            read.append(seq)
            return event(seq)

        monkeypatch.setattr(log_of(store), "event", reading)
        store.put_frame("ok")
    assert embedder.asked == ["ok", "ok"]
    assert set(read) == {1_002}


def test_another_revision_is_another_space(tmp_path: Path) -> None:
    """Its vectors are its own: nothing of the other's is reused."""
    path = tmp_path / "a.cera"
    first, second = Hashing("1"), Hashing("2")
    with cerata.open(path, embedder=first) as store:
        store.put_frame("wax")
    with cerata.open(path, embedder=second) as store:
        store.embeddings.fill()
    assert (first.asked, second.asked) == (["wax"], ["wax"])


def test_a_new_version_of_a_document_embeds_only_what_is_new(
    store: Store, embedder: Hashing
) -> None:
    parts = [f"# Part {part}\n" + f"words of {part} " * 60 + "\n" for part in range(6)]
    store.remember("".join(parts), uri="a.md")
    embedder.asked.clear()
    parts[3] = "# Part 3\n" + "something else " * 60 + "\n"
    store.remember("".join(parts), uri="a.md")
    assert embedder.asked == [parts[3]]


def test_parts_are_known_by_their_document(store: Store, embedder: Hashing) -> None:
    """They have no content hash: under another URI they are embedded again."""
    text = "".join(f"# Part {part}\n" + f"words of {part} " * 60 + "\n" for part in range(3))
    for uri, asked in (("a.md", 3), ("a.md", 3), ("b.md", 6)):
        store.remember(text, uri=uri)
        assert len(embedder.asked) == asked


def test_in_a_transaction_no_text_is_embedded_twice(store: Store, embedder: Hashing) -> None:
    store.put_frame("wax")
    with store.transaction() as transaction:
        store.put_frame("tablet")
        store.put_frames(["tablet", "wax"])
        store.remember("stylus")
        store.put_frame("stylus")
    assert embedder.asked == ["wax", "tablet", "stylus"]
    assert len(transaction.receipt.ids) == 5
    assert vectors_of(store) == expected("wax", "tablet", "stylus")


# --- keys ----------------------------------------------------------------------------------------


def test_a_repetition_under_a_key_asks_no_embedder(tmp_path: Path, embedder: Hashing) -> None:
    """Not even where the text has no vector, or none of this embedder."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        first = store.put_frame("wax", options=cerata.PutOptions(key="k"))
    with cerata.open(path, embedder=embedder) as store:
        again = store.put_frame("wax", options=cerata.PutOptions(key="k"))
        assert (again.id, again.added) == (first.id, False)
        store.put_frames(["tablet"], options=cerata.PutOptions(key="l"))
        store.put_frames(["tablet"], options=cerata.PutOptions(key="l"))
        assert embedder.asked == ["tablet"]
        with pytest.raises(cerata.IdempotencyConflict):
            store.put_frame("other", options=cerata.PutOptions(key="k"))
        assert embedder.asked == ["tablet"]
    other = Hashing("2")
    with cerata.open(path, embedder=other) as store:
        assert not store.put_frames(["tablet"], options=cerata.PutOptions(key="l")).added
    assert other.asked == []


def test_a_vector_that_the_caller_gave_is_part_of_what_a_key_stands_for(store: Store) -> None:
    store.put_frame(
        "wax", vectors=cerata.Vectors(dense=[1.0], space="mine"), options=cerata.PutOptions(key="k")
    )
    with pytest.raises(cerata.IdempotencyConflict):
        store.put_frame("wax", options=cerata.PutOptions(key="k"))


def test_a_block_that_is_run_again_asks_no_embedder(tmp_path: Path) -> None:
    """Not even one whose vectors the log has none of."""
    path, embedders = tmp_path / "a.cera", (Hashing("1"), Hashing("2"))
    for embedder, asked in zip(embedders, (["wax", "tablet"], []), strict=True):
        with cerata.open(path, embedder=embedder) as store:
            with store.transaction(key="k") as transaction:
                store.put_frame("wax")
                store.remember("tablet")
            assert transaction.receipt.added is bool(asked)
            assert embedder.asked == asked


def test_a_block_goes_on_after_a_call_that_was_not_embedded(
    store: Store, embedder: Hashing
) -> None:
    """Nothing of that call is gathered."""
    with store.transaction() as transaction:
        store.put_frame("wax")
        embedder.says = RuntimeError("busy")
        with pytest.raises(EmbedderFailed):
            store.put_frames(["tablet", "stylus"])
        embedder.says = None
        store.put_frame("stylus")
    assert transaction.receipt.ids == (1, 2)
    assert vectors_of(store) == expected("wax", "stylus")


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "says",
    [RuntimeError("gone"), np.zeros((1, 3), np.float32), np.full((1, DIMENSION), np.nan)],
    ids=["raises", "dimension", "nan"],
)
def test_what_an_embedder_fails_at_is_not_written(
    store: Store, embedder: Hashing, says: Any
) -> None:
    note = store.put_frame("wax")
    embedder.says = says
    long = "".join(f"# {part}\n" + "words " * 30 + "\n" for part in range(300))
    calls: list[Callable[[], object]] = [
        lambda: store.put_frame("a"),
        lambda: store.put_frames(["a", "b"]),
        lambda: store.remember("a"),
        lambda: store.remember(long),
        lambda: store.supersede(note, "a"),
    ]
    for call in calls:
        with pytest.raises(EmbedderFailed, match=SPACE):
            call()
        with pytest.raises(EmbedderFailed), store.transaction():
            call()
    assert store.head.seq == 2
    embedder.says = None
    assert store.put_frame("a").id == 3


def test_a_long_document_goes_on_where_its_embedder_failed() -> None:
    """Batch by batch: what was embedded is durable, and is not asked for again."""
    asked: list[str] = []

    def function(texts: list[str]) -> npt.NDArray[np.float32]:
        if len(asked) > 300 and not is_mended:
            raise RuntimeError("out of memory")
        asked.extend(texts)
        return np.array([words_hashed(text) for text in texts], np.float32)

    is_mended = False
    made = CallableEmbedder(function, name="f", revision="1", dimension=DIMENSION, batch=50)
    text = "".join(f"# Part {part}\nwords of {part}\n" for part in range(600))
    with cerata.open(":memory:", embedder=made) as store:
        with pytest.raises(EmbedderFailed, match="out of memory"):
            store.remember(text)
        assert store.head.seq == 1 + 256 + 1
        is_mended = True
        document = store.remember(text)
        assert len(store.files.chunks(document)) == 600
        # The one call of 50 texts that came back before the batch failed.
        assert len(asked) - len(set(asked)) == 50


def test_a_batch_that_is_too_large_asks_no_embedder(store: Store, embedder: Hashing) -> None:
    """It was refused after the model had worked through all of it."""
    texts = [f"text {number}" for number in range(BATCH_EVENTS_MAX + 1)]
    with pytest.raises(InvalidInput, match="over the limit of 10,000"):
        store.put_frames(texts)
    with store.transaction():
        store.put_frame("wax")
        with pytest.raises(InvalidInput, match="would pass 10,000"):
            store.put_frames(texts[:BATCH_EVENTS_MAX])
    assert embedder.asked == ["wax"]
    assert [event.type for event in store.log()] == ["putFrame", "useEmbedder"]


def test_a_store_that_only_reads_asks_no_embedder(tmp_path: Path, embedder: Hashing) -> None:
    path = tmp_path / "a.cera"
    cerata.open(path).close()
    with cerata.open(path, mode="r", embedder=embedder) as store:
        with pytest.raises(cerata.ReadOnly):
            store.put_frame("wax")
        with pytest.raises(cerata.ReadOnly):
            store.embeddings.fill()
    assert embedder.asked == []


@pytest.mark.parametrize("given", [b"minilm", object(), len, Hashing])
def test_what_is_no_embedder_is_refused_at_open(tmp_path: Path, given: Any) -> None:
    """Before a file is made."""
    with pytest.raises(InvalidInput, match="must be an Embedder"):
        cerata.open(tmp_path / "a.cera", embedder=given)
    assert not (tmp_path / "a.cera").exists()


def test_vectors_that_are_not_what_their_space_says_are_refused(store: Store) -> None:
    """A caller may put vectors into an embedder's space by hand, but no other ones."""
    for vector in ([1.0, 2.0], np.zeros(DIMENSION, np.int8)):
        with pytest.raises(InvalidInput, match="has vectors of 8 dimensions"):
            store.put_frame("wax", vectors=cerata.Vectors(dense=vector, space=SPACE))
