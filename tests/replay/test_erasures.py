"""State that was folded before an erasure is dropped, and never written back.

Nothing erases yet: `erasures` does to the file what an eraser will do.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import zstandard

import cerata
from cerata import Entity, Store
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import Ref, SavedProjection
from cerata.engine.log import Log
from cerata.replay import fold as fold_module
from cerata.replay import rebuild as rebuild_module
from cerata.replay.checkpoint import Plan, chunk_refs, plan_checkpoint, publish
from cerata.replay.feed import apply_events
from cerata.replay.fold import Fold

from ..engine.words import PATH, Disk
from ..inside import fold_of, log_of
from .erasures import erase, publish_erased

WORD = "kumquat"


def opened(disk: Disk) -> Store:
    return cerata.open(PATH, environment=disk.environment)


def fill(store: Store) -> None:
    """Events 1 and 2 hold the secret, 3 and 4 do not."""
    store.put_frame(f"Ann hides the {WORD}.", vectors=cerata.Vectors(dense=[1.0, 0.0], space="toy"))
    store.assert_fact("ann", "hides", Entity(WORD), evidence=[(1, 14, 21)])
    store.put_frame("Bob eats an apple.", vectors=cerata.Vectors(dense=[0.0, 1.0], space="toy"))
    store.assert_fact("bob", "eats", Entity("apple"))


def answers(store: Store) -> dict[str, object]:
    """Return what each projection, and each thing derived from one, says of the secret."""
    return {
        "frames": [frame.text for frame in store.frames()],
        "text": [hit.id for hit in store.search(WORD, mode="text")],
        "facts": [str(fact) for fact in store.facts()],
        "graph": str(store.graph.neighbours("ann")) if store.facts("ann") else "",
        "vectors": [hit.id for hit in store.search(np.array([1.0, 0.0]), mode="vector")],
        "vector": str(store.embeddings.of(3)),
        "fact words": [hit.fact.id for hit in store.graph.search(WORD)],
        "context": WORD in store.recall(WORD).text,
        "digests": store.stream.digests(),
    }


def is_saved(disk: Disk, word: str = WORD) -> bool:
    """Tell whether a word stands in a chunk of any checkpoint of the file."""
    with disk.log(mode="r") as log:
        toc = log.toc()
        bodies = [
            log.file.read_extent(ref, ExtentKind.CHUNK)
            for key in toc.projections
            for ref, _ in chunk_refs(log.file, toc.saved(key))
        ]
    return any(word.encode() in content(body) for body in bodies)


def content(body: bytes) -> bytes:
    """Return what a stored chunk holds, after its id and the places of its vectors."""
    start = 36 + int.from_bytes(body[32:36], "little")
    return zstandard.ZstdDecompressor().decompress(body[start:])


@pytest.mark.parametrize("is_saved_before", [False, True])
def test_a_handle_that_meets_an_erasure_answers_as_a_new_one(is_saved_before: bool) -> None:
    """It had everything in memory; it has nothing of it afterwards."""
    disk = Disk()
    store = opened(disk)
    fill(store)
    if is_saved_before:
        store.checkpoint()
    before = answers(store)
    assert (before["text"], before["context"]) == ([1], True)
    erase(disk, {1, 2}, erased=5)
    after = answers(store)
    assert WORD not in str(after)
    with opened(disk) as other:
        assert answers(other) == after == answers(store)
        assert other.stream.digests(replay=True) == after["digests"]
    assert store.frame(1).kind == "erased"
    store.checkpoint()
    store.put_frame("Carl peels a pear.")
    store.close()
    assert is_saved(disk, "apple")
    assert not is_saved(disk)
    with opened(disk) as store:
        assert store.verify().ok


def test_a_checkpoint_that_an_erasure_overtakes_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was computed before; without the refusal it wrote the erased words into the new file."""
    disk = Disk()
    store = opened(disk)
    fill(store)
    store.search(WORD)
    calls: list[str] = []

    def overtaken(*given: Any, **how: Any) -> Plan | None:
        calls.append("plan")
        return plan_checkpoint(*given, **how)

    def published(log: Log, plans: Mapping[str, Plan], *given: Any, **how: Any) -> bool:
        if "erase" not in calls:
            assert any(WORD.encode() in words(plan) for plan in plans.values())
            calls.append("erase")
            erase(disk, {1, 2}, erased=5)
        return publish(log, plans, *given, **how)

    monkeypatch.setattr(fold_module, "plan_checkpoint", overtaken)
    monkeypatch.setattr(fold_module, "publish", published)
    store.checkpoint()
    assert calls.count("erase") == 1
    assert not is_saved(disk)
    store.checkpoint()
    assert store.search(WORD) == []
    store.close()
    assert is_saved(disk, "apple")
    assert not is_saved(disk)


def words(plan: Plan) -> bytes:
    return b"".join(content(one[1]) for one in plan.chunks if not isinstance(one, Ref))


def test_another_value_in_the_same_file_drops_what_was_folded() -> None:
    """The value alone decides, not how the file came to have it."""
    disk = Disk()
    with opened(disk) as store:
        fill(store)
        store.search(WORD)
        fold, files = fold_of(store), log_of(store).file
        kept = list(fold._settled.values())
        assert {one.name for one in kept} >= {"frames", "fulltext"}
        replaced = fold.replaced
        publish_erased(disk, 5)
        store.stream.refresh()
        assert log_of(store).erased == 5
        assert [hit.id for hit in store.search(WORD, mode="text")] == [1]
        assert fold.replaced == replaced + 1
        assert not {id(one) for one in kept} & {id(one) for one in fold._settled.values()}
        assert log_of(store).file is not files, "decoded blocks and indexes were kept"
        # Once, and not at each read.
        store.search(WORD)
        assert fold.replaced == replaced + 1


@pytest.mark.parametrize("erased", [0, 4, 6])
def test_a_plan_of_another_value_is_refused_under_the_lock(erased: int) -> None:
    """Lower or higher: only an equal one is of the same events."""
    disk = Disk()
    with opened(disk) as store:
        fill(store)
        publish_erased(disk, 5)
        key = fold_of(store)._key("fulltext")

        def plan(erased: int) -> Plan:
            log = log_of(store)
            saved = log.toc().saved(key)
            made = fold_of(store).using(
                "fulltext",
                None,
                lambda fold: plan_checkpoint(fold, log.file, saved, erased=erased, tail=True),
            )
            assert made is not None
            return made

        assert not publish(log_of(store), {key: plan(erased)})
        assert log_of(store).toc().saved(key) == SavedProjection()
        assert publish(log_of(store), {key: plan(5)})
        assert log_of(store).toc().saved(key).seq == 4
        assert log_of(store).toc().erased == 5


def test_nothing_is_published_before_anything_was_folded() -> None:
    """A fold that does not know its value has one that no file has."""
    disk = Disk()
    with opened(disk) as store:
        fill(store)
        fold = Fold(log_of(store))
        assert fold._erased < 0
        fold.frames()
        assert fold._erased == log_of(store).erased == 0


def test_a_rebuild_that_an_erasure_overtakes_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    store = opened(disk)
    fill(store)
    store.checkpoint()
    folded = apply_events
    calls: list[int] = []

    def then_erase(*given: Any) -> None:
        folded(*given)
        calls.append(1)
        if len(calls) == 1:
            erase(disk, {1, 2}, erased=5)

    monkeypatch.setattr(rebuild_module, "apply_events", then_erase)
    store.upkeep.rebuild("fulltext")
    assert store.search(WORD) == []
    assert not is_saved(disk)
    assert [key for key in log_of(store).toc().projections if key.endswith("~")] == []
    assert store.stream.digests() == store.stream.digests(replay=True)
    store.close()
