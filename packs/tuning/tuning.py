"""Tuning a profile: weights that fit judged questions, and their gain on held-out questions.

Owns `tune` and its result. For each fold of groups the weights are learned from the rest and
measured on the fold, so no question is measured by weights that it helped to learn; the returned
profile is learned from all. Leaves out the judgements (`judgements`) and the folds (`candidates`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from cerata.engine.arguments import expect_text
from cerata.engine.errors import InvalidInput
from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.columns import F64
from cerata.retrieval.ranking.fusion import OF_FACTS, OF_VECTORS
from cerata.retrieval.ranking.profile import LANES, PROFILES, SIGNAL_WEIGHT_MAX, Profile, profile_of
from cerata.retrieval.ranking.signals import SIGNALS

from .candidates import METRICS, Candidates, JudgedQuestion, candidates_of, folds_of
from .judgements import Judgement, JudgementResolver, UsedRecalls, judgements_in
from .learning import JudgedList, difference, fitted

# --- Weights of a profile as a vector, and the profile of learned weights -------------------------


DECIMALS: Final = 3
"""Digits of a learned weight: more change no order that a person would notice, and with fewer the
last bit of a sum, which machines compute differently, could show."""

_OF_CONTENT: Final = [place for place, lane in enumerate(LANES) if lane not in OF_FACTS]
"""The lanes whose weights sum up to the same as before."""

_OF_VECTORS: Final = [place for place, lane in enumerate(LANES) if lane in OF_VECTORS]
"""The lanes whose weights are in the unit of all other weights (`step_of`)."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns weights that start from those of a profile.

    Args:
        profile: the profile in use
        name: the name of learned profiles
    """

    profile: Profile
    name: str

    def learned(self, lists: Sequence[JudgedList]) -> Profile:
        """Return the profile of the weights that fit questions best.

        Lanes and signals that no candidate has keep their weights.
        """
        has_any = np.any([judged.features.any(axis=0) for judged in lists], axis=0)
        active = [place for place in _OF_CONTENT if has_any[place]]
        earlier = self._vector()
        # If none of the lanes that found frames had a weight, they start equal.
        if not earlier[active].any():
            earlier[active] = 1.0
        is_lane = np.arange(len(earlier)) < len(LANES)
        weights = fitted(lists, earlier, is_lane)
        total = float(weights[active].sum())
        if total <= 0:
            # The lanes rank the relevant frames last: nothing to learn from lanes.
            return self._profile(earlier)
        weights *= float(earlier[active].sum()) / total
        weights = np.where(has_any, weights, earlier)
        # The features are in steps of the profile in use; those of the learned one differ.
        of_steps = np.ones(len(weights), np.bool_)
        of_steps[_OF_CONTENT] = False
        weights[of_steps] *= _unit(earlier[_OF_VECTORS]) / _unit(weights[_OF_VECTORS])
        return self._profile(weights)

    def _vector(self) -> F64:
        """Return the weights of the profile, lanes then signals."""
        lanes = [float(self.profile.weights.get(lane, 0.0)) for lane in LANES]
        signals = [float(self.profile.signals.get(signal, 0.0)) for signal in SIGNALS]
        return np.array([*lanes, *signals])

    def _profile(self, weights: F64) -> Profile:
        """Return the profile of weights, lanes then signals."""
        lanes = weights[: len(LANES)]
        signals = np.clip(weights[len(LANES) :], -SIGNAL_WEIGHT_MAX, SIGNAL_WEIGHT_MAX)
        return Profile(
            self.name, 1, weights=_rounded(LANES, lanes), signals=_rounded(SIGNALS, signals)
        )


def _unit(of_vectors: F64) -> float:
    """Return the worth of a signal for the weights of vectors, of that without vectors."""
    return 1.0 + float(of_vectors.sum())


def _rounded(names: Sequence[str], weights: F64) -> dict[str, float]:
    rounded = {
        name: round(float(weight), DECIMALS) for name, weight in zip(names, weights, strict=True)
    }
    return {name: weight for name, weight in rounded.items() if weight}


# --- Tuning a profile: weights that fit judged questions, and their gain on held-out questions ----


QUESTIONS_MIN: Final = 10
"""With fewer questions the gain is mere chance."""

NAME: Final = "tuned"

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a pass, its finished steps, and all of them."""


@dataclass(frozen=True, slots=True)
class ProfileGain(PlainValue):
    """A metric of held-out questions, by the profile in use and by learned weights.

    - ``change`` is the mean of ``after`` less ``before``, and ``low`` to ``high`` its interval of
      95 %, by a paired bootstrap over the questions.
    - ``better`` and ``worse`` count the questions.
    """

    metric: str
    before: float
    after: float
    change: float
    low: float
    high: float
    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class Tuning(PlainValue):
    """A learned profile, and what it gains.

    - ``profile`` is learned from all questions, ``gains`` are measured on held-out questions alone.
    - ``base`` is the label of the profile in use, to which the gains compare.
    - ``taught`` counts the questions for which a lane found a relevant frame; the rest is measured.
    """

    profile: Profile
    base: str
    questions: int
    taught: int
    groups: int
    folds: int
    gains: tuple[ProfileGain, ...]
    notices: tuple[str, ...]

    @property
    def improves(self) -> bool:
        """True if nDCG@10 of held-out questions rises, and R@10 does not fall."""
        recall, gain = self.gains
        return gain.change > 0 and recall.change >= 0

    @property
    def is_sure(self) -> bool:
        """True if the interval of the change of nDCG@10 is above 0."""
        return self.gains[-1].low > 0


def tune(
    reader: Reader,
    judgements: Iterable[Judgement | str | bytes] | None = None,
    *,
    profile: str | Profile | None = None,
    name: str = NAME,
    source: str = "judgements",
    progress: Progress | None = None,
) -> Tuning:
    """Return a profile whose weights fit judged questions, and its gain on held-out questions.

    Nothing is written. The learned profile is without importance. The same state and judgements
    give the same result.

    Args:
        reader: A store or view.
        judgements: Judgements, or lines of them (docs/tune.md); None: recorded recalls of which a
            shown frame was used later.
        profile: The profile in use; default "default".
        name: The name of the learned profile.
        source: The name of the lines, for errors.
        progress: Called with the name of a pass, its finished steps, and all of them.

    Raises:
        InvalidInput: a line is no judgement (``where`` has its number), fewer than 10 questions are
            judged, or the name is that of a built-in profile.
        NotFound: a relevant frame does not exist within the scope.
        EmbedderFailed: the embedder could not embed a question.
    """
    expect_text("name", name)
    if name in PROFILES:
        raise InvalidInput(
            f"The name {name!r} is that of a built-in profile", remedy="Pass another name."
        )
    report = progress or _silent
    snapshot = snapshot_of(reader)
    in_use = profile_of(profile)
    questions, notices = judged_questions(snapshot, judgements, in_use, source)
    candidates: list[Candidates] = []
    for place, question in enumerate(questions, start=1):
        candidates.append(candidates_of(question))
        report("asking", place, len(questions))
    tuning = learned(candidates, Learner(in_use, name), report)
    return replace(tuning, notices=(*notices, *tuning.notices))


def _silent(_what: str, _at: int, _of: int) -> None:
    """Report nothing."""


def judged_questions(
    snapshot: Snapshot,
    judgements: Iterable[Judgement | str | bytes] | None,
    profile: Profile,
    source: str,
) -> tuple[list[JudgedQuestion], list[str]]:
    """Return the questions of judgements or of recorded recalls, and what was left out."""
    if judgements is None:
        recalls = UsedRecalls(snapshot, profile)
        questions = [*recalls.questions()]
        counts = {"recalls with a filter or by vectors alone are left out": recalls.skipped}
    else:
        resolver = JudgementResolver(snapshot, profile)
        resolved = (
            resolver.question(judgement, place)
            for place, judgement in enumerate(judgements_in(judgements, source), start=1)
        )
        questions = [question for question in resolved if question is not None]
        counts = {
            "relevant frames are no longer current, and left out": resolver.closed,
            "queries without a relevant frame are left out": resolver.unjudged,
        }
    _check_count(questions, judgements is None, source)
    return questions, [f"{count:,} {what}" for what, count in counts.items() if count]


def _check_count(questions: Sequence[JudgedQuestion], of_recalls: bool, source: str) -> None:  # noqa: FBT001
    if len(questions) >= QUESTIONS_MIN:
        return
    if of_recalls:
        raise InvalidInput(
            f"{len(questions)} recorded recalls have a used frame, and learning needs "
            f"{QUESTIONS_MIN}",
            where="the log",
            remedy="Recall with record=True, and record the used frames with record_access.",
        )
    raise InvalidInput(
        f"{len(questions)} queries are judged, and learning needs {QUESTIONS_MIN}",
        where=source,
        remedy="Judge more queries, a few for each kind that you ask.",
    )


def learned(
    candidates: Sequence[Candidates], learner: Learner, report: Progress = _silent
) -> Tuning:
    """Return the profile that is learned from candidates, and the gain of held-out folds.

    Raises:
        InvalidInput: too few questions have a relevant frame among their candidates.
    """
    groups = [each.question.group for each in candidates]
    folds = folds_of(groups, [each.question.request.text for each in candidates])
    count = max(folds) + 1
    lists = [each.judged_list() for each in candidates]
    taught = [judged for judged in lists if judged is not None]
    before = [each.question.scores(each.before) for each in candidates]
    after = [*before]
    for fold in range(count):
        profile = learner.learned(_outside(lists, folds, fold))
        for place in (place for place, other in enumerate(folds) if other == fold):
            held_out = candidates[place]
            after[place] = held_out.question.scores(held_out.order(profile))
        report("learning", fold + 1, count)
    return Tuning(
        profile=learner.learned(taught),
        base=learner.profile.label,
        questions=len(candidates),
        taught=len(taught),
        groups=len(set(groups)),
        folds=count,
        gains=_gains(before, after),
        notices=(),
    )


def _outside(
    lists: Sequence[JudgedList | None], folds: Sequence[int], fold: int
) -> list[JudgedList]:
    """Return the questions outside a fold that teach.

    Raises:
        InvalidInput: there are none.
    """
    outside = [
        judged for judged, of in zip(lists, folds, strict=True) if of != fold and judged is not None
    ]
    if outside:
        return outside
    raise InvalidInput(
        "Without one group no judged query has a relevant frame among its candidates",
        remedy="Judge queries of more groups, whose frames a search finds.",
    )


def _gains(
    before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]
) -> tuple[ProfileGain, ...]:
    gains: list[ProfileGain] = []
    for place, metric in enumerate(METRICS):
        pairs = [(new[place], old[place]) for new, old in zip(after, before, strict=True)]
        change = difference(pairs)
        gains.append(
            ProfileGain(
                metric=metric,
                before=change.second,
                after=change.first,
                change=change.mean,
                low=change.low,
                high=change.high,
                better=change.better,
                worse=change.worse,
            )
        )
    return tuple(gains)
