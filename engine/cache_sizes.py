"""The sizes of an open file's caches: parts of one allowance in bytes.

Owns the division. Each cache drops its oldest entries at its limit, and reads them again; so the
allowance changes times, never answers. Leaves out the folded projections, which are state.
"""

from dataclasses import dataclass
from typing import Final

from .arguments import is_integer, wrong_type
from .errors import InvalidInput, number_text

CACHE_BYTES_DEFAULT: Final = 1 << 30
CACHE_BYTES_MIN: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """The limits of all caches of an open file, in bytes; together less than ``total``."""

    total: int = CACHE_BYTES_DEFAULT

    @property
    def vectors(self) -> int:
        """The vectors that questions compared, all spaces together."""
        return self.total // 2

    @property
    def tokens(self) -> int:
        """The token vectors that questions compared, all spaces together."""
        return self.total // 4

    @property
    def segments(self) -> int:
        """The indexes and decompressed blocks of segments."""
        return self.total // 8

    @property
    def recent(self) -> int:
        """The events that this process appended and has not folded."""
        return self.total // 32


def cache_sizes(cache_bytes: int | None) -> CacheSizes:
    """Return the sizes of caches for an allowance; None for the default.

    Raises:
        InvalidInput: the allowance is no integer, or less than 1 MiB.
    """
    if cache_bytes is None:
        return CacheSizes()
    if not is_integer(cache_bytes):
        remedy = "Pass a number of bytes, or leave out cache_bytes."
        raise wrong_type("cache_bytes", "a number of bytes", cache_bytes, remedy)
    if cache_bytes < CACHE_BYTES_MIN:
        raise InvalidInput(
            f"cache_bytes must be at least {CACHE_BYTES_MIN:,}, not {number_text(cache_bytes)}",
            remedy="Pass more bytes, or leave out cache_bytes.",
        )
    return CacheSizes(cache_bytes)
