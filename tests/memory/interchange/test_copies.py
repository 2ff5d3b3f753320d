"""A copy made of lines is the log: ids, times, salts, contents, chain, root and digests."""

import base64
import json
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Conflict, Diverged, HistoryPruned, InvalidInput, NotFound, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.events import Attachment, Draft, Erase, JsonValue, PutFrame, UnknownBody
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import NESTING_MAX
from cerata.engine.log import Log
from cerata.replay.fold import replay

from ...engine.words import PATH, Disk, erasing, stored
from ...format.specimen import golden_file
from ...inside import log_of
from ...replay.drawn import history, written
from .exchange import bring, copied, identity, lines_of, lines_of_log


def texts(store: Store) -> set[str]:
    """Return the texts of the current frames, empty for an erased frame."""
    return {frame.text for frame in store.frames()}


def whole(log: Log) -> list[tuple[object, ...]]:
    """Return everything of a log's events that is stored, with their attachments."""
    attachments = [log.reader.attachments(log.snapshot, event.seq) for event in log.read()]
    return list(zip(stored(log.read()), attachments, strict=True))


def test_every_structure_of_the_format_comes_out_equal() -> None:
    """Spills, erased events, unknown types, keys, attachments, a clock that went back."""
    with Disk.holding(golden_file()).log() as log:
        lines = lines_of_log(log)
        expected = whole(log)
        head = log.log_id, log.head.chain, log.head.root
    disk = Disk()
    with cerata.open(PATH, environment=disk.environment) as copy:
        result = bring(copy, lines)
        assert (result.added, result.is_copy, result.is_whole) == (len(expected), True, True)
        assert copy.verify().ok
    with disk.log() as log:
        assert whole(log) == expected
        assert (log.log_id, log.head.chain, log.head.root) == head


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 120))
def test_random_histories_come_out_equal(seed: int, events: int) -> None:
    """Every kind of event, anomalies and erased events among them."""
    with written(history(Random(seed), events)) as log:
        lines = lines_of_log(log)
        expected = stored(log.read()), log.log_id, log.head.chain, log.head.root
        digests = replay(log).digests()

    def check(copy: Store) -> object:
        log = log_of(copy)
        found = stored(log.read()), log.log_id, log.head.chain, log.head.root
        assert found == expected
        return copy.stream.digests()

    assert copied(lines, check) == digests


def test_a_log_without_events_gives_its_id() -> None:
    with cerata.open(":memory:") as store:
        assert copied(lines_of(store), identity) == identity(store)


def test_floats_and_texts_keep_every_bit() -> None:
    """The body is for people: a reader that formatted its floats again would change the hash."""
    metadata: dict[str, JsonValue] = {
        "a": [1e22, 1e-7, -0.0, 0.1 + 0.2, 5e-324, 1.0],
        "z": "\u2028 \x07 é 😀",
    }
    with cerata.open(":memory:") as store:
        store.put_frame("x", metadata=metadata)
        expected = next(store.log()).payload_bytes
        lines = lines_of(store)
    # A hash may have "1e22", too.
    exponent = lines.replace(b"[1e22", b"[1e+22")
    assert exponent != lines
    for text in (lines, exponent, lines.replace(b'"body"', b'"other"')):
        assert copied(text, lambda copy: next(copy.log()).payload_bytes) == expected


def test_large_contents_come_in_parts() -> None:
    """A line has at most 8 MiB, so a payload or attachment over 1 MiB is cut."""
    blobs = [bytes([number]) * size for number, size in enumerate((5, 3 << 20, 600_000, 600_000))]
    with cerata.open(":memory:") as store:
        store.put_frame("x" * (2 << 20) + "é")
        body = UnknownBody(kind="blobs", kind_version=1, data=b"\x80")
        log_of(store).append([Draft(body, attachments=tuple(blobs))])
        lines = lines_of(store)
        expected = identity(store)
    assert max(map(len, lines.splitlines())) < 2 << 20
    rows = [json.loads(row) for row in lines.splitlines()]
    assert [row["item"] for row in rows if row["type"] == "part"] == [
        *["payload"] * 3,
        *[1] * 3,
        3,
    ]
    assert copied(lines, identity) == expected
    assert copied(
        lines, lambda copy: log_of(copy).reader.attachments(log_of(copy).snapshot, 2)
    ) == (tuple(blobs))


def test_a_deep_body_is_left_out_of_its_line() -> None:
    """Metadata may nest as deep as a line, and a line holds it one level deeper."""
    deep: JsonValue = 1
    for _ in range(NESTING_MAX - 1):
        deep = [deep]
    with cerata.open(":memory:") as store:
        store.put_frame("x", metadata={"deep": deep})
        lines = lines_of(store)
        assert b'"body"' not in lines
        assert copied(lines, identity) == identity(store)


def test_erased_events_stay_erased() -> None:
    disk = Disk()
    with disk.log() as log, erasing(2):
        log.append([Draft(PutFrame(text=text)) for text in ("kept", "gone", "kept too")])
    with cerata.open(PATH, environment=disk.environment) as store:
        lines, expected = lines_of(store), identity(store)
    assert b"commitment" in lines
    assert copied(lines, identity) == expected
    # Only closed frames are erased, so the copy has no current frame in its place.
    assert copied(lines, texts) == {"kept", "kept too"}


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.zst"])
def test_a_path_is_written_whole_and_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"])
        assert store.interchange.export_events(path).to_dict() == {
            "first": 1,
            "last": 2,
            "count": 2,
        }
        with pytest.raises(Conflict, match="exists"):
            store.interchange.export_events(path)
        with pytest.raises(NotFound):
            store.interchange.export_events(tmp_path / "none" / name)
        expected = identity(store)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    with cerata.open(":memory:") as copy:
        assert copy.interchange.import_events(path).added == 2
        assert identity(copy) == expected


def test_a_refused_export_leaves_no_file(tmp_path: Path) -> None:
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"])
        with pytest.raises(InvalidInput, match="inside the batch"):
            store.interchange.export_events(tmp_path / "a", at=1)
        with pytest.raises(InvalidInput, match="from 1 to 2"):
            store.interchange.export_events(tmp_path / "a", first=3)
    assert list(tmp_path.iterdir()) == []


def test_a_store_with_a_scope_exports_nothing() -> None:
    """The lines have every event, of other tenants too."""
    with cerata.open(":memory:") as store:
        store.put_frame("a", options=cerata.PutOptions(scope={"tenant": "bob"}))
        with pytest.raises(InvalidInput, match="has a scope"):
            lines_of(store.scoped({"tenant": "ann"}))


def test_progress_counts_to_the_end() -> None:
    calls: list[tuple[int, int]] = []

    def note(count: int, total: int) -> None:
        calls.append((count, total))

    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"])
        store.put_frame("c")
        lines = lines_of(store, progress=note)
        assert calls == [(2, 3), (3, 3)]
    with cerata.open(":memory:") as copy:
        copy.interchange.import_events(BytesIO(lines), progress=note)
        assert calls[-1] == (5, len(lines))


# --- continuing ----------------------------------------------------------------------------------


def test_a_copy_goes_on_at_its_head() -> None:
    with cerata.open(":memory:") as store, cerata.open(":memory:") as copy:
        store.put_frames(["a", "b"])
        bring(copy, lines_of(store))
        store.put_frames(["c", "d", "e"])
        result = bring(copy, lines_of(store))
        assert (result.added, result.known) == (3, 2)
        assert bring(copy, lines_of(store, at=2)).known == 2
        assert identity(copy) == identity(store)
        assert copy.put_frame("f").id == 6
        assert bring(copy, lines_of(store)).added == 0
        store.put_frame("g")
        with pytest.raises(Diverged, match="by event 6"):
            bring(copy, lines_of(store))


def test_an_export_may_begin_inside_the_log() -> None:
    with cerata.open(":memory:") as store, cerata.open(":memory:") as copy:
        store.put_frames(["a", "b"])
        bring(copy, lines_of(store))
        store.put_frames(["c", "d", "e"])
        store.put_frame("f")
        late = lines_of(store, first=6)
        with pytest.raises(InvalidInput, match="begins after event 5"):
            bring(copy, late)
        assert bring(copy, lines_of(store, first=4)).added == 4
        assert bring(copy, late).known == 1
        assert identity(copy) == identity(store)
        with cerata.open(":memory:") as empty, pytest.raises(InvalidInput, match="begins after"):
            bring(empty, late)


def test_a_resumed_import_never_starts_inside_a_batch() -> None:
    """A batch of three events that the copy lacks comes whole, whatever the cut."""
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b", "c"])
        store.put_frames(["d", "e", "f"])
        store.put_frame("g")
        lines = lines_of(store)
        expected = identity(store)
    for cut in range(lines.index(b"\n") + 1, len(lines), 37):
        with cerata.open(":memory:") as copy:
            result = bring(copy, lines[:cut])
            assert not result.is_whole or cut == len(lines) - 1
            assert result.head in (0, 3, 6, 7)
            assert bring(copy, lines).is_whole
            assert identity(copy) == expected


def test_a_last_line_without_its_line_end_counts() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        lines = lines_of(store)
    assert lines.endswith(b"}\n")
    with cerata.open(":memory:") as copy:
        assert bring(copy, lines[:-1]).is_whole
    with cerata.open(":memory:") as copy:
        event = lines[: lines.rindex(b"\n", 0, -1)]
        result = bring(copy, event)
        assert (result.added, result.is_whole) == (1, False)


def test_an_import_does_not_bring_erased_content_back() -> None:
    """An older export has the content; the commitments agree, and the copy keeps its own."""
    with cerata.open(":memory:") as store:
        store.put_frames(["kept", "gone"])
        store.put_frame("late")
        older = lines_of(store)
    rows = [json.loads(row) for row in older.splitlines()]
    erased_row = rows[2]
    with cerata.open(":memory:") as full:
        bring(full, older)
        commitment = log_of(full).event(2).commitment
        expected = identity(full)[:4]
    for name in ("salt", "payload", "scope", "body"):
        del erased_row[name]
    erased_row["commitment"] = base64.b64encode(commitment).decode()
    newer = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    with cerata.open(":memory:") as copy:
        bring(copy, newer)
        assert bring(copy, older).known == 3
        assert texts(copy) == {"kept", "late"}
        assert copy.frame(2).kind == "erased"
        assert identity(copy)[:4] == expected
    with cerata.open(":memory:") as full:
        bring(full, older)
        result = bring(full, newer)
        assert (result.erased, result.added) == (1, 0)
        assert texts(full) == {"kept", "gone", "late"}


def test_a_copy_of_a_pruned_log_has_its_horizon() -> None:
    """Without it, a view of the past would show frames without their contents."""
    with cerata.open(PATH, environment=Disk().environment) as store:
        old = store.put_frame("Rome", options=cerata.PutOptions(key="k"))
        store.history.tag("then")
        gone = store.put_frame("Oslo")
        before = lines_of(store)
        store.supersede(old, "Paris")
        store.delete(gone)
        store.upkeep.compact(horizon="HEAD")
        store.put_frame("later")
        lines, expected = lines_of(store), identity(store)
        after = lines_of(store, first=4)

    def check(copy: Store) -> object:
        assert log_of(copy).erased == 7
        with pytest.raises(HistoryPruned):
            copy.at(4)
        with pytest.raises(HistoryPruned):
            copy.files.content(gone.ids[0])
        assert copy.at("then").frame(old.ids[0]).text == "Rome"
        return identity(copy)

    assert copied(lines, check) == expected
    for rest in (lines, after):
        # A copy from before keeps the contents that it has, and so its past.
        with cerata.open(PATH, environment=Disk().environment) as copy:
            bring(copy, before)
            result = bring(copy, rest)
            assert result.erased == (rest is lines)
            assert copy.head.root == expected[3]
            assert log_of(copy).erased == 0
            assert copy.files.content(gone.ids[0]) == b"Oslo"
            assert {frame.text for frame in copy.at(3).frames()} == {"Rome", "Oslo"}
            assert {frame.text for frame in copy.frames()} == {"Paris", "later"}
            assert copy.verify().ok


def test_a_pruned_log_goes_into_another_without_the_frames_that_are_gone() -> None:
    with cerata.open(PATH, environment=Disk().environment) as store:
        old = store.put_frame("Rome")
        store.supersede(old, "Paris")
        store.upkeep.compact(horizon="HEAD")
        lines = lines_of(store)
    with cerata.open(":memory:") as target:
        target.put_frame("here")
        result = bring(target, lines)
        assert texts(target) == {"here", "Paris"}
        assert result.skipped == {"erase": 1, "putFrame": 1, "supersedeFrame": 1}
        assert bring(target, lines).added == 0
        assert log_of(target).erased == 0


def test_an_erase_event_of_a_stranger_hides_nothing() -> None:
    """Lines can name any horizon and any targets; the newest state stays readable."""
    for targets in (((1, 1),), ((9_999, 1),), ((-3, 2**40),), ()):
        disk = Disk()
        with disk.log() as log:
            log.append([Draft(PutFrame(text="kept"))])
            log.append([Draft(Erase(targets=targets, reason="x", horizon=2**60))])
            lines = lines_of_log(log)
        assert copied(lines, texts) == {"kept"}


def test_a_fork_is_another_history() -> None:
    with (
        cerata.open(":memory:") as store,
        store.upkeep.fork() as fork,
        cerata.open(":memory:") as copy,
    ):
        store.put_frame("a")
        fork.put_frame("b")
        bring(copy, lines_of(store))
        with pytest.raises(Diverged):
            bring(copy, lines_of(fork))
        assert copied(lines_of(fork), lambda one: len(one.upkeep.branches())) == 1


def test_attachments_are_checked_when_exported() -> None:
    data = b"blob" * 9
    with cerata.open(":memory:") as store:
        body = PutFrame(blob=Attachment(hash_bytes(data), len(data)))
        store.append(Draft(body, attachments=(data,)))
        assert copied(lines_of(store), lambda copy: copy.files.content(1)) == data


def test_writers_on_one_empty_file_do_not_mix() -> None:
    environment = Environment.in_memory()
    with (
        cerata.open(":memory:") as source,
        cerata.open("a", environment=environment) as first,
        cerata.open("a", environment=environment) as second,
    ):
        source.put_frame("a")
        bring(first, lines_of(source))
        assert second.head.log_id == source.head.log_id
        assert second.put_frame("b").id == 2
        assert first.verify().ok


def test_zstd_of_two_frames_is_one_file(tmp_path: Path) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        lines = lines_of(store)
        expected = identity(store)
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(lines[:100]) + zstandard.compress(lines[100:]))
    with cerata.open(":memory:") as copy:
        assert copy.interchange.import_events(path).is_whole
        assert identity(copy) == expected
