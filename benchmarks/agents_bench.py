"""The cost of recorded calls: recording, running again, and the fold of activities.

    python benchmarks/agents_bench.py           # 1,000 calls, and a fold of 50,000
    python benchmarks/agents_bench.py --tiny    # 50 and 1,000, for continuous integration

A call has two short arguments and a result of about 1 kB. All times are processor time; those of a
re-run and of the fold are the least of several rounds. The memory has no file, so no time is spent
on syncs.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable

import numpy as np

import cerata
from cerata.agents.activities.events import RecordCall, StartActivity
from cerata.agents.activities.projection import ActivitiesProjection
from cerata.engine.events import DEFAULT_SCOPE, EventBody
from cerata.memory.snapshot.pending import PendingEvent

CALLS_PER_RUN = 100


def fetch(ticker: str, days: int) -> list[float]:
    """Return about 1 kB of JSON, in place of a service."""
    return [100 + day / 7 + len(ticker) for day in range(days)]


def agent_function(count: int) -> Callable[[cerata.Run], None]:
    """Return a function of that many calls."""

    def function(run: cerata.Run) -> None:
        for number in range(count):
            run.call("market.fetch", fetch, ticker=f"T{number}", days=60)

    return function


def least(rounds: int, work: Callable[[], object]) -> float:
    """Return the least processor time of several rounds, in seconds."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def print_runs(count: int, rounds: int) -> None:
    """Record a run, and execute it again."""
    function = agent_function(count)
    with cerata.open(":memory:") as store:
        agent = cerata.Agent(store, "bench")
        start = time.process_time()
        with agent.run("r1") as run:
            function(run)
        recorded = time.process_time() - start
        reports: list[cerata.Rerun] = []
        again = least(rounds, lambda: reports.append(agent.rerun("r1", function)))
        assert {report.outcome for report in reports} == {"same"}
        print(f"record {count:,} calls: {1e6 * recorded / count:,.0f} us a call")
        print(f"run again: {1e3 * again:,.0f} ms, {1e6 * again / count:,.0f} us a call")


def print_fold(count: int, rounds: int) -> None:
    """Fold calls of runs of 100 calls, and load them from a chunk."""
    bodies: list[EventBody] = []
    start = 0
    for number in range(count):
        if number % CALLS_PER_RUN == 0:
            start = len(bodies) + 1
            name = f"r{number}"
            bodies.append(StartActivity(kind="run", name=name, agent="a", agent_version="1"))
        digest = number.to_bytes(32, "little")
        bodies.append(
            RecordCall(activity=start, kind="tool", name="fetch", arguments="{}", digest=digest)
        )
    events = [
        PendingEvent(seq, body.wire_name, 1_000 * seq, DEFAULT_SCOPE, body)
        for seq, body in enumerate(bodies, start=1)
    ]
    fold = ActivitiesProjection()
    fold.apply(events)
    folding = least(rounds, lambda: ActivitiesProjection().apply(events))
    chunk = fold.chunk(0)
    loading = least(rounds, lambda: ActivitiesProjection().load(chunk))
    print(f"fold of {count:,} calls: {1e6 * folding / count:.1f} us a call")
    print(f"load: {1e6 * loading / count:.2f} us a call")
    print(f"in memory: {fold.size_bytes / count:.0f} bytes a call")


def main() -> None:
    """Print each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    print(f"{platform.machine()}, Python {sys.version.split()[0]}, numpy {np.__version__}")
    rounds = 2 if tiny else 7
    print_runs(50 if tiny else 1_000, rounds)
    print_fold(1_000 if tiny else 50_000, rounds)


if __name__ == "__main__":
    main()
