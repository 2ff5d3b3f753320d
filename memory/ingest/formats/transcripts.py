"""JSON and JSON Lines: chat transcripts turn by turn; other data as text.

Owns the decoding, and the documents of transcripts. Leaves out the shapes of turns (`turns`).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, cast

import msgspec

from cerata.engine.arguments import located
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.retrieval.chunking import PARTS_MAX, too_many_parts

from .document import Document, Section, decode_text, some_text, too_large
from .turns import Json, Turn, is_conversation_line, is_turn, read_turn, read_turns, session_of

_LINES_TRIED: Final = 20
"""Lines searched for a turn: a session log may start with other lines."""

_VALUES_SIZE_MAX: Final = 128 << 20
"""Most bytes of decoded values, without their texts. `PARTS_MAX` turns take less."""

_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)

_GAP: Final = "\n\n"


def extract_json(data: bytes, where: str) -> Document:
    """Return a transcript turn by turn, or other JSON as text, valid or not.

    Raises:
        InvalidInput: see `decode_text` and `read_turns`.
    """
    text = decode_text(data, where)
    with located(where):
        turns = read_turns(_value(text), where)
    if not turns:
        return Document(text, (Section(0, len(text)),), "application/json")
    return transcript(turns, "application/json", where)


def extract_json_lines(data: bytes, where: str) -> Document:
    """Return a transcript with a turn or a conversation on each line, or other JSON Lines as text.

    Raises:
        InvalidInput: see `decode_text`; or a line of a transcript is not JSON, or has a bad time.
    """
    text = decode_text(data, where)
    tried = [_value(line) for _, line in islice(_lines(text), _LINES_TRIED)]
    if any(map(is_turn, tried)) or any(map(is_conversation_line, tried)):
        turns: list[Turn] = []
        with located(where):
            for turn in _turns_of_lines(_lines(text), where):
                if len(turns) == PARTS_MAX:
                    raise too_many_parts()
                turns.append(turn)
        if turns:
            return transcript(turns, "application/jsonl", where)
    return Document(text, (Section(0, len(text)),), "application/jsonl")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers from 1."""
    start, number = 0, 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number += 1
        line = text[start:end]
        if line and not line.isspace():
            yield number, line
        start = end + 1


def _value(text: str) -> Json:
    """Return decoded JSON; None for other text, too deep nesting, or too many values."""
    if _is_dense(text):
        return None
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_dense(text: str) -> bool:
    """Return whether the values of JSON would take more memory than the limit."""
    return _size_of(text) > _VALUES_SIZE_MAX and (
        # Count only the signs outside of strings.
        _size_of(_STRING.sub('""', text)) > _VALUES_SIZE_MAX
    )


def _size_of(text: str) -> int:
    """Return an upper bound of the bytes of decoded JSON, by the signs between its values."""
    count = text.count
    return 250 * count("{") + 100 * count("[") + 110 * count(":") + 65 * count(",")


def _turns_of_lines(lines: Iterable[tuple[int, str]], where: str) -> Iterator[Turn]:
    """Yield the turns; skip other lines, which session logs have."""
    session: str | None = None
    for at, line in lines:
        place = f"{where}, line {at:,}"
        if _is_dense(line):
            raise InvalidInput(
                "The line has too many values to be a turn",
                where=place,
                remedy="Leave the line out.",
            )
        try:
            value = cast("Json", msgspec.json.decode(line))
            if is_conversation_line(value):
                yield from read_turns(value, place) or ()
            elif isinstance(value, dict):
                session = session_of(value) or session
                turn = read_turn(value, session, place)
                if turn is not None:
                    yield turn
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidInput(
                f"The line is not JSON of a turn: {error}",
                where=place,
                remedy="Remember the file again later, if a program still writes to it.",
            ) from error


def transcript(turns: list[Turn], media_type: str, where: str) -> Document:
    """Return the document of turns: a section for each, with blank lines between their texts."""
    sections: list[Section] = []
    start = 0
    for turn in turns:
        end = start + len(turn.text) + len(_GAP)
        about: dict[str, JsonValue] = {} if turn.session is None else {"session": turn.session}
        headings = (turn.title,) if turn.title else ()
        sections.append(Section(start, end, headings, turn.role, turn.created, turn.kind, about))
        start = end
    text = "".join(turn.text + _GAP for turn in turns)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"A turn is not valid Unicode: {error.reason}",
            where=where,
            remedy="Write the transcript again in UTF-8.",
        ) from error
    if size > STRING_SIZE_MAX:
        raise too_large(where)
    titles = {turn.title for turn in turns}
    title = titles.pop() if len(titles) == 1 else None
    checked = some_text(text, where)
    return Document(checked, tuple(sections), media_type, title, is_extracted=True)
