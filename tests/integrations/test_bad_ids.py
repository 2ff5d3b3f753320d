# Where an extra is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""A write of an adapter does what it reports, or raises and writes nothing.

Each public method of an adapter is in a table (`adapter_writes`): it only reads, or it writes and
is tried with each state of a key, and with each odd value in its place. A method that is in no
table fails a test.
"""

import asyncio
import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import cerata
from cerata.integrations.mcp.service import Service

from ..bad_ids import ODD, OWNED, Place, answered, check_own, opened, public
from .adapter_writes import ADAPTERS, DEFAULT, KEY, READERS, Adapter, Call, module_of


def method(name: str) -> str:
    return name.partition(",")[0]


def test_each_public_class_of_an_adapter_is_in_a_table() -> None:
    """A new adapter comes with its table of writes."""
    root = Path(inspect.getfile(Service)).parents[1]
    names: set[str] = set()
    for path in root.glob("*/__init__.py"):
        if path.parent.name not in ("importers", "mcp", "otel"):
            [line] = [
                line for line in path.read_text(encoding="utf-8").splitlines() if "__all__" in line
            ]
            names |= {name.strip(' "') for name in line.partition("[")[2].rstrip("]").split(",")}
    assert names == {*ADAPTERS} | READERS


def marked(name: str, *values: Any) -> Any:
    return pytest.param(
        name, *values, marks=getattr(pytest.mark, ADAPTERS[name].mark), id="-".join((name, *values))
    )


def adapter_of(name: str) -> tuple[Adapter, Any]:
    adapter = ADAPTERS[name]
    pytest.importorskip(adapter.needs, reason="needs an extra")
    return adapter, module_of(f"cerata.integrations.{adapter.module}")


@pytest.mark.parametrize("name", [marked(name) for name in ADAPTERS])
def test_each_method_of_an_adapter_is_in_a_table(name: str) -> None:
    """Also those of the framework's class; an async twin has the same work."""
    adapter, module = adapter_of(name)
    writes = {method(case) for case in adapter.writes}
    assert not writes & adapter.reads
    listed = writes | adapter.reads
    twins = {f"a{each}" for each in listed}
    assert {*public(getattr(module, name))} - twins <= listed | {"session_id"}
    assert writes <= {*public(getattr(module, name))}


def caller(made: Any, *, is_async: bool) -> Call:
    """Return a call of methods and properties by their names, by the async twins if there are."""

    def call(name: str, *arguments: Any, **named: Any) -> Any:
        twin = f"a{name}"
        value = getattr(made, twin if is_async and hasattr(made, twin) else name)
        answer = value(*arguments, **named) if callable(value) else value
        return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer

    return call


async def _awaited(answer: Any) -> Any:
    return await answer


State = Callable[[Place, Adapter, Call], None]


def frame_of(place: Place, adapter: Adapter) -> int:
    assert adapter.uri_of is not None
    return place.store.scoped(adapter.scope).files.by_uri(adapter.uri_of(KEY))[-1]


def unknown(place: Place, adapter: Adapter, call: Call) -> None:
    """Nothing has the key."""


def put_once(place: Place, adapter: Adapter, call: Call) -> None:
    adapter.put(call, KEY, "text")


def put_twice(place: Place, adapter: Adapter, call: Call) -> None:
    adapter.put(call, KEY, "old")
    adapter.put(call, KEY, "text")


def hidden(place: Place, adapter: Adapter, call: Call) -> None:
    """A person hid the item, by the frame."""
    adapter.put(call, KEY, "text")
    place.store.scoped(adapter.scope).delete(frame_of(place, adapter))


def corrected(place: Place, adapter: Adapter, call: Call) -> None:
    """A person gave the item's frame tags, so it has a newer version."""
    adapter.put(call, KEY, "text")
    place.store.scoped(adapter.scope).update(frame_of(place, adapter), tags=["seen"])


def expired(place: Place, adapter: Adapter, call: Call) -> None:
    adapter.put(call, KEY, "text")
    scoped = place._replace(store=place.store.scoped(adapter.scope))
    scoped.expired(frame_of(place, adapter))


def of_other_scopes(place: Place, adapter: Adapter, call: Call) -> None:
    """Narrower, and of another tenant; the key is unknown in its own scope."""
    del call
    module = module_of(f"cerata.integrations.{adapter.module}")
    for scope in ({**DEFAULT, "team": "blue"}, {"tenant": "other"}):
        made = adapter.make(module, place.store.scoped(scope))
        adapter.put(caller(made, is_async=False), KEY, "theirs")


def copied_beside(place: Place, adapter: Adapter, call: Call) -> None:
    """Two frames have the URI, as after an import of the events of another memory."""
    adapter.put(call, KEY, "text")
    frame = place.store.frame(frame_of(place, adapter))
    place.store.scoped(adapter.scope).put_frame(
        place.store.files.content(frame) if not frame.text else frame.text,
        kind=frame.kind,
        uri=frame.uri,
        metadata=frame.metadata,
    )


def taken(kind: str, *, is_beside: bool) -> State:
    """A program put a frame of another owner at the URI of the key."""

    def take(place: Place, adapter: Adapter, call: Call) -> None:
        assert adapter.uri_of is not None
        if is_beside:
            adapter.put(call, KEY, "text")
        scoped = place.store.scoped(adapter.scope)
        scoped.put_frame("The owner wrote it.", kind=kind, uri=adapter.uri_of(KEY))

    return take


STATES: Final[Mapping[str, State]] = {
    "unknown": unknown,
    "current": put_once,
    "put twice": put_twice,
    "of other scopes": of_other_scopes,
}

FRAME_STATES: Final[Mapping[str, State]] = {
    "hidden": hidden,
    "corrected": corrected,
    "expired": expired,
    "copied beside": copied_beside,
    **{
        f"taken by {kind}": taken(kind, is_beside=False)
        for kind in dict.fromkeys(["text", *(kind for kind, _ in OWNED.values())])
    },
    **{f"beside {kind}": taken(kind, is_beside=True) for kind in ("text", "identity")},
}
"""The states of a key whose item is a frame."""


def others(place: Place, adapter: Adapter) -> dict[int, Any]:
    """Return the frames that are not the adapter's own."""
    return {
        frame.id: (frame.active, frame.superseded_by, frame.text, frame.tags)
        for frame in place.store.frames(
            where=cerata.Filter(include_superseded=True, include_deleted=True)
        )
        if frame.kind not in adapter.kinds or dict(frame.scope) != adapter.scope
    }


TWINS: Final = ("CerataStore", "CerataSaver", "CerataVectorStore", "CerataByteStore")
"""The adapters with async twins of their methods, which run the same work in a thread."""


@pytest.mark.parametrize(
    ("name", "case", "twin"),
    [
        marked(name, case, twin)
        for name, adapter in ADAPTERS.items()
        for case in adapter.writes
        for twin in ("sync", "async")
        if twin == "sync" or name in TWINS
    ],
)
def test_a_write_of_an_adapter_does_what_it_reports_or_raises(
    name: str, case: str, twin: str
) -> None:
    """Nothing but its own items changes, in its own scope; a refusal writes nothing."""
    adapter, module = adapter_of(name)
    write, is_true = adapter.writes[case]
    is_async = twin == "async"
    states = {**STATES, **(FRAME_STATES if adapter.uri_of is not None else {})}
    for kind in adapter.kinds:
        states.pop(f"taken by {kind}")
    states |= dict.fromkeys(ODD, STATES["unknown"])
    outcomes = set[bool]()
    for state, prepare in (STATES if is_async else states).items():
        place = opened()
        call = caller(adapter.make(module, place.store), is_async=is_async)
        prepare(place, adapter, call)
        # An expired frame that is not the adapter's, which a sweep of items leaves.
        place.expired(place.store.put_frame("A note.", kind="note").id)
        key = ODD.get(state, KEY)
        foreign, head = others(place, adapter), place.store.head
        before = read_or_none(adapter, call, key)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = answered(write, call, key)
            outcomes.add(isinstance(answer, cerata.CerataError))
            if isinstance(answer, cerata.CerataError):
                assert answer.remedy, state
                # Its case puts another file before.
                assert place.store.head == head or case == "rename, the destination", state
            else:
                after = read_or_none(adapter, call, key)
                assert is_true(answer, before, after), (state, answer, before, after)
                check_own(place, place.events(head.seq), adapter.kinds, adapter.scope)
                assert place.store.verify().ok
        assert others(place, adapter) == foreign, state
        place.store.close()
    assert is_async or False in outcomes


def read_or_none(adapter: Adapter, call: Call, key: Any) -> Any:
    """Return the text of a key, None of one that the adapter refuses."""
    try:
        return adapter.read(call, key)
    except cerata.CerataError:
        return None
