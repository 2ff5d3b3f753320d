"""Candidates: the frames that the lanes find for a judged question, with the parts of any score.

Owns `Candidates`, for which lanes and signals were read once, so that an order by any weights is a
sum: exactly the order of a search with a profile of these weights. Leaves out which questions are
judged (`judgements`) and the learning (`cerata.packs.tuning.learning`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cerata.engine.integrity import hash_bytes
from cerata.memory.search.pages import LANE_HITS
from cerata.memory.search.request import SearchRequest
from cerata.memory.search.search import run_search
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.columns import F64, I64, Mask
from cerata.projections.columnar.times import to_datetime
from cerata.retrieval.ranking.fusion import OF_FACTS, Shares, fuse, step_of
from cerata.retrieval.ranking.fusion import candidates_of as ranked_ids
from cerata.retrieval.ranking.profile import LANES, Profile
from cerata.retrieval.ranking.signals import SIGNALS

from .learning import JudgedList, gain, recall

DEPTH: Final = 10
"""Hits of an order that count."""

METRICS: Final = (f"R@{DEPTH}", f"nDCG@{DEPTH}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedQuestion:
    """A question to a snapshot, with its relevant items.

    - ``request`` has the profile that is in use.
    - ``items`` has the place of each relevant frame's item: several frames of a document are one.
    - ``grades`` are the grades of the items, above 0.
    - ``group`` names the questions that are left out together.
    """

    snapshot: Snapshot
    request: SearchRequest
    group: str
    items: Mapping[int, int]
    grades: Sequence[float]

    def scores(self, order: Sequence[int]) -> tuple[float, float]:
        """Return `METRICS` of an order of frames; further frames of an item count nothing."""
        relevant = dict(enumerate(self.grades))
        ranked: dict[int, None] = {}
        # Distinct numbers below 0 are no item's place.
        for place, frame in enumerate(order[:DEPTH]):
            item = self.items.get(frame, -1)
            ranked[item if item >= 0 and item not in ranked else -1 - place] = None
        return recall([*ranked], relevant, DEPTH), gain([*ranked], relevant, DEPTH)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The frames that the lanes find for a judged question, best 128 of each.

    - ``ids`` (frames,) are ascending; ``signals`` are (frames, signals), in order of `SIGNALS`.
    - ``lanes`` has the shares of each lane, those of vectors times ``factors``; ``listed`` has
      the frames among the best of each, (frames,); ``found`` names the lanes that find any frame.
    - ``before`` is the order of the profile in use.
    """

    question: JudgedQuestion
    ids: I64
    lanes: Mapping[str, Shares]
    listed: Mapping[str, Mask]
    found: Sequence[str]
    factors: Mapping[str, float]
    signals: F64
    before: Sequence[int]

    def order(self, profile: Profile) -> list[int]:
        """Return the best frames, as a search with a profile would."""
        running = [name for name in self.lanes if profile.weights.get(name)]
        if not running:
            return []
        step = self._step(profile)
        weights = {name: profile.weights[name] for name in running}
        weights |= {name: weights[name] * step for name in OF_FACTS.intersection(running)}
        at = np.flatnonzero(np.any([self.listed[name] for name in running], axis=0))
        shares = {
            name: Shares(self.lanes[name].shares[at], self.lanes[name].found[at])
            for name in running
        }
        added = step * self._added(at, profile.signals)
        return [hit.id for hit in fuse(self.ids[at], shares, weights, added, DEPTH)]

    def _step(self, profile: Profile) -> float:
        """Return the worth of a signal of weight 1 for the question, with a profile."""
        weights = {
            name: weight * self.factors.get(name, 1.0) for name, weight in profile.weights.items()
        }
        return step_of(weights, self.found)

    def _added(self, at: I64, weights: Mapping[str, float]) -> F64:
        total = np.zeros(len(at))
        # In the order of `signals.sum_of`.
        for place, name in enumerate(SIGNALS):
            if weights.get(name):
                total += weights[name] * self.signals[at, place]
        return total

    def judged_list(self) -> JudgedList | None:
        """Return the candidates for learning, with lanes then signals; None if none is relevant.

        All are in steps of the profile in use, so that signals learn as fast as lanes.
        """
        items, of_items = self.question.items, self.question.grades
        grades = np.array([of_items[items[i]] if i in items else 0.0 for i in self.ids.tolist()])
        if not grades.any():
            return None
        step = self._step(self.question.request.profile)
        lanes = np.zeros((len(self.ids), len(LANES)))
        for name, lane in self.lanes.items():
            lanes[:, LANES.index(name)] = lane.shares / (1.0 if name in OF_FACTS else step)
        return JudgedList(np.concatenate([lanes, self.signals], axis=1), grades)


def candidates_of(question: JudgedQuestion) -> Candidates:
    """Return the candidates of a question. Cost: two searches.

    Raises:
        EmbedderFailed: the embedder could not embed the question.
        Unsupported: no lane of the profile in use can run.
    """
    snapshot, request = question.snapshot, question.request
    before = [hit.id for hit in run_search(snapshot, request).order[:DEPTH]]
    profile = _with_all(request.profile)
    result = run_search(snapshot, replace(request, k=LANE_HITS, rerank=None, profile=profile))
    running, signals = result.fusion.running, result.signals
    rankings = result.blocks[0].rankings
    ids = ranked_ids(rankings)
    lanes: dict[str, Shares] = {}
    rows = result.fusion.columns.rows_of(ids)
    for lane in running.lanes:
        shares, found = lane.shares(ids, rows)
        # All weights are 1, so those of the lanes of vectors are how far these count.
        lanes[lane.name] = Shares(shares * running.weights[lane.name], found)
    listed = {ranking.name: np.isin(ids, np.asarray(ranking.ids, np.int64)) for ranking in rankings}
    spaces = (running.vectors, running.late)
    return Candidates(
        question=question,
        ids=ids,
        lanes=lanes,
        listed={name: listed.get(name, np.zeros(len(ids), np.bool_)) for name in lanes},
        found=[lane.name for lane in spaces if lane is not None and lane.finds_any],
        factors={name: running.weights[name] for name in lanes},
        # All weights of the profile are 1, so these are those of signals among long turns.
        signals=np.zeros((len(ids), len(SIGNALS)))
        if signals is None
        else signals.values(ids) * [signals.weights[name] for name in SIGNALS],
        before=before,
    )


def _with_all(profile: Profile) -> Profile:
    """Return a profile with every lane and signal."""
    return replace(
        profile,
        weights=dict.fromkeys(LANES, 1.0),
        importance=0.0,
        signals=dict.fromkeys(SIGNALS, 1.0),
    )


# --- Groups: judged questions that belong together, so that all of them are left out at once ------
#
# A question tells much about the next question of the same conversation, so weights learned from
# one look better on the other than on a new conversation.


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
