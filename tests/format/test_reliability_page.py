"""docs/reliability.md: its decision table row by row on damaged files, its names and commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from blake3 import blake3

from cerata.engine import errors as errors_module
from cerata.engine.errors import Corrupt, Unsupported
from cerata.engine.events import Draft, PutTag
from cerata.engine.format.toc import decode_toc
from cerata.engine.log_file.recovery import RecoveryReport
from cerata.engine.open import open_log

from . import specimen
from .reader import Reader

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"

Damage = Callable[[bytearray, Reader], None]


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


# --- names ---------------------------------------------------------------------------------------


def test_report_fields_on_the_page_are_those_of_the_code() -> None:
    """All fields but the one that says who looked."""
    section = text().partition("## Recovery")[2].partition("## Figures")[0]
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", section))
    fields = set(RecoveryReport.__struct_fields__)
    assert named == fields - {"alone"}


def test_errors_on_the_page_exist() -> None:
    """A renamed error would leave the page behind."""
    named = set(re.findall(r"`([A-Z][a-zA-Z]+)`", text()))
    assert named
    assert {name for name in named if not hasattr(errors_module, name)} == set()


def test_commands_on_the_page_have_their_files() -> None:
    """A claim whose command does not exist is a wish."""
    missing: set[str] = set()
    # The fence of an example, "```python run", is no command.
    commands = re.findall(r"(?<!`)`python ([^`]*)`", text())
    assert commands
    for command in commands:
        words = command.split()
        if words[:2] == ["-m", "pytest"]:
            names = words[2:]
        elif words[0] == "-m":
            module = words[1].removeprefix("cerata.").replace(".", "/")
            names = [f"{module}/__main__.py" if (ROOT / module).is_dir() else f"{module}.py"]
        else:
            names = words[:1]
        missing |= {name for name in names if not (ROOT / name).exists()}
    assert missing == set()


# --- goals ---------------------------------------------------------------------------------------

GOALS = {*range(1, 16), 20, 21, 22, 24}
"""Those of issue 5. The others belong to parts that do not exist yet."""

CLAIMS = re.compile(
    r"\b(acknowledged|any number of processes|atomic|corrupt|crash|damage|detect|drift|durab|"
    r"edited|guarantee|intact|kill|lies\b|lose|loss|lost|never|power|prove|recover|repair|restore|"
    r"robust|safe|surviv|tamper|torn|verif)\w*",
    re.IGNORECASE,
)
"""Words that a reader takes for a promise about his data."""

LINE = re.compile(r"\(docs/reliability\.md#([\w-]+)\)")


def goal_rows() -> dict[str, list[str]]:
    """Return the cells of each goal's line, by the line's own anchor."""
    rows = re.findall(r'^\| <a id="(g\d+)"></a>(.*) \|$', text(), re.MULTILINE)
    return {anchor: [cell.strip() for cell in cells.split(" | ")] for anchor, cells in rows}


def claims(page: str) -> list[str]:
    """Return the sentences and list items of a page's prose that say something of reliability.

    Code, and the links at the end that only say where to read on, are no claims.
    """
    body = page.partition("\n## More\n")[0]
    prose = re.sub(r"^```.*?^```$", "", body, flags=re.DOTALL | re.MULTILINE)
    lines = re.sub(r"\n +| *\n(?=[^\n#-])", " ", prose)
    sentences = re.split(r"(?<=\.) |\n", lines)
    return [one for one in sentences if CLAIMS.search(LINE.sub("", one))]


def unproven(page: str) -> list[str]:
    """Return the claims without a line on the reliability page."""
    headings = re.findall(r"^#+ (.*)$", text(), re.MULTILINE)
    lines = goal_rows().keys() | {name.lower().replace(" ", "-") for name in headings}
    return [
        one for one in claims(page) if not set(LINE.findall(one)) or set(LINE.findall(one)) - lines
    ]


def test_every_goal_has_its_line() -> None:
    """What it is, a command, the day that it was measured, and what came of it."""
    rows = goal_rows()
    assert rows.keys() == {f"g{number}" for number in GOALS}
    for anchor, (name, goal, command, date, figure) in rows.items():
        assert name == anchor.upper()
        assert goal
        assert "`" in command
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
        assert re.search(r"\d", figure)


def test_every_word_of_readme_on_reliability_has_its_line() -> None:
    """A promise that nothing is measured for is none."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(claims(readme)) >= 6
    assert unproven(readme) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Your data survives anything.",
        "It is [never lost](docs/reliability.md#g16).",
        "It is [never lost](docs/decisions/engine.md).",
        "- It\n  tells tampering",
    ],
)
def test_a_claim_without_a_line_is_found(sentence: str) -> None:
    """The rule above, seen failing."""
    assert len(unproven(f"# A\n\nOne is [killed](docs/reliability.md#g13).\n\n{sentence}\n")) == 1


# --- the decision table --------------------------------------------------------------------------


def build(dead: bytes = b"", *, killed: bool = False) -> bytes:
    """Return a closed file: events 1 to 3 sealed, 4 to 6 in the ring, a mark, and dead bytes.

    A killed writer left no mark, and witnesses for the events 4 and 5.
    """
    place = specimen.environment(specimen.counted_bytes())
    log = open_log(specimen.PATH, environment=place, ring_bytes=specimen.RING_SIZE)
    for number in range(3):
        log.append([Draft(PutTag(tag=f"sealed-{number}", at=1))])
    log.seal()
    for number in range(3):
        log.append([Draft(PutTag(tag=f"ring-{number}", at=1))])
    left = specimen.contents(place)
    log.close()
    return (left if killed else specimen.contents(place)) + dead


def opened(data: bytes, mode: str = "rw", *, salvage: bool = False) -> tuple[RecoveryReport, int]:
    """Open a file with these bytes; return the report and how many events can be read.

    What was opened for writing is opened again, and there is nothing left to do.
    """
    place = specimen.environment(specimen.counted_bytes())
    file = place.storage.create(specimen.PATH)
    file.write_at(0, data)
    file.close()
    with open_log(
        specimen.PATH,
        mode="r" if mode == "r" else "rw",
        environment=place,
        salvage=salvage,
    ) as log:
        found = log.report, sum(1 for _ in log.read())
    if mode == "rw" and not salvage:
        with open_log(specimen.PATH, environment=place) as log:
            assert log.report.is_clean
            assert sum(1 for _ in log.read()) == found[1]
    return found


def flip(*offsets: int) -> Damage:
    def damage(data: bytearray, reader: Reader) -> None:
        for offset in offsets:
            data[offset] ^= 0xFF

    return damage


def ring(sector: int, content: bytes) -> Damage:
    """Overwrite from a sector after ring start: 0 to 2 hold events 4 to 6, 3 the mark."""

    def damage(data: bytearray, reader: Reader) -> None:
        at = reader.head["ring_start"] + 512 * sector
        data[at : at + len(content)] = content

    return damage


def in_ring(sector: int) -> Damage:
    """Change one byte of a record's body."""

    def damage(data: bytearray, reader: Reader) -> None:
        data[reader.head["ring_start"] + 512 * sector + 60] ^= 0xFF

    return damage


def older_page_only(data: bytearray, reader: Reader) -> None:
    data[4096 * reader.head["number"] + 30] ^= 0xFF


def newer_page_only(data: bytearray, reader: Reader) -> None:
    data[4096 * (1 - reader.head["number"]) + 30] ^= 0xFF


def older_pages(data: bytearray, reader: Reader) -> None:
    """As a kill between a flip's two syncs leaves it: both pages older than the footer."""
    spare = 1 - reader.head["number"]
    body = data[4096 * spare : 4096 * spare + 4064]
    number = reader.head["number"]
    body[10:12] = number.to_bytes(2, "little")
    place = b"P" + (4096 * number).to_bytes(8, "little")
    data[4096 * number : 4096 * number + 4096] = body + blake3(place + bytes(body)).digest()


def in_toc(data: bytearray, reader: Reader) -> None:
    data[reader.head["toc"] + 20] ^= 0xFF


def in_footer(data: bytearray, reader: Reader) -> None:
    data[reader.head["data_end"] - 512 + 20] ^= 0xFF


def in_witness(number: int) -> Damage:
    def damage(data: bytearray, reader: Reader) -> None:
        data[witness_offsets(reader)[number] + 20] ^= 0xFF

    return damage


def witness_offsets(reader: Reader) -> tuple[int, int]:
    return reader.head["ring"] - 4096, reader.head["ring"] + reader.head["ring_size"]


TORN_CUT = {"cut_bytes": 512, "ambiguous_tail": True}

ROWS: list[tuple[str, list[Damage], Mapping[str, object], int]] = [
    ("nothing", [], {}, 6),
    ("killed, a footer newer than both pages", [older_pages], {"adopted_footer": True}, 6),
    ("bytes that nothing names", [ring(-1, b"")], {"trimmed_bytes": 1000}, 6),
    ("the newer page", [older_page_only], {"adopted_footer": False}, 6),
    ("killed, the newer page", [older_page_only], {"adopted_footer": True}, 6),
    ("the older page", [newer_page_only], {}, 6),
    ("the TOC", [in_toc], {"rebuilt_toc": True, "sealed_events": 3}, 6),
    ("the footer", [in_footer], {"rebuilt_toc": True, "sealed_events": 3}, 6),
    ("no mark", [ring(3, bytes(512))], {"sealed_events": 0, "cut_bytes": 0}, 6),
    ("killed", [], {"sealed_events": 3, "cut_bytes": 0}, 6),
    ("witness 0", [in_witness(0)], {"bad_witnesses": (0,), "sealed_events": 0}, 6),
    ("killed, both witnesses", [in_witness(0), in_witness(1)], {"bad_witnesses": (0, 1)}, 6),
    ("a torn mark", [in_ring(3)], TORN_CUT | {"cut_records": 1, "sealed_events": 3}, 6),
    (
        "killed, a torn last record",
        [in_ring(2)],
        TORN_CUT | {"cut_records": 1, "sealed_events": 2},
        5,
    ),
    ("garbage after the mark", [ring(4, b"\7" * 512)], TORN_CUT | {"cut_records": 0}, 6),
]


@pytest.mark.parametrize(("name", "damages", "reported", "events"), ROWS, ids=[r[0] for r in ROWS])
def test_recovery_decides_as_the_table_says(
    name: str, damages: Sequence[Damage], reported: Mapping[str, object], events: int
) -> None:
    """Each row on a file that shows it; who only reads sees the same events."""
    dead = b"\0" * 1000 if name == "bytes that nothing names" else b""
    data = bytearray(build(dead, killed=name.startswith("killed")))
    reader = Reader(bytes(data))
    for damage in damages:
        damage(data, reader)
    report, count = opened(bytes(data))
    assert {field: getattr(report, field) for field in reported} == reported
    assert count == events
    assert bool(report.bad_pages) == (name.endswith(("the newer page", "the older page")))
    assert opened(bytes(data), "r")[1] == events


def test_the_rest_of_an_unsynced_group_is_cut() -> None:
    """Of three unsynced records the second did not reach the disk; the third proves nothing."""
    place = specimen.environment(specimen.counted_bytes())
    log = open_log(specimen.PATH, environment=place, ring_bytes=specimen.RING_SIZE, sync=1 << 20)
    for number in range(3):
        log.append([Draft(PutTag(tag=f"unsynced-{number}", at=1))])
    data = bytearray(specimen.contents(place))
    log.close()
    ring(1, bytes(512))(data, Reader(bytes(data)))
    report, count = opened(bytes(data))
    assert (report.cut_bytes, report.cut_records, report.sealed_events) == (1024, 1, 1)
    assert report.ambiguous_tail
    assert count == 1


def test_every_reported_field_has_a_row() -> None:
    """A field that no row shows could say anything."""
    shown = {field for _, _, reported, _ in ROWS for field in reported} | {"bad_pages"}
    fields = set(RecoveryReport.__struct_fields__)
    assert fields - shown == {"alone", "cut_offset"}


@pytest.mark.parametrize(
    ("damages", "error"),
    [
        ([flip(30, 4096 + 30)], Corrupt),
        ([flip(0, 4096)], Unsupported),
        ([flip(8, 4096 + 8)], Unsupported),
        ([in_ring(1)], Corrupt),
        ([ring(1, bytes(512))], Corrupt),
        ([in_ring(2)], Corrupt),
        ([ring(2, bytes(1024))], Corrupt),
        ([ring(0, bytes(2048))], Corrupt),
        ([ring(0, bytes(2048)), in_witness(1)], Corrupt),
        ([in_witness(0), in_witness(1)], Corrupt),
        ([ring(0, bytes(2048)), in_witness(0), in_witness(1), older_page_only], Corrupt),
    ],
    ids=[
        *("both pages", "magic", "version", "torn, proven", "zeroed, proven", "last, proven"),
        *("last and mark zeroed", "all zeroed", "all zeroed and a witness", "both witnesses"),
        "all zeroed, both witnesses and the newer page",
    ],
)
def test_recovery_refuses_what_the_table_says(
    damages: Sequence[Damage], error: type[Exception]
) -> None:
    """Acknowledged data that cannot be read is never passed over."""
    data = bytearray(build())
    reader = Reader(bytes(data))
    for damage in damages:
        damage(data, reader)
    for mode in ("r", "rw"):
        with pytest.raises(error):
            opened(bytes(data), mode)


def test_salvage_reads_up_to_the_hole() -> None:
    """Five acknowledged events, the fifth unreadable: four are served."""
    data = bytearray(build())
    in_ring(1)(data, Reader(bytes(data)))
    assert opened(bytes(data), salvage=True)[1] == 4


def test_a_file_cut_short_is_refused() -> None:
    """What the header page names must be there."""
    with pytest.raises(Corrupt, match="truncated"):
        opened(build()[:-512])


def test_names_of_later_versions_in_the_toc_are_carried() -> None:
    """A writer that does not know a name must not drop it."""
    place = specimen.environment(specimen.counted_bytes())
    with open_log(specimen.PATH, environment=place, ring_bytes=specimen.RING_SIZE) as log:
        toc = msgspec.structs.replace(log.toc(), unknown={"later": {"answer": [42]}})
        log.reader.remember_toc(log.page, toc)
        log.append([Draft(PutTag(tag="one", at=1))])
        log.seal()
    for _ in range(2):
        with open_log(specimen.PATH, environment=place) as log:
            log.append([Draft(PutTag(tag="more", at=1))])
            log.seal()
    reader = Reader(specimen.contents(place))
    assert reader.toc["later"] == {"answer": [42]}
    data = specimen.contents(place)[reader.head["toc"] :][: reader.head["toc_size"]]
    assert decode_toc(data, 0).unknown == {"later": {"answer": [42]}}
