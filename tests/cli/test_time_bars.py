"""Bars of time: every part of the range is an equal share, and ASCII suffices."""

import io
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata import Period
from cerata.cli.frames import TimeBars, bars_over

START = datetime(2026, 1, 1, tzinfo=UTC)
BARS = TimeBars(START, START + timedelta(days=8), 8)
TIMES = st.lists(st.integers(0, 8 * 86_400), max_size=30)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


@given(TIMES)
def test_a_density_row_shows_each_part_with_a_time(seconds: list[int]) -> None:
    row = BARS.density([START + timedelta(seconds=each) for each in seconds])
    assert len(row) == 8
    parts = {min(7, each // 86_400) for each in seconds}
    assert {place for place, level in enumerate(row) if level != " "} == parts


def test_without_other_characters_the_bars_are_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    bars = TimeBars(START, day(8), 8)
    assert bars.density([day(0), day(0.5), day(3)]) == "@  =    "
    assert bars.period(Period(day(2), day(4))) == "..==...."
    assert bars.moment(day(7.9)) == ".......*"


def test_a_period_without_an_end_reaches_the_border() -> None:
    """An instant, and a period outside the range, keep one part."""
    assert BARS.period(Period(None, day(2))) == "━━──────"
    assert BARS.period(Period(day(6), None)) == "──────━━"
    assert BARS.period(Period(day(6), day(6))) == "──────━─"
    assert BARS.period(Period(day(20), None)) == "───────━"


def test_equal_times_have_no_bars() -> None:
    assert bars_over([]) is None
    assert bars_over([None, START, START]) is None
    assert bars_over([None, day(1), START]) == TimeBars(START, day(1))
