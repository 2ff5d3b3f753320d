"""The pytest plugin: two fixtures, `crash_safe` and `cerata_store`.

pytest loads it wherever Cerata is installed, so it imports no module of Cerata until a fixture is
used, reports nothing, and changes nothing in a run without them.
"""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cerata.memory.store import Store

    from .crash_test import CrashReport

_STORIES = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the number of crash stories, and their seed."""
    group = parser.getgroup("cerata", "crash tests of memories")
    group.addoption(
        "--crash-stories",
        type=int,
        default=_STORIES,
        metavar="COUNT",
        help=f"stories that each use of the crash_safe fixture runs ({_STORIES})",
    )
    group.addoption(
        "--crash-seed", type=int, default=0, metavar="N", help="seed of the stories (0)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers", "cerata(**options): options to open cerata_store with, such as projections=[…]"
    )


@pytest.fixture
def crash_safe(request: pytest.FixtureRequest) -> "Callable[..., CrashReport]":
    """Return `assert_crash_safe` with the story count and seed of the command line."""
    from .testing import assert_crash_safe

    def assert_safe(workload: Any, **options: Any) -> "CrashReport":
        options.setdefault("stories", request.config.getoption("--crash-stories"))
        options.setdefault("seed", request.config.getoption("--crash-seed"))
        return assert_crash_safe(workload, **options)

    return assert_safe


@pytest.fixture
def cerata_store(request: pytest.FixtureRequest) -> "Generator[Store]":
    """Return an empty store in memory whose clock and randomness are the same in every run.

    The mark ``@pytest.mark.cerata(projections=[…])`` sets the options of `open_store`. After the
    test the store is verified: every projection has to equal a replay of the log.
    """
    from cerata.memory.store import open_store

    from .simulation.simulated_world import World

    mark = request.node.get_closest_marker("cerata")
    options: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    world = World()
    environment = world.environment(world.disk.process())
    with open_store("test.cera", environment=environment, **options) as store:
        yield store
        verification = store.verify()
        if not verification.ok:
            pytest.fail("\n".join([*map(str, verification.divergences), *verification.notes]))
