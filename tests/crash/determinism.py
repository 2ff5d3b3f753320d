"""The same seed gives the same run, in other processes and under other hash seeds (O16).

Owns the run of a seed (a story of the log with its crash states and their recoveries, a story of a
whole store with the digests of its projections, a few schedules of a meeting), its digest, and the
comparison. ``python -m tests.crash.determinism --seeds 200`` runs it.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import msgspec
from blake3 import blake3

from cerata.fault_injection.crash_states.states import Plan, crash_states
from cerata.fault_injection.judging.campaign import Campaign, Memory, Story
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.agent import Agent
from cerata.fault_injection.stories.engine_workloads import recover, world_of
from cerata.fault_injection.stories.store_stories import prepared_image, record_workload
from cerata.memory.store import open_store

from .damage import final_image
from .initial_states import STARTS, start_named
from .interleavings import MEETINGS
from .operations import ALPHABET, EXTRA, record
from .schedule import explore

HASH_SEEDS: Final = ("1", "2")
PROCESSES: Final = 2
"""Processes that compute each seed under each hash seed."""

_PLAN: Final = Plan(exhaustive=64, samples=8, tears=16, pair_drops=8)
_SYNCS: Final = ("commit", "always", 1 << 20)
_SCHEDULES: Final = 3
_SECONDS_MAX: Final = 3_600

_encode = msgspec.msgpack.Encoder().encode


def digest_of(seed: int) -> str:
    """Return a digest of every operation of a seed's run on the disk, and of every outcome."""
    source = Random(seed)
    digest = blake3()
    for part in (_log, _store, _meeting):
        for piece in part(seed, source):
            digest.update(piece)
    return digest.hexdigest()


def _log(seed: int, source: Random) -> Iterator[bytes]:
    """A story of the log: its trace, its crash states, and their recoveries."""
    acts = source.choices([*ALPHABET, *EXTRA], k=4)
    story = record(
        acts,
        sync=source.choice(_SYNCS),
        monitor=OrderingMonitor(FileGeometry()),
        seed=seed,
        start=start_named(source.choice(list(STARTS))),
    )
    yield _encode(story.trace)
    for epoch in story.epochs():
        for state in crash_states(epoch, _PLAN):
            yield f"{state.digest} {state.describe()}".encode()
    memory = Memory()
    tally = Campaign(recover, _PLAN, memory=memory).check(story)
    yield f"{tally.states} {tally.distinct} {tally.recovered} {len(tally.failures)}".encode()
    for outcome in memory.images.values():
        yield _encode(outcome)


def _store(seed: int, source: Random) -> Iterator[bytes]:
    """A story of a whole store: its trace, and the digest of each projection at the end."""
    operations = source.choices(Agent().alphabet(), k=3)
    story = record_workload(Agent(), operations, prepared_image(Agent()), seed=seed)
    yield _encode(story.trace)
    yield _encode(_digests(story))


def _digests(story: Story) -> dict[str, bytes]:
    world = world_of(final_image(story), seed=1, record=False)
    with open_store(story.path, environment=world.environment(world.disk.process())) as store:
        return store.stream.digests()


def _meeting(_: int, source: Random) -> Iterator[bytes]:
    """A few schedules of processes that meet: all of their operations, locks included."""
    meeting = MEETINGS[source.choice(list(MEETINGS))]
    runs = explore(
        meeting.begin, meeting.programs(), preemptions=1, kill=meeting.kill, limit=_SCHEDULES
    )
    for run in runs:
        yield _encode(run.world.disk.trace)


# --- in other processes --------------------------------------------------------------------------


def differing(seeds: Sequence[int]) -> dict[int, list[str]]:
    """Compute each seed in two processes per hash seed; return the seeds whose runs differ."""
    digests_by_seed: dict[int, list[str]] = {seed: [] for seed in seeds}
    for hash_seed in HASH_SEEDS:
        # Every second process has the reverse order: the state that a seed leaves must not affect
        # the next.
        orders = [seeds[::-1] if number % 2 else seeds for number in range(PROCESSES)]
        for order, child in [(order, _begin(order, hash_seed)) for order in orders]:
            out, _ = child.communicate(timeout=_SECONDS_MAX)
            if child.returncode:
                raise RuntimeError(f"a process ended with {child.returncode}")
            for seed, digest in zip(order, out.split(), strict=True):
                digests_by_seed[seed].append(digest)
        progress = f"{len(seeds)} seeds in {PROCESSES} processes with PYTHONHASHSEED={hash_seed}\n"
        sys.stderr.write(progress)
    return {seed: digests for seed, digests in digests_by_seed.items() if len(set(digests)) > 1}


def _begin(seeds: Sequence[int], hash_seed: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.crash.determinism",
            "--print",
            *map(str, seeds),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the seeds from the command line; the exit code is 1 if two runs differ."""
    parser = argparse.ArgumentParser(
        description="Check that a seed gives the same run in any process."
    )
    parser.add_argument("--seeds", type=int, default=200, help="number of seeds, from 0 (200)")
    parser.add_argument(
        "--print", dest="printed", type=int, nargs="+", help="print the digests of these seeds"
    )
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    if options.printed:
        for seed in options.printed:
            write(f"{digest_of(seed)}\n")
        return 0
    started = time.monotonic()
    wrong = differing(range(options.seeds))
    for seed, digests in wrong.items():
        write(f"seed {seed} differs: {' '.join(digest[:16] for digest in digests)}\n")
    runs = PROCESSES * len(HASH_SEEDS)
    write(
        f"{options.seeds} seeds in {runs} processes under {len(HASH_SEEDS)} hash seeds: "
        f"{len(wrong)} differ; {time.monotonic() - started:.0f} s\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
