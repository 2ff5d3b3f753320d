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
from cerata import Entity, Filter, Store, View
from cerata.agents import judge
from cerata.engine.environment import Environment, SystemClock
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
    "access": lambda memory: memory.access(1),
    "accesses": lambda memory: memory.accesses(),
    "around": lambda memory: memory.around(1),
    "audit": lambda memory: memory.audit().markdown,
    "blame": lambda memory: [memory.blame(1), memory.blame("Ann")],
    "children": lambda memory: memory.children(1),
    "chunks": lambda memory: memory.chunks(1),
    "conflicts": lambda memory: memory.conflicts(),
    "content": lambda memory: memory.content(1),
    "cooccurring": lambda memory: memory.cooccurring("Ann"),
    "draw_facts": lambda memory: draw_facts(memory, memory.facts()),
    "draw_graph": lambda memory: draw_graph(memory, "Ann"),
    "embedding": lambda memory: memory.embedding(1),
    "entities": lambda memory: list(memory.entities()),
    "entity": lambda memory: memory.entity("Ann"),
    "evidence": lambda memory: memory.evidence(3),
    "explain": lambda memory: [memory.explain(hit) for hit in memory.search("tea")],
    "export_facts": lambda memory: list(memory.export_facts()),
    "fact": lambda memory: memory.fact(3),
    "fact_history": lambda memory: memory.fact_history("Ann"),
    "facts": lambda memory: list(memory.facts()),
    "find_content": lambda memory: memory.find_content(cerata.content_hash("tea")),
    "find_stored": lambda memory: memory.find_stored(cerata.content_hash("tea")),
    "find_uri": lambda memory: memory.find_uri("file:a"),
    "frame": lambda memory: memory.frame(1),
    "frames": lambda memory: list(memory.frames(Filter(created=("2020-01-01", None)))),
    "get": lambda memory: memory.get("file:a"),
    "highlights": lambda memory: memory.highlights("green tea", "tea"),
    "history": lambda memory: [memory.history(1), memory.history("Ann")],
    "last": lambda memory: memory.last(),
    "links": lambda memory: list(memory.links()),
    "log": lambda memory: [event.body for event in memory.log()],
    "messages": lambda memory: memory.messages(),
    "neighbours": lambda memory: memory.neighbours("Ann"),
    "paths": lambda memory: memory.paths("Ann", "Bern"),
    "projection": lambda memory: memory.projection("tags"),
    "recall": lambda memory: str(memory.recall("which tea?")),
    "rerun_recall": lambda memory: [
        (str(memory.explain(event)), memory.rerun_recall(event))
        for event in memory.log(type="recall")
    ],
    "remembered_embedder": lambda memory: memory.remembered_embedder(),
    "resolve": lambda memory: memory.resolve("Ann"),
    "search": lambda memory: [hit.to_dict() for hit in memory.search("tea")],
    "search query": lambda memory: memory.search(cerata.query("tea created:2026-01")),
    "search_facts": lambda memory: memory.search_facts("Ann"),
    "source_of": lambda memory: memory.source_of(memory.frame(1)),
    "tags": lambda memory: memory.tags(),
    "timeline": lambda memory: [entry.frame for entry in memory.timeline().entries],
    "token_embedding": lambda memory: memory.token_embedding(1),
    "values": lambda memory: memory.values("tag"),
    "walk": lambda memory: memory.walk("Ann"),
    "why": lambda memory: str(memory.why(3)),
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
    store.put_frame("brief", expires=now + timedelta(hours=1))
    CLOCK.ahead_us += 2 * HOUR_US
    assert store.sweep().deleted


def _imported_events(store: Store) -> object:
    lines = BytesIO()
    store.export_events(lines)
    return store.import_events(BytesIO(lines.getvalue()))


def _forked(store: Store, call: Callable[[Store], object] = Store.branches) -> object:
    with store.fork() as fork:
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
    "assert_facts": lambda store: store.assert_facts([cerata.Assertion("Ann", "drinks", "tea")]),
    "at": lambda store: store.at("HEAD").frame(1),
    "bisect": lambda store: store.bisect(_is_empty),
    "branches": lambda store: store.branches(),
    "fork": _forked,
    "compare": lambda store: _forked(store, store.compare),
    "drafts_after": lambda store: _forked(store, lambda fork: fork.drafts_after(store)),
    "apply": lambda store: _forked(store, store.apply),
    "backup": lambda store: store.backup(f"{store.path}-{store.head.seq}"),
    "checkpoint": lambda store: store.checkpoint(),
    "compact": lambda store: store.compact().done,
    "maintain": lambda store: store.maintain(),
    "commit": lambda store: store.commit(),
    "correct_fact": lambda store: store.correct_fact(store.assert_fact("A", "b", "c"), object="d"),
    "count": lambda store: store.count(),
    "declare_predicate": lambda store: store.declare_predicate("likes", functional=False),
    "delete": lambda store: store.delete(store.put_frame("old")),
    "diff": lambda store: store.diff(1, query="tea").to_dict(),
    "digests": lambda store: store.digests(replay=True),
    "embed_missing": lambda store: store.embed_missing(),
    "extract": lambda store: store.extract(),
    "export_events": lambda store: store.export_events(BytesIO()),
    "import_events": _imported_events,
    "import_facts": lambda store: store.import_facts(store.export_facts()),
    "info": lambda store: store.info(),
    "judge": _judged,
    "link": lambda store: store.unlink(store.link(3, "supports", 4)),
    "merge_entities": lambda store: store.unmerge(store.merge_entities("Ann", "Bob")),
    "put_entity": lambda store: store.put_entity("Ann", kind="person"),
    "put_frame": lambda store: store.put_frame("two"),
    "put_frames": lambda store: store.put_frames(["three", "four"]),
    "rebuild": lambda store: store.rebuild(),
    "record_access": lambda store: store.record_access(1),
    "refresh": lambda store: store.refresh(),
    "remember": lambda store: store.remember(f"a text {store.head.seq}"),
    "remember a file": lambda store: store.remember(Path(FILE), tags=[f"v{store.head.seq}"]),
    "remember_files": lambda store: store.remember_files([FILE], include=["*.html"]),
    "remember_messages": lambda store: store.remember_messages([MESSAGE]),
    "replay": lambda store: store.replay().search("tea"),
    "restore": lambda store: store.restore(_deleted(store)),
    "retract_fact": lambda store: store.retract_fact(store.assert_fact("A", "b", "e")),
    "retract_facts": lambda store: store.retract_facts([store.assert_fact("A", "b", "f")]),
    "follow": lambda store: [event.body for event in store.follow(0, timeout=0)],
    "salvaged": lambda store: list(store.salvaged()),
    "scoped": lambda store: store.scoped({"user": "ann"}).put_frame("hers"),
    "split_entity": lambda store: store.unsplit(store.split_entity("Ann", "Anne", facts=[3])),
    "since": lambda store: store.since(1, query="tea").to_dict(),
    "speculate": lambda store: store.speculate(PutFrame(text="tea")).search("tea"),
    "supersede": lambda store: store.supersede(store.put_frame("new"), "newer"),
    "sweep": _sweep,
    "tag": lambda store: store.tag(f"v{store.head.seq}"),
    "transaction": _transaction,
    "update": lambda store: store.update(store.put_frame("plain"), tags=["green"]),
    "verify": lambda store: store.verify(),
    "view": lambda store: store.view(),
}
"""The other calls of a store; those that take something back are called with their opposite."""

NO_READS = {
    *("close", "scope", "shared", "actor", "path", "report", "head", "embedder"),
    *("unlink", "unmerge", "unsplit"),
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
        view = store.view()
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
