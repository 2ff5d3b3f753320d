"""The edges of the graph over facts: where docs/graph.md says what is meant, and what is refused.

Whole histories are `test_graph_model`'s.
"""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Entity, Store
from cerata.engine.errors import InvalidInput

from ..facts.world import environment


@pytest.fixture
def store() -> Iterator[Store]:
    world, _ = environment()
    with cerata.open("graph.cera", environment=world) as store:
        yield store


def join(store: Store, *pairs: str) -> list[int]:
    """Assert that the first of two letters knows the second, always, and return the ids."""
    return [
        store.assert_fact(pair[0], "knows", Entity(pair[1]), valid_from="open").id for pair in pairs
    ]


def names(found: list[cerata.Neighbour]) -> list[str]:
    return [one.entity for one in found]


def test_a_string_joins_nothing(store: Store) -> None:
    """Only a reference is a reference."""
    store.assert_fact("a", "knows", "b")
    assert store.graph.neighbours("a") == store.graph.neighbours("b") == store.graph.walk("a") == []


def test_a_fact_about_itself_is_no_edge(store: Store) -> None:
    """Nor is one that a merge makes so."""
    join(store, "aa", "ab")
    assert names(store.graph.neighbours("a")) == ["b"]
    store.graph.merge("b", "a")
    assert store.graph.neighbours("a") == store.graph.neighbours("b") == []
    assert store.graph.paths("a", "b") == []


def test_several_facts_lead_to_one_neighbour(store: Store) -> None:
    """Either way round, oldest first."""
    first, other = join(store, "ab", "ba")
    assert [one.fact_ids for one in store.graph.neighbours("a")] == [(first, other)]
    assert [one.fact_ids for one in store.graph.neighbours("a", direction="in")] == [(other,)]
    assert [str(fact) for fact in store.graph.neighbours("a")[0].facts] == [
        "a · knows · b",
        "b · knows · a",
    ]


def test_a_split_moves_an_edge(store: Store) -> None:
    """The same fact joins others, until that is taken back."""
    fact, _ = join(store, "ab", "cb")
    split = store.graph.split("b", "d", [fact])
    assert names(store.graph.neighbours("a")) == ["d"]
    assert names(store.graph.neighbours("b")) == ["c"]
    store.graph.unsplit(split)
    assert names(store.graph.neighbours("b")) == ["a", "c"]


def test_a_merge_joins_what_was_apart(store: Store) -> None:
    """And a view before it does not know."""
    join(store, "ab", "cd")
    merge = store.graph.merge("c", "b")
    assert [str(path) for path in store.graph.paths("a", "d")] == ["a → b → d"]
    assert names(store.graph.neighbours("c")) == ["a", "d"]
    assert store.at(merge.id - 1).graph.paths("a", "d") == []


def test_what_is_nearer_to_more_starts_comes_first(store: Store) -> None:
    """Scores of several starts are added; one that is named twice counts once."""
    join(store, "ax", "by", "bx", "cy", "cx")
    found = store.graph.walk(["a", "b", "a", Entity("c")], hops=1, k=1)
    assert [(one.entity, one.score) for one in found] == [("x", 1.5), ("y", 1.0)]
    assert [(one.entity, one.hop) for one in store.graph.walk("a")] == [
        ("x", 1),
        ("b", 2),
        ("c", 2),
    ]


def test_decay_goes_by_the_shortest_way(store: Store) -> None:
    """A longer way to the same entity adds nothing."""
    join(store, "ab", "bc", "ac", "cd")
    assert [(one.entity, one.hop, one.score) for one in store.graph.walk("a", hops=3, k=0)] == [
        ("b", 1, 1.0),
        ("c", 1, 1.0),
        ("d", 2, 0.5),
    ]


def test_paths_come_in_order_of_length_and_first_facts(store: Store) -> None:
    """Whatever the names: of two of one length the one whose first fact is older."""
    join(store, "az", "zb", "ac", "cb", "ab")
    found = [str(path) for path in store.graph.paths("a", "b")]
    assert found == ["a → b", "a → z → b", "a → c → b"]
    assert [str(path) for path in store.graph.paths("a", "b", limit=2)] == found[:2]
    assert [str(path) for path in store.graph.paths("a", "b", hops_max=1)] == ["a → b"]
    assert store.graph.paths("b", "a", direction="out") == []
    assert [len(path) for path in store.graph.paths("b", "a", direction="in")] == [1, 2, 2]
    assert (
        store.graph.paths("a", "a")
        == store.graph.paths("a", "nobody")
        == store.graph.paths("nobody", "a")
        == []
    )


def test_every_fact_of_a_path_is_true_at_the_instant(store: Store) -> None:
    """Two that never held together make no way."""
    store.assert_fact("a", "knows", Entity("b"), valid_from="2020-01-01", valid_to="2021-01-01")
    store.assert_fact("b", "knows", Entity("c"), valid_from="2022-01-01")
    assert [str(path) for path in store.graph.paths("a", "c")] == ["a → b → c"]
    assert store.graph.paths("a", "c", valid_at="2020-06-01") == []
    assert store.at("HEAD", valid_at="2022-06-01").graph.walk("a") == []


def test_a_value_that_gave_way_is_no_edge_then(store: Store) -> None:
    """One value at a time holds for the graph too."""
    store.graph.declare("lives in", functional=True)
    store.assert_fact("a", "lives in", Entity("rome"), valid_from="2020-01-01")
    store.assert_fact("a", "lives in", Entity("oslo"), valid_from="2022-01-01")
    assert names(store.graph.neighbours("a", valid_at="2021-01-01")) == ["rome"]
    assert names(store.graph.neighbours("a", valid_at="2023-01-01")) == ["oslo"]
    assert store.graph.neighbours("rome", valid_at="2023-01-01") == []


def test_tenants_do_not_meet(store: Store) -> None:
    """Though a view has both, and an entity the same name in both."""
    join(store, "ab")
    store.assert_fact(
        "b", "knows", Entity("c"), options=cerata.FactOptions(scope={"tenant": "other"})
    )
    assert names(store.graph.neighbours("b")) == ["a", "c"]
    assert store.graph.paths("a", "c") == []
    assert names([*store.graph.walk("a", hops=3)]) == ["b"]


def test_what_a_tenant_does_later_is_not_known_before(store: Store) -> None:
    """Two names are one start here, though another tenant comes that does not merge them."""
    join(store, "ax", "bx")
    merge = store.graph.merge("a", "b")
    found = store.at(merge.id).graph.walk(["a", "b"])
    store.assert_fact(
        "a", "knows", Entity("b"), options=cerata.FactOptions(scope={"tenant": "other"})
    )
    assert store.at(merge.id).graph.walk(["a", "b"]) == found
    assert [(one.entity, one.score) for one in found] == [("x", 1 / 61)]


def test_frames_that_are_gone_name_nobody_together(store: Store) -> None:
    """Deleted or superseded; a repetition of the fact adds a frame."""
    first, other, third = (store.put_frame(f"Text {number}.") for number in range(3))
    for frame in (first, other, third):
        store.assert_fact("a", "knows", Entity("b"), valid_from="open", evidence=[frame])
    store.assert_fact("c", "likes", "tea", valid_from="open", evidence=[other])
    assert [(one.entity, one.frames) for one in store.graph.cooccurring("a")] == [
        ("b", (first.id, other.id, third.id)),
        ("c", (other.id,)),
    ]
    store.delete(other)
    store.supersede(third, "Another text.")
    assert [(one.entity, one.frames) for one in store.graph.cooccurring("a")] == [
        ("b", (first.id,))
    ]
    assert store.graph.cooccurring("c") == []
    assert [one.entity for one in store.at(third).graph.cooccurring("c")] == []


def test_a_transaction_walks_what_it_gathers(store: Store) -> None:
    """Under the ids that the block has."""
    join(store, "ab")
    with store.transaction():
        frame = store.put_frame("b knows c")
        fact = store.assert_fact("b", "knows", Entity("c"), evidence=[frame])
        assert [(one.entity, one.fact_ids) for one in store.graph.walk("a")] == [
            ("b", (1,)),
            ("c", (fact.id,)),
        ]
        assert [one.frames for one in store.graph.cooccurring("b")] == [(frame.id,)]
        assert store.graph.walk("a")[1].facts[0].id == fact.id == -2


@pytest.mark.parametrize(
    ("call", "given", "how"),
    [
        ("neighbours", ("",), {}),
        ("neighbours", (7,), {}),
        ("neighbours", ("a",), {"direction": "up"}),
        ("neighbours", ("a",), {"predicate": ""}),
        ("neighbours", ("a",), {"valid_at": "soon"}),
        ("neighbours", ("a",), {"facts_max": "many"}),
        ("walk", (None,), {}),
        ("walk", ([1],), {}),
        ("walk", ("a",), {"hops": 0}),
        ("walk", ("a",), {"hops": 17}),
        ("walk", ("a",), {"hops": True}),
        ("walk", ("a",), {"k": -1}),
        ("walk", ("a",), {"k": float("nan")}),
        ("walk", ("a",), {"k": float("inf")}),
        ("walk", ("a",), {"k": True}),
        ("walk", ("a",), {"k": 10**400}),
        ("walk", ("a",), {"k": -(10**5_000)}),
        ("paths", ("a", "b"), {"hops_max": 17}),
        ("paths", ("a", "b"), {"limit": 0}),
        ("cooccurring", (b"a",), {}),
    ],
)
def test_what_cannot_be_asked_is_refused(
    store: Store, call: str, given: tuple[object, ...], how: dict[str, object]
) -> None:
    """With a typed error, before anything is looked at."""
    with pytest.raises(InvalidInput):
        getattr(store.graph, call)(*given, **how)


@pytest.mark.parametrize("call", ["neighbours", "walk", "paths", "cooccurring"])
def test_more_facts_than_it_may_look_at_are_refused(store: Store, call: str) -> None:
    """Rather than an answer that leaves something out."""
    frame = store.put_frame("A hub.")
    with store.transaction():
        for number in range(20):
            store.assert_fact("hub", "knows", Entity(f"n{number}"), evidence=[frame])
    given = ("hub", "n1") if call == "paths" else ("hub",)
    assert len(getattr(store.graph, call)(*given)) in (1, 20)
    with pytest.raises(InvalidInput, match="more than 19 facts"):
        getattr(store.graph, call)(*given, facts_max=19)


def test_ways_through_a_dense_graph_are_bounded(store: Store) -> None:
    """Each step counts, not only each fact: there are very many ways through few facts."""
    letters = "abcdefghijkl"
    with store.transaction():
        join(store, *(one + other for one in letters for other in letters if one < other))
    store.assert_fact("l", "knows", Entity("end"))
    store.assert_fact("end", "likes", Entity("other"))
    assert len(store.graph.paths("a", "b", hops_max=12, limit=200)) == 200
    with pytest.raises(InvalidInput, match="more than 5,000 facts"):
        store.graph.paths("a", "other", hops_max=12, limit=100_000, facts_max=5_000)


def test_values_are_plain_too(store: Store) -> None:
    """As --json prints them."""
    frame = store.put_frame("a knows b")
    store.assert_fact("a", "knows", Entity("b"), valid_from="open", evidence=[frame])
    fact = store.graph.fact(2).to_dict()
    assert store.graph.neighbours("a")[0].to_dict() == {"entity": "b", "facts": [fact]}
    assert store.graph.walk("a")[0].to_dict() == {
        "entity": "b",
        "facts": [fact],
        "hop": 1,
        "score": 1 / 61,
    }
    path = store.graph.paths("a", "b")[0]
    assert path.to_dict() == {"start": "a", "steps": [{"entity": "b", "facts": [fact]}]}
    assert (len(path), path.entities) == (1, ("a", "b"))
    assert store.graph.cooccurring("a")[0].to_dict() == {
        "entity": "b",
        "count": 1,
        "frames": [frame.id],
    }
