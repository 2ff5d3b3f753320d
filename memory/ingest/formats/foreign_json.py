"""Foreign JSON: decoded as far as it is whole.

Owns the decoding of JSON that other programs wrote, in a single place. Strict JSON is decoded by
msgspec. Some programs leave NaN, half surrogate pairs, raw control characters and endless numbers
in JSON, which Python's decoder takes. Any other text, such as a file that was cut off, is read
token by token: whole values stay, each stretch between them is a flaw with its place. Leaves out
the meaning of the values.
"""

import json
import re
from typing import Final, TypeAlias, cast

import msgspec

from .document import Flaws

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""The types to which JSON is decoded."""

VALUES_SIZE_MAX: Final = 128 << 20
"""Most bytes of decoded values, without their texts. `PARTS_MAX` turns take less."""

_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)

_DIGITS_MAX: Final = 4_000
"""Most digits of a whole number: Python converts no more, since this takes quadratic time."""

_DEPTH_MAX: Final = 100
"""Most levels of a text that is read token by token; deeper values are skipped."""

# A string ends at its quote or its line: after a lost quote the rest of the file is whole.
_TOKEN: Final = re.compile(
    r'(?P<string>"(?:[^"\\\r\n]++|\\.)*+(?P<end>"?))|(?P<sign>[\[\]{},:])|[^\s\[\]{},:"]++',
    re.DOTALL,
)

_LITERAL: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|-?Infinity|NaN"
)


def decode_json(text: str) -> Json:
    """Return the value of JSON, strict or as Python and JavaScript write it.

    Raises:
        ValueError: the text is not JSON, has too many values, or is nested too deeply.
    """
    if is_dense(text):
        raise ValueError("too many values")
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    try:
        return cast("Json", _LOOSE.decode(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


_LOOSE: Final = json.JSONDecoder(strict=False, parse_int=_whole_number)
"""Made once: a log may have a broken line in every four bytes."""


def is_dense(text: str) -> bool:
    """Return whether the values of JSON would take more memory than the limit."""
    return _size_of(text) > VALUES_SIZE_MAX and (
        # Count only the signs outside of strings.
        _size_of(_STRING.sub('""', text)) > VALUES_SIZE_MAX
    )


def _size_of(text: str) -> int:
    """Return an upper bound of the bytes of decoded JSON, by the signs between its values."""
    count = text.count
    return 250 * count("{") + 100 * count("[") + 110 * count(":") + 65 * count(",")


def salvage_json(text: str, flaws: Flaws, where: str = "") -> Json:
    """Return the whole values of a text that is not JSON; several values become a list.

    Each stretch that is not JSON is a skipped part. Cost: O(length of the text), no recursion.

    Args:
        text: The text.
        flaws: Takes the stretches.
        where: The place of the text if it is a line of a file; default none.
    """
    salvage = _Salvage(text, flaws, where)
    for token in _TOKEN.finditer(text):
        salvage.take(token)
    return salvage.finish()


class _Level:
    """An open list or object; ``is_full`` from a value to the comma after it."""

    __slots__ = ("container", "is_full", "name")

    def __init__(self, container: list[Json] | dict[str, Json]) -> None:
        self.container = container
        self.name: str | None = None
        self.is_full = False


class _Salvage:
    def __init__(self, text: str, flaws: Flaws, where: str) -> None:
        self._text = text
        self._flaws = flaws
        self._where = where
        self._values: list[Json] = []
        self._open: list[_Level] = []
        self._open_counts: dict[type, int] = {list: 0, dict: 0}
        self._levels_skipped = 0
        self._at = 0
        self._line = 1
        self._line_start = 0
        self._counted_to = 0
        self._is_bad = False
        """True inside of a stretch that is not JSON, which is a single flaw."""

    def take(self, token: "re.Match[str]") -> None:
        """Take the next token; skip a token that does not fit."""
        self._at = token.start()
        sign = token["sign"]
        if sign is None:
            self._take_value(token)
        elif sign in "[{":
            self._enter([] if sign == "[" else {})
        elif sign in "]}":
            self._leave(list if sign == "]" else dict)
        elif not self._levels_skipped and self._open:
            self._separate(sign, self._open[-1])

    def finish(self) -> Json:
        """Return the values; containers that are still open end with the text."""
        self._at = len(self._text)
        if self._open:
            self._report()
        while self._open:
            self._close()
        return self._values[0] if len(self._values) == 1 else self._values

    def _take_value(self, token: "re.Match[str]") -> None:
        text = token[0]
        is_string = token["string"] is not None
        if is_string and not token["end"]:
            self._report()
            return
        if self._levels_skipped:
            return
        level = self._open[-1] if self._open else None
        if level is not None and level.is_full:
            self._report()  # a quote inside of a string ended the string
        elif level is not None and level.name is None and isinstance(level.container, dict):
            # JavaScript writes names without quotes.
            level.name = self._text_of(text) if is_string else text
        elif is_string:
            self._put(self._text_of(text))
        elif _LITERAL.fullmatch(text):
            self._put(decode_json(text))
        else:
            self._report()

    def _text_of(self, text: str) -> str:
        try:
            return str(decode_json(text))
        except ValueError:  # a wrong escape, such as that of a Windows path
            self._report()
            return text[1:-1]

    def _separate(self, sign: str, level: _Level) -> None:
        if sign == ":":
            if level.name is None:
                self._report()
        else:
            self._end_value(level)
            level.is_full = False

    def _end_value(self, level: _Level) -> None:
        if level.name is not None:
            self._report()  # a name without a value
        level.name = None

    def _put(self, value: Json) -> None:
        self._is_bad = False
        if not self._open:
            self._values.append(value)
            return
        level = self._open[-1]
        level.is_full = True
        if isinstance(level.container, list):
            level.container.append(value)
        elif level.name is not None:
            level.container[level.name] = value
            level.name = None
        else:
            self._report()

    def _enter(self, container: list[Json] | dict[str, Json]) -> None:
        if self._levels_skipped or len(self._open) == _DEPTH_MAX:
            if not self._levels_skipped:
                self._report()
            self._levels_skipped += 1
            return
        if self._open:
            level = self._open[-1]
            is_object = isinstance(level.container, dict)
            if level.is_full or (is_object and level.name is None):
                # The comma, or the end of the object before, is missing.
                self._report()
                level.is_full = False
                above = self._open[-2].container if len(self._open) > 1 else None
                if is_object and isinstance(above, list):
                    self._close()
                    self._open[-1].is_full = False
        self._open.append(_Level(container))
        self._open_counts[type(container)] += 1

    def _leave(self, kind: type[list[Json]] | type[dict[str, Json]]) -> None:
        if self._levels_skipped:
            self._levels_skipped -= 1
            return
        if not self._open_counts[kind]:
            self._report()
            return
        self._end_value(self._open[-1])
        while not isinstance(self._open[-1].container, kind):
            self._report()
            self._close()
        self._close()

    def _close(self) -> None:
        container = self._open.pop().container
        self._open_counts[type(container)] -= 1
        self._put(container)

    def _report(self) -> None:
        if self._is_bad:
            return
        self._is_bad = True
        newlines = self._text.count("\n", self._counted_to, self._at)
        if newlines:
            self._line += newlines
            self._line_start = self._text.rindex("\n", self._counted_to, self._at) + 1
        self._counted_to = self._at
        column = self._at - self._line_start + 1
        line = self._where or f"line {self._line:,}"
        self._flaws.skip("not JSON", f"{line}, character {column:,}")
