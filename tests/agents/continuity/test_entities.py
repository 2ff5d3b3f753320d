"""Pending names and meta-patterns: the fit, the scores, and the end of a pending name."""

from datetime import timedelta

import pytest

from cerata import Agent, Entity, Store
from cerata.projections.columnar.times import to_datetime

from ...clocks import StandingClock

DAY_US = 24 * 3_600_000_000
START_US = 1_760_000_000_000_000


@pytest.fixture
def agent(store: Store) -> Agent:
    return Agent(store, "wyatt")


def two_annas(store: Store) -> None:
    store.graph.name("Anna Rossi")
    store.graph.name("Anna Bianchi")


def say(agent: Agent, text: str, *, days: float = 0) -> int:
    created = to_datetime(START_US) - timedelta(days=days)
    return agent.session("s").exchange(text, "Noted.", created=created).id


def test_a_name_that_fits_two_entities_is_pending_with_its_exchanges(
    agent: Agent, store: Store
) -> None:
    two_annas(store)
    first = say(agent, "Then I met Anna.", days=2)
    second = say(agent, "Did Anna call?")
    [name] = agent.pending()
    assert (name.name, name.exchanges) == ("Anna", (second, first))
    assert [each.entity for each in name.candidates] == ["Anna Rossi", "Anna Bianchi"]
    assert {each.score for each in name.candidates} == {0.5}


@pytest.mark.parametrize(
    "text",
    [
        *("Then Anna Rossi called.", "Then Anna Rossi's mother called.", "Then Rossi called."),
        *("Anna", "Then anna called.", "THEN ANNA CALLED.", "Then Annabel called."),
    ],
)
def test_a_whole_name_or_a_word_without_a_name_is_not_pending(
    agent: Agent, store: Store, text: str
) -> None:
    two_annas(store)
    say(agent, text)
    assert agent.pending() == []


def test_a_shared_alias_is_pending_until_one_entity_has_it(agent: Agent, store: Store) -> None:
    store.graph.name("Anna Rossi", aliases=["the Captain"])
    store.graph.name("Bo Verdi", aliases=["the Captain", "Skipper"])
    store.graph.name("Cy Neri", aliases=["Skipper"])
    say(agent, "I saw Skipper today.")
    [name] = agent.pending()
    assert [each.entity for each in name.candidates] == ["Bo Verdi", "Cy Neri"]
    store.graph.merge("Cy Neri", "Bo Verdi")
    assert agent.pending() == []


def test_an_alias_of_one_entity_settles_a_name_that_begins_two(agent: Agent, store: Store) -> None:
    two_annas(store)
    say(agent, "Then I met Anna.")
    before = store.head.seq
    store.graph.name("Anna Rossi", aliases=["Anna"])
    assert agent.pending() == []
    assert [each.name for each in agent.at(before).pending()] == ["Anna"]


def test_sightings_raise_a_score_by_age_company_and_count(agent: Agent, store: Store) -> None:
    """Scores of .5 + .3 + .1 and .5 + .1 + .2 + .1 are equal, so neither entity is taken."""
    two_annas(store)
    store.graph.name("Otto Neri")
    for days in range(20, 9, -1):
        say(agent, "So Anna Bianchi met Otto Neri.", days=days)
    say(agent, "So Anna Rossi met Otto Neri.", days=5)
    say(agent, "Will Otto Neri see Anna?")
    [name] = agent.pending()
    rossi, bianchi = name.candidates
    assert (rossi.entity, rossi.score, rossi.together, rossi.sightings) == ("Anna Rossi", 0.9, 1, 1)
    assert (bianchi.entity, bianchi.score) == ("Anna Bianchi", 0.9)
    assert (bianchi.together, bianchi.sightings) == (11, 11)
    assert rossi.last_seen == to_datetime(START_US - 5 * DAY_US)
    say(agent, "So Anna Rossi met Otto Neri.", days=4)
    assert agent.pending() == [], "together twice: 1.0"


def test_the_best_candidate_is_taken_at_80_unless_another_ties(agent: Agent, store: Store) -> None:
    two_annas(store)
    say(agent, "So Anna Rossi called.", days=1)
    say(agent, "Did Anna call?", days=0.5)
    assert agent.pending() == [], "seen within 7 days: .8"
    say(agent, "So Anna Bianchi called.", days=0.4)
    say(agent, "Did Anna call?")
    [name] = agent.pending()
    assert [each.score for each in name.candidates] == [0.8, 0.8]


def test_a_taken_name_is_a_sighting_of_the_entity(agent: Agent, store: Store) -> None:
    two_annas(store)
    say(agent, "So Anna Rossi called.", days=12)
    say(agent, "Did Anna call?", days=6)
    say(agent, "Did Anna call?")
    assert agent.pending() == []


def test_facts_before_an_exchange_are_sightings_and_later_ones_are_not(
    agent: Agent, store: Store, clock: StandingClock
) -> None:
    two_annas(store)
    store.assert_fact("Anna Rossi", "knows", Entity("Otto Neri"))
    clock.time_us += DAY_US
    say(agent, "Did Anna call?", days=-1)
    assert agent.pending() == []
    say(agent, "Did Anna call?", days=3)
    [name] = agent.pending()
    assert [each.sightings for each in name.candidates] == [0, 0]


def test_a_pending_name_is_listed_for_30_days(
    agent: Agent, store: Store, clock: StandingClock
) -> None:
    two_annas(store)
    say(agent, "Did Anna call?")
    clock.time_us += 30 * DAY_US
    assert len(agent.pending()) == 1
    clock.time_us += 1
    assert agent.pending() == []


def test_no_entity_or_fact_of_another_tenant_or_user_counts(store: Store) -> None:
    """Each owner has one Anna and five facts; together they would make a pending name."""
    owners = [{"tenant": "a", "user_id": "u"}, {"tenant": "a", "user_id": "v"}, {"tenant": "b"}]
    for number, owner in enumerate(owners):
        with store.scoped(owner) as part:
            part.graph.name(f"Anna Number{number}")
            say(Agent(part, "wyatt"), "Then I met Anna.")
            if number:
                families(part, 5)
    for owner, patterns in zip(owners, (0, 1, 1), strict=True):
        with store.scoped(owner) as part:
            agent = Agent(part, "wyatt")
            assert agent.pending() == []
            assert [each.yields for each in agent.meta_patterns()] == [5] * patterns


# --- meta-patterns -------------------------------------------------------------------------------


def families(store: Store, count: int) -> None:
    for number in range(count):
        parent = Entity(f"parent {number}")
        store.assert_fact(f"child {number}", "child of", parent, confidence=0.5)
        store.assert_fact(f"parent {number}", "lives in", Entity("Rome"))


def test_two_predicates_that_follow_each_other_are_a_meta_pattern(
    agent: Agent, store: Store
) -> None:
    families(store, 5)
    [pattern] = agent.meta_patterns()
    assert (pattern.first, pattern.second, pattern.yields) == ("child of", "lives in", 5)
    assert (pattern.overlap, pattern.confidence, pattern.score) == (0, 0.75, 3.75)
    assert [each.facts for each in pattern.evidence] == [(1, 2), (3, 4), (5, 6)]
    assert pattern.evidence[0].to_dict() == {
        "start": "child 0",
        "middle": "parent 0",
        "end": "Rome",
        "facts": [1, 2],
    }


def test_a_predicate_with_four_known_facts_is_no_part_of_a_pattern(
    agent: Agent, store: Store
) -> None:
    families(store, 5)
    basis = store.head.seq
    store.retract_fact(1)
    assert agent.meta_patterns() == []
    assert len(agent.at(basis).meta_patterns()) == 1


def test_pairs_that_a_fact_joins_lower_the_score_and_end_the_pattern(
    agent: Agent, store: Store
) -> None:
    families(store, 10)
    for number in range(9):
        store.assert_fact("Rome", f"home {number} of", Entity(f"child {number}"))
    [pattern] = agent.meta_patterns()
    assert pattern.overlap == pytest.approx(0.9)
    assert pattern.score == pytest.approx(10 * 0.1 * 0.75)
    store.assert_fact("child 9", "born in", Entity("Rome"))
    assert agent.meta_patterns() == []


def test_no_chain_leads_back_or_through_a_hub(agent: Agent, store: Store) -> None:
    for number in range(101):
        store.assert_fact(f"guest {number}", "visits", Entity("Hotel"))
    for number in range(5):
        store.assert_fact("Hotel", "hosts", Entity(f"guest {number}"))
        store.assert_fact(f"guest {number}", "thanks", Entity("Hotel"))
    [pattern] = agent.meta_patterns()
    assert (pattern.first, pattern.second) == ("thanks", "hosts")
    assert pattern.yields == 5 * 4
