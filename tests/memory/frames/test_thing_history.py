"""The history and blame of facts, entities and links, beside the events that a test wrote."""

from collections.abc import Callable
from typing import Any, cast

import pytest

import cerata
from cerata import Blame, Entity, HistoryEntry, NotFound, Store
from cerata.events import AssertFact


def verbs(entries: list[HistoryEntry]) -> list[tuple[int, str]]:
    return [(entry.seq, entry.verb) for entry in entries]


def setters(blame: Blame) -> dict[str, tuple[Any, int | None]]:
    return {
        each.field: (each.value, None if each.act is None else each.act.seq)
        for each in blame.fields
    }


@pytest.fixture
def store() -> Any:
    with cerata.open(":memory:", actor="anna") as opened:
        opened.assert_fact("bridge", "opens in", "April", valid_from="2026-01-01")  # 1
        opened.correct_fact(1, object="May", actor="ben", reason="late steel")  # 2, 3
        opened.put_frame("The steel was late.")  # 4
        opened.graph.link(3, "derived_from", 4)  # 5
        opened.graph.name("bridge", kind="place", aliases=["the span"])  # 6
        opened.graph.name("span")  # 7
        opened.graph.merge("span", "bridge")  # 8
        yield opened


def test_a_fact_has_the_events_of_its_corrections_and_links(store: Store) -> None:
    """Any fact of the line gives the whole line, as any version of a frame does."""
    line = [(1, "asserted"), (2, "corrected"), (3, "asserted"), (5, "linked")]
    assert verbs(store.history.of(1)) == verbs(store.history.of(store.graph.fact(3))) == line
    correction = store.history.of(3)[1]
    assert correction.act is not None
    assert (correction.act.credit, correction.batch) == ("by ben (late steel)", (2, 3))
    store.graph.unlink(5)
    store.retract_fact(3)
    assert verbs(store.history.of(1))[-2:] == [(9, "unlinked"), (10, "retracted")]
    assert verbs(store.at(3).history.of(1)) == line[:3]
    assert verbs(store.at(2).history.of(1)) == [(1, "asserted"), (2, "retracted")]


def test_a_repeat_and_a_later_value_belong_to_a_fact() -> None:
    """The first with other evidence, the second by what it ends."""
    with cerata.open(":memory:") as store:
        store.graph.declare("lives in", functional=True)
        note = store.put_frame("Ann lives in Bern.")
        fact = store.assert_fact("ann", "lives in", "Bern", valid_from="2020-01-01")
        store.assert_fact("ann", "lives in", "Bern", valid_from="2020-01-01", evidence=[note])
        store.assert_fact("ann", "lives in", "Rome", valid_from="2024-01-01")
        expected = [(3, "asserted"), (4, "repeated"), (5, "ended")]
        assert verbs(store.history.of(fact)) == expected
        assert verbs(store.history.of("ann")) == [*expected[:2], (5, "asserted")]


def test_an_entity_has_its_acts_and_the_events_of_its_facts(store: Store) -> None:
    expected = [
        *((1, "asserted"), (2, "retracted"), (3, "asserted")),
        *((6, "named"), (7, "named"), (8, "merged")),
    ]
    for name in ("bridge", "span", Entity("bridge"), store.graph.entity("span")):
        assert verbs(store.history.of(name)) == expected
    store.graph.unmerge(8)
    assert verbs(store.history.of("bridge"))[-2:] == [(8, "merged"), (9, "unmerged")]
    assert verbs(store.history.of("span")) == [(7, "named"), (8, "merged"), (9, "unmerged")]
    store.assert_fact("anna", "built", Entity("bridge"))
    store.graph.split("bridge", "other bridge", facts=[10])
    assert verbs(store.history.of("other bridge")) == [(10, "asserted"), (11, "split")]
    store.graph.unsplit(11)
    assert verbs(store.history.of("bridge"))[-3:] == [
        *((10, "asserted"), (11, "split"), (12, "unsplit"))
    ]


def test_a_link_has_the_events_of_its_ends_too(store: Store) -> None:
    """A closed end takes the effect from a link."""
    assert verbs(store.history.of(store.graph.links()[0])) == [(5, "linked")]
    store.retract_fact(3)
    store.supersede(4, "The steel was early.")
    store.graph.unlink(5)
    assert verbs(store.history.of(5)) == [
        *((5, "linked"), (9, "retracted"), (11, "superseded"), (12, "unlinked"))
    ]


def test_blame_of_an_entity_and_of_a_link(store: Store) -> None:
    blame = store.history.blame("span")
    assert (blame.id, blame.kind, blame.ended) == ("bridge", "entity", None)
    assert setters(blame) == {
        "name": ("bridge", 1),
        "kind": ("place", 6),
        "aliases.the span": ("the span", 6),
        "names.span": ("span", 8),
    }
    store.graph.name("bridge", kind="place", aliases=["the span", "the arch"])
    store.graph.name("bridge", kind="building")
    fields = setters(store.history.blame("bridge"))
    assert fields["kind"] == ("building", 10)
    assert fields["aliases.the span"] == ("the span", 6)
    assert fields["aliases.the arch"] == ("the arch", 9)
    assert setters(store.at(9).history.blame("bridge"))["kind"] == ("place", 6)
    assert setters(store.at(3).history.blame("bridge")) == {"name": ("bridge", 1)}
    link = store.history.blame(5)
    assert (link.id, link.kind, link.ended) == (5, "link", None)
    assert setters(link) == {
        "fact": (3, 5),
        "kind": ("derived_from", 5),
        "target_frame": (4, 5),
    }
    store.graph.unlink(5, actor="ben")
    ended = store.history.blame(5).ended
    assert ended is not None
    assert (ended.seq, ended.credit) == (11, "by ben")


def test_pending_events_are_in_the_history(store: Store) -> None:
    """Of a transaction and of speculate, with their ids below 0; nothing is left after."""
    with store.transaction() as transaction:
        pending = store.correct_fact(3, object="June")
        expected = [(3, "asserted"), (5, "linked"), (-1, "corrected"), (-2, "asserted")]
        assert verbs(store.history.of(pending))[2:] == expected
        assert verbs(store.history.of("bridge"))[-2:] == [(-1, "retracted"), (-2, "asserted")]
        assert setters(store.history.blame(pending))["object"] == ("June", -2)
    assert transaction.receipt is not None
    assert verbs(store.history.of(pending))[2:] == [
        *expected[:2],
        (9, "corrected"),
        (10, "asserted"),
    ]
    body = AssertFact(subject="bridge", predicate="is", object="blue", object_kind="string")
    view = store.upkeep.speculate(body)
    assert verbs(view.history.of(-1)) == [(-1, "asserted")]
    assert verbs(view.history.of("bridge"))[-1] == (-1, "asserted")


def test_a_scope_hides_the_events_of_other_scopes() -> None:
    """A wider handle's retraction shows as an event without its writer or words."""
    with cerata.open(":memory:", scope={"tenant": "a"}, actor="root") as store:
        ann, ben = (store.scoped({"user": name}) for name in ("ann", "ben"))
        fact = ann.assert_fact("bridge", "is", "blue")
        ben.assert_fact("bridge", "is", "red")
        ben.graph.name("bridge", kind="secret", aliases=["the span"])
        store.retract_fact(fact, reason="wrong")
        entries = ann.history.of("bridge")
        assert verbs(entries) == [(1, "asserted"), (4, "retracted")]
        assert (entries[1].act, entries[1].summary, entries[1].batch) == (None, "", None)
        assert setters(ann.history.blame("bridge")) == {"name": ("bridge", 1)}
        with pytest.raises(NotFound):
            ann.history.of(2)
        with pytest.raises(NotFound):
            ann.history.blame("the span")
        assert verbs(store.history.of("bridge")) == [
            *((1, "asserted"), (2, "asserted"), (3, "named"), (4, "retracted"))
        ]


def test_a_thing_that_does_not_exist_is_not_found(store: Store) -> None:
    reads: tuple[Callable[[Any], object], ...] = (store.history.of, store.history.blame)
    for read in reads:
        for missing in (99, -1, "nobody"):
            with pytest.raises(NotFound):
                read(missing)
        with pytest.raises(cerata.InvalidInput):
            read(cast("int", 1.5))
