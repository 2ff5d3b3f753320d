"""The sets of the relevance benchmark, and the evidence by which it judges designs."""

from itertools import combinations
from typing import Any

import pytest

import cerata
from benchmarks.relevance_bench import DESIGNS, Evidence, evidence_of
from benchmarks.relevance_notes import SETS, notes
from tests.embedders import HashingTokens


def test_each_set_has_fifty_questions_of_either_kind() -> None:
    for questions in SETS:
        assert len({note for note, _ in questions.answerable}) == 50
        assert len({question for _, question in questions.answerable}) == 50
        assert len(set(questions.unrelated)) == 50


def test_sets_share_no_note_and_three_questions_by_chance() -> None:
    """A set that repeats another measures the same again."""
    common = [
        ({*first.answerable} & {*second.answerable}, {*first.unrelated} & {*second.unrelated})
        for first, second in combinations(SETS, 2)
    ]
    assert [len(answerable) for answerable, _ in common] == [0, 0, 0]
    assert sum(len(unrelated) for _, unrelated in common) == 3


def test_the_notes_are_those_with_an_answer_and_the_same_further_ones() -> None:
    texts = [notes(questions) for questions in SETS]
    assert [len(set(of_set)) for of_set in texts] == [1_000] * 3
    for questions, of_set in zip(SETS, texts, strict=True):
        assert {note for note, _ in questions.answerable} <= {*of_set}
    further = [{*of_set} - {note for note, _ in questions.answerable}
               for questions, of_set in zip(SETS, texts, strict=True)]  # fmt: skip
    assert further[0] == further[1] == further[2]


def test_evidence_is_that_of_the_search() -> None:
    """Cosine, idf-weighted words and tokens of each hit."""
    embedder: Any = HashingTokens()
    with cerata.open(":memory:", embedder=embedder) as store:
        store.put_frames(["green tea", "a harbour bridge"])
        hits = evidence_of(store, "green quantum")
        best = max(hits, key=lambda hit: hit.words)
        assert 0 < best.words < 1
        assert best.cosine == pytest.approx(store.search("green quantum")[0].cosine)
        assert best.tokens > 0


@pytest.mark.parametrize("design", DESIGNS)
def test_a_design_admits_close_hits_and_refuses_far_ones(design: str) -> None:
    far = [Evidence(0.2, 0.1, 0.02)] * 10
    close = [Evidence(0.6, 0.1, 0.2), *far]
    assert not DESIGNS[design](far)
    assert DESIGNS[design](close)


def test_each_design_counts_its_second_signal() -> None:
    """Three hits that the cosine alone would treat alike."""
    lifted, by_tokens, apart = DESIGNS.values()
    assert lifted([Evidence(0.36, 0.2, 0)])
    assert not lifted([Evidence(0.36, 0.1, 0)])
    assert by_tokens([Evidence(0.36, 0, 0.11)])
    assert not by_tokens([Evidence(0.36, 0, 0.09)])
    assert apart([Evidence(0.36, 0, 0), *[Evidence(0.2, 0, 0)] * 9])
    assert not apart([Evidence(0.36, 0, 0), *[Evidence(0.21, 0, 0)] * 9])
