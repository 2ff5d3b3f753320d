"""Which frames are memories: a search and a context leave out frames about a change."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Filter
from cerata.agents import judge
from cerata.memory.search.reads import SearchReads

SOUL = "I keep my word."
LIE = "I lie when the truth would hurt Anna."
QUESTION = "what about the truth that would hurt Anna?"


@pytest.fixture
def store() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        store.remember(SOUL, kind="identity", uri="identity:SOUL")
        yield store


def _texts(store: SearchReads) -> str:
    """Return every text that a question reaches without a filter by kind."""
    hits = [
        *store.search(QUESTION),
        *store.search(QUESTION, where=Filter(include_superseded=True, include_deleted=True)),
        *store.search(cerata.query("truth OR Anna")),
        *store.search(QUESTION, where=~Filter(kind="identity")),
        *store.search(QUESTION, where=~Filter(kind="proposal")),
    ]
    contexts = [
        store.recall(QUESTION),
        store.recall(QUESTION, floor=False, layout=cerata.Layout(neighbours=2)),
        store.recall("", floor=False),
        store.recall(cerata.query("NOT tea")),
    ]
    return "\n".join([*(hit.text for hit in hits), *(context.text for context in contexts)])


def test_a_proposal_is_no_memory_in_any_state(store: cerata.Store) -> None:
    """A rejected proposal was recalled as if the agent had it in mind."""
    agent = cerata.Agent(store, "w")
    agent.propose(LIE)
    states: list[SearchReads] = [store.at("HEAD")]
    for verdict in ("reject", "approve"):
        try:
            judge(store, agent.proposals()[0], verdict, actor="anna")
        except cerata.Conflict:
            # The gates of an approval.
            continue
        states.append(store.at("HEAD"))
    store.put_frame(
        f"NO: {LIE}",
        kind="assessment",
        metadata={"task": "align"},
        options=cerata.PutOptions(track="w"),
    )
    with store.transaction():
        store.put_frame(f"{LIE} Always.", kind="proposal", metadata={"target": "identity"})
        assert "hurt" not in _texts(store)
    for state in (store, *states):
        assert "hurt" not in _texts(state)
    with agent.session("s") as session:
        session.exchange("hello", "ok")
        assert "hurt" not in str(session.recall(QUESTION))
        assert "I lie" not in str(session.assemble(QUESTION, max_tokens=2_000))


def test_a_filter_by_its_kind_finds_a_proposal(store: cerata.Store) -> None:
    """A person looks for what was proposed."""
    cerata.Agent(store, "w").propose(LIE)
    of_kind = Filter(kind="proposal")
    assert [hit.text for hit in store.search(QUESTION, where=of_kind)] == [LIE]
    assert [hit.text for hit in store.search(QUESTION, where=of_kind | Filter(kind="x"))] == [LIE]
    assert [hit.text for hit in store.search(cerata.query("kind:proposal truth"))] == [LIE]
    assert LIE in store.recall(QUESTION, where=of_kind).text
    assert [frame.text for frame in store.frames(of_kind)] == [LIE]


def test_proposals_change_no_score(store: cerata.Store) -> None:
    """They do not count in the statistics of words, so a view and its store have equal scores."""
    store.put_frame("Anna told the truth.")
    before = [(hit.id, hit.score) for hit in store.search(QUESTION)]
    cerata.Agent(store, "w").propose(LIE)
    assert [(hit.id, hit.score) for hit in store.search(QUESTION)] == before
    explanation = store.history.explain(store.search(QUESTION)[0])
    assert explanation is not None


def test_a_superseded_summary_is_no_memory(store: cerata.Store) -> None:
    """A summary that was written again has one version in a context."""
    uri = "summary:main/chat/2026-01-01"
    store.remember("Anna was hurt by the truth on Monday.", kind="summary", uri=uri)
    store.remember("Anna heard the truth on Monday.", kind="summary", uri=uri)
    assert "hurt by" not in store.recall(QUESTION).text
    assert "hurt by" not in str([hit.text for hit in store.search(QUESTION)])


def test_facts_that_contradict_each_other_are_marked(store: cerata.Store) -> None:
    """A model took the first of two values that cannot both be true for the truth."""
    store.graph.declare("lives in", functional=True)
    start = "2020-01-01"
    rome = store.assert_fact("anna", "lives in", "Rome", valid_from=start)
    alone = store.at(rome)
    oslo = store.assert_fact("anna", "lives in", "Oslo", valid_from=start)
    store.assert_fact("anna", "likes", "tea", valid_from=start)
    store.assert_fact("anna", "likes", "milk", valid_from=start)
    text = store.recall("what about anna?").text
    assert f"anna · lives in · Rome, since {start} (contradicts #{oslo.id})" in text
    assert f"anna · lives in · Oslo, since {start} (contradicts #{rome.id})" in text
    assert text.count("contradicts") == 2
    assert "contradicts" not in alone.recall("what about anna?").text
    with cerata.Agent(store, "w").session("s") as session:
        session.exchange("hello", "ok")
        shown = session.assemble("where does anna live?", max_tokens=2_000).text
        assert f"(contradicts #{oslo.id})" in shown
    store.retract_fact(oslo)
    assert "contradicts" not in store.recall("what about anna?").text
