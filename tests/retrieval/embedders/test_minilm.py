"""all-MiniLM-L6-v2 from its wheel: meanings near each other are near, and bits do not depend."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cerata
from benchmarks import embed_bench
from cerata import MiniLMEmbedder, TurnWindow
from cerata.retrieval.embedders import minilm
from cerata.retrieval.embedders.wordpiece import bert_uncased

needs_minilm = pytest.mark.minilm

TEXTS = [
    "The harbour bridge opens in May.",
    "When can I cross the bridge at the port?",
    "She writes her notes on a wax tablet.",
    "",
    "words " * 400,
    "Łódź 日本 🙂",
]


@pytest.fixture(scope="module")
def model() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@needs_minilm
def test_what_means_the_same_is_near(model: MiniLMEmbedder) -> None:
    first, second, third, *_ = model.embed(TEXTS)
    assert first @ second > 0.5
    assert abs(first @ third) < 0.2
    assert abs(second @ third) < 0.2


@needs_minilm
def test_vectors_have_length_1_and_are_those_of_the_model(model: MiniLMEmbedder) -> None:
    """The first numbers were taken down once; another processor may round the last bits."""
    found = model.embed(TEXTS)
    assert (found.shape, found.dtype.name) == ((6, 384), "float32")
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    [wax] = model.embed(["wax tablet"])
    known = [-0.076458, -0.035093, 0.014739, -0.109900, -0.077364, -0.070260]
    assert np.allclose(wax[:6], known, atol=2e-3)


@needs_minilm
def test_a_vector_depends_on_its_text_alone(model: MiniLMEmbedder) -> None:
    """Bit for bit, whatever stands beside it, how far it is padded, and on how many threads."""
    together = model.embed(TEXTS)
    assert (together == np.vstack([model.embed([text]) for text in TEXTS])).all()
    assert (together[::-1] == model.embed(TEXTS[::-1])).all()
    assert (together == MiniLMEmbedder(threads=2).embed(TEXTS)).all()


@needs_minilm
def test_each_token_has_a_vector_of_its_own(model: MiniLMEmbedder) -> None:
    found = model.embed_tokens(TEXTS)
    # A text without a token has the vector of the first marker.
    assert [len(one) for one in found[:5]] == [7, 10, 9, 1, 254]
    assert np.allclose(np.linalg.norm(found[0], axis=1), 1.0, atol=1e-6)
    again = model.embed_tokens(TEXTS[:1])[0]
    assert (again == found[0]).all()
    best = (found[1] @ found[0].T).max(axis=1).mean()
    assert best > (found[1] @ found[2].T).max(axis=1).mean()


@needs_minilm
def test_token_vectors_have_128_dimensions_or_all() -> None:
    """Their products are nearly those of all dimensions; and the model is run once for both."""
    whole = MiniLMEmbedder(token_dimension=384)
    small = MiniLMEmbedder(token_dimension=128)
    assert small.token_identity is not None
    assert small.token_identity.space == (
        "all-MiniLM-L6-v2@int8-8199be6f699a-hadamard1/128/maxsim/i1"
    )
    every, few = np.vstack(whole.embed_tokens(TEXTS)), np.vstack(small.embed_tokens(TEXTS))
    assert (every.shape[1], few.shape[1]) == (384, 128)
    assert np.corrcoef((every @ every.T).ravel(), (few @ few.T).ravel())[0, 1] > 0.95
    states, run = small._states, list[int]()
    small._states = lambda texts: run.append(len(texts)) or states(texts)  # type: ignore[func-returns-value, method-assign]
    vectors = small.embed(TEXTS)
    again = small.embed_tokens(TEXTS)
    assert run == [len(TEXTS)]
    assert (np.vstack(again) == few).all()
    assert (vectors == MiniLMEmbedder().embed(TEXTS)).all()
    assert (small.embed_tokens(TEXTS[:2])[1] == again[1]).all()
    assert run == [len(TEXTS), 2]


@needs_minilm
def test_a_store_finds_by_the_tokens_of_the_model() -> None:
    with cerata.open(":memory:", embedder=MiniLMEmbedder(token_dimension=128)) as store:
        store.put_frames(TEXTS[:3])
        [best, *_] = store.search(TEXTS[1], k=3, rerank=True)
        assert (best.id, best.lanes) == (2, ("text", "vectors", "late"))
        told = store.history.explain(best).reranked
        assert told is not None
        assert told.score == pytest.approx(0.65, abs=0.01)


@needs_minilm
def test_each_token_vector_has_its_characters(model: MiniLMEmbedder) -> None:
    for text, vectors in zip(TEXTS, model.embed_tokens(TEXTS), strict=True):
        assert len(model.token_spans(text)) == len(vectors)
    assert model.token_spans("") == [None]
    assert model.token_spans("a mill!") == [(0, 1), (2, 6), (6, 7)]


def test_another_token_dimension_is_refused() -> None:
    """Before anything is looked for: there are two."""
    dimension: Any = 64
    with pytest.raises(cerata.InvalidInput, match=r"token_dimension must be .* not 64"):
        MiniLMEmbedder(token_dimension=dimension)


@needs_minilm
def test_a_store_embeds_with_it(model: MiniLMEmbedder) -> None:
    with cerata.open(":memory:", embedder=MiniLMEmbedder(dtype="i1")) as store:
        store.put_frames(TEXTS[:3])
        space = "all-MiniLM-L6-v2@int8-8199be6f699a/384/cosine/i1"
        known = store.files.stored(cerata.content_hash(TEXTS[0]), space=space)
        assert known[0].is_complete
    assert model.identity.space == space.removesuffix("/i1")


@needs_minilm
def test_opening_a_store_loads_no_model(checkout: Path) -> None:
    """Nothing is imported before the first text, nor when vectors come from the log."""
    program = (
        "import sys, cerata\n"
        "store = cerata.open(':memory:', embedder=cerata.MiniLMEmbedder())\n"
        "print('onnxruntime' in sys.modules)\n"
        "store.put_frame('wax')\n"
        "print('onnxruntime' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.split() == ["False", "True"]


@needs_minilm
def test_another_model_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was changed on the way is not run."""
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    with pytest.raises(cerata.Unsupported, match="SHA-256"):
        MiniLMEmbedder().embed(["wax"])


@needs_minilm
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    embed_bench.main(["--tiny"])
    said = capsys.readouterr().out
    assert "same bits: True" in said
    assert "same bits: False" not in said


@pytest.mark.parametrize("missing", ["onnxruntime", minilm.MODEL_PACKAGE])
def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """When it is made, and not at the first text."""

    def find_spec(name: str) -> object:
        return None if name == missing else object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(cerata.Unsupported, match=r"pip install '\.\[minilm\]'"):
        MiniLMEmbedder()


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_threads_are_a_number(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    with pytest.raises(cerata.InvalidInput, match="threads must be"):
        MiniLMEmbedder(threads=threads)


# --- turns in their conversation -----------------------------------------------------------------

ASKED = "Mina: When does the harbour bridge open?"


@needs_minilm
def test_a_turn_takes_meaning_from_the_turns_around_it() -> None:
    """The vector is that of the turn's tokens, so it moves towards the question and stays apart."""
    model = MiniLMEmbedder(in_context=True)
    window = TurnWindow((ASKED,), "Olaf", "In May, I think.", ())
    alone = TurnWindow((), "Olaf", "In May, I think.", ())
    question, other = model.embed(["the opening of the bridge", "a recipe for soup"])
    near, far = model.embed_in_context([window, alone])
    assert np.allclose(np.linalg.norm([near, far], axis=1), 1.0, atol=1e-6)
    assert near @ question > far @ question + 0.1
    assert abs(near @ other) < 0.2
    assert (model.embed_in_context([alone])[0] == far).all()
    assert model.identity.space != MiniLMEmbedder().identity.space
    assert (model.embed(TEXTS[:2]) == MiniLMEmbedder().embed(TEXTS[:2])).all()


@needs_minilm
@pytest.mark.parametrize("text", ["tea", "word " * 400, "\u200b", "a"])
def test_the_nearest_turns_that_fit_are_read(text: str) -> None:
    """A long turn leaves no room; a turn that does not fit whole is not read, nor any behind it."""
    turns = tuple(f"Mina: {'long ' * 60}{place}" for place in range(4))
    window = TurnWindow(turns, "Olaf", text, turns)
    numbers, start, end = minilm._encoded(bert_uncased(), window)
    assert len(numbers) <= minilm.MAX_TOKENS
    assert 0 < start < end < len(numbers)
    if text == "tea":
        assert numbers[start:end] == bert_uncased().encode("tea", 9)[1:-1]
        # One before, one after, then one more before.
        assert start > 120
    assert MiniLMEmbedder(in_context=True).embed_in_context([window]).shape == (1, 384)


@needs_minilm
def test_turns_are_embedded_in_their_conversation(tmp_path: Path) -> None:
    with cerata.open(tmp_path / "chat.cera", embedder="minilm-context") as store:
        store.put_frame(
            "When does the harbour bridge open?",
            role="Mina",
            options=cerata.PutOptions(track="monday"),
        )
        turn = store.put_frame(
            "In May, I think.", role="Olaf", options=cerata.PutOptions(track="monday")
        )
        alone = store.embeddings.of(turn)
        assert store.embeddings.fill().frames == 2
        assert not np.array_equal(np.asarray(store.embeddings.of(turn)), np.asarray(alone))
        assert store.search("the bridge", mode="vector")[0].cosine
    with cerata.open(tmp_path / "chat.cera") as store:
        used = store.embeddings.used()
        assert used is not None
        assert used.name == "minilm-context"
