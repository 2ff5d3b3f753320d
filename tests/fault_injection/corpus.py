"""Makes the corpus: an image, by a short story, for each planted bug that one shows.

For each bug that takes several processes it is a schedule instead, and for each that takes a failed
sync the story of that.
``python -m tests.fault_injection.corpus`` writes the files anew. The stories are recorded by a
sound engine: what a bug in writing leaves behind is lost for good, whoever reads it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from cerata.fault_injection.cases import Case, case_of
from cerata.fault_injection.judging.campaign import Campaign, Story, Tally, Trials
from cerata.fault_injection.mutation.canary import SMOKE_PLAN
from cerata.fault_injection.mutation.mutate import Plant
from cerata.fault_injection.stories.engine_workloads import fresh_image, recover
from cerata.fault_injection.stories.shrinking import shrink

from ..crash.cases import AnyCase, encode_case, replay_saved
from ..crash.failed_syncs import (
    FAILING_PLAN,
    FailedSyncCase,
    failed_sync_case,
    failing_stories,
    sync_count,
)
from ..crash.initial_states import start_named
from ..crash.interleaving_cases import MeetingCase, shrunk_case
from ..crash.interleavings import LIVES, MEETING_PLAN, explore_meeting
from ..crash.mutants import BY_NAME, PLANTS
from ..crash.operations import record
from ..crash.sweeps.bit_rot import RotCampaign

FOLDER: Final = Path(__file__).parent / "corpus"
STORY: Final = ("small", "long", "batch", "kill", "seal", "large", "checkpoint", "long", "kill")
"""Long enough for every bug of recovery, and to be shortened."""
START: Final = "one commit"
START_EMPTY: Final = "empty"
FAILED_SYNCS: Final = {
    "flip while the sync of the newest header page is in doubt": (("compact",), ("small",)),
    "move while the sync of the newest header page is in doubt": (("small", "seal"), ("compact",)),
}
"""The operations before a sync fails, and those of the next opener, for each bug that takes them.
"""


class Planted(Trials):
    """A campaign with a bug in the engine while it recovers, and only then."""

    def __init__(self, plant: Plant, inner: Trials) -> None:
        super().__init__(inner.opener, inner.plan, 2)
        self._plant = plant
        self._inner = inner

    def _try_story(self, story: Story, tally: Tally) -> None:
        self._inner.failures_max = self.failures_max
        with self._plant.planted():
            tally.add(self._inner.check(story))


def recorded(acts: Sequence[str]) -> Story:
    """Record a story with a sound engine."""
    return record(acts, start=start_named(START))


def crash() -> Trials:
    """Return a campaign of plain crash states."""
    return Campaign(recover, SMOKE_PLAN)


def rot() -> Trials:
    """Return a campaign of faults on top of them."""
    return RotCampaign(recover, every=3)


def shortest_case(plant: Plant, make: Callable[[], Trials]) -> Case | None:
    """Return the case of the shortest story whose recovery shows a bug, if that shows it."""
    failures = Planted(plant, make()).check(recorded(STORY)).failures
    if not failures:
        return None
    shrunk = shrink(STORY, failures[0], recorded, lambda: Planted(plant, make()))
    return case_of(shrunk.failure, start=START, operations=shrunk.operations)


def meeting_case(plant: Plant) -> MeetingCase | None:
    """Return the case of the first meeting that shows a bug, shrunk."""
    fresh_image()
    for meeting in LIVES.values():
        with plant.planted():
            tally = explore_meeting(meeting, preemptions=1, limit=72, problems_max=1)
            for violation in tally.problems.values():
                return shrunk_case(meeting, violation, MEETING_PLAN, preemptions=1)
    return None


def case_after_a_failed_sync(plant: Plant) -> FailedSyncCase | None:
    """Return the case of the first story whose failed sync shows a bug."""
    acts, later = FAILED_SYNCS[plant.name]
    start = start_named(START_EMPTY)
    with plant.planted():
        for number in range(1, sync_count(acts, start) + 1):
            for story in failing_stories(acts, start, number, closes=False, later=later):
                failures = Campaign(recover, FAILING_PLAN, failures_max=1).check(story).failures
                if failures:
                    return failed_sync_case(
                        failures[0], acts, START_EMPTY, number, closes=False, later=later
                    )
    return None


def shows(plant: Plant, case: AnyCase) -> bool:
    """Tell whether a case fails with the bug, and passes without it.

    A bug with which not even the set-up opens shows nothing of the story.
    """
    if not case.operations:
        return False
    # What everything starts from is made by a sound engine.
    fresh_image()
    with plant.planted():
        fails = replay_saved(case) is not None
    return fails and replay_saved(case) is None


def file_of(plant: Plant) -> Path:
    """Return the file of a bug's case."""
    return FOLDER / f"{plant.name.replace(' ', '_')}.case"


def main() -> int:
    """Write a case for each bug that has one."""
    FOLDER.mkdir(exist_ok=True)
    for plant in (*PLANTS, *(BY_NAME[name] for name in FAILED_SYNCS)):
        cases: Iterator[AnyCase | None]
        if plant.name in FAILED_SYNCS:
            cases = iter((case_after_a_failed_sync(plant),))
        elif plant.detector == "schedules":
            cases = iter((meeting_case(plant),))
        elif plant.detector in ("stories", "damage"):
            cases = (shortest_case(plant, make) for make in (crash, rot))
        else:
            continue
        case = next((one for one in cases if one is not None and shows(plant, one)), None)
        said = "no case alone shows it"
        if case is not None:
            file_of(plant).write_bytes(encode_case(case))
            said = f"{' '.join(case.operations)}: {case.rule}"
        sys.stdout.write(f"{plant.name}: {said}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
