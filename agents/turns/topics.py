"""Topics: the stems that a message speaks about, by repetition.

Owns the rule. A topic of a message is a stem of at least 5 letters, no stop word, that occurs twice
in the message, or once if it is a topic of the 12 messages before it (6 exchanges) of the same
thread and mode group. An unvalidated heuristic; the constants are those of the source.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from cerata.projections.fulltext.analyzer import term_of

WINDOW: Final = 12
"""Messages before a message whose topics count: 6 exchanges."""

TOPICS_MAX: Final = 8
"""Topics of a message: the most frequent, then the first."""

LETTERS_MIN: Final = 5


def topics_of(folded: Sequence[bytes], earlier: Collection[str]) -> list[str]:
    """Return the topics of a message, the most frequent first.

    Args:
        folded: The words of the message.
        earlier: The topics of the messages before it.
    """
    counts: dict[str, int] = {}
    for word, times in Counter(folded).items():
        term = term_of(word) if len(word) >= LETTERS_MIN else None
        if term is not None and len(term) >= LETTERS_MIN:
            stem = term.decode()
            counts[stem] = counts.get(stem, 0) + times
    topics = [
        stem
        for stem, count in counts.items()
        if (count > 1 or stem in earlier) and _is_of_letters(stem)
    ]
    # Sorting is stable: equal counts keep the order of the text.
    return sorted(topics, key=lambda stem: -counts[stem])[:TOPICS_MAX]


def _is_of_letters(stem: str) -> bool:
    return len(stem) >= LETTERS_MIN and not any("0" <= letter <= "9" for letter in stem)
