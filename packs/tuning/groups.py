"""Groups: judged questions that belong together, so that all of them are left out at once.

A question tells much about the next question of the same conversation, so weights learned from one
look better on the other than on a new conversation. Owns the default group of a question, and the
division of groups into folds.
"""

from collections.abc import Sequence
from typing import Final

from cerata.engine.integrity import hash_bytes
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime

FOLDS_MAX: Final = 10
"""More groups are joined: each fold costs a fit, and a tenth of the questions is enough to hold."""

_HASH_FOLDS: Final = 5


def group_of(snapshot: Snapshot, frame: int) -> str:
    """Return the default group of a relevant frame: its conversation, else its day."""
    layers = snapshot.layers
    turns, row = layers.turns, layers.rank_row(frame)
    place = -1 if turns is None or row is None else int(turns.places[row])
    # A frame that is no turn has a place below 0.
    if turns is not None and place >= 0:
        first = turns.rows[turns.conversation_at(place)][:1]
        return f"conversation of #{int(layers.ids_at(first)[0])}"
    return f"day {to_datetime(layers.created(frame)):%Y-%m-%d}"


def folds_of(groups: Sequence[str], queries: Sequence[str]) -> list[int]:
    """Return the fold of each question, from 0: a group is in a single fold.

    Groups are dealt to at most ten folds, the largest group first, each to the smallest fold. If
    all questions are of one group, a hash of the query deals them to five folds.

    Args:
        groups: the group of each question
        queries: the text of each question

    >>> folds_of(["a", "b", "a"], ["1", "2", "3"])
    [0, 1, 0]
    """
    if len(set(groups)) == 1:
        groups = [str(_hash(query) % _HASH_FOLDS) for query in queries]
    sizes = {name: groups.count(name) for name in dict.fromkeys(groups)}
    counts = [0] * min(len(sizes), FOLDS_MAX)
    fold_of: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        fold = counts.index(min(counts))
        fold_of[name] = fold
        counts[fold] += sizes[name]
    return [fold_of[name] for name in groups]


def _hash(text: str) -> int:
    return int.from_bytes(hash_bytes(text.encode())[:8], "big")
