"""Entropy of exchanges: how far a conversation leaves its course. An unvalidated heuristic.

Owns the sum of its parts, in whole hundredths, and its levels; the constants are those of the
source. An exchange over .60 calms a later answer by its other parts alone, so that the entropy of
an exchange depends on 6 hours before it, and not on all of the thread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.columns import I64

from .counted import Counted
from .exchanges import Pair, Talk

Level: TypeAlias = Literal["calm", "active", "elevated", "critical"]

ACTIVE: Final = 40
ELEVATED: Final = 80
CRITICAL: Final = 100
CALMED: Final = 60
"""Hundredths of an exchange after which a calm answer counts."""

_SHORT_WORDS: Final = 15
_META_EXCHANGES: Final = 6
_META: Final = ((16, 45), (14, 30), (10, 15))
"""Counts of own thinking in 6 exchanges, and the addition beyond each."""

_HOUR_US: Final = 3_600_000_000
_CALM_US: Final = 6 * _HOUR_US
_SUSTAINED_US: Final = 45 * 60_000_000
_LOOKED_AT: Final = 64
"""Exchanges of which the newest entropy is computed, at least."""


@dataclass(frozen=True, slots=True)
class Entropy(PlainValue):
    """The entropy of an exchange.

    - ``value`` is the sum of ``parts``, in hundredths; ``level`` names it.
    - ``is_sustained``: this exchange and those right before it, over .40, span 45 minutes.
    """

    exchange: int
    value: float
    level: Level
    parts: dict[str, float]
    is_sustained: bool


def entropies(talk: Talk, pairs: list[Pair]) -> list[Entropy]:
    """Return the entropy of exchanges that follow each other in a thread.

    Args:
        talk: The messages of the thread and mode group.
        pairs: Its exchanges, of which the first has none before it.
    """
    counted = Counted(talk, pairs)
    new_topics = _new_topics(talk, pairs)
    parts = [_parts(counted, place, new_topics[place]) for place in range(len(pairs))]
    bare = [sum(each.values()) for each in parts]
    results: list[Entropy] = []
    start: int | None = None
    columns = talk.messages.columns
    for place, pair in enumerate(pairs):
        if counted.reply(place, "calm") and _was_over(bare, counted.times, place):
            parts[place]["calm"] = 15
        value = sum(parts[place].values())
        if value <= ACTIVE:
            start = None
        elif start is None:
            start = counted.times[place]
        results.append(
            Entropy(
                exchange=columns.seq.item(pair.rows[0]),
                value=value / 100,
                level=_level(value),
                parts={name: part / 100 for name, part in parts[place].items()},
                is_sustained=start is not None and counted.times[place] - start >= _SUSTAINED_US,
            )
        )
    return results


def newest_entropy(talk: Talk) -> Entropy | None:
    """Return the entropy of a thread's newest exchange, or None without an exchange."""
    count = 2 * _LOOKED_AT
    while True:
        pairs = talk.newest(count).pairs()
        columns = talk.messages.columns
        is_whole = count >= len(talk)
        times = [columns.created.item(pair.rows[0]) for pair in pairs]
        if is_whole or (len(pairs) > _META_EXCHANGES and times[-1] - times[0] > _CALM_US):
            return entropies(talk, pairs)[-1] if pairs else None
        count *= 4


def _parts(counted: Counted, place: int, new_topics: int) -> dict[str, int]:
    """Return the parts of an exchange's entropy but the calm answer, in hundredths."""
    parts: dict[str, int] = {}
    if counted.question(place, "correction"):
        parts["correction"] = 40
    if new_topics:
        parts["new topics"] = min(15 * new_topics, 30)
    if counted.either(place, "emotion"):
        parts["emotion"] = 30
    for sign in ("paradox", "meta"):
        if counted.reply(place, sign):
            parts[sign] = 20
    if counted.question(place, "plan") and counted.reply(place, "done"):
        parts["plan as if done"] = 30
    question = counted.pairs[place].question
    is_short = counted.question_words[place] < _SHORT_WORDS
    ends = is_short or counted.question(place, "conclusion")
    if question and ends and counted.reply(place, "intimacy"):
        parts["intimacy"] = 20
    first = max(0, place + 1 - _META_EXCHANGES)
    metas = sum(counted.reply(each, "meta") for each in range(first, place + 1))
    added = next((added for count, added in _META if metas > count), 0)
    if added:
        parts["own thinking"] = added
    return parts


def _was_over(bare: list[int], times: list[int], place: int) -> bool:
    """Return whether an exchange of the 6 hours before was over .60."""
    return any(
        value > CALMED and 0 <= times[place] - time <= _CALM_US
        for value, time in zip(bare[:place], times[:place], strict=True)
    )


def _new_topics(talk: Talk, pairs: list[Pair]) -> list[int]:
    """Return how many topics of each exchange no earlier message of the thread has."""
    columns = talk.messages.columns
    seqs: I64 = columns.topics.seq.view()
    is_here = np.isin(seqs, columns.seq.view()[talk.rows])
    codes = columns.topic.view()[: len(seqs)][is_here]
    owners = seqs[is_here]
    # The rows are in order of seq, so the first of each code is its first mention.
    _, places = np.unique(codes, return_index=True)
    firsts = np.zeros(len(owners), np.bool_)
    firsts[places] = True
    new: Counter[int] = Counter(owners[firsts].tolist())
    return [sum(new[columns.seq.item(row)] for row in pair.rows) for pair in pairs]


def _level(value: int) -> Level:
    if value > CRITICAL:
        return "critical"
    if value > ELEVATED:
        return "elevated"
    return "active" if value > ACTIVE else "calm"
