"""Random histories with an embedder: each frame has the vector of its own text, whoever made it."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.events import PutEmbedding, PutFrame
from cerata.memory.batch.writer import session_of
from cerata.memory.embeddings.cache import embedded_text
from cerata.memory.snapshot.store_embedder import StoreEmbedder

from ...embedders import Hashing, words_hashed
from ...inside import log_of
from ..acts import ACTS, Act, perform


def vectors_by_frame(store: cerata.Store, space: str) -> dict[int, list[float]]:
    """Each frame's vector in a space, from the log alone; none has two."""
    found: dict[int, list[float]] = {}
    for event in store.log():
        body = event.body
        if not isinstance(body, PutFrame | PutEmbedding) or body.embedding is None:
            continue
        if body.embedding.space == space:
            frame = event.seq if isinstance(body, PutFrame) else body.frame
            assert frame not in found
            data = log_of(store).attachment(event.seq, body.embedding.data)
            found[frame] = np.frombuffer(data, "<f4").tolist()
    return found


@settings(max_examples=40)
@given(st.lists(ACTS, max_size=12), st.lists(ACTS, max_size=6), st.lists(ACTS, max_size=6))
def test_each_frame_has_the_vector_of_its_text(
    before: Sequence[Act], single: Sequence[Act], together: Sequence[Act]
) -> None:
    """Before there was an embedder, with it call by call, and in a transaction."""
    embedder = Hashing()
    space = embedder.identity.space
    with cerata.open(":memory:", embedder=embedder) as store:
        session_of(store).embedders = StoreEmbedder(None)
        for act in before:
            perform(store, act)
        session_of(store).embedders = StoreEmbedder(embedder)
        start = store.head.seq
        for act in single:
            perform(store, act)
        with store.transaction():
            for act in together:
                perform(store, act)
        bodies = {event.seq: event.body for event in store.log()}
        texts = {
            seq: text
            for seq, body in bodies.items()
            if isinstance(body, PutFrame) and (text := embedded_text(body)) is not None
        }
        # A frame that came with a vector of its own has that, and no other.
        given_vectors = {
            seq
            for seq, body in bodies.items()
            if isinstance(body, PutFrame)
            and body.embedding is not None
            and body.embedding.space != space
        }
        found = vectors_by_frame(store, space)
        assert set(found) == {seq for seq in texts if seq > start} - given_vectors
        store.embeddings.fill()
        found = vectors_by_frame(store, space)
        current = {frame.id for frame in store.frames(include_chunks=True)}
        assert set(found) >= current & set(texts)
        for frame, vector in found.items():
            assert vector == np.array(words_hashed(texts[frame]), np.float32).tolist()
        assert store.verify().ok
