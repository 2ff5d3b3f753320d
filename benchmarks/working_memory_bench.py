"""Working memory of many runs: references, memos, slots and sessions.

    python -m benchmarks.working_memory_bench                # 1,000,000 calls, 100,000 sessions
    python -m benchmarks.working_memory_bench --tiny         # some seconds

Runs of 500 calls, each with a result of about 100 bytes; a value in a slot for each user; a session
with a scope of its own for each user. Times are processor time of this process, since other work
shares the machine; "open" is measured in a new process, after imports. A capture is beside
`put_frame` of the same bytes, in turns, on a file, by the clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

import cerata
from cerata import Agent, MemorySpec, Store
from cerata.agents.activities.events import RecordCall, StartActivity
from cerata.agents.slot import Instance
from cerata.engine.events import Attachment, Draft, PutFrame, Scope
from cerata.engine.integrity import hash_bytes

CALLS_PER_RUN: Final = 500
BATCH: Final = 1_000
CAPTURE_BYTES: Final = 15_000
MEMORY: Final = {"prefs": MemorySpec(scope="user_id"), "state": MemorySpec(tier="session")}
SCOPE: Final[Scope] = (("tenant", "default"),)


def fill(path: Path, calls: int, sessions: int) -> None:
    """Write runs of which the last is open, and a session and a value for each user."""
    with cerata.open(path) as store:
        agent = Agent(store, "bench", memory=MEMORY)
        for first in range(0, calls, CALLS_PER_RUN):
            _write_run(store, first)
        drafts: list[Draft] = []
        for number in range(sessions):
            scope = (*SCOPE, ("user_id", f"u{number}"))
            start = StartActivity(
                kind="session", name=f"s{number}", agent="bench", agent_version="1"
            )
            drafts.append(Draft(start, scope))
            uri = f"slot:bench/prefs/risk{Instance('bench', 'prefs', scope).uri_end}"
            body = _json_frame({"level": number}, kind="value", track="bench/prefs", uri=uri)
            drafts.append(msgspec.structs.replace(body, scope=scope))
            if len(drafts) >= BATCH:
                store.append(*drafts)
                drafts.clear()
        if drafts:
            store.append(*drafts)
        assert agent.runs()[-1].status == "open"
        store.checkpoint()


def _write_run(store: Store, first: int) -> None:
    name = f"r{first // CALLS_PER_RUN}"
    start = StartActivity(kind="run", name=name, agent="bench", agent_version="1", frame=-1)
    drafts = [Draft(PutFrame(text=None, kind="run", title=name, track="bench")), Draft(start)]
    for number in range(first, first + CALLS_PER_RUN):
        place = len(drafts) + 1
        drafts.append(
            _json_frame(
                {"number": number, "text": "x" * 60},
                kind="tool_result",
                track="bench/scratchpad",
                parent=-1,
                search_text=f"{{number: {number}}}",
            )
        )
        arguments = f'{{"number":{number}}}'
        call = RecordCall(
            activity=-2,
            kind="tool",
            name=f"tool{number % 5}",
            arguments=arguments,
            digest=hash_bytes(f"tool{number % 5}\0{arguments}".encode()),
            results=(-place,),
        )
        drafts.append(Draft(call))
    store.append(*drafts)


def _json_frame(value: object, **fields: object) -> Draft:
    data = msgspec.json.encode(value)
    body = PutFrame(blob=Attachment(hash_bytes(data), len(data)), **fields)  # type: ignore[arg-type]
    return Draft(body, SCOPE, attachments=(data,))


# --- the reads -----------------------------------------------------------------------------------


def timed(work: Callable[[int], object], rounds: int) -> np.ndarray:
    """Return the processor time of each call in milliseconds."""
    times = np.empty(rounds)
    for number in range(rounds):
        start = time.process_time_ns()
        work(number)
        times[number] = (time.process_time_ns() - start) / 1e6
    return times


def show(name: str, times: np.ndarray, goal: str = "") -> None:
    """Print the median and the 99th percentile of a read."""
    p50, p99 = np.percentile(times, (50, 99))
    print(f"{name:<44} p50 {p50:7.3f} ms, p99 {p99:7.3f} ms  {goal}")


def print_reads(path: Path, sessions: int, rounds: int) -> None:
    """Print the times of the reads of the filled file."""
    with cerata.open(path) as store:
        agent = Agent(store, "bench", memory=MEMORY)
        run = agent.run(agent.runs()[-1].name)
        refs = [reference.ref for reference in run.refs()]
        drawn = np.random.default_rng(1)
        places: list[int] = drawn.integers(0, len(refs), rounds).tolist()
        chosen = [refs[at] for at in places]
        show("resolve a reference", timed(lambda n: run.resolve(chosen[n]), rounds), "(goal 1)")
        made: list[int] = []
        of_first = run.get(refs[0])
        assert isinstance(of_first, dict)
        first = int(str(of_first["number"]))

        def memo(n: int) -> object:
            number = first + n % CALLS_PER_RUN
            return run.call(f"tool{number % 5}", made.append, memo=True, number=number)

        show("a memo", timed(memo, rounds), "(goal 1)")
        assert not made
        users = drawn.integers(0, sessions, rounds).tolist()
        show(
            "Slot.get, another user each time",
            timed(lambda n: agent.slot("prefs", user_id=f"u{users[n]}").get("risk"), rounds),
            "(goal 1)",
        )
        slot = agent.slot("prefs", user_id="u1")
        show("Slot.get, one instance", timed(lambda _: slot.get("risk"), rounds), "(goal 1)")
        show(f"the list of {len(refs)} results", timed(lambda _: run.refs(), 9), "(goal 5)")


def print_first_reads(path: Path, calls: int, sessions: int) -> None:
    """Print the times of the first reads of a new process, after imports."""
    last = f"r{(calls - 1) // CALLS_PER_RUN}"
    with cerata.open(":memory:") as store, Agent(store, "bench").run("r") as run:
        # The imports are no part of the figures.
        result = run.put("x", 1)
        run.get(result.ref or "")
    start = time.process_time_ns()
    with cerata.open(path, mode="r") as store:
        agent = Agent(store, "bench")
        agent.get(last, "$ref:tool0.1")
        print(f"open to the first reference: {_since(start)} ms of processor time  (goal 250)")
    start = time.process_time_ns()
    scope = {"tenant": "default", "user_id": f"u{sessions // 2}"}
    with cerata.open(path, mode="r", scope=scope) as store:
        opened = _since(start)
        start = time.process_time_ns()
        assert [each.name for each in Agent(store, "bench").sessions()] == [f"s{sessions // 2}"]
        print(f"first read of one of {sessions:,} sessions: {_since(start)} ms  (goal 100)", end="")
        print(f", after {opened} ms for the open")


def _since(start: int) -> str:
    return f"{(time.process_time_ns() - start) / 1e6:.1f}"


def print_capture(folder: Path, rounds: int) -> None:
    """Print the time of a durable capture over that of `put_frame`, in turns."""
    value = {"rows": ["x" * 88] * (CAPTURE_BYTES // 91)}
    data = msgspec.json.encode(value)
    with cerata.open(folder / "capture.cera") as store:
        agent = Agent(store, "bench", memory={"pad": cerata.scratchpad(max_size_mb=1_000)})
        run = agent.run("r1")
        times: dict[str, list[float]] = {"capture": [], "put_frame": []}
        cpu: dict[str, list[float]] = {"capture": [], "put_frame": []}
        works: dict[str, Callable[[], object]] = {
            "capture": lambda: run.call("fetch", lambda: value),
            "put_frame": lambda: store.put_frame(data, kind="tool_result"),
        }
        for _ in range(rounds):
            for name, work in works.items():
                start, processor = time.perf_counter(), time.process_time()
                work()
                times[name].append(time.perf_counter() - start)
                cpu[name].append(time.process_time() - processor)
    wall = np.median(times["capture"]) / np.median(times["put_frame"])
    processor = np.median(cpu["capture"]) / np.median(cpu["put_frame"])
    print(
        f"capture of {len(data):,} B over put_frame: {wall:.2f} by the clock, {processor:.2f} by "
        f"processor time ({1e3 * np.median(times['capture']):.2f} and "
        f"{1e3 * np.median(times['put_frame']):.2f} ms)  (goal 1.5)"
    )


def main() -> None:
    """Print each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    calls, sessions = (2_000, 300) if options.tiny else (options.calls, options.sessions)
    if options.first:
        print_first_reads(options.first, calls, sessions)
        return
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, "
        f"Python {sys.version.split()[0]}, numpy {np.__version__}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "memory.cera"
        fill(path, calls, sessions)
        size = path.stat().st_size
        print(f"{calls:,} calls with results, {sessions:,} sessions: {size / 1e6:,.0f} MB")
        command = [sys.executable, "-m", "benchmarks.working_memory_bench", "--first", str(path)]
        sys.stdout.flush()
        subprocess.run([*command, "--calls", str(calls), "--sessions", str(sessions)], check=True)
        print_reads(path, sessions, 200 if options.tiny else 2_000)
        print_capture(folder, 20 if options.tiny else 300)


if __name__ == "__main__":
    main()
