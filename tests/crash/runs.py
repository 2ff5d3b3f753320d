"""A workload of agents: runs that are started, killed, continued and ended, slots, and growth.

After a crash every recorded call is whole: its event and its result are both there or neither, and
the function can be executed again from the recording.
"""

from contextlib import suppress
from typing import Final

from cerata.agents.activities.events import RecordCall
from cerata.agents.activities.values import Activity
from cerata.agents.agent import Agent
from cerata.agents.growth.commands import judge
from cerata.agents.growth.events import Judge
from cerata.agents.run import Run
from cerata.agents.spec import MemorySpec
from cerata.engine.events import PutFrame
from cerata.fault_injection.stories.workload import Workload, operation
from cerata.memory.store import Store
from cerata.projections.frames.filters import Filter

_STEPS: Final = 2
_NOTES_MAX: Final = 2
_MEMORY: Final = {
    "notes": MemorySpec(type="list", max_items=_NOTES_MAX),
    "prefs": MemorySpec(ttl="1h"),
}
_STATUS: Final = {None: "open", "approve": "approved", "reject": "rejected"}
_LONG: Final = "a long way " * 2_000
"""A result larger than a quarter of the ring."""


class _Killed(BaseException):
    """The end of a process between two calls; a run stays open."""


def _measure(step: int) -> str:
    return f"{step}: {_LONG}" if step % 3 == 0 else f"{step}: {10 * step} metres"


def _refuse(step: int) -> None:
    raise ValueError(f"no bridge at step {step}")


def survey(run: Run, start: int, stop: int = _STEPS + 1) -> int:
    """Measure two places, and fail at a third; the process is killed before call ``stop``."""
    run.now()
    for call in range(_STEPS):
        if call == stop:
            raise _Killed
        step = start + call
        value = run.call("measure", _measure, step=step).value
        assert value == _measure(step), f"step {step} has another value"
    with suppress(ValueError):
        run.call("refuse", _refuse, step=start)
    if stop == _STEPS:
        raise _Killed
    if start % 4 == 0:
        raise LookupError("no way back")
    return start


class Runs(Workload):
    """An agent whose runs are killed at any point, and go on."""

    has_attachments = True

    def prepare(self, store: Store) -> None:
        """End one run, and leave another open."""
        self._work(store, stop=_STEPS + 1)
        store.checkpoint()
        self._work(store, stop=1)

    @operation
    def begin(self, store: Store) -> None:
        """Start a run, or go on with the open one, and die before its first call."""
        self._work(store, stop=0)

    @operation
    def half(self, store: Store) -> None:
        """Go on with a run, and die after its first call."""
        self._work(store, stop=1)

    @operation
    def most(self, store: Store) -> None:
        """Go on with a run, and die before its end."""
        self._work(store, stop=_STEPS)

    @operation
    def finish(self, store: Store) -> None:
        """Go on with a run up to its end."""
        self._work(store, stop=_STEPS + 1)

    @operation
    def talk(self, store: Store) -> None:
        """Record a session with a run of one call, which a second call repeats from memory."""
        name = f"talk-{store.head.seq}"
        with Agent(store, "host").session(name) as session, session.run(name) as run:
            for _ in range(2):
                run.call("measure", _measure, memo=True, step=1)

    @operation
    def jot(self, store: Store) -> None:
        """Declare the slots of a clerk, and add a number to a list that keeps two."""
        notes = Agent(store, "clerk", memory=_MEMORY).slot("notes")
        notes.append(len(notes.history()))

    @operation
    def settle(self, store: Store) -> None:
        """Store a value in place of the last, as the result of a call that the run keeps."""
        agent = Agent(store, "clerk", memory=_MEMORY)
        with agent.run(f"settle-{store.head.seq}") as run:
            result = run.call("measure", _measure, step=1)
            assert result.ref is not None
            run.keep(result.ref, "prefs", "place")

    @operation
    def clear(self, store: Store) -> None:
        """Delete the kept value, and close what has expired."""
        agent = Agent(store, "clerk", memory=_MEMORY)
        if "place" in agent.slot("prefs").keys():  # noqa: SIM118 - a slot is no mapping
            agent.slot("prefs").delete("place")
        agent.sweep()

    @operation
    def grow(self, store: Store) -> None:
        """Propose a part of the scaffold, or judge the proposal that is open."""
        agent = Agent(store, "clerk")
        opened = [each for each in agent.proposals() if each.status == "open"]
        if not opened:
            agent.propose(f"tool {store.head.seq}", target="scaffold/tools")
            return
        judge(store, opened[0], "reject" if store.head.seq % 3 else "approve", actor="ann")

    @staticmethod
    def _work(store: Store, *, stop: int) -> None:
        agent = Agent(store, "surveyor")
        opened = [each for each in agent.runs() if each.status == "open"]
        start = _start(opened[-1]) if opened else len(agent.runs())
        run = agent.run(f"s-{start}", inputs={"start": start}, replay=True)
        with suppress(_Killed, LookupError), run as handle:
            survey(handle, start, stop)

    def check(self, store: Store) -> None:
        """Check that calls and results belong together, and execute every run again."""
        agent = Agent(store, "surveyor")
        for activity in agent.runs():
            _check_again(agent, activity)
        opened = [each for each in agent.runs() if each.status == "open"]
        assert len(opened) <= 1, f"{len(opened)} open runs"
        _check_calls(store)
        _check_slots(store)
        _check_verdicts(store)


def _check_slots(store: Store) -> None:
    """Check that every value has its declaration, and that a list lost none but its oldest."""
    clerk = Agent(store, "clerk")
    values = list(store.frames(Filter(kind="value", include_superseded=True, include_deleted=True)))
    if not values:
        return
    notes = clerk.slot("notes")
    numbers = [item.value for item in notes.history()]
    assert numbers == list(range(len(numbers))), f"the notes {numbers}"
    current = [item.value for item in notes.items()]
    assert current == numbers[-_NOTES_MAX:], f"{current} of {numbers}"
    kept = [frame for frame in values if frame.active and frame.uri]
    assert len(kept) <= 1, "two values of one key"
    for item in clerk.slot("prefs").items():
        assert item.value == _measure(1), "another value than the result"


def _check_verdicts(store: Store) -> None:
    """Check that each verdict is on what its person saw, and that each proposal has the last."""
    proposals = Agent(store, "clerk").proposals()
    assert sum(each.status == "open" for each in proposals) <= 1, "two open proposals"
    last: dict[int, str] = {}
    for event in store.log():
        if isinstance(event.body, Judge):
            assert event.actor == "ann", f"verdict {event.seq} has no person"
            last[event.body.proposal] = event.body.verdict
            [judged] = [each for each in proposals if each.id == event.body.proposal]
            assert event.body.content == judged.content, f"verdict {event.seq} on other content"
    for each in proposals:
        expected = _STATUS[last.get(each.id)]
        assert each.status == expected, f"proposal {each.id} is {each.status}, not {expected}"


def _check_calls(store: Store) -> None:
    """Check that the frames of results are exactly those that calls of the same batch name."""
    frames: set[int] = set()
    named: set[int] = set()
    for event in store.log():
        body = event.body
        if isinstance(body, PutFrame) and body.kind == "tool_result":
            frames.add(event.seq)
        elif isinstance(body, RecordCall):
            named.update(body.results)
            first = event.header.first_seq
            assert all(first <= result < event.seq for result in body.results), (
                f"call {event.seq} has a result of another batch"
            )
    assert frames == named, f"{len(frames)} results, {len(named)} of them of calls"


def _start(activity: Activity) -> int:
    return int(activity.name.removeprefix("s-"))


def _check_again(agent: Agent, activity: Activity) -> None:
    rerun = agent.rerun(activity.name, survey)
    expected = "incomplete" if activity.status == "open" else "same"
    assert rerun.outcome == expected, f"run {activity.name} is {rerun.outcome}: {rerun}"
    status = "failed" if _start(activity) % 4 == 0 else "done"
    assert activity.status in ("open", status), f"run {activity.name} is {activity.status}"
