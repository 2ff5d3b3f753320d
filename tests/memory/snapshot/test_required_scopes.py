"""A store that requires a scope: no public name reads or writes without one."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

import cerata
from cerata import agents
from cerata.agents import judge
from cerata.engine.events import PutFrame, ScopeValue
from cerata.engine.salted_hashes import judged_hash
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.scopes import MISSING, Reach, admits

from ...embedders import Hashing
from .isolation import Sweep, plain
from .isolation_calls import OF_PACKS, READS, STORE, UNCOMPARED, VIEW, WRITES, Case
from .tenants import SCOPES, Own, World, mark, whole

ALICE: Final = {"tenant": "alice"}
BOB: Final = {"tenant": "bob"}
BETA: Final = SCOPES["beta"]

ALLOWED: Final = frozenset(
    [
        *("at", "history.view", "stream.replay", "scoped", "within", "true_at"),
        *(
            "head",
            "stream.refresh",
            "stream.commit",
            "checkpoint",
            "close",
            "backup",
            "upkeep.info",
            "stream.digests",
        ),
        *("upkeep.branches", "upkeep.compact", "upkeep.maintain"),
        *("verify", "upkeep.rebuild", "report", "path", "actor", "scope", "shared"),
        *("basis", "log_id", "now"),
    ]
)
"""Names that describe the file or the handle, or return a store or view."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cera"


@pytest.fixture
def world() -> World:
    return whole().copy()


def refused(call: Callable[[], object]) -> None:
    """Check that a call raises, for want of a scope, before it returns or yields anything."""
    with pytest.raises(cerata.InvalidInput, match="requires a scope") as error:
        _begin(call)
    for way in (
        "store.scoped(",
        "store.history.view().within(",
        "store.at(basis).within(",
        "scope=",
    ):
        assert way in str(error.value.remedy)


class NoProfile(Exception):
    """A call named a profile that does not exist."""


def _with_a_profile(call: Callable[[], object]) -> object:
    try:
        return call()
    except cerata.InvalidInput as error:
        if "profile" in error.what:
            raise NoProfile from error
        raise


def _begin(call: Callable[[], object]) -> None:
    answer = call()
    if isinstance(answer, Iterator):
        next(cast("Iterator[object]", answer))


# --- reads ---------------------------------------------------------------------------------------


def _reads(world: World, store: cerata.Store, asked: Any) -> Iterator[tuple[str, Any]]:
    own = world.own["beta"]
    ids = [own[name].id for name in ("note", "home", "link", "late")]
    case = Case("beta", store, asked, own, ids)
    for name, calls in (STORE if asked is store else VIEW).items():
        if not isinstance(calls, str) and name not in ALLOWED:
            for call, _ in calls(case):
                yield name, call


@pytest.mark.parametrize("kind", ["Store", "View", "replay", "seq"])
def test_every_read_is_refused_without_a_scope(world: World, kind: str) -> None:
    with world.open(None, options=REQUIRED) as store:
        views: dict[str, Callable[[], object]] = {
            "Store": lambda: store,
            "View": store.history.view,
            "replay": store.stream.replay,
            "seq": lambda: store.at(20),
        }
        names: set[str] = set()
        for name, call in _reads(world, store, views[kind]()):
            # The table has a search with a profile that does not exist, which raises that first.
            with suppress(NoProfile):
                refused(partial(_with_a_profile, call))
            names.add(name)
        assert names >= {name for name, calls in READS.items() if not isinstance(calls, str)}
        if kind == "Store":
            refused(lambda: store.embeddings.embedder)
            hit = store.scoped(BETA).search("harbour")[0]
            refused(lambda: store.history.explain(hit))
            assert {"history.salvaged", "diff"} <= names


def test_every_read_of_a_scoped_store_is_that_of_an_opened_store(world: World) -> None:
    own = world.own["beta"]
    ids = sorted({one for made in own.values() for one in getattr(made, "seqs", ())})[::3]
    with world.open(None, options=REQUIRED) as whole_file, world.open(BETA) as opened:
        scoped = whole_file.scoped(BETA)
        narrowed = whole_file.history.view().within(BETA)
        tables = [(STORE, scoped, opened), (VIEW, scoped.history.view(), opened.history.view())]
        tables.append((VIEW, narrowed, opened.history.view()))
        # The report has whether another opener was there.
        uncompared = {*UNCOMPARED, "report"}
        for table, *several in tables:
            some = {name: calls for name, calls in table.items() if name not in uncompared}
            answers = [
                Sweep().read(Case("beta", opened, asked, own, ids), some) for asked in several
            ]
            assert answers[0] == answers[1]
            assert len(answers[0]) > 100


def test_a_view_gets_a_scope_once_and_keeps_it(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        store.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        store.put_frame("bob's", options=cerata.PutOptions(scope=BOB))
        for view in (store.history.view(), store.at(2), store.at("HEAD"), store.at(store.head)):
            assert (view.scope, view.shared, view.basis) == (None, False, 2)
            assert view.within(None) is view
            assert view.within({}) is view
            for same in (view.true_at("2026-01-01"), store.at(view)):
                refused(same.frames)
            narrowed = view.within(tuple(ALICE.items()))
            assert [frame.text for frame in narrowed.frames()] == ["alice's"]
            assert [frame.text for frame in store.at(narrowed).frames()] == ["alice's"]
            assert [frame.text for frame in store.scoped(ALICE).at(view).frames()] == ["alice's"]
            with pytest.raises(cerata.InvalidInput, match="cannot become"):
                narrowed.within(BOB)
        # Without a tenant, a scope is of the tenant "default", as in `open`.
        assert store.history.view().within({"user": "u"}).scope == (
            ("tenant", "default"),
            ("user", "u"),
        )
        assert store.history.view().within({"user": "u"}).count() == (0, 0)


def test_a_view_of_a_store_without_a_scope_gains_nothing(path: Path) -> None:
    with (
        cerata.open(path) as free,
        cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store,
    ):
        free.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        refused(store.at(free.history.view()).frames)
        assert len(free.at(store.history.view().within(ALICE))) == 1
        refused(lambda: len(free.at(store.history.view())))


def test_a_tag_is_read_within_a_scope(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        alice = store.scoped(ALICE)
        alice.put_frame("x")
        alice.history.tag("v1")
        refused(lambda: store.at("v1"))
        with pytest.raises(cerata.InvalidInput) as error:
            store.at("v1")
        # A tag has a scope of its own, so `at` needs one before `within` could give it.
        assert "at a tag store.scoped({…}).at('v1')" in str(error.value.remedy)
        refused(lambda: store.diff(0))
        assert alice.at("v1").basis == 1
        with pytest.raises(cerata.NotFound):
            store.scoped(BOB).at("v1")
        assert store.diff(alice.at(0), alice.history.view()).added == (1,)


def test_a_path_without_a_check_shows_nothing(path: Path) -> None:
    """The reach itself raises, if a new read should forget to ask for a scope."""
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        store.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        store.scoped(ALICE).assert_fact("Ada", "lives in", "Rome")
        state = session_of(store).state()
        for call in (
            lambda: state.sees((("tenant", "alice"),)),
            lambda: state.layers.counts(None),
            lambda: state.facts_at.has_row(0) and list(state.tag_rows()),
            lambda: list(state.events(1, None)),
            lambda: state.scope,
            lambda: state.labelling.links.holds(0),
            lambda: admits((), MISSING),
            lambda: MISSING.key,
            lambda: MISSING.is_tenant,
            lambda: snapshot_of(store),
        ):
            refused(call)
        assert Reach(()) != MISSING


# --- writes --------------------------------------------------------------------------------------


@dataclass
class On:
    """A store, the things of its owner, and further arguments of a call."""

    store: cerata.Store
    own: Own
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])


M: Final = mark("beta")
MESSAGE: Final = {"role": "user", "content": "harbour"}


def _in_block(store: cerata.Store) -> object:
    with store.transaction() as transaction:
        store.put_frame("in a block")
    return transaction.receipt


def _exported(scope: Mapping[str, ScopeValue]) -> bytes:
    lines = BytesIO()
    with cerata.open(":memory:") as store:
        store.put_frame("of another log", options=cerata.PutOptions(scope=scope))
        store.interchange.export_events(lines)
    return lines.getvalue()


def _judge(store: cerata.Store) -> object:
    """Judge a proposal, which a store without its scope cannot find."""
    frame, content = 1, b"x" * 32
    if store.scope is not None:
        frame = store.put_frame("x", kind="proposal", metadata={"target": "identity"}).id
        salt = next(event.salt for event in store.log() if event.seq == frame)
        assert salt is not None
        content = judged_hash(salt, "identity", "x")
    judged: Any = SimpleNamespace(id=frame, content=content)
    return judge(store, judged, "reject", actor="anna")


CALLS: Final[Mapping[str, Callable[[On], object]]] = {
    "append": lambda on: on.store.append(PutFrame(text="x")),
    "assert_fact": lambda on: on.store.assert_fact(
        "Ada", "said", "x", options=cerata.FactOptions(**on.named)
    ),
    "graph.assert_many": lambda on: on.store.graph.assert_many([("a", "b", "c")], **on.named),
    "correct_fact": lambda on: on.store.correct_fact(on.own["home"], object="Rome"),
    "graph.declare": lambda on: on.store.graph.declare("said", functional=True, **on.named),
    "delete": lambda on: on.store.delete(on.own["late"]),
    "embeddings.fill": lambda on: on.store.embeddings.fill(),
    "graph.extract": lambda on: on.store.graph.extract(on.own["newer"]),
    "interchange.import_events": lambda on: on.store.interchange.import_events(
        BytesIO(_exported(BETA))
    ),
    "interchange.import_facts": lambda on: on.store.interchange.import_facts([]),
    "judge": lambda on: _judge(on.store),
    "graph.link": lambda on: on.store.graph.link(
        on.own["home"], "contradicts", on.own["likes"], **on.named
    ),
    "graph.merge": lambda on: on.store.graph.merge(f"{M} Robert", "Ada", **on.named),
    "graph.name": lambda on: on.store.graph.name("Ada", kind="x", **on.named),
    "put_frame": lambda on: on.store.put_frame("x", options=cerata.PutOptions(**on.named)),
    "put_frames": lambda on: on.store.put_frames(["x"], options=cerata.PutOptions(**on.named)),
    "record_access": lambda on: agents.record_access(on.store, on.own["newer"]),
    "remember": lambda on: on.store.remember("a new text", options=cerata.PutOptions(**on.named)),
    "files.remember": lambda on: on.store.files.remember(
        [__file__], dry_run=True, options=cerata.PutOptions(**on.named)
    ),
    "remember_messages": lambda on: agents.remember_messages(on.store, [MESSAGE], **on.named),
    "history.restore": lambda on: on.store.history.restore(on.own["gone"]),
    "retract_fact": lambda on: on.store.retract_fact(on.own["likes"]),
    "graph.retract_many": lambda on: on.store.graph.retract_many([on.own["likes"]]),
    "graph.split": lambda on: on.store.graph.split(
        "Ada", "Ada the third", [on.own["likes"]], **on.named
    ),
    "supersede": lambda on: on.store.supersede(on.own["mine"], "newer"),
    "upkeep.sweep": lambda on: on.store.upkeep.sweep(),
    "history.tag": lambda on: on.store.history.tag("new-tag"),
    "transaction": lambda on: _in_block(on.store),
    "graph.unlink": lambda on: on.store.graph.unlink(on.own["link"]),
    "graph.unmerge": lambda on: on.store.graph.unmerge(on.own["merge"]),
    "graph.unsplit": lambda on: on.store.graph.unsplit(on.own["split"]),
    "update": lambda on: on.store.update(on.own["mine"], title="new"),
}
"""Each write with arguments of the owner "beta", with which the call succeeds in its scope."""


def _call_of(name: str) -> Any:
    """Return a call of a store, or a function of agents over one."""
    return getattr(agents, name) if name in OF_PACKS else attrgetter(name)(cerata.Store)


REQUIRED: Final = cerata.OpenOptions(require_scope=True)

TAKE_SCOPE: Final = [
    name
    for name in CALLS
    if {"scope", "options"} & inspect.signature(_call_of(name)).parameters.keys()
]


def test_the_table_has_every_write() -> None:
    assert set(CALLS) == set(WRITES)
    assert len(TAKE_SCOPE) == 12


@pytest.mark.parametrize("name", CALLS)
def test_every_write_is_refused_without_a_scope_and_works_with_one(world: World, name: str) -> None:
    embedder = Hashing() if name == "embeddings.fill" else None
    own = world.own["beta"]
    with world.open(None, options=REQUIRED, embedder=embedder) as store:
        before = store.head
        refused(lambda: CALLS[name](On(store, own)))
        if name in TAKE_SCOPE:
            refused(lambda: CALLS[name](On(store, own, {"scope": None})))
        assert store.head == before
        CALLS[name](On(store.scoped(BETA), own))
        events = store.history.view().within(BETA).log(before.seq + 1)
        assert len(list(events)) == store.head.seq - before.seq
        assert store.verify().ok


@pytest.mark.parametrize("name", TAKE_SCOPE)
def test_a_scope_of_the_call_is_enough(world: World, name: str) -> None:
    with world.open(None, options=REQUIRED) as store:
        before = store.head
        CALLS[name](On(store, world.own["beta"], {"scope": BETA}))
        events = list(store.history.view().within(BETA).log(before.seq + 1))
        assert len(events) == store.head.seq - before.seq
        assert events or name == "files.remember"
        for bad in ({}, "beta", {"tenant": 1.5}):
            with pytest.raises(cerata.InvalidInput):
                CALLS[name](On(store, world.own["beta"], {"scope": bad}))


def test_a_scope_of_the_call_narrows_its_references_too(path: Path) -> None:
    """A store that requires none puts a frame of one tenant below that of another."""
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        frame = store.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        fact = store.assert_fact("Ada", "is", "hers", options=cerata.FactOptions(scope=ALICE))
        calls: list[Callable[[], object]] = [
            lambda: store.put_frame("below", options=cerata.PutOptions(parent=frame, scope=BOB)),
            lambda: store.assert_fact(
                "Ada", "is", "seen", evidence=[frame], options=cerata.FactOptions(scope=BOB)
            ),
            lambda: store.graph.link(fact, "depends_on", frame, scope=BOB),
            lambda: store.graph.split("Ada", "Bob", [fact], scope=BOB),
            lambda: store.graph.merge("Ada", "hers", scope=BOB),
        ]
        for call in calls:
            with pytest.raises(cerata.NotFound):
                call()
        assert store.head.seq == 2


def test_keys_belong_to_the_scope(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        refused(lambda: store.put_frame("x", options=cerata.PutOptions(key="k")))
        refused(lambda: store.transaction(key="k"))
        refused(lambda: session_of(store).first_use("k", "alice"))
        first = store.put_frame("x", options=cerata.PutOptions(key="k", scope=ALICE))
        assert store.scoped(BOB).put_frame("x", options=cerata.PutOptions(key="k")).added
        again = store.scoped(ALICE).put_frame("x", options=cerata.PutOptions(key="k"))
        assert (again.added, again.id) == (False, first.id)
        for added in (True, False):
            with (alice := store.scoped(ALICE)).transaction(key="block") as block:
                alice.put_frame("y")
            assert block.receipt.added is added


def test_a_recorded_recall_has_a_scope(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        store.put_frame("the harbour", options=cerata.PutOptions(scope=ALICE))
        refused(lambda: store.recall("harbour", record=True))
        context = store.scoped(ALICE, actor="agent").recall("harbour", record=True)
        assert context.recorded == 2
        [event] = store.scoped(ALICE).log(2)
        assert (dict(event.scope or ()), event.actor) == (ALICE, "agent")
        refused(lambda: store.at(context).frames())
        assert len(store.at(context).within(ALICE)) == 1


def test_maintenance_needs_no_scope(path: Path, tmp_path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        store.put_frame("alice's", options=cerata.PutOptions(scope=ALICE))
        assert store.verify().ok
        store.checkpoint()
        store.upkeep.rebuild()
        store.stream.commit()
        store.backup(tmp_path / "copy.cera")
        assert store.stream.refresh() == store.head
        assert (
            store.upkeep.info()["frames"]
            == store.upkeep.info(1)["frames"]
            == {"current": 1, "closed": 0}
        )
        assert store.stream.digests() == store.stream.digests(replay=True)
        assert (store.path, store.scope, store.shared) == (str(path), None, False)
        assert store.report is store.scoped(ALICE).report


# --- opening, and stores of a scope --------------------------------------------------------------


def test_a_store_with_a_scope_lacks_nothing(path: Path) -> None:
    with cerata.open(path, scope=ALICE, options=cerata.OpenOptions(require_scope=True)) as store:
        store.put_frame("x")
        assert (len(store), store.scope) == (1, (("tenant", "alice"),))
    with pytest.raises(cerata.InvalidInput, match="require_scope"):
        cerata.open(path, options=cerata.OpenOptions(require_scope=cast("Any", "yes")))
    with cerata.open(path, mode="r", options=cerata.OpenOptions(require_scope=True)) as store:
        refused(store.frames)
        with pytest.raises(cerata.ReadOnly):
            store.scoped(ALICE).put_frame("x")
    with cerata.open(path, options=cerata.OpenOptions(salvage=True, require_scope=True)) as store:
        refused(store.history.salvaged)
        assert len(list(store.scoped(ALICE).history.salvaged())) == 1


def test_a_scoped_store_narrows_and_never_widens(path: Path) -> None:
    user = {**ALICE, "user": "phone"}
    with cerata.open(path, scope=ALICE, actor="service") as store:
        phone = store.scoped({"user": "phone"})
        phone.put_frame("of her phone")
        store.put_frame("of all")
        assert phone.scope == tuple(user.items())
        assert [frame.actor for frame in phone.frames()] == ["service"]
        assert len(store.scoped({"user": "phone"}, shared=True)) == 2
        for widened in (BOB, {**BOB, "user": "phone"}):
            with pytest.raises(cerata.InvalidInput, match="cannot become"):
                store.scoped(widened)
        with pytest.raises(cerata.InvalidInput, match="would widen"):
            phone.scoped(user, shared=True)
        with pytest.raises(cerata.InvalidInput, match="one name"):
            store.scoped({})
        with pytest.raises(cerata.InvalidInput, match="mapping"):
            store.scoped(cast("Any", None))
    with cerata.open(path) as store:
        assert len(store) == 2
        assert len(store.scoped({**ALICE, "user": "laptop"}, shared=True)) == 1
        assert store.scoped({"user": "x"}).scope == (("tenant", "default"), ("user", "x"))


def test_closing_a_scoped_store_leaves_the_file_open(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        with store.scoped(ALICE) as alice:
            alice.put_frame("x")
        alice.close()
        assert len(alice) == 1
    with pytest.raises(cerata.CerataError):
        alice.put_frame("y")


def test_a_space_has_a_shape_for_each_scope(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        for scope, vector in ((ALICE, [1, 0, 0]), (BOB, [0, 1])):
            own = store.scoped(scope)
            own.put_frame("x", vectors=cerata.Vectors(dense=vector, space="s"))
            with pytest.raises(cerata.InvalidInput, match="dimensions"):
                own.put_frame("x", vectors=cerata.Vectors(dense=[1] * 7, space="s"))
            assert (
                len(own.search("x", mode="vector", vectors=cerata.Vectors(dense=vector, space="s")))
                == 1
            )


def test_transactions_of_scoped_stores_are_apart(path: Path) -> None:
    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        alice, bob = store.scoped(ALICE), store.scoped(BOB)
        with alice.transaction() as hers:
            alice.put_frame("hers")
            with bob.transaction() as his:
                bob.put_frame("his")
                alice.put_frame("hers too")
                assert (len(alice), len(bob), len(store.scoped(ALICE))) == (2, 1, 0)
            assert his.receipt.seqs == (1,)
            assert store.scoped(ALICE).put_frame("at once").seqs == (2,)
            assert store.put_frame("at once too", options=cerata.PutOptions(scope=ALICE)).seqs == (
                3,
            )
            assert len(alice) == 2
        assert hers.receipt.seqs == (4, 5)
        with suppress(RuntimeError), alice.transaction():
            alice.put_frame("never")
            raise RuntimeError
        assert len(alice) == 4
        # The context keeps no ended block.
        assert dict(session_of(store)._blocks.get()) == {}


def test_tasks_and_threads_have_stores_of_their_own(path: Path) -> None:
    def work(store: cerata.Store, number: int) -> list[str]:
        with store.scoped({"tenant": f"t{number % 4}", "user": number}) as own:
            for turn in range(3):
                own.put_frame(f"{number} {turn}")
            with own.transaction():
                own.put_frame(f"{number} block")
                assert own.count() == (4, 0)
            return sorted(frame.text for frame in own.frames())

    with cerata.open(path, options=cerata.OpenOptions(require_scope=True)) as store:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(partial(work, store), range(16)))
        for number, texts in enumerate(found):
            assert texts == [f"{number} {turn}" for turn in (0, 1, 2, "block")]
        assert store.scoped({"tenant": "t1"}).count() == (16, 0)

        async def task(number: int) -> int:
            own = store.scoped({"tenant": "tasks", "user": number})
            with own.transaction():
                own.put_frame("a")
                await asyncio.sleep(0)
                own.put_frame("b")
            return len(own)

        async def tasks() -> list[int]:
            return await asyncio.gather(*map(task, range(5)))

        assert asyncio.run(tasks()) == [2] * 5
        assert plain(store.verify().ok) == "True"
