"""Embedders of questions: their vectors, the words that they know, and their weight, checked."""

import re
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import EmbedderFailed, EndpointEmbedder, InvalidInput, MiniLMEmbedder
from cerata.retrieval.embedders.built_in import vector_weight_of
from cerata.retrieval.embedders.embedder import embed_question
from cerata.retrieval.embedders.identity import Prefixes
from cerata.retrieval.embedders.trust import Trust, trust_of, words_of
from cerata.retrieval.embedders.wordpiece import bert_uncased

from ...embedders import DIMENSION, Hashing, words_hashed
from ...embedding_server import Server, without_proxies


class Asking(Hashing):
    """An embedder with all members for questions; each gives or raises ``answer``."""

    def __init__(self, answer: Any = None) -> None:
        super().__init__()
        self.answer = answer
        self.questions: list[str] = []

    def _answer(self, text: str) -> Any:
        self.questions.append(text)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def embed_question(self, text: str) -> Any:
        return self._answer(text)

    def knows(self, text: str) -> Any:
        return self._answer(text)


# --- vectors of questions ------------------------------------------------------------------------


def test_a_question_without_its_method_is_embedded_like_a_text() -> None:
    vector = embed_question(Hashing(), "wax tablet")
    assert vector.tolist() == np.array(words_hashed("wax tablet"), np.float32).tolist()


def test_a_search_embeds_its_question_as_a_question() -> None:
    """A text that equals the question lies elsewhere, since the model reads questions otherwise."""
    embedder = Asking([1.0] + [0.0] * 7)
    with cerata.open(":memory:", embedder=embedder) as store:
        store.put_frames(["wax tablet", "stylus"])
        store.search("wax tablet", mode="vector")
        store.recall("wax tablet", max_tokens=100)
    assert embedder.asked == ["wax tablet", "stylus"]
    assert embedder.questions[0] == "wax tablet"


def test_a_model_that_knows_no_word_of_a_question_is_not_asked() -> None:
    """Its vector counted nothing, and took most of the time of the question."""
    embedder = Asking(0.3)
    with cerata.open(":memory:", embedder=embedder) as store:
        store.put_frames(["wax tablet", "stylus"])
        hits = store.search("wax tablet")
        assert [hit.text for hit in hits] == ["wax tablet"]
        assert hits.notices == ("The model knows 1 of 2 words of the question, so words decide",)
        assert store.recall("wax tablet", record=True).notices == hits.notices
        # Only knows() was asked: embed_question() would have returned no vector.
        embedder.answer = [1.0] + [0.0] * 7
        cases: list[dict[str, Any]] = [
            {"mode": "vector"},
            {"vectors": cerata.Vectors(min_cosine=-1)},
        ]
        for ask in cases:
            assert len(store.search("wax tablet", **ask)) == 2
        assert store.verify().ok


class Reading(Hashing):
    """An embedder that knows no word of a question."""

    def knows(self, text: str) -> float:
        return 0.0


def test_a_model_counts_more_if_few_words_occur_in_the_memory() -> None:
    """A word of grammar in any note switched the model off: the best note was not found."""
    with cerata.open(":memory:", embedder=Reading()) as store:
        store.put_frame("Zahnarzt ich")
        store.put_frames([f"notiz {number}" for number in range(60)])

        def trust(question: str) -> float:
            told = store.history.explain(store.search(question)[0]).trust
            return 1.0 if told is None else told.trust

        assert trust("Kieferorthop\u00e4die") == 1.0
        # A model that cannot read a script finds all texts in it alike.
        assert trust("\u0440\u0435\u0446\u0435\u043f\u0442") == 0.5
        assert 0 < trust("wann gehe ich zum Kieferchirurgen mit dem Rezept von damals") < 1
        assert trust("Zahnarzt") == 0


WRONG = {
    "shape (1, 8), not (8,)": [[1.0] * DIMENSION],
    "shape (3,), not (8,)": [1.0, 2.0, 3.0],
    "shape (), not (8,)": 1.0,
    "returned object": None,
    "returned <U1": ["a"] * DIMENSION,
    "not finite": [float("nan")] * DIMENSION,
    "raised ValueError: no": ValueError("no"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_an_invalid_vector_of_a_question_names_the_embedder(fault: str) -> None:
    with cerata.open(":memory:", embedder=Asking(WRONG[fault])) as store:
        store.put_frame("wax")
        with pytest.raises(EmbedderFailed, match=re.escape(fault)) as caught:
            store.search("wax")
    assert caught.value.embedder == "hashing@1/8/cosine"
    assert caught.value.remedy


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_an_interrupt_is_no_failure_of_the_embedder(error: BaseException) -> None:
    for call in (embed_question, trust_of):
        with pytest.raises(type(error)):
            call(Asking(error), "wax")


# --- trust ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "trust"),
    [(0, 0.0), (0.4, 0.0), (0.475, 0.25), (0.55, 0.5), (0.7, 1.0), (1, 1.0), (np.float32(1), 1.0)],
)
def test_trust_rises_between_two_shares(share: float, trust: float) -> None:
    assert trust_of(Asking(share), "wax and a tablet").trust == trust


def test_trust_counts_the_words_that_are_known() -> None:
    trust = trust_of(Asking(2 / 9), "a b c d e f g h i")
    assert trust == Trust(2 / 9, 2, 9, 0.0)
    assert trust.notice == "The model knows 2 of 9 words of the question, so words decide"
    assert trust_of(Asking(0.6), "wax").notice is None


@pytest.mark.parametrize("embedder", [None, Hashing()])
def test_without_the_method_vectors_count_in_full(embedder: Hashing | None) -> None:
    assert trust_of(embedder, "wax tablet") == Trust(1.0, 2, 2, 1.0)


@pytest.mark.parametrize("text", ["", " ", "?!", "🙂", "\ud800"])
def test_a_question_without_a_word_is_not_asked_about(text: str) -> None:
    embedder = Asking(0.0)
    assert trust_of(embedder, text) == Trust(1.0, 0, 0, 1.0)
    assert embedder.questions == []


NO_SHARES = [
    None,
    True,
    "0.5",
    float("nan"),
    float("inf"),
    -0.1,
    1.1,
    10**400,
    [0.5],
    1j,
    ValueError("no"),
]


@pytest.mark.parametrize("answer", NO_SHARES)
def test_a_fault_of_knows_stops_no_search(answer: Any) -> None:
    """Vectors then count in full, and a line names the embedder, the fault and the remedy."""
    trust = trust_of(Asking(answer), "wax tablet")
    assert (trust.share, trust.trust) == (1.0, 1.0)
    assert trust.notice is not None
    assert trust.notice.startswith("knows() of the embedder of 'hashing@1/8/cosine' r")
    assert trust.notice.endswith("correct the method, or remove it")


def test_words_are_runs_of_letters_and_digits() -> None:
    text = "Wann öffnet AT&T's Büro_3 in Łódź? 日本 ½"
    assert words_of(text) == [
        "wann",
        "offnet",
        "at",
        "t",
        "s",
        "buro",
        "3",
        "in",
        "łodz",
        "日本",
        "½",
    ]
    assert len(words_of("wax " * 8192)) == 8192


def test_the_vocabulary_of_minilm_has_words_whole() -> None:
    """A piece of a word, such as ##ing, is no word."""
    vocabulary = bert_uncased()
    assert "bridge" in vocabulary
    assert "useeffectonce" not in vocabulary


@pytest.mark.minilm
@pytest.mark.parametrize(
    ("text", "known", "words", "trust"),
    [
        ("When does the harbour bridge open?", 6, 6, 1.0),
        ("thành phố nào là thủ đô", 1, 6, 0.0),
        ("ما هي عاصمة مصر", 0, 4, 0.0),
        ("Where is useEffectOnce?", 2, 3, (2 / 3 - 0.4) / 0.3),
    ],
)
def test_minilm_knows_english(text: str, known: int, words: int, trust: float) -> None:
    found = trust_of(MiniLMEmbedder(), text)
    assert (found.words_known, found.words) == (known, words)
    assert found.trust == pytest.approx(trust, abs=1e-9)
    assert MiniLMEmbedder().knows("?!") == 1.0


# --- members -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-0.1, 10.5, float("nan"), "1", None, True, 10**400])
def test_a_weight_is_a_number_from_0_to_10(weight: Any) -> None:
    embedder = Hashing()
    vars(embedder)["vector_weight"] = weight
    with pytest.raises(InvalidInput, match="vector_weight of a Hashing must be a number from 0"):
        cerata.open(":memory:", embedder=embedder)
    with pytest.raises(EmbedderFailed, match="has the vector_weight"):
        vector_weight_of(embedder)


def test_the_weight_of_vectors_is_1_unless_the_embedder_has_one() -> None:
    embedder = Hashing()
    assert (vector_weight_of(None), vector_weight_of(embedder)) == (1.0, 1.0)
    vars(embedder)["vector_weight"] = np.float32(0.5)
    assert vector_weight_of(embedder) == 0.5


class Raising(Hashing):
    @property
    def vector_weight(self) -> float:
        raise RuntimeError("no weight")


def test_a_weight_that_raises_is_a_failure_of_the_embedder() -> None:
    with pytest.raises(EmbedderFailed, match="raised RuntimeError: no weight"):
        vector_weight_of(Raising())


@pytest.mark.parametrize("name", ["embed_question", "knows"])
def test_a_member_for_questions_is_a_method(name: str) -> None:
    embedder = Hashing()
    vars(embedder)[name] = 0.5
    with pytest.raises(InvalidInput, match=f"The {name} of a Hashing must be a method"):
        cerata.open(":memory:", embedder=embedder)


# --- prefixes ------------------------------------------------------------------------------------


def test_an_endpoint_gets_the_prefixes_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of texts are part of the space's name, since they change the vectors."""
    without_proxies(monkeypatch)
    server = Server()
    embedder = EndpointEmbedder(
        server.url,
        model="e5",
        revision="1",
        dimension=2,
        text_prefix="passage: ",
        question_prefix="query: ",
    )
    try:
        with cerata.open(":memory:", embedder=embedder) as store:
            store.put_frame("wax")
            store.search("wax")
    finally:
        server.close()
    assert [asked["input"] for asked in server.asked] == [["passage: wax"], ["query: wax"]]
    assert embedder.identity.space == "e5@1-prefix-b87d0bdc/2/cosine"


@pytest.mark.parametrize("prefix", [None, 1, "\ud800"])
def test_a_prefix_is_text(prefix: Any) -> None:
    with pytest.raises(InvalidInput, match="question_prefix"):
        Prefixes("", prefix)
    with pytest.raises(InvalidInput, match="text_prefix"):
        Prefixes(prefix, "")
