"""Tokens: an exact count, and a cut between tokens.

Owns the tokenizer: the byte pair encoding ``cl100k_base`` of OpenAI's GPT-4 and embedding models,
from the package toktok, which includes the vocabulary (no network, no files). The package builds
its tables when it first counts; until a process has counted some thousand different words,
`BytePairs` counts instead, with equal results. The counts of the package are checked against a
fingerprint, so a version with other counts is refused. If the package is not installed (some
platforms have no wheel), a token is one byte of UTF-8: never fewer than such an encoding takes, so
a budget is never exceeded.
"""

import functools
import hashlib
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol, cast

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import loading

# --------------------------------------------------------------------------------------------------
# Byte pairs: the encoding ``cl100k_base`` for little text, from a table that is read, not built.
#
# The package of the `tokenizer` takes 0.1 s to build its tables, most of a cold command; looking up
# the pieces of one context takes a tenth of that. The counts are those of the package, piece by
# piece; tests/retrieval/test_byte_pairs.py compares the two.
#
# The table: 65,537 offsets (u32, little-endian) of buckets, then the buckets. A token is in the
# bucket of the low 16 bits of its CRC-32, as its size (u8), its bytes, and its rank (u24, little-
# endian).


BUCKETS: Final = 1 << 16
"""About 1.5 tokens a bucket."""

SIZE_MAX: Final = 1 << 16
"""Characters of a text; the package is faster in a longer text."""

PIECE_COST: Final = 256
"""Characters of known words that take the time of a new word."""

_TABLE: Final = "cl100k_base.table"
_TABLE_CHECK: Final = 0x3855BFC1
"""CRC-32 of the table, against a damaged installation."""

_PIECE_MAX: Final = 64
"""Bytes of a piece; merging takes quadratic time."""

_OFFSETS_SIZE: Final = 4 * (BUCKETS + 1)
_OFFSETS: Final = struct.Struct("<II")
_NO_RANK: Final = 1 << 24

# Characters and their classes in the pattern of the encoding: letters, numbers, spaces. Letters of
# Latin, Greek and Cyrillic, and punctuation and symbols of fixed classes; not U+017F, which equals
# "s" without case.
_LETTERS: Final = "A-Za-zªµºÀ-ÖØ-öø-\u017e\u0391-\u03a1\u03a3-\u03c9\u0401\u0410-\u044f\u0451"
_NUMBERS: Final = "0-9²³¹¼-¾"
_SPACES: Final = "\t-\r \x85\xa0"
_ALL: Final = f"\x00-\u017e{_LETTERS}\u2010-\u2027\u2030-\u205e\u20ac\u2190-\u22ff\u2500-\u2767"

_NOT_PLAIN: Final = f"[^{_ALL}]"
_PIECE: Final = (
    "'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    f"|[^\r\n{_LETTERS}{_NUMBERS}]?+[{_LETTERS}]++"
    f"|[{_NUMBERS}]{{1,3}}+"
    f"| ?[^{_SPACES}{_LETTERS}{_NUMBERS}]++[\r\n]*+"
    f"|[{_SPACES}]*[\r\n]++"
    f"|[{_SPACES}]+(?![^{_SPACES}])"
    f"|[{_SPACES}]+"
)


class _Unplain(Exception):
    """A piece is longer than `_PIECE_MAX`."""


class BytePairs:
    """Counts tokens; keeps the count of each piece.

    - ``spent`` is the work of all counts: a unit for each character, `PIECE_COST` for each piece
      that was new.

    Args:
        table: the bytes of the table
    """

    def __init__(self, table: bytes) -> None:
        self.spent = 0
        self._table = table
        self._not_plain = re.compile(_NOT_PLAIN)
        self._pieces = re.compile(_PIECE)
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int | None:
        """Return the number of tokens of a text; None for a rare or long text."""
        if len(text) > SIZE_MAX or not (text.isascii() or self._not_plain.search(text) is None):
            return None
        counts = self._counts
        total = 0
        for piece in self._pieces.findall(text):
            count = counts.get(piece)
            if count is None:
                try:
                    count = counts[piece] = len(self._tokens(piece))
                except _Unplain:
                    return None
                self.spent += PIECE_COST
            total += count
        self.spent += len(text)
        return total

    def truncate(self, text: str, tokens_max: int) -> str:
        """Return the longest beginning of whole tokens and characters of a text that has a count.

        The tokens are those of the whole text.
        """
        left = tokens_max
        for match in self._pieces.finditer(text):
            tokens = self._tokens(match[0])
            if len(tokens) > left:
                part = b"".join(tokens[:left]).decode(errors="ignore")
                return text[: match.start()] + part
            left -= len(tokens)
        return text

    def _tokens(self, piece: str) -> list[bytes]:
        """Return the tokens of a piece: the pair of the lowest rank is merged, and again."""
        data = piece.encode()
        if len(data) > _PIECE_MAX:
            raise _Unplain
        if len(data) == 1 or self._rank(data) != _NO_RANK:
            return [data]
        parts = [data[at : at + 1] for at in range(len(data))]
        ranks = [self._rank(data[at : at + 2]) for at in range(len(data) - 1)]
        while ranks:
            lowest = min(ranks)
            if lowest == _NO_RANK:
                break
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._rank(parts[at - 1] + parts[at])
            if at < len(ranks):
                ranks[at] = self._rank(parts[at] + parts[at + 1])
        return parts

    def _rank(self, token: bytes) -> int:
        table = self._table
        at: int
        end: int
        at, end = _OFFSETS.unpack_from(table, 4 * (zlib.crc32(token) & (BUCKETS - 1)))
        size = len(token)
        while at < end:
            if table[at] == size and table.startswith(token, at + 1):
                return int.from_bytes(table[at + 1 + size : at + 4 + size], "little")
            at += 4 + table[at]
        return _NO_RANK


def packed(tokens: list[bytes]) -> bytes:
    """Return the table of an encoding's tokens, by rank."""
    buckets: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    for rank, token in enumerate(tokens):
        entry = bytes([len(token)]) + token + rank.to_bytes(3, "little")
        buckets[zlib.crc32(token) & (BUCKETS - 1)].append(entry)
    joined = list(map(b"".join, buckets))
    offsets = [_OFFSETS_SIZE]
    for bucket in joined:
        offsets.append(offsets[-1] + len(bucket))
    return struct.pack(f"<{BUCKETS + 1}I", *offsets) + b"".join(joined)


def byte_pairs() -> BytePairs | None:
    """Return the encoding of the table beside this file; None if the file cannot be read."""
    try:
        table = Path(__file__).with_name(_TABLE).read_bytes()
    except OSError:
        return None
    return BytePairs(table) if zlib.crc32(table) == _TABLE_CHECK else None


# --- Tokens: an exact count, and a cut between tokens ---------------------------------------------


ENCODING: Final = "cl100k_base"

_PROBE: Final = (
    "It's 12345.67 o'CLOCK, isn't it?\r\n\r\n\tdef f(x):  return x**2  # naïve Straße\n"
    "東京都の人口 안녕하세요 Привет мир हिन्दी ไทย مرحبا 🧠👩‍👩‍👧 ½ ﬁ K ‖ <|endoftext|> {}[]();   "
)
"""Each kind of piece of the encoding, with scripts and runs of spaces."""

_FINGERPRINT: Final = "16c9c8ce887469be5333e452ce44360d9308c290e2264a8ada61b22cca2fdba6"
"""SHA-256 over the counts of all prefixes of the probe by tiktoken 0.14.0."""


_CREDIT: Final = 1 << 20
"""Characters that `tokenizer` may count in a process; about the time of the package's tables."""


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
