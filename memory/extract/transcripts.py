"""JSON and JSON Lines: chat transcripts turn by turn; all other data as its text."""

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX

from .document import Document, Section, decode_text, some_text, too_large
from .turns import Json, Turn, is_conversation_line, is_turn, read_turn, read_turns, session_of

_LINES_TRIED: Final = 20
"""A session log may start with some lines that are not turns."""

_GAP: Final = "\n\n"


def extract_json(data: bytes, where: str) -> Document:
    """Return a transcript turn by turn, or other JSON as it is, valid or not.

    Raises:
        InvalidInput: see `decode_text`; a turn's time is none.
    """
    text = decode_text(data, where)
    try:
        value = cast("Json", msgspec.json.decode(text))
        turns = read_turns(value, where)
    except (msgspec.DecodeError, RecursionError):
        turns = None
    if not turns:
        return Document(text, (Section(0, len(text)),), "application/json")
    return transcript(turns, "application/json", where)


def extract_json_lines(data: bytes, where: str) -> Document:
    """Return a transcript of one turn or one conversation a line, or other JSON Lines as it is.

    Raises:
        InvalidInput: see `decode_text`; of a transcript, a line that is no JSON, or a turn's time.
    """
    text = decode_text(data, where)
    lines = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    tried = [_value(line) for _, line in lines[:_LINES_TRIED]]
    if any(map(is_turn, tried)) or any(map(is_conversation_line, tried)):
        turns = list(_turns_of_lines(lines, where))
        if turns:
            return transcript(turns, "application/jsonl", where)
    return Document(text, (Section(0, len(text)),), "application/jsonl")


def _value(line: str) -> Json:
    try:
        return cast("Json", msgspec.json.decode(line))
    except (msgspec.DecodeError, RecursionError):
        return None


def _turns_of_lines(lines: list[tuple[int, str]], where: str) -> Iterator[Turn]:
    """Yield the turns; lines that say something else, as session logs do, are passed over."""
    session: str | None = None
    for at, line in lines:
        place = f"{where}, line {at:,}"
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
                remedy="If the file is still being written, remember it again later.",
            ) from error


def transcript(turns: list[Turn], media_type: str, where: str) -> Document:
    """Return the document of turns: a section each, their texts apart by a blank line."""
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
        raise InvalidInput(f"A turn is not valid Unicode: {error.reason}", where=where) from error
    if size > STRING_SIZE_MAX:
        raise too_large(where)
    titles = {turn.title for turn in turns}
    title = titles.pop() if len(titles) == 1 else None
    shown = some_text(text, where)
    return Document(shown, tuple(sections), media_type, title, is_extracted=True)
