"""Differences of texts: every word is accounted for, and changed words are marked."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import DiffLine
from cerata.memory.values.text_diff import text_diff

TEXTS = st.text(st.sampled_from("ab .\n–é"), max_size=60)


def marked(old: str, new: str) -> list[str]:
    return [line.marked for line in text_diff(old, new)]


@given(TEXTS, TEXTS)
def test_without_the_marks_both_texts_are_whole(old: str, new: str) -> None:
    """Lines without "+" are of the first text, lines without "-" of the second."""
    lines = text_diff(old, new)
    if old.splitlines() == new.splitlines():
        assert lines == ()
        return
    for line in lines:
        assert "".join(text for text, _ in line.parts()) == line.text
        assert all(0 <= start < end <= len(line.text) for start, end in line.spans)
        assert all(first[1] <= second[0] for first, second in pairwise(line.spans))
    removed = [line.text for line in lines if line.sign != "+"]
    added = [line.text for line in lines if line.sign != "-"]
    assert set(removed) <= set(old.splitlines())
    assert set(added) <= set(new.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "It opens in April.",
            "It opens in May.",
            ["-It opens in -{April}."],
        ),
        ("a b c d", "a b x y d", ["-a b -{c} d", "+a b +{x y} d"]),
        ("one\ntwo", "one\nTWO", [" one", "-two", "+TWO"]),
        ("", "new", ["+new"]),
        # A blank line inside a changed span has no mark of its own.
        (".", ".a\n\na", ["-.", "+.+{a}", "+", "++{a}"]),
        ("the long dog runs\nfar away", "the long\ndog runs far off", ["-the long dog runs"]),
    ],
)
def test_changed_words_have_marks(old: str, new: str, expected: list[str]) -> None:
    """Unlike lines have none, and a line end is no word."""
    assert marked(old, new)[: len(expected)] == expected


def test_a_long_line_is_cut_around_its_changes() -> None:
    """The change was beyond the cut, so both lines looked alike."""
    old = "word " * 100 + "April" + " word" * 100
    removed, added = text_diff(old, old.replace("April", "May"))
    for line, word in ((removed, "April"), (added, "May")):
        short = line.shortened(60)
        assert len(short.text) <= 60
        assert [text for text, is_changed in short.parts() if is_changed] == [word]
    assert DiffLine(" ", "x" * 90).shortened(60).text == "x" * 59 + "…"


def test_texts_of_many_words_are_compared_line_by_line() -> None:
    """Word by word would take seconds."""
    old = " ".join(map(str, range(5_000)))
    assert [line.spans for line in text_diff(old, old.replace("77", "x"))] == [(), ()]


def test_a_change_of_a_frame_has_the_spans() -> None:
    with cerata.open(":memory:") as store:
        note = store.put_frame("It opens in April.")
        store.supersede(note, "It opens in May.")
        (change,) = store.diff(note)
        assert [line.spans for line in change.lines] == [((12, 17),), ((12, 15),)]
        assert change.to_dict()["lines"] == [line.to_dict() for line in change.lines]
        assert "-It opens in -{April}." in str(change)
