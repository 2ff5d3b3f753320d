"""Handoffs and lists show the mode, the title and the project of a session."""

import cerata


def test_a_handoff_has_the_mode_the_title_and_the_project_of_its_session() -> None:
    """It showed the mode group, which holds several modes, and neither title nor project."""
    with cerata.open(":memory:") as store:
        agent = cerata.Agent(store, "w")
        with agent.session("s-1", thread="taxes", mode="booth", project="apollo") as session:
            session.exchange("Where are the receipts of May?", "In the blue box.")
            title = session.title
        before = store.at("HEAD")
        with agent.session("s-2", thread="other", project="gemini") as session:
            session.exchange("hello", "ok")
        with agent.session("s-3", thread="taxes") as session:
            session.exchange("And of June?", "In the red box.")
        past = agent.at(before).handoff("taxes")
        assert (past.mode, past.mode_group) == ("booth", "chat")
        assert (past.title, past.project) == (title, "apollo")
        assert str(past).startswith('Session s-1, thread taxes, mode booth, project "apollo".')
        assert 'Title: "Where are the receipts of May?".' in str(past)
        assert {3, 4, 5} <= set(past.sources)
        now = agent.handoff("taxes")
        assert (now.session, now.mode, now.title, now.project) == (
            "s-3",
            "chat",
            "And of June?",
            None,
        )
        assert agent.handoff("nothing").mode is None
