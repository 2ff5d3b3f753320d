"""The verb follow: a line for each event as it is written, until it is stopped."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cerata
from cerata.cli.main import main


@contextmanager
def following(
    checkout: Path, folder: Path, *words: str
) -> Generator[tuple["subprocess.Popen[str]", cerata.Store]]:
    """Run the verb in a process of its own, on a file with one event."""
    with cerata.open(folder / "memory.cera") as store:
        store.put_frame("The index is Annoy.")
        with subprocess.Popen(
            [sys.executable, "-m", "cerata", "time", "follow", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process, store
            finally:
                # A failed test leaves no process behind, and does not wait for one.
                process.kill()


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_command_of_the_page(tmp_path: Path, checkout: Path) -> None:
    """A pipe gets each line when the event is written, and Ctrl-C ends the command cleanly."""
    with following(checkout, tmp_path, "--after", "0", "--jsonl") as (process, store):
        assert json.loads(line_of(process))["body"]["text"] == "The index is Annoy."
        store.put_frame("Lunch is at noon.")
        assert json.loads(line_of(process))["seq"] == 2
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_a_reader_that_leaves_ends_the_command(tmp_path: Path, checkout: Path) -> None:
    """``cerata time follow | head -1``, which the next event ends."""
    with following(checkout, tmp_path, "--after", "0") as (process, store):
        assert "put        " in line_of(process)
        assert process.stdout is not None
        process.stdout.close()
        store.put_frame("Lunch is at noon.")
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_count_and_a_time_end_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "memory.cera")
    with cerata.open(path) as store:
        for text in "abc":
            store.put_frame(text)
        position = store.at(1).head.text
    base = ("time", "follow", "-f", path)
    assert main([*base, "--after", "0", "-n", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert ([event["seq"] for event in answer["events"]], answer["position"]) == ([1, 2], 2)
    assert main([*base, "--after", position, "--timeout", "0", "--jsonl"]) == 0
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [2, 3]
    assert main([*base, "--timeout", "0.05"]) == 0
    assert capsys.readouterr().out == ""
    assert main([*base, "-n", "0"]) == 2
