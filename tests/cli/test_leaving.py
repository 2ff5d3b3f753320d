"""The command ends its process at once; nothing that a user sees is lost by that."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cerata

COMMAND = "import sys; from cerata.__main__ import main; sys.argv[1:] = {words!r}; "


def ended(
    code: str, words: list[str], folder: Path, checkout: Path
) -> subprocess.CompletedProcess[str]:
    """Return the end of a process that runs code with the command line."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND.format(words=words) + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_answer_and_the_code_arrive(tmp_path: Path, checkout: Path) -> None:
    """A process that leaves early must have written everything."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.put_frames([f"text {number} " * 40 for number in range(500)])
    end = ended("sys.exit(main())", ["log", "-n", "500", "--json"], tmp_path, checkout)
    assert (end.returncode, end.stderr) == (0, "")
    assert end.stdout.endswith("}\n")
    end = ended("sys.exit(main())", ["show", "9999"], tmp_path, checkout)
    assert end.returncode == cerata.NotFound.exit_code
    assert end.stderr.startswith("error: ")


def test_functions_of_the_end_run_once(tmp_path: Path, checkout: Path) -> None:
    """Measurements of coverage and temporary folders depend on them."""
    code = "import atexit; atexit.register(print, 'end', flush=True); sys.exit(main())"
    assert ended(code, ["put", "x"], tmp_path, checkout).stdout.splitlines()[1:] == ["end"]


@pytest.mark.parametrize(
    "before",
    [
        "sys.setprofile(lambda *_: None); ",
        "import threading; threading.Thread(target=threading.main_thread().join).start(); ",
    ],
    ids=["profiler", "thread"],
)
def test_a_process_with_more_to_do_goes_on(tmp_path: Path, checkout: Path, before: str) -> None:
    """A profiler prints at the end of its program, and a thread may write."""
    code = f"{before}code = main(); print('after', code)"
    assert ended(code, ["put", "x"], tmp_path, checkout).stdout.endswith("after 0\n")


def test_a_full_disk_behind_the_answer_is_an_error(tmp_path: Path, checkout: Path) -> None:
    """The flush fails after the verb is done."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.put_frame("text")
    with open("/dev/full", "w") as full:
        child = subprocess.run(
            [sys.executable, "-m", "cerata", "log", "-f", str(tmp_path / "memory.cera")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=checkout,
            check=False,
        )
    assert child.returncode == cerata.StorageFailed.exit_code
    assert "Cannot write the answer" in child.stderr


def test_ctrl_c_ends_a_command_with_130(tmp_path: Path, checkout: Path) -> None:
    """The command waits for input, so the signal arrives inside the verb."""
    with subprocess.Popen(
        [sys.executable, "-m", "cerata", "put", "-", "-f", str(tmp_path / "memory.cera")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=checkout,
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        _wait_for_input(child.pid)
        child.send_signal(signal.SIGINT)
        error = child.stderr.read()
        child.stdin.close()
    assert (child.returncode, error) == (130, "interrupted\n")
    assert not (tmp_path / "memory.cera").exists()


def _wait_for_input(pid: int) -> None:
    """Wait until a process sleeps for half a second: it has loaded its verb, and reads."""
    naps = 0
    for _ in range(600):
        is_asleep = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
        naps = naps + 1 if is_asleep else 0
        if naps == 5:
            return
        time.sleep(0.1)
    pytest.fail("The command never read its input")
