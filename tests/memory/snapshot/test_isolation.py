"""A store with a scope shows nothing of what lies outside it, by no public name."""

import inspect
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest import mock

import msgspec
import numpy as np
import pytest

import cerata
from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.events import DeleteFrame, Draft, PutFrame, SupersedeFrame
from cerata.memory.batch.transaction import block_of
from cerata.memory.batch.writer import session_of
from cerata.memory.handles import History
from cerata.memory.snapshot.layer import Layer
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.scopes import Reach, ScopeNames
from cerata.projections.frames.reader import Frames

from ...inside import log_of
from .isolation import TABLES, public_names, read_shared, shown_by, sweep
from .isolation_calls import OF_PACKS

ALICE = {"tenant": "alice"}
BOB = {"tenant": "bob"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cera"


# --- all public names ----------------------------------------------------------------------------


def test_every_public_name_is_in_the_table() -> None:
    """A new name could show another tenant's events, and no test would call it."""
    with cerata.open(":memory:", scope=ALICE) as store, store.transaction() as transaction:
        block = block_of(transaction)
        face = {"Store": store, "View": store.history.view(), "Transaction": transaction}
        named = {**face, "Block": block}
        for kind, value in named.items():
            assert public_names(value) == set(TABLES[kind]) - OF_PACKS, kind


def test_no_public_function_takes_a_store_or_a_view() -> None:
    """One that did would need a table of its own."""
    functions = [one for one in map(vars(cerata).get, cerata.__all__) if inspect.isfunction(one)]
    assert functions
    for function in functions:
        taken = [str(one.annotation) for one in inspect.signature(function).parameters.values()]
        assert not [one for one in taken if "Store" in one or "View" in one], function.__name__


def test_what_is_no_answer_is_not_documented_as_one() -> None:
    """Indexes that reads are made of are of the whole file."""
    documented = Path(__file__).parents[3].joinpath("docs/api.md").read_text()
    reasons = {name: why for name, why in TABLES["View"].items() if isinstance(why, str)}
    for name, why in reasons.items():
        assert "not in docs/api.md" not in why or f"`{name}`" not in documented, name


QUICK = [one for table in TABLES.values() for one in table if not one.startswith("draw")]
"""``python -m tests.memory.snapshot.isolation`` draws pictures too; it calls all as each reader."""


@pytest.mark.parametrize(
    ("reader", "only"), [("ux", QUICK), ("ux+", QUICK), ("bool", ["log", "at"])]
)
def test_no_public_name_shows_what_lies_outside_the_scope(reader: str, only: list[str]) -> None:
    """Salvage, wider views and helpers did, and keys and spaces met across tenants."""
    found = sweep([reader], only)
    assert found.leaks == []
    assert found.calls > 100


def test_a_shared_reader_misses_nothing_and_sees_nothing_else() -> None:
    """Every read of it is that of a reader of the tenant in a file without the hidden events."""
    found = read_shared()
    assert found.leaks == []
    assert found.calls > 100


@contextmanager
def _off(kind: type, name: str, instead: Any) -> Generator[None]:
    with mock.patch.object(kind, name, instead):
        yield


def _widened(view: Snapshot, scope: Any = None, **_: object) -> Snapshot:
    pairs = tuple(cast("dict[str, Any]", dict(scope or ())).items())
    return msgspec.structs.replace(view, reach=Reach(pairs) if pairs else None, _base=None)


def _all_rows(layer: Layer) -> object:
    return np.ones(layer.rows, np.bool_)


def _says(answer: object) -> Any:
    def say(*_: object) -> object:
        return answer

    return say


def _salvaged(history: History) -> object:
    return salvaged_events(log_of(history))


@pytest.mark.parametrize(
    ("kind", "name", "instead", "only"),
    [
        (Snapshot, "sees", _says(answer=True), ["log", "history.tags"]),
        (Snapshot, "within", _widened, ["within"]),
        (Frames, "admits_row", _says(answer=True), ["frame"]),
        (Layers, "check_has", _says(None), ["frame", "files.content"]),
        (ScopeNames, "admitted", _says(None), ["facts", "graph.entities", "graph.links"]),
        (History, "salvaged", _salvaged, ["history.salvaged"]),
    ],
)
def test_a_filter_that_is_switched_off_is_a_leak(
    kind: type, name: str, instead: Any, only: list[str]
) -> None:
    """A test that finds nothing shows nothing, unless it finds what is there."""
    for one in only:
        assert sweep(["ux"], [one], lambda: _off(kind, name, instead)).leaks, one


def test_lists_of_frames_leak_without_both_of_their_filters() -> None:
    """The mask of a list, and the check of each of its frames."""

    @contextmanager
    def off() -> Generator[None]:
        with (
            _off(Layer, "visible", property(_all_rows)),
            _off(Frames, "admits_row", _says(answer=True)),
        ):
            yield

    assert sweep(["ux"], ["frames"], off).leaks


# --- one by one ----------------------------------------------------------------------------------


def test_what_is_salvaged_is_within_the_scope(path: Path) -> None:
    """A store of bob's yielded every event of alice's."""
    with cerata.open(path, scope=ALICE) as alice, cerata.open(path, scope=BOB) as bob:
        alice.put_frame("alice's")
        bob.put_frame("bob's")
        assert [event.seq for event in bob.history.salvaged()] == [2]
    with cerata.open(path, mode="r") as store:
        assert [event.seq for event in store.history.salvaged()] == [1, 2]


def test_a_view_is_narrowed_and_never_widened(path: Path) -> None:
    """None, or another scope, showed all."""
    with cerata.open(path) as store:
        store.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        store.put_frame("of her phone", options=cerata.PutOptions(scope={**ALICE, "user": "phone"}))
        store.put_frame("bob's", options=cerata.PutOptions(scope=BOB))
    with cerata.open(path, scope={**ALICE, "user": "phone"}) as store:
        view = store.history.view()
        for scope in (None, {}, ALICE, (("tenant", "alice"),), view.scope):
            assert [frame.text for frame in view.within(scope).frames()] == ["of her phone"]
        assert len(view.within({"session": 1})) == 0
        for other in (BOB, {**ALICE, "user": "laptop"}, {"user": True}):
            with pytest.raises(cerata.InvalidInput, match="cannot become"):
                view.within(other)
    with cerata.open(path) as store:
        narrowed = store.history.view().within(ALICE)
        assert len(narrowed) == 2
        assert len(store.at(narrowed.within(None))) == 2


def test_views_of_1_and_true_are_two(path: Path) -> None:
    """They are equal in Python, and the facts of one were kept as those of the other."""
    with cerata.open(path) as store:
        for tenant in (1, "1", True):
            store.assert_fact(
                "Ada", "is of", repr(tenant), options=cerata.FactOptions(scope={"tenant": tenant})
            )
            store.graph.name("Ada", aliases=[f"alias {tenant!r}"], scope={"tenant": tenant})
        for tenant in (1, "1", True):
            view = store.history.view().within({"tenant": tenant})
            assert [fact.object for fact in view.facts()] == [repr(tenant)]
            assert view.graph.entity("Ada").aliases == (f"alias {tenant!r}",)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_key_belongs_to_a_tenant_of_its_type(path: Path, sealed: bool) -> None:
    """Tenant 1 was given the receipt of tenant "1", and nothing was written."""
    with cerata.open(path) as store:
        receipts: dict[str, cerata.Receipt] = {}
        for tenant in (1, "1", True):
            receipts[repr(tenant)] = store.put_frame(
                "x", options=cerata.PutOptions(scope={"tenant": tenant}, key="k")
            )
            if sealed:
                store.checkpoint()
        assert [one.added for one in receipts.values()] == [True] * 3
        for tenant in (1, "1", True):
            again = store.put_frame(
                "x", options=cerata.PutOptions(scope={"tenant": tenant}, key="k")
            )
            assert (again.added, again.id) == (False, receipts[repr(tenant)].id)
            with cerata.open(path, scope={"tenant": tenant}) as own:
                with own.transaction(key="k") as block:
                    pass
                assert block.receipt.id == receipts[repr(tenant)].id
                used = session_of(own).first_use("k", tenant)
                assert used is not None
                assert used.id == receipts[repr(tenant)].id
                assert [session_of(own).first_use("k", one) for one in (1, "1", True)].count(
                    None
                ) == 2
        assert store.verify().ok


def test_a_key_of_another_user_is_not_this_users(path: Path) -> None:
    """He was given the receipt of her batch, and his was not written."""
    users = [{**ALICE, "user": name} for name in ("phone", "laptop")]
    for user in users:
        with cerata.open(path, scope=user) as store, store.transaction(key="k") as block:
            store.put_frame("the same text")
        assert block.receipt.added
    with cerata.open(path, scope=ALICE) as store:
        assert len(store) == 2
        assert session_of(store).first_use("k", "alice") == session_of(store).first_use(
            "k", "alice"
        )


def test_a_space_is_each_tenants_own(path: Path) -> None:
    """The first tenant fixed the shape for all, and the error told the others."""
    with cerata.open(path, scope=ALICE) as alice, cerata.open(path, scope=BOB) as bob:
        alice.put_frame("alice's", vectors=cerata.Vectors(dense=[1, 0, 0], space="s"))
        bob.put_frame("bob's", vectors=cerata.Vectors(dense=[0, 1], space="s"))
        alice.put_frame("alice's too", vectors=cerata.Vectors(dense=[0, 1, 0], space="s"))
        alice.checkpoint()
        for store, vector in ((alice, [1, 0, 0]), (bob, [0, 1])):
            hits = store.search("x", mode="vector", vectors=cerata.Vectors(dense=vector, space="s"))
            assert hits[0].score == pytest.approx(1.0)
            found = store.embeddings.of(hits[0])
            assert found is not None
            assert found.tolist() == vector
            with pytest.raises(cerata.InvalidInput, match="dimensions"):
                store.put_frame("x", vectors=cerata.Vectors(dense=[1] * 7, space="s"))
        with pytest.raises(cerata.InvalidInput) as refused:
            bob.search("x", vectors=cerata.Vectors(dense=[1, 0, 0], space="s"))
        assert "'s' 2" in str(refused.value)
        assert alice.verify().ok
    with cerata.open(path) as store:
        for vector, count in (([1, 0, 0], 2), ([0, 1], 1)):
            assert (
                len(
                    store.search(
                        "x", mode="vector", vectors=cerata.Vectors(dense=vector, space="s")
                    )
                )
                == count
            )
        with pytest.raises(cerata.InvalidInput, match="dimensions"):
            store.put_frame(
                "x",
                vectors=cerata.Vectors(dense=[1] * 7, space="s"),
                options=cerata.PutOptions(scope=ALICE),
            )


def test_users_of_a_tenant_see_their_own_tags(path: Path) -> None:
    """A store of one user listed the tags of every user of the tenant."""
    for number, user in enumerate(("phone", "laptop"), start=1):
        with cerata.open(path, scope={**ALICE, "user": user}) as store:
            store.put_frame("x")
            store.history.tag("v1")
            store.history.tag(f"{user}-only")
            assert store.history.tags() == {f"{user}-only": 3 * number - 1, "v1": 3 * number - 2}
    with cerata.open(path, scope=ALICE) as store:
        assert store.history.tags() == {"laptop-only": 5, "phone-only": 2, "v1": 1}
        with pytest.raises(cerata.Conflict, match="already"):
            store.history.tag("v1")


def test_a_merge_of_another_user_is_refused_without_its_names(path: Path) -> None:
    """The error told what the other had merged the entity into."""
    for user in ("phone", "laptop"):
        with cerata.open(path, scope={**ALICE, "user": user}) as store:
            store.assert_fact("Ada", "is of", f"secret of {user}")
            store.assert_fact(f"secret of {user}", "is", "a name")
            if user == "phone":
                store.graph.merge("Ada", "secret of phone")
                continue
            with pytest.raises(cerata.Conflict) as refused:
                store.graph.merge("Ada", "secret of laptop")
            assert "phone" not in str(refused.value)


def test_what_an_operator_joined_across_tenants_shows_no_content(path: Path) -> None:
    """A store without a scope may put a frame below, or in the place of, another tenant's."""
    with cerata.open(path) as store:
        document = store.put_frame("alice's document", options=cerata.PutOptions(scope=ALICE))
        old = store.put_frame("alice's old", options=cerata.PutOptions(scope=ALICE))
        bob = tuple(BOB.items())
        below = Draft(PutFrame(text="secret", parent=document.id, chunk_index=0), bob)
        store.append(below)
        new = store.put_frame("secret", options=cerata.PutOptions(scope=BOB))
        store.append(Draft(SupersedeFrame(old=old.id, new=new.id), bob))
        store.append(Draft(DeleteFrame(frame=document.id), bob))
    with cerata.open(path, scope=ALICE) as store:
        view = store.history.view()
        shown = [
            *[view.history.of(one) for one in (document, old)],
            *[view.files.chunks(one) for one in (document, old)],
            *view.frames(
                include_chunks=True,
                where=cerata.Filter(include_deleted=True, include_superseded=True),
            ),
            *[view.frame(one).text for one in (document, old)],
            *view.history.timeline(
                where=cerata.Filter(include_deleted=True, include_superseded=True)
            ).entries,
            store.diff(0),
            str(store.diff(2)),
            *store.log(),
        ]
        assert not [text for text in shown_by(shown) if "secret" in text]
