"""Scalars that are equal to those of JSON: numpy's, those of subclasses, and members of enums."""

import datetime as dt
import decimal
import enum
import pathlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import cerata
from cerata.engine.handle import Handle
from cerata.engine.json_value import exact, type_name

from ..snapshot.isolation import Sweep
from ..snapshot.isolation_calls import STORE, VIEW, WRITES, Case
from ..snapshot.tenants import whole


class Name(str):
    """A string of a parser, such as bs4's or markupsafe's, with a text of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another text"


class Count(int):
    def __repr__(self) -> str:
        return "Count"


class Share(float):
    pass


class Colour(enum.Enum):
    RED = "red"
    THREE = 3


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    HI = "hi"


class Pair(NamedTuple):
    first: object
    second: object


SCALARS: Mapping[str, tuple[Any, object]] = {
    **{
        kind.__name__: (kind(3), 3)
        for kind in (
            *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
            *(np.intp, np.longlong, np.ulonglong, Count),
        )
    },
    **{
        kind.__name__: (kind(0.5), 0.5)
        for kind in (np.float16, np.float32, np.float64, np.longdouble, Share)
    },
    "numpy.bool": (np.bool_(True), True),
    "numpy.False": (np.False_, False),
    "numpy.str_": (np.str_("x"), "x"),
    "uint64 above 2^53": (np.uint64(2**63 - 1), 2**63 - 1),
    "minus zero": (np.float64(-0.0), -0.0),
    "Name": (Name("x"), "x"),
    "Enum": (Colour.RED, "red"),
    "Enum of a number": (Colour.THREE, 3),
    "IntEnum": (Size.SMALL, 1),
    "StrEnum": (Word.HI, "hi"),
}


@pytest.mark.parametrize("name", SCALARS)
def test_a_scalar_is_stored_as_the_type_of_json_that_it_is(name: str) -> None:
    """At any depth, in the open transaction, in the log, and in a filter."""
    given, expected = SCALARS[name]
    assert (exact(given), type(exact(given))) == (expected, type(expected))
    deep: OrderedDict[str, Any] = OrderedDict(a=[given, (given,)], b=Pair(given, {"c": given}))
    metadata: dict[str, Any] = {"a": given, "deep": deep}
    stored = {
        "a": expected,
        "deep": {"a": [expected, [expected]], "b": [expected, {"c": expected}]},
    }
    with cerata.open(":memory:") as store:
        with store.transaction():
            pending = store.put_frame("x", metadata=MappingProxyType(metadata))
            assert repr(store.frame(pending).metadata) == repr(stored)
        frame = store.frame(pending)
        assert repr(frame.metadata) == repr(stored)
        store.put_frame("other", metadata={"a": "neither"})
        for test in (given, ("=", given), ("in", [given]), ("!=", "neither")):
            assert [each.id for each in store.frames(cerata.Filter(metadata={"a": test}))] == [1]
        [item] = store.frames(cerata.Filter(metadata={"deep.a": ("contains", given)}))
        assert item.id == 1
        fact = store.assert_fact(
            Name("anna"), Name("has"), given, confidence=cast("Any", np.float32(0.5))
        )
        # A fact's zero has no sign.
        assert repr(store.graph.fact(fact).object) in (repr(expected), str(expected)[1:])
        assert type(store.graph.fact(fact).confidence) is float
        assert store.verify().ok


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (dt.date(2024, 1, 1), "a date"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "a datetime"),
        (decimal.Decimal("0.1"), "a Decimal"),
        (pathlib.PurePosixPath("/a"), "a PurePosixPath"),
        (np.datetime64("2024-01-01"), "a datetime64"),
        (np.timedelta64(1, "s"), "a timedelta64"),
        (np.complex64(1), "a complex64"),
        (np.array([1]), "a ndarray"),
        (np.array(1), "a ndarray"),
        (1j, "a complex"),
        ({1}, "a set"),
        (b"x", "a bytes"),
        (type("int", (), {})(), "a tests.memory.values.test_scalars.int"),
    ],
)
def test_another_value_is_refused_with_the_name_of_its_type(value: Any, name: str) -> None:
    """The message said that JSON cannot hold a bool."""
    with cerata.open(":memory:") as store:
        for metadata in ({"v": value}, {"v": {"a": [value]}}):
            with pytest.raises(
                cerata.InvalidInput, match=f"metadata holds {name}, which"
            ) as caught:
                store.put_frame("x", metadata=cast("Any", metadata))
            assert caught.value.remedy
        assert store.head.seq == 0


def test_the_name_of_a_type_is_not_that_of_a_builtin() -> None:
    assert [type_name(each) for each in (True, np.True_, 1, np.int64(1))] == [
        "bool",
        "numpy.bool",
        "int",
        "int64",
    ]


def test_a_date_is_its_first_instant_in_utc() -> None:
    """Everywhere that a time is taken."""
    day: Any = dt.date(2024, 1, 2)
    later: Any = dt.date(9000, 1, 1)
    midnight = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    with cerata.open(":memory:") as store:
        frame = store.frame(
            store.put_frame(
                "x", options=cerata.PutOptions(created=day, content_dates=[day], expires=later)
            )
        )
        assert (frame.created, frame.content_dates) == (midnight, (midnight,))
        fact = store.graph.fact(store.assert_fact("a", "b", "c", valid_from=day))
        assert fact.valid.start == midnight
        assert len([*store.frames(cerata.Filter(created=day))]) == 1
        assert len([*store.frames(cerata.Filter(created=(day, None)))]) == 1
        assert len(store.search("x", where=cerata.Filter(content=day))) == 1
        assert store.at(later).basis == store.head.seq
        assert store.at(day).basis == 0
        assert len(store.facts(valid_at=day)) == 1
        assert len(store.history.timeline(start=day).entries) == 1


def test_a_flag_of_numpy_is_a_flag(tmp_path: Path) -> None:
    """It was refused, or recorded as an unsupported type."""
    yes, no = cast("Any", np.True_), cast("Any", np.False_)
    with cerata.open(
        tmp_path / "m.cera", options=cerata.OpenOptions(require_scope=no, shared=no)
    ) as store:
        frame = store.put_frame("tea", metadata={"a": yes}, options=cerata.PutOptions(replace=no))
        store.graph.declare("lives in", functional=yes)
        store.assert_fact("anna", "is here", yes)
        assert [*store.interchange.export_facts(history=yes)] == [
            *store.interchange.export_facts(history=True)
        ]
        assert store.search(
            "tea",
            rerank=no,
            vectors=cerata.Vectors(approximate=no),
            where=cerata.Filter(include_superseded=yes),
        )
        assert store.recall(
            "tea",
            record=yes,
            floor=no,
            layout=cerata.Layout(framing=no),
            where=cerata.Filter(include_superseded=yes),
        ).text
        assert len([*store.frames(cerata.Filter(metadata={"a": ("exists", yes)}))]) == 1

        def judge(view: cerata.View) -> bool:
            return len([*view.frames()]) < 1

        assert store.history.bisect(
            lambda view: cast("Any", np.bool_(judge(view)))
        ) == store.history.bisect(judge)
        cerata.ContextPolicy("mine", version=1, fill=yes)
        spec = cerata.MemorySpec(scope="user_id", searchable=yes, ttl=cast("Any", np.int64(60)))
        agent = cerata.Agent(store, "bot", memory={"prefs": spec})
        agent.slot("prefs", user_id="u1").set("k", {"a": [yes, np.float32(0.5)], Name("b"): no})
        [item] = agent.slot("prefs", user_id="u1").items()
        assert repr(item.value) == "{'a': [True, 0.5], 'b': False}"
        with agent.session("s") as session:
            session.assemble(max_tokens=200, query="tea", record=no)
        with agent.run("r", inputs={"a": np.int64(3)}) as run:
            pass
        with agent.run("r2", inputs={"a": yes}) as run, pytest.raises(cerata.Conflict):
            agent.run("r2", resume=no)
        assert run.id == "r2"
        with agent.run("r3") as run:
            result = run.put("f", [np.int64(1), yes, Name("x")])
            assert repr(result.value) == "[1, True, 'x']"
        assert store.frame(frame).metadata == {"a": True}
        assert store.verify().ok


# --- every public call ----------------------------------------------------------------------------


class Loose:
    """A store or view whose calls get scalars of other types; what they return has none."""

    def __init__(self, asked: object) -> None:
        self.asked = asked

    def __getattr__(self, name: str) -> object:
        value: Any = getattr(self.asked, name)
        if isinstance(value, Handle):
            return Loose(value)
        if not callable(value):
            return value

        def call(*arguments: object, **options: object) -> object:
            return value(*map(loose, arguments), **{each: loose(options[each]) for each in options})

        return call

    def __len__(self) -> int:
        return len(cast("Any", self.asked))


def loose(value: Any) -> Any:
    """Return a value with numpy's numbers and bools, and strings of a subclass, at any depth."""
    if type(value) is bool:
        return np.bool_(value)
    if type(value) is int:
        return np.int64(value) if -(2**63) <= value < 2**63 else value
    if type(value) is float:
        return np.float64(value)
    if type(value) is str:
        return Name(value)
    if type(value) in (list, tuple):
        return type(value)(map(loose, value))
    if type(value) is dict:
        items = cast("dict[object, object]", value).items()
        return {loose(key): loose(item) for key, item in items}
    return value


@pytest.mark.parametrize("reader", ["alpha"])
def test_every_call_takes_the_scalars_of_other_types(reader: str) -> None:
    """The table of the isolation test has all public names, and fails for a new one."""
    exactly, loosely = answers_of(reader, lambda asked: asked), answers_of(reader, Loose)
    assert len(exactly) > 1_000
    assert [one for one in zip(exactly, loosely, strict=True) if one[0] != one[1]] == []


def answers_of(reader: str, ask: Callable[[Any], Any]) -> list[object]:
    world, answers = whole().copy(), list[object]()
    with world.open_as(reader) as store:
        ids = range(-1, store.head.seq + 2, 5)
        for asked, table in ((store, STORE), (store.history.view(), VIEW), (store, WRITES)):
            case = Case(reader, store, ask(asked), world.own[reader], ids)
            # A fork takes the store itself.
            calls = {name: each for name, each in table.items() if name != "upkeep.drafts_after"}
            answers += Sweep().read(case, calls)
    return answers
