"""Crashed agents: every call of a run is whole, and the run can be executed again."""

import pytest

from cerata.agents import judge
from cerata.agents.agent import Agent
from cerata.engine.events import PutFrame
from cerata.fault_injection.judging.campaign import Campaign
from cerata.fault_injection.stories.store_stories import Judge, prepared_image, record_workload
from cerata.memory.store import open_store

from ..crash.report.budgets import SHARE
from ..crash.runs import Runs


@pytest.mark.slow("the crash gate of each change tries these stories")
def test_every_crash_of_a_run_leaves_whole_calls() -> None:
    """The run dies after a call, is continued, and ends; each of its writes is crashed."""
    judge = Judge(Runs)
    base = prepared_image(Runs())
    story = record_workload(Runs(), ("half", "kill", "finish"), base)
    judge.model = story.model
    campaign = Campaign(judge.open, SHARE.plan, failures_max=2)
    assert campaign.check(story).failures == []
    assert campaign.tally.states > 100
    assert judge.asked > 5


def test_a_result_without_its_call_is_seen() -> None:
    """The check above, seen failing."""
    with open_store(":memory:") as store:
        workload = Runs()
        workload.prepare(store)
        workload.check(store)
        store.append(PutFrame(text="42", kind="tool_result"))
        with pytest.raises(AssertionError, match="results"):
            workload.check(store)


def test_every_crash_of_a_verdict_leaves_what_a_person_saw() -> None:
    """A proposal is put, and judged by its person; each of the writes is crashed."""
    judge = Judge(Runs)
    base = prepared_image(Runs())
    story = record_workload(Runs(), ("grow", "kill", "grow", "grow"), base)
    judge.model = story.model
    campaign = Campaign(judge.open, SHARE.plan, failures_max=2)
    assert campaign.check(story).failures == []
    assert campaign.tally.states > 50


def test_a_verdict_of_another_person_is_seen() -> None:
    """The check above, seen failing."""
    with open_store(":memory:") as store:
        workload = Runs()
        workload.prepare(store)
        workload.grow(store)
        workload.grow(store)
        workload.check(store)
        [proposal] = Agent(store, "clerk").proposals()
        judge(store, proposal, "revoke", actor="eve")
        with pytest.raises(AssertionError, match="no person"):
            workload.check(store)
