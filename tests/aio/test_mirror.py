"""The asynchronous store has every public name of the store, with its arguments."""

import asyncio
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import cerata
import cerata.aio
from cerata.aio.mirror import ITERATED, PLAIN, mirror_of, public_members
from cerata.memory.handles import Graph, StoreHandle, Stream
from cerata.memory.view import GraphOfView, ViewHandle
from tools.async_stub import STUB, stub

FACES = [(cerata.Store, cerata.aio.AsyncStore), (cerata.View, cerata.aio.AsyncView)]

HANDLES: list[type] = [
    member.kind
    for sync, _ in FACES
    for _, member in public_members(sync)
    if isinstance(member, StoreHandle | ViewHandle)
]

PAIRS: list[tuple[type, Any]] = [*FACES, *((kind, mirror_of(kind)) for kind in HANDLES)]
MORE = {"run", "sync"}
"""The names that only the asynchronous classes have."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("sync", "own"), PAIRS, ids=[sync.__name__ for sync, _ in PAIRS])
def test_every_public_name_is_mirrored_with_its_signature(sync: type, own: type) -> None:
    """A method that is added to the store is there at once."""
    assert public(own) - MORE == public(sync)
    for name in public(sync):
        member = inspect.getattr_static(sync, name)
        mirror = inspect.getattr_static(own, name)
        assert mirror.__doc__, name
        if isinstance(member, StoreHandle | ViewHandle):
            assert isinstance(mirror, property), name
        elif isinstance(member, property):
            assert isinstance(mirror, property) is (name in PLAIN), name
        elif name not in ("close", "follow", "scoped", "transaction"):
            assert inspect.signature(mirror) == inspect.signature(member), name
            assert inspect.iscoroutinefunction(mirror) is not (name in ITERATED), name


@pytest.mark.parametrize("sync", [sync for sync, _ in PAIRS])
def test_every_iterator_is_asynchronous(sync: type) -> None:
    """An iterator that a call returned would read the file in the event loop."""
    returned = {
        name
        for name in public(sync)
        if inspect.isfunction(member := inspect.getattr_static(sync, name))
        and "Iterator" in str(inspect.signature(inspect.unwrap(member)).return_annotation)
    }
    assert returned == ITERATED & public(sync)
    assert issubclass(cerata.EventStream, Iterator)


def test_the_pairs_have_every_handle() -> None:
    """The seven of a store and the seven of a view."""
    assert len(HANDLES) == len({*HANDLES}) == 14


def test_a_call_of_a_handle_is_awaited() -> None:
    """Also one that follows, and one of a view."""
    asyncio.run(_call_handles())


async def _call_handles() -> None:
    async with cerata.aio.open(":memory:") as store:
        one = await store.assert_fact("Ann", "likes", "tea")
        other = await store.assert_fact("Bob", "likes", "tea")
        made = await store.graph.link(one, "supports", other)
        assert isinstance(store.graph, mirror_of(Graph))
        assert isinstance(store.stream, mirror_of(Stream))
        view = await store.history.view()
        assert isinstance(view.graph, mirror_of(GraphOfView))
        assert [link.id for link in await view.graph.links()] == [made.id]
        assert [entity.name async for entity in view.graph.entities()] == ["Ann", "Bob"]
        assert [event.seq async for event in store.stream.follow(0, timeout=0)] == [1, 2, 3]


def test_the_stub_is_that_of_the_signatures() -> None:
    """Type checkers see the stub alone: run ``python -m tools.async_stub`` after a change."""
    assert STUB.read_text(encoding="utf-8") == stub()


def test_the_opening_takes_the_arguments_of_open() -> None:
    text = STUB.read_text(encoding="utf-8").rpartition("def open_store(")[2]
    for name in inspect.signature(cerata.open).parameters:
        assert f"{name}: " in text, name


def test_a_missing_name_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules above, seen failing."""

    def added(self: Any) -> int:
        return 1

    monkeypatch.setattr(cerata.Store, "added", added, raising=False)
    assert public(cerata.aio.AsyncStore) - MORE != public(cerata.Store)


def test_the_front_door_does_not_load_asyncio() -> None:
    """A program without asyncio does not pay for it."""
    import subprocess

    program = "import sys, cerata; cerata.Store; print('asyncio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
