"""Aliases: every call that takes the name of an entity takes its alias, as the basis has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import cerata
from cerata import Assertion, Entity, InvalidInput, NotFound
from cerata.memory.batch.writer import session_of
from cerata.memory.facts.english import EnglishFacts


@pytest.fixture
def store() -> Iterator[cerata.Store]:
    """Anna Rossi, with the alias Annie, lives in Rome."""
    with cerata.open(":memory:") as store:
        store.graph.name("Anna Rossi", kind="person", aliases=["Annie"])
        store.assert_fact("Anna Rossi", "lives in", Entity("Rome"))
        yield store


def _texts(store: cerata.Store | cerata.View, name: str = "Anna Rossi") -> list[str]:
    return [str(fact) for fact in store.facts(name, include_retracted=True)]


def test_every_read_of_an_entity_takes_an_alias(store: cerata.Store) -> None:
    """`facts("Annie")` was empty, though `resolve` knew her."""
    note = store.put_frame("Anna Rossi met Bob in Rome.")
    store.assert_fact("Anna Rossi", "met", Entity("Bob"), evidence=[note])
    store.graph.name("Roma Capitale")
    for name in ("Annie", "annie", " ANNIE. "):
        assert _texts(store, name) == _texts(store)
        assert store.graph.versions(name) == store.graph.versions("Anna Rossi")
        assert store.graph.entity(name) == store.graph.entity("Anna Rossi")
        assert len(store.facts(name, "met", Entity("Bob"))) == 1
        assert store.graph.search(Entity(name))[0].named == ("Anna Rossi",)
        graph = store
        assert [each.entity for each in graph.graph.neighbours(name)] == ["Rome", "Bob"]
        assert [each.entity for each in graph.graph.walk(name)] == ["Rome", "Bob"]
        assert len(graph.graph.paths(name, "Rome")) == len(graph.graph.paths("Bob", name)) == 1
        assert graph.graph.cooccurring(name) == graph.graph.cooccurring("Anna Rossi")
        assert store.history.blame(name) == store.history.blame("Anna Rossi")
        assert store.history.of(Entity(name)) == store.history.of(Entity("Anna Rossi"))
    store.graph.name("Rome", aliases=["The Eternal City"])
    assert len(store.facts(object=Entity("the eternal city"))) == 1
    assert len(store.facts("annie", object="The Eternal City")) == 1
    store.graph.declare("lives in", functional=True)
    rome = store.facts("Annie", "lives in")[0]
    assert rome.valid.start is not None
    store.assert_fact("Anna Rossi", "lives in", Entity("Oslo"), valid_from=rome.valid.start)
    assert len(store.graph.conflicts("Annie")) == 1


def test_every_write_about_an_alias_is_about_the_entity(store: cerata.Store) -> None:
    """An assertion about Annie made a second entity; the log now has the entity's own name."""
    store.assert_fact("Annie", "likes", "tea")
    store.graph.assert_many([("annie", "knows", Entity("Annie")), Assertion("Bob", "knows", "x")])
    with store.transaction() as tx:
        store.graph.name("Bob", aliases=["Bobby"])
        store.assert_fact("Bobby", "likes", Entity("Annie"))
    assert tx.receipt is not None
    assert [str(fact) for fact in store.facts("Bob")] == [
        "Bob · knows · x",
        "Bob · likes · Anna Rossi",
    ]
    assert _texts(store) == [
        "Anna Rossi · lives in · Rome",
        "Anna Rossi · likes · tea",
        "Anna Rossi · knows · Anna Rossi",
    ]
    right = store.correct_fact(store.facts("Bob", "likes")[0], object=Entity("Bobby"))
    assert store.graph.fact(right).object == Entity("Bob")
    assert not store.assert_fact("Annie", "likes", "tea").added
    store.retract_fact(store.facts("Annie", "likes")[0])
    assert not store.facts("Anna Rossi", "likes")
    assert [entity.name for entity in store.graph.entities()] == ["Anna Rossi", "Rome", "Bob"]
    store.put_frame("Annie works at Acme.")
    store.graph.extract(extractor=EnglishFacts())
    assert store.facts("Anna Rossi", "works at")[0].object == Entity("Acme")
    store.graph.name("A. Rossi")
    store.graph.merge("A. Rossi", into="Annie")
    assert store.graph.entity("A. Rossi").name == "Anna Rossi"


def test_a_later_alias_acts_from_its_event_on() -> None:
    """Reads resolve at their basis, and the log keeps the names of its time."""
    with cerata.open(":memory:") as store:
        before = store.assert_fact("Annie", "likes", "tea")
        store.assert_fact("Anna Rossi", "lives in", "Rome")
        given = store.graph.name("Anna Rossi", aliases=["Annie", "Ann"])
        past, present = store.at(before), store.at(given)
        assert _texts(past, "Annie") == ["Annie · likes · tea"]
        assert _texts(past, "Ann") == []
        # Annie is an entity, too: a read by the name returns the facts of both, as `resolve` does.
        assert _texts(present, "Annie") == ["Annie · likes · tea", "Anna Rossi · lives in · Rome"]
        assert _texts(present, "Ann") == ["Anna Rossi · lives in · Rome"]
        with pytest.raises(NotFound):
            past.graph.entity("Ann")
        assert present.graph.entity("Ann").name == "Anna Rossi"
        assert present.graph.entity("Annie").name == "Annie"
        # The name of an entity stays the name of that entity.
        store.assert_fact("Annie", "likes", "milk")
        store.assert_fact("Ann", "likes", "coffee")
        assert _texts(store) == ["Anna Rossi · lives in · Rome", "Anna Rossi · likes · coffee"]
        assert _texts(present) == _texts(store)[:1]


def test_an_alias_of_two_entities_is_refused_where_one_is_meant(store: cerata.Store) -> None:
    """A guess would be wrong half of the time; a list of facts may have both."""
    store.graph.name("Anna Bianchi", aliases=["annie"])
    store.assert_fact("Anna Bianchi", "lives in", "Oslo")
    assert len(store.facts("Annie")) == 2
    assert {each.entity for each in store.graph.neighbours("Annie")} == {"Rome"}
    seq = store.head.seq
    for call in (
        lambda: store.assert_fact("Annie", "likes", "tea"),
        lambda: store.assert_fact("Bob", "knows", Entity("Annie")),
        lambda: store.graph.entity("Annie"),
        lambda: store.graph.merge("Annie", into="Rome"),
        lambda: store.history.blame("Annie"),
    ):
        with pytest.raises(InvalidInput, match="is an alias of 2 entities: 'Anna Rossi', 'Anna B"):
            call()
    assert store.head.seq == seq
    store.put_frame("Annie works at Acme.")
    assert store.graph.extract(extractor=EnglishFacts()).found == 1


def test_an_alias_is_of_its_tenant_and_scope() -> None:
    """Tenants share nothing, aliases included."""
    with cerata.open(":memory:") as store:
        store.graph.name("Anna Rossi", aliases=["Annie"], scope={"tenant": "a"})
        for tenant in ("a", "b"):
            store.assert_fact(
                "Anna Rossi",
                "lives in",
                tenant,
                options=cerata.FactOptions(scope={"tenant": tenant}),
            )
            store.assert_fact(
                "Annie", "likes", tenant, options=cerata.FactOptions(scope={"tenant": tenant})
            )
        assert [fact.subject for fact in store.facts(predicate="likes")] == ["Anna Rossi", "Annie"]
        assert len(store.facts("Annie", "lives in")) == 1
        assert not store.scoped({"tenant": "b"}).facts("Annie", "lives in")
        scoped = store.scoped({"tenant": "a"})
        scoped.assert_fact("Annie", "owns", "a boat")
        assert scoped.facts("Anna Rossi", "owns")


def test_a_key_is_of_the_words_of_the_caller(store: cerata.Store) -> None:
    """A retry is the same call, though the alias is of two entities now."""
    first = store.assert_fact("Annie", "likes", "tea", options=cerata.FactOptions(key="k"))
    store.graph.name("Anna Bianchi", aliases=["Annie"])
    again = store.assert_fact("Annie", "likes", "tea", options=cerata.FactOptions(key="k"))
    assert (again.id, again.added) == (first.id, False)
    assert _texts(store)[-1] == "Anna Rossi · likes · tea"


def test_other_processes_see_an_alias(tmp_path: Path) -> None:
    """The look-up of aliases covers the events of other writers, and those of a reopened file."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as one, cerata.open(path) as other:
        one.assert_fact("Anna Rossi", "lives in", "Rome")
        other.graph.name("Anna Rossi", aliases=["Annie"])
        one.assert_fact("Annie", "likes", "tea")
        one.checkpoint()
    with cerata.open(path) as store:
        store.assert_fact("Annie", "likes", "milk")
        assert [entity.name for entity in store.graph.entities()] == ["Anna Rossi"]


def test_an_assertion_without_an_alias_folds_nothing() -> None:
    """A load of facts stays as fast, also in a memory that has aliases."""
    with cerata.open(":memory:") as store:
        store.graph.name("Anna Rossi", aliases=["Annie"])
        store.assert_fact("Annie", "likes", "tea")
        folded = store.facts("Annie")
        assert len(folded) == 1
        seqs = session_of(store).fold.folded_facts().seq
        for number in range(50):
            store.assert_fact(f"subject {number}", "has", number)
        assert session_of(store).fold.folded_facts().seq == seqs
