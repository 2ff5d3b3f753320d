"""Tokens: exactly those of cl100k_base, offline, and cuts that fit."""

import base64
import hashlib
import itertools
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Protocol, cast

import pytest
import toktok
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.retrieval import tokenizer as tokens
from cerata.retrieval.tokenizer import BpeTokenizer, Utf8Tokenizer, tokenizer

OFFICIAL_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""Of OpenAI's file cl100k_base.tiktoken, as tiktoken's own source names it."""

# Ids as tiktoken 0.14.0 gives them.
IDS = {
    "": [],
    "hello world": [15339, 1917],
    "It's 12345.67 o'CLOCK\r\n\r\n": [
        *(2181, 596, 220, 4513, 1774, 13, 3080, 297, 77761, 8204, 881),
    ],
    "東京都の人口": [14276, 109, 47653, 72368, 16144, 17792, 40526],
    "    return x**2  # naïve": [262, 471, 865, 334, 17, 220, 674, 95980, 588],
    "<|endoftext|>": [27, 91, 8862, 728, 428, 91, 29],
    " \n \n  x": [33006, 220, 865],
    "Привет, мир! हिन्दी": [
        *(54745, 28089, 8341, 11, 11562, 78746, 0, 85410, 43411, 101, 31584, 99, 44747),
    ],
}

TEXTS = st.lists(
    st.text(max_size=8)
    | st.sampled_from(["'s", "'LL", "  ", "\n\n", "\r\n", "123", "4567", "<|endoftext|>", "🧠"]),
    max_size=20,
).map(lambda parts: "".join(parts).encode(errors="ignore").decode())

BOTH = pytest.mark.parametrize(
    "counter",
    [BpeTokenizer(toktok), tokenizer.__wrapped__(), Utf8Tokenizer()],
    ids=["package", "table", "bytes"],
)


class Engine(Protocol):
    """What is used of the package's tokenizer, which has no types."""

    def encode_ordinary(self, text: str) -> list[int]: ...
    def decode_single_token_bytes(self, rank: int) -> bytes: ...


ENGINE = cast("Callable[[str], Engine]", vars(toktok)["_encoding"])("cl100k_base")
VOCABULARY = [ENGINE.decode_single_token_bytes(rank) for rank in range(100_256)]
"""The bytes of every ordinary token, by rank."""


def test_the_vocabulary_is_the_official_one_byte_for_byte() -> None:
    """A tokenizer is its ranks: the file that OpenAI published is rebuilt from the package."""
    lines = [base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(VOCABULARY)]
    assert hashlib.sha256(b"".join(lines)).hexdigest() == OFFICIAL_SHA256


@pytest.mark.parametrize("text", IDS)
def test_a_text_has_the_tokens_that_tiktoken_gives_it(text: str) -> None:
    assert ENGINE.encode_ordinary(text) == IDS[text]
    assert tokenizer().count(text) == len(IDS[text])


RANKS = {token: rank for rank, token in enumerate(VOCABULARY)}


def merged(word: bytes) -> list[int]:
    """Byte pair encoding as its paper has it: merge the pair of the lowest rank, and again."""
    parts = [bytes([byte]) for byte in word]
    while pairs := [
        (RANKS[a + b], at) for at, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in RANKS
    ]:
        at = min(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [RANKS[part] for part in parts]


@given(st.text("etaoinshrdluXÉéßж", min_size=1, max_size=24))
def test_a_word_is_merged_as_the_algorithm_says(word: str) -> None:
    assert ENGINE.encode_ordinary(word) == merged(word.encode())


@BOTH
@given(text=TEXTS, tokens_max=st.integers(-1, 30))
def test_a_cut_is_a_beginning_that_fits(
    counter: BpeTokenizer | Utf8Tokenizer, text: str, tokens_max: int
) -> None:
    """A budget is a hard limit, also for the beginning of a text encoded by itself."""
    size = counter.cut(text, tokens_max)
    assert 0 <= size <= len(text)
    assert counter.count(text[:size]) <= max(0, tokens_max)
    if counter.count(text) <= tokens_max:
        assert size == len(text)


@given(TEXTS)
def test_bytes_never_undercount(text: str) -> None:
    """Where the package is missing a context is smaller than it could be, never too large."""
    assert tokenizer().count(text) <= Utf8Tokenizer().count(text)


@BOTH
@given(texts=st.lists(TEXTS, max_size=5))
def test_many_are_counted_like_each(
    counter: BpeTokenizer | Utf8Tokenizer, texts: list[str]
) -> None:
    assert counter.count_many(texts) == [counter.count(text) for text in texts]


@BOTH
def test_a_lone_surrogate_is_refused(counter: BpeTokenizer | Utf8Tokenizer) -> None:
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        counter.count("ab\ud800")
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        counter.cut("ab\ud800", 1)


@pytest.mark.parametrize("piece", ["a", " ", "\n", "ab", "🧠", "0", "e\u0301", " \t"])
def test_long_runs_take_linear_time(piece: str) -> None:
    """Merging is quadratic when done plainly; a hostile file must not stop the process."""
    text = piece * (4_000_000 // len(piece.encode()))
    assert 0 < tokenizer().count(text) <= 4_000_000


def test_without_the_package_tokens_are_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toktok", None)
    assert tokenizer.__wrapped__().name == "utf8_bytes"


def test_a_package_that_counts_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question must give the same context next year."""
    monkeypatch.setattr(tokens, "_FINGERPRINT", "0")
    counter = tokenizer.__wrapped__()
    # The table needs no check: it is Cerata's, and equal to the published ranks.
    assert counter.count("hello world") == 2
    with pytest.raises(Unsupported, match="counts otherwise"):
        counter.count("🧠")
    with pytest.raises(Unsupported, match="counts otherwise"):
        counter.cut("🧠", 1)
    with pytest.raises(Unsupported, match="counts otherwise"):
        counter.count_many(["🧠"])


def test_the_name_says_which_encoding_and_version() -> None:
    assert tokenizer().name == f"cl100k_base (toktok {version('toktok-rs')})"
