"""Memories that most tests of the room begin with."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


@pytest.fixture
def copy() -> Iterator[Store]:
    """Another memory, to carry something over into."""
    with cerata.open(":memory:") as opened:
        yield opened
