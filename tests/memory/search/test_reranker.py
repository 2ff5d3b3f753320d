"""Rerankers: a model, or scores, put the best hits of a search in another order."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import cerata
from cerata import Filter, Hit, Profile, RerankerFailed, Store, View
from cerata.engine.events import RecallContext

WORDS = Profile("words first", 1, {"text": 1})
QUESTION = "which tea is green?"


def score(text: str) -> float:
    return crc32(text.encode()) % 97 / 8


@dataclasses.dataclass
class Checksums:
    """Scores that no lane has. Notes each call."""

    identity: str = "checksums@1"
    hits: int = 50
    calls: list[tuple[str, list[str]]] = dataclasses.field(
        default_factory=list[tuple[str, list[str]]]
    )

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        self.calls.append((question, list(texts)))
        return [score(text) for text in texts]


@dataclasses.dataclass
class Answering:
    """Returns an answer, or raises it."""

    answer: Callable[[int], Any]
    identity: str = "broken@1"

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        answer: Any = self.answer(len(texts))
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(texts, list)
        texts.clear()
        scores: Sequence[float] = answer
        return scores


def rising(step: float, count: int) -> list[float]:
    return [step * place for place in range(count)]


@pytest.fixture
def store() -> Store:
    """Ninety frames about tea, of lengths that do not follow the order by words."""
    random = Random(7)
    store = cerata.open(":memory:")
    with store.transaction():
        for n in range(90):
            text = "green tea " + "leaf " * random.randrange(12) + "water " * (n % 3) + str(n)
            store.put_frame(text, tags=["odd"] if n % 2 else [])
    return store


def ids(hits: Sequence[Hit]) -> list[int]:
    return [hit.id for hit in hits]


def reference(plain: Sequence[Hit], scores: dict[int, float], most: int) -> list[int]:
    """The order by its definition: sort the scored of the first hits; the rest stay in place."""
    order = [hit.id for hit in plain]
    places = [place for place in range(min(most, len(order))) if order[place] in scores]
    best = sorted((order[place] for place in places), key=lambda frame: -scores[frame])
    for place, frame in zip(places, best, strict=True):
        order[place] = frame
    return order


# --- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["default", WORDS])
@pytest.mark.parametrize("most", [1, 7, 50, 128])
def test_a_model_sorts_the_best_hits_and_changes_no_score(
    store: Store, profile: Any, most: int
) -> None:
    plain = store.search(QUESTION, k=90, profile=profile)
    model = Checksums(hits=most)
    hits = store.search(QUESTION, k=90, profile=profile, rerank=model)
    scores = {hit.id: score(hit.text) for hit in plain[:most]}
    assert ids(hits) == reference(plain, scores, most)
    assert {hit.id: hit.score for hit in hits} == {hit.id: hit.score for hit in plain}
    assert model.calls == [(QUESTION, [hit.text for hit in plain[:most]])]
    assert (ids(hits) != ids(plain)) is (most > 1)


def test_fifty_hits_are_read_by_default(store: Store) -> None:
    class Minimal:
        identity = "minimal@1"

        def scores(self, question: str, texts: Sequence[str]) -> Any:
            assert len(texts) == 50
            return np.arange(50)

    plain = store.search(QUESTION, k=90)
    hits = store.search(QUESTION, k=90, rerank=Minimal())
    assert ids(hits) == [*reversed(ids(plain)[:50]), *ids(plain)[50:]]


def test_equal_scores_keep_the_order_of_the_search(store: Store) -> None:
    """Scores are rounded to 9 digits first: less is the noise of another processor."""
    plain = store.search(QUESTION, k=90)
    for step in (0.0, 1e-12):
        model = Answering(partial(rising, step))
        assert ids(store.search(QUESTION, k=90, rerank=model)) == ids(plain)


def test_a_turn_is_read_with_its_speaker_and_bytes_by_their_description() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("green tea", role="Mina")
        store.put_frame(b"\0\1", kind="image", options=cerata.PutOptions(search_text="a green cup"))
        model = Checksums()
        store.search("green", rerank=model)
    assert sorted(model.calls[0][1]) == ["Mina: green tea", "a green cup"]


def test_pages_filters_and_groups_are_parts_of_one_order(store: Store) -> None:
    hits = store.search(QUESTION, k=90, rerank=Checksums())
    pages: list[int] = []
    while page := store.search(
        QUESTION, k=20, rerank=Checksums(), page=cerata.Page(offset=len(pages))
    ):
        pages += ids(page)
    assert pages == ids(hits)
    assert ids(
        store.search(QUESTION, k=90, rerank=Checksums(), page=cerata.Page(group_by="document"))
    ) == ids(hits)
    least = sorted(hit.score for hit in hits)[40]
    bounded = store.search(QUESTION, k=90, rerank=Checksums(), floor=least)
    assert ids(bounded) == [hit.id for hit in hits if hit.score >= least]
    odd = Filter(tags=["odd"])
    plain = store.search(QUESTION, k=90, where=odd)
    scores = {hit.id: score(hit.text) for hit in plain}
    assert ids(store.search(QUESTION, k=90, where=odd, rerank=Checksums())) == reference(
        plain, scores, 50
    )


def test_a_page_after_a_hit_does_not_run_the_model_again(store: Store) -> None:
    """A model that answers differently the second time would repeat or skip hits."""
    model = Checksums()
    hits = ids(store.search(QUESTION, k=90, rerank=model))
    page = store.search(QUESTION, k=20, rerank=model)
    pages = ids(page)
    while page := store.search(
        QUESTION, k=20, rerank=Checksums(), page=cerata.Page(after=page[-1])
    ):
        assert store.history.explain(page[0]).reranked is None or len(pages) < 50
        pages += ids(page)
    assert pages == hits
    assert len(model.calls) == 2
    [hit] = store.search(QUESTION, k=1, rerank=model)
    with pytest.raises(cerata.InvalidInput, match="another question"):
        store.search(QUESTION, k=1, rerank=Checksums("checksums@2"), page=cerata.Page(after=hit))


def test_earlier_views_and_a_transaction_are_reranked_as_they_are_ranked(store: Store) -> None:
    then = store.history.view()
    before = ids(then.search(QUESTION, rerank=Checksums()))
    with store.transaction() as block:
        new = store.put_frame("green green tea").id
        inside = ids(store.search(QUESTION, k=90, rerank=Checksums()))
        assert new in inside[:50]
    after = ids(store.search(QUESTION, k=90, rerank=Checksums()))
    assert after == [block.receipt.ids[0] if frame == new else frame for frame in inside]
    assert ids(then.search(QUESTION, rerank=Checksums())) == before
    assert ids(store.at(then.basis).search(QUESTION, rerank=Checksums())) == before


def test_scores_of_frames_order_without_a_model(store: Store) -> None:
    """The scores of a model that ran elsewhere; frames without a score keep their places."""
    plain = store.search(QUESTION, k=90)
    scores = {hit.id: float(hit.id % 5) for hit in plain if hit.id % 3}
    hits = store.search(QUESTION, k=90, rerank=scores)
    assert ids(hits) == reference(plain, scores, 128)
    assert ids(store.search(QUESTION, k=90, rerank={10**9: 1.0})) == ids(plain)


# --- the explanation -----------------------------------------------------------------------------


def test_an_explanation_has_the_score_and_both_ranks(store: Store) -> None:
    plain = ids(store.search(QUESTION, k=90))
    hits = store.search(QUESTION, k=90, rerank=Checksums())
    told = store.history.explain(hits[0])
    assert told.reranked is not None
    assert told.reranked.to_dict() == {
        "before": plain.index(hits[0].id) + 1,
        "after": 1,
        "score": score(hits[0].text),
        "by": "checksums@1",
    }
    assert f"rank {told.reranked.before} before, 1 by checksums@1: " in str(told)
    assert store.history.explain(hits[70]).reranked is None
    [hit] = store.search(QUESTION, k=1, rerank={plain[4]: 2.0, plain[0]: 1.0})
    assert "rank 5 before, 1 by the passed scores: 2.000" in str(store.history.explain(hit))
    assert (
        store.recall(QUESTION, profile=cerata.Ranking(rerank=Checksums())).lanes[-1]
        == "checksums@1 (rerank)"
    )


# --- recorded recalls ----------------------------------------------------------------------------


def recorded(store: Store | View, seq: int | None) -> RecallContext:
    [event] = store.log(seq or 0, seq)
    assert isinstance(event.body, RecallContext)
    return event.body


def test_a_recorded_recall_is_repeated_without_the_model(store: Store) -> None:
    asked: dict[str, Any] = {"max_tokens": 300, "policy": None}
    context = store.recall(
        QUESTION, record=True, profile=cerata.Ranking(rerank=Checksums()), **asked
    )
    assert context.text != store.recall(QUESTION, **asked).text
    body = recorded(store, context.recorded)
    assert (body.reranker, body.rerank, len(body.reranked)) == ("checksums@1", False, 50)
    scores = np.frombuffer(body.reranked_scores or b"", "<f8").tolist()
    store.put_frame("green tea, newer")
    rerank = dict(zip(body.reranked, scores, strict=True))
    again = store.at(body.basis).recall(QUESTION, profile=cerata.Ranking(rerank=rerank), **asked)
    assert again.text == context.text
    repeated = store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank=rerank), **asked)
    body = recorded(store, repeated.recorded)
    assert body.reranker is None
    assert {*body.reranked} <= {*rerank}
    assert recorded(store, store.recall(QUESTION, record=True).recorded).reranked == ()


def test_a_recall_in_a_transaction_records_the_scores_of_new_frames(store: Store) -> None:
    """Ids of pending frames become their numbers, as those of shown frames do."""
    with store.transaction() as block:
        store.put_frame("green green tea")
        store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank=Checksums()))
    body = recorded(store, block.receipt.seqs[-1])
    assert block.receipt.ids[0] in body.reranked
    assert body.reranked[0] > 0


def test_a_keyed_recall_is_recognised_by_the_identity_of_its_model(store: Store) -> None:
    def call(rerank: Any) -> cerata.Receipt:
        with store.transaction(key="once") as block:
            store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank=rerank))
        return block.receipt

    first = call(Checksums())
    assert call(Checksums()).seqs == first.seqs
    with pytest.raises(cerata.IdempotencyConflict):
        call(Checksums("checksums@2"))


# --- faults --------------------------------------------------------------------------------------

FAULTS: list[tuple[Callable[[int], Any], str]] = [
    (lambda count: [1.0] * (count - 1), "of the shape"),
    (lambda count: [[1.0]] * count, "of the shape"),
    (lambda _: 1.0, "of the shape"),
    (lambda _: None, "of the shape"),
    (lambda count: ["high"] * count, "not numbers"),
    (lambda count: [True] * count, "not numbers"),
    (lambda count: [float("nan")] * count, "not finite"),
    (lambda count: [float("inf")] + [0.0] * (count - 1), "not finite"),
    (lambda count: [10**400] * count, "not numbers"),
    (lambda count: [[1.0], *[[1.0, 2.0]] * (count - 1)], "raised ValueError"),
    (lambda _: TimeoutError("no answer in 30 s"), "raised TimeoutError: no answer in 30 s"),
    (lambda _: KeyError("weights"), "raised KeyError"),
]


@pytest.mark.parametrize(("answer", "fault"), FAULTS)
def test_a_model_that_fails_writes_nothing_and_leaves_the_view_usable(
    store: Store, answer: Callable[[int], Any], fault: str
) -> None:
    view = store.history.view()
    expected = [hit.to_dict() for hit in view.search(QUESTION, rerank=Checksums())]
    head = store.head
    with pytest.raises(RerankerFailed, match=fault) as caught:
        view.search(QUESTION, rerank=Answering(answer))
    assert caught.value.reranker == "broken@1"
    with pytest.raises(RerankerFailed):
        store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank=Answering(answer)))
    assert store.head == head
    assert [hit.to_dict() for hit in view.search(QUESTION, rerank=Checksums())] == expected


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_errors_of_the_machine_pass_through(store: Store, error: type[BaseException]) -> None:
    with pytest.raises(error):
        store.search(QUESTION, rerank=Answering(lambda _: error()))
    assert store.search(QUESTION, rerank=Checksums())


def test_without_a_hit_the_model_does_not_run(store: Store) -> None:
    model = Checksums()
    assert store.search("zeppelins", profile=WORDS, rerank=model) == []
    assert model.calls == []


@pytest.mark.parametrize(
    "rerank",
    [
        "lengths",
        3,
        Checksums(""),
        Checksums("lengths"),
        Checksums("checksums@"),
        Checksums(" lengths@1"),
        Checksums("len\ngths@1"),
        Checksums("l" * 255 + "@1"),
        Checksums(hits=0),
        Checksums(hits=129),
        Checksums(hits=True),
        Checksums(hits=2.5),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        {1: float("nan")},
        {1: 10**400},
        {1: "high"},
        {"1": 2.0},
        {True: 2.0},
        {1: True},
        type("NoScores", (), {"identity": "a@1"})(),
        type("NoIdentity", (), {"scores": print})(),
    ],
)
def test_what_is_no_reranker_is_refused_before_anything_runs(store: Store, rerank: Any) -> None:
    head = store.head
    with pytest.raises(cerata.InvalidInput):
        store.search(QUESTION, rerank=rerank)
    with pytest.raises(cerata.InvalidInput):
        store.recall(QUESTION, profile=cerata.Ranking(rerank=rerank))
    assert store.head == head


def test_a_model_needs_a_question_in_plain_language(store: Store) -> None:
    for query in (cerata.query("green AND tea"), "  "):
        with pytest.raises(cerata.InvalidInput, match="plain language"):
            store.search(query, rerank=Checksums())
    assert store.search(cerata.query("green AND tea"), rerank={1: 2.0})
