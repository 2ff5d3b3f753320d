"""Passages: pieces that are the whole text, cut where a reader would."""

from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.passages import PASSAGE_SIZE_MAX, split_passages

TEXTS = st.lists(
    st.sampled_from(
        ["# A\n", "## B\n", "word ", "\n", "\n\n", "```\n", "x" * 700, "é" * 500, "\r\n"]
    ),
    max_size=40,
).map("".join)


@given(TEXTS)
def test_passages_are_the_whole_text(text: str) -> None:
    """A chunked document must read back exactly as it was."""
    passages = split_passages(text)
    assert "".join(text[one.start : one.end] for one in passages) == text
    assert all(0 < one.end - one.start <= PASSAGE_SIZE_MAX for one in passages)


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


def test_long_paragraphs_are_cut_at_blank_lines_then_lines_then_words() -> None:
    """A cut inside a word is the last resort."""
    paragraph = "word " * 200
    text = f"{paragraph}\n\n{paragraph}\n\n{'y' * 2000}"
    pieces = [text[p.start : p.end] for p in split_passages(text)]
    assert pieces[0] == f"{paragraph}\n\n"
    assert max(map(len, pieces)) <= PASSAGE_SIZE_MAX
