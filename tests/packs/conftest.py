"""The memory that most tests of packs begin with."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened
