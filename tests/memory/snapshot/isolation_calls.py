"""The isolation test's table: how each public name of a store, view and transaction is called.

A name maps to a function of a `Case` that yields calls, or to the reason for which it cannot show
another tenant's events. `isolation` fails for a name that is in neither.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

import msgspec
import numpy as np

import cerata
from cerata import View, agents
from cerata.agents import judge
from cerata.engine.events import DeleteFrame, Draft, PutEmbedding, PutFrame, PutTag, RetractFact
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.renamed import functions
from cerata.memory.values.vectors import vectors
from cerata.packs.plots import draw_facts, draw_graph

from .tenants import DIMENSIONS, SCOPES, Own, is_seen, mark, owner_of


@dataclass
class Case:
    """A reader, its store, what is asked, and the arguments: its own, and those of the others."""

    reader: str
    store: cerata.Store
    asked: Any
    """The store, view or transaction whose names are called."""
    own: Own
    ids: Sequence[int]
    """Ids of things of the reader and of the others, and some that nothing has."""

    @property
    def points(self) -> Sequence[int]:
        """A few points of the log."""
        return self.ids[1 :: len(self.ids) // 4]

    @property
    def names(self) -> list[str]:
        """Names that all use, names near to another's, and names of single owners."""
        words = ["{} alias", "{} Ada", "{}town", "{} Bob", "{}-release-2026-gold-edition"]
        common = ["Ada", "Countess", "-release-2026-gold-edition", "qz", "shared-tag"]
        hidden = [one for one in SCOPES if not is_seen(one, self.reader)]
        owners = (self.reader, hidden[0], hidden[-1])
        return common + [word.format(mark(owner)) for word in words for owner in owners]


Call: TypeAlias = tuple[Callable[[], object], Sequence[str]]
"""What to call, and the texts among its arguments."""
Calls: TypeAlias = Callable[[Case], Iterator[Call]]


def once(call: Callable[[Any], object], *texts: str) -> Calls:
    return lambda case: iter([(partial(call, case.asked), texts)])


def by_case(call: Callable[[Case], object], *texts: str) -> Calls:
    return lambda case: iter([(partial(call, case), texts)])


def by_id(call: Callable[[Any, int], object]) -> Calls:
    return lambda case: ((partial(call, case.asked, one), ()) for one in case.ids)


def by_point(call: Callable[[Any, int], object]) -> Calls:
    return lambda case: ((partial(call, case.asked, one), ()) for one in case.points)


def by_name(call: Callable[[Any, str], object]) -> Calls:
    return lambda case: ((partial(call, case.asked, name), (name,)) for name in case.names)


def by(values: Iterable[Any], call: Callable[[Any, Any], object]) -> Calls:
    """Call with each of the values; an error may repeat it, or what it says of a scope."""
    return lambda case: ((partial(call, case.asked, one), _texts(one)) for one in values)


def _texts(value: object) -> list[str]:
    if value in SCOPES:
        return [f"{mark(str(value))}space", *map(str, SCOPES[str(value)].values())]
    return [value] if isinstance(value, str) else []


def every(*several: Calls) -> Calls:
    return lambda case: (call for calls in several for call in calls(case))


_CLOSED: Final = cerata.Filter(include_superseded=True)
_DELETED: Final = cerata.Filter(include_deleted=True)


def _hits(asked: Any, query: object, **options: Any) -> object:
    found = asked.search(query, **options)
    return [(hit.to_dict(), asked.history.explain(hit)) for hit in found[:5]], len(found)


def _vectors(case: Case) -> Iterator[Call]:
    for size in (2, 3, DIMENSIONS[owner_of(case.reader)]):
        for space in (None, "shared-space", f"{mark('beta')}space"):
            yield (
                partial(_hits, case.asked, np.ones(size), vectors=cerata.Vectors(space=space)),
                (space or "",),
            )


def _queries() -> Calls:
    texts = ("harbour", "Ada", "who is Countess", "lighthouse", "qz", "part")
    full = ("qz*", "h*", "tag:shared", "uri:file*", "harbour NOT qz*", "title:l*", "metadata.n:>1")
    return every(
        *(once(partial(_hits, query=text, k=50)) for text in texts),
        *(once(partial(_hits, query=cerata.query(text), where=_CLOSED)) for text in full),
        once(lambda asked: _hits(asked, "harbour", where=cerata.Filter(uri_prefix="file:"))),
        once(
            lambda asked: _hits(asked, "harbour", where=cerata.Filter(scope={"tenant": "tn-beta"})),
            "tn-beta",
        ),
        once(lambda asked: _hits(asked, "Ada", profile="recall", where=_DELETED)),
        *(
            once(partial(_hits, query="x", vectors=cerata.Vectors(tokens=[[1] * n])))
            for n in DIMENSIONS.values()
        ),
    )


READS: Final[Mapping[str, Calls | str]] = {
    "access": by_id(agents.access),
    "accesses": once(agents.accesses),
    "history.audit": every(
        once(
            lambda asked: (
                asked.history.audit(),
                asked.history.audit().markdown,
                str(asked.history.audit()),
            )
        ),
        by_point(lambda asked, one: asked.history.audit(causation=one)),
    ),
    "history.around": by_id(lambda asked, one: asked.history.around(one, before=2, after=2)),
    "history.blame": every(
        by_id(lambda asked, one: asked.history.blame(one)),
        by_name(lambda asked, name: asked.history.blame(name)),
    ),
    "files.children": by_id(lambda asked, one: asked.files.children(one)),
    "files.chunks": by_id(lambda asked, one: asked.files.chunks(one)),
    "graph.conflicts": once(lambda asked: asked.graph.conflicts()),
    "files.content": by_id(lambda asked, one: asked.files.content(one)),
    "graph.cooccurring": by_name(lambda asked, name: asked.graph.cooccurring(name)),
    "count": once(lambda asked: (asked.count(), len(asked))),
    "draw_facts": once(lambda asked: draw_facts(asked, asked.facts("Ada", "lives in"))),
    "draw_graph": once(lambda asked: draw_graph(asked, "Ada", hops=3)),
    "embeddings.of": by_id(
        lambda asked, one: (asked.embeddings.of(one), asked.embeddings.of(one, "shared-space"))
    ),
    "graph.entities": once(lambda asked: asked.graph.entities()),
    "graph.entity": by_name(lambda asked, name: asked.graph.entity(name)),
    "graph.evidence": by_id(lambda asked, one: asked.graph.evidence(one)),
    # It is also called on each hit, by search.
    "history.explain": by_id(lambda asked, one: asked.history.explain(one)),
    # The first line has the log's random id.
    "interchange.export_facts": every(
        once(lambda asked: list(asked.interchange.export_facts())[1:]),
        once(lambda asked: list(asked.interchange.export_facts(history=True))[1:]),
    ),
    "graph.fact": by_id(lambda asked, one: asked.graph.fact(one)),
    "graph.versions": by_name(lambda asked, name: asked.graph.versions(name)),
    "facts": every(
        once(lambda asked: asked.facts(include_retracted=True, include_invalid=True)),
        by_name(lambda asked, name: asked.facts(name)),
        by_name(lambda asked, name: asked.facts(object=cerata.Entity(name))),
        once(lambda asked: asked.facts("Ada", "lives in", valid_at="2022-01-01")),
    ),
    "files.by_content": once(
        lambda asked: asked.files.by_content(cerata.content_hash("what all of them put"))
    ),
    "files.stored": once(
        lambda asked: asked.files.stored(
            cerata.content_hash("what all of them put"), space="shared-space"
        )
    ),
    "files.by_uri": by_case(
        lambda case: [
            case.asked.files.by_uri(f"file:///home/{mark(one)}/note.txt") for one in SCOPES
        ]
    ),
    "frame": by_id(lambda asked, one: asked.frame(one)),
    "frames": once(
        lambda asked: asked.frames(
            include_chunks=True, where=cerata.Filter(include_superseded=True, include_deleted=True)
        )
    ),
    "get": by_case(
        lambda case: [case.asked.get(f"file:///home/{mark(one)}/note.txt") for one in SCOPES]
    ),
    "files.highlights": once(
        lambda asked: asked.files.highlights("the harbours of Ada", cerata.query("h*"))
    ),
    "history.of": every(
        by_id(lambda asked, one: asked.history.of(one)),
        by_name(lambda asked, name: asked.history.of(name)),
    ),
    "history.last": once(lambda asked: asked.history.last(100, include_chunks=True)),
    "graph.links": every(
        once(lambda asked: asked.graph.links(include_unlinked=True)),
        by_id(lambda asked, one: asked.graph.links(one, include_unlinked=True)),
    ),
    "log": every(once(lambda asked: asked.log()), by_id(lambda asked, one: asked.log(one, one))),
    "messages": once(agents.messages),
    "graph.neighbours": by_name(lambda asked, name: asked.graph.neighbours(name)),
    "graph.paths": by_name(lambda asked, name: asked.graph.paths("Ada", name)),
    "stream.projection": by_case(
        lambda case: [case.asked.stream.projection(one) for one in ("tags", "accesses", Mine)]
    ),
    "history.rerun": by_id(lambda asked, one: asked.history.rerun(one)),
    "recall": by(("harbour", "Ada", "nothing matches"), lambda asked, one: asked.recall(one)),
    "embeddings.used": once(lambda asked: asked.embeddings.used()),
    "graph.resolve": by_name(lambda asked, name: asked.graph.resolve(name)),
    "search": every(_queries(), _vectors),
    "graph.search": by(("Ada", "Countess lives", "qz"), lambda asked, one: asked.graph.search(one)),
    "files.source": once(lambda asked: [asked.files.source(one) for one in asked.frames()]),
    "history.tags": once(lambda asked: asked.history.tags()),
    "history.timeline": every(
        once(lambda asked: asked.history.timeline(limit=500)),
        once(
            lambda asked: asked.history.timeline(
                by="recorded", limit=500, where=cerata.Filter(include_deleted=True)
            )
        ),
    ),
    "embeddings.tokens_of": by_id(lambda asked, one: asked.embeddings.tokens_of(one)),
    "files.values": by(
        ("tag", "label", "kind", "role", "track", "uri"), lambda asked, one: asked.files.values(one)
    ),
    "history.view": "the state whose names View lists",
    "graph.walk": by_name(lambda asked, name: asked.graph.walk(name, hops=3)),
    "graph.why": by_id(lambda asked, one: (asked.graph.why(one), str(asked.graph.why(one)))),
}


class Mine(cerata.RowProjection[int, str]):
    """A projection of a caller, whose rows are of every tenant."""

    name = "mine"
    handles = (PutFrame,)

    def apply(self, events: Sequence[Any]) -> None:
        for event in events:
            self.rows[event.seq] = event.body.text or ""


UNCOMPARED: Final = frozenset(("verify",))
"""Names whose answers depend on the whole file: rows of an index, and counts of its parts."""


def _narrowed(case: Case) -> Iterator[Call]:
    for scope in (*SCOPES.values(), {"user": "us-y"}, {"session": "none"}):
        texts = [str(one) for one in scope.values()]
        for given in (None, dict(scope), tuple(scope.items())):
            yield partial(_all_within, case.asked, given), texts
        for shared in (False, True):
            yield partial(_all_within, case.asked, scope, shared=shared), texts


def _all_within(view: Any, scope: object, **options: object) -> object:
    return _all_of(view.within(scope, **options))


def _earlier(case: Case) -> Iterator[Call]:
    for one in case.points:
        yield partial(_all_earlier, case.asked, one), ()
    for name in case.names:
        yield partial(_all_earlier, case.asked, name), (name,)


def _all_earlier(view: Any, basis: object) -> object:
    return _all_of(view.at(basis))


def _changes(asked: Any, basis: int) -> object:
    found = asked.history.since(max(basis, 0), query="Ada harbour")
    return found, str(found), found.to_dict()


def _speculate(asked: Any, *events: Any) -> object:
    view = asked.upkeep.speculate(*events)
    # Without the time of the drafts, which is that of the call.
    return (
        [
            (frame.id, frame.text)
            for frame in view.frames(where=cerata.Filter(include_deleted=True))
        ],
        [(event.seq, event.type, event.actor) for event in view.log()],
        [(fact.id, str(fact)) for fact in view.facts(include_retracted=True)],
        view.history.tags(),
        [(hit.id, hit.score, hit.text) for hit in view.search("Ada harbour")],
    )


_SPECULATED: Final = every(
    once(lambda asked: _speculate(asked, PutFrame(text="Ada at the harbour"))),
    by_point(lambda asked, one: _speculate(asked, PutTag(tag=f"t{one}", at=one))),
    by_point(lambda asked, one: _speculate(asked, PutFrame(text="below", parent=one))),
    by_point(lambda asked, one: _speculate(asked, Draft(PutFrame(text="caused"), causation=one))),
    by_point(lambda asked, one: _speculate(asked, DeleteFrame(frame=one))),
    by_point(lambda asked, one: _speculate(asked, RetractFact(fact=one))),
)


VIEW: Final[Mapping[str, Calls | str]] = {
    **READS,
    "at": _earlier,
    "history.since": by_point(_changes),
    "upkeep.speculate": _SPECULATED,
    "basis": "a number that the caller gave",
    "head": once(lambda view: repr(view.head)),
    "log_id": "16 random bytes of the file",
    "now": once(lambda view: view.now),
    "scope": once(lambda view: view.scope),
    "shared": once(lambda view: view.shared),
    "true_at": once(lambda view: view.true_at("2022-01-01").facts()),
    "within": _narrowed,
}


def _all_of(view: Any) -> object:
    return [
        *view.frames(where=cerata.Filter(include_deleted=True)),
        *view.log(),
        *view.facts(),
        view.history.tags(),
    ]


def _all_at(store: Any, basis: object) -> object:
    return _all_of(store.at(basis))


def _basis(case: Case) -> Iterator[Call]:
    for one in case.points:
        yield partial(_all_at, case.asked, one), ()
    for name in case.names:
        yield partial(_all_at, case.asked, name), (name,)


def _rescoped(case: Case) -> Iterator[Call]:
    for scope in (*SCOPES.values(), {"user": "us-y"}, {"session": "none"}):
        texts = [str(one) for one in scope.values()]
        for shared in (False, True):
            yield partial(_all_scoped, case.asked, scope, shared), texts


def _all_scoped(store: Any, scope: Mapping[str, Any], shared: bool) -> object:
    return _all_of(store.scoped(scope, shared=shared))


def _changed(diff: cerata.ForkDiff) -> object:
    sides = (diff.here, diff.there)
    return [
        (change.kind, change.old, change.new and change.new.text)
        for side in sides
        for change in side
    ]


def _bodies(fork: Any, store: Any) -> object:
    # The scope of a draft is the reader's.
    return [draft.body for draft in fork.upkeep.drafts_after(store)]


def _all_of_a_fork(store: Any) -> object:
    with store.upkeep.fork() as fork:
        return _all_of(fork)


def _forked(store: Any, read: Callable[[Any], object]) -> object:
    with store.upkeep.fork() as fork:
        fork.put_frame("in the fork")
        return read(fork)


STORE: Final[Mapping[str, Calls | str]] = {
    **READS,
    "at": _basis,
    "upkeep.apply": "appends the drafts of drafts_after, and returns a receipt",
    "upkeep.branches": "random ids and hashes of the whole log",
    "history.compare": once(
        lambda store: _forked(store, lambda fork: _changed(store.history.compare(fork)))
    ),
    "upkeep.drafts_after": once(lambda store: _forked(store, lambda fork: _bodies(fork, store))),
    "upkeep.fork": once(_all_of_a_fork),
    "interchange.export_events": "refused in a store with a scope",
    "history.bisect": "calls at, and shows the event through log",
    "backup": "a copy of the file, which is not narrowed; docs/reliability.md says so",
    "checkpoint": "returns nothing",
    "upkeep.compact": "refused in a store with a scope",
    "upkeep.maintain": "refused in a store with a scope",
    "close": "returns nothing",
    "stream.commit": "returns nothing",
    "diff": every(
        once(lambda store: (str(store.diff(0)), store.diff(0))),
        by_point(lambda store, one: store.diff(max(one, 0))),
        by_point(lambda store, one: str(store.diff("HEAD", max(one, 0), query="Ada harbour"))),
    ),
    "embeddings.embedder": "the embedder that the caller gave at open",
    "stream.digests": "hashes of whole indexes, which are those of the file",
    "head": once(lambda store: repr(store.head)),
    "upkeep.info": once(lambda store: store.upkeep.info()["frames"]),
    "actor": once(lambda store: store.actor),
    "path": "the path that the caller gave",
    "upkeep.rebuild": by_name(lambda store, name: store.upkeep.rebuild(name)),
    "stream.refresh": once(lambda store: repr(store.stream.refresh())),
    "stream.replay": once(lambda store: _all_of(store.stream.replay())),
    "report": once(lambda store: repr(store.report)),
    "stream.follow": every(
        once(lambda store: store.stream.follow(0, timeout=0)),
        by_point(lambda store, one: store.stream.follow(one, timeout=0)),
    ),
    "history.salvaged": once(lambda store: store.history.salvaged()),
    "scope": once(lambda store: store.scope),
    "scoped": _rescoped,
    "shared": once(lambda store: store.shared),
    "history.since": by_point(_changes),
    "upkeep.speculate": _SPECULATED,
    "verify": once(lambda store: repr(store.verify())),
}


def _scoped(call: Callable[[Any, Mapping[str, Any]], object]) -> Calls:
    """Call a command with the scope of each owner."""
    return lambda case: (
        (partial(call, case.asked, scope), [str(one) for one in scope.values()])
        for owner, scope in SCOPES.items()
        if owner != owner_of(case.reader)
    )


def _embedded(frame: int) -> list[Draft]:
    [(embedding, data)] = [one for one in vectors([[1.0, 2.0]], 1, "forged") if one is not None]
    return [Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,))]


def _forged(owner: str) -> Draft:
    return Draft(PutFrame(text="forged"), tuple(SCOPES[owner].items()))


OF_PACKS: Final = {*functions()}
"""Calls that packs of Cerata add: functions over a store, tried like its methods."""

WRITES: Final[Mapping[str, Calls | str]] = {
    "append": every(
        by(
            [one for one in SCOPES if one not in ("ux", "uy")],
            lambda store, one: store.append(_forged(one)),
        ),
        by_id(lambda store, one: store.append(PutTag(tag=f"t{one}", at=one))),
        by_id(lambda store, one: store.append(Draft(PutFrame(text="below", parent=one)))),
        by_id(lambda store, one: store.append(Draft(PutFrame(text="caused"), causation=one))),
        by_id(lambda store, one: store.append(*_embedded(one))),
    ),
    "assert_fact": every(
        by_id(lambda store, one: store.assert_fact("Ada", "said", "x", evidence=[(one, 0, 3)])),
        by_id(
            lambda store, one: store.assert_fact(
                "Ada", "said", "y", options=cerata.FactOptions(because=one)
            )
        ),
        once(
            lambda store: store.assert_fact(
                "Ada", "lives in", "Rome", options=cerata.FactOptions(key="shared-key")
            )
        ),
    ),
    "graph.assert_many": _scoped(
        lambda store, scope: store.graph.assert_many([("a", "b", "c")], scope=scope)
    ),
    "correct_fact": by_id(lambda store, one: store.correct_fact(one, object="corrected")),
    "graph.declare": _scoped(
        lambda store, scope: store.graph.declare("lives in", functional=False, scope=scope)
    ),
    "delete": by_id(lambda store, one: store.delete(one)),
    "embeddings.fill": once(lambda store: store.embeddings.fill()),
    "graph.extract": every(
        by_point(lambda store, one: store.graph.extract(one, dry_run=True)),
        once(lambda store: store.graph.extract()),
    ),
    "interchange.import_events": (
        "reads lines, none of the memory; tests/memory/interchange has its scopes"
    ),
    "interchange.import_facts": once(
        lambda store: store.interchange.import_facts(store.interchange.export_facts())
    ),
    "judge": by_id(
        lambda store, one: judge(
            store,
            cast("Any", SimpleNamespace(id=one, content=b"x" * 32)),
            "reject",
            actor="anna",
        )
    ),
    "graph.link": every(
        by_case(
            lambda case: case.asked.graph.link(case.own["home"], "supports", case.own["likes"])
        ),
        by_id(lambda store, one: store.graph.link(one, "supports", one + 1)),
    ),
    "graph.merge": by_name(lambda store, name: store.graph.merge(name, "Ada")),
    "graph.name": _scoped(lambda store, scope: store.graph.name("Ada", kind="x", scope=scope)),
    "put_frame": every(
        _scoped(lambda store, scope: store.put_frame("x", options=cerata.PutOptions(scope=scope))),
        once(
            lambda store: store.put_frame(
                "keyed again", options=cerata.PutOptions(key="shared-key")
            )
        ),
        by(
            DIMENSIONS.values(),
            lambda store, one: store.put_frame(
                "v", vectors=cerata.Vectors(dense=[1] * one, space="shared-space")
            ),
        ),
        by(
            SCOPES,
            lambda store, one: store.put_frame(
                "v", vectors=cerata.Vectors(dense=[1] * 11, space=f"{mark(one)}space")
            ),
        ),
        by_id(lambda store, one: store.put_frame("below", options=cerata.PutOptions(parent=one))),
    ),
    "put_frames": _scoped(
        lambda store, scope: store.put_frames(["x"], options=cerata.PutOptions(scope=scope))
    ),
    "record_access": by_id(agents.record_access),
    "remember": every(
        once(lambda store: store.remember("what all of them put")),
        _scoped(
            lambda store, scope: store.remember(
                "what all of them put", options=cerata.PutOptions(scope=scope)
            )
        ),
    ),
    "files.remember": _scoped(
        lambda store, scope: store.files.remember(
            [__file__], dry_run=True, options=cerata.PutOptions(scope=scope)
        )
    ),
    "remember_messages": _scoped(
        lambda store, scope: agents.remember_messages(
            store, [{"role": "user", "content": "harbour"}], scope=scope
        )
    ),
    "history.restore": by_id(lambda store, one: store.history.restore(one)),
    "retract_fact": by_id(lambda store, one: store.retract_fact(one)),
    "graph.retract_many": by_id(lambda store, one: store.graph.retract_many([one])),
    "graph.split": by_id(lambda store, one: store.graph.split("Ada", "x", [one])),
    "supersede": by_id(lambda store, one: store.supersede(one, "x")),
    "upkeep.sweep": once(lambda store: store.upkeep.sweep()),
    "history.tag": by_name(lambda store, name: store.history.tag(name)),
    "transaction": every(
        once(lambda store: _block(store, "shared-transaction", "another text")),
        once(lambda store: _block(store, "shared-key", "another text")),
    ),
    "graph.unlink": by_id(lambda store, one: store.graph.unlink(one)),
    "graph.unmerge": by_id(lambda store, one: store.graph.unmerge(one)),
    "graph.unsplit": by_id(lambda store, one: store.graph.unsplit(one)),
    "update": by_id(lambda store, one: store.update(one, title="x")),
}


def _block(store: cerata.Store, key: str, text: str) -> object:
    with store.transaction(key=key) as block:
        store.put_frame(text)
    return block.receipt


def _look_up(case: Case) -> Iterator[Call]:
    for scope in SCOPES.values():
        yield partial(_looked_up, case.asked, scope["tenant"]), ()


def _looked_up(block: Any, tenant: object) -> object:
    block.look_up(tenant)
    return _use_of(block)


def _use_of(block: Any) -> str:
    """Return a key's first use, but for the hash of its arguments, which random salts decide."""
    return repr(block.first and block.first.appended)


TRANSACTION: Final[Mapping[str, Calls | str]] = {"receipt": once(lambda tx: tx.receipt)}

BLOCK: Final[Mapping[str, Calls | str]] = {
    "add": "takes drafts whose scope the session has checked",
    "author": once(lambda block: block.author),
    "end_with": "takes the receipt of the batch, and returns nothing",
    "ids": "counts from -1, and has no event",
    "is_open": once(lambda block: block.is_open),
    "notices": once(lambda block: list(block.notices)),
    "steps": "the generator of the caller's own with statement",
    "arguments": once(lambda block: bool(block.arguments)),
    "record_call": "takes what a caller gave, and returns nothing",
    "drafts": once(lambda block: [msgspec.structs.replace(one, salt=None) for one in block.drafts]),
    "end": once(lambda block: block.end),
    "first": once(_use_of),
    "check_whole": once(lambda block: block.check_whole()),
    "is_keyed": once(lambda block: block.is_keyed),
    "look_up": _look_up,
    "look_up_again": once(lambda block: (block.look_up_again(), _use_of(block))),
    "payloads": once(lambda block: block.payloads),
    "receipt": once(lambda block: block.receipt),
    "triples": "the facts of the caller's own drafts",
    "snapshot": by_case(
        lambda case: _all_of(View(case.asked.snapshot(lambda: snapshot_of(case.store))))
    ),
}
