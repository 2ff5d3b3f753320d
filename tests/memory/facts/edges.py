"""What tests of the edges of facts share: a few instants, and a store that is verified."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import cerata
from cerata import Store

from .world import STEP_US, environment, time_at

MICROSECOND = timedelta(microseconds=1)
T = [time_at(1_600_000_000_000_000 + place * STEP_US) for place in range(6)]
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@contextmanager
def edge_store() -> Generator[Store]:
    world, _ = environment()
    with cerata.open("edges.cera", environment=world) as opened:
        yield opened
        assert opened.verify().ok
