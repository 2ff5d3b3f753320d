"""What a person at a terminal gets: colours, a pager, completion, and what was probably meant."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cerata
from cerata.cli.files import holders_of

from .conftest import Run

HOLD = """
import sys
from cerata.engine.disk.storage import LockName, OsStorage
file = OsStorage().open(sys.argv[1], mode="rw")
assert file.try_lock(LockName.WRITER, exclusive=True)
print("held", flush=True)
sys.stdin.read()
"""


def command(checkout: Path) -> dict[str, str]:
    """Return the environment in which a child finds Cerata."""
    given = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "PAGER")}
    return {**given, "PYTHONPATH": str(checkout), "TERM": "xterm-256color", "COLUMNS": "80"}


def on_a_terminal(checkout: Path, folder: Path, *arguments: str, **variables: str) -> str:
    """Run the command line with a terminal as its standard output, and return what came there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cerata", *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env={**command(checkout), **variables},
    ) as child:
        os.close(theirs)
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
        assert child.wait(60) == 0
    os.close(ours)
    return b"".join(parts).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a memory of three notes."""
    with cerata.open(tmp_path / "memory.cera") as store:
        for text in ("one", "two", "three"):
            store.put_frame(f"Note {text}.", tags=["decision"])
        store.history.tag("before-the-move")
    return tmp_path


class TestColours:
    """On a terminal only, and not where they are not wanted."""

    def test_a_terminal_gets_colours(self, folder: Path, checkout: Path) -> None:
        """A log is read by its colours."""
        assert "\x1b[33m" in on_a_terminal(checkout, folder, "log", "--no-pager")

    def test_no_color_is_respected(self, folder: Path, checkout: Path) -> None:
        """The variable that every tool respects."""
        said = on_a_terminal(checkout, folder, "log", "--no-pager", NO_COLOR="1")
        assert re.search(r"\x1b\[[0-9;]*3[0-9]m", said) is None
        assert "Note three." in said

    def test_a_pipe_gets_none(self, run: Run) -> None:
        """Programs read it."""
        run("put", "x")
        assert "\x1b" not in run("log")[1]

    def test_stored_text_does_not_steer_the_terminal(self, run: Run) -> None:
        """A note may hold what clears the screen; so may a name that is not there."""
        with cerata.open("m.cera") as store:
            store.put_frame("\x1b[2Jgone", title="\x1b]0;title\x07")
        for arguments in (
            ["log"],
            ["list"],
            ["show", "1"],
            ["search", "gone"],
            ["time", "history", "1"],
        ):
            assert "\x1b" not in run(*arguments)[1]
        assert "\x1b" not in run("show", "1", "--at", "\x1b[2J")[2]


class TestBar:
    """What long work shows."""

    def test_what_is_printed_meanwhile_comes_whole_after_the_bar(
        self, folder: Path, checkout: Path
    ) -> None:
        """The bar wrote over it."""
        (folder / "notes").mkdir()
        for number in range(30):
            (folder / "notes" / f"{number:02}.md").write_text(f"Note {number}.")
        said = on_a_terminal(checkout, folder, "remember", "notes", "-v")
        assert "remembering" in said
        after = said[said.rindex("remembering") :].splitlines()
        added = [line for line in after if line.endswith(".md")]
        assert [line.split("notes/")[1] for line in added] == [f"{n:02}.md" for n in range(30)]


class TestPager:
    """Long answers, on a terminal."""

    def test_lists_go_through_the_pager(self, folder: Path, checkout: Path) -> None:
        """With the colours, which it is told to show."""
        said = on_a_terminal(checkout, folder, "log", PAGER="sed 's/^/>> /'")
        lines = said.splitlines()
        assert lines[0].startswith(">> \x1b[33mevent 4")
        assert all(line.startswith(">> ") for line in lines)

    @pytest.mark.parametrize("variables", [{"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": "no-such"}])
    def test_without_a_pager_it_is_printed(
        self, folder: Path, checkout: Path, variables: dict[str, str]
    ) -> None:
        """An answer must come whatever the pager is."""
        assert "Note one." in on_a_terminal(checkout, folder, "log", **variables)

    def test_it_can_be_left_out(self, folder: Path, checkout: Path) -> None:
        """For one call, or for Cerata alone."""
        marked = "sed 's/^/>> /'"
        assert ">>" not in on_a_terminal(checkout, folder, "log", "--no-pager", PAGER=marked)
        assert ">>" not in on_a_terminal(checkout, folder, "log", PAGER=marked, CERATA_PAGER="")

    def test_a_pager_that_is_quit_is_no_error(self, folder: Path, checkout: Path) -> None:
        """What was not shown was not wanted."""
        with cerata.open(folder / "memory.cera") as store:
            store.put_frames([f"text {number}" for number in range(5_000)])
        said = on_a_terminal(checkout, folder, "log", "-n", "5000", PAGER="head -n 1")
        assert len(said.splitlines()) == 1

    def test_a_pipe_has_none(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """A pager would wait for a key that nobody presses."""
        monkeypatch.setenv("PAGER", "false")
        run("put", "x")
        assert "event 1" in run("log")[1]


def completions(checkout: Path, folder: Path, line: str) -> set[str]:
    """Return what a shell is told for a line that is being typed."""
    answer = folder / "answer"
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    subprocess.run(
        [sys.executable, "-m", "cerata"],
        env={**command(checkout), **variables},
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return {word.strip() for word in answer.read_text().splitlines()}


class TestCompletion:
    """What the Tab key knows."""

    def test_verbs_options_and_choices_complete(self, folder: Path, checkout: Path) -> None:
        """The three things that nobody remembers."""
        assert completions(checkout, folder, "cerata re") == {
            "remember", "recall",
        }  # fmt: skip
        assert completions(checkout, folder, "cerata facts re") == {"retract"}
        assert "--max-tokens" in completions(checkout, folder, "cerata recall --m")
        assert completions(checkout, folder, "cerata recall x --format m") == {
            "markdown", "messages",
        }  # fmt: skip

    def test_memories_here_complete(self, folder: Path, checkout: Path) -> None:
        """After -f."""
        assert completions(checkout, folder, "cerata log -f mem") == {"memory.cera"}

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_each_shell_gets_its_script(self, run: Run, shell: str) -> None:
        """Which names the command."""
        code, out, _ = run("admin", "completion", shell)
        assert code == 0
        assert "cerata" in out
        if shell == "bash":
            subprocess.run(["bash", "-n"], input=out, text=True, check=True, timeout=60)


class TestWhatWasMeant:
    """A typing error, and what it should have been."""

    @pytest.mark.parametrize(
        ("arguments", "meant"),
        [
            (["serach", "x"], "Did you mean 'search'?"),
            (["forget", "1"], "Did you mean 'delete' or 'facts retract'?"),
            (["erase", "1"], "Did you mean 'delete' or 'file compact'?"),
            (["recall", "x", "--max-token", "5"], "Did you mean '--max-tokens'?"),
            (["recall", "x", "--format", "markdwon"], "Did you mean 'markdown'?"),
            (["recall", "x", "--at", "before-the-mvoe"], "Did you mean 'before-the-move'?"),
            (["recall", "x", "--at", "HAED"], "Did you mean 'HEAD'?"),
            (["recall", "x", "-f", "memroy.cera"], "Did you mean memory.cera?"),
            (["search", "--full", "titel:x"], "Did you mean title?"),
            (["search", "x", "--tag", "decison"], "did you mean 'decision'?"),
            (["list", "--kind", "txet"], "did you mean 'text'?"),
            (["file", "maintain", "--only", "rebuild", "fulltxet"], "Did you mean 'fulltext'?"),
            (["remember", "memory.cear"], "Did you mean memory.cera?"),
        ],
        ids=lambda value: "" if isinstance(value, str) else " ".join(value),
    )
    def test_the_nearest_name_is_said(
        self,
        run: Run,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        meant: str,
    ) -> None:
        """Names, verbs, options, files and filters."""
        monkeypatch.chdir(folder)
        _, _, err = run(*arguments)
        assert meant in err
        assert len(err.splitlines()) == 1

    def test_nothing_is_said_where_nothing_is_near(self, run: Run, folder: Path) -> None:
        """A guess that is none is noise."""
        for arguments in (
            ["zzzz"],
            ["recall", "x", "--at", "zzzz", "-f", "memory.cera"],
            ["put", "x", "--reason", "y"],  # was "Did you mean '--json'?": the dashes counted
        ):
            assert "Did you mean" not in run(*arguments)[2]


@contextmanager
def held(path: Path, checkout: Path) -> Generator[int]:
    """Let a child hold the writer lock, and give its number."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=command(checkout),
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(60)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who has a file open")
def test_a_locked_file_says_who_has_it_open(run: Run, folder: Path, checkout: Path) -> None:
    """A lock whose holder nobody knows is removed by force."""
    path = folder / "memory.cera"
    with held(path, checkout) as pid:
        code, _, err = run("put", "x", "-f", str(path), "--lock-timeout", "0.01")
        assert code == cerata.Locked.exit_code
        assert f"The file is open in process {pid} (" in err
        assert [holder.pid for holder in holders_of(str(path))] == [pid]
        assert f"process {pid} (" in run("file", "doctor", "-f", str(path))[1]
    assert holders_of(str(path)) == []
    assert run("put", "x", "-f", str(path), "--lock-timeout", "1")[0] == 0
