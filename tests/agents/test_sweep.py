"""Sweeps of agents, runs that another process ended, and what a kept value follows from."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import cerata
from cerata import (
    Agent,
    Closed,
    InvalidInput,
    MemorySpec,
    NotFound,
    ReadOnly,
    Store,
    conversation_memory,
    scratchpad,
)
from cerata.engine.disk.environment import Environment

from ..clocks import StandingClock

HOUR = 3_600_000_000
MEMORY = {
    "talk": conversation_memory(ttl="2h"),
    "prefs": MemorySpec(),
    "scratchpad": scratchpad(),
}


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(1_760_000_000_000_000)


@pytest.fixture
def store(clock: StandingClock) -> Any:
    with cerata.open(":memory:", environment=replace(Environment(), clock=clock)) as opened:
        yield opened


def double(number: int) -> int:
    return 2 * number


def fail() -> None:
    raise ValueError


def status(agent: Agent) -> list[tuple[str, str]]:
    activities = [*agent.runs(), *agent.sessions()]
    return [(activity.name, activity.status) for activity in activities]


def cause_of(store: Store, seq: int) -> int | None:
    return next(event.causation for event in store.log() if event.seq == seq)


# --- sweep ---------------------------------------------------------------------------------------


def test_a_sweep_closes_expired_frames_of_this_agent_alone(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "analyst", memory=MEMORY)
    agent.slot("talk", user_id="u1").append("hello")
    agent.slot("prefs").set("risk", 3)
    other = Agent(store, "analyst2", memory=MEMORY)
    other.slot("talk", user_id="u1").append("other")
    clock.time_us += 3 * HOUR
    before = store.head.seq
    assert agent.sweep() == cerata.AgentSweep(frames=1, activities=0)
    assert [event.reason for event in store.log() if event.seq > before] == ["expired"]
    assert agent.slot("prefs").get("risk") == 3
    assert [item.value for item in agent.slot("talk", user_id="u1").history()] == ["hello"]
    assert agent.sweep() == cerata.AgentSweep(frames=0, activities=0)
    assert other.sweep().frames == 1


def test_a_sweep_ends_runs_without_an_event_for_their_ttl(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "analyst", memory=MEMORY)
    agent.run("old").call("double", double, number=1)
    clock.time_us += HOUR // 2
    agent.run("new")
    # The batches of a standing clock are recorded a microsecond apart.
    clock.time_us += HOUR // 2 + 10
    sweep = agent.sweep()
    assert sweep.activities == 1
    assert status(agent) == [("old", "left"), ("new", "open")]
    # The frame of the run is deleted, as by every end.
    assert [frame.title for frame in store.frames()] == ["new"]


def test_a_run_without_a_ttl_is_left_after_a_day(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "analyst", memory={"pad": scratchpad(ttl=None)})
    agent.run("r1")
    clock.time_us += 24 * HOUR - 10
    assert agent.sweep().activities == 0
    clock.time_us += 20
    assert agent.sweep().activities == 1


def test_an_event_of_a_run_is_one_of_its_session(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "analyst", memory={"pad": scratchpad(ttl=None)})
    session = agent.session("s1", user_id="u1")
    run = session.run("r1")
    agent.session("s2")
    clock.time_us += 20 * HOUR
    run.call("double", double, number=2)
    clock.time_us += 20 * HOUR
    assert agent.sweep().activities == 1
    assert status(agent) == [("r1", "open"), ("s1", "open"), ("s2", "left")]
    clock.time_us += 20 * HOUR
    # The end of the run is an event of the session, which waits for another day.
    assert agent.sweep().activities == 1
    assert status(agent) == [("r1", "left"), ("s1", "open"), ("s2", "left")]
    clock.time_us += 24 * HOUR
    assert agent.sweep().activities == 1
    with agent.session("s1", user_id="u1") as again:
        assert again.activity_id == session.activity_id


def test_a_sweep_keeps_to_the_scope_of_its_store(store: Store, clock: StandingClock) -> None:
    with store.scoped({"tenant": "acme"}) as acme, store.scoped({"tenant": "b"}) as other:
        for each in (acme, other):
            agent = Agent(each, "analyst", memory=MEMORY)
            agent.slot("talk", user_id="u1").append("hello")
            agent.run("r1")
        clock.time_us += 25 * HOUR
        assert Agent(acme, "analyst").sweep() == cerata.AgentSweep(1, 1)
        assert Agent(acme, "analyst").sweep() == cerata.AgentSweep(0, 0)
        assert Agent(other, "analyst").sweep() == cerata.AgentSweep(1, 1)


def test_a_view_of_the_past_sweeps_nothing(store: Store) -> None:
    agent = Agent(store, "analyst", memory=MEMORY)
    with pytest.raises(ReadOnly):
        agent.at(1).sweep()
    with store.transaction(), pytest.raises(InvalidInput):
        agent.sweep()


# --- a run that another process ended ------------------------------------------------------------


def _call(run: cerata.Run) -> object:
    return run.call("double", double, number=2)


def _call_in_secret(run: cerata.Run) -> object:
    return run.call("secret", double, secret=("return",), number=2)


def _put(run: cerata.Run) -> object:
    return run.put("note", 1)


@pytest.mark.parametrize("use", [_call, _call_in_secret, _put, cerata.Run.now, cerata.Run.random])
def test_an_ended_run_records_no_call(
    store: Store, clock: StandingClock, use: Callable[[cerata.Run], object]
) -> None:
    """Another process may have ended it, so the rule is checked under the lock."""
    agent = Agent(store, "analyst", memory=MEMORY)
    run = agent.run("r1")
    clock.time_us += 25 * HOUR
    assert agent.sweep().activities == 1
    seq = store.head.seq
    with pytest.raises(Closed, match="r1"):
        use(run)
    assert store.head.seq == seq


def test_an_error_of_a_call_in_an_ended_run_is_not_recorded(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "analyst", memory=MEMORY)
    run = agent.run("r1")
    clock.time_us += 25 * HOUR
    agent.sweep()
    seq = store.head.seq
    with pytest.raises(Closed):
        run.call("fail", fail)
    assert store.head.seq == seq


# --- put in a working slot, and keep -------------------------------------------------------------


def test_put_names_a_working_slot_with_its_own_cap_and_ttl(
    store: Store, clock: StandingClock
) -> None:
    memory = {
        "scratchpad": scratchpad(),
        "small": scratchpad(ttl="1m", max_size_mb=0.00001, auto_capture=False),
    }
    agent = Agent(store, "analyst", memory=memory)
    with agent.run("r1") as run:
        run.put("large", "x" * 30)
        first = run.put("note", "12345", slot="small")
        run.put("note", "67890", slot="small")
        # Ten bytes: the second note evicts the first, and not the result of the other slot.
        assert [item.ref for item in run.refs()] == ["$ref:large.1", "$ref:note.2"]
        assert store.frame(first.id or 0).track == "analyst/small"
        with pytest.raises(InvalidInput, match="at most"):
            run.put("note", "x" * 30, slot="small")
        with pytest.raises(NotFound, match="smal"):
            run.put("note", 1, slot="smal")
        clock.time_us += HOUR // 10
        assert [item.ref for item in run.refs()] == ["$ref:large.1"]


def test_a_kept_value_follows_from_the_call_that_made_it(store: Store) -> None:
    agent = Agent(store, "analyst", memory=MEMORY)
    with agent.run("r1") as run:
        result = run.call("double", double, number=21)
        [call] = [event.seq for event in store.log(type="recordCall")]
        kept = run.keep(result.ref or "", "prefs", "answer")
        assert cause_of(store, kept.id) == call
        listed = run.keep(result.ref or "", "talk", user_id="u1")
        assert cause_of(store, listed.id) == call
        with pytest.raises(InvalidInput, match="a key is for a dict"):
            run.keep(result.ref or "", "talk", "answer", user_id="u1")
        with pytest.raises(InvalidInput, match="expected a text"):
            run.keep(result.ref or "", "prefs")
    assert agent.slot("prefs").get("answer") == 42


def test_an_agent_function_declares_its_memory(store: Store) -> None:
    @cerata.agent("keeper", memory={"prefs": MemorySpec()})
    def keeper(run: cerata.Run, number: int) -> Any:
        result = run.call("double", double, number=number)
        run.keep(result.ref or "", "prefs", "answer")
        return result.value

    assert keeper(store, number=4) == 8
    assert Agent(store, "keeper", memory={"prefs": MemorySpec()}).slot("prefs").get("answer") == 8
    with pytest.raises(InvalidInput, match="tier"):
        cerata.agent("keeper", memory={"prefs": MemorySpec(tier="bogus")})


def test_a_session_with_a_new_message_is_not_abandoned(store: Store, clock: StandingClock) -> None:
    """A conversation of two days was ended between two messages of it."""
    agent = Agent(store, "analyst")
    session = agent.session("talk")
    clock.time_us += 23 * HOUR
    session.exchange("Are you there?", "I am.")
    clock.time_us += 2 * HOUR
    assert agent.sweep().activities == 0
    clock.time_us += 24 * HOUR
    assert agent.sweep().activities == 1
    assert status(agent) == [("talk", "left")]
