"""Byte pairs: the encoding ``cl100k_base`` for little text, from a table that is read, not built.

Owns the table beside this file (``tools/byte_pair_table.py`` writes it), the split of a text into
pieces, and the merging of a piece. The package of the `tokenizer` takes 0.1 s to build its tables,
most of a cold command; looking up the pieces of one context takes a tenth of that. Leaves out what
is rare or long (`SIZE_MAX`): other scripts, emoji, long pieces. The counts are those of
the package, piece by piece; tests/retrieval/test_byte_pairs.py compares the two.

The table: 65,537 offsets (u32, little-endian) of buckets, then the buckets. A token is in the
bucket of the low 16 bits of its CRC-32, as its size (u8), its bytes, and its rank (u24,
little-endian).
"""

import re
import struct
import zlib
from pathlib import Path
from typing import Final

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
