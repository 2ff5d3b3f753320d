"""Candidates: the frames that the lanes find for a judged question, with the parts of any score.

Owns `Candidates`, for which lanes and signals were read once, so that an order by any weights is a
sum: exactly the order of a search with a profile of these weights. Leaves out which questions are
judged (`judgements`, `recalls`) and the learning (`cerata.retrieval.ranking.learning`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cerata.projections.columnar.columns import F64, I64
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.retrieval.ranking.fusion import LaneRanking, fuse, shared_weights, worth
from cerata.retrieval.ranking.learning import JudgedList
from cerata.retrieval.ranking.metrics import gain, recall
from cerata.retrieval.ranking.profile import LANES, Profile
from cerata.retrieval.ranking.signals import SIGNALS

from ..search.pages import LANE_HITS
from ..search.request import SearchRequest
from ..search.search import run_search
from ..snapshot.snapshot import Snapshot

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
    - ``before`` is the order of the profile in use.
    """

    question: JudgedQuestion
    rankings: Sequence[LaneRanking]
    ids: I64
    signals: F64
    before: Sequence[int]

    def order(self, profile: Profile) -> list[int]:
        """Return the best frames, as a search with a profile of z-scores would."""
        weights = {lane: _number(profile.weights.get(lane, 0.0)) for lane in LANES}
        rankings = [ranking for ranking in self.rankings if weights[ranking.name]]
        if not any(profile.signals.values()):
            hits = fuse(rankings, DEPTH, method="zscore", weights=weights)
        else:
            hits = fuse(
                rankings,
                DEPTH,
                method="zscore",
                weights=shared_weights(rankings, weights),
                adding=lambda ids: self._added(ids, profile.signals),
            )
        return [hit.id for hit in hits]

    def _added(self, ids: I64, weights: Mapping[str, float]) -> F64:
        values = self.signals[np.searchsorted(self.ids, ids)]
        total = np.zeros(len(ids))
        # In the order and with the digits of `signals.sum_of`.
        for place, name in enumerate(SIGNALS):
            if weights.get(name):
                total += weights[name] * values[:, place]
        return np.round(total, SCORE_DECIMALS)

    def judged_list(self) -> JudgedList | None:
        """Return the candidates for learning, with lanes then signals; None if none is relevant."""
        items, of_items = self.question.items, self.question.grades
        grades = np.array([of_items[items[i]] if i in items else 0.0 for i in self.ids.tolist()])
        if not grades.any():
            return None
        lanes = np.zeros((len(self.ids), len(LANES)))
        for ranking in self.rankings:
            at = np.searchsorted(self.ids, np.asarray(ranking.ids, np.int64))
            lanes[at, LANES.index(ranking.name)] = worth(ranking, "zscore")
        return JudgedList(np.concatenate([lanes, self.signals], axis=1), grades)


def _number(weight: object) -> float:
    assert isinstance(weight, int | float)
    return float(weight)


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
    rankings = [ranking for ranking in result.blocks[0].rankings if len(ranking.ids)]
    ids = np.unique(
        np.concatenate(
            [np.empty(0, np.int64), *(np.asarray(lane.ids, np.int64) for lane in rankings)]
        )
    )
    signals = result.signals
    return Candidates(
        question=question,
        rankings=rankings,
        ids=ids,
        signals=np.zeros((len(ids), len(SIGNALS))) if signals is None else signals.values(ids),
        before=before,
    )


def _with_all(profile: Profile) -> Profile:
    """Return a profile with every lane and signal, and the switches of a profile."""
    return replace(
        profile,
        weights=dict.fromkeys(LANES, 1.0),
        turn_weights={},
        method="zscore",
        rerank=False,
        importance=0.0,
        signals=dict.fromkeys(SIGNALS, 1.0),
    )
