"""Conversations of an agent: contexts of turns, exchanges, and the fold of messages.

    python -m benchmarks.continuity_bench                    # 25,000 exchanges
    python -m benchmarks.continuity_bench --exchanges 125000 --parts contexts
    python -m benchmarks.continuity_bench --tiny             # some seconds
    python -m benchmarks.continuity_bench --dialogues FILE   # Dynamics on dialogues, and no more

A generated history: sessions of about 83 exchanges in 12 threads and 4 modes, over a year, with a
vector of 384 numbers for each message from a seeded embedder. Times are processor time of this
process, since other work shares the machine; a durable exchange is beside one batch of the same two
frames, in turns, on a file, by the clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

import cerata
from cerata import Agent, Store
from cerata.agents.session import Session
from cerata.agents.turns.projection import MessagesProjection
from cerata.engine.events import Draft, Event, PutFrame, Scope
from cerata.memory.batch.writer import session_of
from cerata.memory.embeddings.drafts import put_embedded
from cerata.memory.frames.drafts import frame_draft, frame_fields
from cerata.projections.columnar.times import to_datetime

from .continuity_policies import print_policies
from .dialogue_dynamics import print_dynamics

PARTS: Final = ("contexts", "exchanges", "size", "policies", "fold")
DIMENSION: Final = 384
THREADS: Final = tuple(f"thread-{number}" for number in range(12))
MODES: Final = ("chat", "booth", "code", "work")
A_SESSION: Final = 83
YEAR_US: Final = 365 * 24 * 3_600_000_000
BATCH: Final = 1_000
START_US: Final = 1_735_689_600_000_000
WORDS: Final = tuple(
    f"{a}{b}"
    for a in ("har", "bo", "dead", "bud", "let", "gar")
    for b in ("bour", "ating", "line", "geted", "tered", "dening", "keeper", "market", "window")
)
_COMMON = "the and is was of to a in it that we on for i you my do not when tomorrow maybe scared"
COMMON: Final = tuple(_COMMON.split(" "))


_VECTORS: Final[dict[str, npt.NDArray[np.float32]]] = {}


def embedded(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return vectors of 384 numbers: the sum of a seeded vector for each word."""
    rows = [np.sum([_vector(word) for word in text.split() or ["-"]], axis=0) for text in texts]
    vectors = np.asarray(rows, np.float32)
    unit: npt.NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _vector(word: str) -> npt.NDArray[np.float32]:
    vector = _VECTORS.get(word)
    if vector is None:
        seed = int.from_bytes(word.encode()[:8].ljust(8, b" "), "little")
        vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        _VECTORS[word] = vector
    return vector


EMBEDDER: Final = cerata.CallableEmbedder(
    embedded, name="seeded", revision="1", dimension=DIMENSION
)


def text_of(drawn: Random, words: int) -> str:
    """Return a text of common and of rarer words."""
    return " ".join(
        drawn.choice(COMMON) if drawn.random() < 0.6 else drawn.choice(WORDS) for _ in range(words)
    )


def fill(store: Store, exchanges: int) -> Agent:
    """Write a history of exchanges, and return its agent."""
    agent = Agent(store, "bench")
    writer = session_of(store)
    drawn = Random(1)
    store.remember("I keep my word.\nI name my sources.", kind="identity", uri="identity:SOUL")
    drafts: list[Draft] = []
    for number in range(exchanges):
        session = number // A_SESSION
        scope: Scope = (
            ("tenant", "default"),
            ("session_id", f"s{session}"),
            ("thread", THREADS[session % len(THREADS)]),
            ("mode", MODES[session % len(MODES)]),
        )
        created = START_US + YEAR_US * number // exchanges
        for role in ("user", "assistant"):
            text = text_of(drawn, 30)
            fields = frame_fields(
                kind="message", role=role, track="bench", created=to_datetime(created)
            )
            draft = frame_draft(text, fields, scope)
            if role == "assistant":
                draft = msgspec.structs.replace(draft, causation=-len(drafts))
            drafts.append(draft)
        if len(drafts) >= BATCH:
            put_embedded(writer, tuple(drafts), finds_dates=False)
            drafts.clear()
    if drafts:
        put_embedded(writer, tuple(drafts), finds_dates=False)
    return agent


def timed(work: Callable[[int], object], rounds: int) -> npt.NDArray[np.float64]:
    """Return the processor time of each call in milliseconds."""
    times = np.empty(rounds)
    for number in range(rounds):
        start = time.process_time_ns()
        work(number)
        times[number] = (time.process_time_ns() - start) / 1e6
    return times


def show(name: str, times: npt.NDArray[np.float64], goal: str) -> None:
    """Print the median and the 95th percentile of a call."""
    p50, p95 = np.percentile(times, (50, 95))
    print(f"{name:<44} p50 {p50:7.1f} ms, p95 {p95:7.1f} ms  ({goal})")


def print_contexts(agent: Agent, rounds: int) -> None:
    """Print the times of contexts of 6,000 tokens, each after a new exchange."""
    session = agent.session("now", thread=THREADS[3], mode="chat")
    drawn = Random(2)
    for blocks in ("default", "all"):
        questions = [text_of(drawn, 12) for _ in range(rounds)]
        for number in range(3):
            session.exchange(f"Warm {blocks} {number}", "Yes.")
            session.assemble(questions[number], max_tokens=6_000, blocks=blocks)

        def assemble(n: int, questions: list[str] = questions, blocks: str = blocks) -> None:
            session.assemble(questions[n], max_tokens=6_000, blocks=blocks)

        times = np.empty(rounds)
        for number in range(rounds):
            session.exchange(text_of(drawn, 20), text_of(drawn, 20))
            times[number] = timed(lambda _, n=number: assemble(n), 1)[0]  # type: ignore[misc]
        show(f"assemble, blocks {blocks}, after an exchange", times, "goal p50 50, p95 100")
    show("handoff", timed(lambda _: agent.handoff(THREADS[3]), rounds), "no goal")
    show("candidates, the first look", timed(lambda _: agent.candidates(), 1), "no goal")
    times = np.empty(rounds)
    for number in range(rounds):
        session.exchange(text_of(drawn, 20), text_of(drawn, 20))
        session.entropy()  # folds the exchange
        times[number] = timed(lambda _: agent.candidates(), 1)[0]
    show("candidates, after an exchange", times, "goal 5")


def print_exchanges(folder: Path, rounds: int) -> None:
    """Print a durable exchange over one batch of its two frames, in turns, by the clock."""
    drawn = Random(3)
    times: dict[str, list[float]] = {"exchange": [], "batch": []}
    with cerata.open(folder / "a.cera") as first, cerata.open(folder / "b.cera") as second:
        session: Session = Agent(first, "bench").session("s")
        scope: Scope = (("tenant", "default"), ("session_id", "s"))
        for _ in range(rounds):
            texts = text_of(drawn, 30), text_of(drawn, 30)
            start = time.perf_counter_ns()
            session.exchange(*texts)
            times["exchange"].append(time.perf_counter_ns() - start)
            drafts = [
                Draft(PutFrame(text=text, kind="message", track="bench"), scope) for text in texts
            ]
            start = time.perf_counter_ns()
            second.append(*drafts)
            times["batch"].append(time.perf_counter_ns() - start)
    medians = {name: float(np.median(each)) / 1e6 for name, each in times.items()}
    ratio = medians["exchange"] / medians["batch"]
    print(
        f"{'a durable exchange over a batch':<44} {ratio:.2f}x of {medians['batch']:.2f} ms (1.3)"
    )


def print_size(path: Path) -> None:
    """Print the size of 552 exchanges and 1,171 entries of knowledge, with vectors."""
    drawn = Random(5)
    with cerata.open(path, embedder=EMBEDDER) as store:
        fill(store, 552)
        store.put_frames([text_of(drawn, 100) for _ in range(1_171)], kind="knowledge")
    size = path.stat().st_size / 1e6
    print(f"{'552 exchanges and 1,171 entries':<44} {size:.2f} MB (goal 6)")


def print_fold(messages: int) -> None:
    """Print the messages of 100 words that the fold takes in a second."""
    drawn = Random(4)
    with cerata.open(":memory:") as store:
        scope: Scope = (("tenant", "default"), ("session_id", "s"))
        for first in range(0, messages, BATCH):
            store.append(
                *(
                    Draft(
                        PutFrame(
                            text=text_of(drawn, 100), kind="message", role="user", track="bench"
                        ),
                        scope,
                    )
                    for _ in range(min(BATCH, messages - first))
                )
            )
        log = session_of(store).log
        events: list[Event] = [log.event(seq) for seq in range(1, log.head.seq + 1)]
        assert all(event.body for event in events)
        rates: list[float] = []
        for _ in range(4):
            start = time.process_time()
            MessagesProjection().apply(events)
            rates.append(messages / (time.process_time() - start))
    print(f"{'messages of 100 words folded a second':<44} {max(rates):,.0f} (goal 3,000)")


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description="Conversations of an agent.")
    parser.add_argument("--exchanges", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--tiny", action="store_true", help="a small history, a few rounds")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--dialogues", type=Path, help="a file in LoCoMo's form")
    options = parser.parse_args()
    exchanges, rounds = (300, 4) if options.tiny else (options.exchanges, options.rounds)
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )
    if options.dialogues is not None:
        print_dynamics(options.dialogues)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "contexts" in options.parts:
            with cerata.open(folder / "talk.cera", embedder=EMBEDDER) as store:
                agent = fill(store, exchanges)
                print(f"{exchanges:,} exchanges, {store.count()[0]:,} frames")
                print_contexts(agent, rounds)
        if "exchanges" in options.parts:
            print_exchanges(folder, 8 if options.tiny else 200)
        if "size" in options.parts:
            print_size(folder / "size.cera")
    if "policies" in options.parts:
        print_policies(3 if options.tiny else 14)
    if "fold" in options.parts:
        print_fold(200 if options.tiny else 4_000)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
