"""When things go wrong at the command line: one answer, its exit code, and nothing lost."""

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

import cerata
from cerata.cli import log, main
from cerata.engine.disk.storage import LockName, OsStorage
from cerata.engine.format.page import RING_OFFSET
from cerata.engine.limits import STRING_SIZE_MAX

from ..inside import log_of

Run = Callable[..., tuple[int, str, str]]

FILE = "memory.cera"


@contextmanager
def writer_lock(path: str) -> Generator[None]:
    """Hold the writer lock as a process would that is stopped in the middle of an append."""
    file = OsStorage().open(path, mode="rw")
    assert file.try_lock(LockName.WRITER, exclusive=True)
    try:
        yield
    finally:
        file.close()


class TestLocked:
    """Somebody else holds the file."""

    def test_a_locked_file_exits_with_4_and_loses_nothing(self, run: Run) -> None:
        """The write is refused whole; the same call later succeeds."""
        run("put", "first")
        with writer_lock(FILE):
            code, out, err = run("put", "second", "--lock-timeout", "0.01")
            assert (code, out) == (cerata.Locked.exit_code, "")
            assert err.startswith("error: ")
            assert len(err.splitlines()) == 1
            code, out, err = run("put", "second", "--lock-timeout", "0.01", "--json")
            assert (code, err) == (4, "")
            assert json.loads(out)["error"] == "Locked"
        assert run("put", "third", "--lock-timeout", "0.01")[0] == 0
        with cerata.open(FILE) as store:
            assert [frame.text for frame in store.frames()] == ["third", "first"]

    def test_reading_needs_no_lock(self, run: Run) -> None:
        """A stopped writer must not stop those who ask."""
        run("put", "first")
        with writer_lock(FILE):
            assert "first" in run("recall", "first", "--lock-timeout", "0")[1]

    @pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
    def test_a_time_that_is_none_is_refused(self, run: Run, seconds: str) -> None:
        """A wait of nan seconds would never end."""
        assert run("put", "x", "--lock-timeout", seconds)[0] == 2
        assert not Path(FILE).exists()


class TestFullDisk:
    """The disk takes no more."""

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
    def test_a_full_disk_exits_with_11_and_loses_nothing(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, code: int, seed: int
    ) -> None:
        """Whatever number of bytes is left when the disk is full."""
        run("put", "first", "kept")
        document, random = Path("long.md"), Random(seed)
        parts = [f"## Part {n}\n{random.randbytes(500).hex()}" for n in range(300)]
        document.write_text("\n\n".join(parts))
        real = os.pwrite
        refused, unknown = cerata.StorageFailed, cerata.OutcomeUnknown
        # Without its last byte, a zero that is there already, the first record stands.
        but_one: int | None = None
        for budget, error in (
            (0, refused),
            (but_one, unknown),
            (70_000, refused),
            (200_000, refused),
        ):
            left = budget

            def full(
                descriptor: int, data: bytes, offset: int, *, real: Callable[..., int] = real
            ) -> int:
                nonlocal left
                if left is None:
                    # What opening writes again is one sector, and a header page is before the ring;
                    # a record and what follows it are two sectors.
                    if len(data) <= 512 or offset < RING_OFFSET:
                        return real(descriptor, data, offset)
                    left = len(data) - 1
                if not left:
                    raise OSError(code, os.strerror(code))
                taken = bytes(data)[:left]
                left -= len(taken)
                return real(descriptor, taken, offset)

            monkeypatch.setattr(os, "pwrite", full)
            exit_code, out, err = run("remember", str(document))
            monkeypatch.setattr(os, "pwrite", real)
            assert (exit_code, out) == (error.exit_code, "")
            assert err.startswith("error: ")
            assert "Cannot write: " in err
            assert os.strerror(code) in err
            assert "Traceback" not in err
            with cerata.open(FILE) as store:
                assert store.verify().ok
                assert store.frame(1).text == "first kept"
        assert run("remember", str(document))[0] == 0
        with cerata.open(FILE, mode="r") as store:
            (frame,) = [one for one in store.frames() if (one.uri or "").endswith("/long.md")]
            assert frame.text == document.read_text()

    def test_a_size_limit_of_a_real_process_is_a_typed_error(
        self, tmp_path: Path, checkout: Path
    ) -> None:
        """The kernel refuses, not a stand-in; and a new file leaves nothing behind."""
        limit = 100_000

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [sys.executable, "-m", "cerata", "put", "x", "--json", "-f"]
        done = subprocess.run(
            [*command, str(tmp_path / "new.cera")],
            preexec_fn=limited,
            capture_output=True,
            text=True,
            check=False,
            cwd=checkout,
        )
        assert (done.returncode, done.stderr) == (cerata.StorageFailed.exit_code, "")
        said = json.loads(done.stdout)
        assert said["error"] == "StorageFailed"
        assert said["where"] == str(tmp_path / "new.cera")
        assert list(tmp_path.iterdir()) == []

    def test_a_checkpoint_that_finds_no_room_takes_nothing_back(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Closing raised after writes that were acknowledged: a retry would do them twice."""
        with cerata.open(FILE) as store:
            store.put_frames([f"text {n}" for n in range(1_000)])
            # From here on nothing but the file's present size can be written.
            size, real = Path(FILE).stat().st_size, os.pwrite

            def full(descriptor: int, data: bytes, offset: int) -> int:
                if offset + len(data) > size:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(descriptor, data, offset)

            monkeypatch.setattr(os, "pwrite", full)
            receipt = store.put_frame("one more")
            with pytest.raises(cerata.StorageFailed, match="No space left"):
                store.checkpoint()
        assert receipt.durable
        monkeypatch.setattr(os, "pwrite", real)
        code, out, _ = run("recall", "one more")
        assert code == 0
        assert "one more" in out
        assert run("file", "verify")[0] == 0


class TestUsage:
    """What was typed makes no sense."""

    @pytest.mark.parametrize(
        "arguments",
        [
            ["serach", "x"],
            ["search"],
            ["search", "x", "-k", "many"],
            ["put", "x", "--colour", "red"],
            ["remember"],
            ["log", "--at"],
        ],
        ids=" ".join,
    )
    def test_a_usage_error_is_one_line_or_one_json_object(
        self, run: Run, arguments: list[str]
    ) -> None:
        """Under --json it was text on standard error, and nothing on standard output."""
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (2, "")
        said = json.loads(out)
        assert said["error"] == "InvalidInput"
        assert said["exit_code"] == 2
        assert "--help" in said["remedy"]
        assert list(Path().iterdir()) == []

    def test_a_refusal_of_the_system_is_one_line_or_one_json_object(self, run: Run) -> None:
        """Under --json it was text on standard error, and nothing on standard output."""
        run("facts", "assert", "ana", "likes", "tea")
        command = ("facts", "list", "--plot", "no/facts.svg")
        code, _, err = run(*command)
        assert code == cerata.StorageFailed.exit_code
        assert err.startswith("error: The system refused: No such file or directory (no/")
        code, out, err = run(*command, "--json")
        answer = json.loads(out)
        assert (code, err) == (cerata.StorageFailed.exit_code, "")
        assert (answer["error"], answer["exit_code"]) == ("StorageFailed", code)

    def test_a_closed_output_is_no_fault_of_ours(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``cerata log >&-``: Python then has no standard output at all."""
        run("put", "x")
        monkeypatch.setattr("sys.stdout", None)
        assert main(["log"]) == 0

    def test_a_folder_that_was_removed_has_no_memory(self, run: Run) -> None:
        """One error in the form that was asked for, though the folder has no name any more."""
        here = Path("gone")
        here.mkdir()
        os.chdir(here)
        os.rmdir(Path("..", here))
        code, out, err = run("log", "--json")
        assert (code, err) == (cerata.NotFound.exit_code, "")
        assert json.loads(out)["what"] == "There is no *.cera file here"

    def test_the_command_alone_is_one_json_object_too(self, run: Run) -> None:
        """It printed nothing."""
        code, out, err = run("--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["file"] is None
        run("put", "x")
        assert json.loads(run("--json")[1])["file"] == FILE


@pytest.mark.unwatched("damages a file")
def test_repair_does_not_say_that_nothing_is_wrong_where_only_a_copy_helps(run: Run) -> None:
    """It said "There is nothing to repair", and then what is damaged."""
    with cerata.open(FILE) as store:
        for text in ("x", "y"):
            store.put_frame(text)
            store.checkpoint()
        toc = log_of(store).toc()
        ledger = next(ledger for key in toc.projections if (ledger := toc.saved(key).ledger))
    assert ledger is not None
    data = bytearray(Path(FILE).read_bytes())
    data[ledger.offset + ledger.length - 1] ^= 4
    Path(FILE).write_bytes(data)
    code, out, _ = run("file", "doctor", "--repair")
    assert code == 1
    assert out.startswith("There is nothing to repair in place.\n")
    assert "'cerata file doctor --repair --to NEW.cera'" in out


class TestNothingToRemember:
    """What cannot be read is said, and leaves no trace."""

    def test_missing_files_alone_create_no_memory(self, run: Run) -> None:
        """A typing error left an empty memory.cera, which the next command then read."""
        Path("empty.md").write_bytes(b"")
        Path("folder").mkdir()
        code, out, err = run("remember", "nowhere.md", "empty.md", "folder/none.txt", "--json")
        assert code == 1
        said = json.loads(out)
        assert (said["file"], said["head"]) == (None, None)
        assert (said["skipped"], said["empty"]) == (2, 1)
        assert [file["outcome"] for file in said["files"]] == ["skipped", "empty", "skipped"]
        assert err.count("note: skipped") == 2
        assert not Path(FILE).exists()
        Path("good.md").write_text("Good.")
        assert run("remember", "nowhere.md", "good.md")[1].startswith("1 added")

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            (b"\xef\xbb\xbfwith a mark", None),
            (b"a\0b", "NUL at character 1"),
            (b"\xff", "byte 0 is 0xff"),
            (b"x" * (STRING_SIZE_MAX + 1), "limit"),
        ],
        ids=["mark", "nul", "not text", "too large"],
    )
    def test_a_file_and_the_input_are_read_by_the_same_rules(
        self, run: Run, data: bytes, error: str | None
    ) -> None:
        """The input kept its byte order mark and NULs, and had no limit."""
        Path("a.txt").write_bytes(data)
        command = [sys.executable, "-m", "cerata", "remember", "-", "--json"]
        folder = str(Path(cerata.__file__).parent.parent)
        piped = subprocess.run(
            command,
            input=data,
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONPATH": folder},
        )
        code, out, _ = run("remember", "a.txt", "--json", "-f", "other.cera")
        assert piped.returncode == code == (1 if error else 0)
        for said in (json.loads(piped.stdout), json.loads(out)):
            if error:
                assert error in said["files"][0]["why"]
            else:
                assert said["added"] == 1
                with cerata.open(said["file"], mode="r") as store:
                    assert store.frame(1).text == "with a mark"

    def test_a_blank_file_and_a_blank_input_are_empty(self, run: Run) -> None:
        """Both have nothing to remember, which is no error."""
        Path("a.txt").write_bytes(b"  \n")
        command = [sys.executable, "-m", "cerata", "remember", "-", "--json"]
        folder = str(Path(cerata.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": folder}
        piped = subprocess.run(
            command, input=b"  \n", capture_output=True, check=False, env=environment
        )
        code, out, _ = run("remember", "a.txt", "--json", "-f", "other.cera")
        assert piped.returncode == code == 0
        for said in (json.loads(piped.stdout), json.loads(out)):
            assert (said["added"], said["empty"], said["files"][0]["outcome"]) == (0, 1, "empty")


class TestInternalErrors:
    """A fault of ours."""

    def test_an_unforeseen_exception_is_one_line_and_exits_with_70(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A traceback tells a user nothing, and a program less."""

        def broken(*_: object) -> None:
            raise RuntimeError("not\nforeseen")

        run("put", "x")
        monkeypatch.setattr(log, "_newest_first", broken)
        code, out, err = run("log")
        assert (code, out) == (70, "")
        assert err.startswith("error: Internal error: RuntimeError: not foreseen (test_failures.py")
        assert "Report it with the traceback" in err
        assert len(err.splitlines()) == 1
        code, out, err = run("log", "--json")
        assert (code, err) == (70, "")
        assert json.loads(out)["error"] == "InternalError"
        monkeypatch.setenv("CERATA_DEBUG", "1")
        with pytest.raises(RuntimeError, match="foreseen"):
            run("log")


class TestDamagedEnd:
    """The end of the log is damaged, and opening to write repairs it."""

    def test_the_writer_that_repairs_a_witness_warns(self, run: Run) -> None:
        """Only the first opening could report it, and the command line printed nothing."""
        run("put", "first")
        with cerata.open(FILE, mode="r") as store:
            offset = log_of(store).page.witness_offsets[1]
        with open(FILE, "r+b") as file:
            file.seek(offset)
            file.write(bytes(512))
        code, _, err = run("put", "second")
        assert code == 0
        assert "its newest events may be missing. It ends at event 1" in " ".join(err.split())
        assert run("put", "third")[2] == ""

    def test_a_head_is_parsed_before_the_file_is_opened(self, run: Run) -> None:
        """The error of a damaged file hid the mistake of the command."""
        Path(FILE).write_bytes(b"no memory")
        code, _, err = run("file", "verify", "--head", "8")
        assert code == 2
        assert "SEQ:ROOT" in err
