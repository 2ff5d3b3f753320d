# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Clients of the tests: of the installed SDK, against servers of it and of the other version.

``CERATA_MCP_OTHER`` names a Python that has the other major version.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from ..test_docs import ROOT

SERVERS = [sys.executable, *filter(None, [os.environ.get("CERATA_MCP_OTHER")])]
"""The Pythons that run servers."""

NAMES = ["own", "other"][: len(SERVERS)]


def command_of(python: str, path: Path, *options: str) -> list[str]:
    return [python, "-m", "cerata", "mcp", "-f", str(path), *options]


def environment() -> dict[str, str]:
    """Return the variables of a server, which imports this checkout from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@asynccontextmanager
async def session_of(command: Sequence[str]) -> AsyncIterator[ClientSession]:
    """Return the initialized session of a new server over stdio."""
    server = StdioServerParameters(command=command[0], args=[*command[1:]], env=environment())
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


async def call(session: ClientSession, tool: str, **arguments: object) -> str:
    """Return the text of a tool's answer; of an error too."""
    result: Any = await session.call_tool(tool, arguments)
    (block,) = result.content
    text: str = block.text
    is_error = getattr(result, "isError", None) or getattr(result, "is_error", None) or False
    assert is_error is text.startswith("error: ")
    # Claude Code drops the text of a result that has both.
    assert (getattr(result, "structuredContent", None) or None) is None
    return text


def with_session(
    command: Sequence[str], scenario: Callable[[ClientSession], Awaitable[None]]
) -> None:
    """Run a scenario with a client of a new server over stdio."""

    async def run() -> None:
        async with session_of(command) as session:
            await scenario(session)

    asyncio.run(run())
