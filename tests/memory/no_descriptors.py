"""Call everything of a store and a view with no free file descriptor; a test runs this as a child.

Nothing that is imported late has been imported when the descriptors end. Prints JSON: the calls
that raised other errors than Cerata's, those that were refused, and those that fail afterwards.
"""

import json
import resource
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cerata
from cerata import Entity, Filter, Store, View, agents
from cerata.agents import judge
from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.events import JsonValue, PutFrame
from cerata.engine.salted_hashes import judged_hash
from cerata.packs.plots import draw_facts, draw_graph

FILE = "notes.html"
MESSAGE: Mapping[str, JsonValue] = {"role": "user", "content": "Which tea?"}
HOUR_US = 3_600_000_000
Call = Callable[[Any], object]


class AheadClock(SystemClock):
    """The machine's clock, and some microseconds more."""

    ahead_us = 0

    def now_us(self) -> int:
        return super().now_us() + self.ahead_us


CLOCK = AheadClock()

READS: dict[str, Call] = {
    "access": lambda memory: agents.access(memory, 1),
    "accesses": agents.accesses,
    "history.around": lambda memory: memory.history.around(1),
    "history.audit": lambda memory: memory.history.audit().markdown,
    "history.blame": lambda memory: [memory.history.blame(1), memory.history.blame("Ann")],
    "files.children": lambda memory: memory.files.children(1),
    "files.chunks": lambda memory: memory.files.chunks(1),
    "graph.conflicts": lambda memory: memory.graph.conflicts(),
    "files.content": lambda memory: memory.files.content(1),
    "graph.cooccurring": lambda memory: memory.graph.cooccurring("Ann"),
    "draw_facts": lambda memory: draw_facts(memory, memory.facts()),
    "draw_graph": lambda memory: draw_graph(memory, "Ann"),
    "embeddings.of": lambda memory: memory.embeddings.of(1),
    "graph.entities": lambda memory: list(memory.graph.entities()),
    "graph.entity": lambda memory: memory.graph.entity("Ann"),
    "graph.evidence": lambda memory: memory.graph.evidence(3),
    "history.explain": lambda memory: [memory.history.explain(hit) for hit in memory.search("tea")],
    "interchange.export_facts": lambda memory: list(memory.interchange.export_facts()),
    "graph.fact": lambda memory: memory.graph.fact(3),
    "graph.versions": lambda memory: memory.graph.versions("Ann"),
    "facts": lambda memory: list(memory.facts()),
    "files.by_content": lambda memory: memory.files.by_content(cerata.content_hash("tea")),
    "files.stored": lambda memory: memory.files.stored(cerata.content_hash("tea")),
    "files.by_uri": lambda memory: memory.files.by_uri("file:a"),
    "frame": lambda memory: memory.frame(1),
    "frames": lambda memory: list(memory.frames(Filter(created=("2020-01-01", None)))),
    "get": lambda memory: memory.get("file:a"),
    "files.highlights": lambda memory: memory.files.highlights("green tea", "tea"),
    "history.of": lambda memory: [memory.history.of(1), memory.history.of("Ann")],
    "history.last": lambda memory: memory.history.last(),
    "graph.links": lambda memory: list(memory.graph.links()),
    "log": lambda memory: [event.body for event in memory.log()],
    "messages": agents.messages,
    "graph.neighbours": lambda memory: memory.graph.neighbours("Ann"),
    "graph.paths": lambda memory: memory.graph.paths("Ann", "Bern"),
    "stream.projection": lambda memory: memory.stream.projection("tags"),
    "recall": lambda memory: str(memory.recall("which tea?")),
    "history.rerun": lambda memory: [
        (str(memory.history.explain(event)), memory.history.rerun(event))
        for event in memory.log(type="recall")
    ],
    "embeddings.used": lambda memory: memory.embeddings.used(),
    "graph.resolve": lambda memory: memory.graph.resolve("Ann"),
    "search": lambda memory: [hit.to_dict() for hit in memory.search("tea")],
    "search query": lambda memory: memory.search(cerata.query("tea created:2026-01")),
    "graph.search": lambda memory: memory.graph.search("Ann"),
    "files.source": lambda memory: memory.files.source(memory.frame(1)),
    "history.tags": lambda memory: memory.history.tags(),
    "history.timeline": lambda memory: [entry.frame for entry in memory.history.timeline().entries],
    "embeddings.tokens_of": lambda memory: memory.embeddings.tokens_of(1),
    "files.values": lambda memory: memory.files.values("tag"),
    "graph.walk": lambda memory: memory.graph.walk("Ann"),
    "graph.why": lambda memory: str(memory.graph.why(3)),
}
"""The reads that a view and a store share, by name; a word after it tells variants apart."""


def _transaction(store: Store) -> None:
    with store.transaction():
        store.put_frame("milk")
        store.search("milk")


def _is_empty(view: View) -> bool:
    return not len(view)


def _deleted(store: Store) -> cerata.Receipt:
    """Put and delete a frame, and return it."""
    frame = store.put_frame("closed")
    store.delete(frame)
    return frame


def _sweep(store: Store) -> None:
    """Sweep a frame that has expired: no file is needed if there is none."""
    now = datetime.fromtimestamp(CLOCK.now_us() // 1_000_000, UTC)
    store.put_frame("brief", options=cerata.PutOptions(expires=now + timedelta(hours=1)))
    CLOCK.ahead_us += 2 * HOUR_US
    assert store.upkeep.sweep().deleted


def _imported_events(store: Store) -> object:
    lines = BytesIO()
    store.interchange.export_events(lines)
    return store.interchange.import_events(BytesIO(lines.getvalue()))


def _forked(
    store: Store, call: Callable[[Store], object] = lambda fork: fork.upkeep.branches()
) -> object:
    with store.upkeep.fork() as fork:
        fork.put_frame("in the fork")
        return call(fork)


def _judged(store: Store) -> object:
    text = f"proposal {store.head.seq}"
    frame = store.put_frame(text, kind="proposal", metadata={"target": "scaffold/rules"}).id
    salt = next(event.salt for event in store.log() if event.seq == frame)
    assert salt is not None
    seen: Any = SimpleNamespace(id=frame, content=judged_hash(salt, "scaffold/rules", text))
    return judge(store, seen, "approve", actor="anna")


STORE: dict[str, Call] = {
    "append": lambda store: store.append(PutFrame(text="one")),
    "assert_fact": lambda store: store.assert_fact("Ann", "likes", Entity("tea")),
    "graph.assert_many": lambda store: store.graph.assert_many(
        [cerata.Assertion("Ann", "drinks", "tea")]
    ),
    "at": lambda store: store.at("HEAD").frame(1),
    "history.bisect": lambda store: store.history.bisect(_is_empty),
    "upkeep.branches": lambda store: store.upkeep.branches(),
    "upkeep.fork": _forked,
    "history.compare": lambda store: _forked(store, store.history.compare),
    "upkeep.drafts_after": lambda store: _forked(
        store, lambda fork: fork.upkeep.drafts_after(store)
    ),
    "upkeep.apply": lambda store: _forked(store, store.upkeep.apply),
    "backup": lambda store: store.backup(f"{store.path}-{store.head.seq}"),
    "checkpoint": lambda store: store.checkpoint(),
    "upkeep.compact": lambda store: store.upkeep.compact().done,
    "upkeep.maintain": lambda store: store.upkeep.maintain(),
    "stream.commit": lambda store: store.stream.commit(),
    "correct_fact": lambda store: store.correct_fact(store.assert_fact("A", "b", "c"), object="d"),
    "count": lambda store: store.count(),
    "graph.declare": lambda store: store.graph.declare("likes", functional=False),
    "delete": lambda store: store.delete(store.put_frame("old")),
    "diff": lambda store: store.diff(1, query="tea").to_dict(),
    "stream.digests": lambda store: store.stream.digests(replay=True),
    "embeddings.fill": lambda store: store.embeddings.fill(),
    "graph.extract": lambda store: store.graph.extract(),
    "interchange.export_events": lambda store: store.interchange.export_events(BytesIO()),
    "interchange.import_events": _imported_events,
    "interchange.import_facts": lambda store: store.interchange.import_facts(
        store.interchange.export_facts()
    ),
    "upkeep.info": lambda store: store.upkeep.info(),
    "judge": _judged,
    "graph.link": lambda store: store.graph.unlink(store.graph.link(3, "supports", 4)),
    "graph.merge": lambda store: store.graph.unmerge(store.graph.merge("Ann", "Bob")),
    "graph.name": lambda store: store.graph.name("Ann", kind="person"),
    "put_frame": lambda store: store.put_frame("two"),
    "put_frames": lambda store: store.put_frames(["three", "four"]),
    "upkeep.rebuild": lambda store: store.upkeep.rebuild(),
    "record_access": lambda store: agents.record_access(store, 1),
    "stream.refresh": lambda store: store.stream.refresh(),
    "remember": lambda store: store.remember(f"a text {store.head.seq}"),
    "remember a file": lambda store: store.remember(Path(FILE), tags=[f"v{store.head.seq}"]),
    "files.remember": lambda store: store.files.remember([FILE], include=["*.html"]),
    "remember_messages": lambda store: agents.remember_messages(store, [MESSAGE]),
    "stream.replay": lambda store: store.stream.replay().search("tea"),
    "history.restore": lambda store: store.history.restore(_deleted(store)),
    "retract_fact": lambda store: store.retract_fact(store.assert_fact("A", "b", "e")),
    "graph.retract_many": lambda store: store.graph.retract_many(
        [store.assert_fact("A", "b", "f")]
    ),
    "stream.follow": lambda store: [event.body for event in store.stream.follow(0, timeout=0)],
    "history.salvaged": lambda store: list(store.history.salvaged()),
    "scoped": lambda store: store.scoped({"user": "ann"}).put_frame("hers"),
    "graph.split": lambda store: store.graph.unsplit(store.graph.split("Ann", "Anne", facts=[3])),
    "history.since": lambda store: store.history.since(1, query="tea").to_dict(),
    "upkeep.speculate": lambda store: store.upkeep.speculate(PutFrame(text="tea")).search("tea"),
    "supersede": lambda store: store.supersede(store.put_frame("new"), "newer"),
    "upkeep.sweep": _sweep,
    "history.tag": lambda store: store.history.tag(f"v{store.head.seq}"),
    "transaction": _transaction,
    "update": lambda store: store.update(store.put_frame("plain"), tags=["green"]),
    "verify": lambda store: store.verify(),
    "history.view": lambda store: store.history.view(),
}
"""The other calls of a store; those that take something back are called with their opposite."""

NO_READS = {
    *("close", "scope", "shared", "actor", "path", "report", "head", "embeddings.embedder"),
    *("graph.unlink", "graph.unmerge", "graph.unsplit"),
}
"""Names of a store that need no file, are called above with their opposite, or are no user's."""


@contextmanager
def no_descriptors() -> Generator[None]:
    """Let the process open no file more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def calls(store: Store, view: View) -> Iterator[tuple[str, str | None, str]]:
    """Call everything; yield the name, the error's class or None, and its text."""
    for memory, table in ((store, READS), (view, READS), (store, STORE)):
        for name, call in table.items():
            try:
                call(memory)
            except Exception as error:  # noqa: BLE001 - the test names them
                kind = type(error).__name__
                is_typed = isinstance(error, cerata.CerataError)
                yield (
                    f"{type(memory).__name__}.{name}",
                    kind if is_typed else f"raw {kind}",
                    str(error),
                )
            else:
                yield f"{type(memory).__name__}.{name}", None, ""


def main(path: str) -> None:
    with cerata.open(path, environment=Environment(clock=CLOCK)) as store:
        view = store.history.view()
        with no_descriptors():
            without = list(calls(store, view))
        after = list(calls(store, view))
        with no_descriptors():
            loaded = list(calls(store, store.at(view.basis)))
        verified = store.verify().ok
    found = {"without": without, "after": after, "loaded": loaded, "verified": verified}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
