"""Times that no column holds are refused before the append, and read if a file has them already."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.events import AssertFact, PutFrame
from cerata.engine.limits import RECORDED_MAX, TIME_MAX, TIME_MIN
from cerata.engine.log_file import writer

from ...clocks import StandingClock
from ..no_descriptors import READS

NOW = 1_700_000_000_000_000
NONSENSE: list[Any] = [
    *(TIME_MAX + 1, TIME_MIN - 1, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63) - 1),
    *(1.5, float("nan"), float("inf"), None, "now", True),
]


def unchecked(world: Environment) -> int:
    """Return the clock's time unchecked, as an earlier version did."""
    return world.clock.now_us()


def environment() -> tuple[Environment, StandingClock]:
    clock = StandingClock(NOW)
    return replace(Environment.in_memory(), clock=clock), clock


@pytest.mark.parametrize("now", NONSENSE, ids=repr)
def test_nonsense_of_a_clock_is_refused_before_the_append(now: Any) -> None:
    """The batch was acknowledged, and from then on every read of the file failed."""
    world, clock = environment()
    with cerata.open("memory.cera", environment=world) as store:
        store.put_frame("green tea")
        clock.time_us = now
        with pytest.raises(cerata.InvalidInput, match="clock's now_us") as caught:
            store.put_frame("black tea")
        assert caught.value.remedy
        # A view of the past asks no clock.
        assert len(store.at(1)) == 1
        clock.time_us = NOW + 1
        store.put_frame("white tea")
    with cerata.open("memory.cera", environment=world) as store:
        assert [frame.text for frame in store.frames()] == ["white tea", "green tea"]
        assert store.verify().ok


@pytest.mark.parametrize("now", [TIME_MIN, -1, 0, TIME_MAX])
def test_any_year_of_a_clock_is_recorded(now: int) -> None:
    """A clock that is merely wrong stops no writer; recorded times still ascend."""
    world, clock = environment()
    with cerata.open("memory.cera", environment=world) as store:
        store.put_frame("green tea")
        clock.time_us = now
        store.put_frame("black tea")
        clock.time_us = NOW
        store.put_frame("white tea")
        times = [event.recorded for event in store.log()]
        assert times == sorted(set(times))
        store.checkpoint()
    with cerata.open("memory.cera", environment=world) as store:
        assert len(store.search("tea")) == 3
        assert store.verify().ok


EAST, WEST = (timezone(timedelta(hours=hours)) for hours in (14, -14))
EXTREMES: list[Any] = [
    *(datetime.max.replace(tzinfo=WEST), datetime.min.replace(tzinfo=EAST)),
    *("9999-12-31T23:59:59.999999-14:00", "0001-01-01T00:00:00+14:00"),
    *(2**63, -(2**63) - 1, 10**400, float("inf"), float("nan")),
]
TIMED: list[Callable[[cerata.Store, Any], object]] = [
    lambda store, time: store.put_frame("tea", options=cerata.PutOptions(created=time)),
    lambda store, time: store.put_frame("tea", options=cerata.PutOptions(content_dates=[time])),
    lambda store, time: store.remember("tea", options=cerata.PutOptions(created=time)),
    lambda store, time: store.assert_fact("Ann", "likes", "tea", valid_from=time),
    lambda store, time: store.assert_fact("Ann", "likes", "tea", valid_to=time),
    lambda store, time: store.append(PutFrame(text="tea", created=time)),
    lambda store, time: store.append(PutFrame(text="tea", content_dates=(time,))),
    lambda store, time: store.append(fact(valid_from=time)),
    lambda store, time: store.append(fact(valid_to=time)),
    lambda store, time: store.at(time),
    lambda store, time: store.at(1, valid_at=time),
    lambda store, time: store.history.timeline(start=time),
    lambda store, time: list(store.facts(valid_at=time)),
    lambda _, time: cerata.Filter(created=(time, None)),
]


def fact(**times: Any) -> AssertFact:
    return AssertFact(subject="Ann", predicate="likes", object_kind="string", object="t", **times)


@pytest.mark.parametrize("time", EXTREMES, ids=lambda time: f"{time!r:.40}")
def test_a_time_that_no_column_holds_is_refused(store: cerata.Store, time: Any) -> None:
    """The memory stays readable after any of them."""
    store.put_frame("tea")
    for call in TIMED:
        with suppress(cerata.CerataError):
            call(store, time)
    assert store.verify().ok
    assert len(store.search("tea")) == 1
    assert store.head.seq == 1


@pytest.mark.parametrize("recorded", [2**63 - 1, 2**63, 2**64 - 4])
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_file_that_holds_such_a_time_is_read(
    recorded: int, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version wrote times that no column and no header page holds."""
    world, clock = environment()
    with monkeypatch.context() as earlier:
        earlier.setattr(Environment, "now_us", unchecked)
        earlier.setattr(writer, "RECORDED_MAX", 2**64)
        store = cerata.open("memory.cera", environment=world)
        store.put_frames(["green tea", "Ann likes tea."])
        store.graph.assert_many(
            [
                cerata.Assertion("Ann", "lives in", cerata.Entity("Bern")),
                cerata.Assertion("Ann", "visits", cerata.Entity("Bob")),
            ]
        )
        clock.time_us = recorded
        store.put_frame("black tea", options=cerata.PutOptions(created="2026-01-01"))
        store.assert_fact("Ann", "drinks", "tea")
        store.history.tag("late")
        clock.time_us = NOW + 10
    # The process was killed: the next opener for writing seals its batches.
    with cerata.open("memory.cera", environment=world, mode=mode) as again:
        for name, read in READS.items():
            if name.startswith(("projection", "draw")):
                continue  # No projection of a user is there, and a picture takes seconds.
            reads: tuple[Callable[[], Any], ...] = (again.history.view, lambda: again.at(5))
            for view in reads:
                read(view())
        assert len(again.search("tea")) == 3
        assert next(again.log(5, 5)).recorded == RECORDED_MAX
        if mode == "rw":
            with pytest.raises(cerata.InvalidInput, match="must not be recorded after") as caught:
                again.put_frame("white tea")
            assert "backup" in (caught.value.remedy or "")
            again.checkpoint()
    store.close()
