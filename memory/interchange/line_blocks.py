"""Lines of an untrusted file: whole lines at a time, checked and decoded.

Owns the limits of a line. A block of lines is decoded at once, and encoded again: the result equals
the block only if no object has a name twice, and no name is unknown, so most lines need no slower
check. A block that differs is checked line by line. Leaves out the meaning of lines
(`event_batches`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.limits import NESTING_MAX

from .event_lines import LINE_SIZE_MAX, AnyLine

READ_SIZE: Final = 1 << 20
"""Bytes of a read: the lines of a read are decoded together."""

_REMEDY: Final = "Pass an unchanged file from 'cerata file export --events'."
_ENCODER: Final = msgspec.json.Encoder()
_LINES: Final = msgspec.json.Decoder(AnyLine)
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)


class Numbered(NamedTuple):
    """Decoded lines that follow each other; ``number`` is the number of the first, from 1."""

    number: int
    lines: list[AnyLine]


def refusal(number: int, what: str, remedy: str = _REMEDY) -> InvalidInput:
    """Return the error for a line."""
    return InvalidInput(what, where=f"line {number:,}", remedy=remedy)


class LineBlocks:
    """The lines of a file, to be iterated once.

    - ``is_cut`` is True after the last line if that line was incomplete; it is left out.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.is_cut = False

    def __iter__(self) -> Iterator[Numbered]:
        """Yield the decoded lines.

        Raises:
            InvalidInput: a line is over a limit, or not a line of the format.
        """
        number = 1
        for block, is_ended in self._blocks(number):
            lines = block.split(b"\n")
            if not lines[-1]:
                lines.pop()
            typed = _decoded(block, lines)
            if typed is not None:
                yield Numbered(number, typed)
            else:
                yield from self._one_by_one(number, lines, is_ended=is_ended)
            number += len(lines)

    def _one_by_one(self, number: int, lines: list[bytes], *, is_ended: bool) -> Iterator[Numbered]:
        for place, line in enumerate(lines, start=number):
            try:
                yield Numbered(place, _checked(line, place))
            except IncompleteLine as error:
                if is_ended or place < number + len(lines) - 1:
                    raise refusal(place, str(error)) from error
                self.is_cut = True

    def _blocks(self, number: int) -> Iterator[tuple[bytes, bool]]:
        """Yield whole lines, and True; last a line without a line end, if any, and False."""
        rest: list[bytes] = []
        size = 0
        while data := self._next(number):
            end = data.rfind(b"\n") + 1
            if end:
                block = b"".join([*rest, data[:end]])
                number += block.count(b"\n")
                yield block, True
                rest, size = [data[end:]], len(data) - end
            else:
                rest.append(data)
                size += len(data)
            if size > LINE_SIZE_MAX:
                raise _too_long(number)
        if size:
            yield b"".join(rest), False

    def _next(self, number: int) -> bytes:
        try:
            return self._read(READ_SIZE)
        except InvalidInput as error:
            # The file cannot be decompressed.
            raise refusal(number, error.what) from error


def _too_long(number: int) -> InvalidInput:
    return refusal(number, f"The line is over the limit of {LINE_SIZE_MAX:,} bytes")


def _decoded(block: bytes, lines: list[bytes]) -> list[AnyLine] | None:
    """Return the lines of a block; None if they must be looked at one by one."""
    if len(block) > LINE_SIZE_MAX and max(map(len, lines)) > LINE_SIZE_MAX:
        return None
    if max(line.count(b"[") + line.count(b"{") for line in lines) > NESTING_MAX:
        return None
    with suppress(*_FAULTS):
        if not block.isascii():
            block.decode()
        typed: list[AnyLine] = _LINES.decode_lines(block)
        if _ENCODER.encode_lines(typed).rstrip() == block.rstrip():
            return typed
    return None


def _checked(line: bytes, number: int) -> list[AnyLine]:
    """Return a line in a list; nothing for a blank line.

    Raises:
        IncompleteLine: the line is not JSON.
        InvalidInput: the line is refused for another reason.
    """
    if len(line) > LINE_SIZE_MAX:
        raise _too_long(number)
    if not line.strip():
        return []
    if nests_deeply(line):
        raise refusal(number, f"The line nests deeper than {NESTING_MAX} levels")
    try:
        check_json(line)
        return [_LINES.decode(line)]
    except InvalidInput as error:
        raise refusal(number, error.what) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(number, f"The line is not one of an export: {error}") from error


# --- Checks of a line of JSON that the decoder of the fast path does not make ---------------------


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
