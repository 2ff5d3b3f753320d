"""Lines of an untrusted file: refused with their number, and nothing half done."""

import json
import struct
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
import zstandard

import cerata
from cerata import InvalidInput, Unsupported
from cerata.memory.interchange import line_blocks, line_files
from cerata.memory.interchange.event_lines import LINE_SIZE_MAX

from .exchange import bring, changed, lines_of


@pytest.fixture(scope="module")
def lines() -> bytes:
    """A line of a log, a batch of two events, a batch of one, and an end line."""
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"])
        store.put_frame("c", metadata={"n": 1.5})
        return lines_of(store)


def refused(lines: bytes, where: str, match: str, head: int | None = None) -> None:
    """Check that lines are refused at a place, and that the whole batches before it stay."""
    with cerata.open(":memory:") as store:
        with pytest.raises(InvalidInput, match=match) as error:
            bring(store, lines)
        assert error.value.where is not None
        assert error.value.where.startswith(where)
        line = int(error.value.where.removeprefix("line ").partition(",")[0])
        stays = head if head is not None else 0 if line <= 3 else 2 if line == 4 else 3
        assert store.head.seq == stays
        assert ("are imported" in error.value.what) == (stays > 0)
        assert store.verify().ok


def edited(lines: bytes, place: int, old: bytes, new: bytes) -> bytes:
    rows = lines.splitlines(keepends=True)
    assert old in rows[place]
    rows[place] = rows[place].replace(old, new, 1)
    return b"".join(rows)


@pytest.mark.parametrize("in_body", [False, True])
def test_a_name_twice_in_an_object(lines: bytes, in_body: bool) -> None:
    old = b'"n":1.5' if in_body else b'"salt"'
    new = b'"n":1.5,"n":1.5' if in_body else b'"salt":"x","salt"'
    refused(edited(lines, 3, old, new), "line 4", "twice")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_number_that_json_lacks(lines: bytes, number: bytes) -> None:
    refused(edited(lines, 3, b"1.5", number), "line 4", "which JSON lacks")


def test_bytes_that_are_not_utf8(lines: bytes) -> None:
    refused(edited(lines, 2, b'"text":"b"', b'"text":"\xff"'), "line 3", "UTF-8")
    refused(edited(lines, 2, b'"text":"b"', b'"text":"\xed\xa0\x80"'), "line 3", "UTF-8")


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("levels", [61, 62, 100_000])
def test_deep_nesting(lines: bytes, levels: int, opening: bytes, closing: bytes) -> None:
    """The object of the line, its body and the metadata are three levels of 64."""
    deep = edited(lines, 3, b"1.5", levels * opening + b"1" + levels * closing)
    if levels > 61:
        refused(deep, "line 4", "nests deeper than 64")
        return
    with cerata.open(":memory:") as store:
        assert bring(store, deep).is_whole


def test_brackets_in_texts_do_not_nest() -> None:
    with cerata.open(":memory:") as store, cerata.open(":memory:") as copy:
        store.put_frame('[{"' * 500)
        assert bring(copy, lines_of(store)).is_whole


@pytest.mark.parametrize("extra", [0, 3 << 20])
def test_a_line_over_the_limit(lines: bytes, extra: int) -> None:
    padding = b" " * (LINE_SIZE_MAX + extra)
    refused(edited(lines, 3, b"{", b"{" + padding), "line 4", "over the limit")


def test_a_line_of_the_limit_is_read(lines: bytes) -> None:
    size = len(lines.splitlines()[3])
    padded = edited(lines, 3, b"{", b"{" + b" " * (LINE_SIZE_MAX - size))
    with cerata.open(":memory:") as store:
        assert bring(store, padded).is_whole


CHANGES: dict[str, tuple[int, Callable[[dict[str, Any]], object], str]] = {
    "payload": (2, lambda row: row.update(payload=_flipped(row["payload"])), "line 3"),
    "payload of no writer": (1, lambda row: row.update(payload="gA=="), "line 2"),
    "salt": (3, lambda row: row.update(salt=24 * "A"), "line 4"),
    "short salt": (3, lambda row: row.update(salt="AAAA"), "line 4"),
    "base64": (3, lambda row: row.update(salt="%%%%"), "line 4"),
    "no payload": (3, lambda row: row.pop("payload"), "line 4"),
    "both": (3, lambda row: row.update(commitment=43 * "A" + "="), "line 4"),
    "seq": (3, lambda row: row["header"].__setitem__(0, 4), "line 4"),
    "time": (2, lambda row: row["header"].__setitem__(1, 1), "line 3"),
    "time of a batch": (3, lambda row: row["header"].__setitem__(1, 1), "line 4"),
    "late time": (3, lambda row: row["header"].__setitem__(1, 1 << 63), "line 4"),
    "number of another type": (3, lambda row: row["header"].__setitem__(1, "x"), "line 4"),
    "type": (3, lambda row: row["header"].__setitem__(3, "deleteFrame"), "line 4"),
    "empty type": (3, lambda row: row["header"].__setitem__(3, ""), "line 4"),
    "version": (3, lambda row: row["header"].__setitem__(4, -1), "line 4"),
    "index": (2, lambda row: row["header"].__setitem__(5, 0), "line 3"),
    "count": (1, lambda row: row["header"].__setitem__(6, 10_001), "line 2"),
    "causation": (3, lambda row: row["header"].__setitem__(7, 1 << 70), "line 4"),
    "short header": (3, lambda row: row["header"].pop(), "line 4"),
    "chain": (3, lambda row: row.update(chain=64 * "0"), "line 4"),
    "no chain": (3, lambda row: row.pop("chain"), "line 4"),
    "chain inside": (1, lambda row: row.update(chain=64 * "0"), "line 2"),
    "parts": (3, lambda row: row.update(payload={"parts": 1, "size": 3}), "line 4"),
    "kind of line": (3, lambda row: row.update(type="evil"), "line 4"),
    "end count": (4, lambda row: row.update(count=4), "line 5"),
    "end chain": (4, lambda row: row.update(chain=64 * "0"), "line 5"),
    "end root": (4, lambda row: row.update(root="x"), "line 5"),
    "log id": (0, lambda row: row.update(log_id="00"), "line 1"),
    "created": (0, lambda row: row.update(created=1 << 64), "line 1"),
    "no head": (0, lambda row: row.pop("head"), "line 1"),
}


def _flipped(text: str) -> str:
    return ("B" if text[-4] == "A" else "A").join((text[:-4], text[-3:]))


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_line_is_refused(lines: bytes, name: str) -> None:
    place, change, where = CHANGES[name]
    refused(changed(lines, place, change), where, ".")


def test_a_false_root_is_reported_at_the_end_line(lines: bytes) -> None:
    false = changed(lines, 4, lambda row: row.update(root=64 * "0"))
    refused(false, "line 5", "another root", head=3)


@pytest.mark.parametrize(
    ("order", "where"),
    [
        ([1, 2, 3, 4], "line 1"),
        ([0, 0, 1, 2, 3, 4], "line 2"),
        ([0, 2, 1, 3, 4], "line 2"),
        ([0, 1, 3, 4], "line 3"),
        ([0, 1, 4], "line 3"),
        ([0, 3, 4], "line 2"),
        ([0, 1, 2, 3, 4, 4], "line 6"),
        ([0, 1, 2, 3, 4, 3], "line 6"),
    ],
)
def test_lines_in_another_order(lines: bytes, order: list[int], where: str) -> None:
    rows = lines.splitlines(keepends=True)
    refused(b"".join(rows[place] for place in order), where, ".")


@pytest.mark.parametrize("text", [b"", b"\n", b"{}\n", b"[]\n", b"no\n", b'{"type":"log"'])
def test_no_lines_of_events(text: bytes) -> None:
    refused(text, "line 1", ".")


@pytest.mark.parametrize(
    "fields", [{"format": "cerata-events/2"}, {"features": {"read": 1}}, {"crypt": {}}]
)
def test_a_newer_dialect(lines: bytes, fields: dict[str, Any]) -> None:
    newer = changed(lines, 0, lambda row: row.update(fields))
    with cerata.open(":memory:") as store, pytest.raises(Unsupported, match="Upgrade"):
        bring(store, newer)


def test_parts_of_another_event(lines: bytes) -> None:
    part = {"type": "part", "seq": 3, "item": "payload", "part": 0, "data": "AAAA"}
    for change in ({}, {"seq": 2}, {"part": 1}, {"item": 64}, {"item": -1}, {"item": "x"}):
        rows = lines.splitlines(keepends=True)
        rows.insert(3, json.dumps({**part, **change}).encode() + b"\n")
        refused(b"".join(rows), "line 4" if change else "line 5", ".", head=2)


def test_blank_lines_and_spaces_change_nothing(lines: bytes) -> None:
    spaced = b"\n".join(
        json.dumps(json.loads(row), indent=None).encode() + b" \r\n" for row in lines.splitlines()
    )
    with cerata.open(":memory:") as store:
        assert bring(store, spaced).is_whole
        assert store.head.seq == 3


@pytest.mark.parametrize("size", [1, 7, 64, 700])
def test_short_reads_give_the_same_lines(
    lines: bytes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_blocks, "READ_SIZE", size)
    with cerata.open(":memory:") as store:
        assert bring(store, lines).is_whole
    refused(edited(lines, 3, b"1.5", b"NaN"), "line 4", "which JSON lacks", head=2)


@pytest.mark.parametrize("is_copy", [True, False])
def test_the_batches_before_a_damaged_line_stay_imported(is_copy: bool) -> None:
    """The error names the line and what is imported; a whole file then adds the rest."""
    with cerata.open(":memory:") as store:
        for number in range(6):
            store.put_frames([f"a{number}", f"b{number}"])
        lines = lines_of(store)
    for place in range(1, 13):
        rows = lines.splitlines(keepends=True)
        rows[place] = rows[place][: len(rows[place]) // 2] + b"\n"
        with cerata.open(":memory:") as target:
            if not is_copy:
                target.put_frame("mine")
            with pytest.raises(InvalidInput) as error:
                bring(target, b"".join(rows))
            assert error.value.where == f"line {place + 1}"
            whole = (place - 1) // 2 * 2
            assert len(list(target.frames())) == whole + (not is_copy)
            assert not whole or f"{whole} events before it are imported" in error.value.what
            assert bring(target, lines).added == 12 - whole
            assert target.verify().ok


# --- zstd ----------------------------------------------------------------------------------------


def test_the_batches_before_damage_of_zstd_stay_imported(tmp_path: Path) -> None:
    """A read returns the bytes before the damage, and the next read raises."""
    with cerata.open(":memory:") as store:
        for number in range(600):
            store.put_frame(f"note {number}")
        lines = lines_of(store)
    part = lines[: len(lines) // 2]
    path = tmp_path / "events.jsonl.zst"
    path.write_bytes(zstandard.compress(part) + zstandard.compress(lines)[:4] + 500 * b"x")
    with cerata.open(":memory:") as store:
        with pytest.raises(InvalidInput, match="decompressed") as error:
            store.interchange.import_events(path)
        # A step of decompression is lost at most.
        assert part.count(b"\n") - 1 >= store.head.seq > part[: -(1 << 14)].count(b"\n") - 1 > 0
        assert f"{store.head.seq} events before it are imported" in error.value.what


def brought(path: Path, data: bytes) -> cerata.ImportedEvents:
    path.write_bytes(data)
    with cerata.open(":memory:") as store:
        return store.interchange.import_events(path)


def test_a_bomb_is_stopped_at_the_limit_of_a_line(tmp_path: Path, lines: bytes) -> None:
    """4 GiB of spaces are a few hundred KiB; they are never in memory at once."""
    first = lines[: lines.index(b"\n") + 1]
    frame = zstandard.compress(b" " * (16 << 20))
    with pytest.raises(InvalidInput, match="over the limit") as error:
        brought(tmp_path / "bomb.zst", zstandard.compress(first) + frame * 256)
    assert error.value.where == "line 2"


def test_a_bomb_of_empty_lines_is_stopped_by_its_size(
    tmp_path: Path, lines: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few MB of them are read for hours, each line in a moment."""
    monkeypatch.setattr(line_files, "_CONTENT_SIZE_MIN", 1 << 20)
    first = lines[: lines.index(b"\n") + 1]
    bomb = zstandard.compress(first) + zstandard.compress(b"\n" * (8 << 20))
    with pytest.raises(InvalidInput, match="over 256 times its size"):
        brought(tmp_path / "bomb.zst", bomb)
    monkeypatch.setattr(line_files, "_CONTENT_SIZE_MIN", 0)
    assert brought(tmp_path / "whole.zst", zstandard.compress(lines)).is_whole


def test_damaged_or_wide_frames_are_refused(tmp_path: Path, lines: bytes) -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(lines))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InvalidInput, match="decompressed"):
        brought(tmp_path / "damaged.zst", bytes(packed))
    # A frame header that asks for a window of 2 GiB.
    wide = struct.pack("<IBB", 0xFD2FB528, 0, (31 - 10) << 3) + b"\x01\x00\x00"
    with pytest.raises(InvalidInput, match="decompressed"):
        brought(tmp_path / "wide.zst", wide)
    with pytest.raises(InvalidInput, match="decompressed"):
        brought(tmp_path / "plain.zst", lines)


def test_a_cut_frame_is_a_cut_file(tmp_path: Path, lines: bytes) -> None:
    first = lines[: lines.index(b"\n") + 1]
    packed = zstandard.compress(lines[len(first) :])
    result = brought(tmp_path / "cut.zst", zstandard.compress(first) + packed[: len(packed) - 9])
    assert (result.is_whole, result.head) == (False, result.added)


# --- arguments -----------------------------------------------------------------------------------


def test_files_that_are_none(tmp_path: Path) -> None:
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.NotFound):
            store.interchange.import_events(tmp_path / "none.jsonl")
        with pytest.raises(InvalidInput):
            store.interchange.import_events(tmp_path)
        with pytest.raises(InvalidInput):
            store.interchange.import_events(7)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="bytes"):
            store.interchange.import_events(StringIO("x"))  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            store.interchange.export_events(7)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            store.interchange.export_events(BytesIO(), first="1")  # type: ignore[arg-type]


def test_not_in_a_transaction_nor_when_reading(tmp_path: Path, lines: bytes) -> None:
    path = tmp_path / "a.cera"
    with (
        cerata.open(path) as store,
        store.transaction(),
        pytest.raises(InvalidInput, match="transaction"),
    ):
        bring(store, lines)
    with cerata.open(path, mode="r") as store, pytest.raises(cerata.ReadOnly):
        bring(store, lines)
