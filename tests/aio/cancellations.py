"""Tasks that are cancelled at random moments, and the writes that the file has in the end.

``python -m tests.aio.cancellations --rounds 1000 --seed 1`` prints the counts, and fails if a write
is lost, doubled or halved. A write of a cancelled task may be in the file or not; with a key,
repeating it brings it there once. A stream follows the file meanwhile, and its steps are cancelled.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import cerata
import cerata.aio
from cerata.aio import AsyncEventStream, AsyncStore

AT_ONCE = 6
"""Tasks that run at once: more than the threads, so that some wait for one."""

DELAY_SECONDS_MAX = 0.06
"""The longest time before a task is cancelled: more than most calls take on a busy machine."""


@dataclass
class Outcome:
    """The texts of writes by their fate: each text names one frame."""

    acknowledged: list[str] = field(default_factory=list[str])
    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Texts of one transaction."""
    keyed: list[str] = field(default_factory=list[str])
    cancelled: int = 0
    written: int = 0
    """Cancelled writes that the file has."""

    def __str__(self) -> str:
        return (
            f"{self.cancelled:,} cancelled, of which the file has {self.written:,}; "
            f"{len(self.acknowledged):,} acknowledged"
        )


async def _put(store: AsyncStore, name: str, outcome: Outcome) -> None:
    await store.put_frame(name)
    outcome.acknowledged.append(name)


async def _put_keyed(store: AsyncStore, name: str, outcome: Outcome) -> None:
    outcome.keyed.append(name)
    await store.put_frame(name, options=cerata.PutOptions(key=name))


async def _put_pair(store: AsyncStore, name: str, outcome: Outcome) -> None:
    pair = f"{name} left", f"{name} right"
    outcome.pairs.append(pair)
    async with store.transaction():
        await store.put_frame(pair[0])
        await asyncio.gather(store.put_frame(pair[1]), store.count())
    outcome.acknowledged += pair


async def _read(store: AsyncStore, name: str, outcome: Outcome) -> None:
    await store.search("left")
    seqs = [event.seq async for event in store.log(1, 80)]
    assert seqs == list(range(1, len(seqs) + 1))


_ACTS: tuple[Callable[[AsyncStore, str, Outcome], Awaitable[None]], ...] = (
    _put,
    _put_keyed,
    _put_pair,
    _read,
)


async def _attempt(
    store: AsyncStore, number: int, random: Random, outcome: Outcome, limit: asyncio.Semaphore
) -> None:
    act, delay = random.choice(_ACTS), random.uniform(0, DELAY_SECONDS_MAX)
    async with limit:
        task = asyncio.ensure_future(act(store, f"note {number}", outcome))
        await asyncio.sleep(delay)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            outcome.cancelled += 1


async def _follow(stream: AsyncEventStream, random: Random, seqs: list[int]) -> None:
    """Take events by steps that are cancelled now and then, until the stream ends."""
    while True:
        step = asyncio.ensure_future(anext(stream))
        await asyncio.wait([step], timeout=random.uniform(0, 0.02))
        step.cancel()
        try:
            seqs.append((await step).seq)
        except asyncio.CancelledError:
            continue
        except StopAsyncIteration:
            return


async def run(path: Path, rounds: int, seed: int) -> Outcome:
    """Start tasks, cancel them, and compare the file with the outcome of each."""
    random, outcome, seqs = Random(seed), Outcome(), list[int]()
    limit = asyncio.Semaphore(AT_ONCE)
    async with cerata.aio.open(path) as store, store.stream.follow(0) as stream:
        follower = asyncio.ensure_future(_follow(stream, random, seqs))
        number = 0
        while outcome.cancelled < rounds:
            batch = range(number, number + 50)
            number += 50
            await asyncio.gather(*(_attempt(store, each, random, outcome, limit) for each in batch))
        for name in outcome.keyed:
            await store.put_frame(name, options=cerata.PutOptions(key=name))
        head = (await store.head()).seq
        while stream.position < head:  # noqa: ASYNC110 - a stream has no such event
            await asyncio.sleep(0.01)
        await stream.close()
        await follower
    _check(path, outcome, seqs)
    return outcome


def _check(path: Path, outcome: Outcome, seqs: list[int]) -> None:
    with cerata.open(path) as store:
        texts = Counter(frame.text for frame in store.frames())
        assert store.verify().ok
        head = store.head.seq
    assert max(texts.values(), default=1) == 1, "a write is doubled"
    assert all(texts[text] == 1 for text in outcome.acknowledged), "a write is lost"
    assert all(texts[text] == 1 for text in outcome.keyed), "a keyed write is lost"
    assert all(texts[left] == texts[right] for left, right in outcome.pairs), "half a batch"
    assert seqs == list(range(1, head + 1)), "an event is lost or doubled"
    outcome.written = texts.total() - len(outcome.acknowledged) - len(outcome.keyed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000, help="cancelled tasks (1000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(run(Path(folder) / "m.cera", options.rounds, options.seed)))  # noqa: T201


if __name__ == "__main__":
    main()
