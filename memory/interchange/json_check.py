"""Checks of a line of JSON that the decoder of the fast path does not make.

Owns the nesting of a line, and the slow decoding of a single line, which finds duplicate names,
NaN and Infinity, and bytes that are not UTF-8. Leaves out the types of lines (`event_lines`).
"""

import json
import re
from collections import Counter
from typing import Final, NoReturn

from cerata.engine.errors import InvalidInput
from cerata.engine.limits import NESTING_MAX

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[\]{}]")


class IncompleteLine(ValueError):
    """The line is no JSON; at the end of a file it may have been cut off."""


def nests_deeply(line: bytes) -> bool:
    """Return whether a line nests deeper than the limit.

    Cost: two scans, unless the line has more brackets than levels are allowed.
    """
    if line.count(b"[") + line.count(b"{") <= NESTING_MAX:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub(b"", line)):
        depth += 1 if bracket in b"[{" else -1
        if depth > NESTING_MAX:
            return True
    return False


def check_json(line: bytes) -> None:
    """Refuse a line that a strict reader of JSON would not take.

    Raises:
        IncompleteLine: it is not JSON.
        InvalidInput: it is JSON with duplicate names, or with a number that JSON lacks.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise IncompleteLine(
            f"The line is not valid UTF-8: {error.reason} at byte {error.start}"
        ) from error
    try:
        json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise IncompleteLine(f"The line is not JSON: {error.msg} at {error.pos}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"The line cannot be read: {error}", remedy="Pass an unchanged file from export."
        ) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = dict(pairs)
    if len(names) < len(pairs):
        double = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidInput(
            f"An object of the line has the name {double!r:.60} twice",
            remedy="Pass an unchanged file from export.",
        )
    return names


def _no_number(text: str) -> NoReturn:
    raise InvalidInput(
        f"The line has the number {text}, which JSON lacks",
        remedy="Pass an unchanged file from export.",
    )
