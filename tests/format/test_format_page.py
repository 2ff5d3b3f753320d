"""docs/format.md and engine/format say the same: offsets, sizes, constants, kinds, tags, fields."""

import re
import struct
from types import ModuleType

import msgspec
import pytest
from blake3 import blake3

from cerata.engine import limits
from cerata.engine.codec import SpillRef, WireBatch, WireEvent
from cerata.engine.events import EventBody, EventHeader, Payload
from cerata.engine.format import checksums as checks
from cerata.engine.format import extent, footer, page, record, toc, witness
from cerata.engine.segments import segment_index

from ..kinds import cerata_kinds
from . import page as document
from . import specimen

CODES = re.compile(r"(\d*)([a-zA-Z])")
TYPES = {"Q": "u64", "q": "i64", "I": "u32", "H": "u16", "s": "bytes"}

STRUCTURES: list[tuple[str, list[str]]] = [
    ("Header page", [page._LAYOUT.format]),
    ("Witness", [witness._LAYOUT.format, "<24s"]),
    ("Record header", [record._HEADER.format]),
    ("Record prefix", [record._PREFIX.format]),
    ("Extent header", [extent._LAYOUT.format, "<8s"]),
    ("Segment and spill body", [segment_index.SEGMENT_PREFIX.format]),
    ("Footer", [footer._LAYOUT.format, "<8s"]),
]
"""Headings, and the formats of the structs that follow each other there."""


def fields_of(formats: list[str]) -> list[tuple[int, int, str]]:
    """Return (offset, size, type) of each field of structs that follow each other."""
    found: list[tuple[int, int, str]] = []
    at = 0
    for layout in formats:
        assert layout[0] == "<"
        for count, code in CODES.findall(layout[1:]):
            pieces = [f"{count}s"] if code == "s" else [code] * int(count or 1)
            for piece in pieces:
                size = struct.calcsize("<" + piece)
                found.append((at, size, TYPES[piece[-1]]))
                at += size
    return found


def rows_of(heading: str) -> list[tuple[int, int, str]]:
    return [
        (document.number(row["offset"]), document.number(row["size"]), row["type"])
        for row in document.table(heading)
    ]


@pytest.mark.parametrize(("heading", "formats"), STRUCTURES)
def test_field_tables_match_the_structs(heading: str, formats: list[str]) -> None:
    """A layout that is written in two places drifts unless something compares them."""
    rows = rows_of(heading)
    fields = fields_of(formats)
    assert rows[: len(fields)] == fields
    ends = [offset + size for offset, size, _ in rows]
    assert [offset for offset, _, _ in rows] == [0, *ends[:-1]]


def test_header_page_is_described_to_its_last_byte() -> None:
    """What is not described cannot be read by others, nor given a meaning later."""
    zero, check = rows_of("Header page")[-2:]
    assert zero == (page.PAGE_FIELDS_SIZE, page._CHECK_OFFSET - page.PAGE_FIELDS_SIZE, "")
    assert check == (page._CHECK_OFFSET, page.PAGE_CHECK_SIZE, "bytes")
    assert sum(check[:2]) == limits.PAGE_SIZE


def test_header_page_fields_are_in_the_order_of_the_code() -> None:
    """Two fields of one size, exchanged, would pass the test above."""
    said = [row["field"].split(":")[0].split(" of ")[0] for row in document.table("Header page")]
    assert said[0:2] == ["magic", "version"]
    assert said[3].startswith("flags")
    coded = list(page.HeaderPage.__struct_fields__)
    coded.remove("moved")
    assert [said[2], *said[4:-2]] == [
        name.replace("_", " ").replace("toc", "TOC") for name in coded
    ]


def test_constants_are_those_of_the_code() -> None:
    """Magics and flags."""
    (constants, _) = document.tables("Constants")
    modules: dict[str, ModuleType] = {
        "page": page,
        "record": record,
        "extent": extent,
        "footer": footer,
        "witness": witness,
    }
    for row in constants:
        module, name = row["name"].replace("`", "").split()
        shown = row["value"].partition("(")[0].replace("`", "").strip()
        value: object = getattr(modules[module], name)
        assert (value.hex(" ").upper() if isinstance(value, bytes) else str(value)) == shown
    assert len(constants) == 7


def test_limits_are_those_of_the_code() -> None:
    """All of them, none other."""
    (_, rows) = document.tables("Constants")
    shown = {row["limit"].strip("`"): document.number(row["value"]) for row in rows}
    assert shown == {name: value for name, value in vars(limits).items() if name.isupper()}


def test_extent_kinds_are_those_of_the_code() -> None:
    """A number given twice would read one thing as another."""
    shown = {row["name"]: int(row["kind"]) for row in document.table("Extent kinds")}
    assert shown == {kind.name: kind.value for kind in extent.ExtentKind}


def test_check_tags_and_sizes_are_those_of_the_code() -> None:
    """A tag keeps the check of one structure from passing for another's."""
    tags = {
        value.decode(): name.removeprefix("TAG_").lower().replace("_", " ")
        for name, value in vars(checks).items()
        if name.startswith("TAG_")
    }
    named = {"toc": "TOC", "index": "segment index", "page": "header page"}
    (covered,) = document.tables("Checks")
    shown = {row["tag"]: row["structure"] for row in covered}
    assert shown == {tag: named.get(name, name) for tag, name in tags.items()}
    sizes = {row["tag"]: int(row["size"]) for row in covered}
    short, block, whole = checks.CHECK_SIZE_SHORT, checks.CHECK_SIZE_BLOCK, checks.CHECK_SIZE
    assert sizes == {
        "r": short,
        "R": whole,
        "e": short,
        "E": whole,
        "b": block,
        "i": whole,
        "T": whole,
        "F": short,
        "P": page.PAGE_CHECK_SIZE,
        "W": whole,
    }


def test_file_key_is_derived_as_described() -> None:
    """The one string that a reader cannot guess."""
    context = re.search(r"with the context\s+`([^`]*)`", document.text())
    assert context is not None
    file_id = bytes(range(16))
    assert checks.file_key(file_id) == blake3(file_id, derive_key_context=context[1]).digest()


def test_numbers_in_the_prose_are_those_of_the_code() -> None:
    """References a manifest page holds, and cuts the TOC remembers."""
    from cerata.engine.log_file import writer

    assert f"at most {toc.MANIFEST_ENTRIES_MAX}; the writer moves out {toc._FANOUT}" in (
        document.text()
    )
    assert f"When a level reaches {toc._FANOUT}," in document.text()
    assert f"the newest {writer._QUARANTINE_REFS_MAX}" in document.text()
    assert f"multiple of {segment_index.COLUMN_ALIGNMENT}" in document.text()


# --- MessagePack values --------------------------------------------------------------------------


def rule(name: str) -> str:
    """Return a CDDL rule without its comments."""
    found = re.search(rf"^{name} = (.*?)(?=^\S+ = |\Z)", document.cddl(), re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return re.sub(r";.*", "", found[1]).strip()


ARRAYS: list[tuple[str, type[msgspec.Struct]]] = [
    ("record-content", WireBatch),
    ("spill-ref", SpillRef),
    ("segment-index", segment_index.SegmentIndex),
    ("event-header", EventHeader),
    ("payload", Payload),
]


@pytest.mark.parametrize(("name", "coded"), ARRAYS)
def test_arrays_have_the_fields_of_the_code_in_order(
    name: str, coded: type[msgspec.Struct]
) -> None:
    """An array on disk has no names; its order is all there is."""
    outer = rule(name)[1:-1]
    while (inner := re.sub(r"\[[^][]*\]|\([^()]*\)|\{[^{}]*\}", "x", outer)) != outer:
        outer = inner
    said: list[str] = re.findall(r"([\w-]+):", outer)
    renamed = {"body-length": "length"}
    assert [renamed.get(word, word).replace("-", "_") for word in said] == list(
        coded.__struct_fields__
    )


def test_wire_event_and_rows_have_as_many_fields_as_in_the_code() -> None:
    """Their CDDL nests, so they are only counted."""
    assert WireEvent.__struct_fields__ == (
        *("type", "version", "causation", "salt", "payload", "attachments"),
    )
    assert len(segment_index.BatchRow.__struct_fields__) == 5
    assert len(segment_index.CutRow.__struct_fields__) == 2
    assert len(segment_index.BlockRow.__struct_fields__) == 5
    assert segment_index.ColumnRow.__struct_fields__ == tuple(
        name.replace("-", "_") for name in re.findall(r"([\w-]+):", rule("column"))
    )


def documented_bodies() -> dict[str, type[EventBody]]:
    return {kind.wire_name: kind for kind in cerata_kinds()}


def test_every_kind_of_event_is_described() -> None:
    """A kind that is not described cannot be read by others."""
    assert set(documented_bodies()) <= document.rules()
    assert len(documented_bodies()) > 20


@pytest.mark.parametrize("name", sorted(documented_bodies()))
def test_bodies_have_the_fields_of_the_code(name: str) -> None:
    """Same names, same order; optional exactly where the code has a default."""
    said = re.findall(r'(\? )?"(\w+)":', rule(name))
    coded = [
        (not field.required, field.encode_name)
        for field in msgspec.structs.fields(documented_bodies()[name])
    ]
    assert [(bool(optional), field) for optional, field in said] == coded


def test_defaults_are_those_of_the_code() -> None:
    """A default is left out on disk: were it changed, old events would change their meaning."""
    said: dict[str, str] = {}
    (rows,) = [rows for rows in document.tables("Event") if "default" in rows[0]]
    for row in rows[:-1]:
        for field in re.findall(r"`(\w+)`", row["field"]):
            said[field] = row["default"].strip("`")
    coded: dict[str, str] = {}
    for body in documented_bodies().values():
        for field in msgspec.structs.fields(body):
            default: object = field.default
            if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            if default is not msgspec.NODEFAULT and default is not None:
                coded[field.encode_name] = msgspec.json.encode(default).decode()
    assert coded == said


# --- the worked example --------------------------------------------------------------------------


def test_worked_example_is_what_the_engine_writes() -> None:
    """Byte by byte; `specimen.example_lines` makes it anew."""
    assert document.example() == specimen.example_lines()


def test_worked_example_is_cut_into_the_whole_record() -> None:
    """The parts fill the record's sectors, and are what they are said to be."""
    assert sum(size for size, _ in specimen.EXAMPLE_PARTS) == limits.SECTOR_SIZE
    data = specimen.example_file()[specimen.EXAMPLE_OFFSET :]
    content = data[record.RECORD_OVERHEAD : record.RECORD_HEADER_SIZE + 129]
    at = record.RECORD_OVERHEAD
    assert data[at : at + len(content)] == content
    recorded, clock, batch, spill, seed = msgspec.msgpack.decode(content)
    assert (recorded, clock, spill, seed) == (1_700_000_001_000_000, None, None, None)
    ((name, version, causation, salt, payload, attachments),) = batch
    assert (name, version, causation, salt, attachments) == (
        "putFrame",
        1,
        None,
        bytes([4] * 16),
        [],
    )
    assert msgspec.msgpack.decode(payload) == [
        *([["tenant", "default"]], None, None, None, None, None),
        {"text": "Wax keeps."},
    ]
