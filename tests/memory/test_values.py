"""Values in place of lists of parameters: what a call refuses, and how many parameters it has."""

import inspect
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, cast

import numpy as np
import pytest

import cerata
from cerata import (
    FactOptions,
    Filter,
    InvalidInput,
    Layout,
    OpenOptions,
    Page,
    PutOptions,
    Ranking,
    Store,
    Vectors,
    View,
    WriteOptions,
    agents,
)
from cerata.memory.handles import StoreHandle
from cerata.memory.values import options
from cerata.memory.values.renamed import KEYWORDS
from cerata.memory.view import ViewHandle

VALUES = (WriteOptions, PutOptions, FactOptions, Vectors, Page, Ranking, Layout, OpenOptions)

PARAMETERS_MAX = 9


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        opened.put_frame("old tea", kind="note")
        opened.supersede(1, "green tea")
        yield opened


# --- a value of the wrong type -------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[Store, Any], object], str]] = {
    "put_frame options": (lambda store, bad: store.put_frame("x", options=bad), "PutOptions"),
    "put_frame vectors": (lambda store, bad: store.put_frame("x", vectors=bad), "Vectors"),
    "put_frames options": (lambda store, bad: store.put_frames(["x"], options=bad), "PutOptions"),
    "put_frames vectors": (lambda store, bad: store.put_frames(["x"], vectors=bad), "Vectors"),
    "remember": (lambda store, bad: store.remember("x", options=bad), "PutOptions"),
    "files.remember": (lambda store, bad: store.files.remember([], options=bad), "PutOptions"),
    "assert_fact": (lambda store, bad: store.assert_fact("a", "b", 1, options=bad), "FactOptions"),
    "search vectors": (lambda store, bad: store.search("x", vectors=bad), "Vectors"),
    "search page": (lambda store, bad: store.search("x", page=bad), "Page"),
    "recall vectors": (lambda store, bad: store.recall("x", vectors=bad), "Vectors"),
    "recall layout": (lambda store, bad: store.recall("x", layout=bad), "Layout"),
    "recall record": (lambda store, bad: store.recall("x", record=bad), "WriteOptions"),
    "open": (lambda _, bad: cerata.open(":memory:", options=bad), "OpenOptions"),
}
BAD = ({"scope": {"user": "anna"}}, [1.0, 0.0], np.ones(2), "text", None, 5, Filter())


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_value_of_the_wrong_type_is_refused_with_what_to_pass(
    store: Store, name: str, bad: object
) -> None:
    call, kind = WRONG[name]
    head = store.head
    with pytest.raises(InvalidInput, match=f"a cerata.{kind}") as caught:
        call(store, bad)
    assert caught.value.remedy is not None
    assert f"cerata.{kind}(…)" in caught.value.remedy
    assert store.head == head


def test_a_value_of_another_call_is_refused(store: Store) -> None:
    """Options of a write have no fields of a frame, and those of a fact have others."""
    for bad in (WriteOptions(actor="anna"), FactOptions(actor="anna"), Vectors(dense=[1.0])):
        with pytest.raises(InvalidInput, match=r"a cerata\.PutOptions"):
            store.put_frame("x", options=cast("Any", bad))
    with pytest.raises(InvalidInput, match=r"a cerata\.FactOptions"):
        store.assert_fact("a", "b", 1, options=cast("Any", PutOptions(actor="anna")))


@pytest.mark.parametrize("kind", VALUES)
def test_a_field_that_a_value_has_not_is_a_type_error(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="lables"):
        kind(lables=["x"])
    with pytest.raises(TypeError):
        kind({"user": "anna"})


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_does_not_change(kind: type[Any]) -> None:
    value = kind()
    name = next(iter(inspect.signature(kind).parameters))
    with pytest.raises(AttributeError):
        setattr(value, name, 1)


# --- a field that a call cannot use --------------------------------------------------------------

UNUSED: dict[str, tuple[Callable[[Store, Any], object], dict[str, Any]]] = {
    "put_frame": (
        lambda store, value: store.put_frame("x", options=value),
        {"embed_limit": 5},
    ),
    "put_frames": (
        lambda store, value: store.put_frames(["x"], options=value),
        {
            "because": 1,
            "content_dates": ["2026-01-01"],
            "embed_limit": None,
            "replace": True,
            "search_text": "x",
        },
    ),
    "remember": (
        lambda store, value: store.remember("x", options=value),
        {"because": 1, "key": "k", "replace": True, "search_text": "x"},
    ),
    "files.remember": (
        lambda store, value: store.files.remember([__file__], options=value),
        {
            "because": 1,
            "key": "k",
            "replace": True,
            "search_text": "x",
            "content_dates": [],
            "created": "2026-01-01",
            "expires": "2999-01-01",
            "parent": 1,
            "track": "t",
        },
    ),
}
OF_A_QUESTION: dict[str, Any] = {"token_weights": [1.0], "approximate": True, "min_cosine": 0.0}


def refused(call: Callable[[], object], name: str, field: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} takes no {field}") as caught:
        call()
    assert f"Leave {field} out of" in str(caught.value.remedy)


@pytest.mark.parametrize("name", UNUSED)
def test_an_option_that_a_write_cannot_use_is_refused(store: Store, name: str) -> None:
    call, given = UNUSED[name]
    head = store.head
    for field, value in given.items():
        refused(lambda: call(store, PutOptions(**{field: value})), name, field)  # noqa: B023
    assert store.head == head


@pytest.mark.parametrize("field", OF_A_QUESTION)
def test_vectors_of_a_frame_take_nothing_of_a_question(store: Store, field: str) -> None:
    vectors = Vectors(**{field: OF_A_QUESTION[field]})
    refused(lambda: store.put_frame("x", vectors=vectors), "put_frame", field)
    refused(lambda: store.put_frames(["x"], vectors=vectors), "put_frames", field)


def test_a_recall_has_a_floor_in_place_of_a_cosine_and_no_key(store: Store) -> None:
    refused(lambda: store.recall("x", vectors=Vectors(min_cosine=0.1)), "recall", "min_cosine")
    for field, value in (("key", "k"), ("scope", {"user": "anna"})):
        given = WriteOptions(**cast("Any", {field: value}))
        refused(lambda: store.recall("x", record=given), "record", field)  # noqa: B023


def test_each_check_is_tested_here() -> None:
    """A call that refuses a field more needs a line above."""
    from cerata.memory.frames import commands as of_frames
    from cerata.memory.ingest import commands as of_files

    one, many = "put_frame", "put_frames"
    assert {*UNUSED[one][1]} == {"embed_limit"}
    assert {*UNUSED[many][1]} == {*of_frames._OF_ONE_FRAME}
    assert {*UNUSED["remember"][1]} == {*of_files._NOT_INGESTED}
    assert {*UNUSED["files.remember"][1]} == {*of_files._NOT_OF_FILES}


# --- a filter with more than tests ---------------------------------------------------------------

OF_QUESTION = Filter(content="question")
CLOSED = (Filter(include_superseded=True), Filter(include_deleted=True))


def test_the_times_of_a_question_combine_by_and_alone() -> None:
    notes = Filter(kind="note")
    assert (notes & OF_QUESTION).of_question
    assert (OF_QUESTION & notes).of_question
    assert (OF_QUESTION & OF_QUESTION).of_question
    combined: tuple[Callable[[], Filter], ...] = (
        lambda: notes | OF_QUESTION,
        lambda: OF_QUESTION | notes,
        lambda: ~OF_QUESTION,
        lambda: ~(notes & OF_QUESTION),
    )
    for combine in combined:
        with pytest.raises(InvalidInput, match="holds for a whole filter"):
            combine()


def test_closed_frames_hold_for_the_whole_filter() -> None:
    old, gone = CLOSED
    for both in (old & gone, old | gone, ~(old & gone)):
        assert both.include_superseded
        assert both.include_deleted
    assert not (Filter(kind="note") & Filter(role="user")).include_superseded


def test_the_times_of_a_question_bound_a_search_and_a_context() -> None:
    with cerata.open(":memory:") as store:
        for year in (2019, 2024):
            store.put_frame(f"tea of {year}", options=PutOptions(created=f"{year}-05-01"))
        question = "tea in May 2019"
        assert {hit.id for hit in store.search("tea in May 2019")} == {1, 2}
        assert [hit.id for hit in store.search(question, where=OF_QUESTION)] == [1]
        shown = store.recall(question, where=OF_QUESTION, floor=False).items
        assert [item.id for item in shown] == [1]
        # A question that names no time.
        assert {hit.id for hit in store.search("tea", where=OF_QUESTION)} == {1, 2}


READS: dict[str, Callable[[Store, Filter], object]] = {
    "count": lambda store, where: store.count(where),
    "delete": lambda store, where: store.delete(where=where & Filter(kind="note")),
    "values": lambda store, where: store.files.values("kind", where=where),
    "last": lambda store, where: store.history.last(where=where),
    "messages": lambda store, where: agents.messages(store, where=where),
    "extract": lambda store, where: store.graph.extract(where=where),
    "frames": lambda store, where: [*store.frames(where)],
    "timeline": lambda store, where: store.history.timeline(where=where),
}
"""The calls with a filter and without a question."""
WITH_CLOSED = ("frames", "timeline")


@pytest.mark.parametrize("name", READS)
def test_a_read_without_a_question_refuses_the_times_of_one(store: Store, name: str) -> None:
    head = store.head
    with pytest.raises(InvalidInput, match="needs a question, and this read has none"):
        READS[name](store, OF_QUESTION)
    assert store.head == head


@pytest.mark.parametrize("where", CLOSED, ids=("superseded", "deleted"))
@pytest.mark.parametrize("name", READS)
def test_a_call_on_current_frames_refuses_closed_frames(
    store: Store, name: str, where: Filter
) -> None:
    """The call that reads facts would have asserted those of deleted frames."""
    head = store.head
    if name in WITH_CLOSED:
        READS[name](store, where)
    else:
        with pytest.raises(InvalidInput, match="takes current frames alone"):
            READS[name](store, where)
    assert store.head == head


def test_a_context_refuses_deleted_frames(store: Store) -> None:
    """It shows replaced frames, and left out the deleted ones without a word."""
    old, gone = CLOSED
    assert {item.id for item in store.recall("tea", where=old, floor=False).items} == {1, 2}
    with pytest.raises(InvalidInput, match="A context shows no deleted frames"):
        store.recall("tea", where=gone)


# --- the number of parameters --------------------------------------------------------------------


def public_calls() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the public calls of a store, of a view and of their handles, and `cerata.open`."""
    yield "cerata.open", cerata.open
    for face, handle in ((Store, StoreHandle), (View, ViewHandle)):
        owners: dict[str, type] = {face.__name__: face}
        for name, value in inspect.getmembers_static(face):
            if isinstance(value, handle):
                owners[f"{face.__name__}.{name}"] = value.kind
        assert len(owners) > 5
        for owner, kind in owners.items():
            for name, call in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_"):
                    yield f"{owner}.{name}", call


def test_a_call_has_few_parameters() -> None:
    """A longer list is a value that has no name yet."""
    counts = {
        name: len(inspect.signature(call).parameters.keys() - {"self", "_moved"})
        for name, call in public_calls()
    }
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > PARAMETERS_MAX} == {}


def test_each_value_is_public_and_has_a_default_of_each_field() -> None:
    for kind in VALUES:
        assert getattr(cerata, kind.__name__) is kind
        assert kind() is not None
    assert PutOptions() == options.PUT


# --- keywords that moved -------------------------------------------------------------------------

MOVED = [(call, name) for call, names in KEYWORDS.items() for name in names]
HOMES = {"timeline": "history.timeline"}
"""The calls of the table that have a handle, and no other name."""
GIVEN: dict[str, tuple[str, ...]] = {"assert_fact": ("ann", "likes", "tea"), "timeline": ()}
"""The arguments that each call needs; a text for the rest."""


@pytest.mark.parametrize(("call", "name"), MOVED)
def test_an_old_keyword_is_refused_with_a_place_that_the_call_takes(
    store: Store, call: str, name: str
) -> None:
    """The table named fields that the call refuses, and values that it does not take."""
    function = cerata.open if call == "open" else attrgetter(HOMES.get(call, call))(store)
    new = KEYWORDS[call][name]
    with pytest.raises(InvalidInput, match=re.escape(f"{call}() has no {name}=")) as caught:
        function(*GIVEN.get(call, ("text",)), **{name: None})
    assert new in str(caught.value.remedy)
    argument, _, value = new.partition("=")
    assert argument in inspect.signature(function).parameters
    if value != "…":
        kind, _, field = value.removeprefix("cerata.").partition("(")
        field = field.removesuffix("=…)")
        assert field in inspect.signature(getattr(cerata, kind)).parameters
        assert field not in UNUSED.get(call, (None, {}))[1]


def test_a_keyword_that_never_was_is_unknown(store: Store) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'embedding'"):
        cast("Any", store.remember)("text", embedding=[1.0])
