"""Embedding what is there: resumable, with its history kept, in the embedder's own space."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import EmbeddedFrames, EmbedderFailed, Filter, InvalidInput, Store
from cerata.engine.events import PutEmbedding

from ...embedders import Hashing
from .test_store_embedder import SPACE, expected, vectors_of

TEXTS = [f"text {number}" for number in range(25)]


def given_later(store: Store) -> list[int]:
    """The frames that were given a vector by an event of its own, in order."""
    bodies = (event.body for event in store.log())
    return [body.frame for body in bodies if isinstance(body, PutEmbedding)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of an agent that had no embedder."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames(TEXTS)
    return path


def test_each_frame_that_lacks_a_vector_is_given_one(path: Path) -> None:
    embedder, told = Hashing(), list[tuple[int, int]]()
    with cerata.open(path, embedder=embedder) as store:
        done = store.embeddings.fill(batch=10, progress=lambda at, of: told.append((at, of)))
        assert done == EmbeddedFrames(SPACE, frames=25, asked=25, passed=0)
        assert vectors_of(store) == expected(*TEXTS)
        assert told == [(10, 25), (20, 25), (25, 25)]
        batches = {event.header.first_seq for event in store.log(26)}
        # The first batch ends with the event that names the embedder.
        assert batches == {26, 37, 47}
        assert store.embeddings.fill() == EmbeddedFrames(SPACE, 0, 0, 0)
    assert embedder.asked == TEXTS


def test_what_was_before_stays_as_it_was(path: Path) -> None:
    """It is history like any other: an earlier basis has none of it."""
    with cerata.open(path, embedder=Hashing()) as store:
        chain = store.head.chain
        store.embeddings.fill()
        assert store.at(25).head.chain == chain
        hashes = [cerata.content_hash(text) for text in TEXTS]
        assert all(store.files.stored(one, space=SPACE)[0].is_complete for one in hashes)
        assert not any(store.at(25).files.stored(one, space=SPACE)[0].is_complete for one in hashes)


def test_it_goes_on_where_it_was_stopped(path: Path) -> None:
    """Killed, or out of memory: each batch is durable, and none is embedded again."""
    embedder = Hashing()

    def stop(at: int, _of: int) -> None:
        if at == 20:
            embedder.says = RuntimeError("out of memory")

    with cerata.open(path, embedder=embedder) as store:
        with pytest.raises(EmbedderFailed):
            store.embeddings.fill(batch=10, progress=stop)
        assert len(vectors_of(store)) == 20
    again = Hashing()
    with cerata.open(path, embedder=again) as store:
        assert store.embeddings.fill(batch=10).frames == 5
        assert vectors_of(store) == expected(*TEXTS)
    assert again.asked == TEXTS[20:]


def test_a_second_embedder_has_a_space_of_its_own(path: Path) -> None:
    with cerata.open(path, embedder=Hashing("1")) as store:
        store.embeddings.fill()
    with cerata.open(path, embedder=Hashing("2")) as store:
        done = store.embeddings.fill()
        assert (done.space, done.frames) == ("hashing@2/8/cosine", 25)
        for space in (SPACE, done.space):
            known = store.files.stored(cerata.content_hash(TEXTS[0]), space=space)
            assert known[0].is_complete


def test_only_current_frames_with_a_text_and_within_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "a.cera"
    long = "".join(f"# Part {part}\n" + f"words of {part} " * 60 + "\n" for part in range(3))
    with cerata.open(path) as store:
        store.delete(store.put_frame("gone"))
        store.supersede(store.put_frame("old"), "new")
        store.put_frame(b"\x00")
        store.put_frame(b"\x00", options=cerata.PutOptions(search_text="a dog"))
        document = store.remember(long)
        chunks = [*store.files.chunks(document).values()]
        tagged = store.put_frame("tagged", tags=["t"])
    embedder = Hashing()
    with cerata.open(path, embedder=embedder) as store:
        assert store.embeddings.fill(where=Filter(tags=["t"])).frames == 1
        assert given_later(store) == [tagged.id]
        store.embeddings.fill()
        texts = ["tagged", "new", "a dog", *(store.frame(chunk).text for chunk in chunks)]
        assert embedder.asked == texts


def test_a_text_that_has_a_vector_is_not_embedded_again(path: Path) -> None:
    embedder = Hashing()
    with cerata.open(path, embedder=embedder) as store:
        store.put_frames([TEXTS[3], TEXTS[4]])
        embedder.asked.clear()
        assert store.embeddings.fill(batch=7) == EmbeddedFrames(
            SPACE, frames=25, asked=23, passed=0
        )
        assert len(embedder.asked) == 23


def test_a_frame_that_was_closed_meanwhile_is_passed_over(path: Path) -> None:
    """Another writer closes one while the model works on it."""

    class Slow(Hashing):
        def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            other.delete(3)
            return super().embed(texts)

    with cerata.open(path) as other, cerata.open(path, embedder=Slow()) as store:
        done = store.embeddings.fill()
        assert done == EmbeddedFrames(SPACE, frames=24, asked=25, passed=1)
        assert 3 not in given_later(store)
        assert len(given_later(store)) == 24


def test_two_at_once_give_each_frame_one_vector(path: Path) -> None:
    """Two processes may both be told to: what the one was quicker with, the other passes over."""
    reports: list[EmbeddedFrames] = []

    def work() -> None:
        with cerata.open(path, embedder=Hashing()) as store:
            reports.append(store.embeddings.fill(batch=2))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with cerata.open(path) as store:
        assert sorted(given_later(store)) == list(range(1, 26))
    assert sum(one.frames for one in reports) == 25


def test_where_it_cannot_be_it_is_refused(path: Path) -> None:
    with cerata.open(path) as store, pytest.raises(InvalidInput, match="without an embedder"):
        store.embeddings.fill()
    with cerata.open(path, embedder=Hashing()) as store:
        with store.transaction(), pytest.raises(InvalidInput, match="cannot run in a transaction"):
            store.embeddings.fill()
        with pytest.raises(InvalidInput, match=r"batch must be .* not 0"):
            store.embeddings.fill(batch=0)
        assert store.head.seq == 25
