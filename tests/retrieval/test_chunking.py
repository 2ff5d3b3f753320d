"""Passages: pieces that are the whole text, cut where a reader would."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.chunking import (
    OVERLAP_TOKENS_MAX,
    PASSAGE_TOKENS_MAX,
    Passage,
    split_passages,
)
from cerata.retrieval.tokenizer import Tokenizer, Utf8Tokenizer, tokenizer

TEXTS = st.lists(
    st.sampled_from(
        ["# A\n", "## B\n", "word ", "\n", "\n\n", "```\n", "x" * 700, "é" * 500, "\r\n"]
    ),
    max_size=40,
).map("".join)


COUNTERS = pytest.mark.parametrize(
    "counter", [tokenizer(), Utf8Tokenizer()], ids=lambda one: one.name
)


def joined(text: str, passages: list[Passage]) -> str:
    ends = [0, *(one.end for one in passages)]
    return "".join(text[end : one.end] for end, one in zip(ends, passages, strict=False))


@COUNTERS
@given(text=TEXTS)
def test_passages_are_the_whole_text_and_fit(text: str, counter: Tokenizer) -> None:
    """A chunked document must read back exactly as it was; a chunk has a size that is promised."""
    passages = split_passages(text, counter=counter)
    assert joined(text, passages) == text
    sizes = counter.count_many(text[one.start : one.end] for one in passages)
    assert all(0 < size <= PASSAGE_TOKENS_MAX * counter.tokens_a_word for size in sizes)


@COUNTERS
@given(text=TEXTS)
def test_neighbours_overlap_by_little_and_only_within_a_stretch(
    text: str, counter: Tokenizer
) -> None:
    passages = split_passages(text, counter=counter)
    for before, after in pairwise(passages):
        assert before.end >= after.start > before.start
        shared = text[after.start : before.end]
        assert counter.count(shared) <= OVERLAP_TOKENS_MAX * counter.tokens_a_word
        assert not shared or before.stretch == after.stretch


def test_what_stands_at_a_cut_is_in_one_passage_whole() -> None:
    """The answer may be the sentence in the middle."""
    sentences = [f"The number of the room on floor {n} is {n * 7}. " for n in range(200)]
    text = "".join(sentences)
    passages = split_passages(text)
    assert len(passages) > 3
    assert all(
        any(sentence in text[one.start : one.end] for one in passages) for sentence in sentences
    )
    shared = [before.end - after.start for before, after in pairwise(passages)]
    assert min(shared) > 40


def test_headings_start_passages_and_name_them() -> None:
    """A passage found alone says where in the document it stands."""
    text = "intro\n# One\na\n## Two\nb\n# Three\nc\n"
    found = [(text[p.start : p.end], p.headings) for p in split_passages(text)]
    assert found == [
        ("intro\n", ()),
        ("# One\na\n", ("One",)),
        ("## Two\nb\n", ("One", "Two")),
        ("# Three\nc\n", ("Three",)),
    ]


def test_a_hash_in_a_code_fence_is_no_heading() -> None:
    """Shell comments in documentation are not sections."""
    text = "# Title\n```\n# not a heading\n```\nend\n"
    assert [p.headings for p in split_passages(text)] == [("Title",)]


def test_a_cut_is_where_a_reader_pauses_most() -> None:
    """A paragraph's end in the second half is better than a later line's end."""
    paragraph = "A line of some words that says a little.\n" * 28
    text = f"{paragraph}\n{paragraph}\n  {paragraph}"
    first, second, *_ = split_passages(text)
    assert text[: first.end] == f"{paragraph}\n"
    assert text[second.start :].startswith("A line")


def test_a_text_without_any_pause_is_cut_all_the_same() -> None:
    for letter in ("x", "語", "🧠", " ", "\n"):
        text = letter * 5_000
        assert joined(text, split_passages(text)) == text
