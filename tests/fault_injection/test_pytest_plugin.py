"""The pytest plugin gives what is asked for, and is not there for whoever asks for nothing."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PLUGIN = "cerata.fault_injection.pytest_plugin"

TESTS = """
import time

import cerata
import pytest
from cerata.engine.events import PutFrame


class Clocked(cerata.RowProjection):
    name = "clocked"
    handles = (PutFrame,)

    def apply(self, events):
        for event in events:
            self.rows[event.body.text] = time.monotonic_ns()


def test_the_clock_is_the_same_each_time(cerata_store):
    cerata_store.put_frame("tea is at four")
    assert cerata_store.head.recorded == 1_700_000_000_000_002
    assert cerata_store.search("tea")


@pytest.mark.cerata(projections=[Clocked])
def test_an_impure_projection(cerata_store):
    cerata_store.put_frame("tea")
    assert len(cerata_store.stream.projection(Clocked).rows) == 1


def two(store):
    store.put_frame("a")
    store.put_frame("b")


def test_two_is_safe(crash_safe):
    assert crash_safe(two).stories == 5


def test_two_is_one(crash_safe):
    crash_safe(two, check=lambda store: len(store) % 2 == 0)
"""


def run_pytest(folder: Path, checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with this plugin and no other."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "80",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_fixtures_are_for_whoever_asks(tmp_path: Path, checkout: Path) -> None:
    """A store that is the same each time and verified, and crash tests of a chosen length."""
    (tmp_path / "test_tea.py").write_text(TESTS)
    run = run_pytest(tmp_path, checkout, "--crash-stories", "5", "--strict-markers", "-W", "error")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 3 passed, 1 error" in run.stdout
    assert "clocked: the state that serves is not that of its events" in run.stdout
    assert "two does not survive a crash" in run.stdout


def test_nothing_of_cerata_is_loaded_until_then(tmp_path: Path, checkout: Path) -> None:
    """Everybody who has Cerata installed has the plugin: their runs must not pay for it."""
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    loaded = sorted(name for name in sys.modules if name.startswith('cerata'))\n"
        f"    assert loaded == ['cerata', 'cerata.fault_injection', '{PLUGIN}']\n"
        "    assert not {'numpy', 'msgspec', 'hypothesis', 'rich'} & set(sys.modules)\n"
    )
    run = run_pytest(tmp_path, checkout, "-W", "error")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.fullmatch(r"\. +\[100%\]\n1 passed in .*\n", run.stdout)


def test_the_package_declares_it(checkout: Path) -> None:
    """Without the entry point pytest would not find it."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"cerata": PLUGIN}
    assert any(one.startswith("hypothesis") for one in project["optional-dependencies"]["testing"])
    assert not any(one.startswith("hypothesis") for one in project["dependencies"])
