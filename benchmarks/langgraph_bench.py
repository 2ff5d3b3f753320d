# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataSaver beside SqliteSaver: a conversation's file, its turns, and many checkpoints.

``python -m benchmarks.langgraph_bench`` needs the extras langgraph and conformance. A conversation
has turns of three nodes, each of which adds a message; both savers run each turn, one after the
other in alternating order. SqliteSaver runs with ``synchronous=FULL``, since Cerata syncs each
write. The last part stores many checkpoints of several threads and reads the newest, and compares
the first read of rows after an append in a small and in a large projection.
"""

import argparse
import hashlib
import platform
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

import cerata
from cerata.events import PutFrame
from cerata.integrations.langgraph.events import PutCheckpoint
from cerata.projections.core.projection import FoldedEvent

THREADS = 100
WORDS = Path(__file__).read_text().split()


class Wide(cerata.RowProjection[tuple[str, int, int], int]):
    """As many rows for each frame as its metadata says."""

    name = "wide"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            assert isinstance(body, PutFrame)
            count = body.metadata["count"]
            assert isinstance(count, int)
            for row in range(count):
                self.rows["row", event.seq, row] = row


def report(what: str, text: str) -> None:
    print(f"  {what:<44} {text}", flush=True)


def answer(state: dict[str, Any], node: str) -> dict[str, Any]:
    source = random.Random(f"{node} {len(state['messages'])}")
    text = " ".join(source.choices(WORDS, k=60))
    return {"messages": [{"role": "assistant", "content": f"{node}: {text}"}]}


def compiled(saver: Any) -> Any:
    """Return a graph of three nodes in a row."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.message import add_messages

    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]

    graph: Any = StateGraph(State)
    names = ("plan", "act", "reply")
    for name in names:
        graph.add_node(name, lambda state, node=name: answer(state, node))
    for first, second in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(first, second)
    return graph.compile(checkpointer=saver)


def conversation(folder: Path, turns: int) -> None:
    """Run turns with both savers; print the times of a turn and the sizes of the files."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    from cerata.integrations.langgraph import CerataSaver

    ours, theirs = folder / "turns.cera", folder / "turns.sqlite"
    config = {"configurable": {"thread_id": "conversation"}}
    took: dict[str, list[float]] = {"cerata": [], "sqlite": []}
    with (
        cerata.open(ours) as store,
        closing(sqlite3.connect(theirs, check_same_thread=False)) as connection,
    ):
        connection.execute("PRAGMA synchronous=FULL")
        graphs = {
            "cerata": compiled(CerataSaver(store)),
            "sqlite": compiled(SqliteSaver(connection)),
        }
        for turn in range(turns):
            question = {
                "messages": [{"role": "user", "content": f"question {turn}", "id": f"q{turn}"}]
            }
            for name in sorted(graphs, reverse=bool(turn % 2)):
                start = time.perf_counter()
                graphs[name].invoke(question, config)
                took[name].append(time.perf_counter() - start)
        texts = {
            name: [message.content for message in graph.get_state(config).values["messages"]]
            for name, graph in graphs.items()
        }
    assert texts["cerata"] == texts["sqlite"]
    result = hashlib.sha256("\n".join(texts["cerata"]).encode()).hexdigest()[:16]
    ratio = median(a / b for a, b in zip(took["cerata"], took["sqlite"], strict=True))
    print(f"{turns} turns of three nodes, {len(texts['cerata'])} messages, result {result}")
    for name, times in took.items():
        report(
            f"a turn, {name}", f"{min(times) * 1e3:7.1f} ms least, {median(times) * 1e3:7.1f} ms"
        )
    report("a turn, ratio", f"{ratio:.2f}x")
    sizes = ours.stat().st_size, theirs.stat().st_size
    report("the files", f"{sizes[0]:,} and {sizes[1]:,} bytes, {sizes[0] / sizes[1]:.2f}x")


def many(folder: Path, checkpoints: int, reads: int) -> None:
    """Store checkpoints, and read the newest of threads after each further one."""
    from langgraph.checkpoint.base import empty_checkpoint

    from cerata.integrations.langgraph import CerataSaver

    with cerata.open(folder / "many.cera") as store:
        saver = CerataSaver(store)
        encoding, data = saver.serde.dumps_typed(empty_checkpoint())
        for first in range(0, checkpoints, 1_000):
            store.append(
                *[
                    PutCheckpoint(
                        thread=f"thread-{number % THREADS}",
                        checkpoint_id=f"{number:036}",
                        encoding=encoding,
                        checkpoint=data,
                        metadata_encoding=encoding,
                        metadata=data,
                    )
                    for number in range(first, min(first + 1_000, checkpoints))
                ]
            )
        times: list[float] = []
        config: Any = {}
        for read in range(reads):
            config = {
                "configurable": {"thread_id": f"thread-{read % THREADS}", "checkpoint_ns": ""}
            }
            saved = saver.put(
                config, {**empty_checkpoint(), "id": f"{checkpoints + read:036}"}, {}, {}
            )
            start = time.perf_counter()
            found = saver.get_tuple(config)
            times.append(time.perf_counter() - start)
            assert found is not None
            assert found.config == saved
        times.sort()
        print(f"get_tuple of the newest among {checkpoints:,} checkpoints, each after a put")
        report(
            "median, p95", f"{median(times) * 1e3:.2f} ms, {times[reads * 95 // 100] * 1e3:.2f} ms"
        )
    start = time.perf_counter()
    with cerata.open(folder / "many.cera", mode="r") as store:
        assert CerataSaver(store).get_tuple(config) is not None
        report("the first, from opening the file", f"{(time.perf_counter() - start) * 1e3:.0f} ms")


def first_read(rows: int, reads: int) -> float:
    """Return the least time of a read of a row after an append, in a projection of many rows."""
    each = min(rows, 1_000)
    times: list[float] = []
    with cerata.open(":memory:", projections=[Wide]) as store:
        for _ in range(rows // each):
            store.put_frame("filling", metadata={"count": each})
        for _ in range(reads):
            store.put_frame("one more", metadata={"count": 1})
            start = time.perf_counter()
            assert next(store.stream.projection(Wide).rows.range(reverse=True)) is not None
            times.append(time.perf_counter() - start)
    report(f"first row after an append, {rows:,} rows", f"{min(times) * 1e6:.0f} us")
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare CerataSaver with SqliteSaver.")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--checkpoints", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        options.turns, options.checkpoints, options.rows = 3, 1_000, 10_000
    print(f"{platform.platform()}, Python {sys.version.split()[0]}, cerata {cerata.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        conversation(Path(folder), options.turns)
        many(Path(folder), options.checkpoints, 20 if options.tiny else 1_000)
    small = first_read(1_000, 200)
    large = first_read(options.rows, 200)
    report("first row after an append, ratio", f"{large / small:.2f}x")


if __name__ == "__main__":
    main()
