"""The parts of the harness that may notice a bug, and planted bugs held against them.

Owns how every story is recorded afresh, the damage checks, and `detect`. Leaves out what the bugs
are (`plants`) and running everything once and counting (`report`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from .afterlife import live_on, recover
from .campaign import Campaign, Memory, Story
from .damage import DAMAGE, Damage
from .geometry import FileGeometry
from .interleavings import LIVES, Meeting, explore_meeting
from .monitor import OrderingMonitor
from .oracle import Finding
from .planting import Plant
from .plants import BY_NAME
from .promises import PROMISES
from .states import Plan
from .workloads import STORIES, fresh_image, record, record_creation, sequences

SMOKE_PLAN: Final = Plan(exhaustive=1_024, samples=24, tears=48, pair_drops=24)

_QUICK_PLAN: Final = Plan(exhaustive=128, samples=12, tears=24, pair_drops=12)
"""For planted bugs: there are many, and each breaks many states."""

CANARY: Final = "believe a record's body unchecked"
"""A bug that no monitor sees: a crash state and the oracle are needed to notice it."""

PAIRS: Final = (("small", "backup"), ("small", "checkpoint"))
"""Operations that do nothing worth crashing to an empty store."""


class Blind(AssertionError):
    """The harness did not notice a bug that was planted for it to be noticed."""


Recording: TypeAlias = Callable[[], Story]
"""Records one story afresh, under the ordering monitor; raises what breaks meanwhile."""


def recordings(length_max: int) -> dict[str, Recording]:
    """Return how to record every story of the smoke, by its name."""

    def creation() -> Story:
        return record_creation(monitor=OrderingMonitor(FileGeometry()))

    def acting(acts: Sequence[str], sync: str | int) -> Story:
        return record(acts, sync=sync, monitor=OrderingMonitor(FileGeometry()))

    found: dict[str, Recording] = {"creation": creation}
    pairs = PAIRS if length_max < 2 else ()
    short = ((acts, "commit") for acts in (*sequences(length_max), *pairs))
    for acts, sync in (*STORIES, *short):
        found[f"{' '.join(acts)} (sync={sync})"] = partial(acting, acts, sync)
    return found


def canary() -> str:
    """Plant one bug, and return how the smallest crash test notices it.

    Whoever is told that nothing was found is told as well that something would have been.

    Raises:
        Blind: it was not noticed: the harness finds nothing, whatever there is to be found.
    """
    fresh_image()
    with BY_NAME[CANARY].planted():
        noticed = _first_failure()
    if noticed is None or _first_failure() is not None:
        raise Blind(f"the canary lives: nobody notices that records are not checked ({CANARY})")
    return noticed


def _first_failure() -> str | None:
    failures = Campaign(recover, SMOKE_PLAN, failures_max=1).check(record(("long",))).failures
    return str(failures[0].finding) if failures else None


def detect(plant: Plant) -> str | None:
    """Plant a bug and return what notices it first, or None where nothing does.

    What the engine gets wrong without the bug does not count.
    """
    # The stores that everything starts from are made before anything is planted.
    fresh_image()
    fresh_image(7)
    # What a recovery with the bug made of an image is nothing to go by without it.
    broken = Memory()
    for part in PARTS[plant.detector]():
        with plant.planted():
            noticed = part(broken)
        if noticed:
            known = part(Memory())
            new = [problem for problem in noticed if problem not in known]
            if new:
                return new[0]
    return None


def _story(recording: Recording, memory: Memory) -> list[str]:
    try:
        story = recording()
    except Exception as error:  # noqa: BLE001 - told, whatever it is
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
    return _checked(lambda: (found for damage in images() if (found := damage.check())), _)


def _checked(check: Callable[[], Iterator[Finding]], _: Memory) -> list[str]:
    """Run a check and return its problems, whatever they are."""
    try:
        return [str(finding) for finding in check()]
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        return [repr(error)]


def _schedules(meeting: Meeting, _: Memory) -> list[str]:
    tally = explore_meeting(meeting, preemptions=1, limit=60, problems_max=1)
    return list(tally.problems)


Part: TypeAlias = Callable[[Memory], list[str]]
"""Returns what it notices; ``memory`` is shared by all parts that run against one engine."""

PARTS: Final[dict[str, Callable[[], list[Part]]]] = {
    # The shortest first: most bugs need no more, and a longer story has more states.
    "stories": lambda: [
        partial(_story, recording)
        for _, recording in sorted(recordings(1).items(), key=lambda item: len(item[0]))
    ],
    "damage": lambda: [partial(_damaged, images) for images in DAMAGE],
    "schedules": lambda: [partial(_schedules, meeting) for meeting in LIVES.values()],
    "promises": lambda: [partial(_checked, check) for check in PROMISES],
}
"""What is run to notice a bug, by the name of its detector."""
