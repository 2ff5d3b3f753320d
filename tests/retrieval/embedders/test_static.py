"""The static embedder: sums of vectors of pieces; the same bits in any batch, without a model."""

import hashlib
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata import Unsupported
from cerata.retrieval.embedders import static
from cerata.retrieval.embedders.built_in import built_in, name_of, vector_weight_of
from cerata.retrieval.embedders.static import DIMENSION, PIECES, StaticEmbedder, packed
from cerata.retrieval.embedders.trust import trust_of

TEXTS = [
    "The harbour bridge opens in May.",
    "When can I cross the bridge at the port?",
    "She writes her notes on a wax tablet.",
    "",
    "words " * 5_000,
    "Łódź 日本 🙂",
    "\x00\ud800",
]


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def test_near_meanings_have_near_vectors(embedder: StaticEmbedder) -> None:
    first, second, third, *_ = embedder.embed(TEXTS)
    assert first @ second > 0.3
    assert abs(first @ third) < 0.2


def test_the_order_of_words_does_not_count(embedder: StaticEmbedder) -> None:
    first, second = embedder.embed(["wax on a tablet", "a tablet on wax"])
    assert (first == second).all()


def test_vectors_have_length_1_and_known_bits(embedder: StaticEmbedder) -> None:
    """All sums are of whole numbers, so the hash holds on every machine."""
    vectors = embedder.embed(TEXTS)
    assert (vectors.shape, vectors.dtype.name) == ((len(TEXTS), DIMENSION), "float32")
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    digest = hashlib.sha256(vectors.astype("<f4").tobytes()).hexdigest()
    assert digest[:16] == "3ada9bea9f6bac71"


def test_a_vector_depends_on_its_text_alone(embedder: StaticEmbedder) -> None:
    together = embedder.embed(TEXTS)
    assert (together == np.vstack([embedder.embed([text]) for text in TEXTS])).all()
    assert embedder.embed([]).shape == (0, DIMENSION)


def test_a_text_without_a_piece_is_an_unknown_word(embedder: StaticEmbedder) -> None:
    """A vector of zeros would be near no text, and a question could not be asked."""
    empty, controls, unknown = embedder.embed(["", "\x00\x01", "🙂"])
    assert (empty == controls).all()
    assert (empty == unknown).all()
    assert empty.any()


def test_a_long_text_is_read_up_to_a_limit(embedder: StaticEmbedder) -> None:
    first, second = embedder.embed(["wax " * 5_000, "wax " * 4_200 + "bridge " * 1_000])
    assert (first == second).all()


def test_it_knows_english_and_says_how_much_it_counts(embedder: StaticEmbedder) -> None:
    assert trust_of(embedder, "When does the bridge open?").trust == 1.0
    assert trust_of(embedder, "ما هي عاصمة مصر").trust == 0.0
    assert vector_weight_of(embedder) == 0.15


def test_it_is_a_built_in_without_an_extra() -> None:
    assert name_of(built_in("static")) == "static"
    assert (
        built_in("static").identity.space
        == f"static-minilm@{static.TABLE_SHA256[:12]}/128/cosine/i1"
    )


def test_a_memory_remembers_it(tmp_path: Path) -> None:
    path = tmp_path / "a.cera"
    with cerata.open(path, embedder="static") as store:
        store.put_frames(TEXTS[:3])
    with cerata.open(path) as store:
        assert isinstance(store.embeddings.embedder, StaticEmbedder)
        [best] = store.search("crossing at the port", mode="vector", k=1)
        assert best.text == TEXTS[1]
        assert store.verify().ok


def test_it_loads_no_model() -> None:
    StaticEmbedder().embed(["wax"])
    assert "onnxruntime" not in sys.modules or "cerata.retrieval.embedders.minilm" in sys.modules


def test_another_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "TABLE_SHA256", "0" * 64)
    with pytest.raises(Unsupported, match="not the published file"):
        static.table.__wrapped__()


def test_a_packed_table_is_read_back() -> None:
    """The tool that makes the table packs it by the same function."""
    loaded = static.table()
    data = (files(static.__package__ or "") / static.TABLE).read_bytes()
    assert len(data) < 800_000
    weights = loaded.weights.astype(np.float64)
    again = packed(loaded.numbers, weights)
    assert again[: 2 * PIECES] == loaded.weights.astype("<u2").tobytes()
    assert set(np.unique(loaded.numbers).tolist()) == {-1, 0, 1}
