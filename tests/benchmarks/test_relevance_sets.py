"""The sets of the relevance benchmark."""

from itertools import combinations

from benchmarks.relevance_notes import SETS, notes


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
