"""The edges of links between facts: what stands and what falls, as docs/graph.md says.

Whole histories are `test_graph_model`'s.
"""

from collections.abc import Iterator
from itertools import pairwise, permutations
from typing import Any, get_args

import pytest

import cerata
from cerata import Draft, Store
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import LinkFacts, UnlinkFacts
from cerata.memory.values.graph import KINDS, LinkKindName

from ..facts.world import environment

REQUIRING: tuple[LinkKindName, ...] = ("assumes", "depends_on", "derived_from", "generated_from")


@pytest.fixture
def store() -> Iterator[Store]:
    world, _ = environment()
    with cerata.open("links.cera", environment=world) as store:
        yield store


def said(store: Store, count: int, first: int = 0) -> list[int]:
    """Assert so many facts, and return their ids."""
    names = [f"f{first + place}" for place in range(count)]
    return [store.assert_fact(name, "is", True).id for name in names]


def standing(store: Store | cerata.View) -> str:
    """Return S, I or D for every fact, in order of id, retracted ones too."""
    every = store.facts(include_ended=True, include_retracted=True, include_invalid=True)
    return "".join(str(fact.standing)[0].upper() for fact in every)


# --- what stands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", REQUIRING)
def test_what_requires_a_fact_falls_with_it_and_rises_again(
    store: Store, kind: LinkKindName
) -> None:
    """Down a chain, by a retraction or an attack, until that is taken back."""
    a, b, c = said(store, 3)
    store.graph.link(b, kind, a)
    store.graph.link(c, kind, b)
    attack = store.graph.link(said(store, 1, first=9)[0], "invalidates", a)
    assert standing(store) == "IIIS"
    store.graph.unlink(attack)
    assert standing(store) == "SSSS"
    retracted = store.retract_fact(a)
    assert standing(store) == "IIIS"
    assert standing(store.at(retracted.id - 1)) == "SSSS"


@pytest.mark.parametrize("kind", ["contradicts", "supports", "validated_by"])
def test_other_links_decide_nothing(store: Store, kind: LinkKindName) -> None:
    """Not even where what they name is gone."""
    a, b = said(store, 2)
    store.graph.link(b, kind, a)
    store.retract_fact(a)
    assert standing(store) == "IS"


def test_who_attacks_in_turn_is_never_resolved_by_order(store: Store) -> None:
    """Both are disputed, and so is what depends on either; a third that stands decides it."""
    a, b, c = said(store, 3)
    store.graph.link(a, "invalidates", b)
    store.graph.link(b, "invalidates", a)
    store.graph.link(c, "depends_on", b)
    assert standing(store) == "DDD"
    assert [fact.id for fact in store.facts()] == [a, b, c]
    link = store.graph.link(said(store, 1, first=9)[0], "invalidates", a)
    assert standing(store) == "ISSS"
    store.graph.unlink(link)
    assert standing(store) == "DDDS"


def test_an_attack_on_the_attacker_saves(store: Store) -> None:
    """What is invalid invalidates nothing."""
    a, b, c = said(store, 3)
    store.graph.link(b, "invalidates", a)
    store.graph.link(c, "invalidates", b)
    assert standing(store) == "SIS"


def test_a_circle_of_three_attacks_is_disputed(store: Store) -> None:
    """As is one of requirements: it can be shown neither to stand nor to have fallen."""
    a, b, c = said(store, 3)
    for one, other in ((a, b), (b, c), (c, a)):
        store.graph.link(one, "invalidates", other)
    assert standing(store) == "DDD"


def test_a_circle_of_requirements_is_disputed_until_one_falls(store: Store) -> None:
    """Each rests on the other and nothing else decides; a retraction does."""
    a, b, c = said(store, 3)
    store.graph.link(a, "depends_on", b)
    store.graph.link(b, "assumes", a)
    assert standing(store) == "DDS"
    store.graph.link(c, "invalidates", b)
    assert standing(store) == "IIS"


def test_a_version_does_not_come_back_when_its_successor_is_superseded(store: Store) -> None:
    """Nor when that is attacked: what took the successor's place took its place too."""
    a, b, c, d = said(store, 4)
    store.graph.link(b, "supersedes", a)
    store.graph.link(c, "supersedes", b)
    assert standing(store) == "IISS"
    store.retract_fact(b)
    assert standing(store) == "IISS"
    store.graph.link(d, "invalidates", c)
    assert standing(store) == "SIIS"


def test_in_a_circle_of_supersessions_only_the_next_is_attacked(store: Store) -> None:
    """A retraction of one of two lets the other stand."""
    a, b = said(store, 2)
    store.graph.link(a, "supersedes", b)
    store.graph.link(b, "supersedes", a)
    assert standing(store) == "DD"
    store.retract_fact(b)
    assert standing(store) == "SI"


def test_standing_does_not_depend_on_the_order_of_links() -> None:
    """Every order of the same links says the same."""
    links: list[tuple[int, LinkKindName, int]] = [
        (0, "invalidates", 1),
        (1, "supersedes", 2),
        (3, "supersedes", 1),
        (4, "depends_on", 2),
        (2, "invalidates", 0),
    ]
    found = set[str]()
    for order in permutations(links):
        world, _ = environment()
        with cerata.open(":memory:", environment=world) as store:
            ids = said(store, 5)
            with store.transaction():
                for one, kind, other in order:
                    store.graph.link(ids[one], kind, ids[other])
            found.add(standing(store))
    assert found == {"SIISI"}


def test_a_long_chain_of_versions_is_no_deep_recursion(store: Store) -> None:
    """Nor quadratic; and a chain of requirements falls from its far end."""
    ids: list[int] = []
    for _ in range(3):
        with store.transaction() as transaction:
            for place in range(1_000):
                store.assert_fact(f"v{len(ids) + place}", "is", True)
        ids += transaction.receipt.ids
    drafts = [
        Draft(LinkFacts(fact=newer, kind="supersedes", target=older))
        for older, newer in pairwise(ids)
    ]
    store.append(*drafts)
    assert [fact.id for fact in store.facts()] == ids[-1:]
    assert store.graph.fact(ids[0]).standing == "invalid"
    assert len(str(store.graph.why(ids[0], depth=3)).splitlines()) == 4


def test_a_frame_that_is_gone_takes_what_came_of_it(store: Store) -> None:
    """Deleted or superseded; evidence does not: that is where it was read, not what it rests on."""
    a, b, c = said(store, 3)
    first, other = store.put_frame("first"), store.put_frame("other")
    store.graph.link(a, "generated_from", first)
    store.graph.link(b, "validated_by", other)
    store.graph.link(c, "derived_from", other)
    store.assert_fact("g", "is", True, evidence=[first])
    assert standing(store) == "SSSS"
    store.delete(first)
    assert standing(store) == "ISSS"
    change = store.supersede(other, "another")
    assert standing(store) == "ISIS"
    assert standing(store.at(change.id - 1)) == "ISSS"


def test_standing_has_nothing_to_do_with_valid_time(store: Store) -> None:
    """A fact that is true no longer stands; one that is invalid ends no other."""
    store.graph.declare("lives in", functional=True)
    old = store.assert_fact("a", "lives in", "rome", valid_from="2020-01-01")
    new = store.assert_fact("a", "lives in", "oslo", valid_from="2022-01-01")
    assert store.graph.fact(old).valid.end is not None
    assert standing(store) == "SS"
    (doubt,) = said(store, 1)
    link = store.graph.link(doubt, "invalidates", new)
    assert store.graph.fact(old).valid.end is None
    assert [fact.object for fact in store.facts("a", valid_at="2023-01-01")] == ["rome"]
    assert store.graph.fact(new).ended_by is None
    store.graph.unlink(link)
    assert [fact.object for fact in store.facts("a", valid_at="2023-01-01")] == ["oslo"]


def test_what_is_invalid_is_left_out_unless_asked_for(store: Store) -> None:
    """Of facts, the graph, mentions and conflicts; never of fact and fact_history."""
    knows = store.assert_fact("a", "knows", cerata.Entity("b"))
    yes = store.assert_fact("a", "is", True, valid_from="open")
    no = store.assert_fact("a", "is", False, valid_from="open")
    assert len(store.graph.conflicts()) == 1
    (doubt,) = said(store, 1)
    for one in (knows, no):
        store.graph.link(doubt, "invalidates", one)
    assert [fact.id for fact in store.facts("a")] == [yes.id]
    assert [fact.id for fact in store.facts("a", include_retracted=True)] == [yes.id]
    assert len(store.facts("a", include_invalid=True)) == 3
    assert [str(fact.standing) for fact in store.graph.versions("a")] == [
        "invalid",
        "stands",
        "invalid",
    ]
    assert store.graph.fact(no).to_dict()["standing"] == "invalid"
    assert store.graph.neighbours("a") == store.graph.walk("b") == []
    assert store.graph.conflicts() == []
    assert store.graph.entity("a").mentions == 1


def test_the_same_fact_again_does_not_make_it_stand(store: Store) -> None:
    """It adds evidence to what is invalid; the links of either id are its own."""
    a, b = said(store, 2)
    again = store.assert_fact("f0", "is", True)
    assert store.graph.fact(again).id == a
    link = store.graph.link(b, "invalidates", again)
    assert store.graph.links(a)[0].target == a
    assert standing(store) == "IS"
    store.append(Draft(UnlinkFacts(link=link.id)))
    store.append(Draft(LinkFacts(fact=b, kind="supersedes", target=again.id)))
    assert standing(store) == "IS"


def test_a_narrower_view_goes_by_the_links_within_it(store: Store) -> None:
    """Of which both ends are within it too; an end is everybody's."""
    session = {"session": "s"}
    a = store.assert_fact("a", "is", True, options=cerata.FactOptions(scope=session)).id
    b = store.assert_fact("b", "is", True, options=cerata.FactOptions(scope=session)).id
    (c,) = said(store, 1)
    scope = (("tenant", "default"), ("session", "s"))
    store.graph.link(c, "invalidates", a)
    assert standing(store) == "ISS"
    assert standing(store.history.view().within(scope)) == "SS"
    link = store.graph.link(a, "invalidates", b, scope=session)
    assert standing(store.history.view().within(scope)) == "SI"
    assert standing(store) == "ISS"
    store.graph.unlink(link)
    assert standing(store.history.view().within(scope)) == "SS"


# --- writing -------------------------------------------------------------------------------------


def test_linking_and_unlinking_are_idempotent(store: Store) -> None:
    """What holds is not made again, what has ended not ended again; then it may be made anew."""
    a, b = said(store, 2)
    first = store.graph.link(a, "supports", b)
    assert (first.added, first.ids) == (True, (3,))
    again = store.graph.link(a, "supports", b)
    assert (again.id, again.added, again.seqs) == (first.id, False, ())
    assert store.graph.link(a, "supports", b, scope={"session": "s"}).added
    assert store.graph.unlink(first).added
    assert (store.graph.unlink(first).added, store.graph.unlink(first).id) == (False, first.id)
    anew = store.graph.link(a, "supports", b)
    assert (anew.added, anew.id) == (True, 6)
    assert [link.id for link in store.graph.links(a)] == [4, 6]
    assert [link.id for link in store.graph.links(a, include_unlinked=True)] == [3, 4, 6]


def test_two_writers_who_say_the_same_say_it_once() -> None:
    """Neither can spoil what the other does, so nobody has to wait or read again."""
    world, _ = environment()
    with (
        cerata.open("links.cera", environment=world) as one,
        cerata.open("links.cera", environment=world) as other,
    ):
        a, b = said(one, 2)
        body = Draft(LinkFacts(fact=a, kind="invalidates", target=b))
        first, second = one.append(body), other.append(body)
        assert len(one.graph.links()) == 1
        one.graph.unlink(second)
        assert standing(other) == "SS"
        other.append(Draft(UnlinkFacts(link=first.id)))
        assert standing(one) == "SS"


def test_a_transaction_links_what_it_asserts(store: Store) -> None:
    """Under the ids that the block has, and again afterwards."""
    (a,) = said(store, 1)
    with store.transaction():
        frame = store.put_frame("why")
        b = store.assert_fact("b", "is", True)
        link = store.graph.link(b, "invalidates", a)
        store.graph.link(b, "generated_from", frame)
        assert [fact.id for fact in store.facts()] == [b.id]
        assert [one.id for one in store.graph.links()] == [link.id, -4]
        assert str(store.graph.why(a)).splitlines()[1].strip().startswith("invalidated by #-2")
        store.graph.unlink(link)
        assert standing(store) == "SS"
        store.graph.link(b, "invalidates", a)
    assert standing(store) == "IS"
    assert [one.kind for one in store.graph.links()] == ["generated_from", "invalidates"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((1, "likes", 2), InvalidInput),
        ((1, 7, 2), InvalidInput),
        ((1, "supports", 1), InvalidInput),
        ((1, "supports", 4), InvalidInput),
        ((1, "supports", 3), InvalidInput),
        ((1, "invalidates", 3), InvalidInput),
        ((1, "assumes", 3), InvalidInput),
        ((3, "supports", 1), NotFound),
        ((1, "supports", 99), NotFound),
        ((99, "supports", 1), NotFound),
        ((1, "supports", -1), NotFound),
        ((1, "supports", "x"), InvalidInput),
        ((1, "supports", 5), InvalidInput),
        ((True, "supports", 2), InvalidInput),
    ],
)
def test_what_cannot_be_linked_is_refused(
    store: Store, given: tuple[Any, ...], error: type[Exception]
) -> None:
    """Before anything is written, alone and in a transaction."""
    said(store, 2)
    store.put_frame("a frame")
    store.assert_fact("f0", "is", True, confidence=0.5)  # the first fact
    store.assert_fact("a", "is", True, options=cerata.FactOptions(scope={"tenant": "other"}))
    with pytest.raises(error):
        store.graph.link(*given)
    with pytest.raises(error), store.transaction():
        store.graph.link(*given)
    assert store.head.seq == 5


@pytest.mark.parametrize(
    "body",
    [
        LinkFacts(fact=1, kind="likes", target=2),
        LinkFacts(fact=1, kind="supports"),
        LinkFacts(fact=1, kind="derived_from", target=2, frame=3),
        LinkFacts(fact=1, kind="supports", frame=3),
        LinkFacts(fact=3, kind="supports", target=1),
        UnlinkFacts(link=1),
    ],
)
def test_events_that_say_what_cannot_be_are_refused(store: Store, body: Any) -> None:
    """Whoever writes them."""
    said(store, 2)
    store.put_frame("a frame")
    with pytest.raises((InvalidInput, NotFound)):
        store.append(Draft(body))
    with pytest.raises(NotFound):
        store.graph.unlink(1)
    with pytest.raises(InvalidInput):
        store.graph.unlink("x")  # type: ignore[arg-type]  # as a caller without types may


# --- why -----------------------------------------------------------------------------------------


def test_why_tells_what_speaks_for_and_against(store: Store) -> None:
    """Each reason once, where it is nearest."""
    frame = store.put_frame("The bridge opens at nine.")
    notice = store.assert_fact("notice", "says", "nine", evidence=[(frame, 0, 10)]).id
    opens = store.assert_fact("bridge", "opens at", "nine").id
    doubt, denial = said(store, 2)
    store.graph.link(opens, "derived_from", notice)
    store.graph.link(notice, "generated_from", frame)
    store.graph.link(doubt, "invalidates", opens)
    store.graph.link(denial, "supersedes", doubt)
    store.graph.link(denial, "contradicts", opens)
    store.graph.link(notice, "supports", opens)
    store.graph.link(opens, "validated_by", notice)
    assert str(store.graph.why(opens)) == (
        "#3 bridge · opens at · nine: stands\n"
        "    derived from #2 notice · says · nine: stands\n"
        "        read in frame #1 [0, 10)\n"
        "        generated from frame #1: current\n"
        "    invalidated by #4 f0 · is · True: invalid\n"
        "        superseded by #5 f1 · is · True: stands\n"
        "    supported by #2 notice · says · nine: stands\n"
        "    validated by #2 notice · says · nine: stands\n"
        "    contradicted by #5 f1 · is · True: stands\n"
        "        contradicts #3 bridge · opens at · nine: stands"
    )
    why = store.graph.why(opens)
    assert [len(one) for one in (why.requires, why.attackers, why.supports, why.contradicts)] == [
        *(1, 1, 2, 1)
    ]
    assert (why.standing, why.evidence, len(why.reasons)) == ("stands", (), 5)
    plain = why.to_dict()
    assert plain["fact"] == store.graph.fact(opens).to_dict()
    assert [len(str(plain[name])) > 2 for name in ("requires", "attackers", "supports")] == [
        True
    ] * 3
    assert len(str(store.graph.why(opens, depth=1)).splitlines()) == 6
    for depth in (0, 65, "x"):
        with pytest.raises(InvalidInput):
            store.graph.why(opens, depth=depth)  # type: ignore[arg-type]  # as a caller may
    with pytest.raises(NotFound):
        store.graph.why(frame)


def test_why_of_a_circle_ends(store: Store) -> None:
    """What is told already is named, not told again."""
    a, b = said(store, 2)
    store.graph.link(a, "depends_on", b)
    store.graph.link(b, "depends_on", a)
    retracted = store.retract_fact(b)
    assert str(store.graph.why(a)).splitlines() == [
        "#1 f0 · is · True: invalid",
        f"    depends on #2 f1 · is · True: invalid, retracted by #{retracted.id}",
        "        depends on #1 f0 · is · True: invalid",
    ]


def test_contradictions_that_links_tell_are_conflicts(store: Store) -> None:
    """Where both are true at some time, and neither is invalid."""
    first = store.assert_fact("a", "is", "in", valid_from="2020-01-01", valid_to="2022-01-01").id
    other = store.assert_fact("b", "is", "out", valid_from="2021-01-01").id
    later = store.assert_fact("c", "is", "off", valid_from="2023-01-01").id
    link = store.graph.link(other, "contradicts", first)
    store.graph.link(first, "contradicts", other)
    store.graph.link(later, "contradicts", first)
    (found,) = store.graph.conflicts()
    assert (found.first.id, found.second.id, found.link) == (first, other, link.id)
    assert [str(end)[:10] for end in (found.period.start, found.period.end)] == [
        "2021-01-01",
        "2022-01-01",
    ]
    assert store.graph.conflicts("a") == store.graph.conflicts("b") == [found]
    assert store.graph.conflicts("c") == []
    store.graph.link(later, "invalidates", first)
    assert store.graph.conflicts() == []


def test_a_difference_tells_what_fell_and_rose(store: Store) -> None:
    """Though nothing was said of the facts themselves."""
    a, b, c = said(store, 3)
    store.graph.link(b, "depends_on", a)
    before = store.head.seq
    link = store.graph.link(c, "invalidates", a)
    fell = store.diff(before)
    assert [(change.old and change.old.id, change.new) for change in fell.facts] == [
        (a, None),
        (b, None),
    ]
    store.graph.unlink(link)
    assert [change.new and change.new.id for change in store.diff(link).facts] == [a, b]
    assert not store.diff(before).facts


def test_links_are_plain_too(store: Store) -> None:
    """As --json prints them; and every kind is known to the type."""
    a, b = said(store, 2)
    link = store.graph.link(a, "depends_on", b)
    (found,) = store.graph.links(b)
    assert str(found) == "#1 depends on #2"
    assert found.to_dict() == {
        "id": link.id,
        "fact": a,
        "kind": "depends_on",
        "target": b,
        "is_frame": False,
        "known": found.known.to_dict(),
        "scope": {"tenant": "default"},
        "unlinked_by": None,
    }
    assert store.graph.unlink(found).added
    assert store.graph.links(b, include_unlinked=True)[0].unlinked_by == link.id + 1
    assert get_args(LinkKindName) == KINDS
    with pytest.raises(NotFound):
        store.graph.links(99)
