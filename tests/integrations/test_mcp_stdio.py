# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""MCP over stdio: clients and servers of both major versions of the SDK."""

from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession

import cerata
from cerata.integrations.mcp import stdio

from .mcp_clients import NAMES, SERVERS, call, with_session
from .mcp_messages import server_command

pytestmark = pytest.mark.mcp


@pytest.mark.parametrize("python", SERVERS, ids=NAMES)
def test_a_client_remembers_and_recalls(python: str, tmp_path: Path) -> None:
    """The file is created, and has the text after the server is gone."""
    path = tmp_path / "brain.cera"

    async def scenario(session: ClientSession) -> None:
        assert await call(session, "remember", text="We ship on Fridays.") == "#1"
        assert await call(session, "remember", text="We ship on Fridays.") == "#1 (already stored)"
        context = await call(session, "recall", query="when do we ship?", max_tokens="900")
        assert context.splitlines()[-3] == "We ship on Fridays."
        assert context.endswith("1 of 1 shown, 70 of 860 tokens, basis 1")

    with_session(server_command(python, path), scenario)
    with cerata.open(path, mode="r") as store:
        assert [frame.text for frame in store.frames()] == ["We ship on Fridays."]
        assert store.verify().ok


def test_a_message_has_a_limit_of_bytes_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without an end filled the memory, and a deep one ended the server."""
    monkeypatch.setattr(stdio, "MESSAGE_SIZE_MAX", 100)
    stream = BytesIO(b"x" * 1_001 + b"\n{}\n" + b"y" * 99 + b"\n" + b"z" * 500)
    lines = stdio._Input(stream, cast("Any", None), stdio.Requests())
    assert [lines._read() for _ in range(5)] == [
        stdio._TOO_LONG,
        b"{}\n",
        b"y" * 99 + b"\n",
        stdio._TOO_LONG,
        b"",
    ]
    requests = stdio.Requests()
    requests.take('{"x":' + "[" * 5_000)
    assert requests.is_empty()
