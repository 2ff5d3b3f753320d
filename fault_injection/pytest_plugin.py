"""The pytest plugin: two fixtures, for whoever asks for them.

pytest loads it wherever Cerata is installed, so it imports nothing of Cerata until a fixture is
used, reports nothing, and changes nothing of a run in which none is.
"""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cerata.memory.store import Store

    from .crash_test import CrashReport

_STORIES = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add how thorough crash tests are, and their seed."""
    group = parser.getgroup("cerata", "crash tests of memories")
    group.addoption(
        "--crash-stories",
        type=int,
        default=_STORIES,
        metavar="COUNT",
        help=f"stories that each use of the crash_safe fixture runs ({_STORIES})",
    )
    group.addoption(
        "--crash-seed", type=int, default=0, metavar="N", help="of the stories' chance (0)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers", "cerata(**options): what cerata_store is opened with, such as projections=[…]"
    )


@pytest.fixture
def crash_safe(request: pytest.FixtureRequest) -> "Callable[..., CrashReport]":
    """Return `assert_crash_safe`, as thorough as the command line asks for."""
    from .testing import assert_crash_safe

    def assert_safe(workload: Any, **options: Any) -> "CrashReport":
        options.setdefault("stories", request.config.getoption("--crash-stories"))
        options.setdefault("seed", request.config.getoption("--crash-seed"))
        return assert_crash_safe(workload, **options)

    return assert_safe


@pytest.fixture
def cerata_store(request: pytest.FixtureRequest) -> "Generator[Store]":
    """Return an empty store in memory whose clock and chance are the same in every run.

    The mark ``@pytest.mark.cerata(projections=[…])`` says what it is opened with. After the test
    it is verified: every projection has to equal a replay of the log.
    """
    from cerata.memory.store import open_store

    from .world import World

    mark = request.node.get_closest_marker("cerata")
    options: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    world = World()
    environment = world.environment(world.disk.process())
    with open_store("test.cera", environment=environment, **options) as store:
        yield store
        found = store.verify()
        if not found.ok:
            pytest.fail("\n".join([*map(str, found.divergences), *found.notes]))
