"""What a caller gives by mistake is said in Cerata's own words, and writes nothing."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.engine.events import DeleteFrame, PutEmbedding, PutFrame, PutTag
from cerata.projections.frames.filters import DEPTH_MAX
from cerata.projections.fulltext.query import And, FilterLeaf, Not, Or, Query, Term

ODD: Any = 5
NONE: Any = None
WORD: Any = "x"


def nested(levels: int) -> cerata.Filter:
    """Return a filter of two levels more each time round."""
    one, other = cerata.Filter(kind="a"), cerata.Filter(kind="b")
    for _ in range(levels):
        one = ~(one | other)
    return one


def built(levels: int, leaf: Query | None = None) -> Query:
    """Return a query of so many levels, of And, Or and Not in turn."""
    query = leaf or Term("one")
    for level in range(1, levels):
        match level % 3:
            case 0:
                query = Not(query)
            case 1:
                query = And((query, Term("one")))
            case _:
                query = Or((query, Term("one")))
    return query


def lists(levels: int = 5_000) -> Any:
    """Return lists within each other."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def in_transaction(store: cerata.Store) -> None:
    with store.transaction(expect=WORD):
        store.put_frame("a")


REFUSED: list[tuple[str, Callable[[cerata.Store], object], str]] = [
    (
        "a filter and a number",
        lambda _: cerata.Filter() & ODD,
        "only with a Filter, not int",
    ),
    (
        "a filter or a word",
        lambda _: cerata.Filter() | WORD,
        "only with a Filter, not str",
    ),
    ("a filter in 4,000 levels", lambda _: nested(2_000), "more than 100 nested levels"),
    ("a query in 4,000 levels", lambda store: store.search(built(4_000)), "the limit is 100"),
    ("levels in a filter", lambda _: built(50, FilterLeaf(nested(30))), "the limit is 100"),
    (
        "a scope of lists",
        lambda store: store.put_frame("a", options=cerata.PutOptions(scope={"x": lists()})),
        "many levels",
    ),
    ("a tag of lists", lambda store: store.put_frame("a", tags=[lists()]), "many levels"),
    ("a test of lists", lambda _: cerata.Filter(metadata={"n": ("in", [lists()])}), "many levels"),
    ("a time of lists", lambda _: cerata.Filter(created=lists()), "many levels"),
    ("a list of queries", lambda _: And([Term("a")]), "tuple of queries"),  # type: ignore[arg-type]
    ("a query of a word", lambda _: Or((WORD,)), "tuple of queries"),
    ("a query without its part", lambda _: Not(NONE), "tuple of queries"),
    ("a URI", lambda store: store.history.view().files.by_uri(ODD), "URI must be a string"),
    (
        "a hash of text",
        lambda store: store.history.view().files.by_content(WORD),
        "must be 16 bytes",
    ),
    (
        "a hash of 3 bytes",
        lambda store: store.history.view().files.stored(b"abc"),
        "cerata.content_hash",
    ),
    ("a content", lambda _: cerata.content_hash(ODD), "must be str or bytes"),
    (
        "a text to mark",
        lambda store: store.history.view().files.highlights(ODD, "q"),
        "text must be a string",
    ),
    (
        "a projection by number",
        lambda store: store.stream.projection(ODD),
        "neither a projection's name",
    ),
    (
        "another class",
        lambda store: store.stream.projection(WORD.__class__),
        "neither a projection's",
    ),
    ("a first event", lambda store: store.log(WORD), "first must be a number"),
    ("a last event", lambda store: store.log(1, WORD), "last must be a number"),
    ("no tags", lambda store: store.put_frame("a", tags=NONE), "tags must be a list"),
    (
        "a number of labels",
        lambda store: store.put_frame("a", options=cerata.PutOptions(labels=ODD)),
        "labels must be a list",
    ),
    (
        "one date",
        lambda store: store.put_frame("a", options=cerata.PutOptions(content_dates="2026-01-01")),
        "not a string",
    ),
    ("a number of texts", lambda store: store.put_frames(ODD), "texts must be a list"),
    ("metadata of texts", lambda store: store.put_frames(["a"], metadata=ODD), "metadata must be"),
    (
        "a scope",
        lambda store: store.put_frame("a", options=cerata.PutOptions(scope=ODD)),
        "scope must be a mapping",
    ),
    ("a frame to delete", lambda store: store.append(DeleteFrame(frame=WORD)), "frame must be a"),
    ("a float to delete", lambda store: store.append(DeleteFrame(frame=1.0)), "not float"),  # type: ignore[arg-type]
    ("a tag's event", lambda store: store.append(PutTag(tag="t", at=WORD)), "not by a str"),
    ("an embedding", lambda store: store.append(PutFrame(text="a", embedding=ODD)), "embedding"),
    ("one for a frame", lambda store: store.append(PutEmbedding(frame=1, embedding=ODD)), "cannot"),
    ("a transaction's head", in_transaction, "expect must be a number"),
    ("a batch's head", lambda store: store.append(PutTag(tag="t", at=1), expect=WORD), "expect"),
]


@pytest.mark.parametrize(
    ("call", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_mistake_is_invalid_input(call: Callable[[cerata.Store], object], says: str) -> None:
    """Each of them came back as an AttributeError, a TypeError or a RecursionError."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        with pytest.raises(cerata.InvalidInput, match=says):
            call(store)
        assert store.head.seq == 1


def test_any_number_of_filters_combine_in_one_level() -> None:
    """Only levels within each other are counted; a chain of ORs is one."""
    with cerata.open(":memory:") as store:
        store.put_frames(["one", "two"], metadata=[{"n": 1}, {"n": 2}])
        wide = cerata.Filter(metadata={"n": 0})
        for number in range(2, 1_000):
            wide = wide | cerata.Filter(metadata={"n": number})
        assert [frame.text for frame in store.frames(wide)] == ["two"]
        # Of frames that are neither a nor b, each time round turns none into all and back.
        deep = nested(DEPTH_MAX // 2 - 3)
        assert len(list(store.frames(deep))) == 2
        assert len(list(store.frames(nested(DEPTH_MAX // 2 - 2)))) == 0
        assert deep == nested(DEPTH_MAX // 2 - 3)
        assert ~~deep == deep
        assert copy.deepcopy(deep) == pickle.loads(pickle.dumps(deep)) == deep
        assert str(deep.to_dict())
        assert repr(deep)


READS: list[Callable[[cerata.Store, Query], object]] = [
    lambda _, query: repr(query),
    lambda _, query: hash(query),
    lambda _, query: query == built(100),
    lambda _, query: copy.deepcopy(query),
    lambda _, query: pickle.loads(pickle.dumps(query)),
    lambda store, query: store.search(query),
    lambda store, query: [store.history.explain(hit) for hit in store.search(query)],
    lambda store, query: store.recall(query, record=True),
    lambda store, query: store.files.highlights("one", query),
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("leaf", [Term("one"), FilterLeaf(nested(0))])
def test_the_deepest_query_works_everywhere(
    store: cerata.Store, read: Callable[[cerata.Store, Query], object], leaf: Query
) -> None:
    """The limit keeps every operation within Python's limit of calls."""
    store.put_frame("one")
    query = built(100, leaf)
    read(store, query)
    with pytest.raises(cerata.InvalidInput, match="levels") as caught:
        Not(query)
    assert caught.value.remedy


def test_a_written_query_of_too_many_levels_names_its_place() -> None:
    """Brackets are counted, and a bracket may hold several levels."""
    text = "(a b OR c NOT (d e OR f NOT " * 32 + "x" + "))" * 32
    with pytest.raises(cerata.QuerySyntaxError, match="the limit is 100"):
        cerata.query(text)


@pytest.mark.parametrize("cause", [2, 99, -1, -2])
def test_a_cause_is_there_before(cause: int) -> None:
    """An event was said to come from one that was not there, or from itself."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        with pytest.raises(cerata.NotFound, match="no event"):
            store.append(cerata.Draft(PutFrame(text="two"), causation=cause))
        first = cerata.Draft(PutFrame(text="two"), causation=1)
        store.append(first, cerata.Draft(PutFrame(text="three"), causation=-1))
        assert [event.causation for event in store.log()] == [None, 1, 2]


def test_a_store_for_reading_saves_nothing_and_says_so(tmp_path: Path) -> None:
    """Whether it was an error depended on whether there was something to save."""
    path = tmp_path / "memory.cera"
    cerata.open(path).close()
    with cerata.open(path, mode="r") as store, pytest.raises(cerata.ReadOnly):
        store.checkpoint()


def test_at_keeps_the_scope_of_a_view(tmp_path: Path) -> None:
    """A view of one user's frames became one of all frames."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path, scope={"user": 1}) as one:
        for user in (1, 2):
            store.put_frame(f"of {user}", options=cerata.PutOptions(scope={"user": user}))
        assert len(store.at(one.history.view())) == 1
        assert len(one.at(store.history.view())) == 1
        assert len(store.at(store.history.view())) == 2
        with cerata.open(path, scope={"user": 2}) as two, pytest.raises(cerata.InvalidInput):
            two.at(one.history.view())


def test_the_hash_of_a_content_finds_it() -> None:
    """Nothing public made the 16 bytes that are asked for."""
    with cerata.open(":memory:") as store:
        frame = store.remember("wax")
        [found] = store.history.view().files.stored(cerata.content_hash("wax"))
        assert found.id == frame.id
        assert store.history.view().files.by_content(cerata.content_hash(b"wax")) == [frame.id]
