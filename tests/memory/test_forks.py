"""A fork has its parent's events up to a point, its own after it, and knows where it comes from."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Conflict, Corrupt, Diverged, InvalidInput, NotFound, Store
from cerata.engine.limits import RING_SIZE_MIN
from cerata.events import Branch
from cerata.memory.batch.writer import session_of


def said(store: Store, point: int) -> object:
    """Return what a store says as of a point: frames, searches with scores, neighbours, counts."""
    view = store.at(point)
    hits = [
        *view.search("note 3", k=20),
        *view.search("newer OR later", k=20),
    ]
    with suppress(NotFound):
        # Not every memory here has vectors.
        hits += view.search("", k=20, vectors=cerata.Vectors(dense=ONES, space="hand@1/8"))
    return (
        view.count(),
        [frame.id for frame in view.frames()][:200],
        [(hit.id, hit.score, hit.text) for hit in hits],
        view.head.root,
    )


def described(store: Store) -> object:
    """Return the facts, the links and the texts of a store, without ids."""
    links = [
        (
            str(store.graph.fact(link.fact).object),
            link.kind,
            str(store.graph.fact(link.target).object),
        )
        for link in store.graph.links()
    ]
    facts = [str(fact.object) for fact in store.facts(include_retracted=True, include_invalid=True)]
    return sorted(links), sorted(facts), sorted(frame.text for frame in store.frames())


ONES = np.ones(8, np.float32)


def fill(store: Store, batches: int, size: int = 7) -> None:
    """Append batches of frames, some with vectors, and supersede and delete some."""
    for number in range(batches):
        texts = [f"note {number} {place}" for place in range(size)]
        receipt = store.put_frames(texts, options=cerata.PutOptions(key=f"batch-{number}"))
        vector = np.full(8, number + 1, np.float32)
        store.put_frame(f"vector {number}", vectors=cerata.Vectors(dense=vector, space="hand@1/8"))
        if number % 3 == 1:
            store.supersede(receipt.ids[0], f"newer {number}")
        if number % 3 == 2:
            store.delete(receipt.ids[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cera"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """A memory of several segments and a tail; the ring is small, so that appends seal it."""
    with cerata.open(
        path, actor="anna", options=cerata.OpenOptions(ring_bytes=RING_SIZE_MIN)
    ) as opened:
        fill(opened, 60)
        opened.checkpoint()
        fill_more(opened)
        yield opened


def fill_more(store: Store) -> None:
    for number in range(30):
        store.put_frames([f"later {number} {place}" for place in range(20)])


def ends(store: Store) -> list[int]:
    """Return the ends of batches, the empty memory included."""
    return [0, *dict.fromkeys(event.header.last_seq for event in store.log())]


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_fork_answers_as_its_parent_did(store: Store, tmp_path: Path, kind: str) -> None:
    """At the ends of batches in every part of the file, also those that a segment is cut at."""
    points = sorted(ends(store))
    for point in [*points[:3], *points[3:-3:17], *points[-3:]]:
        path = None if kind == "memory" else tmp_path / f"fork-{point}.cera"
        with store.upkeep.fork(point, path) as fork:
            assert fork.verify().ok
            assert (fork.head.seq, fork.at(point).head.root) == (
                point + 1,
                store.at(point).head.root,
            )
            assert said(fork, point) == said(store, point)
            assert fork.stream.digests() == fork.stream.digests(replay=True)
        if path is not None:
            with cerata.open(path) as again:
                assert again.verify().ok
                assert again.upkeep.branches()[0].parent == point


def test_each_writes_on_its_own(store: Store, path: Path) -> None:
    """Also after the parent has grown, sealed, grown its ring, and closed."""
    before = store.head.seq
    with store.upkeep.fork() as fork:
        fork.put_frame("zebra")
        for number in range(40):
            store.put_frames([f"more {number} {'x' * 900} {place}" for place in range(20)])
        store.checkpoint()
        assert not store.search("zebra")
        fork.put_frames([f"own {number} {'y' * 900}" for number in range(400)])
        assert (fork.search("zebra")[0].id, fork.search("more")[:]) == (before + 2, [])
        store.close()
        assert fork.verify().ok
        assert fork.count()[0] > 400
    with cerata.open(path) as again:
        assert again.verify().ok
        assert not again.search("zebra")


def test_a_fork_of_a_store_in_memory() -> None:
    with cerata.open(":memory:") as store:
        fill(store, 5)
        with store.upkeep.fork() as fork, fork.upkeep.fork() as second:
            second.put_frame("zebra")
            assert [len(each.search("zebra")) for each in (store, fork, second)] == [0, 0, 1]
            assert [branch.parent for branch in second.upkeep.branches()] == [
                store.head.seq,
                store.head.seq + 1,
            ]
            assert second.verify().ok
        with pytest.raises(InvalidInput, match="backup"):
            store.upkeep.fork(path="fork.cera")


def test_a_fork_keeps_the_checkpoint_before_its_point(path: Path) -> None:
    """So its first read does not fold the whole log."""
    with cerata.open(path) as store:
        for number in range(25):
            store.put_frames([f"note {number % 7}" for _ in range(400)])
        store.checkpoint()
        store.put_frames([f"late {place}" for place in range(400)])
        store.checkpoint()
        for point, kept in ((10_400, 10_400), (10_000, 8_192), (9_600, 8_192), (400, 0)):
            with store.upkeep.fork(point) as fork:
                saved = fork.upkeep.info()["checkpoints"]
                assert isinstance(saved, dict)
                seqs = [seq for name, seq in saved.items() if name.startswith("frames")]
                assert seqs == [kept] * (kept > 0), point
                assert said(fork, point) == said(store, point)
                assert fork.verify().ok


def test_an_idempotency_key_after_the_point_is_unused(store: Store) -> None:
    """A key before it has its result."""
    point = store.put_frames(["a"], options=cerata.PutOptions(key="before")).seqs[-1]
    store.put_frames(["b"], options=cerata.PutOptions(key="after"))
    store.checkpoint()
    with store.upkeep.fork(point) as fork:
        assert not fork.put_frames(["a"], options=cerata.PutOptions(key="before")).added
        assert fork.put_frames(["c"], options=cerata.PutOptions(key="after")).added
        assert not fork.put_frames(
            [f"note 3 {place}" for place in range(7)], options=cerata.PutOptions(key="batch-3")
        ).added


def test_points_of_another_branch_are_refused(store: Store) -> None:
    """The seq is another event there."""
    early = store.put_frame("early")
    context = store.recall("early")
    with store.upkeep.fork() as fork, store.upkeep.fork() as other:
        late, own = store.put_frame("late"), fork.put_frame("zebra")
        store.put_frame("later")
        assert fork.at(early).basis == early.seqs[-1]
        assert fork.at(context).basis == context.basis
        assert fork.at(pickle.loads(pickle.dumps(early.head))).basis == early.seqs[-1]
        points: list[tuple[Store, Any]] = [
            (fork, late),
            (fork, late.head),
            (fork, store.history.view()),
            (fork, store.recall("late")),
            (fork, pickle.loads(pickle.dumps(store.recall("late")))),
            (store, own),
            (other, own),
            (store, pickle.loads(pickle.dumps(own.head))),
        ]
        for asked, point in points:
            with pytest.raises(Diverged) as caught:
                asked.at(point)
            assert caught.value.kind == "fork"
        assert own.head is not None
        assert early.head is not None
        check = store.verify(against=own.head).against
        assert check is not None
        assert check.outcome == "fork"
        assert fork.verify(against=early.head.text).ok
        hit = fork.search("zebra")[0]
        with pytest.raises(InvalidInput, match="another log"):
            store.history.explain(hit)


def test_both_sides_are_compared_and_a_fork_is_applied(store: Store) -> None:
    """As one batch, once, with references to events of the fork."""
    old = store.put_frame("The index is Annoy.")
    point = store.head.seq
    with store.upkeep.fork() as fork:
        assert not store.history.compare(fork)
        with pytest.raises(InvalidInput, match="no event of its own"):
            store.upkeep.apply(fork)
        store.put_frame("elsewhere")
        new = fork.supersede(old, "The index is HNSW.", reason="fast")
        chunk = fork.put_frame(
            "a part",
            vectors=cerata.Vectors(dense=ONES, space="hand@1/8"),
            options=cerata.PutOptions(parent=new),
        )
        fact = fork.assert_fact("index", "is", "HNSW", evidence=[(new.id, 4, 9)])
        fork.assert_fact("index", "was", "Annoy", evidence=[old.id])
        fork.retract_fact(fact)
        fork.recall("index", record=True)
        fork.history.tag("own", fork.head.seq)
        diff = store.history.compare(fork)
        assert (diff.point, diff.here.added) == (point, (store.head.seq,))
        assert diff.there.replaced == ((old.id, new.id),)
        assert fork.history.compare(store).here == diff.there
        drafts = fork.upkeep.drafts_after(store)
        kinds = [draft.body.wire_name for draft in drafts]
        assert kinds == [
            "putFrame",
            "supersedeFrame",
            "putFrame",
            *["assertFact"] * 2,
            "retractFact",
        ]
        assert {draft.actor for draft in drafts} == {"anna"}
        receipt = store.upkeep.apply(fork)
        assert len(receipt.seqs) == len(drafts)
        assert not store.upkeep.apply(fork).added
        newest = store.frame(receipt.ids[0])
        assert (newest.text, store.frame(old.id).superseded_by) == ("The index is HNSW.", newest.id)
        [part] = store.files.children(newest.id)
        assert store.frame(part).text == fork.frame(chunk.id).text
        assert np.array_equal(np.asarray(store.embeddings.of(part, "hand@1/8")), ONES)
        assert [str(fact.object) for fact in store.facts("index")] == ["Annoy"]
        assert next(iter(store.log(receipt.seqs[1], receipt.seqs[1]))).reason == "fast"
        assert store.verify().ok


def test_a_fork_that_no_longer_fits_is_not_applied(store: Store) -> None:
    """Nothing of it is written."""
    frame = store.put_frame("one")
    with store.upkeep.fork() as fork:
        fork.put_frame("two")
        fork.delete(frame)
        store.delete(frame)
        head = store.head
        with pytest.raises(Conflict):
            store.upkeep.apply(fork)
        assert store.head == head


def test_bad_calls_write_nothing(store: Store, tmp_path: Path) -> None:
    taken = tmp_path / "taken.cera"
    taken.write_bytes(b"mine")
    first = next(event for event in store.log() if event.header.count > 1)
    with pytest.raises(InvalidInput, match=f"Fork at {first.seq - 1} or at"):
        store.upkeep.fork(first.seq, tmp_path / "new.cera")
    with pytest.raises(Conflict, match="file already"):
        store.upkeep.fork(path=taken)
    with pytest.raises(NotFound, match="no such folder"):
        store.upkeep.fork(path=tmp_path / "none" / "new.cera")
    with store.transaction():
        store.put_frame("pending")
        with pytest.raises(InvalidInput, match="after the transaction"):
            store.upkeep.fork(store.history.view())
    with cerata.open(":memory:") as foreign, pytest.raises(InvalidInput, match="no common event"):
        store.history.compare(foreign)
    branch = Branch(id=bytes(16), seq=1, chain=bytes(32), root=bytes(32))
    with pytest.raises(InvalidInput, match="first event of a fork"):
        store.append(branch)
    assert taken.read_bytes() == b"mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["memory.cera", "taken.cera"]


def test_damage_is_not_copied_in_silence(store: Store, path: Path, tmp_path: Path) -> None:
    """A fork in a file checks every copied event; one in memory reads the parent's checks."""
    store.checkpoint()
    point = store.head.seq
    segments = list(session_of(store).log.reader.segment_refs(session_of(store).log.snapshot))
    store.close()
    data = bytearray(path.read_bytes())
    data[segments[0].offset + segments[0].length // 3] ^= 1
    path.write_bytes(data)
    with cerata.open(path) as damaged:
        with pytest.raises(Corrupt, match=r"The fork stopped at events 1 to \d+: .* is damaged"):
            damaged.upkeep.fork(point, tmp_path / "fork.cera")
        with damaged.upkeep.fork(point) as fork:
            assert not fork.verify().ok
    assert [each.name for each in tmp_path.iterdir()] == ["memory.cera"]
    with cerata.open(path, options=cerata.OpenOptions(salvage=True)) as salvaged:
        if salvaged.head.seq < point:
            with pytest.raises(Corrupt, match="drop-damaged"):
                salvaged.upkeep.fork()


@given(data=st.data())
def test_forks_of_forks_equal_a_store_built_event_by_event(data: st.DataObject) -> None:
    """The events of the parent up to the point, then those of the fork."""
    texts = st.lists(st.sampled_from(("oak", "elm", "ash")), min_size=1, max_size=3)
    store = cerata.open(":memory:")
    opened = [store]
    built: list[tuple[str, ...]] = []
    try:
        for _ in range(data.draw(st.integers(1, 4))):
            for _ in range(data.draw(st.integers(0, 4))):
                batch = tuple(data.draw(texts))
                store.put_frames(list(batch))
                built.append(batch)
            kept = data.draw(st.integers(0, len(built)))
            built = built[:kept]
            point = sum(map(len, built))
            store = store.upkeep.fork(point)
            opened.append(store)
            built.append(("branch",))
        shown = [frame.text for frame in store.frames()]
        expected = [text for batch in built for text in batch if text != "branch"]
        assert shown == expected[::-1]
        assert store.verify().ok
        assert len(store.upkeep.branches()) == sum(batch == ("branch",) for batch in built)
    finally:
        for each in reversed(opened):
            each.close()


def test_a_fork_has_the_scope_of_its_store(path: Path) -> None:
    with cerata.open(path) as whole:
        whole.put_frame("theirs", options=cerata.PutOptions(scope={"tenant": "t", "user": "b"}))
        whole.put_frame("ours", options=cerata.PutOptions(scope={"tenant": "t", "user": "a"}))
    with (
        cerata.open(path, scope={"tenant": "t", "user": "a"}) as store,
        store.upkeep.fork() as fork,
    ):
        assert [frame.text for frame in fork.frames()] == ["ours"]
        fork.put_frame("more")
        assert [draft.body.text for draft in fork.upkeep.drafts_after(store)] == ["more"]  # type: ignore[attr-defined]


def test_a_killed_fork_is_whole_or_missing(checkout: Path) -> None:
    """The command of the docs, with fewer rounds."""
    command = [sys.executable, "-m", "tests.memory.fork_kills", "--rounds", "12"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 kills" in done.stdout


def test_a_fork_is_applied_once(store: Store) -> None:
    """A recorded recall made the first events be appended again; so did any later event."""
    with store.upkeep.fork() as fork:
        fork.put_frame("zebra")
        store.upkeep.apply(fork)
        fork.recall("zebra", record=True)
        assert not store.upkeep.apply(fork).added
        fork.put_frame("okapi")
        with pytest.raises(Conflict, match="Fork this memory again"):
            store.upkeep.apply(fork)
        assert (len(store.search("zebra")), len(store.search("okapi"))) == (1, 0)


def test_an_event_that_names_a_hidden_event_is_not_applied(path: Path) -> None:
    """Its reference would name another event there."""
    scope = {"tenant": "t", "user": "a"}
    with cerata.open(path) as whole:
        whole.put_frame("first", options=cerata.PutOptions(scope=scope))
        with whole.upkeep.fork(path=path.with_name("fork.cera")) as fork:
            shared = fork.put_frame(
                "of all users", options=cerata.PutOptions(scope={"tenant": "t"})
            )
            fork.assert_fact(
                "tea", "is", "green", evidence=[shared.id], options=cerata.FactOptions(scope=scope)
            )
    with (
        cerata.open(path, scope=scope) as store,
        cerata.open(path.with_name("fork.cera"), scope=scope) as fork,
    ):
        head = store.head
        with pytest.raises(InvalidInput, match="would not be appended with it"):
            store.upkeep.apply(fork)
        assert store.head == head


def test_links_imports_and_runs_of_a_fork_are_applied(store: Store, tmp_path: Path) -> None:
    """Each names events of the fork, of its parent, or of both."""
    old = store.assert_fact("index", "is", "Annoy")
    slots = {"mode": cerata.MemorySpec(type="value")}
    with cerata.open(tmp_path / "other.cera") as other:
        fill(other, 2)
        other.interchange.export_events(tmp_path / "events.jsonl")
    with store.upkeep.fork() as fork:
        imported = fork.interchange.import_events(tmp_path / "events.jsonl")
        assert imported.added
        reason = fork.assert_fact("recall", "is", "slow")
        result = fork.assert_fact("index", "will be", "HNSW")
        fork.graph.link(result, "depends_on", reason)
        fork.graph.link(reason, "invalidates", old)
        fork.graph.unlink(fork.graph.link(result, "depends_on", old))
        agent = cerata.Agent(fork, "analyst", memory=slots)
        with agent.run("r1", inputs={"rows": [1, 2]}) as run:
            ref = run.put("total", 3).ref
            assert ref is not None
            run.keep(ref, "mode")
        there = described(fork)
        store.upkeep.apply(fork)
        assert described(store) == there
        assert store.verify().ok
    assert cerata.Agent(store, "analyst", memory=slots).slot("mode").get() == 3
