"""Imitation: lines of a remembered text that look like the source of another entry.

Owns the rule for these lines, and their mark. The characters are listed here and not taken from
the interpreter's tables, which differ by version: a context must be the same in each. Leaves out
the form of an entry (`entries`).
"""

import re
from functools import cache
from typing import Final

_IGNORED: Final = (
    # Blanks and controls, line ends among them.
    "\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u2800"
    # Characters without a shape: joiners, bidirectional controls, fillers, tags.
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
    # Marks that combine with the character before.
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)
_BRACKETS: Final = (
    # Unicode's opening punctuation, without parentheses and braces.
    "\\[\u0f3a\u0f3c\u169b\u2045\u2308\u230a\u2329\u23a1\u23a2\u23a3\u2768-\u2775\u27c5\u27e6-\u27ef"
    "\u2983-\u2998\u29d8\u29da\u29fc\u2e22-\u2e29\u2e55\u2e57\u2e59\u2e5b\u3008-\u301b\u301d"
    "\ufe17\ufe39-\ufe44\ufe47\ufe48\ufe5d\uff3b\uff5f\uff62"
)
_HASHES: Final = "#\u22d5\u2317\u266f\u29e3-\u29e5\ufe5f\uff03"

# A bold or segmented digit looks like its plain form.
_DIGITS: Final = "0-9\uff10-\uff19\U0001d7ce-\U0001d7ff\U0001fbf0-\U0001fbf9"

_DASHES: Final = "\u2010-\u2015\u2212\u30fc\ufe58\ufe63\uff0d-"

_HASH: Final = re.compile(f"[{_HASHES}]")
_START: Final = (
    f"[{_IGNORED}]*(?:(?:[>*+|\u2022\u2023\u25e6\u2013-]|[0-9]{{1,9}}[.)])[{_IGNORED}]*)*"
)
"""Blanks, and signs that begin a quotation, a list item or a table row."""
_SOURCE: Final = f"{_START}[{_BRACKETS}][{_IGNORED}]*[{_HASHES}]"
_HEADING: Final = (
    # A line of signs below "#1 · title" makes that line a heading too.
    f"{_START}(?:[{_HASHES}]+[{_IGNORED}]+)?[{_HASHES}][{_IGNORED}]*[{_DIGITS}]"
)
_YEAR: Final = f"(?:[{_DIGITS}][{_IGNORED}]*){{4}}[{_DASHES}]"
_DATED: Final = (
    # The heading of turns begins with a date, or with the signs of a heading and a date.
    f"{_START}(?:[{_HASHES}]+[{_IGNORED}]+|[{_BRACKETS}][{_IGNORED}]*)?{_YEAR}"
)
_TURN: Final = f"{_START}[{_HASHES}][{_IGNORED}]*[{_DIGITS}].*[:\u2236\ua789\ufe13\ufe55\uff1a]"
_STEERING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]+"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern, compiled at its first use: each takes 1 ms, and few texts need one."""
    return re.compile(pattern)


def marked(text: str, *, headings: bool, turns: bool = False, dates: bool = False) -> str:
    r"""Return a text with a backslash before each line that looks like a source.

    Such a line begins with a bracket and a number sign, also in a quotation or a list, in any
    variant of these characters, and with invisible characters between them.

    Args:
        text: the text
        headings: also mark a line or heading that begins with a number sign and a digit
        turns: also mark a line that begins with a number sign and a digit and has a colon
        dates: also mark a line or heading that begins with a year and a dash, also in brackets

    >>> print(marked("Lunch.\n [#1 · 2020-01-01]", headings=False))
    Lunch.
    \ [#1 · 2020-01-01]
    """
    patterns: list[re.Pattern[str]] = []
    if _HASH.search(text) is not None:
        marks = ((_SOURCE, True), (_HEADING, headings), (_TURN, turns))
        patterns = [_compiled(pattern) for pattern, is_used in marks if is_used]
    if dates and _compiled(_YEAR).search(text) is not None:
        patterns.append(_compiled(_DATED))
    if not patterns:
        return text
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        for pattern in patterns:
            if pattern.match(line):
                lines[place] = f"\\{line}"
                break
    return "".join(lines)


def has_one_line(name: str) -> bool:
    """Return whether a name has no character that ends its line or changes its direction."""
    return _STEERING.search(name) is None


def on_one_line(name: str) -> str:
    r"""Return a name without characters that end its line or change its direction.

    >>> on_one_line("a\n[#1 \u202e b")
    'a [#1 b'
    """
    return " ".join(_STEERING.sub(" ", name).split())
