"""Token vectors: a matrix for each frame, int8, recorded with it or later, and read back."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.events import Attachment, Embedding, PutEmbedding, PutFrame
from cerata.engine.integrity import hash_bytes
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.token_vectors import stored_matrices, stored_tokens

SPACE = "m@1/4/maxsim/i1"
ONE = np.array([[127, 0, 0, -127], [1, 2, 3, 4]], np.int8)
TWO = np.array([[5, 6, 7, 8]], np.int8)


def embed(store: cerata.Store, frame: int, tokens: npt.NDArray[Any], space: str = SPACE) -> None:
    [made] = stored_matrices([tokens], 1, space)
    assert made is not None
    body = PutEmbedding(frame=frame, embedding=made[0])
    store.append(cerata.Draft(body, attachments=(made[1],)))


def said(view: cerata.Store | cerata.View, frame: int, space: str | None = None) -> Any:
    found = view.embeddings.tokens_of(frame, space)
    return None if found is None else (found.dtype.str, found.tolist())


def test_a_frame_carries_its_token_vectors() -> None:
    """Beside text, bytes and a vector, of any number of tokens, in a reopened file too."""
    environment = Environment.in_memory()
    with cerata.open("m", environment=environment) as store:
        store.put_frame("wax", vectors=cerata.Vectors(tokens=ONE, tokens_space=SPACE))
        both = cerata.Vectors(dense=[0.5, 1], space="s", tokens=TWO, tokens_space=SPACE)
        store.put_frame(b"wax", vectors=both)
        store.put_frames(["a", "b"], vectors=cerata.Vectors(tokens=[TWO, ONE], tokens_space=SPACE))
        with store.transaction():
            inside = store.put_frame(
                "inside", vectors=cerata.Vectors(tokens=ONE, tokens_space=SPACE)
            ).id
            assert said(store, inside) == ("|i1", ONE.tolist())
        plain = store.put_frame("none").id
        before = store.head
        embed(store, plain, TWO)
        embed(store, 1, TWO)
    with cerata.open("m", environment=environment) as store:
        every = [said(store, frame) for frame in range(1, 7)]
        assert every == [("|i1", one.tolist()) for one in (TWO, TWO, TWO, ONE, ONE, TWO)]
        assert said(store.at(before), 1) == ("|i1", ONE.tolist())
        assert said(store.at(before), plain) is None
        assert store.files.content(2) == b"wax"
        vector = store.embeddings.of(2)
        assert vector is not None
        assert vector.tolist() == [0.5, 1]
        assert store.embeddings.of(1) is None
        frames = snapshot_of(store).base.frames
        assert frames.embedded(8, SPACE).tolist() == [True] * 6
        assert frames.embedded(6, SPACE).tolist() == [True] * 5 + [False]
        assert store.verify().ok


def test_numbers_become_int8_of_one_length() -> None:
    """Inner products are compared, so all token vectors have one scale."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame(
            "a", vectors=cerata.Vectors(tokens=[[3, -4], [0, 0]], tokens_space="x/maxsim/i1")
        )
        assert said(store, frame.id) == ("|i1", [[76, -102], [0, 0]])


def test_spaces_of_token_vectors_keep_to_one_dimension_and_do_not_mix() -> None:
    with cerata.open(":memory:") as store:
        frame = store.put_frame("a", vectors=cerata.Vectors(tokens=ONE, tokens_space=SPACE)).id
        embed(store, frame, np.array([[1, 2]], np.int8), "n@1/2/maxsim/i1")
        with pytest.raises(cerata.InvalidInput, match="in 2 spaces"):
            store.embeddings.tokens_of(frame)
        assert said(store, frame, "n@1/2/maxsim/i1") == ("|i1", [[1, 2]])
        assert said(store, frame, "none") is None
        with pytest.raises(cerata.InvalidInput, match="4 dimensions"):
            store.put_frame("b", vectors=cerata.Vectors(tokens=[[1, 2]], tokens_space=SPACE))
        store.put_frame("c", vectors=cerata.Vectors(tokens=[[1, 2]], tokens_space="free/maxsim/i1"))
        with pytest.raises(cerata.InvalidInput, match="'free/maxsim/i1' has vectors of"):
            store.put_frame(
                "d", vectors=cerata.Vectors(tokens=[[1, 2, 3]], tokens_space="free/maxsim/i1")
            )


@pytest.mark.parametrize(
    ("given", "space", "what"),
    [
        (ONE, None, "space None"),
        (None, SPACE, "without token vectors"),
        (ONE, "mine", "'mine'"),
        (ONE, "m@1/4/cosine/i1", "cosine"),
        (ONE[0], SPACE, r"shape \(4,\)"),
        ([ONE], SPACE, r"shape \(1, 2, 4\)"),
        (np.empty((0, 4)), SPACE, "0 token vectors"),
        (np.empty((3, 0)), SPACE, "of 0 dimensions"),
        (np.zeros((8_193, 4), np.int8), SPACE, "8,193 token vectors"),
        (np.zeros((1, 1_025)), "x/maxsim/i1", "1,025 dimensions"),
        ([[1, 2, 3, np.nan]], SPACE, "not finite"),
        ([[1, 2, 3, 1e300]], SPACE, "not finite"),
        ([[1, 2], [1, 2, 3]], SPACE, "unequal"),
        ([["a", "b", "c", "d"]], SPACE, "are of <U1"),
        (np.ma.masked_array(ONE, mask=ONE > 3), SPACE, "masked"),
    ],
)
def test_what_are_no_token_vectors_is_refused(given: Any, space: Any, what: str) -> None:
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.InvalidInput, match=what):
            store.put_frame("a", vectors=cerata.Vectors(tokens=given, tokens_space=space))
        assert store.head.seq == 0
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.InvalidInput):
            store.put_frame("a", vectors=cerata.Vectors(dense=[1, 2], space=SPACE))
        with pytest.raises(cerata.InvalidInput, match="2 texts came with 1 arrays"):
            store.put_frames(["a", "b"], vectors=cerata.Vectors(tokens=[ONE], tokens_space=SPACE))


def attached(space: str, dtype: str, dimension: int, data: bytes) -> tuple[Embedding, bytes]:
    return Embedding(space, dtype, dimension, Attachment(hash_bytes(data), len(data))), data


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (attached(SPACE, "i1", 4, bytes(7)), "7 bytes"),
        (attached(SPACE, "i1", 4, b""), "0 bytes"),
        (attached(SPACE, "f4", 4, bytes(16)), "f4"),
        (attached("x/maxsim/i1", "i1", 1_025, bytes(1_025)), "1,025 dimensions"),
        (attached(SPACE, "i1", 1, bytes(8_193)), "8,193 bytes"),
        (attached("plain", "i1", 4, bytes(8)), "8 bytes"),
    ],
)
def test_the_log_refuses_events_that_say_otherwise(
    made: tuple[Embedding, bytes], what: str
) -> None:
    """Whoever appends events of his own is told too, before anything is written."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("a").id
        with pytest.raises(cerata.InvalidInput, match=what):
            store.append(
                cerata.Draft(PutEmbedding(frame=frame, embedding=made[0]), attachments=(made[1],))
            )


def test_a_vector_and_token_vectors_have_fields_of_their_own() -> None:
    tokens, data = stored_tokens(ONE, SPACE)
    vector, numbers = attached("plain", "i1", 4, bytes(4))
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.InvalidInput, match="as the token_embedding"):
            store.append(cerata.Draft(PutFrame(text="a", embedding=tokens), attachments=(data,)))
        with pytest.raises(cerata.InvalidInput, match="not a space of token vectors"):
            store.append(
                cerata.Draft(PutFrame(text="a", token_embedding=vector), attachments=(numbers,))
            )


def test_changed_token_vectors_are_noticed(tmp_path: Path) -> None:
    path, rows = tmp_path / "memory.cera", np.random.default_rng(1).integers(-99, 99, (40, 50, 64))
    tokens = rows.astype(np.int8)
    space = "m@1/64/maxsim/i1"
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
        texts = [f"text {row}" for row in range(40)]
        store.put_frames(texts, vectors=cerata.Vectors(tokens=list(tokens), tokens_space=space))
        store.checkpoint()
    data = path.read_bytes()
    at = data.index(tokens[7].tobytes())
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with cerata.open(path, mode="r") as store:
        with pytest.raises(cerata.Corrupt, match="event 8 is damaged"):
            store.embeddings.tokens_of(8)
        by_tokens: list[dict[str, Any]] = [{"mode": "vector"}, {"rerank": True, "profile": "words"}]
        for more in by_tokens:
            with pytest.raises(cerata.Corrupt, match="event 8 is damaged"):
                store.search("text", vectors=cerata.Vectors(tokens=tokens[7]), **more)
        assert len(store.search("text", k=40)) == 40
        assert said(store, 7) == ("|i1", tokens[6].tolist())
        assert not store.verify().ok


@pytest.mark.parametrize("given", [5, np.array(5), int])
def test_what_are_no_token_vectors_of_texts_is_refused(given: Any) -> None:
    with cerata.open(":memory:") as store, pytest.raises(cerata.InvalidInput):
        store.put_frames(
            ["x", "y"], vectors=cerata.Vectors(tokens=given, tokens_space="m@1/4/maxsim/i1")
        )
