"""Embeddings are recorded with their frames, and a space never mixes two embedders."""

from typing import Any

import msgspec
import numpy as np
import pytest

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.events import Attachment, Embedding, PutEmbedding, PutFrame
from cerata.engine.integrity import hash_bytes
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.vectors import vectors

from ...inside import fold_of, log_of


def stored(store: cerata.Store) -> list[tuple[str, list[float]] | None]:
    """The space and values of each frame's embedding, from the log."""
    found: list[tuple[str, list[float]] | None] = []
    for event in store.log():
        assert isinstance(event.body, PutFrame)
        embedding = event.body.embedding
        if embedding is None:
            found.append(None)
        else:
            data = log_of(store).attachment(event.seq, embedding.data)
            found.append((embedding.space, np.frombuffer(data, embedding.dtype).tolist()))
    return found


def put(vector: list[float]) -> cerata.Draft:
    """Return the event that puts a frame with a vector in the space ``new``."""
    [(embedding, data)] = [one for one in vectors([vector], 1, "new") if one]
    return cerata.Draft(PutFrame(text="tablet", embedding=embedding), attachments=(data,))


def test_a_frame_carries_its_vector() -> None:
    """Beside text and bytes, as float32 or int8, after a reopening too."""
    environment = Environment.in_memory()
    with cerata.open("m", environment=environment) as store:
        store.put_frame("wax", vectors=cerata.Vectors(dense=[0.5, -1], space="small"))
        store.put_frame(
            b"wax", vectors=cerata.Vectors(dense=np.array([1, -2], np.int8), space="tiny")
        )
        each = [{"n": 1}, {"n": 2}]
        store.put_frames(
            ["a", "b"], metadata=each, vectors=cerata.Vectors(dense=np.eye(2), space="small")
        )
        store.put_frame("none")
        with store.transaction():
            store.put_frame("inside", vectors=cerata.Vectors(dense=(2.0, 3.0), space="small"))
    with cerata.open("m", environment=environment) as store:
        assert stored(store) == [
            ("small", [0.5, -1.0]),
            ("tiny", [1, -2]),
            ("small", [1.0, 0.0]),
            ("small", [0.0, 1.0]),
            None,
            ("small", [2.0, 3.0]),
        ]
        assert store.files.content(2) == b"wax"
        frames = snapshot_of(store).base.frames
        assert frames.embedded(6, "small").tolist() == [True, False, True, True, False, True]
        assert [frames.first_embedding(name) for name in ("small", "tiny", "no")] == [1, 2, None]
        assert store.verify().ok


def test_a_key_knows_the_vector_too() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame(
            "wax",
            vectors=cerata.Vectors(dense=[1.0], space="small"),
            options=cerata.PutOptions(key="k"),
        )
        assert not store.put_frame(
            "wax",
            vectors=cerata.Vectors(dense=[1.0], space="small"),
            options=cerata.PutOptions(key="k"),
        ).added
        with pytest.raises(cerata.IdempotencyConflict):
            store.put_frame(
                "wax",
                vectors=cerata.Vectors(dense=[2.0], space="small"),
                options=cerata.PutOptions(key="k"),
            )


UNUSABLE: list[tuple[Any, str]] = [
    ([[1.0], [2.0]], r"1 vectors.*\(2, 1\)"),
    ([1.0], r"not an array of shape \(1,\)"),
    ([[]], "0 dimensions"),
    ([[0.0] * 65_537], "65,537 dimensions"),
    ([[1.0, 2.0], [1.0]], "unequal dimensions"),
    ([[float("nan")]], "not finite"),
    ([[1e300]], "not finite"),
    ([["wax"]], "are of"),
    ([[True]], "are of bool"),
    (np.ma.array([[1.0]], mask=[[False]]), "masked array"),
    ([np.ma.array([1.0], mask=[True])], "masked array"),
    ([[1.0, np.ma.masked]], "no numbers"),
]


@pytest.mark.parametrize(("embeddings", "match"), UNUSABLE)
def test_what_is_no_vector_is_refused(embeddings: Any, match: str) -> None:
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.InvalidInput, match=match):
            store.put_frames(["one"], vectors=cerata.Vectors(dense=embeddings, space="small"))
        assert store.head.seq == 0


@pytest.mark.parametrize("given", [cerata.Vectors(dense=[1.0]), cerata.Vectors(space="small")])
def test_a_vector_has_a_space_and_a_space_a_vector(given: cerata.Vectors) -> None:
    with cerata.open(":memory:") as store, pytest.raises(cerata.InvalidInput, match="space"):
        store.put_frame("wax", vectors=given)


def test_a_space_has_one_dimension_and_one_kind_of_number() -> None:
    """Within a batch, after a reopening, and for a vector that comes later."""
    environment = Environment.in_memory()
    with cerata.open("m", environment=environment) as store:
        frame = store.put_frame("wax")
        [(embedding, data)] = [one for one in vectors([[1.0, 2.0]], 1, "small") if one]
        later = PutEmbedding(frame=frame.id, embedding=embedding)
        store.append(cerata.Draft(later, attachments=(data,)))
    with cerata.open("m", environment=environment) as store:
        for vector in ([1.0], np.array([1, 2], np.int8)):
            with pytest.raises(cerata.InvalidInput, match="'small' has vectors of"):
                store.put_frame("tablet", vectors=cerata.Vectors(dense=vector, space="small"))
        drafts = [put([1.0]), put([1.0, 2.0])]
        with pytest.raises(cerata.InvalidInput, match="'new' has"):
            store.append(*drafts)
        assert store.head.seq == 2


def drafts_of(space: str, values: Any) -> list[tuple[str, cerata.Draft]]:
    """Return the two ways to put a vector by an event."""
    data = np.array(values, "<f4").tobytes()
    embedding = Embedding(space, "f4", len(values), Attachment(hash_bytes(data), len(data)))
    return [
        ("put", cerata.Draft(PutFrame(text="x", embedding=embedding), attachments=(data,))),
        ("later", cerata.Draft(PutEmbedding(frame=1, embedding=embedding), attachments=(data,))),
    ]


@pytest.mark.parametrize("values", [[float("nan")], [1.0, float("inf")], [-float("inf")]])
@pytest.mark.parametrize("way", [0, 1])
def test_a_vector_in_an_event_is_finite_too(values: list[float], way: int) -> None:
    """`append` stored what `put_frame` refuses, and a search would rank by it."""
    with cerata.open(":memory:") as store:
        store.put_frame("wax")
        with pytest.raises(cerata.InvalidInput, match="not finite"):
            store.append(drafts_of("small", values)[way][1])
        assert store.head.seq == 1
        store.append(drafts_of("small", [1.0, -0.0])[way][1])


@pytest.mark.parametrize("way", [0, 1])
def test_a_vector_in_an_event_has_a_space_too(way: int) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("wax")
        with pytest.raises(cerata.InvalidInput, match="names no space"):
            store.append(drafts_of("", [1.0])[way][1])
        assert store.head.seq == 1


def test_of_two_who_start_a_space_at_once_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the lock, what came since the fold is looked at too."""
    environment = Environment.in_memory()
    with (
        cerata.open("m", environment=environment) as store,
        cerata.open("m", environment=environment) as other,
    ):
        prepare = fold_of(store).frames

        def late(through: int | None = None) -> Any:
            found = prepare(through)
            other.put_frame("first", vectors=cerata.Vectors(dense=[1.0], space="small"))
            return found

        monkeypatch.setattr(fold_of(store), "frames", late)
        with pytest.raises(cerata.InvalidInput, match="'small' has vectors of"):
            store.put_frame("second", vectors=cerata.Vectors(dense=[1.0, 2.0], space="small"))
        assert [event.seq for event in store.log()] == [1]


@pytest.mark.parametrize(
    "wrong",
    [{"space": 5}, {"dtype": []}, {"dimension": "4"}, {"data": Attachment(hash_bytes(b"\1"), "1")}],  # type: ignore[arg-type]
)
def test_fields_of_an_embedding_of_another_type_are_bad_input(wrong: dict[str, Any]) -> None:
    """They were an AttributeError or a TypeError of the engine."""
    data = b"\1" * 16
    right = Embedding("a/maxsim/i1", "i1", 4, Attachment(hash_bytes(data), 16))
    body = PutEmbedding(frame=1, embedding=msgspec.structs.replace(right, **wrong))
    with cerata.open(":memory:") as store:
        store.put_frame("x")
        with pytest.raises(cerata.InvalidInput):
            store.append(cerata.Draft(body, attachments=(data,)))
