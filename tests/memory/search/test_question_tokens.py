"""The question as the embedder reads it: without names of speakers, tokens weighted by words."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Profile, Store
from cerata.retrieval.speaker_names import name_places, without_names
from cerata.retrieval.token_weights import token_weights

from ...embedders import HashingTokens

LATE = Profile("tokens", 1, {"late": 1})


class WordTokens(HashingTokens):
    """An embedder that gives the span of each token, too: of each run without blanks."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: Any = None
        """What it returns or raises instead, if anything."""

    def token_spans(self, text: str) -> Sequence[tuple[int, int] | None]:
        if isinstance(self.spans, Exception):
            raise self.spans
        if self.spans is not None:
            spans: Sequence[tuple[int, int] | None] = self.spans
            return spans
        return [match.span() for match in re.finditer(r"\S+", text)]


@pytest.fixture
def embedder() -> WordTokens:
    return WordTokens()


@pytest.fixture
def store(embedder: WordTokens) -> Store:
    store = cerata.open(":memory:", embedder=embedder)
    talk: dict[str, Any] = {"options": cerata.PutOptions(track="talk")}
    store.put_frame("harbour lights", role="Mina Berg", **talk)
    store.put_frame("the harbour mill", role="olaf", **talk)
    store.put_frame("a salt mill", role="user", **talk)
    return store


# --- weights -------------------------------------------------------------------------------------


def test_a_token_weighs_as_much_as_its_word(store: Store) -> None:
    """The idf of the word, 1 for a stop word, 0 for punctuation."""

    def idf(frequency: int) -> float:
        return math.log(1 + (3 - frequency + 0.5) / (frequency + 0.5))

    [best, *_] = store.search("the harbour salt ferry ?", profile=LATE)
    shares = store.history.explain(best).tokens
    weights = {share.token: share.weight for share in shares}
    assert weights == {
        "the": 1.0,
        "harbour": pytest.approx(idf(2)),
        "salt": pytest.approx(idf(1)),
        "ferry": pytest.approx(idf(0)),
    }
    assert round(sum(share.added for share in shares), 6) == round(best.score, 6)
    matches = r"weight 0.470, cosine 1.000 in #3 beside it x 0.700"
    assert re.search(rf"harbour +0\.047 \({matches}\)", str(store.history.explain(best)))


def test_a_rare_word_decides_only_with_weights(embedder: WordTokens) -> None:
    """Two stop words match one note, a rare word the second."""
    with cerata.open(":memory:", embedder=embedder) as store:
        store.put_frames(["the"] * 2 + ["harbour"] + ["salt"] * 20)
        [best, *_] = store.search("the the harbour", profile=LATE)
        assert best.text == "harbour"
        tokens = embedder.embed_tokens(["the the harbour"])[0]
        [best, *_] = store.search(
            "the the harbour", profile=LATE, vectors=cerata.Vectors(tokens=tokens)
        )
        assert best.text == "the"


def test_weights_are_those_of_the_words_at_the_basis(store: Store) -> None:
    def explained() -> list[tuple[str, float]]:
        [best, *_] = view.search("harbour mill", profile=LATE)
        return [(share.token, share.weight) for share in view.history.explain(best).tokens]

    view = store.history.view()
    before = explained()
    store.put_frame("harbour")
    assert explained() == before


def test_an_embedder_without_spans_has_equal_weights() -> None:
    with cerata.open(":memory:", embedder=HashingTokens()) as store:
        store.put_frame("harbour mill")
        [best] = store.search("the harbour", profile=LATE)
        assert [share.weight for share in store.history.explain(best).tokens] == [1.0, 1.0]


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 3)],
        [(0, 3), (4, 11), None],
        [(0, 3), (4, 12)],
        [(0, 3), (5, 4)],
        [(0, 3), (-1, 4)],
        [(0, 3), (4.0, 11.0)],
        [(0, 3), 4],
        "ab",
        ValueError("no spans"),
    ],
)
def test_spans_that_do_not_align_are_refused(
    store: Store, embedder: WordTokens, spans: object
) -> None:
    embedder.spans = spans
    with pytest.raises(cerata.EmbedderFailed, match=r"token span|ValueError"):
        store.search("the harbour", profile=LATE)


def test_a_token_of_several_words_has_the_largest_weight() -> None:
    idf = {"salt": 2.0, "mill": 3.0}
    weights = token_weights("salt-mill of", [(0, 9), (0, 4), (10, 12), (4, 5)], idf.__getitem__)
    assert weights == [3.0, 2.0, 1.0, 0.0]


# --- names ---------------------------------------------------------------------------------------


def test_the_embedder_reads_no_names_of_speakers(store: Store, embedder: WordTokens) -> None:
    """The words keep them: the role is a searched field."""
    embedder.asked.clear()
    embedder.asked_tokens.clear()
    hits = store.search("What does Mina's harbour have?")
    assert embedder.asked == embedder.asked_tokens == ["What does harbour have?"]
    hit = next(hit for hit in hits if hit.id == 1)
    assert "text" in hit.lanes
    explanation = store.history.explain(hit)
    assert explanation.embedded == "What does harbour have?"
    assert "mina" in [word.word.lower() for word in explanation.words if word.count]
    assert "embedded without names of speakers: What does harbour have?" in str(explanation)


def test_only_speakers_of_the_view_are_names(store: Store, embedder: WordTokens) -> None:
    before = store.history.view()
    new = store.put_frame("a ferry", role="Ada")
    with store.transaction():
        store.put_frame("a boat", role="Bo")
        store.search("Ada and Bo at the harbour")
        assert embedder.asked[-1] == "and at the harbour"
    before.search("Ada and Bo at the harbour")
    assert embedder.asked[-1] == "Ada and Bo at the harbour"
    store.delete(new)
    store.search("Ada and Bo at the harbour")
    assert embedder.asked[-1] == "Ada and at the harbour"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Did Mina Berg paint it?", "Did paint it?"),
        ("did mina berg paint it?", "did paint it?"),
        ("did mina paint it?", "did mina paint it?"),
        ("Is the iceberg Berg's?", "Is the iceberg ?"),
        ("Mina’s mill", "mill"),
        ("Mina 's mill", "mill"),
        ("MINA'S MILL", "MILL"),
        ("MINA's mill and Minas' boat", "mill and Minas' boat"),
        ("When will Will sail?", "When will sail?"),
        ("Does olaf sail?", "Does sail?"),
        ("Does OLAF sail?", "Does sail?"),
        ("The user of The Host", "The user of"),
        ("The user and the host", "The user and"),
        ("The mill", "The mill"),
        ("Who is Mina?", "Who is Mina?"),
        ("山田さんの船", "さんの船"),
        ("", ""),
    ],
)
def test_names_are_whole_or_a_part_with_a_capital(text: str, rest: str) -> None:
    roles = ["Mina Berg", "olaf", "Will", "user", "The Host", "山田", "..."]
    assert without_names(text, roles) == rest


def test_places_of_names_ascend_and_never_overlap() -> None:
    places = name_places("Mina Berg, Berg Mina and Mina", ["Mina Berg", "Mina"])
    assert places == [(0, 9), (11, 15), (16, 20), (25, 29)]


def test_a_speaker_of_another_scope_is_no_name(tmp_path: Path) -> None:
    """Else the rank would show that the name exists there."""
    path = tmp_path / "memory.cera"
    embedder = WordTokens()
    for person, role in (("anna", "Mina"), ("ben", "Olaf")):
        with cerata.open(path, scope={"user_id": person}, embedder=embedder) as store:
            store.put_frame("harbour", role=role)
            store.search("Mina, Olaf, harbour")
    assert [text for text in embedder.asked if text != "harbour"] == [
        ", Olaf, harbour",
        "Mina, , harbour",
    ]
