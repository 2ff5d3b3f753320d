"""Previews: the context of a session that is not entered is that of the session."""

import cerata
from cerata import Agent, Store
from cerata.agents.contexts.session_contexts import NEW_SESSION, preview_of
from cerata.agents.session import Session
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot

from ...clocks import StandingClock
from .test_assembly import lead_a_life

QUESTION = "When is the deadline of the taxes?"


def of_agent(store: Store) -> Snapshot:
    return snapshot_of(store).within({"tenant": "default"})


def entered(session: Session) -> str:
    return session.assemble(QUESTION, max_tokens=2_000, blocks="all", record=False).text


def previewed(store: Store, session: str | None, thread: str | None = None) -> str:
    preview = preview_of(
        of_agent(store),
        "wyatt",
        QUESTION,
        session=session,
        max_tokens=2_000,
        blocks="all",
        timezone="Europe/Rome",
        thread=thread,
    )
    return preview.assembly.text


def test_a_preview_is_the_context_of_the_session(store: Store, clock: StandingClock) -> None:
    """Of a new one, of one with an exchange, and of one that was entered again after a crash."""
    agent = lead_a_life(store, clock)
    before = previewed(store, None, thread="taxes")
    session = agent.session("s9", thread="taxes")
    assert before.replace(NEW_SESSION, "s9") == entered(session)
    assert previewed(store, "s9") == entered(session)
    session.exchange("No, I meant the boat.", "The boat is ready.")
    assert previewed(store, "s9") == entered(session)
    again = agent.session("s9", thread="taxes")
    assert again.resumed == "crashed"
    assert previewed(store, "s9") == entered(again)
    assert preview_of(of_agent(store), "wyatt", QUESTION, session="s9").resumed == "crashed"


def test_a_preview_has_the_mode_and_the_scope_of_the_session(
    store: Store, clock: StandingClock
) -> None:
    """The mode of the newest message, and the user for whom the session was opened."""
    agent: Agent = lead_a_life(store, clock)
    session = agent.session("c", mode="code", user_id="u1")
    session.message("user", "The build fails.")
    preview = preview_of(of_agent(store), "wyatt", QUESTION, session="c", timezone="Europe/Rome")
    assert preview.mode == "code"
    assert preview.assembly.text == session.assemble(QUESTION, max_tokens=6_000, record=False).text
    assert "The build fails." in preview.assembly.text


def test_a_preview_of_the_past_is_that_of_then(store: Store, clock: StandingClock) -> None:
    """Nothing later shows."""
    agent = lead_a_life(store, clock)
    basis = store.head.seq
    then = previewed(store, None, thread="taxes")
    agent.session("s9", thread="taxes").exchange("Sell the boat.", "Sold.")
    past: cerata.View = store.at(basis)
    preview = preview_of(
        snapshot_of(past).within({"tenant": "default"}),
        "wyatt",
        QUESTION,
        thread="taxes",
        max_tokens=2_000,
        blocks="all",
        timezone="Europe/Rome",
    )
    assert preview.assembly.text == then
