"""Tuning a profile: weights that fit judged questions, and their gain on held-out questions.

Owns `tune` and its result. For each fold of groups the weights are learned from the rest and
measured on the fold, so no question is measured by weights that it helped to learn; the returned
profile is learned from all. Leaves out the judgements (`judgements`, `recalls`), the folds
(`groups`) and the weights (`weights`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from cerata.engine.arguments import expect_text
from cerata.engine.errors import InvalidInput
from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.retrieval.ranking.profile import Profile
from cerata.retrieval.ranking.profiles import PROFILES, profile_of

from .bootstrap import difference
from .candidates import METRICS, Candidates, JudgedQuestion, candidates_of
from .groups import folds_of
from .judgements import Judgement, JudgementResolver, judgements_in
from .learning import JudgedList
from .recalls import UsedRecalls
from .weights import Learner

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
