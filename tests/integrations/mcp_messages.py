"""Servers of MCP over plain pipes: messages without an SDK, so that tests can kill and interrupt.

Any Python that has the extra mcp runs the server.
"""

import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..test_docs import ROOT

INITIALIZE: Mapping[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def server_environment() -> dict[str, str]:
    """Return the variables of a server, which imports this checkout from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def server_command(python: str, path: Path, *options: str) -> list[str]:
    return [python, "-m", "cerata", "admin", "mcp", "-f", str(path), *options]


@dataclass
class Pipes:
    """A process whose stdin and stdout carry messages."""

    process: subprocess.Popen[str]
    number: int = 0
    lines: list[str] = field(default_factory=list[str])

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request, and return its id."""
        self.number += 1
        self._write({"id": self.number, "method": method, "params": params or {}})
        return self.number

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Return the next message; None at the end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            return None
        self.lines.append(line)
        return json.loads(line)

    def answer(self, number: int) -> Any:
        """Return the answer to a request; other messages are passed over."""
        while (message := self.receive()) is not None:
            if message.get("id") == number:
                return message
        return None

    def begin(self) -> None:
        """Exchange the first messages."""
        assert self.answer(self.send("initialize", INITIALIZE)) is not None
        self.notify("notifications/initialized")

    def send_call(self, tool: str, arguments: Mapping[str, Any]) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> str | None:
        """Return the text of a tool's answer; None if the server is gone."""
        return text_of(self.answer(self.send_call(tool, arguments)))


def text_of(message: Any) -> str | None:
    """Return the text of an answer of a tool."""
    if message is None:
        return None
    text: str = message["result"]["content"][0]["text"]
    return text


@contextmanager
def pipes_to(command: Sequence[str], **named: Any) -> Generator[Pipes]:
    """Return a process with pipes; it is killed at the end of the block."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=server_environment(),
        **named,
    ) as process:
        try:
            yield Pipes(process)
        finally:
            process.kill()
