"""Late interaction: the lane and the order by tokens, exactly, whatever is past, closed or new."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Filter, Hit, Profile, Store, View
from cerata.engine.events import RecallContext
from cerata.memory.values.options import Grouping
from cerata.projections.vectors import maxsim as maxsim_module
from cerata.projections.vectors.maxsim import best_matches
from cerata.retrieval.ranking.profile import DEFAULT

from ..embeddings.test_token_vectors import embed

Tokens = npt.NDArray[np.int8]
SPACE = "m@1/6/maxsim/i1"


def given(tokens: Tokens, **dense: Any) -> cerata.Vectors:
    """Return the token vectors of a frame, in the space of all tests."""
    return cerata.Vectors(tokens=tokens, tokens_space=SPACE, **dense)


def drawn(source: Random, most: int = 4, dimension: int = 6) -> Tokens:
    """Few numbers, so that many scores are equal."""
    count = source.randint(1, most)
    numbers = [source.choice((-128, -64, 0, 0, 1, 127)) for _ in range(count * dimension)]
    return np.array(numbers, np.int8).reshape(count, dimension)


def score(tokens: Tokens, query: Tokens) -> float:
    """Return the mean of the best cosines above 0.35, by its definition; products are exact."""
    total = 0.0
    for of_query in query.tolist():
        products = [
            sum(a * b for a, b in zip(of_query, of_frame, strict=True))
            for of_frame in tokens.tolist()
        ]
        total += max(max(products) / 127**2 - 0.35, 0.0)
    return round(total / len(query), 9)


def said(hits: Sequence[Hit]) -> list[tuple[int, float]]:
    return [(hit.id, hit.score) for hit in hits]


def late(
    view: Store | View,
    query: Tokens,
    k: int = 10,
    *,
    group_by: Grouping = "frame",
    space: str | None = None,
    **more: Any,
) -> list[tuple[int, float]]:
    vectors = cerata.Vectors(tokens=query, tokens_space=space)
    page = cerata.Page(group_by=group_by)
    return said(view.search("", k=k, mode="vector", vectors=vectors, page=page, **more))


@dataclasses.dataclass
class Model:
    """Token vectors by frame, what is closed, and the tags."""

    tokens: dict[int, Tokens] = dataclasses.field(default_factory=dict[int, Tokens])
    gone: set[int] = dataclasses.field(default_factory=set[int])
    tags: dict[int, str] = dataclasses.field(default_factory=dict[int, str])

    def search(self, query: Tokens, k: int, tag: str | None = None) -> list[tuple[int, float]]:
        scores = {
            frame: score(tokens, query)
            for frame, tokens in self.tokens.items()
            if frame not in self.gone and tag in (None, self.tags[frame])
        }
        ranked = sorted((-value, frame) for frame, value in scores.items() if value)
        return [(frame, -negative) for negative, frame in ranked[:k]]

    def copy(self) -> "Model":
        return Model(dict(self.tokens), set(self.gone), dict(self.tags))


def act(store: Store, source: Random, model: Model) -> None:
    """Do one thing at random, to the memory and to its model."""
    alive = [frame for frame in model.tokens if frame not in model.gone]
    chosen = source.choice(("put", "put", "plain", "embed", "delete", "supersede"))
    tokens, tag = drawn(source), source.choice("ab")
    if chosen == "put" or not alive:
        both: dict[str, Any] = {"dense": [1.0, 2.0], "space": "s"}
        more = both if source.random() < 0.3 else {}
        frame = store.put_frame("text", tags=[tag], vectors=given(tokens, **more)).id
        model.tokens[frame], model.tags[frame] = tokens, tag
    elif chosen == "plain":
        frame = store.put_frame("no tokens yet", tags=[tag]).id
        if source.random() < 0.5:
            embed(store, frame, tokens, SPACE)
            model.tokens[frame], model.tags[frame] = tokens, tag
    elif chosen == "embed":
        frame = source.choice(alive)
        embed(store, frame, tokens, SPACE)
        model.tokens[frame] = tokens
    else:
        frame = source.choice(alive)
        if chosen == "delete":
            store.delete(frame)
        else:
            store.supersede(frame, "instead")
        model.gone.add(frame)


@pytest.mark.parametrize("seed", range(4))
def test_the_lane_is_that_of_a_plain_model_as_of_every_event(seed: int, tmp_path: Path) -> None:
    """With deletes, new token vectors for old frames and filters; after a checkpoint too."""
    source, path = Random(seed), tmp_path / "memory.cera"
    model, found = Model(), dict[int, Model]()
    with cerata.open(path) as store:
        for _ in range(50):
            act(store, source, model)
            found[store.head.seq] = model.copy()
        queries = [drawn(source) for _ in range(3)]
        store.checkpoint()
    for mode in ("rw", "r"):
        with cerata.open(path, mode=mode) as store:
            for seq, then in found.items():
                view = store.at(seq)
                for query in queries:
                    assert late(view, query, k=7) == then.search(query, 7)
                    tagged = late(view, query, k=5, where=Filter(tags=["a"]))
                    assert tagged == then.search(query, 5, "a")
            assert store.verify().ok


def test_at_n_it_is_that_of_a_store_that_stopped_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first stage chooses, too: lane, filter and order by tokens, bit for bit."""
    monkeypatch.setattr(maxsim_module, "ALL_FRAMES_MAX", 20)
    monkeypatch.setattr(maxsim_module, "CANDIDATES_MIN", 8)
    source = Random(5)
    query = drawn(source)

    def asked(view: Store | View) -> object:
        hits = view.search("text instead", k=9, rerank=True, vectors=cerata.Vectors(tokens=query))
        tagged = late(view, query, where=Filter(tags=["a"]))
        told = [view.history.explain(hit).to_dict() for hit in hits[::4]]
        return [hit.to_dict() for hit in hits], tagged, told

    stopped = dict[int, object]()
    with cerata.open(":memory:") as store:
        model = Model()
        for number in range(150):
            act(store, source, model)
            if number in (40, 90):
                stopped[store.head.seq] = asked(store)
        assert model.search(query, 9) != late(store, query, 9)
        for seq, there in stopped.items():
            assert asked(store.at(seq)) == there


@pytest.mark.parametrize(("spread", "least"), [(0.6, 0.95), (1.0, 0.8)])
def test_signs_of_sums_find_the_candidates_of_many(
    spread: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of frames that have little in common, a hard case; with fewer candidates more is missed.

    Measured 0.955 and 0.865: the more tokens of a frame differ, the more single pairs decide.
    """
    source = np.random.default_rng(3)
    spreads = spread * source.standard_normal((3_020, 6, 64))
    matrices = source.standard_normal((3_000, 1, 64)) + spreads[:3_000]
    space, kept, few = "m@1/64/maxsim/i1", 0, 0
    monkeypatch.setattr(maxsim_module, "ALL_FRAMES_MAX", 100)
    monkeypatch.setattr(maxsim_module, "CANDIDATES_MIN", 600)
    with cerata.open(":memory:") as store:
        store.put_frames(
            ["text"] * 3_000, vectors=cerata.Vectors(tokens=[*matrices], tokens_space=space)
        )
        for place in range(20):
            query = matrices[place] + spreads[3_000 + place]
            found = {hit for hit, _ in late(store, query)}
            with monkeypatch.context() as other:
                other.setattr(maxsim_module, "ALL_FRAMES_MAX", 3_000)
                best = {hit for hit, _ in late(store, query)}
            with monkeypatch.context() as other:
                other.setattr(maxsim_module, "CANDIDATES_MIN", 60)
                other.setattr(maxsim_module, "CANDIDATES_SHARE", 100)
                few += len(best & {hit for hit, _ in late(store, query)})
            kept += len(best & found)
    assert few < 0.7 * 200 < least * 200 <= kept, (few, kept)


def test_products_are_exact_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest sums there can be, 2**24, and no bit hangs on how a product is cut."""
    source = np.random.default_rng(1)
    frames = [source.integers(-128, 128, (count, 1_024)).astype(np.int8) for count in (1, 9, 3, 7)]
    query = source.integers(-128, 128, (70, 1_024)).astype(np.int8)
    frames.append(np.full((2, 1_024), -128, np.int8))
    query[0] = -128
    wide = [frame.astype(np.int64) @ query.T.astype(np.int64) for frame in frames]
    expected = [products.max(axis=0).tolist() for products in wide]
    assert int(wide[-1][0, 0]) == 2**24
    for size in (1, 4, 10, 1 << 20):
        monkeypatch.setattr(maxsim_module, "_BLOCK_TOKENS", size)
        assert best_matches(frames, query).tolist() == expected
    assert best_matches([], query).tolist() == []


# --- among the lanes -----------------------------------------------------------------------------

UNITS = np.eye(6, dtype=np.int8) * 127


@pytest.fixture
def store() -> Store:
    """Three frames with token vectors and a word each, then one with the word alone."""
    store = cerata.open(":memory:")
    for text, row in (("tea", [0, 1]), ("tea and tea and tea", [1]), ("trains", [2, 3])):
        store.put_frame(text, vectors=given(UNITS[row]))
    store.put_frame("tea of no tokens", tags=["plain"])
    return store


def test_words_vectors_and_tokens_are_lanes_of_one_search(store: Store) -> None:
    store.put_frame("a cup", vectors=given(UNITS[[2]], dense=[1, 0], space="s"))
    asked: dict[str, Any] = {"vectors": cerata.Vectors(dense=[1, 0], tokens=UNITS[[0, 2, 3]])}
    lanes = {hit.id: hit.lanes for hit in store.search("tea", **asked)}
    assert lanes[5] == ("vectors", "late")
    assert lanes[3] == ("late",)
    assert lanes[1] == ("text", "late")
    assert lanes[4] == ("text",)
    assert late(store, UNITS[[2, 3]], k=2) == [(3, 0.65), (5, 0.325)]
    assert {hit.lanes for hit in store.search("tea", mode="text", **asked)} == {("text",)}
    context = store.recall("tea", **asked)
    assert context.lanes == ("text", "facts", "vectors", "late")
    by_vectors = store.search("tea", mode="vector", **asked)
    assert {hit.lanes for hit in by_vectors} == {("vectors", "late"), ("late",)}
    assert [hit.score == hit.cosine for hit in by_vectors[:1]] == [False]
    with pytest.raises(cerata.Unsupported, match="None of the lanes"):
        store.search("", mode="vector", profile="words", vectors=cerata.Vectors(tokens=UNITS))


def test_a_hit_of_the_lane_explains_itself(store: Store) -> None:
    store.delete(2)
    asked: dict[str, Any] = {"where": ~Filter(tags=["plain"])}
    [best, *_] = store.search("tea", vectors=cerata.Vectors(tokens=UNITS[[0, 2]]), **asked)
    told = store.history.explain(best)
    text, tokens = (share for share in told.lanes if share.added)
    assert (best.id, text.lane, tokens.lane) == (1, "text", "late")
    assert (tokens.rank, tokens.score, tokens.found) == (1, 0.325, 2)
    assert tokens.left_out.to_dict() == {
        "candidates": 3,
        "deleted": 1,
        "superseded": 0,
        "where": 0,
        "expired": 0,
    }
    assert told.score == round(text.added + tokens.added, 9)
    assert told.reranked is None
    assert "late   0.325 = weight 1 x 0.325, rank 1 of 2, score 0.325" in str(told)


WORDS = Profile("words first", 1, {"text": 1})


def test_tokens_put_the_best_of_words_in_order(store: Store) -> None:
    """Only those that have them change places, scores stay, and what moved is told."""
    plain = store.search("tea", profile=WORDS)
    assert [hit.id for hit in plain] == [2, 1, 4]
    asked: dict[str, Any] = {"vectors": cerata.Vectors(tokens=UNITS[[0, 1]]), "profile": WORDS}
    assert store.search("tea", **asked) == plain
    found = store.search("tea", rerank=True, **asked)
    assert [hit.id for hit in found] == [1, 2, 4]
    assert {hit.id: hit.score for hit in found} == {hit.id: hit.score for hit in plain}
    told = [store.history.explain(hit).reranked for hit in found]
    assert told[2] is None
    assert [one.to_dict() for one in told if one] == [
        {"before": 2, "after": 1, "score": 0.65, "by": "late"},
        {"before": 1, "after": 2, "score": 0.325, "by": "late"},
    ]
    assert "  rank 2 before, 1 by its tokens: 0.650" in str(store.history.explain(found[0]))
    assert [hit.id for hit in store.search("tea", k=1, rerank=True, **asked)] == [1]
    assert store.search("tea", rerank=False, **asked) == plain
    assert store.search("tea", mode="text", **asked) == plain
    assert store.search("tea", mode="text", rerank=True, **asked) == found


def test_a_context_says_that_it_was_put_in_order(store: Store) -> None:
    context = store.recall(
        "tea",
        record=True,
        vectors=cerata.Vectors(tokens=UNITS[[0, 1]]),
        profile=cerata.Ranking(profile=WORDS, rerank=True),
    )
    assert context.lanes == ("text", "late (rerank)")
    assert [item.id for item in context.items] == [1, 2, 4]
    [event] = store.log(context.recorded or 0, context.recorded)
    body = event.body
    assert isinstance(body, RecallContext)
    assert (body.tokens_space, body.rerank) == (SPACE, True)
    tokens = np.frombuffer(body.tokens or b"", np.int8).reshape(-1, 6)
    again = store.at(body.basis).recall(
        "tea",
        vectors=cerata.Vectors(tokens=tokens, tokens_space=body.tokens_space),
        profile=cerata.Ranking(profile=WORDS, rerank=True),
    )
    assert again.text == context.text


def test_only_the_best_fifty_are_put_in_order() -> None:
    with cerata.open(":memory:") as store:
        for place in range(60):
            store.put_frame(f"tea {'cup ' * place}", vectors=given(UNITS[[place % 2]]))
        asked: dict[str, Any] = {"k": 60, "profile": WORDS}
        plain = [hit.id for hit in store.search("tea", **asked)]
        found = store.search("tea", rerank=True, vectors=cerata.Vectors(tokens=UNITS[[1]]), **asked)
        odd = [frame for frame in plain[:50] if frame % 2]
        even = [frame for frame in plain[:50] if not frame % 2]
        assert [hit.id for hit in found] == even + odd + plain[50:]
        assert store.history.explain(found[55]).reranked is None


def test_what_a_transaction_gathered_is_ranked_too(store: Store) -> None:
    asked: dict[str, Any] = {"vectors": cerata.Vectors(tokens=UNITS[[4, 0]]), "rerank": True}
    with store.transaction() as transaction:
        new = store.put_frame("tea again", vectors=given(UNITS[[4, 0]])).id
        embed(store, 2, UNITS[[4]], SPACE)
        store.delete(1)
        inside = said(store.search("tea", **asked))
        lane = late(store, UNITS[[4, 0]])
        assert lane == [(new, 0.65), (2, 0.325)]
        told = store.history.explain(store.search("tea", **asked)[0])
        assert told.reranked is not None
        assert (told.id, told.reranked.after, told.reranked.score) == (new, 1, 0.65)
    ids = {new: transaction.receipt.ids[0]}
    after = late(store, UNITS[[4, 0]])
    assert after == [(ids.get(frame, frame), score) for frame, score in lane]
    assert inside[0][0] == new


def test_a_scope_hides_tokens_as_it_hides_frames(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    for tenant in ("alice", "bob"):
        with cerata.open(path, scope={"tenant": tenant}) as store:
            store.put_frame(tenant, vectors=given(UNITS[[0]]))
    with cerata.open(path, scope={"tenant": "bob"}) as store:
        found = store.search("", mode="vector", vectors=cerata.Vectors(tokens=UNITS[[0]]))
        assert [hit.text for hit in found] == ["bob"]


@pytest.mark.parametrize(
    ("more", "error", "what"),
    [
        ({"vectors": cerata.Vectors(tokens=UNITS[0])}, cerata.InvalidInput, "shape"),
        ({"vectors": cerata.Vectors(tokens=UNITS[:0])}, cerata.InvalidInput, "0 token vectors"),
        ({"vectors": cerata.Vectors(tokens=UNITS[:, :3])}, cerata.InvalidInput, "3 dimensions"),
        ({"vectors": cerata.Vectors(tokens=[[np.inf] * 6])}, cerata.InvalidInput, "not finite"),
        ({"vectors": cerata.Vectors(tokens=UNITS), "mode": "both"}, cerata.InvalidInput, "'both'"),
        ({"vectors": cerata.Vectors(tokens=UNITS), "rerank": 1}, cerata.InvalidInput, "not 1"),
        ({"rerank": True}, cerata.InvalidInput, "no token vectors to rerank"),
        (
            {"vectors": cerata.Vectors(tokens_space=SPACE)},
            cerata.InvalidInput,
            "no token vectors to search",
        ),
        ({"vectors": cerata.Vectors(dense=[1.0] * 6)}, cerata.NotFound, "no vectors"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    store: Store, more: dict[str, Any], error: type[Exception], what: str
) -> None:
    """Token vectors are no vectors: a question with one vector does not find them."""
    with pytest.raises(error, match=what):
        store.search("tea", **more)


def test_a_token_space_without_vectors_changes_no_result(store: Store) -> None:
    """A lane without its input leaves the ranking of the others alone."""
    hits = store.search(
        "tea", vectors=cerata.Vectors(tokens=UNITS, tokens_space="none/6/maxsim/i1")
    )
    assert [hit.id for hit in hits] == [hit.id for hit in store.search("tea", mode="text")]


def test_a_space_is_named_where_several_fit(store: Store) -> None:
    other = "n@1/6/maxsim/i1"
    embed(store, 4, UNITS[[5]], other)
    with pytest.raises(cerata.InvalidInput, match="2 spaces have token vectors of 6") as caught:
        store.search("tea", vectors=cerata.Vectors(tokens=UNITS))
    assert f"tokens_space=…): {SPACE!r}, {other!r}" in str(caught.value)
    assert late(store, UNITS, space=other) == [(4, round(0.65 / 6, 9))]


def test_the_default_profile_counts_tokens_and_changes_no_order_by_them(store: Store) -> None:
    assert DEFAULT.running["late"]
    hits = store.search("tea", vectors=cerata.Vectors(tokens=UNITS[[0, 1]]))
    assert [store.history.explain(hit).reranked for hit in hits] == [None] * 3
