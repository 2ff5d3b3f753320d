"""Crashes while a document is remembered: a second call completes the first.

Owns the story of documents under one URI, each in place of the previous one and of several batches,
and the check after any crash in it: if the last document is remembered again, each of its passages
is there once, all other passages are closed, and the projections equal a replay of the log.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cerata.engine.integrity import hash_bytes
from cerata.fault_injection.crash_states.states import CrashState
from cerata.fault_injection.judging.campaign import Failure, Story, Tally, crashed_world
from cerata.fault_injection.judging.model import ModelEvent
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.simulation.disk import SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    fresh_image,
    model_from,
    story_in,
)
from cerata.memory.store import Store, open_store
from cerata.memory.values.options import OpenOptions
from cerata.retrieval.chunking import split_passages

from .operations import fresh_world

URI: Final = "notes/plan.md"


def sectioned(title: str, count: int) -> str:
    """Return a Markdown text of ``count`` passages.

    Each has a hash of 16 bytes in hex, so that a batch takes many sectors however well it
    compresses: an epoch of few sectors has few crash states.
    """
    names = (f"{title} {number}" for number in range(count))
    return "".join(f"# {name}\n\nWhat it says: {_incompressible(name)}.\n" for name in names)


def _incompressible(name: str) -> str:
    return hash_bytes(name.encode())[:16].hex()


def record_documents(texts: Sequence[str], monitor: OrderingMonitor) -> Story:
    """Remember one text after the other under one URI, in a new store."""
    world = fresh_world()
    process = world.disk.process()
    node = world.disk.names[PATH].number
    with _open(world, process, monitor) as store:
        for number, text in enumerate(texts, start=1):
            world.disk.step = f"document {number}"
            seq = max(store.remember(text, uri=URI).seqs)
            world.disk.acknowledge(seq, process.name)
            monitor.acknowledge((1, node), seq)
        events = [ModelEvent.of(event) for event in store.log()]
        model = model_from(store.head.log_id, events)
        return story_in(world, model, "documents", base=fresh_image())


def remember_again(state: CrashState, story: Story, text: str) -> Tally:
    """Open a crash state, remember the last document once more, and check the memory."""
    tally = Tally()
    world = crashed_world(state)
    try:
        with _open(world, world.disk.process("after")) as store:
            store.remember(text, uri=URI)
            _check(store, text)
            if store.remember(text, uri=URI).added:
                raise Finding("O2", "passages that were stored already were stored again")
    except Exception as error:  # noqa: BLE001 - after any error the document is not there
        finding = error if isinstance(error, Finding) else Finding("O5", repr(error))
        named = replace(story, name=f"{story.name}, remembered again")
        tally.failures.append(Failure(state, finding, named))
    return tally


def _open(world: World, process: SimulatedProcess, monitor: OrderingMonitor | None = None) -> Store:
    storage = None if monitor is None else monitor.storage(process)
    return open_store(
        PATH,
        environment=world.environment(process, storage),
        options=OpenOptions(ring_bytes=RING_SIZE),
    )


def _check(store: Store, text: str) -> None:
    documents = list(store.frames())
    if len(documents) != 1 or documents[0].uri != URI:
        raise Finding("O2", f"{len(documents)} documents are current, not 1")
    passages = [text[passage.start : passage.end] for passage in split_passages(text)]
    chunks = [frame for frame in store.frames(include_chunks=True) if frame.parent is not None]
    there = Counter((frame.chunk_index, frame.text) for frame in chunks)
    if there != Counter(enumerate(passages)):
        raise Finding(
            "O1", f"{len(passages)} passages were remembered; the store has {len(chunks)}"
        )
    if any(chunk.parent != documents[0].id for chunk in chunks):
        raise Finding("O2", "a chunk of another document is current")
    if store.files.content(documents[0].id).decode() != text:
        raise Finding("O2", "the document's text differs from the remembered text")
    if store.stream.digests() != store.stream.digests(replay=True):
        raise Finding("O6", "the projections differ from a replay of the log")
