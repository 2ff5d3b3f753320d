"""The table of byte pairs counts and cuts as the package does, and gives way to it."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

import pytest
import toktok
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval import tokenizer as module
from cerata.retrieval import tokenizer as tokens
from cerata.retrieval.tokenizer import (
    ENCODING,
    SIZE_MAX,
    BpeTokenizer,
    BytePairs,
    byte_pairs,
    packed,
    tokenizer,
)


def matching(pattern: str) -> list[str]:
    """Return the characters of the first plane that a class of the module has."""
    return re.findall(pattern, "".join(map(chr, range(0xD800))))


ALPHABET = sorted({*map(chr, range(0xD800))} - {*matching(vars(module)["_NOT_PLAIN"])})
LETTERS, NUMBERS, SPACES = (
    matching(f"[{vars(module)[name]}]") for name in ("_LETTERS", "_NUMBERS", "_SPACES")
)

TEXTS = st.lists(
    st.text(ALPHABET, max_size=6)
    | st.text(" \n\r\t'stdmLVE0aé.,“”—", max_size=8)
    | st.sampled_from(
        [
            *("'s", "'LL", "'re", "  ", "\n\n", "\r\n", " \n", "123", "4567", "<|endoftext|>"),
            *(" the", "function", "()", "=>", "://", "naïve", "Straße", "данные", "tokenization"),
        ]
    ),
    max_size=24,
).map("".join)


class Encoding(Protocol):
    """The package's vocabulary, which has no types."""

    def token_byte_values(self) -> list[bytes]: ...


def table() -> BytePairs:
    pairs = byte_pairs()
    assert pairs is not None
    return pairs


def test_the_table_has_the_tokens_of_the_package() -> None:
    """The package's are compared with the published file in test_tokenizer."""
    encoding = cast("Callable[[str], Encoding]", vars(toktok)["_encoding"])(ENCODING)
    path = Path(module.__file__).with_name("cl100k_base.table")
    assert path.read_bytes() == packed(encoding.token_byte_values())


def test_the_classes_are_those_of_unicode() -> None:
    """The pattern of the encoding asks for letters, numbers and spaces of Unicode."""
    kinds = {char: unicodedata.category(char) for char in ALPHABET}
    assert [char for char in ALPHABET if kinds[char][0] == "L"] == sorted(LETTERS)
    assert [char for char in ALPHABET if kinds[char][0] == "N"] == sorted(NUMBERS)
    # The property White_Space: separators, and controls that break or indent a line.
    spaces = [char for char in ALPHABET if kinds[char][0] == "Z" or char in "\t\n\v\f\r\x85"]
    assert sorted(SPACES) == spaces
    assert "Cn" not in kinds.values()
    assert "\u017f" not in ALPHABET


@given(text=TEXTS, tokens_max=st.integers(0, 30))
def test_a_text_is_counted_and_cut_as_the_package_does(text: str, tokens_max: int) -> None:
    """Contexts must have the same bytes and the same count, whichever of the two counts."""
    pairs = table()
    cut = pairs.truncate(text, tokens_max), pairs.count(text)
    assert cut == toktok.truncate(text, tokens_max, ENCODING)


@pytest.mark.parametrize(
    "text",
    ["🧠", "東京", "\u017f", "'\u017f", "\u2028", "\ud800", "a" * (SIZE_MAX + 1), "ab" * 40],
)
def test_a_rare_or_long_text_is_left_to_the_package(text: str) -> None:
    """Its classes depend on the version of Unicode, or the package is faster."""
    assert table().count(text) is None


def test_a_long_piece_is_left_to_the_package() -> None:
    """Merging takes quadratic time."""
    text = "ab" * 40
    assert tokenizer.__wrapped__().count(text) == BpeTokenizer(toktok).count(text)


def test_the_package_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is faster in a process that counts much."""
    monkeypatch.setattr(tokens, "_CREDIT", 10_000)
    counter = tokenizer.__wrapped__()
    texts = [f"note {number} on the {number * 37} wax of bees" for number in range(60)]
    expected = toktok.batch_count(texts, ENCODING, 1)
    assert [counter.count(text) for text in texts[:4]] == expected[:4]
    assert "_package" not in vars(counter)
    assert [counter.count(text) for text in texts] == expected
    assert "_package" in vars(counter)


def test_a_damaged_table_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A count must never depend on the installation."""
    path = Path(module.__file__).with_name("cl100k_base.table")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "byte_pairs.py"))
    assert byte_pairs() is None
    data = bytearray(path.read_bytes())
    data[300_000] ^= 1
    (tmp_path / path.name).write_bytes(data)
    assert byte_pairs() is None
