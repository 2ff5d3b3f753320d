"""The checks of the harness that may notice a bug, and their run against planted bugs.

Owns the fresh recording of every story, the damage checks, and `detect`. Leaves out the catalogue
of bugs (`mutants`) and the full run with its counts (`report`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from ..crash_states.states import Plan
from ..judging.campaign import Campaign, Memory, Story
from ..judging.oracle import Finding
from ..simulation.file_layout import FileGeometry
from ..simulation.write_order_monitor import OrderingMonitor
from ..stories.damage import DAMAGE, Damage
from ..stories.engine_workloads import STORIES, fresh_image, record, record_creation, sequences
from ..stories.interleavings import LIVES, Meeting, explore_meeting
from ..stories.second_crash import live_on, recover
from ..sweeps.invariants import PROMISES
from .mutate import Plant

_QUICK_PLAN: Final = Plan(exhaustive=128, samples=12, tears=24, pair_drops=12)
"""For planted bugs: there are many, and each breaks many states."""

PAIRS: Final = (("small", "backup"), ("small", "checkpoint"))
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


def detect(plant: Plant) -> str | None:
    """Plant a bug and return the first new problem, or None if no check notices the bug.

    Problems that the engine has without the bug do not count.
    """
    # Build the stores that stories start from before the bug is planted.
    fresh_image()
    fresh_image(7)
    # Outcomes of a recovery with the bug must not serve for one without the bug.
    broken = Memory()
    for part in PARTS[plant.detector]():
        with plant.planted():
            noticed = part(broken)
        if noticed:
            baseline = part(Memory())
            new = [problem for problem in noticed if problem not in baseline]
            if new:
                return new[0]
    return None


def _story(recording: Recording, memory: Memory) -> list[str]:
    try:
        story = recording()
    except Exception as error:  # noqa: BLE001 - any error is a notice
        return [repr(error)]
    campaign = Campaign(
        recover,
        _QUICK_PLAN,
        life=live_on,
        life_every=20,
        lives_max=4,
        failures_max=1,
        memory=memory,
    )
    return [str(failure.finding) for failure in campaign.check(story).failures]


def _damaged(images: Callable[[], Iterator[Damage]], _: Memory) -> list[str]:
    return _checked(lambda: (finding for damage in images() if (finding := damage.check())), _)


def _checked(check: Callable[[], Iterator[Finding]], _: Memory) -> list[str]:
    """Run a check and return its problems, an error that it raises included."""
    try:
        return [str(finding) for finding in check()]
    except Exception as error:  # noqa: BLE001 - any error is a notice
        return [repr(error)]


def _schedules(meeting: Meeting, _: Memory) -> list[str]:
    tally = explore_meeting(meeting, preemptions=1, limit=60, problems_max=1)
    return list(tally.problems)


Part: TypeAlias = Callable[[Memory], list[str]]
"""Returns the problems that it notices; all parts that run against one engine share the memory."""

PARTS: Final[dict[str, Callable[[], list[Part]]]] = {
    # The shortest first: they notice most bugs, and a longer story has more states.
    "stories": lambda: [
        partial(_story, recording)
        for _, recording in sorted(recordings(1).items(), key=lambda item: len(item[0]))
    ],
    "damage": lambda: [partial(_damaged, images) for images in DAMAGE],
    "schedules": lambda: [partial(_schedules, meeting) for meeting in LIVES.values()],
    "promises": lambda: [partial(_checked, check) for check in PROMISES],
}
"""The checks to run, by the name of the detector."""
