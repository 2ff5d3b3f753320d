"""The handles of a store and a view: names that moved, scopes, and what a handle is."""

import asyncio
import copy
import pickle
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final

import pytest

import cerata
import cerata.aio
from cerata import InvalidInput, Store, Unsupported, View
from cerata.aio.mirror import public_members
from cerata.memory.handles import StoreHandle, public_names
from cerata.memory.values.renamed import RENAMED
from cerata.memory.view import ViewHandle
from tools import renamed

HANDLES: Final = ("graph", "history", "files", "stream", "interchange", "upkeep", "embeddings")

ALICE: Final = {"tenant": "alice"}
BOB: Final = {"tenant": "bob"}


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


# --- names that moved ----------------------------------------------------------------------------


def test_every_name_that_moved_is_in_its_new_place() -> None:
    """A view has the reads among them."""
    assert set(RENAMED.values()) <= {*public_names(Store)}
    dotted = {name for name in (*public_names(Store), *public_names(View)) if "." in name}
    assert dotted == set(RENAMED.values())


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_an_error_that_has_the_new_one(store: Store, old: str) -> None:
    """A handle may have the name of an old call: `store.history.of` was one."""
    new = RENAMED[old]
    view: Any = store.history.view()
    for kind, value in (("Store", store), ("View", view)):
        if old in HANDLES:
            with pytest.raises(TypeError, match=re.escape(f"use {new}()")):
                getattr(value, old)(1)
            continue
        with pytest.raises(AttributeError) as error:
            getattr(value, old)
        assert (error.value.name, error.value.obj) == (old, value)
        told = f"{kind!r} object has no attribute {old!r}: use {kind.lower()}.{new}"
        assert str(error.value) == f"{told} (docs/renamed.md)"


def test_an_old_name_of_the_asynchronous_classes_is_such_an_error() -> None:
    asyncio.run(_look_up_old_names())


async def _look_up_old_names() -> None:
    async with cerata.aio.open(":memory:") as store:
        for kind, value in (("AsyncStore", store), ("AsyncView", await store.history.view())):
            for old, new in RENAMED.items():
                if old not in HANDLES:
                    with pytest.raises(AttributeError, match=rf"{kind}.*{old!r}: use \w+\.{new} "):
                        getattr(value, old)


def test_another_name_is_an_error_of_python(store: Store) -> None:
    unknown: Any = "unknown"
    for value in (store, store.history.view()):
        with pytest.raises(AttributeError, match=r"no attribute 'unknown'$"):
            getattr(value, unknown)
        assert not hasattr(value, "_unknown")


def test_the_page_of_names_is_that_of_the_table() -> None:
    """Run ``python -m tools.renamed`` after a change."""
    assert renamed.PAGE.read_text(encoding="utf-8") == renamed.page()


# --- what a handle is ----------------------------------------------------------------------------


def test_a_store_and_a_view_have_the_seven() -> None:
    for kind, descriptor in ((Store, StoreHandle), (View, ViewHandle)):
        found = {name for name, member in vars(kind).items() if isinstance(member, descriptor)}
        assert found == set(HANDLES)


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_is_made_once(store: Store, name: str) -> None:
    get: Callable[[Any], Any] = attrgetter(name)
    view = store.history.view()
    for one in (store, view):
        assert get(one) is get(one)
        assert type(get(one)) is get(type(one))
    assert get(store) is not get(store.scoped(ALICE))
    assert get(view) is not get(store.at(0))


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_cannot_be_copied_or_pickled(store: Store, name: str) -> None:
    """As its store, and as its view."""
    get: Callable[[Any], Any] = attrgetter(name)
    for one, way in ((store, "open it there"), (store.history.view(), "at(basis)")):
        for refused in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(Unsupported, match="cannot be copied or pickled") as error:
                refused(get(one))
            assert way in str(error.value.remedy)


# --- scopes --------------------------------------------------------------------------------------


def test_the_handles_of_a_scoped_store_keep_its_scope(store: Store) -> None:
    """Also if the handles of the first store, and of another scope, were used before."""
    alice, bob = store.scoped(ALICE, actor="ann"), store.scoped(BOB)
    for one in (store, alice, bob):
        assert not [*one.graph.entities()]
        assert not one.history.last()
    alice.graph.name("Ann", kind="person")
    alice.put_frame("alice's", uri="file:a")
    alice.history.tag("v1")
    assert [entity.name for entity in alice.graph.entities()] == ["Ann"]
    assert [frame.text for frame in alice.history.last()] == ["alice's"]
    assert alice.files.by_uri("file:a") == store.files.by_uri("file:a") != []
    assert [*alice.history.tags()] == ["v1"]
    assert {event.actor for event in alice.log()} == {"ann"}
    assert [dict(event.scope or ()) for event in alice.stream.follow(0, timeout=0)] == [ALICE] * 3
    view = store.history.view().within(BOB)
    for other in (bob, view):
        assert not [*other.graph.entities()]
        assert not other.history.last()
        assert other.files.by_uri("file:a") == []
        assert not other.history.tags()
    assert [*bob.stream.follow(0, timeout=0)] == []
    with pytest.raises(InvalidInput):
        alice.upkeep.compact()


def test_the_writes_of_a_handle_belong_to_the_transaction_of_its_store(store: Store) -> None:
    with store.transaction() as transaction:
        store.graph.name("Ann", kind="person")
        store.put_frame("in a block")
        assert [entity.name for entity in store.graph.entities()] == ["Ann"]
        assert [frame.text for frame in store.history.last()] == ["in a block"]
        assert not [*store.scoped(ALICE).graph.entities()]
    assert transaction.receipt.seqs == (1, 2)


def test_a_fork_takes_a_store_and_no_handle(store: Store) -> None:
    """It refused every fork, since it took the handle for the store."""
    store.put_frame("before")
    with store.upkeep.fork() as fork:
        fork.put_frame("in the fork")
        assert len(fork.upkeep.drafts_after(store)) == 1
        assert store.upkeep.apply(fork).added
        handle: Any = fork.upkeep
        for call in (store.upkeep.apply, store.upkeep.drafts_after, store.history.compare):
            with pytest.raises(InvalidInput, match="must be a store, not Upkeep"):
                call(handle)
    assert [frame.text for frame in store.history.last()] == ["before", "in the fork"]


def test_a_store_has_few_names() -> None:
    """26 calls of every day, six properties and seven handles; a further call has a handle."""
    members = [member for _, member in public_members(Store)]
    handles = sum(isinstance(member, StoreHandle) for member in members)
    properties = sum(isinstance(member, property) for member in members)
    assert (len(members) - handles - properties, properties, handles) == (26, 6, 7)
    assert len([*public_members(View)]) == 24
