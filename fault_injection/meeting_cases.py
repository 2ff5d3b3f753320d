"""A meeting of processes that broke a rule, as one small file: who did what, and who ran when.

Owns the case file of a meeting (MessagePack), its replay and its shrinking. Other than an image
(`cases`), a schedule says nothing by itself: replaying one runs the engine as it is now under it,
and tries the crash states of the trace. So a case holds once the engine does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from .interleavings import Judge, Meeting, Role, Violation
from .processes import WRITERS
from .schedule import Run, Unfit, explore, replay
from .states import Plan
from .workloads import fresh_image

SCHEDULES_MAX = 200
"""Schedules of a shorter meeting that are tried, those with the fewest preemptions first."""


class MeetingCase(msgspec.Struct, frozen=True, kw_only=True, tag="meeting", tag_field="kind"):
    """A meeting and the schedule under which it broke a rule.

    ``switches`` are the points of the schedule where it did not go on as it would by itself, each
    with the choice made there; ``choices`` describes the crash state, where one was needed.
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
        """Return what the processes do, each with its process."""
        return [
            f"P{number}:{act}"
            for number, role in enumerate(self.meeting.roles)
            for act in _acts(role)
        ]


def _acts(role: Role) -> Sequence[str]:
    return role[1:] if role and role[0] in WRITERS else role


@dataclass(frozen=True, slots=True)
class _Found:
    meeting: Meeting
    violation: Violation


def replay_meeting(case: MeetingCase) -> Violation | None:
    """Run a case's schedule once more, and return what is still wrong; its own rule first.

    An engine that has changed does more or fewer operations before the same place. So the nearest
    schedules are run as well, unless it fails at once.
    """
    # The world starts from a store that is made outside any schedule.
    fresh_image()
    judge = Judge(case.plan)
    found = _broken(case.meeting, _schedule(case.switches), judge, case.rule)
    for switches in () if found else _near(case.switches):
        one = _broken(case.meeting, _schedule(switches), judge, case.rule)
        if one is not None and one.rule != Unfit.__name__:
            return one
    return found


def _near(switches: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield the switches with all from one on a few points later or earlier."""
    for by in (1, -1, 2, -2):
        for first in range(len(switches)):
            moved = [(point + by, choice) for point, choice in switches[first:]]
            if moved[0][0] > (switches[first - 1][0] if first else -1):
                yield [*switches[:first], *moved]


def _schedule(switches: Sequence[tuple[int, int]]) -> list[int]:
    """Return the choice at each point up to the last switch."""
    chosen = dict(switches)
    return [chosen.get(point, 0) for point in range(max(chosen, default=-1) + 1)]


def _broken(
    meeting: Meeting, schedule: Sequence[int], judge: Judge, rule: str, *, only: bool = False
) -> Violation | None:
    """Return what a schedule breaks: the rule, or else (not if ``only``) any other."""
    run = replay(meeting.begin, meeting.programs(), schedule, kill=meeting.kill)
    return _of_rule(run, judge, rule, only=only)


def _of_rule(run: Run, judge: Judge, rule: str, *, only: bool) -> Violation | None:
    found = [*judge.violations(run)]
    alike = [one for one in found if one.rule == rule]
    return next(iter(alike if only else (*alike, *found)), None)


def shrunk_case(
    meeting: Meeting, violation: Violation, plan: Plan, *, preemptions: int
) -> MeetingCase:
    """Return the case of the shortest meeting and the fewest switches that break the same rule."""
    best = _Found(meeting, violation)
    shorter = _shorter(best.meeting)
    while (one := next(shorter, None)) is not None:
        found = _first(one, violation.rule, plan, preemptions)
        if found is not None:
            best = _Found(one, found)
            shorter = _shorter(one)
    best = _Found(best.meeting, _plainest(best, plan))
    return MeetingCase(
        rule=best.violation.rule,
        what=best.violation.what,
        meeting=best.meeting,
        switches=[
            (point, choice) for point, choice in enumerate(best.violation.schedule) if choice
        ],
        choices=best.violation.choices,
        plan=plan,
    )


def _shorter(meeting: Meeting) -> Iterator[Meeting]:
    """Yield the meetings with one process less to do anything, then those with one act less."""
    for place, role in enumerate(meeting.roles):
        if role:
            yield _with_role(meeting, place, ())
    for place, role in enumerate(meeting.roles):
        for act in range(1, len(role)) if len(_acts(role)) > 1 else ():
            yield _with_role(meeting, place, (*role[:act], *role[act + 1 :]))


def _with_role(meeting: Meeting, place: int, role: Role) -> Meeting:
    roles = (*meeting.roles[:place], role, *meeting.roles[place + 1 :])
    # The others keep their places; one that does nothing after them is not there.
    while roles and not roles[-1]:
        roles = roles[:-1]
    kill = None if meeting.kill == place and not role else meeting.kill
    return Meeting(roles, meeting.world, kill)


def _first(meeting: Meeting, rule: str, plan: Plan, preemptions: int) -> Violation | None:
    """Return the first violation of a rule among a meeting's schedules."""
    judge = Judge(plan)
    runs = explore(
        meeting.begin,
        meeting.programs(),
        preemptions=preemptions,
        kill=meeting.kill,
        limit=SCHEDULES_MAX,
    )
    found = (_of_rule(run, judge, rule, only=True) for run in runs)
    return next((one for one in found if one is not None), None)


def _plainest(found: _Found, plan: Plan) -> Violation:
    """Return the violation with as many switches left out as can be, the last ones first."""
    best = found.violation
    for point in reversed(range(len(best.schedule))):
        if point < len(best.schedule) and best.schedule[point]:
            fewer = (*best.schedule[:point], 0, *best.schedule[point + 1 :])
            again = _broken(found.meeting, fewer, Judge(plan), best.rule, only=True)
            best = again or best
    return best
