"""WordPiece: the pieces that BERT was trained on, for texts of every kind."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.retrieval.embedders import wordpiece
from cerata.retrieval.embedders.wordpiece import WordPiece, _folded, bert_uncased

PIECES = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "wax", "!", "a", "##a", "中"]


def pieces(text: str, tokens_max: int = 256) -> list[str]:
    small = WordPiece({piece: number for number, piece in enumerate(PIECES)})
    return [PIECES[number] for number in small.encode(text, tokens_max)]


def test_words_are_cut_into_the_longest_pieces_there_are() -> None:
    assert pieces("unaffable") == ["[CLS]", "un", "##aff", "##able", "[SEP]"]
    assert pieces("unknown wax") == ["[CLS]", "[UNK]", "wax", "[SEP]"]


def test_case_accents_and_control_characters_do_not_count() -> None:
    assert pieces("WÄX\tw\x00ax wa\u0301x\ufffd\u200b") == ["[CLS]", *["wax"] * 3, "[SEP]"]


def test_punctuation_and_chinese_characters_stand_alone() -> None:
    assert pieces("wax!wax中wax") == ["[CLS]", "wax", "!", "wax", "中", "wax", "[SEP]"]


def test_a_word_that_is_too_long_is_one_unknown_piece() -> None:
    assert pieces("a" * 100) == ["[CLS]", "a", *["##a"] * 99, "[SEP]"]
    assert pieces("a" * 101) == ["[CLS]", "[UNK]", "[SEP]"]


def test_a_text_is_cut_to_so_many_pieces() -> None:
    assert pieces("wax " * 100, 5) == ["[CLS]", "wax", "wax", "wax", "[SEP]"]
    assert pieces("unaffable", 3) == ["[CLS]", "un", "[SEP]"]
    assert pieces("") == ["[CLS]", "[SEP]"]


def test_a_marker_in_a_text_is_text() -> None:
    """Whoever writes a text must not end it for the model."""
    found = bert_uncased().encode("[SEP] [CLS] [UNK]", 256)
    assert sum(number in (100, 101, 102) for number in found) == 2


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("hello world", [101, 7592, 2088, 102]),
        ("The quick brown fox.", [101, 1996, 4248, 2829, 4419, 1012, 102]),
        ("unaffable", [101, 14477, 20961, 3468, 102]),
        ("Łódź naïve CAFÉ", [101, 17814, 15743, 7668, 102]),
        ("日本 $5.99", [101, 1864, 1876, 1002, 1019, 1012, 5585, 102]),
    ],
)
def test_the_numbers_are_those_of_the_published_tokenizer(text: str, numbers: list[int]) -> None:
    """Taken down from the package ``tokenizers`` with the model's own tokenizer.json."""
    assert bert_uncased().encode(text, 256) == numbers


@given(st.text(max_size=60), st.integers(2, 20))
def test_any_text_has_markers_and_no_more_than_is_allowed(text: str, tokens_max: int) -> None:
    found = bert_uncased().encode(text, tokens_max)
    assert 2 <= len(found) <= tokens_max
    assert (found[0], found[-1]) == (101, 102)
    assert all(0 <= number < 30_522 for number in found)


def test_a_huge_text_costs_what_is_looked_at() -> None:
    """Of 16 MB a part is looked at: about as much as of a text of that part's size."""
    tokenizer = bert_uncased()
    text = "wax tablet " * 1_500_000
    part = text[: 256 * 100]

    def seconds(one: str) -> float:
        started = time.thread_time()
        tokenizer.encode(one, 256)
        return time.thread_time() - started

    assert min(seconds(text) for _ in range(5)) < 20 * min(seconds(part) for _ in range(5))


def test_a_text_may_begin_with_any_number_of_blanks() -> None:
    """Of one that began with 25,600 of them nothing was read."""
    assert pieces(" \n" * 50_000 + "wax") == ["[CLS]", "wax", "[SEP]"]


def test_words_that_are_too_long_are_not_kept() -> None:
    """Each was, up to 25,600 characters of it: 2.5 GB of a log of hexadecimal numbers."""
    small = WordPiece({piece: number for number, piece in enumerate(PIECES)})
    for size in range(95, 106):
        small.encode("a" * size, 256)
    assert sorted(map(len, small._known)) == [95, 96, 97, 98, 99, 100]


def test_another_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers would mean other words."""
    monkeypatch.setattr(wordpiece, "VOCABULARY_SHA256", "0" * 64)
    with pytest.raises(cerata.Unsupported, match="vocabulary"):
        bert_uncased.__wrapped__()


@given(st.text(max_size=40) | st.text("aun! waxfble\u0301中\x00 ", max_size=40))
def test_each_piece_but_the_markers_has_its_characters(text: str) -> None:
    """The characters of a piece fold to the piece, and there are as many spans as pieces."""
    tokenizer = WordPiece({piece: number for number, piece in enumerate(PIECES)})
    spans = tokenizer.spans(text, 12)
    numbers = tokenizer.encode(text, 12)[1:-1]
    assert len(spans) == len(numbers)
    for number, (start, end) in zip(numbers, spans, strict=True):
        assert 0 <= start < end <= len(text)
        if PIECES[number] != "[UNK]":
            folded = "".join(_folded(character) for character in text[start:end]).strip()
            assert folded == PIECES[number].removeprefix("##")
    assert spans == sorted(spans)


def test_places_of_pieces_are_those_of_the_text() -> None:
    text = "  The Łódź mill's unaffable_paint"
    spans = bert_uncased().spans(text, 256)
    assert [text[start:end] for start, end in spans] == [
        *("The", "Łódź", "mill", "'", "s", "una", "ffa", "ble", "_", "paint"),
    ]
    assert len(bert_uncased().spans("wax " * 300, 5)) == 3
