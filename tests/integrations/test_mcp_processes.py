"""Processes of MCP: their start and end, many on one file, and nothing but protocol on stdout.

Long: ``python -m tests.integrations.mcp_ends --rounds 100`` and ``python -m
tests.integrations.mcp_stress --writes 1000 --kills 60 --uris 1000``.
"""

import importlib.util
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cerata
from cerata.integrations.mcp.shutdown import Gate

from ..inside import log_of
from .mcp_ends import SECONDS_MAX, TRIGGERS, ended
from .mcp_messages import Pipes, pipes_to, server_command, server_environment, text_of
from .mcp_stress import replaced, stressed

HAS_SDK = importlib.util.find_spec("mcp") is not None

needs_sdk = [
    pytest.mark.mcp,
    pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp"),
]
pytestmark = pytest.mark.unwatched("kills processes")


@contextmanager
def waiting_call(folder: Path) -> Generator[tuple[Pipes, float]]:
    """Start a server whose call waits for the lock of the file; yield it after a SIGTERM.

    Yields the pipes and the time of the signal. At the end nothing may be written.
    """
    path = folder / "a.cera"
    with (
        cerata.open(path) as store,
        pipes_to(server_command(sys.executable, path)) as pipes,
    ):
        pipes.begin()
        with log_of(store)._lock.mutex, log_of(store)._lock.writing():
            pipes.send_call("remember", {"text": "one"})
            time.sleep(0.2)
            start = time.monotonic()
            pipes.process.send_signal(signal.SIGTERM)
            yield pipes, start
        assert store.count() == (0, 0)


class TestWithTheSdk:
    """Servers of the installed SDK."""

    pytestmark = needs_sdk

    @pytest.mark.parametrize("trigger", TRIGGERS)
    def test_a_server_ends_soon_and_keeps_answered_writes(
        self, trigger: str, tmp_path: Path, seed: int
    ) -> None:
        """A server that survives its client holds the file, and is started again and again."""
        end = ended(trigger, tmp_path, sys.executable, random.Random(seed))
        assert end.gone <= SECONDS_MAX

    def test_many_servers_write_each_text_once(self, tmp_path: Path, seed: int) -> None:
        """Each client starts a server of its own on the same file."""
        counts = stressed(tmp_path / "shared.cera", sys.executable, 3, 12, 2, seed)
        assert counts["acknowledged"] == 36

    def test_a_running_write_is_answered_at_the_end(self, tmp_path: Path) -> None:
        """The call that the end of stdin follows at once was received before it."""
        path = tmp_path / "a.cera"
        with pipes_to(server_command(sys.executable, path)) as pipes:
            pipes.begin()
            assert pipes.call("remember", text="one") == "#1"
            number = pipes.send_call("remember", {"text": "two " * 20_000})
            assert pipes.process.stdin is not None
            pipes.process.stdin.close()
            text = text_of(pipes.answer(number))
            assert pipes.process.wait(10) == 0
        with cerata.open(path, mode="r") as store:
            assert (text or "").startswith("#2") == (len(store) == 2)

    def test_a_second_signal_ends_at_once(self, tmp_path: Path) -> None:
        """The first waits for a running call, here one that waits for the lock of the file."""
        with waiting_call(tmp_path) as (pipes, start):
            time.sleep(0.1)
            pipes.process.send_signal(signal.SIGINT)
            assert pipes.process.wait(10) == 128 + signal.SIGINT
            assert time.monotonic() - start < SECONDS_MAX

    def test_a_call_that_does_not_end_delays_the_end_by_a_second(self, tmp_path: Path) -> None:
        """A write that waits for a lock is absent, and was not acknowledged."""
        with waiting_call(tmp_path) as (pipes, start):
            assert pipes.process.wait(10) == 128 + signal.SIGTERM
            assert 0.9 < time.monotonic() - start < SECONDS_MAX

    def test_many_waiting_calls_do_not_hide_the_end_of_stdin(self, tmp_path: Path) -> None:
        """They held all threads of the pool that read stdin, too."""
        path = tmp_path / "a.cera"
        with (
            cerata.open(path) as store,
            pipes_to(server_command(sys.executable, path)) as pipes,
        ):
            pipes.begin()
            with log_of(store)._lock.mutex, log_of(store)._lock.writing():
                for number in range(60):
                    pipes.send_call("remember", {"text": f"text {number}"})
                time.sleep(0.3)
                assert pipes.process.stdin is not None
                pipes.process.stdin.close()
                start = time.monotonic()
                assert pipes.process.wait(10) == 0
                assert time.monotonic() - start < SECONDS_MAX

    def test_stdout_has_only_messages(self, tmp_path: Path) -> None:
        """A print anywhere in the process, or garbage from the client, spoils no message."""
        path = tmp_path / "a.cera"
        program = (
            "import os, sys; sys.argv[0] = 'cerata'\n"
            "from cerata.integrations.mcp import service\n"
            "def call(self, name, arguments, call=service.Service.call):\n"
            "    print('printed'); os.write(1, b'written\\n'); return call(self, name, arguments)\n"
            "service.Service.call = call\n"
            "from cerata.__main__ import main; sys.exit(main())\n"
        )
        command = [sys.executable, "-c", program, "admin", "mcp", "-f", str(path)]
        with pipes_to(command, stderr=subprocess.PIPE) as pipes:
            pipes.begin()
            assert pipes.process.stdin is not None
            for garbage in ("", "{", "[]", "null", "\ufffd", '{"jsonrpc": "2.0"}', "x" * 100_000):
                pipes.process.stdin.write(garbage + "\n")
            assert pipes.call("remember", text="one") == "#1"
            assert pipes.call("nothing") is not None
            pipes.process.stdin.close()
            while pipes.receive() is not None:
                pass
            assert pipes.process.wait(10) == 0
            assert all(json.loads(line)["jsonrpc"] == "2.0" for line in pipes.lines)
            assert pipes.process.stderr is not None
            errors = pipes.process.stderr.read()
            assert errors.count("printed") == errors.count("written") == 2

    @pytest.mark.parametrize(
        ("content", "options", "code", "error"),
        [
            (None, ["--read-only"], 6, "There is no such file"),
            (b"hello" * 10_000, [], 9, ""),
            (b"hello" * 10_000, ["--json"], 9, ""),
            (None, ["--scope", "user"], 2, "--scope must be NAME=VALUE"),
            (None, ["--http", "0", "--tokens", "none.json"], 6, "There is no token file"),
            (None, ["--nothing"], 2, ""),
        ],
    )
    def test_an_error_at_the_start_goes_to_stderr(
        self,
        content: bytes | None,
        options: list[str],
        code: int,
        error: str,
        tmp_path: Path,
    ) -> None:
        """A client shows stderr, and takes stdout for messages."""
        path = tmp_path / "a.cera"
        if content is not None:
            path.write_bytes(content)
        run = subprocess.run(
            server_command(sys.executable, path, *options),
            input="",
            capture_output=True,
            text=True,
            check=False,
            env=server_environment(),
            timeout=60,
        )
        assert run.returncode == code, run.stderr
        assert run.stdout == ""
        assert error in run.stderr
        assert "Traceback" not in run.stderr
        assert path.exists() == (content is not None)

    def test_a_locked_file_at_the_start_is_a_typed_error(self, tmp_path: Path) -> None:
        """Place and remedy are on stderr, and nothing is on stdout."""
        path = tmp_path / "a.cera"
        with (
            cerata.open(path) as store,
            log_of(store)._lock.mutex,
            log_of(store)._lock.writing(),
        ):
            run = self._started(path, "--lock-timeout", "0.2")
        assert (run.returncode, run.stdout) == (4, "")
        assert str(path) in run.stderr
        assert "Traceback" not in run.stderr

    def test_a_damaged_file_at_the_start_is_a_typed_error(self, tmp_path: Path) -> None:
        """Both header pages are gone, so no other structure names the ring."""
        path = tmp_path / "a.cera"
        with cerata.open(path) as store:
            store.put_frame("bridge")
        content = path.read_bytes()
        path.write_bytes(content[:64] + bytes(128 * 1024) + content[128 * 1024 + 64 :])
        run = self._started(path)
        assert run.returncode in (3, 9), run.stderr
        assert run.stdout == ""
        assert run.stderr.startswith("error: ")
        assert "Traceback" not in run.stderr

    @staticmethod
    def _started(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            server_command(sys.executable, path, *options),
            input="",
            capture_output=True,
            text=True,
            check=False,
            env=server_environment(),
            timeout=60,
        )


def test_a_gate_that_is_shut_refuses_calls_and_counts_those_that_run() -> None:
    """A call that began before goes on, and the end waits for it."""
    gate = Gate()

    def call() -> int:
        gate.shut()
        return gate.running

    assert gate.run(call) == 1
    assert gate.running == 0
    with pytest.raises(cerata.Closed, match="The server is ending") as caught:
        gate.run(call)
    assert caught.value.remedy == "Start it again, and repeat the call."


def test_processes_that_replace_the_same_uris_leave_one_frame_each(tmp_path: Path) -> None:
    """The choice of the replaced frame is made under the lock of the writer."""
    replaced(tmp_path / "uris.cera", 40)


@pytest.mark.skipif(HAS_SDK, reason="the extra mcp is installed")
def test_without_the_extra_the_verb_names_it(tmp_path: Path) -> None:
    """Nothing is created, and the remedy is a command."""
    path = tmp_path / "a.cera"
    run = subprocess.run(
        server_command(sys.executable, path),
        input="",
        capture_output=True,
        text=True,
        check=False,
        env=server_environment(),
        timeout=60,
    )
    assert run.returncode == 9
    assert run.stdout == ""
    assert "Run pip install '.[mcp]'" in run.stderr
    assert not path.exists()
