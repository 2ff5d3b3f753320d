"""Names of speakers in a question: where they are, and the question without them.

A vector of "Does Mina paint?" is near every turn that mentions Mina; turns by Mina rarely have her
name. So an embedder gets the question without the names of speakers; the words of the question keep
them, since the role is a searched field. Leaves out the roles of a memory.

A name is a whole role, or its first or last word. A part, and a role of a single word, counts if it
has a capital, or is as the role has it, so "will" is not Will.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from cerata.projections.fulltext.analyzer import term_of, terms, word_places

PROTOCOL_ROLES: Final = frozenset(
    ("user", "assistant", "system", "developer", "tool", "function", "model", "human", "ai", "bot")
)
"""Roles of the protocols of chat, which are no names."""

_ROLE_SETS_KEPT: Final = 8
_ROLES_KEPT: Final = 1_024

_POSSESSIVE: Final = re.compile(r"\s?['’][sS](?![^\W_])")


class _Name(NamedTuple):
    words: tuple[str, ...]
    as_written: frozenset[str]
    """The spellings that count without a capital."""


def name_places(text: str, roles: Sequence[str]) -> list[tuple[int, int]]:
    """Return the characters [start, end) of the names in a text, with "'s", ascending.

    >>> name_places("Is it Ross's, or Geller's?", ["Ross Geller"])
    [(6, 12), (17, 25)]
    """
    by_first = _by_first_word(tuple(roles))
    words = [*word_places(text)]
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(words):
        size = next(
            (
                len(name.words)
                for name in by_first.get(words[at][0], ())
                if _is_name(text, words[at : at + len(name.words)], name)
            ),
            0,
        )
        if size:
            end = words[at + size - 1][2]
            possessive = _POSSESSIVE.match(text, end)
            places.append((words[at][1], possessive.end() if possessive else end))
            while at < len(words) and words[at][1] < places[-1][1]:
                at += 1
        else:
            at += 1
    return places


def named_roles(text: str, roles: Iterable[str]) -> set[str]:
    """Return the roles whose names a text has.

    >>> named_roles("Is it Ross's?", ["Ross Geller", "Olaf"])
    {'Ross Geller'}
    """
    words = [*word_places(text)]
    spelled = {word for word, _, _ in words}
    named: set[str] = set()
    for role in roles:
        first_words, names = _names_of(role)
        if not spelled.isdisjoint(first_words) and any(_is_in(text, words, name) for name in names):
            named.add(role)
    return named


def _is_in(text: str, words: Sequence[tuple[str, int, int]], name: _Name) -> bool:
    size = len(name.words)
    return any(_is_name(text, words[at : at + size], name) for at in range(len(words)))


def without_names(text: str, roles: Sequence[str]) -> str:
    """Return a text without the names of speakers, or the text if no word of content remains.

    >>> without_names("Does Mina paint?", ["Mina Berg", "Olaf"])
    'Does paint?'
    >>> without_names("Is it Olaf?", ["Olaf"])
    'Is it Olaf?'
    """
    places = name_places(text, roles)
    if not places:
        return text
    parts: list[str] = []
    start = 0
    for first, end in [*places, (len(text), len(text))]:
        parts.append(text[start:first])
        start = end
    rest = " ".join("".join(parts).split())
    return rest if terms(rest) else text


def _is_name(text: str, words: Sequence[tuple[str, int, int]], name: _Name) -> bool:
    if tuple(word for word, _, _ in words) != name.words:
        return False
    written = text[words[0][1] : words[-1][2]]
    first = written[0]
    has_capital = first.isupper() or first.upper() == first.lower()
    return has_capital or written in name.as_written or not name.as_written


@lru_cache(_ROLES_KEPT)
def _names_of(role: str) -> tuple[frozenset[str], tuple[_Name, ...]]:
    """Return the first words of the names of a role, and the names."""
    by_first = _by_first_word.__wrapped__((role,))
    return frozenset(by_first), tuple(name for names in by_first.values() for name in names)


@lru_cache(_ROLE_SETS_KEPT)
def _by_first_word(roles: tuple[str, ...]) -> dict[str, list[_Name]]:
    """Return the names of roles by their first words, the longest first."""
    spellings: dict[tuple[str, ...], set[str]] = {}
    whole: set[tuple[str, ...]] = set()
    for role in roles:
        if role.casefold() in PROTOCOL_ROLES:
            continue
        words = tuple(word for word, _, _ in word_places(role))
        if len(words) == 1:
            spellings.setdefault(words, set()).add(role)
        elif words:
            whole.add(words)
            for part in (words[0], words[-1]):
                # "The Host" has no name "The", nor "Anna B." a name "B".
                if len(part) > 1 and term_of(part.encode()) is not None:
                    spellings.setdefault((part,), set()).add("")
    names = [_Name(words, frozenset(written)) for words, written in spellings.items()]
    # Several words are a name in any case.
    names += [_Name(words, frozenset()) for words in whole]
    by_first: dict[str, list[_Name]] = {}
    for name in sorted(names, key=lambda name: (-len(name.words), name.words)):
        by_first.setdefault(name.words[0], []).append(name)
    return by_first
