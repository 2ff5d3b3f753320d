"""The enumeration and the oracle, tried on a toy log: right it passes, wrong it is caught."""

import pytest

from cerata.fault_injection.cases import case_of, decode_case, encode_case, replay_case
from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign, Opener, Story, Tally
from cerata.fault_injection.judging.oracle import LogLike
from cerata.fault_injection.simulation.disk import SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World

from .toy import ToyBugs, ToyLog, toy_model

PAYLOADS = [b"one", b"two" * 300, b"three" * 20, b"", b"five" * 500]


def story(bugs: ToyBugs) -> Story:
    """Append the payloads, acknowledging each as the toy returns."""
    world = World()
    process = world.disk.process("writer")
    log = ToyLog.open(world.environment(process), "toy", bugs)
    for payload in PAYLOADS:
        world.disk.acknowledge(log.append(payload))
    return Story(world.disk.trace, 1, "toy", toy_model(PAYLOADS), "toy")


def crash(bugs: ToyBugs) -> Tally:
    def opener(world: World, process: SimulatedProcess, path: str) -> LogLike:
        return ToyLog.open(world.environment(process), path, bugs)

    return Campaign(opener, Plan(seed=1)).check(story(bugs))


def test_a_correct_toy_survives_every_crash_state() -> None:
    """The harness raises no false alarm, and counts what it did."""
    tally = crash(ToyBugs())
    assert tally.failures == []
    assert tally.epochs == len(PAYLOADS) + 1
    assert tally.states > tally.distinct > 100


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        (ToyBugs(ack_before_sync=True), "O1"),
        (ToyBugs(sync_every_second=True), "O1"),
        (ToyBugs(body_unchecked=True), "O2"),
        (ToyBugs(length_unchecked=True, body_unchecked=True), "O2"),
    ],
    ids=["ack before sync", "sync every second", "body unchecked", "length unchecked"],
)
def test_a_wrong_toy_is_caught(bug: ToyBugs, rule: str) -> None:
    """Each planted bug breaks the rule that forbids it."""
    assert rule in {failure.finding.rule for failure in crash(bug).failures}


def test_a_failure_is_saved_and_replays_without_its_workload() -> None:
    """A case file alone shows the failure again, and shows when it is gone."""
    (failure, *_) = crash(ToyBugs(body_unchecked=True)).failures
    data = encode_case(case_of(failure, engine="toy"))
    case = decode_case(data)
    assert len(data) < 4_000
    assert "epoch" in case.choices

    def opener(bugs: ToyBugs) -> Opener:
        def opened(world: World, process: SimulatedProcess, path: str) -> LogLike:
            return ToyLog.open(world.environment(process), path, bugs)

        return opened

    again = replay_case(case, opener(ToyBugs(body_unchecked=True)))
    assert again is not None
    assert again.rule == failure.finding.rule
    assert replay_case(case, opener(ToyBugs())) is None
