# Where the extra otel is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The cost of a span of a traced store: ``python -m benchmarks.otel_bench``.

Needs the extras otel and otel-sdk. A cheap read, `count` of a memory in memory, runs plain, traced
without an SDK, and traced by an SDK that drops its spans, in turn. The cost of a span is the
difference of the least processor times.
"""

import argparse
import platform
import sys
import time

import cerata
from cerata.memory.store import Store

CALLS = 2_000


def seconds(store: Store, calls: int) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    for _ in range(calls):
        store.count()
    return (time.process_time() - start) / calls


def main(words: list[str] | None = None) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import NoOpTracerProvider

    from cerata.integrations.otel import trace

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a run for tests")
    options = parser.parse_args(words)
    calls, rounds = (20, 2) if options.tiny else (CALLS, 15)
    print(f"Cerata {cerata.__version__}, Python {sys.version.split()[0]}, {platform.machine()}")
    with cerata.open(":memory:") as store:
        store.put_frame("The index is HNSW.")
        stores = {
            "plain": store,
            "without an SDK": trace(store, tracer_provider=NoOpTracerProvider()),
            "with an SDK": trace(store, tracer_provider=TracerProvider()),
        }
        least = dict.fromkeys(stores, float("inf"))
        for _ in range(rounds):
            for name, each in stores.items():
                least[name] = min(least[name], seconds(each, calls))
    print(f"result {store.path}, {calls:,} calls, {rounds} rounds")
    for name, time_of_call in least.items():
        cost = (time_of_call - least["plain"]) * 1e6
        print(f"{name:<16} {time_of_call * 1e6:8.1f} µs a call, {cost:6.1f} µs a span")


if __name__ == "__main__":
    main()
