"""Documents: the result of every extractor, and the decoding of bytes as text."""

import codecs
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from cerata.engine.arguments import is_unicode
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.engine.plain_value import PlainValue
from cerata.engine.words import counted

# --- Flaws: the parts of a file that were skipped, or kept with a doubt ---------------------------
#
# A reader returns the whole units and reports the rest here, so an odd unit costs itself alone, and
# nothing is dropped without being counted.


FlawOutcome: TypeAlias = Literal["skipped", "doubtful"]

PLACES_MAX: Final = 100
"""Most places that a flaw names; its count goes on. A log may have a bad part on each line."""

NO_TEXT: Final = "a turn without text"
NO_TURNS: Final = "a conversation without turns"
OTHER_BRANCH: Final = "on a branch of the conversation that was not kept"
OTHER_RECORD: Final = "a record of another type, no turn"
USUAL: Final = frozenset((NO_TEXT, NO_TURNS, OTHER_BRANCH, OTHER_RECORD))
"""The faults that are none of the file: its program writes such parts. They count as skipped."""

_PLACES_SHOWN: Final = 5
"""Places in the text of a flaw."""


@dataclass(frozen=True, slots=True)
class Flaw(PlainValue):
    """Parts of a file with the same fault.

    - ``outcome`` is "skipped" if the parts are not remembered, "doubtful" if they are, without the
      piece that ``why`` names.
    - ``count`` is the number of parts; ``places`` names the first hundred.
    """

    outcome: FlawOutcome
    why: str
    count: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        shown = self.places[:_PLACES_SHOWN]
        more = f", and {self.count - len(shown):,} more" if self.count > len(shown) else ""
        parts = counted(self.count, "part")
        between = "; " if any("," in place for place in shown) else ", "
        return f"{parts} {self.outcome}: {self.why} ({between.join(shown)}{more})"

    @property
    def is_usual(self) -> bool:
        """True if whole files of the format have such parts, as an export has empty turns."""
        return self.why in USUAL


class Flaws:
    """Collects the flaws of a file; ``why`` is one of few texts, so the memory is bounded."""

    def __init__(self) -> None:
        self._counts: dict[tuple[FlawOutcome, str], int] = {}
        self._places: dict[tuple[FlawOutcome, str], list[str]] = {}

    def skip(self, why: str, place: str) -> None:
        """Report a part that is not remembered."""
        self._add("skipped", why, place)

    def doubt(self, why: str, place: str) -> None:
        """Report a part that is remembered without a piece of it."""
        self._add("doubtful", why, place)

    def _add(self, outcome: FlawOutcome, why: str, place: str) -> None:
        key = outcome, why
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._places.setdefault(key, [])
        if len(places) < PLACES_MAX:
            places.append(place)

    def found(self) -> tuple[Flaw, ...]:
        """Return the flaws in the order of their first parts."""
        return tuple(
            Flaw(outcome, why, count, tuple(self._places[outcome, why]))
            for (outcome, why), count in self._counts.items()
        )


def parts_with(flaws: Iterable[Flaw], outcome: FlawOutcome) -> int:
    """Return the count of parts with an outcome."""
    return sum(flaw.count for flaw in flaws if flaw.outcome == outcome)


# --- Documents: the result of every extractor, and the decoding of bytes as text ------------------


NAME_SIZE_MAX: Final = 200
"""Most characters of a heading in a title, since each part of a document stores its headings."""


@dataclass(frozen=True, slots=True)
class Section:
    """Characters [start, end) of a document that belong together, under their headings.

    - A section of a transcript is a turn: its ``role``, ``created`` (microseconds since 1970 UTC),
      ``kind``, and in ``metadata`` its session.
    - Without ``kind`` the section has the document's kind.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    role: str | None = None
    created: int | None = None
    kind: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its sections, which cover the text without gaps.

    The text of plain text, Markdown, source code and data equals the file's, character by
    character; the text of HTML, PDF and transcripts is the readable text.
    """

    text: str
    sections: tuple[Section, ...]
    media_type: str
    title: str | None = None
    is_extracted: bool = False
    """True if the text differs from the decoded bytes of the file."""
    flaws: tuple[Flaw, ...] = ()
    """The parts of the file that the text lacks, or has with a doubt."""
    is_bulk: bool = False
    """True for a log or a table, whose lines are alike: few of its passages get vectors."""


_BLANK: Final = re.compile(r"[\s\ufeff]*")
_START_SIZE: Final = 4_096


def is_blank(data: bytes) -> bool:
    """Return whether a file has no bytes, or only a byte order mark and white space."""
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if utf_16 else "utf-8"
    if not _BLANK.fullmatch(data[:_START_SIZE].decode(encoding, errors="ignore")):
        return False
    try:
        return _BLANK.fullmatch(data.decode(encoding)) is not None
    except UnicodeDecodeError:
        return False


LINE_END: Final = re.compile(r"\r\n|\r|\n")

_BROKEN: Final = re.compile("[\0\udc80-\udcff]+")
_LINES_PER_BROKEN_LINE: Final = 3
"""Fewest lines of a damaged text for each line with bytes that are no text. In another encoding,
or a file that is no text, most lines have such bytes."""

_BROKEN_LINE: Final = "bytes that are not text became U+FFFD"


def decode_text(data: bytes, where: str) -> tuple[str, tuple[Flaw, ...]]:
    """Return the text of a file or of the input, without a byte order mark, and its flaws.

    In a text with few broken lines, bytes that are not UTF-8 and NULs become U+FFFD.

    Raises:
        InvalidInput: the data is over the limit, not UTF-8, has NULs, or is empty.
    """
    if len(data) > STRING_SIZE_MAX:
        raise too_large(where)
    text = broken_text(data)
    flaws = Flaws()
    if "\0" in text or not is_unicode(text):
        lines = LINE_END.split(text)
        broken = [at for at, line in enumerate(lines, 1) if _BROKEN.search(line) is not None]
        if len(broken) * _LINES_PER_BROKEN_LINE > len(lines):
            _check_text(data, where)
        for at in broken:
            flaws.doubt(_BROKEN_LINE, f"line {at:,}")
        text = _BROKEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return some_text(text, where), flaws.found()


def broken_text(data: bytes) -> str:
    """Return the text of a file in which bytes that are not UTF-8 are lone surrogates."""
    try:
        return data.decode("utf-8-sig")  # twice as fast
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", errors="surrogateescape")


def _check_text(data: bytes, where: str) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}",
            where=where,
            remedy="Convert the file to UTF-8, or store its bytes with put_frame(data).",
        ) from error
    raise InvalidInput(
        f"Not text: it has a NUL at character {text.index(chr(0)):,}",
        where=where,
        remedy="Store its bytes with put_frame(data).",
    )


def text_document(
    data: bytes,
    where: str,
    media_type: str,
    sections_of: Callable[[str], tuple[Section, ...]] | None = None,
    title_of: Callable[[str], str | None] | None = None,
) -> Document:
    """Return the document of a file that is its text: one section, or those of ``sections_of``.

    Raises:
        InvalidInput: see `decode_text`.
    """
    text, flaws = decode_text(data, where)
    sections = (Section(0, len(text)),) if sections_of is None else sections_of(text)
    title = None if title_of is None else title_of(text)
    return Document(text, sections, media_type, title, bool(flaws), flaws)


def some_text(text: str, where: str | None) -> str:
    """Return the text; raise `InvalidInput` if the text is blank, or over the limit of a string."""
    # A character has at most four bytes of UTF-8, so most texts need not be encoded.
    if len(text) > STRING_SIZE_MAX // 4 and len(text.encode(errors="replace")) > STRING_SIZE_MAX:
        raise too_large(where)
    if not text.strip():
        raise InvalidInput(
            "There is no text to remember",
            where=where,
            remedy="Store its bytes with put_frame(data).",
        )
    return text


def too_large(where: str | None) -> InvalidInput:
    """Return the error for a text over the limit of a string."""
    return InvalidInput(
        f"The text is over the limit of {STRING_SIZE_MAX:,} bytes",
        where=where,
        remedy="Split the text, and remember each part.",
    )
