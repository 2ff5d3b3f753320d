"""A value that Python refuses to write, to compare or to store raises an error of Cerata."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import cerata
from cerata import Agent, CerataError, InvalidInput, MemorySpec, Store
from cerata.events import PutFrame
from cerata.memory.handles import public_names

LARGE = 10**5_000


class Broken(tzinfo):
    """A time zone of a program, with a fault."""

    def utcoffset(self, _time: datetime | None, /) -> timedelta:
        raise RuntimeError("no offset")

    def tzname(self, _time: datetime | None, /) -> str:
        return "broken"

    def dst(self, _time: datetime | None, /) -> None: ...


def nested() -> list[Any]:
    value: list[Any] = []
    for _ in range(2_000):
        value = [value]
    return value


VALUES: dict[str, object] = {
    "a large number": LARGE,
    "a large negative number": -LARGE,
    "a large number in a list": [LARGE],
    "a large number in a map": {"a": LARGE},
    "a deep list": nested(),
    "half of a surrogate pair": "\ud800",
    "digits": "9" * 5_000,
    "the end of time": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-23))),
    "a broken zone": datetime(2026, 1, 1, tzinfo=Broken()),
}

GOOD: dict[str, object] = {
    **dict.fromkeys(("frame", "id", "seq", "source", "basis", "old"), 1),
    **dict.fromkeys(("fact", "link", "target"), 3),
    "kind": "supports",
}
"""Arguments of the other parameters; else a short text."""

ELSEWHERE = {
    *("close", "backup", "stream.follow", "upkeep.compact", "upkeep.fork", "history.bisect"),
    "interchange.export_facts",
}
"""Calls that write files, wait, or stream to a file."""

RAW = (ValueError, RecursionError, OverflowError, UnicodeError, ArithmeticError, RuntimeError)


def calls(handle: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    is_coroutine = inspect.iscoroutinefunction
    for name in public_names(type(handle)):
        method = attrgetter(name)(type(handle))
        if callable(method) and name not in ELSEWHERE and not is_coroutine(method):
            yield name, attrgetter(name)(handle)


def raw_errors(handle: object, value: object) -> list[str]:
    """Call each method with the value for each of its parameters, and return the raw errors."""
    faults: list[str] = []
    for name, call in calls(handle):
        parameters = inspect.signature(call).parameters.values()
        needed = [each for each in parameters if each.default is each.empty and each.kind < 2]
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            positional = [
                value if each is parameter else GOOD.get(each.name, "x") for each in needed
            ]
            named = {} if parameter in needed else {parameter.name: value}
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional, named = [*positional, value], {}
            try:
                # Another type than the declared may be a TypeError of Python's.
                with suppress(CerataError, TypeError, AttributeError):
                    result = call(*positional, **named)
                    if isinstance(result, Iterator):
                        list(islice(cast("Iterator[object]", result), 2))
            except RAW as error:
                faults.append(
                    f"{name}({parameter.name}): {type(error).__name__}: {str(error)[:60]}"
                )
    return faults


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.chdir(tmp_path)
    with cerata.open(":memory:") as opened:
        opened.put_frame("hello there")
        opened.put_frame("another")
        opened.assert_fact("anna", "likes", "tea")
        yield opened


@pytest.mark.parametrize("name", VALUES)
def test_no_call_of_a_store_raises_a_raw_error(store: Store, name: str) -> None:
    """An error about a value was itself an error: Python writes no number of 5,000 digits."""
    assert raw_errors(store, VALUES[name]) == []


@pytest.mark.parametrize("name", VALUES)
def test_no_call_of_an_agent_raises_a_raw_error(store: Store, name: str) -> None:
    """Neither do its sessions, runs and slots."""
    agent = Agent(store, "bot", memory={"prefs": MemorySpec(scope="user_id")})
    value = VALUES[name]
    faults = raw_errors(agent.slot("prefs", user_id="u1"), value)
    with agent.session("s") as session:
        faults += raw_errors(session, value)
    with agent.run("r") as run:
        faults += raw_errors(run, value)
    assert faults == []
    for parameter in ("version", "timezone", "memory", "pass_hours", "model"):
        with pytest.raises((CerataError, TypeError, AttributeError)):
            Agent(store, "x", **{parameter: cast("Any", [value])})


def test_names_and_ids_may_come_from_arrays() -> None:
    with cerata.open(":memory:") as store:
        names: Any = np.array(["a", "b"])
        ids: Any = np.array([1])
        frame = store.put_frame("x", tags=names, options=cerata.PutOptions(labels=names))
        assert store.frame(frame).tags == store.frame(frame).labels == ("a", "b")
        fact = store.assert_fact("a", "knows", "b", evidence=ids)
        assert [one.frame for one in store.graph.fact(fact.id).evidence] == [1]
        with pytest.raises(InvalidInput, match="parent must be a number, not int64"):
            store.append(PutFrame(text="x", parent=ids[0]))
