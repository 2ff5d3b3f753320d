"""How much is tried: for every change, the gate of each night, the soak, a share for the tests.

Owns the four scales and the tasks of each. All are the same at every run with the same seed.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from random import Random
from typing import Final, TypeAlias

from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.stories.agent import Agent
from cerata.fault_injection.stories.workload import Workload

from ..initial_states import STARTS
from ..interleavings import MEETING_PLAN, MEETINGS
from ..operations import ALPHABET, EXTRA, STORIES
from ..runs import Runs
from ..talks import Talks
from .tasks import Task

FULL_PLAN: Final = Plan(exhaustive=4_096, samples=4_096)
"""All states of an epoch of at most 4,096; otherwise the structured set and 4,096 samples."""

Stories: TypeAlias = tuple[tuple[tuple[str, ...], str | int], ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is tried.

    All sequences up to ``length`` from each of ``starts``, and ``sampled`` sequences of one
    operation more; ``drawn`` longer stories. ``deep_every``: one in this many recoveries that write
    is crashed in turn; ``deep_all`` crashes all of them in stories of at most this many operations.
    ``stores`` stories of whole stores, and ``runs`` of agents; ``judged_every``: one sequence in
    this many is also opened for reading; ``faults_every``: run on disks that lie, rot and fail.
    ``schedules`` of each meeting, with ``preemptions``.
    """

    name: str
    length: int
    sampled: int
    drawn: int
    starts: tuple[str, ...]
    plan: Plan
    deep_every: int
    deep_all: int
    stores: int
    runs: int
    judged_every: int
    faults_every: int
    lives_max: int
    schedules: int | None
    preemptions: int = 1
    meeting_plan: Plan = MEETING_PLAN
    documents: int = 10


GATE: Final = Scale(
    "gate",
    length=2,
    sampled=13,
    drawn=12,
    starts=tuple(STARTS),
    plan=FULL_PLAN,
    deep_every=256,
    deep_all=0,
    stores=60,
    runs=16,
    judged_every=6,
    faults_every=12,
    lives_max=1,
    schedules=12,
)
CHANGE: Final = replace(
    GATE,
    name="change",
    length=1,
    sampled=20,
    drawn=6,
    stores=15,
    runs=8,
    judged_every=4,
    faults_every=8,
    schedules=4,
    documents=4,
)
"""A share of the gate: all operations alone from each set-up, and a sample of the pairs."""
SOAK: Final = Scale(
    "soak",
    length=3,
    sampled=0,
    drawn=400,
    starts=tuple(STARTS),
    plan=FULL_PLAN,
    deep_every=48,
    deep_all=2,
    stores=2_000,
    runs=200,
    judged_every=8,
    faults_every=8,
    lives_max=2,
    schedules=400,
    documents=100,
)
SHARE: Final = Scale(
    "share",
    length=1,
    sampled=1,
    drawn=1,
    starts=("empty", "checkpointed"),
    plan=Plan(exhaustive=256, samples=16, tears=32, pair_drops=16),
    deep_every=32,
    deep_all=0,
    stores=15,
    runs=10,
    judged_every=3,
    faults_every=12,
    lives_max=1,
    schedules=1,
    documents=2,
)
SCALES: Final = {scale.name: scale for scale in (CHANGE, GATE, SOAK, SHARE)}


def tasks(scale: Scale, seed: int = 0, cases: str | None = None) -> Iterator[Task]:
    """Yield every task of a scale, the tasks of one set-up together."""
    plan = replace(scale.plan, seed=seed)
    for task in _tasks(scale, plan, Random(seed)):
        yield replace(task, cases=cases)


def _tasks(scale: Scale, plan: Plan, source: Random) -> Iterator[Task]:
    for start in scale.starts:
        # All sequences with one first operation are one task: their first epochs are tried once.
        for first in ALPHABET:
            stories = _sequences(scale, first, source)
            deep = scale.deep_every
            yield Task("log", start, stories, plan, deep_every=deep, lives_max=scale.lives_max)
        whole = [story for first in ALPHABET for story in _sequences(scale, first, source)]
        for share in _pieces(whole[:: scale.judged_every], 40):
            yield Task("judged", start, share, plan)
        for at, part in enumerate(("lying", "rot", "failing")):
            for share in _pieces(whole[at :: scale.faults_every], 20):
                yield Task(part, start, share, plan)
    longer = [*STORIES, *_drawn(scale, source)]
    for share in _pieces(longer, 2):
        yield Task(
            "log",
            "empty",
            share,
            plan,
            deep_every=scale.deep_every,
            lives_max=scale.lives_max,
        )
    yield Task("log", "nothing", ((("create",), "commit"),), plan, deep_every=scale.deep_every)
    for share in _pieces(_store_stories(Agent(), scale.stores, source), 12):
        yield Task("store", "agent", share, plan, deep_every=scale.deep_every)
    for share in _pieces(_store_stories(Runs(), scale.runs, source), 12):
        yield Task("runs", "runs", share, plan, deep_every=scale.deep_every)
    for share in _pieces(_store_stories(Talks(), scale.runs, source), 12):
        yield Task("talks", "talks", share, plan, deep_every=scale.deep_every)
    yield Task("documents", "documents", plan=plan, lives_max=scale.documents)
    yield Task("damage", "damage")
    yield from meetings(scale)
    for start in scale.starts if scale.deep_all else ():
        short = (
            acts
            for length in range(scale.deep_all)
            for acts in product(ALPHABET, repeat=length + 1)
        )
        for share in _pieces([(acts, "commit") for acts in short], 14):
            yield Task("log", start, share, plan, deep_every=1)


def meetings(scale: Scale) -> Iterator[Task]:
    """Yield a task for each meeting of processes."""
    if scale.schedules == 0:
        return
    for name in MEETINGS:
        yield Task(
            "meeting",
            name,
            plan=scale.meeting_plan,
            preemptions=scale.preemptions,
            schedules=scale.schedules,
        )


def _sequences(scale: Scale, first: str, source: Random) -> Stories:
    """Return all sequences up to the length that begin with an operation, and a few longer."""
    sequences = [
        (first, *rest)
        for length in range(scale.length)
        for rest in product(ALPHABET, repeat=length)
    ]
    share = -(-scale.sampled // len(ALPHABET))
    sequences += [(first, *source.choices([*ALPHABET], k=scale.length)) for _ in range(share)]
    return tuple((acts, "commit") for acts in sequences)


def _drawn(scale: Scale, source: Random) -> list[tuple[tuple[str, ...], str | int]]:
    alphabet = [*ALPHABET, *EXTRA]
    return [
        (
            tuple(source.choices(alphabet, k=source.randint(4, 12))),
            source.choice(("commit", "commit", "always", 4_096, 1 << 20)),
        )
        for _ in range(scale.drawn)
    ]


def _store_stories(
    workload: Workload, count: int, source: Random
) -> list[tuple[tuple[str, ...], str | int]]:
    """Return stories of whole stores: a sample of the short, or all of them and longer."""
    alphabet = workload.alphabet()
    whole = [*product(alphabet, repeat=1), *product(alphabet, repeat=2)]
    if len(whole) > count:
        whole = source.sample(whole, count)
    while len(whole) < count:
        whole.append(tuple(source.choices(alphabet, k=source.randint(3, 6))))
    return [(acts, "commit") for acts in whole]


def _pieces(stories: Sequence[tuple[tuple[str, ...], str | int]], size: int) -> Iterator[Stories]:
    for at in range(0, len(stories), size):
        yield tuple(stories[at : at + size])


def having_one_of(task: Task, operations: Collection[str]) -> Task | None:
    """Return a task with only its stories that have one of some operations; None without any.

    A meeting is whole, if one of its processes does one of them.
    """
    if task.start in MEETINGS:
        acts = chain.from_iterable(MEETINGS[task.start].roles)
        return None if set(operations).isdisjoint(acts) else task
    stories = tuple(story for story in task.stories if not set(operations).isdisjoint(story[0]))
    return replace(task, stories=stories) if stories else None
