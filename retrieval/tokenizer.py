"""Tokens: an exact count, and a cut between tokens.

Owns the tokenizer: the byte pair encoding ``cl100k_base`` of OpenAI's GPT-4 and embedding models,
from the package toktok, which includes the vocabulary (no network, no files). The package builds
its tables when it first counts; until a process has counted some thousand different words,
`byte_pairs` counts instead, with equal results. The counts of the package are checked against a
fingerprint, so a version with other counts is refused. If the package is not installed (some
platforms have no wheel), a token is one byte of UTF-8: never fewer than such an encoding takes, so
a budget is never exceeded.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Protocol, cast

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.loading import loading

from .byte_pairs import BytePairs, byte_pairs

ENCODING: Final = "cl100k_base"

_PROBE: Final = (
    "It's 12345.67 o'CLOCK, isn't it?\r\n\r\n\tdef f(x):  return x**2  # naïve Straße\n"
    "東京都の人口 안녕하세요 Привет мир हिन्दी ไทย مرحبا 🧠👩‍👩‍👧 ½ ﬁ K ‖ <|endoftext|> {}[]();   "
)
"""Each kind of piece of the encoding, with scripts and runs of spaces."""

_FINGERPRINT: Final = "16c9c8ce887469be5333e452ce44360d9308c290e2264a8ada61b22cca2fdba6"
"""SHA-256 over the counts of all prefixes of the probe by tiktoken 0.14.0."""


_CREDIT: Final = 1 << 20
"""Characters that `byte_pairs` may count in a process; about the time of the package's tables."""


class Tokenizer(Protocol):
    """Counts tokens and cuts between them. A context stores ``name`` with its count."""

    @property
    def name(self) -> str: ...

    @property
    def tokens_a_word(self) -> int:
        """About how many of these tokens make one of cl100k_base: 1, or 4 for bytes."""
        ...

    def count(self, text: str) -> int: ...

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """Count each of many texts; faster than single calls."""
        ...

    def cut(self, text: str, tokens_max: int) -> int:
        """Return the length in characters of a prefix of at most ``tokens_max`` tokens.

        The prefix ends with a token, and never inside a character.
        """
        ...


class Utf8Tokenizer:
    """A token is one byte of UTF-8."""

    name: str = "utf8_bytes"
    tokens_a_word: int = 4

    def count(self, text: str) -> int:
        return len(_utf8(text))

    def count_many(self, texts: Iterable[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def cut(self, text: str, tokens_max: int) -> int:
        return len(_utf8(text)[: max(0, tokens_max)].decode(errors="ignore"))


class _Toktok(Protocol):
    """The used part of the package, which has no types."""

    __version__: str

    @property
    def batch_count(self) -> "Callable[[list[str], str, int], list[int]]": ...
    @property
    def truncate(self) -> "Callable[[str, int, str], tuple[str, int]]": ...


class BpeTokenizer:
    """A token is one of ``cl100k_base``; text that looks like a special token is text.

    Args:
        package: the module toktok
        table: counts at the beginning of a process, while the package has no tables
    """

    tokens_a_word: int = 1

    def __init__(self, package: _Toktok, table: BytePairs | None = None) -> None:
        self._unchecked = package
        self._table = table
        self.name: str = f"{ENCODING} (toktok {package.__version__})"

    def count(self, text: str) -> int:
        table = self._table
        count = None if table is None else table.count(text)
        if count is None:
            # A cut counts, too; a batch of one text takes thirty times as long.
            return self._by_package(text, 0)[1]
        if table is not None and table.spent > _CREDIT:
            self._table = None
        return count

    def count_many(self, texts: Iterable[str]) -> list[int]:
        if self._table is not None:
            return list(map(self.count, texts))
        # On the calling thread: a pool of threads would not survive a fork.
        try:
            return self._package.batch_count(list(texts), ENCODING, 1)
        except UnicodeEncodeError as error:
            raise _not_unicode(error) from error

    def cut(self, text: str, tokens_max: int) -> int:
        limit = max(0, tokens_max)
        piece, total = self._truncated(text, limit)
        # A prefix alone may split into other tokens than in the whole text, and into more.
        while total > tokens_max and self.count(piece) > tokens_max and limit:
            limit -= 1
            piece, total = self._truncated(text, limit)
        return len(piece)

    def _truncated(self, text: str, limit: int) -> tuple[str, int]:
        """Return a prefix of whole tokens, at most ``limit``, and the tokens of the whole text."""
        table = self._table
        count = None if table is None else table.count(text)
        if table is None or count is None:
            return self._by_package(text, limit)
        return (text if count <= limit else table.truncate(text, limit)), count

    def _by_package(self, text: str, limit: int) -> tuple[str, int]:
        try:
            return self._package.truncate(text, limit, ENCODING)
        except UnicodeEncodeError as error:
            raise _not_unicode(error) from error

    @functools.cached_property
    def _package(self) -> _Toktok:
        """The package, which builds its tables here.

        Raises:
            Unsupported: the installed toktok counts otherwise than this version of Cerata.
        """
        if fingerprint(self._unchecked) != _FINGERPRINT:
            raise Unsupported(
                f"{self.name} counts otherwise than {ENCODING}",
                remedy="Install the version of toktok-rs that Cerata's requirements name.",
            )
        return self._unchecked


@functools.cache
def tokenizer() -> Tokenizer:
    """Return the process's tokenizer; the package's tables take 0.2 s and 40 MB, once."""
    try:
        with loading("toktok"):
            import toktok
    except ImportError:
        return Utf8Tokenizer()
    return BpeTokenizer(cast("_Toktok", toktok), byte_pairs())


def fingerprint(package: _Toktok) -> str:
    """Return a hash that two packages share only if their counts of the probe are equal."""
    prefixes = [_PROBE[:size] for size in range(len(_PROBE) + 1)]
    counts = package.batch_count(prefixes, ENCODING, 1)
    return hashlib.sha256(repr(counts).encode()).hexdigest()


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _not_unicode(error) from error


def _not_unicode(error: UnicodeEncodeError) -> InvalidInput:
    return InvalidInput(
        f"The text is not valid Unicode at character {error.start:,}",
        remedy="Decode it with errors='replace'.",
    )
