"""Running the suite against mutants: which tests run a line, and whether one of them notices.

Owns `Tracer`, a pytest plugin that records for every test how long it takes and which lines of
the core it runs, and `Killer`, one that forks for each mutant, plants it in the child, and runs
the tests of its lines there, those first that noticed the most so far. A child that hangs is a
mutant that was noticed; an alarm ends it.
"""

import contextlib
import math
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from coverage import Coverage

from .mutants import ENGINE, Mutant, module_of

Outcome = Literal["killed", "hung", "survived", "unreached"]

_MEMORY_MAX = 4 << 30
_FORKING = "tests/engine/test_processes.py"
"""Lines that only a forked child runs are in no trace; these tests fork."""

_SURVIVED, _KILLED, _HUNG = 0, 1, -signal.SIGALRM


class Trace(msgspec.Struct):
    """What each test costs and runs: seconds by test, tests by module and line."""

    seconds: dict[str, float] = {}
    tests: dict[str, dict[int, list[str]]] = {}


class Tracer:
    """Records a `Trace` while pytest runs the suite."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._coverage = Coverage(
            data_file=None, include=[f"{ENGINE}/*"], config_file=False, branch=False
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self._collect()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._coverage.switch_context(item.nodeid)
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            self.trace.seconds[item.nodeid] = time.perf_counter() - started

    def _collect(self) -> None:
        data = self._coverage.get_data()
        for name in data.measured_files():
            module = module_of(Path(name).resolve())
            self.trace.tests[module] = {
                line: [test for test in tests if test]
                for line, tests in data.contexts_by_lineno(name).items()
            }


@dataclass
class Killer:
    """Holds every mutant against the suite; ``outcomes`` are those so far, by name."""

    mutants: Sequence[Mutant]
    trace: Trace
    budget: float
    """Seconds of tests that a mutant may survive before it counts as a survivor."""
    told: Callable[[Mutant, Outcome, str], None]
    kills: Counter[str] = field(default_factory=Counter[str])

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for mutant in self.mutants:
            tests = self._tests_of(mutant, items)
            outcome, killer = self._hold(mutant, [items[test] for test in tests])
            self.kills[killer] += 1
            self.told(mutant, outcome, killer)
        return True

    def _tests_of(self, mutant: Mutant, items: dict[str, pytest.Item]) -> list[str]:
        """Return the tests that run the mutant's line, the likeliest and shortest first."""
        lines = self.trace.tests.get(mutant.module, {})
        seconds = self.trace.seconds
        tests = sorted(
            {test for test in lines.get(mutant.line, []) if test in items}
            or {test for test in items if test.startswith(_FORKING)},
            key=lambda test: (0.02 + seconds[test]) / (1 + self.kills[test]),
        )
        chosen: list[str] = []
        spent = 0.0
        for test in tests:
            spent += seconds[test]
            if chosen and spent > self.budget:
                break
            chosen.append(test)
        return chosen

    def _hold(self, mutant: Mutant, items: list[pytest.Item]) -> tuple[Outcome, str]:
        if not items:
            return "unreached", ""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _run_child(mutant, items, writing, self.trace.seconds)
        os.close(writing)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError):
            # What its tests started may have outlived it.
            os.killpg(child, signal.SIGKILL)
        with os.fdopen(reading) as told:
            last = told.read().splitlines()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == _SURVIVED:
            return "survived", ""
        return "hung" if code == _HUNG else "killed", last[-1] if last else ""


def _run_child(
    mutant: Mutant, items: list[pytest.Item], writing: int, seconds: dict[str, float]
) -> None:
    """In the child: plant the mutant, run the tests until one notices, and leave."""
    code = _KILLED
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
        mutant.plant()
        failed: list[str] = []

        class Watch:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    failed.append(report.nodeid)

        items[0].config.pluginmanager.register(Watch())
        for item in items:
            os.write(writing, f"{item.nodeid}\n".encode())
            signal.alarm(math.ceil(10 + 5 * seconds[item.nodeid]))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if failed:
                break
        else:
            code = _SURVIVED
    finally:
        sys.stdout.flush()
        os._exit(code)
