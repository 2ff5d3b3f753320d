# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Clients of the tests: of the installed SDK, against servers of it and of the other version.

``CERATA_MCP_OTHER`` names a Python that has the other major version.
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from .mcp_messages import server_command, server_environment

SERVERS = [sys.executable, *filter(None, [os.environ.get("CERATA_MCP_OTHER")])]
"""The Pythons that run servers."""

NAMES = ["own", "other"][: len(SERVERS)]


@asynccontextmanager
async def session_of(command: Sequence[str]) -> AsyncIterator[ClientSession]:
    """Return the initialized session of a new server over stdio."""
    server = StdioServerParameters(
        command=command[0], args=[*command[1:]], env=server_environment()
    )
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


# --- HTTP ----------------------------------------------------------------------------------------

ANNA: Mapping[str, Any] = {"token": "a" * 32, "scope": {"tenant": "acme", "user": "anna"}}
BEN: Mapping[str, Any] = {"token": "b" * 40, "scope": {"tenant": "acme", "user": "ben"}}


def token_file(folder: Path, *entries: Mapping[str, Any], mode: int = 0o600) -> Path:
    path = folder / "tokens.json"
    path.write_text(json.dumps(entries))
    path.chmod(mode)
    return path


@contextmanager
def http_server(
    python: str, path: Path, *entries: Mapping[str, Any], options: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Return a server over HTTP and its URL."""
    tokens = token_file(path.parent, *entries)
    command = server_command(python, path, "--http", "0", "--tokens", str(tokens), *options)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=server_environment()
    ) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]
            yield server, url
        finally:
            server.kill()


def http_client(token: str) -> Any:
    """Return a client of HTTP that sends a token; the SDK's versions use two packages."""
    try:
        http: Any = importlib.import_module("httpx2")
    except ImportError:
        http = importlib.import_module("httpx")
    return http.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)


@asynccontextmanager
async def http_session(url: str, token: str) -> AsyncIterator[ClientSession]:
    """Return the initialized session of a server over HTTP."""
    async with http_client(token) as client:
        transport: Any = streamable_http_client(url, http_client=client)
        async with transport as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session
