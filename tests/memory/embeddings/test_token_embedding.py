"""Token vectors by the store's embedder: beside vectors, once a text, and for questions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import EmbeddedFrames, EmbedderFailed, InvalidInput, Profile, Store
from cerata.retrieval.embedders.quantization import quantised_tokens

from ...embedders import Hashing, HashingTokens, words_hashed

SPACE = "hashing@1/8/maxsim/i1"
WORDS = Profile("words", 1, {"text": 1})


def expected(text: str) -> list[list[int]]:
    rows = np.array([words_hashed(word) for word in text.split()], np.float32)
    made: list[list[int]] = quantised_tokens(rows).tolist()
    return made


def tokens(store: Store | cerata.View, frame: int) -> list[list[int]] | None:
    found = store.embeddings.tokens_of(frame)
    return None if found is None else found.tolist()


def test_what_is_put_gets_vectors_and_token_vectors_in_one_event(tmp_path: Path) -> None:
    embedder = HashingTokens()
    with cerata.open(tmp_path / "a.cera", embedder=embedder) as store:
        store.put_frame("green tea")
        store.put_frames(["a train", "green tea", "a b c"])
        store.remember("A note of wax.")
        store.supersede(1, "black tea")
        store.put_frame(b"bytes")
        own = cerata.Vectors(tokens=np.eye(8)[:1], tokens_space=SPACE)
        given: Any = store.put_frame("given by hand", vectors=own).id
        with store.transaction():
            place = store.put_frame("a train").id
            assert tokens(store, place) == expected("a train")
        texts = {
            frame.id: frame.text
            for frame in store.frames(where=cerata.Filter(include_superseded=True))
        }
        del texts[given]
        assert {frame: tokens(store, frame) for frame in texts} == {
            frame: expected(text) if text else None for frame, text in texts.items()
        }
        assert all(store.embeddings.of(frame) is not None for frame, text in texts.items() if text)
        assert tokens(store, given) == [[127] + [0] * 7]
        assert store.embeddings.of(given) is not None
        once = ["green tea", "a train", "a b c", "A note of wax.", "black tea"]
        assert embedder.asked_tokens == once
        assert embedder.asked == [*once, "given by hand"]
    with cerata.open(tmp_path / "a.cera", mode="r") as store:
        assert tokens(store, 1) == expected("green tea")
        assert store.verify().ok


def test_a_repetition_asks_nobody_and_means_the_same_frames() -> None:
    """Token vectors take no place of their own in a batch, so ids in a block stay."""
    embedder = HashingTokens()
    with cerata.open(":memory:", embedder=embedder) as store:
        receipts: list[Any] = []
        for _ in range(2):
            with store.transaction(key="k") as transaction:
                store.put_frame("one")
                gone = store.put_frame("two")
                store.delete(gone)
            receipts.append(transaction.receipt)
            store.put_frame("three", options=cerata.PutOptions(key="t"))
        assert receipts[0].ids == receipts[1].ids == (1, 2)
        assert embedder.asked_tokens == ["one", "two", "three"]
        assert store.head.seq == 5


def test_what_lacks_them_is_given_them_later(tmp_path: Path) -> None:
    """By an embedder that goes on: what has one of both is not made again."""
    path = tmp_path / "a.cera"
    with cerata.open(path, embedder=Hashing()) as store:
        store.put_frames(["one", "two words", "three"])
    with cerata.open(path) as store:
        store.put_frame("four")
        before = store.head
    embedder = HashingTokens()
    with cerata.open(path, embedder=embedder) as store:
        told = list[tuple[int, int]]()
        done = store.embeddings.fill(batch=3, progress=lambda at, of: told.append((at, of)))
        late = EmbeddedFrames(SPACE, frames=4, asked=4, passed=0)
        assert done == EmbeddedFrames("hashing@1/8/cosine", 1, 1, 0, tokens=late)
        assert told == [(3, 4), (4, 4)]
        assert (embedder.asked, len(embedder.asked_tokens)) == (["four"], 4)
        assert tokens(store, 2) == expected("two words")
        assert tokens(store.at(before), 2) is None
        assert store.embeddings.fill().to_dict() == {
            "space": "hashing@1/8/cosine",
            "frames": 0,
            "asked": 0,
            "passed": 0,
            "tokens": {"space": SPACE, "frames": 0, "asked": 0, "passed": 0, "tokens": None},
        }
        # A new version takes over what the old one has, though no frame has its text.
        store.supersede(2, "two words")
        assert len(embedder.asked_tokens) == 4


def test_a_question_is_embedded_where_it_is_of_use() -> None:
    embedder = HashingTokens()
    with cerata.open(":memory:", embedder=embedder) as store:
        assert store.search("tea") == []
        assert embedder.asked_tokens == []
        early = store.put_frame("a train of tea").head
        store.put_frame("green tea")
        del embedder.asked_tokens[:]
        hits = store.search("tea green")
        assert [(hit.id, hit.lanes) for hit in hits] == [
            (3, ("text", "vectors", "late")),
            (1, ("text", "vectors", "late")),
        ]
        assert store.history.explain(hits[0]).lanes[-1].score == pytest.approx(0.65, abs=0.02)
        assert store.recall("tea").lanes == ("text", "facts", "vectors", "late")
        assert [hit.lanes for hit in store.at(early or 0).search("tea")] == [
            ("text", "vectors", "late")
        ]
        assert embedder.asked_tokens == ["tea green", "tea", "tea"]
        store.search("tea", profile=WORDS)
        store.search("tea", mode="text")
        store.search(cerata.query("tea"))
        assert len(embedder.asked_tokens) == 3
        found = store.search("tea green", profile=WORDS, rerank=True, mode="text")
        assert [hit.id for hit in found] == [3, 1]
        assert store.search("tea", vectors=cerata.Vectors(tokens_space=SPACE))[0].lanes == (
            "text",
            "vectors",
            "late",
        )
        with pytest.raises(InvalidInput, match="no token vectors to search"):
            store.search("tea", vectors=cerata.Vectors(tokens_space="other@1/8/maxsim/i1"))
        with pytest.raises(InvalidInput, match="no token vectors to rerank"):
            store.at(0).search("tea", rerank=True)


ONE = np.ones((1, 8), np.float32)


@pytest.mark.parametrize(
    ("says", "what"),
    [
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        ([ONE], "no list of 2"),
        (ONE, "no list of 2"),
        (None.__class__, "no list of 2"),
        ([ONE, ONE[:0]], r"shape \(0, 8\)"),
        ([ONE, ONE[0]], r"shape \(8,\)"),
        ([ONE, ONE[:, :7]], r"shape \(1, 7\)"),
        ([ONE, np.ones((8_193, 8))], r"shape \(8193, 8\)"),
        ([ONE, ONE * np.nan], "not finite"),
        ([ONE, ONE.astype(np.float64) * 1e300], "not finite"),
        ([ONE, [["a"] * 8]], "not numbers"),
        ([ONE, [[1, 2], [3]]], "no vectors"),
    ],
)
def test_what_are_no_token_vectors_is_never_written(says: Any, what: str) -> None:
    embedder = HashingTokens()
    embedder.says_tokens = says
    with cerata.open(":memory:", embedder=embedder) as store:
        with pytest.raises(EmbedderFailed, match=what) as caught:
            store.put_frames(["one", "two"])
        assert caught.value.embedder == SPACE
        assert store.head.seq == 0


def test_what_is_no_token_embedder_is_refused_at_opening() -> None:
    embedder: Any = HashingTokens()
    embedder.token_identity = embedder.identity
    with pytest.raises(InvalidInput, match="token_identity of a HashingTokens"):
        cerata.open(":memory:", embedder=embedder)
    plain: Any = Hashing()
    plain.token_identity = HashingTokens().token_identity
    with pytest.raises(InvalidInput, match="come with embed_tokens"):
        cerata.open(":memory:", embedder=plain)
    plain = Hashing(metric="maxsim", dtype="i1")
    with pytest.raises(InvalidInput, match="must not be of token vectors"):
        cerata.open(":memory:", embedder=plain)
