"""The checks of the harness that may notice a bug, and their run against planted bugs.

Owns the fresh recording of every story, the damage checks, and `detect`. Leaves out the catalogue
of bugs (`mutants`) and the full run with its counts (`tests.crash.report`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign, Memory, Story
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.mutation.mutate import Plant
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import fresh_image, recover

from .damage import DAMAGE, Damage
from .interleavings import LIVES, Meeting, explore_meeting
from .operations import STORIES, record, record_creation, sequences
from .second_crash import live_on
from .sweeps.invariants import PROMISES

_QUICK_PLAN: Final = Plan(exhaustive=128, samples=12, tears=24, pair_drops=12)
"""For planted bugs: there are many, and each breaks many states."""

PAIRS: Final = (("small", "backup"), ("small", "checkpoint"), ("compact", "small"))
"""Operations that change too little in an empty store to be worth crashing alone."""


Recording: TypeAlias = Callable[[], Story]
"""Records one story afresh, under the ordering monitor; raises any error of the run."""


def recordings(length_max: int) -> dict[str, Recording]:
    """Return the recording of every story of the smoke test, by name."""

    def creation() -> Story:
        return record_creation(monitor=OrderingMonitor(FileGeometry()))

    def acting(acts: Sequence[str], sync: str | int) -> Story:
        return record(acts, sync=sync, monitor=OrderingMonitor(FileGeometry()))

    by_name: dict[str, Recording] = {"creation": creation}
    pairs = PAIRS if length_max < 2 else ()
    short = ((acts, "commit") for acts in (*sequences(length_max), *pairs))
    for acts, sync in (*STORIES, *short):
        by_name[f"{' '.join(acts)} (sync={sync})"] = partial(acting, acts, sync)
    return by_name


def detect(plant: Plant, baselines: "Baselines | None" = None) -> str | None:
    """Plant a bug and return the first new problem, or None if no check notices the bug.

    Problems that the engine has without the bug do not count. Calls that pass the same
    ``baselines`` look for these once for each part.
    """
    baselines = {} if baselines is None else baselines
    # Build the stores that stories start from before the bug is planted.
    fresh_image()
    fresh_image(7)
    # Outcomes of a recovery with the bug must not serve for one without the bug.
    broken = Memory()
    for number, part in enumerate(PARTS[plant.detector]()):
        with plant.planted():
            problem = next(_problems(part, broken), None)
        if problem is None:
            continue
        key = plant.detector, number
        if key not in baselines:
            baselines[key] = [*_problems(part, Memory())]
        if problem in baselines[key]:
            with plant.planted():
                new = (each for each in _problems(part, Memory()) if each not in baselines[key])
                problem = next(new, None)
        if problem is not None:
            return problem
    return None


Part: TypeAlias = Callable[[Memory], Iterator[object]]
"""Yields the problems that it notices; all parts that run against one engine share the memory."""

Baselines: TypeAlias = dict[tuple[str, int], list[str]]
"""The problems of the engine without a bug, by detector and number of the part."""


def _problems(part: Part, memory: Memory) -> Iterator[str]:
    try:
        yield from map(str, part(memory))
    except Exception as error:  # noqa: BLE001 - any error is a notice
        yield repr(error)


def _recorded(recordings: Iterable[Recording], _: Memory) -> Iterator[object]:
    for recording in recordings:
        recording()
    return iter(())


def _crashed(recording: Recording, memory: Memory) -> Iterator[object]:
    campaign = Campaign(
        recover,
        _QUICK_PLAN,
        life=live_on,
        life_every=20,
        lives_max=4,
        failures_max=1,
        memory=memory,
    )
    for failure in campaign.check(recording()).failures:
        yield failure.finding


def _length(named: tuple[str, Recording]) -> int:
    return len(named[0])


def _stories() -> Iterator[Part]:
    # The shortest first: they notice most bugs, and a longer story has more states.
    by_length = [recording for _, recording in sorted(recordings(1).items(), key=_length)]
    # The monitor watches every recording, and all of them cost less than one story's states.
    yield partial(_recorded, by_length)
    for recording in by_length:
        yield partial(_crashed, recording)


def _explored(meeting: Meeting, _: Memory) -> Iterator[object]:
    yield from explore_meeting(meeting, preemptions=1, limit=72, problems_max=1).problems


def _damaged(images: Callable[[], Iterator[Damage]], _: Memory) -> Iterator[object]:
    for damage in images():
        finding = damage.check()
        if finding is not None:
            yield finding


def _promised(check: Callable[[], Iterator[Finding]], _: Memory) -> Iterator[object]:
    return check()


PARTS: Final[dict[str, Callable[[], Iterable[Part]]]] = {
    "stories": _stories,
    "damage": lambda: [partial(_damaged, images) for images in DAMAGE],
    "schedules": lambda: [partial(_explored, meeting) for meeting in LIVES.values()],
    "promises": lambda: [partial(_promised, check) for check in PROMISES],
}
"""The checks to run, by the name of the detector."""
