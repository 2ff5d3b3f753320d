# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""MCP over stdio: clients and servers of both major versions of the SDK."""

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession

import cerata

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
