"""The question that the tour asks about a user's own files.

Owns the choice: a heading that names a subject, else a definition of code, else a file; no heading
that half of all documents have, such as "Synopsis".
"""

from itertools import islice
from pathlib import PurePath
from typing import Final

from cerata.memory.store import Store
from cerata.memory.values.frames import Frame
from cerata.projections.fulltext.analyzer import terms

_FRAMES_MAX: Final = 2_000

_TERMS: Final = range(2, 6)
"""Words of a good heading: one word is vague, and a sentence is no subject."""

_SIZE_MAX: Final = 60

_PROSE: Final = ("", ".md", ".markdown", ".txt", ".rst", ".html", ".htm", ".pdf")
"""Suffixes of files whose headings are not definitions of code."""

_GENERIC_HEADINGS: Final = (
    "about abstract acknowledgements api appendix args arguments attributes authors background"
    " badge basic basics build bugs change changelog changes class code com command conclusion"
    " config configuration contact contents contribute contributing copyright credits demo"
    " dependencies description details development docs documentation download entry example"
    " examples faq features file files function getting guide help helpers history home index"
    " init install installation installing introduction intro issues layout legal license"
    " licence links list main methods misc module name news note notes notice options other"
    " overview parameters part parts plan project purpose questions quick quickstart raises"
    " readme reference references related release releases requirements resources return returns"
    " run running section see settings setup start started status structure summary support"
    " synopsis table test testing tests text title todo topics tutorial unreleased untitled"
    " update updates usage use using utils version versions what why"
)
_GENERIC: Final = frozenset(term for word in _GENERIC_HEADINGS.split() for term in terms(word))


def question_about(store: Store) -> str | None:
    """Return a question about a heading, definition or name among the newest frames, if any."""
    best: str | None = None
    best_rank = (0, 0, 0)
    for frame in islice(store.frames(include_chunks=True), _FRAMES_MAX):
        subject = _subject(frame)
        size = len(set(terms(subject)) - _GENERIC)
        file = PurePath(frame.uri or "")
        is_heading = not file.as_posix().endswith(subject)
        is_code = is_heading and file.suffix.lower() not in _PROSE
        rank = ((is_heading and not is_code) + is_heading, int(size in _TERMS), frame.size)
        if size and rank > best_rank:
            best_rank = rank
            best = f"What do the files say about {subject}?"
            if not is_heading:
                best = f"What is in {subject}?"
            elif is_code:
                best = f"What does {subject} do?"
    return best


def _subject(frame: Frame) -> str:
    """Return the last heading above a frame, or its title; "" without any, or with a long one."""
    is_document = frame.chunk_count is not None and frame.chunk_index is None
    name = "" if is_document else (frame.title or "").rpartition(" > ")[2]
    if PurePath(frame.uri or "").suffix.lower() not in _PROSE:
        # Small definitions in a row share a heading.
        name = name.partition(", ")[0]
    name = name.strip(' .:?!`*"')
    return name if len(name) <= _SIZE_MAX else ""
