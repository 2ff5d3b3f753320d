"""New versions: update and restore carry content and vectors over; nothing is embedded again."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from threading import Thread

import numpy as np
import pytest

import cerata
from cerata import Conflict, Filter, InvalidInput, NotFound, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import PutEmbedding
from cerata.memory.frames.closing import expired_frames
from cerata.memory.snapshot.snapshot import Snapshot

from ...clocks import StandingClock
from ...embedders import Hashing

DAY = 86_400_000_000
LONG = "\n\n".join(f"# Part {part}\n\n" + f"tea{part} " * 300 for part in range(4))


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(1_772_355_600_000_000)


@pytest.fixture
def store(clock: StandingClock) -> Iterator[Store]:
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    with cerata.open(":memory:", environment=environment) as opened:
        yield opened


def _vectors(store: Store, frames: Sequence[int]) -> list[str]:
    return [str(store.embeddings.of(frame, "s")) for frame in frames]


def test_an_update_changes_only_what_was_passed(store: Store) -> None:
    old = store.frame(
        store.put_frame(
            "tea",
            kind="note",
            role="user",
            uri="a",
            title="Tea",
            tags=["x"],
            metadata={"n": 1},
            options=cerata.PutOptions(
                labels=["l"], track="t", content_dates=["2026-01-02"], search_text="cha"
            ),
        )
    )
    receipt = store.update(old, tags=["y", "z"])
    new = store.frame(receipt)
    assert receipt.replaced == (old.id,)
    differs = {name for name, value in old.to_dict().items() if new.to_dict()[name] != value}
    assert differs == {"id", "tags", "recorded", "supersedes"} - (
        {"recorded"} if new.recorded == old.recorded else set()
    )
    assert (new.tags, new.created) == (("y", "z"), old.created)
    cleared = store.frame(store.update(new, title=None, metadata={}))
    assert (cleared.title, cleared.metadata, cleared.tags) == (None, {}, ("y", "z"))
    assert [version.id for version in store.history.of(old)] == [old.id, new.id, cleared.id]


def test_an_update_carries_all_vectors_over_without_the_embedder() -> None:
    embedder = Hashing()
    with cerata.open(":memory:", embedder=embedder) as store:
        frame = store.put_frame("tea at four").id
        space = embedder.identity.space
        store.append(_embedding(store, frame))
        calls = embedder.calls
        new = store.update(frame, tags=["x"]).id
        assert embedder.calls == calls
        assert str(store.embeddings.of(new, space)) == str(store.embeddings.of(frame, space))
        assert str(store.embeddings.of(new, "s")) == "[0. 1.]"
        assert [
            hit.id for hit in store.search(np.array([0.0, 1.0]), vectors=cerata.Vectors(space="s"))
        ] == [new]


def _embedding(store: Store, frame: int) -> cerata.Draft:
    from cerata.engine.events import Attachment, Embedding
    from cerata.engine.integrity import hash_bytes

    data = np.array([0, 1], "<f4").tobytes()
    embedding = Embedding("s", "f4", 2, Attachment(hash_bytes(data), len(data)))
    return cerata.Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,))


def test_bytes_are_carried_over(store: Store) -> None:
    old = store.put_frame(
        b"\x00\x01",
        vectors=cerata.Vectors(dense=[1.0, 0.0], space="s"),
        options=cerata.PutOptions(search_text="tea"),
    )
    new = store.update(old, title="Tea")
    assert store.files.content(new) == b"\x00\x01"
    assert _vectors(store, [new.id]) == _vectors(store, [old.id])
    assert [hit.id for hit in store.search("tea", mode="text")] == [new.id]


def test_a_document_is_updated_with_its_chunks(store: Store) -> None:
    old = store.remember(LONG, uri="d", title="Teas", tags=["x"], metadata={"a": 1, "b": 2})
    new = store.update(old, title="Other", tags=["y"], metadata={"a": 3})
    frame = store.frame(new)
    assert frame.text == store.frame(old).text == LONG
    hits = store.search("tea2", where=Filter(tags=["y"]))
    assert hits
    for hit in hits:
        assert hit.frame.parent == new.id
        assert (hit.frame.title or "").startswith("Other > Part")
        assert {"a", "span"} <= set(hit.frame.metadata)
        assert "b" not in hit.frame.metadata
    assert store.count() == (1, 1)
    # The content is found again, so the same text is not stored twice.
    assert store.remember(LONG, uri="d").added is False
    assert len(store.files.chunks(new)) == len(store.files.chunks(old)) == len(old.ids) - 1


def test_the_frames_below_move_along(store: Store) -> None:
    root = store.put_frame("root")
    child = store.put_frame("child", options=cerata.PutOptions(parent=root))
    document = store.remember(LONG, options=cerata.PutOptions(parent=child))
    new = store.update(root, tags=["x"])
    texts = {frame.text: frame for frame in store.frames()}
    assert set(texts) == {"root", "child", LONG}
    assert texts["child"].parent == new.id
    assert texts["child"].supersedes == (child.id,)
    assert texts[LONG].parent == texts["child"].id
    assert texts[LONG].supersedes == (document.id,)
    assert len(store.files.chunks(texts[LONG])) == len(document.ids) - 1
    assert len(store.search("tea3")) == len(store.at(document).search("tea3"))


def test_expired_frames_below_stay_behind(store: Store, clock: StandingClock) -> None:
    """An expired frame that no sweep had closed yet made every update of its parent fail."""
    root = store.put_frame("root")
    gone = store.put_frame("gone", options=cerata.PutOptions(parent=root, expires="2026-03-02"))
    store.remember(LONG, options=cerata.PutOptions(parent=root, expires="2026-03-02"))
    below = store.put_frame("below", options=cerata.PutOptions(parent=gone))
    clock.time_us += DAY
    new = store.update(root, tags=["x"])
    assert new.replaced == (below.id, root.id)
    texts = {frame.text: frame.parent for frame in store.frames()}
    assert texts == {"root": None, "below": new.id}
    assert store.upkeep.sweep().added is False
    assert store.search("tea3", where=Filter(include_superseded=True)) == []


def test_an_expired_frame_needs_another_expiry(store: Store, clock: StandingClock) -> None:
    frame = store.put_frame("tea", options=cerata.PutOptions(expires="2026-03-02"))
    clock.time_us += DAY
    changes: tuple[Callable[[], object], ...] = (
        lambda: store.update(frame, tags=["x"]),
        lambda: store.update(frame, title="T"),
    )
    for change in changes:
        with pytest.raises(InvalidInput, match=f"Frame {frame.id} expires at") as caught:
            change()
        assert (caught.value.remedy or "").startswith("Pass expires=")
    new = store.update(frame, tags=["x"], expires="2026-03-04")
    store.delete(new)
    clock.time_us += 2 * DAY
    with pytest.raises(InvalidInput, match=f"Frame {new.id} expires at") as caught:
        store.history.restore(new)
    assert (caught.value.remedy or "").startswith("Pass expires=")
    assert store.frame(store.history.restore(new, expires=None)).tags == ("x",)


def test_a_frame_below_a_closed_frame_moves_below_the_next_above(store: Store) -> None:
    """It was closed by the update of the frame above, without a new version."""
    root = store.put_frame("root")
    closed = store.put_frame("closed", options=cerata.PutOptions(parent=root))
    store.delete(closed)
    later = store.put_frame("later", options=cerata.PutOptions(parent=closed))
    document = store.remember(LONG, options=cerata.PutOptions(parent=root))
    store.put_frame("note", options=cerata.PutOptions(parent=document.ids[2]))
    new = store.update(root, title="Root")
    frames = {frame.text: frame for frame in store.frames(include_chunks=True)}
    assert frames["later"].parent == new.id
    assert frames["later"].supersedes == (later.id,)
    part = frames["note"].parent
    assert part is not None
    assert part in store.files.chunks(frames[LONG]).values()
    assert store.frame(part).text == store.frame(document.ids[2]).text


def test_a_long_conversation_is_updated(store: Store) -> None:
    """Each message is below the message before; a recursion was too deep for these."""
    root = above = store.put_frame("0").id
    with store.transaction():
        for number in range(1, 1_101):
            above = store.put_frame(str(number), options=cerata.PutOptions(parent=above)).id
    new = store.update(root, tags=["x"])
    assert len(new.replaced) == 1_101
    assert store.count() == (1_101, 1_101)


def test_an_update_without_a_difference_writes_nothing(store: Store) -> None:
    frame = store.put_frame("a", tags=["x"])
    head = store.head.seq
    receipt = store.update(frame, tags=["x"], title=None)
    assert (receipt.id, receipt.added, receipt.seqs, store.head.seq) == (frame.id, False, (), head)


def test_updates_conflict_as_supersedes_do(store: Store) -> None:
    frame = store.put_frame("a")
    store.update(frame, tags=["x"])
    with pytest.raises(Conflict, match="superseded"):
        store.update(frame, tags=["x"])
    with pytest.raises(NotFound):
        store.update(99, tags=["x"])
    with pytest.raises(InvalidInput, match="field"):
        store.update(frame)
    document = store.remember(LONG)
    with pytest.raises(InvalidInput, match="part of a document"):
        store.update(document.ids[1], tags=["x"])
    with pytest.raises(InvalidInput, match="not after"):
        store.update(document, expires="2020-01-01")


def test_an_update_in_a_transaction(store: Store) -> None:
    with store.transaction(key="k") as block:
        frame = store.put_frame("a", vectors=cerata.Vectors(dense=[1.0, 0.0], space="s"))
        new = store.update(frame, tags=["x"])
        assert [one.id for one in store.frames()] == [new.id]
        last = store.update(new, title="A")
    assert block.receipt is not None
    [current] = store.frames()
    assert (current.title, current.tags) == ("A", ("x",))
    assert _vectors(store, [current.id]) == ["[1. 0.]"]
    assert last.replaced == (new.id,)


def test_a_deleted_frame_comes_back(store: Store) -> None:
    frame = store.put_frame("tea", tags=["x"], vectors=cerata.Vectors(dense=[1.0, 0.0], space="s"))
    store.delete(frame)
    new = store.history.restore(frame)
    assert [(one.id, one.text, one.tags) for one in store.frames()] == [(new.id, "tea", ("x",))]
    assert _vectors(store, [new.id]) == ["[1. 0.]"]
    [event] = store.log(new.id, new.id)
    assert event.causation == frame.id
    with pytest.raises(Conflict, match="restored as"):
        store.history.restore(frame)
    with pytest.raises(Conflict, match="current"):
        store.history.restore(new)


def test_a_restored_frame_has_its_uri_alone(store: Store) -> None:
    """A restore beside a new frame of the URI left two current frames."""
    old = store.put_frame("old", uri="a")
    newer = store.supersede(old, "newer")
    other = store.put_frame("other", uri="b")
    for frame in (newer, other):
        store.delete(frame)
    new = store.put_frame("new", uri="a", options=cerata.PutOptions(replace=True))
    for frame in (old, newer):
        with pytest.raises(Conflict, match=f"Frame {new.id} is current, and has the URI"):
            store.history.restore(frame)
    with store.transaction():
        store.put_frame("pending", uri="b")
        with pytest.raises(Conflict, match="Frame -1 is current, and has the URI"):
            store.history.restore(other)
    store.delete(new)
    restored = store.history.restore(newer)
    assert store.files.by_uri("a") == [restored.id]
    tenant = {"tenant": "t"}
    store.put_frame("elsewhere", uri="c", options=cerata.PutOptions(scope=tenant))
    here = store.put_frame("here", uri="c")
    store.delete(here)
    assert store.history.restore(here).added


def test_a_frame_restored_and_then_changed_stays_restored(store: Store) -> None:
    """After an update of the copy a second restore left two current frames."""
    frame = store.put_frame("tea")
    store.delete(frame)
    copy = store.history.restore(frame)
    store.update(copy, tags=["x"])
    with pytest.raises(Conflict, match=f"restored as frame {copy.id}"):
        store.history.restore(frame)
    store.delete(store.history.restore(copy))
    assert store.history.restore(frame).added


def test_an_older_version_replaces_the_current_version(store: Store) -> None:
    first = store.put_frame("one", uri="a")
    second = store.supersede(first, "two")
    reply = store.put_frame("reply", options=cerata.PutOptions(parent=second))
    third = store.history.restore(first)
    assert third.replaced == (reply.id, second.id)
    assert {frame.text: frame.parent for frame in store.frames()} == {
        "one": None,
        "reply": third.id,
    }
    assert [version.text for version in store.history.of(third)] == ["one", "two", "one"]


def test_a_deleted_document_comes_back_with_its_chunks(store: Store) -> None:
    document = store.remember(LONG, uri="d")
    store.delete(document)
    assert store.search("tea1") == []
    new = store.history.restore(document)
    assert store.frame(new).text == LONG
    assert {hit.frame.parent for hit in store.search("tea1")} == {new.id}


def test_two_restores_at_once_leave_one_frame(store: Store) -> None:
    frame = store.put_frame("tea")
    store.delete(frame)
    errors: list[Exception] = []

    def restore() -> None:
        try:
            store.history.restore(frame)
        except Conflict as error:
            errors.append(error)

    threads = [Thread(target=restore) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(errors), store.count()) == (7, (1, 1))


def test_an_expired_frame_is_restored_with_another_expiry(
    store: Store, clock: StandingClock
) -> None:
    frame = store.put_frame("tea", options=cerata.PutOptions(expires="2026-03-02"))
    clock.time_us += DAY
    assert store.upkeep.sweep().deleted == (frame.id,)
    with pytest.raises(InvalidInput, match="not after"):
        store.history.restore(frame)
    assert store.frame(store.history.restore(frame, expires=None)).expires is None


def test_a_sweep_closes_expired_frames_once(store: Store, clock: StandingClock) -> None:
    document = store.remember(LONG, options=cerata.PutOptions(expires="2026-03-02"))
    kept = store.put_frame("kept", options=cerata.PutOptions(expires="2026-04-01"))
    assert store.upkeep.sweep().added is False
    clock.time_us += DAY
    with store.transaction():
        assert store.upkeep.sweep().deleted == (document.id,)
        assert store.upkeep.sweep().deleted == ()
    head = store.head.seq
    assert store.upkeep.sweep() == cerata.Receipt(0, (), (), store.head, durable=True, added=False)
    assert store.head.seq == head
    [event] = store.log(head)
    assert (event.type, event.reason) == ("deleteFrame", "expired")
    assert [frame.id for frame in store.frames()] == [kept.id]
    assert store.frame(document).active is False


def test_sweeps_at_once_close_each_frame_once(store: Store, clock: StandingClock) -> None:
    store.put_frames(
        [str(number) for number in range(2_500)], options=cerata.PutOptions(expires="2026-03-02")
    )
    clock.time_us += DAY
    deleted: list[int] = []
    threads = [
        Thread(target=lambda: deleted.extend(store.upkeep.sweep().deleted)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(deleted) == list(range(1, 2_501))


def test_a_sweep_leaves_other_scopes_alone(clock: StandingClock) -> None:
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    with cerata.open("a.cera", environment=environment) as store:
        for user in ("ann", "bob"):
            store.put_frame(
                user, options=cerata.PutOptions(scope={"user": user}, expires="2026-03-02")
            )
    clock.time_us += DAY
    scope = {"tenant": "default", "user": "ann"}
    with cerata.open("a.cera", environment=environment, scope=scope) as store:
        assert store.upkeep.sweep().deleted == (1,)
    with cerata.open("a.cera", environment=environment) as store:
        assert store.frame(2).is_expired
        assert store.frame(2).closed is None


def test_a_sweep_closes_no_unexpired_frame(store: Store, clock: StandingClock) -> None:
    """A frame without expiry, or with a later one, closed with the expired frame above it."""
    above = store.put_frame("above", options=cerata.PutOptions(expires="2026-03-02"))
    parent = store.put_frame(
        "parent", options=cerata.PutOptions(parent=above, expires="2026-03-02")
    )
    child = store.put_frame("child", options=cerata.PutOptions(parent=parent, expires="2026-03-03"))
    gone = store.put_frame("gone", options=cerata.PutOptions(parent=above, expires="2026-03-02"))
    store.put_frame("below", options=cerata.PutOptions(parent=gone, expires="2026-03-02"))
    document = store.remember(LONG, options=cerata.PutOptions(expires="2026-03-02"))
    note = store.put_frame("note", options=cerata.PutOptions(parent=document.ids[1]))
    clock.time_us += DAY
    assert store.upkeep.sweep().deleted == (gone.id,)
    with store.transaction():
        store.delete(note)
        assert store.upkeep.sweep().deleted == (document.id,)
    assert store.frame(child).active
    clock.time_us += DAY
    with store.transaction():
        pending = store.put_frame("pending", options=cerata.PutOptions(parent=child))
        assert store.upkeep.sweep().deleted == ()
        store.delete(pending)
        assert store.upkeep.sweep().deleted == (above.id,)
    assert store.frame(child).closed is not None


def test_a_sweep_closes_no_unexpired_frame_of_another_user(clock: StandingClock) -> None:
    """A private frame that the sweeping store cannot read closed with the reason "expired"."""
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    ann, bob = ({"tenant": "default", "user": user} for user in ("ann", "bob"))
    with cerata.open("a.cera", environment=environment) as store:
        parent = store.put_frame(
            "ann's", options=cerata.PutOptions(scope=ann, expires="2026-03-02")
        )
        child = store.put_frame("bob's", options=cerata.PutOptions(scope=bob, parent=parent))
    clock.time_us += DAY
    with cerata.open("a.cera", environment=environment, scope=ann) as store:
        assert store.upkeep.sweep().added is False
    with cerata.open("a.cera", environment=environment) as store:
        assert store.frame(child).active
        store.delete(child)
    with cerata.open("a.cera", environment=environment, scope=ann) as store:
        assert store.upkeep.sweep().deleted == (parent.id,)


def test_a_sweep_looks_again_if_a_frame_comes_between(
    store: Store, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = store.put_frame("parent", options=cerata.PutOptions(expires="2026-03-02"))
    clock.time_us += DAY

    def late(snapshot: Snapshot) -> tuple[list[int], int]:
        frames = expired_frames(snapshot)
        store.put_frame("raced", options=cerata.PutOptions(parent=parent))
        return frames

    monkeypatch.setattr("cerata.memory.frames.version_commands.frame_closing.expired_frames", late)
    assert store.upkeep.sweep().added is False


def test_a_filter_deletes_in_batches(store: Store) -> None:
    store.put_frames([str(number) for number in range(2_100)], tags=["x"])
    parent = store.put_frame("kept").id
    child = store.put_frame("below", tags=["x"], options=cerata.PutOptions(parent=parent)).id
    store.put_frame("deeper", tags=["x"], options=cerata.PutOptions(parent=child))
    receipt = store.delete(where=Filter(tags=["x"]))
    assert receipt.deleted == (*range(1, 2_101), child)
    assert len(receipt.seqs) == 2_101
    assert [frame.id for frame in store.frames()] == [parent]
    assert store.delete(where=Filter(tags=["x"])).added is False
    for arguments in ({}, {"frame": 1, "where": Filter()}):
        with pytest.raises(InvalidInput, match="either"):
            store.delete(**arguments)  # type: ignore[arg-type]


def test_count_get_and_values(store: Store, clock: StandingClock) -> None:
    store.put_frame("a", uri="dir/a", tags=["x", "x"], metadata={"n": 1, "m": True})
    store.put_frame("b", uri="dir/b", tags=["x", "y"], metadata={"n": "1"}, role="user")
    store.remember(LONG, uri="file:///home/a", tags=["x"])
    gone = store.put_frame(
        "c", uri="dir/b", tags=["y"], options=cerata.PutOptions(expires="2026-03-02")
    ).id
    assert [(one.value, one.count) for one in store.files.values("tag")] == [("x", 3), ("y", 2)]
    assert store.count(Filter(tags=["y"])) == (2, 0)
    found = store.get("dir/b")
    assert found is not None
    assert found.id == gone
    before = store.at("HEAD")
    clock.time_us += DAY
    assert [(one.value, one.count) for one in store.files.values("tag")] == [("x", 3), ("y", 1)]
    assert [(one.value, one.count) for one in before.files.values("tag")] == [("x", 3), ("y", 2)]
    assert store.count(Filter(tags=["y"])) == (1, 1)
    found = store.get("dir/b")
    assert found is not None
    assert found.text == "b"
    assert store.get("dir") is None
    document = store.get("file:///home/a")
    assert document is not None
    assert document.text == LONG
    pairs = {
        field: [(one.value, one.count) for one in store.files.values(field)]
        for field in ("kind", "role", "uri", "metadata", "metadata.n", "metadata.m")
    }
    assert pairs == {
        "kind": [("text", 2), ("document", 1)],
        "role": [("user", 1)],
        "uri": [("dir/", 2), ("file:///", 1)],
        "metadata": [("n", 2), ("m", 1)],
        "metadata.n": [(1, 1), ("1", 1)],
        "metadata.m": [(True, 1)],
    }
    deeper = store.files.values("uri", prefix="dir/")
    assert [one.value for one in deeper] == ["dir/a", "dir/b"]
    assert store.files.values("tag", where=Filter(role="user"), prefix="y")[0].count == 1
    with store.transaction():
        store.put_frame("d", tags=["x"])
        store.delete(1)
        assert [(one.value, one.count) for one in store.files.values("tag")] == [("x", 3), ("y", 1)]
    with pytest.raises(InvalidInput, match="no field"):
        store.files.values("colour")


def test_a_refusal_names_the_version_that_is_current(store: Store) -> None:
    """Not the next version, which was superseded as well."""
    first = store.put_frame("one").id
    second = store.supersede(first, "two").id
    third = store.supersede(second, "three").id
    changes: list[Callable[[int], object]] = [
        store.delete,
        lambda frame: store.supersede(frame, "new"),
    ]
    for change in changes:
        with pytest.raises(Conflict, match=rf"by frame {second}.*Pass frame {third} instead"):
            change(first)
    store.delete(third)
    with pytest.raises(Conflict, match=f"frame {third} was closed, too"):
        store.delete(first)
