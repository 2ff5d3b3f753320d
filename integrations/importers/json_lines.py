"""JSON Lines: an object with a text on each line.

Owns the lines of a file, and the record of a line. A record without an id is named by the hash of
its line's values, so equal lines are one frame.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.open import path_name
from cerata.memory.interchange.line_blocks import nests_deeply
from cerata.memory.interchange.line_files import Source as Bytes
from cerata.memory.interchange.line_files import opened_source

from .records import Entry, FrameRecord, Problem, time_of, version_of

KIND: Final = "jsonl"
_READ_SIZE: Final = 1 << 20
LINE_SIZE_MAX: Final = 32 << 20
"""Bytes of a line: a text of the largest size, escaped."""

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF_8_MARK: Final = b"\xef\xbb\xbf"


class TextLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of a line."""

    text: str
    id: str | int | None = None
    created: str | None = None
    kind: str = "text"
    role: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    uri: str | None = None


_Line = TypeVar("_Line")

_DECODER: Final = msgspec.json.Decoder(TextLine)


@contextmanager
def opened(source: str | os.PathLike[str] | IO[bytes]) -> Generator["TextLines"]:
    """Open a file of lines."""
    with opened_lines(source) as lines:
        yield TextLines(lines)


class Lines:
    """The lines of a file of JSON objects, with their places."""

    def __init__(self, file: Bytes, name: str, total: int) -> None:
        self._file = file
        self._name = name
        self.total = total

    @property
    def done(self) -> int:
        """Bytes that were read."""
        return self._file.taken

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the place of each line, and the line; of one over the limit only its beginning.

        Raises:
            InvalidInput: the file is empty or blank, or in another encoding.
        """
        is_empty = True
        for number, line in enumerate(self._lines(), start=1):
            if number == 1:
                line = self._checked(line)
            if line.strip():
                is_empty = False
                yield f"{self._name}, line {number:,}", line
        if is_empty:
            raise InvalidInput(
                "The file is empty",
                where=self._name,
                remedy="Pass a file with a record in each line.",
            )

    def _checked(self, line: bytes) -> bytes:
        if line.startswith(_UTF_16):
            raise InvalidInput(
                "The file is in UTF-16",
                where=self._name,
                remedy="Convert it with: iconv -f UTF-16 -t UTF-8",
            )
        if line.lstrip().startswith(b"["):
            raise InvalidInput(
                "The file is an array, not a line for each object",
                where=self._name,
                remedy="Convert it with: jq -c '.[]'",
            )
        if b'"format":"cerata-' in line.replace(b" ", b""):
            raise InvalidInput(
                "The file is an export of Cerata",
                where=self._name,
                remedy="Run: cerata file import FILE, without --from.",
            )
        return line.removeprefix(_UTF_8_MARK)

    def _lines(self) -> Iterator[bytes]:
        rest = bytearray()
        while data := self._file.read(_READ_SIZE):
            first, *lines = data.split(b"\n")
            # More than the limit is not kept.
            rest += first[: LINE_SIZE_MAX + 1 - len(rest)]
            if lines:
                yield bytes(rest)
                yield from lines[:-1]
                rest = bytearray(lines[-1])
        if rest:
            yield bytes(rest)


@contextmanager
def opened_lines(source: str | os.PathLike[str] | IO[bytes]) -> Generator[Lines]:
    """Open a file of lines of JSON, decompressed if its name ends in ``.zst``.

    Raises:
        NotFound: the file does not exist.
    """
    is_path = isinstance(source, str | os.PathLike)
    name = path_name(source) if isinstance(source, str | os.PathLike) else "input"
    with opened_source(source) as file:
        yield Lines(file, name, Path(name).stat().st_size if is_path else 0)


def decoded(decoder: "msgspec.json.Decoder[_Line]", line: bytes, place: str) -> _Line:
    """Return the value of a line.

    Raises:
        InvalidInput: the line is not JSON, too long, or has other fields.
    """
    if len(line) > LINE_SIZE_MAX:
        raise InvalidInput(
            f"The line is over the limit of {LINE_SIZE_MAX:,} bytes",
            where=place,
            remedy="Split its text.",
        )
    try:
        if nests_deeply(line):
            raise InvalidInput(
                "The line nests too deeply", where=place, remedy="Flatten its metadata."
            )
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"The line has another form: {error}", where=place, remedy="See docs/importers.md."
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"The line is not JSON, or was cut off: {error}",
            where=place,
            remedy="Write one object a line, in UTF-8.",
        ) from error


class TextLines:
    """The lines of a file as records."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.total = lines.total
        self.done = 0

    def __iter__(self) -> Iterator[Entry]:
        for place, line in self._lines:
            self.done = self._lines.done
            try:
                yield self._record(place, decoded(_DECODER, line, place))
            except InvalidInput as error:
                yield Problem.of(error, place)

    def _record(self, place: str, line: TextLine) -> Entry:
        created, doubts = _created_of(line)
        version = version_of(msgspec.to_builtins(line))
        name = version if line.id is None else str(line.id)
        fields = {
            "kind": line.kind,
            "role": line.role,
            "tags": line.tags,
            "created": created,
        }
        return FrameRecord(
            place,
            KIND,
            name,
            version,
            line.text,
            line.uri,
            fields,
            line.metadata,
            doubts=doubts,
        )


def _created_of(line: TextLine) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the created time of a line, and the fault of one that is left out."""
    try:
        return (None if line.created is None else time_of(line.created)), ()
    except ValueError:
        return None, (f"created is no time: {line.created!r:.60}",)
