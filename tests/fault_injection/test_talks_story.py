"""Crashed conversations: every exchange is whole, and every recorded context can be made again."""

import pytest

from cerata.agents.agent import Agent
from cerata.engine.events import PutFrame, RecallContext
from cerata.fault_injection.judging.campaign import Campaign
from cerata.fault_injection.stories.store_stories import Judge, prepared_image, record_workload
from cerata.memory.store import open_store

from ..crash.report.budgets import SHARE
from ..crash.talks import Talks


@pytest.mark.slow("the crash gate of each change tries these stories")
@pytest.mark.parametrize("acts", [("say", "kill", "ask"), ("sum_up", "ask", "say")])
def test_every_crash_of_a_conversation_leaves_whole_exchanges(acts: tuple[str, ...]) -> None:
    """Messages, a context and a summary; each of the writes is crashed."""
    judge = Judge(Talks)
    base = prepared_image(Talks())
    story = record_workload(Talks(), acts, base)
    judge.model = story.model
    campaign = Campaign(judge.open, SHARE.plan, failures_max=2)
    assert campaign.check(story).failures == []
    assert campaign.tally.states > 100
    assert judge.asked > 2


def test_half_an_exchange_is_seen() -> None:
    """The check above, seen failing."""
    with open_store(":memory:") as store:
        workload = Talks()
        workload.prepare(store)
        workload.check(store)
        store.append(PutFrame(text="So?", kind="message", role="user", track="wyatt"))
        with pytest.raises(AssertionError, match="half"):
            workload.check(store)


def test_a_handoff_that_is_shown_twice_is_seen() -> None:
    """The check above, seen failing."""
    with open_store(":memory:") as store:
        workload = Talks()
        workload.prepare(store)
        workload.ask(store)
        workload.check(store)
        [shown] = [body for event in store.log() if isinstance(body := event.body, RecallContext)][
            :1
        ]
        store.append(shown)
        with pytest.raises(AssertionError, match=r"twice|different"):
            workload.check(store)


def test_a_summary_without_its_call_is_seen() -> None:
    """The check above, seen failing."""
    with open_store(":memory:") as store:
        workload = Talks()
        workload.prepare(store)
        workload.sum_up(store)
        workload.check(store)
        assert Agent(store, "wyatt").summaries("taxes")
        store.append(PutFrame(text="A day.", kind="summary", track="wyatt"))
        with pytest.raises(AssertionError, match="summaries"):
            workload.check(store)
