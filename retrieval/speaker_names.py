"""Names of speakers in a question: where they are, and the question without them.

A vector of "Does Mina paint?" is near every turn that mentions Mina; turns by Mina rarely have her
name. So an embedder gets the question without the names of speakers; the words of the question keep
them, since the role is a searched field. Leaves out the roles of a memory.

A name is a whole role, or its first or last word. A part, and a role of a single word, counts if it
has a capital, or is as the role has it, so "will" is not Will.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from cerata.projections.fulltext.analyzer import term_of, terms, word_places
from cerata.projections.fulltext.fields import PROTOCOL_ROLES

_PERSONS: Final = frozenset(("user", "human"))
"""The roles that several people of a chat share."""

_ROLE_SETS_KEPT: Final = 8
_ROLES_KEPT: Final = 1_024

_POSSESSIVE: Final = re.compile(r"\s?['’][sS](?![^\W_])")


_NAME_WORDS_MAX: Final = 16
"""Most words of a name; a longer role is no name."""


class _Names(NamedTuple):
    """Names by their words, each with the spellings that count without a capital.

    - ``sizes`` are their counts of words, the longest first. A name without spellings counts in any
      case.
    """

    spellings: dict[tuple[str, ...], frozenset[str]]
    sizes: tuple[int, ...]


def speaker(role: str | None, name: object) -> str | None:
    """Return the speaker of a message: a person's name, if the message has one, else the role.

    Two people of a chat have the role "user", and a context must not take one for the other. The
    name beside another role, such as "tool", names no person.

    >>> speaker("user", "Anna"), speaker("tool", "search"), speaker("user", " ")
    ('Anna', 'tool', 'user')
    """
    if role not in _PERSONS or not isinstance(name, str):
        return role
    return " ".join(name.split()) or role


def name_places(text: str, roles: Sequence[str]) -> list[tuple[int, int]]:
    """Return the characters [start, end) of the names in a text, with "'s", ascending.

    >>> name_places("Is it Ross's, or Geller's?", ["Ross Geller"])
    [(6, 12), (17, 25)]
    """
    names = _names_of(tuple(roles))
    words = [*word_places(text)]
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(words):
        size = next((size for size in names.sizes if _is_name(text, words, at, size, names)), 0)
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
    words = word_places(text)
    spelled = set(map(itemgetter(0), words))
    runs: dict[int, dict[tuple[str, ...], _Written]] = {}
    named: set[str] = set()
    for role in roles:
        names = _names_of_role(role)
        for run, spellings in names.spellings.items():
            if run[0] not in spelled:
                continue
            if len(run) not in runs:
                runs[len(run)] = _runs(text, words, len(run))
            written = runs[len(run)].get(run)
            if written is not None and written.counts(spellings):
                named.add(role)
                break
    return named


@dataclass(slots=True)
class _Written:
    """How a text writes a run of words."""

    spellings: set[str]
    has_capital: bool = False

    def counts(self, spellings: frozenset[str]) -> bool:
        """Return whether one of these is a name with such spellings."""
        return self.has_capital or not spellings or not spellings.isdisjoint(self.spellings)


def _runs(
    text: str, words: Sequence[tuple[str, int, int]], size: int
) -> dict[tuple[str, ...], _Written]:
    """Return the runs of a count of words in a text."""
    runs: dict[tuple[str, ...], _Written] = {}
    for at in range(len(words) - size + 1):
        run = words[at : at + size]
        spelling = text[run[0][1] : run[-1][2]]
        written = runs.setdefault(tuple(word for word, _, _ in run), _Written(set()))
        written.spellings.add(spelling)
        written.has_capital |= _has_capital(spelling)
    return runs


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


def _is_name(
    text: str, words: Sequence[tuple[str, int, int]], at: int, size: int, names: _Names
) -> bool:
    run = words[at : at + size]
    spellings = names.spellings.get(tuple(word for word, _, _ in run))
    if spellings is None or len(run) < size:
        return False
    written = text[run[0][1] : run[-1][2]]
    return not spellings or _has_capital(written) or written in spellings


def _has_capital(written: str) -> bool:
    first = written[0]
    return first.isupper() or first.upper() == first.lower()


@lru_cache(_ROLES_KEPT)
def _names_of_role(role: str) -> _Names:
    return _names_of.__wrapped__((role,))


@lru_cache(_ROLE_SETS_KEPT)
def _names_of(roles: tuple[str, ...]) -> _Names:
    spellings: dict[tuple[str, ...], set[str]] = {}
    whole: set[tuple[str, ...]] = set()
    for role in roles:
        if role.casefold() in PROTOCOL_ROLES:
            continue
        words = tuple(word for word, _, _ in word_places(role))
        if len(words) == 1:
            spellings.setdefault(words, set()).add(role)
        elif 1 < len(words) <= _NAME_WORDS_MAX:
            whole.add(words)
            for part in (words[0], words[-1]):
                # "The Host" has no name "The", nor "Anna B." a name "B".
                if len(part) > 1 and term_of(part.encode()) is not None:
                    spellings.setdefault((part,), set()).add("")
    names = {words: frozenset(written) for words, written in spellings.items()}
    # Several words are a name in any case.
    names |= dict.fromkeys(whole, frozenset())
    return _Names(names, tuple(sorted({len(words) for words in names}, reverse=True)))
