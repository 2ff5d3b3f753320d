"""The version rule: a file of an earlier release goes on, and content of a later one stays.

A later minor version may add types of events, projections and names of the TOC. This version opens
such a file, writes to it, saves a checkpoint, compacts it, and copies it by its lines: the three
are there afterwards, unchanged.
"""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

import cerata
from cerata import Store
from cerata.engine.errors import HistoryPruned
from cerata.engine.events import Draft, UnknownBody
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, SavedProjection, Toc
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.projections import registry
from cerata.projections.fulltext import beside
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.registry import projection_key
from cerata.replay.checkpoint import is_of_others

from ..inside import log_of
from . import specimen

KEY = "from-later/1/0123456789abcdef"
NAMES = {"from later": [1, {"a": b"b"}]}
CHUNK = b"a state that only a later Cerata reads" * 20
BODY = UnknownBody(kind="fromLater", kind_version=3, data=msgspec.msgpack.encode({"minutes": 3}))
FIELD = {"of a later field": 7}


def leave(store: Store) -> None:
    """Do what a later minor version does: an event, a projection's chunk, a name in the TOC."""
    log = log_of(store)
    log.append([Draft(BODY)])
    head = log.head.seq

    def build(flip: Flip, _: Toc) -> dict[str, dict[str, Any]]:
        page = [flip.add(ExtentKind.CHUNK, CHUNK, 1, head)]
        state = StateDraft(head, bytes(32), [page], [LedgerEntry(head, bytes(32))])
        return {KEY: {**flip.add_states({KEY: state})[KEY].to_entry(), **FIELD}}

    log.carry(NAMES, build)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "later.cera"
    with cerata.open(path) as store:
        store.put_frames(["green tea", "black tea"])
        leave(store)
        store.put_frame("white tea")
    return path


def event_of(store: Store) -> UnknownBody:
    (body,) = [event.body for event in store.log(1) if event.type == "fromLater"]
    assert isinstance(body, UnknownBody)
    return body


def chunk_of(store: Store) -> tuple[bytes, int, dict[str, Any]]:
    """Return the chunk of the later projection, the seq of its state, and its further fields."""
    log = log_of(store)
    toc = log.toc()
    saved = toc.saved(KEY)
    (page,) = saved.chunks
    (ref,) = log.file.page(page)
    assert saved.ledger is not None
    assert log.file.ledger(saved.ledger) == [LedgerEntry(saved.seq, bytes(32))]
    fields = toc.projections[KEY].keys() - SavedProjection.__struct_fields__
    further = {name: toc.projections[KEY][name] for name in fields}
    return log.file.read_extent(ref, ExtentKind.CHUNK), saved.seq, further


def write(store: Store) -> None:
    store.put_frame("red tea")


def fill_ring(store: Store) -> None:
    for number in range(30):
        store.put_frame(f"tea {number}")
    log_of(store).seal()


def after_a_kill(store: Store) -> None:
    store.put_frame("red tea")
    log_of(store).abandon()


STEPS: dict[str, Callable[[Store], object]] = {
    "opened": lambda store: store.head,
    "written to": write,
    "sealed": fill_ring,
    "killed": after_a_kill,
    "checkpointed": lambda store: store.checkpoint(),
    "rebuilt": lambda store: store.upkeep.rebuild(),
    "compacted": lambda store: store.upkeep.compact(),
    "maintained": lambda store: store.upkeep.maintain(),
}


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("step", STEPS)
def test_content_of_a_later_version_is_carried_unchanged(path: Path, step: str) -> None:
    """Event, chunk and name, by each way of writing; in this handle's file and in the next's."""
    with cerata.open(path) as store:
        leaf = log_of(store).event(3).leaf
        STEPS[step](store)
    with cerata.open(path) as store:
        assert event_of(store) == BODY
        assert log_of(store).event(3).leaf == leaf
        assert chunk_of(store) == (CHUNK, 3, FIELD)
        assert log_of(store).toc().unknown == NAMES
        assert store.verify().ok
        store.put_frame("after all")


@pytest.mark.usefixtures("any_size")
def test_all_steps_one_after_another_carry_it(path: Path) -> None:
    """As a file lives; twice compacted, since the second copies the content of a copy."""
    for step in (*STEPS, "compacted"):
        with cerata.open(path) as store:
            STEPS[step](store)
    with cerata.open(path, mode="r") as store:
        assert event_of(store) == BODY
        assert chunk_of(store) == (CHUNK, 3, FIELD)
        assert log_of(store).toc().unknown == NAMES
        assert store.verify().ok


def test_lines_carry_the_event_and_leave_derived_content_out(path: Path, tmp_path: Path) -> None:
    """The chunk is derived from the events: a later Cerata folds them again."""
    lines = BytesIO()
    with cerata.open(path) as store:
        store.interchange.export_events(lines)
        head = store.head.chain, store.head.root
        leaf = log_of(store).event(3).leaf
    with cerata.open(tmp_path / "copy.cera") as copy:
        copy.interchange.import_events(BytesIO(lines.getvalue()))
        assert event_of(copy) == BODY
        assert log_of(copy).event(3).leaf == leaf
        assert (copy.head.chain, copy.head.root) == head
        assert KEY not in log_of(copy).toc().projections
        assert log_of(copy).toc().unknown == {}


def test_a_backup_has_the_event_and_the_name(path: Path, tmp_path: Path) -> None:
    """It has no checkpoints, its own or of others: they are derived."""
    with cerata.open(path) as store:
        store.backup(tmp_path / "copy.cera")
    with cerata.open(tmp_path / "copy.cera") as copy:
        assert event_of(copy) == BODY
        assert log_of(copy).toc().unknown == NAMES
        assert KEY not in log_of(copy).toc().projections
        assert copy.verify().ok


def test_a_fork_has_the_event_and_the_checkpoint(path: Path, tmp_path: Path) -> None:
    """It shares the extents of its parent; a name of the TOC may describe the parent alone."""
    with cerata.open(path) as store, store.upkeep.fork("HEAD", tmp_path / "fork.cera") as fork:
        assert event_of(fork) == BODY
        assert chunk_of(fork) == (CHUNK, 3, FIELD)
        assert log_of(fork).toc().unknown == {}


@pytest.mark.usefixtures("any_size")
def test_content_written_during_a_compaction_is_carried(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later process may save between the copy and the swap: the swap looks again."""
    from cerata.engine.copies.compact import _Compaction

    swap = _Compaction._swap

    def late(self: _Compaction, *arguments: Any) -> None:
        snapshot = arguments[-1]
        toc = snapshot.reader.toc(snapshot.page)
        newer = msgspec.structs.replace(toc, unknown={"from later": 2})
        snapshot.reader.remember_toc(snapshot.page, newer)
        swap(self, *arguments)

    monkeypatch.setattr(_Compaction, "_swap", late)
    with cerata.open(path) as store:
        store.upkeep.compact()
        assert log_of(store).toc().unknown == {"from later": 2}
        assert chunk_of(store) == (CHUNK, 3, FIELD)


def test_a_state_from_before_retention_is_not_carried(path: Path) -> None:
    """It may hold the contents that are given up; the name of the TOC and the event stay."""
    with cerata.open(path) as store:
        store.delete(1)
        store.upkeep.compact(horizon="HEAD")
        assert KEY not in log_of(store).toc().projections
        assert log_of(store).toc().unknown == NAMES
        assert event_of(store) == BODY
        with pytest.raises(HistoryPruned):
            store.files.content(1)


@pytest.mark.usefixtures("any_size")
def test_a_damaged_state_of_a_later_version_does_not_stop_a_compaction(path: Path) -> None:
    """It is derived; the events are copied with every check."""
    with cerata.open(path, mode="r") as store:
        (page,) = log_of(store).toc().saved(KEY).chunks
        (ref,) = log_of(store).file.page(page)
    data = bytearray(path.read_bytes())
    data[ref.offset + 100] ^= 1
    path.write_bytes(data)
    with cerata.open(path) as store:
        store.upkeep.compact()
        assert KEY not in log_of(store).toc().projections
        assert event_of(store) == BODY


@pytest.mark.parametrize(
    ("key", "carried"),
    [
        ("frames/7/0123456789abcdef", False),
        ("frames/6/0123456789abcdef", False),
        ("frames/7/0123456789abcdef~", False),
        ("frames/8/0123456789abcdef", True),
        ("frames/7/fedcba9876543210", True),
        ("own/1/fedcba9876543210", True),
        ("own/1/fedcba9876543210~", False),
        ("a key of another form", True),
    ],
)
def test_checkpoints_of_others_are_told_from_outdated_ones(key: str, carried: bool) -> None:
    """A compaction must not keep the states of earlier versions for ever."""
    assert is_of_others(key, ["frames/7/0123456789abcdef", "tags/1/0123456789abcdef"]) == carried


# --- earlier releases ----------------------------------------------------------------------------

RELEASES = sorted(specimen.GOLDEN.glob("*.json"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_a_file_of_each_release_goes_on(release: Path, tmp_path: Path) -> None:
    """Opened, written to, checkpointed, compacted and copied by its lines: its past stays."""
    expected = json.loads(release.read_text(encoding="utf-8"))
    path = tmp_path / "old.cera"
    path.write_bytes(specimen.golden_file())
    for step in ("opened", "written to", "checkpointed", "compacted"):
        with cerata.open(path) as store:
            STEPS[step](store)
            log = log_of(store)
            assert log.chain_at(expected["head"]).hex() == expected["chain"]
            assert log.root_at(expected["head"]).hex() == expected["root"]
            assert store.verify().ok
    lines = BytesIO()
    with cerata.open(path) as store:
        store.interchange.export_events(lines)
        digests = store.stream.digests(replay=True)
    with cerata.open(tmp_path / "copy.cera") as copy:
        copy.interchange.import_events(BytesIO(lines.getvalue()))
        assert log_of(copy).root_at(expected["head"]).hex() == expected["root"]
        assert copy.stream.digests(replay=True) == digests


def nothing_beside(*_: object) -> dict[int, dict[bytes, None]]:
    """Return no words beside those of a batch."""
    return {}


def test_an_index_of_an_earlier_version_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of an earlier index lack terms that a question has now."""
    path = tmp_path / "old.cera"
    key = registry._KEYS["fulltext"]
    with monkeypatch.context() as patch:
        patch.setattr(FulltextProjection, "version", 5)
        patch.setitem(registry._KEYS, "fulltext", projection_key(FulltextProjection()))
        earlier = registry._KEYS["fulltext"]
        # As the earlier analyzer did: nothing beside words.
        patch.setattr(beside, "ascii_words", nothing_beside)
        with cerata.open(path) as store:
            store.put_frame("class NoFizzStrategy")
            store.checkpoint()
            assert not store.search("fizz")
            assert earlier in log_of(store).toc().projections
    with cerata.open(path) as store:
        assert [hit.id for hit in store.search("fizz")] == [1]
        assert store.verify().ok
        store.checkpoint()
        assert key in log_of(store).toc().projections
