"""No read of an agent shows another tenant's or user's data, with either layer switched off.

The first layer are the masks of projections, which are keyed by scope. The second is the check of
an event's own scope where the event becomes a value.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest

import cerata
from cerata import Agent, MemorySpec, Store, conversation_memory, semantic_memory
from cerata.agents.slot import Slot
from cerata.memory.snapshot import layers as layers_module
from cerata.memory.snapshot.layer import Layer
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.scopes import ScopeNames

from ..memory.snapshot.isolation import shown_by

MEMORY = {
    "prefs": MemorySpec(scope="user_id"),
    "mode": MemorySpec(scope="user_id", type="value"),
    "talk": conversation_memory(),
    "notes": semantic_memory("user_id"),
}
OWNERS = [("acme", "u1"), ("acme", "u2"), ("other", "u1")]


def secret(tenant: str, user: str) -> str:
    return f"quartz{tenant}{user}"


def _fetch(name: str) -> list[str]:
    return [name]


def _fill(store: Store, tenant: str, user: str) -> dict[str, int]:
    """Write the same things for each owner, with a secret in each; return the ids."""
    mark = secret(tenant, user)
    with store.scoped({"tenant": tenant, "user_id": user}) as own:
        agent = Agent(own, "analyst", memory=MEMORY)
        agent.slot("prefs").set("risk", mark)
        agent.slot("mode").set({"speed": mark})
        agent.slot("talk").append([mark])
        note = agent.slot("notes").append(f"the harbour of {mark}")
        run = agent.run("r1", inputs={"city": mark})
        result = run.call("fetch", _fetch, name=mark)
        with agent.session("s1") as session, session.run("r2") as ended:
            ended.put("x", mark)
        return {"note": note.id, "run": run.activity.id, "frame": result.id or 0}


Read = Callable[[Agent], object]


def _reads(ids: list[dict[str, int]]) -> Iterator[tuple[str, Read]]:
    """Yield each public read, with names that all owners use and with the ids of each owner."""
    yield "runs", lambda agent: agent.runs()
    yield "sessions", lambda agent: agent.sessions()
    runs: list[str | int] = ["r1", "r2", *(each["run"] for each in ids)]
    for name in runs:
        yield f"calls {name}", partial(Agent.calls, run=name)
        yield f"refs {name}", partial(Agent.refs, run=name)
        yield f"get {name}", partial(Agent.get, run=name, ref="$ref:fetch.1")
        yield f"input {name}", partial(Agent.get, run=name, ref="$ref:input_city.1")
    for slot in MEMORY:
        yield f"{slot} items", partial(_of_slot, slot, Slot.items)
        yield f"{slot} history", partial(_of_slot, slot, Slot.history)
        for each in ids:
            yield f"{slot} raw", partial(_of_slot, slot, partial(Slot.raw, key=each["note"]))
    yield "get", lambda agent: (agent.slot("prefs").get("risk"), agent.slot("mode").get())
    yield "keys", lambda agent: (agent.slot("prefs").keys(), agent.slot("prefs").raw("risk"))
    yield "last", lambda agent: agent.slot("talk").last(9)
    yield "search", lambda agent: agent.slot("notes").search("harbour quartz", k=9)


def _of_slot(slot: str, read: Callable[[Slot], object], agent: Agent) -> object:
    return read(agent.slot(slot))


def leaks(store: Store, ids: list[dict[str, int]]) -> tuple[list[str], int]:
    """Return each read that shows another owner's secret, and the number of reads."""
    leaked: list[str] = []
    count = 0
    for tenant, user in OWNERS:
        hidden = [secret(*owner) for owner in OWNERS if owner != (tenant, user)]
        with store.scoped({"tenant": tenant, "user_id": user}) as own:
            agent = Agent(own, "analyst", memory=MEMORY)
            for name, read in _reads(ids):
                for each in (agent, agent.at(store.head.seq)):
                    count += 1
                    try:
                        answer: object = read(each)
                    except cerata.CerataError as error:
                        answer = error
                    if any(word in text for text in shown_by(answer) for word in hidden):
                        leaked.append(f"{tenant}/{user} {name}")
    return leaked, count


def _say(answer: object) -> Callable[..., Any]:
    return lambda *_: answer


def _all_of_instance(_: Slot, __: Layers, newest: Iterable[int]) -> list[int]:
    return [*newest][::-1]


def _unchecked(_: Slot, frame: cerata.Frame) -> cerata.Frame:
    return frame


FIRST: dict[tuple[Any, str], Any] = {
    (Layer, "visible"): property(lambda layer: np.ones(layer.rows, np.bool_)),
    (Layers, "has"): _say(answer=True),
    (layers_module, "is_same"): _say(answer=True),
    (ScopeNames, "admitted"): _say(None),
    (Slot, "_of_instance"): _all_of_instance,
}
SECOND: dict[tuple[Any, str], Any] = {
    (Snapshot, "sees"): _say(answer=True),
    (Slot, "_checked"): _unchecked,
}


@contextmanager
def _off(*layers: dict[tuple[Any, str], Any]) -> Generator[None]:
    with ExitStack() as stack:
        for layer in layers:
            for (kind, name), instead in layer.items():
                stack.enter_context(mock.patch.object(kind, name, instead))
        yield


@pytest.fixture
def world() -> Iterator[tuple[Store, list[dict[str, int]]]]:
    with cerata.open(":memory:") as store:
        yield store, [_fill(store, *owner) for owner in OWNERS]


@pytest.mark.parametrize("layers", [(), (FIRST,), (SECOND,)], ids=["both", "second", "first"])
def test_no_read_shows_another_owner(
    world: tuple[Store, list[dict[str, int]]], layers: tuple[dict[tuple[Any, str], Any], ...]
) -> None:
    """With both layers, with the second alone, and with the first alone."""
    with _off(*layers):
        leaked, count = leaks(*world)
    assert leaked == []
    assert count > 200


def test_without_both_layers_reads_leak(world: tuple[Store, list[dict[str, int]]]) -> None:
    """The test above would find a leak."""
    with _off(FIRST, SECOND):
        leaked, _ = leaks(*world)
    assert {name.split()[1] for name in leaked} >= {"calls", "refs", "get", "prefs", "notes"}
