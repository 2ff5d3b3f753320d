"""Hypothesis draws events that a store takes, and stories that shrink to what matters."""

import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.errors import InvalidInput
from cerata.engine.events import PutFrame
from cerata.fault_injection import testing
from cerata.fault_injection.strategies import event, events, stories

from .test_testing import Balances, Bank, Moved

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Mood(Enum):
    """How it was."""

    GOOD = "good"
    BAD = "bad"


class Place(msgspec.Struct, frozen=True):
    """Where it was."""

    x: int
    name: str = ""


@cerata.event("tests.visited")
class Visited(cerata.EventBody, frozen=True):
    """Has a field of every type that can be drawn."""

    place: Place
    stars: Annotated[int, msgspec.Meta(ge=1, le=5)]
    code: Annotated[str, msgspec.Meta(pattern="^[a-z]{2}$")]
    with_whom: tuple[str, ...]
    mood: Mood
    weather: Literal["sun", "rain"] | None
    paid: list[float]
    photo: Annotated[bytes, msgspec.Meta(max_length=4)]
    route: tuple[int, bool]
    more: dict[str, Any] | None = None
    rain_mm: int = 0


@cerata.event("tests.odd")
class Odd(cerata.EventBody, frozen=True):
    """Has a field that no strategy is known for."""

    when: set[int]


@QUICK
@given(body=event(Visited))
def test_an_event_of_any_fields_can_be_stored_and_read_back(body: Visited) -> None:
    """Within the limits of their types, through the real codec."""
    assert 1 <= body.stars <= 5
    assert len(body.code.rstrip("\n")) == 2
    testing.given(body).then(lambda view: [one.body for one in view.log(first=1)], [body])


@QUICK
@given(drawn=events(Moved, event(PutFrame, text=st.text("ab", min_size=1)), max_size=6))
def test_lists_of_kinds_fold(drawn: list[cerata.EventBody]) -> None:
    """Two kinds; Cerata's own with what is given for it, and nothing else drawn."""
    totals: dict[str, int] = {}
    for body in drawn:
        if isinstance(body, Moved):
            totals[body.account] = totals.get(body.account, 0) + body.cents
        else:
            assert body == PutFrame(text=body.text)  # type: ignore[attr-defined]
    if all(abs(total) < 1 << 63 for total in totals.values()):
        testing.given(*drawn).then(Balances, totals)


def test_a_story_shrinks_to_the_operation_at_fault() -> None:
    """What Hypothesis prints is what a person has to look at."""

    def fails(story: list[str]) -> bool:
        try:
            testing.assert_crash_safe(Bank, story=story)
        except AssertionError:
            return True
        return False

    found = find(stories(Bank, max_size=5), fails, settings=settings(QUICK, max_examples=60))
    assert found == ["cheat"]


def test_what_cannot_be_drawn_is_said_with_its_field() -> None:
    """And what to do: give a strategy for it, which then is taken."""
    with pytest.raises(InvalidInput, match=r"draw a SetType \(Odd.when\).*event\(Kind, field=…\)"):
        event(Odd)
    with pytest.raises(InvalidInput, match="Moved has no field 'cent'"):
        event(Moved, cent=st.integers())
    with pytest.raises(InvalidInput, match="No kind of event"):
        events()


def test_without_hypothesis_it_says_what_to_install(checkout: Path) -> None:
    """It is no dependency of Cerata, and its absence is no traceback from somewhere else."""
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import cerata.fault_injection.testing\n"
        "try:\n    import cerata.fault_injection.strategies\n"
        "except cerata.Unsupported as error:\n    print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == (
        "Strategies need Hypothesis, which is not installed. "
        "Run pip install '.[testing]' in a checkout of Cerata."
    )
