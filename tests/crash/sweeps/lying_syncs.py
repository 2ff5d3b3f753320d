"""Syncs that lie: the disk reports success, but the data is not durable (model P5).

Owns the states that lies may leave, and their judgement: no log can be whole on such a disk, but
recovery must return a prefix of the history, or a typed error. Up to two syncs in a row lie,
wholly, until power fails before the next honest sync; or the data of one lying sync, one sector or
all, is lost for good while all later data is there.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from cerata.fault_injection.crash_states.epochs import Epoch
from cerata.fault_injection.crash_states.readings import EpochAnswers, Outcome, Reading
from cerata.fault_injection.crash_states.states import (
    CrashState,
    Models,
    Plan,
    crash_states,
    state_of,
)
from cerata.fault_injection.judging.campaign import (
    Course,
    Failure,
    Memory,
    Opener,
    Story,
    Tally,
    Trials,
    crashed_world,
    opening,
)
from cerata.fault_injection.judging.oracle import Finding, Judgement

LYING_PLAN: Final = Plan(models=Models.SECTORS, exhaustive=256, samples=48, tears=0, pair_drops=32)

_NOWHERE: Final = -1
"""The inode of syncs that had no effect."""


def lies(story: Story, plan: Plan) -> Iterator[tuple[Epoch, Iterator[CrashState]]]:
    """Yield, for each lie, the epoch that the lie makes of several, and its possible states."""
    honest = list(_epochs(story, ()))
    closing = [epoch.end for epoch in honest[:-1]]
    for first in range(len(closing)):
        for count in (1, 2):
            if first + count <= len(closing):
                epoch = _epochs(story, closing[first : first + count])[first]
                yield epoch, _marked(crash_states(epoch, plan))
        for last in {first + 1, len(closing)}:
            epoch = _epochs(story, closing[first:last])[first]
            yield epoch, _marked(_lost(epoch, honest[first].write_count))


def _epochs(story: Story, without: Sequence[int]) -> list[Epoch]:
    """Return the story's epochs if the syncs at some places of the trace had no effect."""
    trace = [
        structs.replace(operation, node=_NOWHERE) if place in without else operation
        for place, operation in enumerate(story.trace)
    ]
    return list(story.epochs(trace))


def _marked(states: Iterator[CrashState]) -> Iterator[CrashState]:
    for state in states:
        # No acknowledged event is claimed to survive.
        yield replace(state, models=state.models | Models.LIES, acked=0)


def _lost(epoch: Epoch, lost_writes: int) -> Iterator[CrashState]:
    """Yield the states without the first writes to one sector or to all, with all later writes."""
    final = tuple(len(history.versions) - 1 for history in epoch.sectors)
    stale = [
        place for place, history in enumerate(epoch.sectors) if history.writes[-1] < lost_writes
    ]
    for places in (*((place,) for place in stale), tuple(stale)):
        versions = tuple(0 if place in places else last for place, last in enumerate(final))
        yield state_of(epoch, versions, Models.SECTORS)


class LyingCampaign(Trials):
    """Tries the states that lies leave of stories; equal readings share their outcome."""

    def __init__(self, opener: Opener, *, failures_max: int = 2) -> None:
        super().__init__(opener, LYING_PLAN, failures_max)
        self._memory = Memory()

    def _try_story(self, story: Story, tally: Tally) -> None:
        course = Course(story, tally, self._memory)
        tried: set[Hashable] = set()
        for epoch, states in lies(story, self.plan):
            tally.epochs += 1
            answers = EpochAnswers(epoch)
            for state in states:
                tally.states += 1
                if state.key in tried:
                    continue
                tried.add(state.key)
                tally.distinct += 1
                try:
                    tally.refused += self._outcome(state, answers, course).seq < 0
                except Finding as finding:
                    tally.failures.append(
                        Failure(state, finding, story, judgement=Judgement("lying"))
                    )
                    if self._is_over(tally):
                        return

    def _outcome(self, state: CrashState, answers: EpochAnswers, course: Course) -> Outcome:
        earlier = self._memory.readings.find(state, answers)
        if earlier is not None:
            if earlier.seq >= 0:
                course.oracle.check_known(earlier, acked=0)
            return earlier
        course.tally.recovered += 1
        world = crashed_world(state)
        reading = world.disk.reading = Reading()
        with opening(self.opener, world, course.story.path) as opened:
            outcome = course.oracle.check_refusable(opened)
        course.remember(state, answers, reading, outcome)
        return outcome
