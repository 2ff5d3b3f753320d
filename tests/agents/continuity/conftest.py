"""A store in memory with a clock that stands still."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Store
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage

from ...clocks import StandingClock


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(1_760_000_000_000_000)


@pytest.fixture
def store(clock: StandingClock) -> Iterator[Store]:
    numbers = iter(range(10**9))
    environment = Environment(
        MemoryStorage(), clock, lambda size: next(numbers).to_bytes(size, "big")
    )
    with cerata.open("talk.cera", environment=environment) as opened:
        yield opened
