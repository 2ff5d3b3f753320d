# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The memory tool: the texts of the SDK's tool on files, versions, isolation and hostile input."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic.lib.tools", reason="needs the extra anthropic")

from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

import cerata
from cerata.integrations.anthropic import (
    CerataAsyncMemoryTool,
    CerataMemoryTool,
    RefusedCommand,
)

from ..test_docs import ROOT, blocks, run_block

pytestmark = pytest.mark.anthropic


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


@pytest.fixture
def tool(memory: cerata.Store) -> CerataMemoryTool:
    return CerataMemoryTool(memory)


def call(tool: Any, command: str, path: str | None = None, **arguments: Any) -> str:
    """Return the answer of a tool, or the content of its error."""
    named = arguments if path is None else {"path": path, **arguments}
    try:
        return str(tool.call({"command": command, **named}))
    except ToolError as error:
        return str(error.content)


def later(tool: CerataAsyncMemoryTool) -> Any:
    """Return a tool whose calls run an async tool to their end."""

    class Tool:
        def call(self, command: Any) -> Any:
            return asyncio.run(tool.call(command))

    return Tool()


# --- the texts ------------------------------------------------------------------------------------

paths = st.sampled_from(
    ["/memories", *(f"/memories/{name}" for name in ("a", "b.txt", "d/a", "d/e/f", "d/.x", ".h"))]
)
texts = st.text(st.sampled_from("xy\n\r "), max_size=6)
commands = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": paths},
        optional={"view_range": st.lists(st.integers(-1, 4), max_size=3)},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": paths, "old_str": texts, "new_str": texts}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": paths,
            "insert_line": st.integers(-1, 4),
            "insert_text": texts,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)


def without_directories(answer: str) -> str:
    """Return a listing without the sizes of directories, which are those of a file system."""
    return re.sub(r"(?m)^\S+\t(\S*/|/memories(?:/d(?:/e)?)?)$", r"-\t\1", answer)


def remove_empty(folder: Path) -> None:
    """Remove the directories without a file, which a memory does not have."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@settings(max_examples=100, deadline=None)
@given(st.lists(commands, min_size=1, max_size=12), st.booleans())
def test_answers_are_those_of_the_tool_on_files(drawn: list[Any], is_async: bool) -> None:
    """Texts and errors are equal, and so are the files at the end."""
    with TemporaryDirectory() as folder, cerata.open(":memory:") as memory:
        files = BetaLocalFilesystemMemoryTool(folder)
        tool: Any = CerataMemoryTool(memory)
        if is_async:
            tool = later(CerataAsyncMemoryTool(memory))
        for command in drawn:
            try:
                expected = call(files, **command)
            except OSError:
                # A path below itself, or below a file: the tool on files has no text for it.
                expected = None
            answer = call(tool, **command)
            remove_empty(files.memory_root)
            if expected is None:
                assert re.match("Cannot rename|The path .* is not a directory", answer), command
            else:
                assert without_directories(answer) == without_directories(expected), command
        stored = {frame.uri: frame for frame in memory.frames()}
        kept = [path for path in files.memory_root.rglob("*") if path.is_file()]
        assert {f"/memories/{path.relative_to(files.memory_root)}" for path in kept} == set(stored)
        assert memory.verify().ok


def test_a_listing_has_two_levels_and_no_hidden_names(tool: CerataMemoryTool) -> None:
    """A directory has the size of its files, and is listed if all of them are hidden."""
    call(tool, "create", "/memories/h/.x", file_text="12345")
    hidden = call(tool, "view", "/memories")
    assert hidden.splitlines()[1:] == ["5B\t/memories", "5B\t/memories/h/"]
    call(tool, "delete", "/memories/h")
    for path in ("z", "d/a", "d/e/f", "d/.x", ".h"):
        call(tool, "create", f"/memories/{path}", file_text="12345")
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden"
    assert call(tool, "view", "/memories").splitlines() == [
        f"{header} items:",
        "25B\t/memories",
        "15B\t/memories/d/",
        "5B\t/memories/d/a",
        "5B\t/memories/d/e/",
        "5B\t/memories/z",
    ]


def test_the_definition_is_that_of_the_sdk(memory: cerata.Store) -> None:
    """The model gets Anthropic's tool."""
    control: Any = {"type": "ephemeral"}
    for kind in (CerataMemoryTool, CerataAsyncMemoryTool):
        assert kind(memory).to_dict() == {"type": "memory_20250818", "name": "memory"}
        assert kind(memory, cache_control=control).to_dict()["cache_control"] == control


# --- versions -------------------------------------------------------------------------------------


def test_each_edit_is_a_version_and_each_undo_goes_back_by_one(
    memory: cerata.Store, tool: CerataMemoryTool
) -> None:
    """Undo writes a version too, so the past keeps all of them."""
    path = "/memories/notes.txt"
    call(tool, "create", path, file_text="one")
    call(tool, "str_replace", path, old_str="one", new_str="two")
    call(tool, "insert", path, insert_line=1, insert_text="three")
    contents = ["two\nthree\n", "two", "one"]
    for content in contents:
        frame = memory.get(path)
        assert frame is not None
        assert frame.text == content
        if content != "one":
            assert tool.undo(path) == f"Successfully restored {path}"
    with pytest.raises(RefusedCommand, match="There is no version"):
        tool.undo(path)
    frame = memory.get(path)
    assert frame is not None
    versions = [memory.frame(entry.id).text for entry in memory.history.of(frame)]
    assert versions == ["one", "two", "two\nthree\n", "two", "one"]
    call(tool, "str_replace", path, old_str="one", new_str="four")
    assert asyncio.run(CerataAsyncMemoryTool(memory).undo(path)) == f"Successfully restored {path}"
    frame = memory.get(path)
    assert frame is not None
    assert frame.text == "one"
    assert memory.recall("one").text


def test_undo_brings_back_a_deleted_file(memory: cerata.Store, tool: CerataMemoryTool) -> None:
    """And then the version before."""
    path = "/memories/d/a"
    call(tool, "create", path, file_text="")
    call(tool, "insert", path, insert_line=0, insert_text="text")
    call(tool, "delete", "/memories/d")
    assert "does not exist" in call(tool, "view", "/memories/d")
    tool.undo(path)
    assert call(tool, "view", path).endswith("     1\ttext\n     2\t")
    tool.undo(path)
    assert call(tool, "view", path).endswith("     1\t")
    call(tool, "delete", path)
    call(tool, "create", f"{path}/b", file_text="x")
    with pytest.raises(RefusedCommand, match="is not a file"):
        tool.undo(path)
    with pytest.raises(RefusedCommand, match="does not exist"):
        tool.undo("/memories/none")
    assert memory.verify().ok


def test_undo_of_a_renamed_file_moves_it_back(tool: CerataMemoryTool) -> None:
    """Unless its path is taken."""
    call(tool, "create", "/memories/a", file_text="text")
    call(tool, "rename", old_path="/memories/a", new_path="/memories/b")
    call(tool, "create", "/memories/a", file_text="taken")
    with pytest.raises(RefusedCommand, match="The destination /memories/a already exists"):
        tool.undo("/memories/b")
    call(tool, "delete", "/memories/a")
    assert tool.undo("/memories/b") == "Successfully restored /memories/a"
    assert call(tool, "view", "/memories/a").endswith("\ttext")
    assert "does not exist" in call(tool, "view", "/memories/b")


def test_all_files_are_cleared_as_one_batch(memory: cerata.Store, tool: CerataMemoryTool) -> None:
    """Other frames stay."""
    memory.put_frame("a note")
    for name in "abc":
        call(tool, "create", f"/memories/{name}", file_text=name)
    before = memory.head.seq
    assert tool.clear_all_memory() == "All memory cleared"
    assert len({event.header.last_seq for event in memory.log() if event.seq > before}) == 1
    assert len(memory) == 1
    assert asyncio.run(CerataAsyncMemoryTool(memory).clear_all_memory()) == "All memory cleared"


# --- isolation and hostile input ------------------------------------------------------------------

names = st.text(st.sampled_from("ab%_.*:?#\\"), min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..")
)
places = st.tuples(st.sampled_from(["t", "t2", "%"]), st.lists(names, min_size=1, max_size=2))


@settings(max_examples=40, deadline=None)
@given(st.lists(places, min_size=1, max_size=5))
def test_no_command_sees_or_changes_another_scope(drawn: list[tuple[str, list[str]]]) -> None:
    """Narrower and wider scopes have no files, and a name is no pattern."""
    with cerata.open(":memory:") as memory:

        def tool(tenant: str, **more: str) -> CerataMemoryTool:
            return CerataMemoryTool(memory.scoped({"tenant": tenant, **more}))

        files: dict[tuple[str, str], str] = {}
        for tenant, segments in drawn:
            path = "/memories/" + "/".join(segments)
            text = f"file {tenant} {path}"
            if call(tool(tenant, user="u"), "create", path, file_text=text).startswith("File cr"):
                files[tenant, path] = text
        state = memory.head.seq
        for tenant, path in files:
            for foreign in (tool(tenant), tool(tenant, user="v"), tool("else", user="u")):
                assert len(call(foreign, "view", "/memories").splitlines()) == 2
                for command, more in (
                    ("view", {}),
                    ("str_replace", {"old_str": "file", "new_str": "x"}),
                    ("insert", {"insert_line": 0, "insert_text": "x"}),
                    ("delete", {}),
                ):
                    assert "does not exist" in call(foreign, command, path, **more)
                answer = call(foreign, "rename", old_path=path, new_path="/memories/new")
                assert "does not exist" in answer
                with pytest.raises(RefusedCommand):
                    foreign.undo(path)
                foreign.clear_all_memory()
        assert memory.head.seq == state
        for (tenant, path), text in files.items():
            assert call(tool(tenant, user="u"), "view", path).endswith(f"\t{text}")


def test_no_name_of_a_file_is_a_row_of_a_listing(
    memory: cerata.Store, tool: CerataMemoryTool
) -> None:
    """A program may put any URI, which forged a row of a file that is not there."""
    memory.put_frame("x", kind="anthropic.file", uri="/memories/a\n9K\t/memories/secret")
    rows = call(tool, "view", "/memories").splitlines()[2:]
    assert rows == ["1B\t/memories/a 9K /", "1B\t/memories/a 9K /memories/"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "Path must start with /memories, got: /etc/passwd"),
        ("/memoriesx", "Path must start with /memories, got: /memoriesx"),
        ("memories/a", "Path must start with /memories, got: memories/a"),
        ("", "Path must start with /memories, got: "),
        ("/memories/../a", "Path /memories/../a would escape /memories directory"),
        ("/memories/a/..", "Path /memories/a/.. would escape /memories directory"),
        ("/memories//a", "Path /memories//a has an empty segment."),
        ("/memories/a/", "Path /memories/a/ has an empty segment."),
        ("/memories/./a", 'Path /memories/./a has a segment "."'),
        ("/memories/a\0b", "Path has a control character or a line end, got: '/memories/a"),
        ("/memories/a\n4.0K\t/memories/b", "Path has a control character or a line end"),
        ("/memories/a\r5B\t/memories/b", "Path has a control character or a line end"),
        ("/memories/a\u2028b", "Path has a control character or a line end"),
        ("/memories/a\u202eb", "Path has a control character or a line end"),
        ("x\n/memories", "Path has a control character or a line end"),
        ("/memories/\ud800", "Path must be a text"),
        (3, "Path must be a text, got: 3"),
    ],
)
def test_a_wrong_path_is_refused_by_every_command(
    memory: cerata.Store, tool: CerataMemoryTool, path: Any, message: str
) -> None:
    """Nothing is written; the error is the SDK's and Cerata's."""
    call(tool, "create", "/memories/x", file_text="x")
    state = memory.head.seq
    runs: list[Callable[[], Any]] = [
        lambda: tool._files.view(path, None),
        lambda: tool._files.create(path, "x"),
        lambda: tool._files.str_replace(path, "x", "y"),
        lambda: tool._files.insert(path, 0, "y"),
        lambda: tool._files.delete(path),
        lambda: tool._files.rename(path, "/memories/y"),
        lambda: tool._files.rename("/memories/x", path),
        lambda: tool.undo(path),
    ]
    for run in runs:
        with pytest.raises(RefusedCommand) as caught:
            run()
        assert str(caught.value.content).startswith(message)
        assert caught.value.remedy
        assert isinstance(caught.value, ToolError)
        assert isinstance(caught.value, cerata.InvalidInput)
    assert memory.head.seq == state


def test_wrong_arguments_are_refused(memory: cerata.Store, tool: CerataMemoryTool) -> None:
    """A missing text is no empty file; a frame of another kind is never replaced."""
    call(tool, "create", "/memories/x", file_text="x")
    memory.put_frame("a note", uri="/memories/note")
    state = memory.head.seq
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: tool._files.create("/memories/y", None), "file_text must be a text"),
        (lambda: tool._files.create("/memories/y", "\ud800"), "file_text must be a text"),
        (lambda: tool._files.create("/memories/x/y", "y"), "/memories/x is not a directory"),
        (lambda: tool._files.create("/memories/note", "y"), 'kind "text" has the URI'),
        (lambda: tool._files.str_replace("/memories/x", 3, "y"), "old_str must be a text"),
        (lambda: tool._files.insert("/memories/x", "0", "y"), "Invalid `insert_line`"),
        (lambda: tool._files.view("/memories/x", ["1", 2]), "view_range must be"),
        (lambda: CerataMemoryTool("brain.cera"), "store must be"),  # type: ignore[arg-type]
    ]
    for run, message in wrong:
        with pytest.raises(cerata.InvalidInput, match=message) as caught:
            run()
        assert caught.value.remedy
    for each in (tool, later(CerataAsyncMemoryTool(memory))):
        assert call(each, "format", "/memories/x") == "Unknown command: format"
        assert call(each, "view") == "Path must be a text, got: None"
        assert call(each, "create", "/memories/y") == "file_text must be a text, got: None"
        assert call(each, "insert", "/memories/x", insert_text="y").startswith("Invalid `insert_l")
        with pytest.raises(RefusedCommand, match="Unknown command: None"):
            each.call("view")
    assert memory.head.seq == state


# --- writers at the same time ---------------------------------------------------------------------

INSERTS = """
import sys
import cerata
from cerata.integrations.anthropic import CerataMemoryTool
with cerata.open(sys.argv[1]) as store:
    tool = CerataMemoryTool(store)
    for number in range(12):
        path = "/memories/log"
        tool.call({"command": "insert", "path": path, "insert_line": 0, "insert_text": sys.argv[2]})
"""


def test_no_edit_of_two_processes_is_lost(tmp_path: Path) -> None:
    """Each edit changes the newest version."""
    path = str(tmp_path / "brain.cera")
    with cerata.open(path) as memory:
        call(CerataMemoryTool(memory), "create", "/memories/log", file_text="")
    commands = [[sys.executable, "-c", INSERTS, path, name] for name in "ab"]
    running = [subprocess.Popen(each, stderr=subprocess.PIPE, text=True) for each in commands]
    assert [process.communicate(timeout=120)[1] for process in running] == ["", ""]
    with cerata.open(path) as memory:
        frame = memory.get("/memories/log")
        assert frame is not None
        assert sorted(frame.text.split()) == ["a"] * 12 + ["b"] * 12
        assert memory.verify().ok


def test_a_file_is_created_once_and_is_no_directory(tmp_path: Path) -> None:
    """By threads that create a file, and a file below its path, at the same time."""
    path = str(tmp_path / "brain.cera")
    with cerata.open(path) as first, cerata.open(path) as second:
        for number in range(10):
            name = f"/memories/{number}"
            start = threading.Barrier(3)

            def create(store: cerata.Store, file: str, start: threading.Barrier = start) -> str:
                start.wait()
                return call(CerataMemoryTool(store), "create", file, file_text="x")

            files = ((first, name), (second, name), (second, f"{name}/below"))
            with ThreadPoolExecutor(3) as executor:
                calls = [executor.submit(create, *arguments) for arguments in files]
                answers = [each.result() for each in calls]
            assert len([each for each in answers if each.startswith("File created")]) == 1
        assert len(first) == 10


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing, without a model."""
    page = ROOT / "docs" / "anthropic.md"
    program = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    assert run_block(program, tmp_path).splitlines()[-1] == "     1\tanna likes tea"
