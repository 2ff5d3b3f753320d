"""A share of the sessions of `canaries`, and proof that the check sees a foreign word."""

import cerata
from cerata import Agent

from . import canaries


def test_no_mode_group_shows_a_word_of_another() -> None:
    result = canaries.run(120, seed=2, contexts_each=4)
    assert result.faults == []
    assert set(result.texts) == {
        *("contexts", "handoffs", "inquiries", "recalls", "reflections", "summaries", "topics"),
    }
    assert min(result.texts.values()) >= 9
    assert result.canaries > 500
    assert result.shared > 0


def test_a_word_of_another_group_is_seen() -> None:
    """In a summary and in a reflection that a fault wrote into the wrong group."""
    word = canaries.canary("code", 7)
    scope = {"tenant": "default", "thread": "main", "mode": "chat"}
    result = canaries.Result()
    with cerata.open(":memory:") as store:
        agent = Agent(store, canaries.AGENT)
        agent.session("s").exchange("Hello.", f"About {canaries.canary('chat', 1)}.")
        store.put_frame(
            f"It is {word}.",
            kind="summary",
            uri="summary:main/chat/2026-01-07",
            options=cerata.PutOptions(track=canaries.AGENT, scope=scope),
        )
        store.put_frame(
            f"And {word}.",
            kind="reflection",
            options=cerata.PutOptions(track=canaries.AGENT, scope=scope),
        )
        canaries.look_at_lines(store, agent, result)
    assert result.faults == [f"summaries of chat has {word}", f"reflections of chat has {word}"]
    assert result.canaries == 1
