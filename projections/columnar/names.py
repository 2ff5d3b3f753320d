"""Names and their codes: a dictionary in order of first occurrence in the log.

Owns small numbers for strings that many rows share (kinds, roles, scopes). Code 0 means no name.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cerata.engine.late import late

from .columns import I64, AnyColumn, AppendOnly, Column, Columns, require, rows_up_to
from .string_table import joined, split

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

NO_NAME: Final = 0


class Names:
    """Strings and their codes, from 1, by first occurrence.

    - ``_seqs[i]`` is the first event with the string of code i + 1; ascending.
    """

    def __init__(self, prefix: str) -> None:
        """Create a dictionary; its columns on disk start with ``prefix``."""
        self._prefix = prefix
        self._texts: list[str] = []
        self.size = 0
        """The number of names."""
        self._codes: dict[str, int] = {}
        self._seqs = Column(np.int64)

    def __len__(self) -> int:
        return len(self._texts)

    def code(self, text: str, seq: int) -> int:
        """Return the code of a string, a new code if event ``seq`` is the first with the string."""
        code = self._codes.get(text)
        if code is None:
            self._texts.append(text)
            self._seqs.extend([seq])
            code = self._codes[text] = self.size = len(self._texts)
        return code

    def codes(self, texts: Sequence[str | None], seqs: Sequence[int]) -> list[int]:
        """Return the code of each event's string, in order of seq; `NO_NAME` for None."""
        if texts and texts.count(texts[0]) == len(texts):
            code = NO_NAME if texts[0] is None else self.code(texts[0], seqs[0])
            return [code] * len(texts)
        get = self._codes.get
        return [
            NO_NAME if text is None else get(text) or self.code(text, seq)
            for text, seq in zip(texts, seqs, strict=True)
        ]

    def find(self, text: str) -> int | None:
        """Return the code of a string, or None."""
        return self._codes.get(text)

    def text(self, code: int) -> str | None:
        """Return the string of a code, or None for code 0."""
        return self._texts[code - 1] if code else None

    def texts(self) -> list[str]:
        """Return all strings; the string at index i has code i + 1."""
        return list(self._texts)

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the names from index ``start`` on."""
        return "".join([f"{text}\0" for text in self._texts[start:]]).encode()

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to."""
        return [self, self._seqs]

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the names that first occur in ``after + 1`` … ``through``."""
        seqs = self._seqs.buffer[: self._seqs.size]
        start = int(seqs.searchsorted(after, "right"))
        end = int(seqs.searchsorted(through, "right"))
        sizes, utf8 = np.empty(0, np.uint32), np.empty(0, np.uint8)
        if start < end:
            sizes, utf8 = joined([*map(str.encode, self._texts[start:end])])
        prefix = self._prefix
        return {
            f"{prefix}.seqs": seqs[start:end],
            f"{prefix}.sizes": sizes,
            f"{prefix}.utf8": utf8,
        }

    def share(self, names: "Names", through: int) -> None:
        """Become the names of another dictionary up to event ``through``."""
        count = rows_up_to(names._seqs.view(), through)
        self._texts = names._texts[:count]
        self.size = count
        self._codes = {text: code for code, text in enumerate(self._texts, start=1)}
        self._seqs.share(names._seqs, count)

    def load(self, loaded: "LoadedNames") -> None:
        """Append names that `read` checked."""
        start = len(self._texts) + 1
        self._texts += loaded.texts
        self.size = len(self._texts)
        self._codes.update(zip(loaded.texts, range(start, start + len(loaded.texts)), strict=True))
        self._seqs.extend(loaded.seqs)

    def read(self, columns: Columns, after: int, through: int) -> "LoadedNames":
        """Return the names of a chunk, checked, without a change of state. Raises `Corrupt`."""
        prefix = self._prefix
        seqs = columns.i64(f"{prefix}.seqs")
        texts = split(columns.u32(f"{prefix}.sizes"), columns.u8(f"{prefix}.utf8"), prefix)
        check_seqs(seqs, after, through, f"{prefix}.seqs", strict=False)
        require(len(seqs) == len(texts), f"{prefix} has {len(seqs)} seqs, {len(texts)} names")
        is_fresh = len(set(texts)) == len(texts) and self._codes.keys().isdisjoint(texts)
        require(is_fresh, f"{prefix} repeats a name")
        return LoadedNames(texts, seqs)


class LoadedNames(NamedTuple):
    """Names of a chunk, checked."""

    texts: list[str]
    seqs: I64


def check_seqs(seqs: I64, after: int, through: int, what: str, *, strict: bool = True) -> None:
    """Raise `Corrupt` unless seqs ascend within (after, through]."""
    if not len(seqs):
        return
    steps = np.diff(seqs)
    ascending = bool((steps > 0).all() if strict else (steps >= 0).all())
    inside = int(seqs[0]) > after and int(seqs[-1]) <= through
    require(ascending and inside, f"{what} does not ascend within its range")
