"""A meeting of processes that broke a rule, as one small file: their operations, and the schedule.

Owns the case file of a meeting (MessagePack), its replay and its shrinking. Unlike an image
(`cases`), a schedule proves nothing by itself: a replay runs the present engine under the schedule,
and tries the crash states of the trace. So a case passes once the engine is right.
"""

from collections.abc import Iterator, Sequence

import msgspec

from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.stories.engine_workloads import fresh_image

from .interleavings import Judge, Meeting, Role, Violation
from .processes import WRITERS
from .schedule import Run, Unfit, explore, replay

SCHEDULES_MAX = 200
"""Schedules of a shorter meeting that are tried, the fewest preemptions first."""


class MeetingCase(msgspec.Struct, frozen=True, kw_only=True, tag="meeting", tag_field="kind"):
    """A meeting and the schedule under which it broke a rule.

    ``switches`` are the points of the schedule at which it departs from the default, each with the
    choice taken there; ``choices`` describes the crash state, if the violation needed a crash.
    ``plan`` bounds the crash states that are tried.
    """

    version: int = 1
    rule: str
    what: str
    meeting: Meeting
    switches: list[tuple[int, int]]
    choices: str = ""
    plan: Plan

    @property
    def operations(self) -> list[str]:
        """Return the operations of the processes, each with its process."""
        return [
            f"P{number}:{act}"
            for number, role in enumerate(self.meeting.roles)
            for act in _acts(role)
        ]


def _acts(role: Role) -> Sequence[str]:
    return role[1:] if role and role[0] in WRITERS else role


def replay_meeting(case: MeetingCase) -> Violation | None:
    """Run a case's schedule once more, and return a broken rule, the case's rule first.

    A changed engine does more or fewer operations before the same place. So the nearest schedules
    are run as well, unless the first run fails.
    """
    # The world starts from a store that is built outside any schedule.
    fresh_image()
    judge = Judge(case.plan)
    violation = _broken(case.meeting, _schedule(case.switches), judge, case.rule)
    for switches in () if violation else _near(case.switches):
        near = _broken(case.meeting, _schedule(switches), judge, case.rule)
        if near is not None and near.rule != Unfit.__name__:
            return near
    return violation


def _near(switches: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield the switches with all from one switch on moved a few points."""
    for by in (1, -1, 2, -2):
        for first in range(len(switches)):
            moved = [(point + by, choice) for point, choice in switches[first:]]
            if moved[0][0] > (switches[first - 1][0] if first else -1):
                yield [*switches[:first], *moved]


def _schedule(switches: Sequence[tuple[int, int]]) -> list[int]:
    chosen = dict(switches)
    return [chosen.get(point, 0) for point in range(max(chosen, default=-1) + 1)]


def _broken(
    meeting: Meeting, schedule: Sequence[int], judge: Judge, rule: str, *, only: bool = False
) -> Violation | None:
    """Return a violation of the rule, or else (unless ``only``) of any other, under a schedule."""
    run = replay(meeting.begin, meeting.programs(), schedule, kill=meeting.kill)
    return _of_rule(run, judge, rule, only=only)


def _of_rule(run: Run, judge: Judge, rule: str, *, only: bool) -> Violation | None:
    violations = [*judge.violations(run)]
    alike = [violation for violation in violations if violation.rule == rule]
    return next(iter(alike if only else (*alike, *violations)), None)


def shrunk_case(
    meeting: Meeting, violation: Violation, plan: Plan, *, preemptions: int
) -> MeetingCase:
    """Return the shortest meeting with the fewest switches that breaks the same rule."""
    shorter = _shorter(meeting)
    while (candidate := next(shorter, None)) is not None:
        broken = _first(candidate, violation.rule, plan, preemptions)
        if broken is not None:
            meeting = candidate
            violation = broken
            shorter = _shorter(meeting)
    violation = _plainest(meeting, violation, plan)
    return MeetingCase(
        rule=violation.rule,
        what=violation.what,
        meeting=meeting,
        switches=[(point, choice) for point, choice in enumerate(violation.schedule) if choice],
        choices=violation.choices,
        plan=plan,
    )


def _shorter(meeting: Meeting) -> Iterator[Meeting]:
    """Yield the meetings with one process fewer, then those with one operation fewer."""
    for place, role in enumerate(meeting.roles):
        if role:
            yield _with_role(meeting, place, ())
    for place, role in enumerate(meeting.roles):
        for act in range(1, len(role)) if len(_acts(role)) > 1 else ():
            yield _with_role(meeting, place, (*role[:act], *role[act + 1 :]))


def _with_role(meeting: Meeting, place: int, role: Role) -> Meeting:
    roles = (*meeting.roles[:place], role, *meeting.roles[place + 1 :])
    # The other roles keep their places; trailing roles without operations are dropped.
    while roles and not roles[-1]:
        roles = roles[:-1]
    kill = None if meeting.kill == place and not role else meeting.kill
    return Meeting(roles, meeting.world, kill)


def _first(meeting: Meeting, rule: str, plan: Plan, preemptions: int) -> Violation | None:
    judge = Judge(plan)
    runs = explore(
        meeting.begin,
        meeting.programs(),
        preemptions=preemptions,
        kill=meeting.kill,
        limit=SCHEDULES_MAX,
    )
    violations = (_of_rule(run, judge, rule, only=True) for run in runs)
    return next((violation for violation in violations if violation is not None), None)


def _plainest(meeting: Meeting, best: Violation, plan: Plan) -> Violation:
    """Return the violation with the fewest switches; the last are left out first."""
    for point in reversed(range(len(best.schedule))):
        if point < len(best.schedule) and best.schedule[point]:
            fewer = (*best.schedule[:point], 0, *best.schedule[point + 1 :])
            again = _broken(meeting, fewer, Judge(plan), best.rule, only=True)
            best = again or best
    return best
