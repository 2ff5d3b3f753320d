"""Facts in searches and contexts: by the words of a question, and narrowed by a filter."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Entity, Filter, Store
from cerata.engine.events import PutFrame
from cerata.memory.facts.search import relevant_facts
from cerata.memory.snapshot.pending import PendingEvent
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.analyzer import term_of, words
from cerata.retrieval.word_kinds import content_words


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        store.put_frame("Lunch is at noon.")
        yield store


def shown(store: Store, question: str, **arguments: Any) -> list[int]:
    """Return the facts that a context shows."""
    facts = {fact.id for fact in store.facts(include_ended=True)}
    items = store.recall(question, **arguments).items
    return [item.id for item in items if item.id in facts]


# --- by words ------------------------------------------------------------------------------------


def test_a_context_has_the_fact_that_shares_the_words_of_a_question(store: Store) -> None:
    """The question names no entity, so only a frame about lunch was shown."""
    fact = store.assert_fact("staging", "database port", 5432)
    context = store.recall("which database port?")
    assert [item.id for item in context.items] == [fact.id]
    assert not context.fallback


def test_a_search_has_the_frames_of_a_fact_that_shares_the_words_of_a_question(
    store: Store,
) -> None:
    note = store.put_frame("It listens on 5432 there.")
    store.assert_fact("staging", "database port", 5432, evidence=[note])
    [hit] = store.search("which database port?")
    assert (hit.id, hit.lanes) == (note.id, ("facts",))


@pytest.mark.parametrize(
    "question",
    [
        "what is it about?",
        "which one do you know?",
        "which quantum port is coloured?",
        "does the port of Hamburg have a museum?",
        "",
        "?",
    ],
)
def test_a_question_of_other_words_brings_no_fact(store: Store, question: str) -> None:
    store.assert_fact("staging", "database port", 5432)
    store.assert_fact("somebody", "is about", "what you know")
    assert shown(store, question) == []


def test_only_facts_with_the_most_words_of_a_question_are_shown(store: Store) -> None:
    first = store.assert_fact("staging", "database port", 5432)
    second = store.assert_fact("production", "database port", 5433)
    store.assert_fact("staging", "cache port", 6379)
    assert shown(store, "the port of the database?") == [first.id, second.id]
    assert shown(store, "what is the staging database port?")[0] == first.id


def test_a_word_of_many_facts_brings_none_of_them(store: Store) -> None:
    """Of a predicate that every fact has, a question of this word alone selects nothing."""
    store.graph.assert_many(
        [(f"person {number}", "plays", f"game {number}") for number in range(40)]
    )
    rare = store.assert_fact("zoe", "sings", "opera")
    assert shown(store, "who plays?") == []
    assert shown(store, "who sings?") == [rare.id]
    few = store.assert_fact("max", "plays", "opera")
    assert shown(store, "who plays opera?") == [few.id, rare.id]


def test_facts_that_were_retracted_or_belong_to_another_tenant_count_for_nothing(
    store: Store,
) -> None:
    old = store.assert_fact("staging", "database port", 5432)
    before = store.history.view()
    store.retract_fact(old)
    store.assert_fact(
        "prod", "database port", 1, options=cerata.FactOptions(scope={"tenant": "other"})
    )
    assert shown(store, "which database port?") != [old.id]
    assert before.recall("which database port?").items[0].id == old.id
    other = store.history.view().within({"tenant": "other"})
    assert [str(hit.fact) for hit in _relevant(other, "which database port?")] == [
        "prod · database port · 1"
    ]


def _relevant(view: Any, question: str, where: Filter | None = None) -> Any:
    return relevant_facts(snapshot_of(view), question, where=where)


def test_pending_facts_are_found_by_their_words(store: Store) -> None:
    with store.transaction():
        store.assert_fact("staging", "database port", 5432)
        assert store.recall("which database port?").items[0].id == -1


@pytest.mark.parametrize("seed", range(8))
def test_the_shown_facts_are_those_of_a_model_in_plain_python(seed: int) -> None:
    """Of random facts, some repeated or retracted, at random points of the log."""
    dice = Random(seed)
    nouns = [f"noun{number}" for number in range(12)] + ["which", "the"]
    with cerata.open(":memory:") as store:
        bases = [0]
        for _ in range(dice.choice((6, 30, 120))):
            triple = [" ".join(dice.choices(nouns, k=dice.choice((1, 2)))) for _ in range(3)]
            receipt = store.assert_fact(*triple)
            if dice.random() < 0.2:
                store.assert_fact(*triple, confidence=0.5)
            if dice.random() < 0.2:
                store.retract_fact(receipt)
            bases.append(store.head.seq)
        for _ in range(12):
            view = store.at(dice.choice(bases))
            question = " ".join(dice.choices([*nouns, "unheard"], k=dice.choice((1, 2, 3, 5))))
            hits = relevant_facts(snapshot_of(view), question)
            by_words = {hit.fact.id for hit in hits if not hit.named}
            named = {hit.fact.id for hit in hits if hit.named}
            assert by_words == set(_modelled(view, question)) - named, question


def _modelled(view: Any, question: str) -> list[int]:
    facts = view.facts(include_ended=True)
    texts = {fact.id: set(map(term_of, words(str(fact)))) for fact in facts}
    terms = {term_of(word) for word in content_words(words(question))} - {None}
    frequent = {
        term
        for term in terms
        if sum(term in text for text in texts.values()) > max(16, len(facts) // 50)
    }
    sought = terms - frequent
    counts = {number: len(sought & text) for number, text in texts.items()}
    most = max(counts.values(), default=0)
    if not most or 2 * most < len(sought) or most < min(2, len(sought)):
        return []
    return [number for number, count in counts.items() if count == most][:50]


# --- with a filter -------------------------------------------------------------------------------


def test_a_filter_keeps_the_facts_that_a_passing_frame_supports(store: Store) -> None:
    """Any filter left out all facts."""
    work = store.put_frame("Staging has a database.", tags=["work"])
    home = store.put_frame("The kitchen has a port.", tags=["home"])
    both = store.assert_fact("staging", "database port", 5432, evidence=[home, work])
    store.assert_fact("boat", "database port", "Kiel", evidence=[home])
    bare = store.assert_fact("production", "database port", 5433)
    question = "which database port?"
    assert shown(store, question, where=Filter(tags=["work"])) == [both.id]
    assert shown(store, question, where=~Filter(tags=["home"])) == [both.id, bare.id]
    store.delete(work)
    assert shown(store, question, where=Filter(tags=["work"])) == [both.id]


def test_a_filter_narrows_the_facts_of_a_named_entity(store: Store) -> None:
    note = store.put_frame("Alice moved.", kind="move")
    moved = store.assert_fact("alice", "lives in", Entity("paris"), evidence=[note])
    store.assert_fact("alice", "likes", "tea")
    assert shown(store, "alice", where=Filter(kind="move")) == [moved.id]
    assert shown(store, "alice", where=Filter(kind="note")) == []


def test_a_filter_reads_the_frames_of_an_open_transaction(store: Store) -> None:
    with store.transaction():
        note = store.put_frame("Staging has a database.", tags=["work"])
        fact = store.assert_fact("staging", "database port", 5432, evidence=[note])
        store.assert_fact("prod", "database port", 5432)
        hits = _relevant(store.history.view(), "which database port?", Filter(tags=["work"]))
        assert [hit.fact.id for hit in hits] == [fact.id]


@pytest.mark.parametrize("seed", range(6))
def test_the_facts_that_pass_a_filter_are_those_of_a_model(seed: int) -> None:
    """With and without evidence, in two scopes; by tests of scopes, times, tags and metadata."""
    dice = Random(seed)
    with cerata.open(":memory:") as store:
        users: list[dict[str, str | int | bool]] = [{"user": "ann"}, {"user": "bob", "n": 1}]
        scopes: list[dict[str, str | int | bool]] = [{}, *users, {"n": True}]
        notes = [
            store.put_frame(
                f"note {number}",
                tags=dice.sample(["red", "blue"], k=dice.randrange(3)),
                metadata={"n": number} if dice.random() < 0.5 else {},
                options=cerata.PutOptions(scope=dice.choice(scopes)),
            )
            for number in range(12)
        ]
        for number in range(20):
            evidence = dice.sample(notes, k=dice.choice((0, 0, 1, 2)))
            store.assert_fact(
                "thing",
                "has",
                number,
                evidence=evidence,
                options=cerata.FactOptions(scope=dice.choice(scopes)),
            )
        store.delete(notes[0])
        middle = store.frame(notes[6]).recorded
        tests = [
            Filter(tags=["red"]),
            Filter(scope={"user": "ann"}),
            Filter(scope={"n": 1}),
            Filter(scope={"n": True}),
            Filter(recorded=(middle, None)),
            Filter(created=(None, middle)),
            Filter(content=(middle, None)),
            Filter(metadata={"n": (">", 3)}),
            Filter(metadata={"n": ("exists", False)}),
            Filter(kind="note", role="user"),
            Filter(uri_prefix="file:"),
            Filter(),
        ]
        for _ in range(40):
            where = dice.choice(tests)
            for _ in range(dice.randrange(3)):
                where = dice.choice(
                    (where & dice.choice(tests), where | dice.choice(tests), ~where)
                )
            view = store.history.view().within(dice.choice((None, {"user": "ann"})))
            hits = _relevant(view, "thing", where)
            frames = view.frames(
                where=where & Filter(include_deleted=True, include_superseded=True)
            )
            passing = {frame.id for frame in frames}
            expected = {
                fact.id
                for fact in view.facts()
                if (
                    any(place.frame in passing for place in fact.evidence)
                    if fact.evidence
                    else _passes_bare(fact, where)
                )
            }
            assert {hit.fact.id for hit in hits} == expected, where


def _passes_bare(fact: Any, where: Filter) -> bool:
    """Return whether an empty frame with the scope and time of a fact passes a filter.

    The frame has a kind, which the filters of this test never name.
    """
    projection = FramesProjection()
    recorded = to_microseconds(fact.known.start)
    scope = tuple(fact.scope.items())
    body = PutFrame(kind="absent")
    projection.apply([PendingEvent(1, PutFrame.wire_name, recorded, scope, body)])
    return bool(projection.snapshot().mask(where, 1)[0])
