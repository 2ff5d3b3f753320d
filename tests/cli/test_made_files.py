"""Files that are made from a memory have its mode: no reader of the disk gains by an export."""

import ast
import os
import stat
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

import cerata
from cerata import Entity

from .conftest import verbs

Run = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[2]

WRITERS: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("file export", "to"): (
        ("file", "export", "--events", "events.jsonl"),
        ("file", "export", "--events", "events.jsonl.zst"),
        ("file", "export", "--facts", "facts.jsonl"),
    ),
    ("file export", "archive"): (("file", "export", "--archive", "days", "--agent", "ann"),),
    ("facts list", "plot"): (("facts", "list", "ann", "--plot", "facts.svg"),),
    ("facts graph", "plot"): (("facts", "graph", "ann", "--plot", "graph.png"),),
    ("time diff", "html"): (("time", "diff", "1", "2", "--html", "diff.html"),),
    ("log", "html"): (("log", "--who", "--html", "audit.html"),),
    ("time bisect", "html"): (
        (
            "time",
            "bisect",
            "--query",
            "tea",
            "--forbid",
            "tea",
            "--bad",
            "4",
            "--html",
            "bisect.html",
        ),
    ),
    ("file backup", "to"): (("file", "backup", "backup.cera"),),
    ("time fork", "to"): (("time", "fork", "fork.cera"),),
    ("file doctor", "to"): (("file", "doctor", "--repair", "--to", "repaired.cera"),),
    # A profile takes many judged queries; the module is one of those without an `open` below.
    ("admin tune", "to"): (),
}
"""The commands that write a file, by verb and the argument that names the file."""

OUTPUTS = {"to", "html", "plot", "archive"}
NO_OUTPUTS = {("facts graph", "to"): "an entity"}


def output_arguments() -> Iterator[tuple[str, str]]:
    for words, one in verbs().items():
        for argument in one._actions:
            if argument.dest in OUTPUTS:
                yield words, argument.dest


@pytest.fixture
def umask() -> Generator[None]:
    """With no mask, only the code keeps others out."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_every_argument_that_names_an_output_has_a_command() -> None:
    """A new verb that writes a file has to be tried below."""
    assert set(output_arguments()) - NO_OUTPUTS.keys() == WRITERS.keys()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644], ids=oct)
def test_every_command_writes_files_of_the_memorys_mode(run: Run, umask: None, mode: int) -> None:
    """An export of a memory with mode 600 could be read by everyone."""
    with cerata.open("memory.cera") as store:
        store.put_frame("Ann likes tea.", role="user", uri="session:1")
        store.put_frame("She hates milk.", role="user", uri="session:1")
        store.assert_fact("ann", "likes", Entity("tea"))
        store.assert_fact("ann", "hates", Entity("milk"))
        cerata.Agent(store, "ann").session("s-1").message("user", "The build fails.")
    Path("memory.cera").chmod(mode)
    before = {path for path in Path().rglob("*") if path.is_file()}
    for commands in WRITERS.values():
        for command in commands:
            files = {path for path in Path().rglob("*") if path.is_file()}
            code, out, err = run(*command, "-f", "memory.cera")
            written = {path for path in Path().rglob("*") if path.is_file()} - files
            assert len(written) == 1, (command, code, out, err)
    written = {path for path in Path().rglob("*") if path.is_file()} - before
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in written} == {
        path.name: oct(mode) for path in written
    }
    assert run("file", "compact", "-f", "memory.cera")[0] == 0
    assert stat.S_IMODE(Path("memory.cera").stat().st_mode) == mode


def test_a_file_has_its_mode_before_its_content(umask: None, tmp_path: Path) -> None:
    """Another user who opened the file in between would keep reading."""
    path = tmp_path / "memory.cera"
    with cerata.open(str(path)) as store:
        store.put_frame("private")
        path.chmod(0o600)
        modes: list[int] = []

        def look(_done: int, _total: int) -> None:
            modes.extend(stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob(".*.partial"))

        store.interchange.export_events(str(tmp_path / "events.jsonl"), progress=look)
    assert set(modes) == {0o600}


def test_of_a_memory_without_a_file_only_the_owner_reads(umask: None, tmp_path: Path) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("private")
        store.interchange.export_events(str(tmp_path / "events.jsonl"))
        store.backup(str(tmp_path / "backup.cera"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


ROOMS = ("engine", "projections", "replay", "retrieval", "memory", "agents", "aio", "cli")
CREATORS = {"engine/disk/storage.py", "memory/interchange/line_files.py"}


def creations(text: str) -> list[str]:
    """Return the calls of a module that could create a file."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found: list[str] = []
    for call in calls:
        name = ast.unparse(call.func).rpartition(".")[2]
        words = {
            node.value
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]
            for node in ast.walk(argument)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        creates = name == "open" and (
            any(word[:1] in {"w", "x", "a"} and set(word) <= set("wxabt+") for word in words)
            or "O_CREAT" in ast.unparse(call)
        )
        if creates or name in {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile"}:
            found.append(ast.unparse(call))
    return found


def test_no_other_module_creates_a_file() -> None:
    """One function gives the mode; a file that is created elsewhere has that of the process."""
    paths = [
        path for room in (*ROOMS, "integrations", "packs") for path in (ROOT / room).rglob("*.py")
    ]
    found = {
        str(path.relative_to(ROOT)): calls
        for path in paths
        if (calls := creations(path.read_text(encoding="utf-8")))
    }
    assert found.keys() <= CREATORS, found
    assert creations('beside.open("xb")') == ["beside.open('xb')"]
