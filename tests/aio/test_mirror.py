"""The asynchronous store has every public name of the store, with its arguments."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import cerata
import cerata.aio
from cerata.aio.mirror import ITERATED, PLAIN
from tools.async_stub import STUB, stub

PAIRS = [(cerata.Store, cerata.aio.AsyncStore), (cerata.View, cerata.aio.AsyncView)]
MORE = {"run", "sync"}
"""The names that only the asynchronous classes have."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("sync", "own"), PAIRS, ids=["Store", "View"])
def test_every_public_name_is_mirrored_with_its_signature(sync: type, own: type) -> None:
    """A method that is added to the store is there at once."""
    assert public(own) - MORE == public(sync)
    for name in public(sync):
        member = inspect.getattr_static(sync, name)
        mirror = inspect.getattr_static(own, name)
        assert mirror.__doc__, name
        if isinstance(member, property):
            assert isinstance(mirror, property) is (name in PLAIN), name
        elif name not in ("close", "follow", "scoped", "transaction"):
            assert inspect.signature(mirror) == inspect.signature(member), name
            assert inspect.iscoroutinefunction(mirror) is not (name in ITERATED), name


@pytest.mark.parametrize("sync", [cerata.Store, cerata.View])
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
