# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""MCP over HTTP: a token for each scope, the loopback interface only, and refusals."""

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp.client.streamable_http import streamable_http_client

import cerata
from cerata.integrations.mcp import http as server

from .mcp_clients import (
    ANNA,
    BEN,
    NAMES,
    SERVERS,
    call,
    http_client,
    http_server,
    http_session,
)

pytestmark = pytest.mark.mcp

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize("python", SERVERS, ids=NAMES)
def test_each_token_has_its_scope(python: str, tmp_path: Path) -> None:
    """Ben sees nothing of Anna, and cannot show, correct or forget her entry."""

    async def scenario(url: str) -> None:
        async with http_session(url, ANNA["token"]) as anna, http_session(url, BEN["token"]) as ben:
            assert await call(anna, "remember", text="The index is HNSW.") == "#1"
            assert "The index is HNSW." in await call(anna, "recall", query="which index?")
            assert "HNSW" not in await call(ben, "recall", query="which index?")
            for tool, arguments in (
                ("show", {"ids": "1"}),
                ("correct", {"id": 1, "text": "x"}),
                ("forget", {"ids": "1"}),
            ):
                answer = await call(ben, tool, **arguments)
                assert answer.startswith("error: NotFound: There is no entry or fact #1"), answer
            status: Any = await ben.read_resource("cerata://status")
            assert json.loads(status.contents[0].text)["frames"] == {"current": 0, "closed": 0}

    path = tmp_path / "brain.cera"
    with http_server(python, path, ANNA, {**BEN, "read_only": False}) as (server, url):
        asyncio.run(scenario(url))
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=10) == 128 + signal.SIGTERM
        assert server.stdout is not None
        assert server.stdout.read() == ""
    with cerata.open(path, mode="r") as store:
        assert [dict(frame.scope) for frame in store.frames()] == [ANNA["scope"]]


def test_a_client_of_the_newest_protocol_is_served(tmp_path: Path) -> None:
    """SDK 2 has a client without the handshake of older versions."""
    client_of = getattr(pytest.importorskip("mcp"), "Client", None)
    if client_of is None:
        pytest.skip("SDK 1 has no such client")

    async def scenario(url: str) -> None:
        async with (
            http_client(ANNA["token"]) as transport,
            client_of(streamable_http_client(url, http_client=transport)) as client,
        ):
            assert len((await client.list_tools()).tools) == 8
            result = await client.call_tool("remember", {"text": "HNSW"})
            assert result.content[0].text == "#1"

    with http_server(SERVERS[0], tmp_path / "brain.cera", ANNA) as (_, url):
        asyncio.run(scenario(url))


@pytest.mark.parametrize("python", SERVERS, ids=NAMES)
def test_a_request_without_its_place_token_or_origin_is_refused(
    python: str, tmp_path: Path
) -> None:
    """Only POST /mcp with a token; a page that rebinds a name to this machine has no way in."""
    token = {"Authorization": f"Bearer {ANNA['token']}"}
    cases: list[tuple[int, str, str, dict[str, str]]] = [
        (200, "POST", "/mcp", token),
        (200, "POST", "/mcp", {"Authorization": f"bearer {ANNA['token']}"}),
        (404, "POST", "/", token),
        (404, "POST", "/mcp/", token),
        (405, "GET", "/mcp", token),
        (405, "DELETE", "/mcp", token),
        (401, "POST", "/mcp", {}),
        (401, "POST", "/mcp", {"Authorization": f"Bearer {'c' * 32}"}),
        (401, "POST", "/mcp", {"Authorization": f"Basic {ANNA['token']}"}),
        (401, "POST", "/mcp", {"Authorization": ANNA["token"]}),
        (421, "POST", "/mcp", {**token, "Host": "evil.example"}),
        (403, "POST", "/mcp", {**token, "Origin": "http://evil.example"}),
    ]
    with http_server(python, tmp_path / "brain.cera", ANNA) as (_, url):
        address = urlsplit(url)
        assert address.hostname == "127.0.0.1"
        for status, method, path, headers in cases:
            connection = http.client.HTTPConnection(address.netloc, timeout=30)
            connection.request(
                method,
                path,
                json.dumps(INITIALIZE),
                {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    **headers,
                },
            )
            answer = connection.getresponse()
            assert answer.status == status, (method, path, headers, answer.read())
            connection.close()


HALVES = (
    b"",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\nPOST /mcp HTTP/1.1\r\n",
)


@pytest.mark.parametrize("half", HALVES, ids=["nothing", "headers", "body", "second request"])
def test_half_open_requests_keep_no_client_out(half: bytes, tmp_path: Path) -> None:
    """260 connections that sent half a request without a token made the server answer 503."""

    async def scenario(url: str) -> None:
        async with http_session(url, ANNA["token"]) as anna:
            assert await call(anna, "remember", text="The index is HNSW.") == "#1"
            assert "HNSW" in await call(anna, "recall", query="which index?")

    with (
        http_server(SERVERS[0], tmp_path / "brain.cera", ANNA) as (_, url),
        contextlib.ExitStack() as stack,
    ):
        port = urlsplit(url).port
        for _ in range(260):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            with contextlib.suppress(OSError):
                client.sendall(half)
        asyncio.run(scenario(url))


def test_refused_requests_close_no_connection_of_a_client(tmp_path: Path) -> None:
    """An idle client was the oldest connection, so its next request ended in a reset."""
    fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    known = {**fields, "Authorization": f"Bearer {ANNA['token']}"}
    with (
        http_server(SERVERS[0], tmp_path / "brain.cera", ANNA) as (_, url),
        contextlib.ExitStack() as stack,
    ):
        place = urlsplit(url).netloc
        clients = [http.client.HTTPConnection(place, timeout=30) for _ in range(151)]
        for client in clients:
            stack.callback(client.close)
            headers = known if client is clients[0] else fields
            client.request("POST", "/mcp", json.dumps(INITIALIZE), headers)
            answer = client.getresponse()
            answer.read()
            assert answer.status == (200 if client is clients[0] else 401)
        clients[0].auto_open = False
        clients[0].request("POST", "/mcp", json.dumps(INITIALIZE), known)
        assert clients[0].getresponse().status == 200


def test_a_server_does_not_listen_beyond_this_machine(tmp_path: Path) -> None:
    """The address of the machine's name has no listener."""
    with http_server(SERVERS[0], tmp_path / "brain.cera", ANNA) as (_, url):
        port = urlsplit(url).port
        others = {
            str(info[4][0])
            for info in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)
            if not str(info[4][0]).startswith("127.")
        }
        for address in others:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, port), timeout=5)
        socket.create_connection(("127.0.0.1", port), timeout=5).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_server_over_http(number: signal.Signals, tmp_path: Path) -> None:
    """A connection that a client keeps open does not delay the end."""
    with http_server(SERVERS[0], tmp_path / "brain.cera", ANNA) as (server, url):
        address = urlsplit(url)
        with socket.create_connection(("127.0.0.1", address.port), timeout=5):
            start = time.monotonic()
            server.send_signal(number)
            assert server.wait(timeout=10) == 128 + number
            assert time.monotonic() - start < 2


def test_a_token_may_only_read(tmp_path: Path) -> None:
    """The tools that write are unknown to such a client."""

    async def scenario(url: str) -> None:
        async with http_session(url, ANNA["token"]) as anna, http_session(url, BEN["token"]) as ben:
            assert await call(anna, "remember", text="The index is HNSW.") == "#1"
            tools = [tool.name for tool in (await ben.list_tools()).tools]
            assert tools == ["recall", "show", "facts", "changes"]
            answer = await call(ben, "remember", text="x")
            assert answer.startswith("error: NotFound: There is no tool 'remember' of a read-only")
            assert "HNSW" in await call(ben, "recall", query="which index?")

    reader = {**BEN, "scope": ANNA["scope"], "read_only": True}
    with http_server(SERVERS[0], tmp_path / "brain.cera", ANNA, reader) as (_, url):
        asyncio.run(scenario(url))


@pytest.mark.parametrize("size", [0, 100, 101, 10**6])
def test_a_body_over_the_limit_is_refused(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SDK 1 reads a body without an end into memory; here a client sends it in parts of 50."""
    monkeypatch.setattr(server, "MESSAGE_SIZE_MAX", 100)
    data = bytes(size)
    parts = [data[start : start + 50] for start in range(0, size, 50)] or [b""]
    messages = iter(
        {"type": "http.request", "body": part, "more_body": place < len(parts)}
        for place, part in enumerate(parts, 1)
    )
    received: list[bytes] = []
    sent: list[dict[str, Any]] = []

    class Manager:
        async def handle_request(self, _scope: object, receive: Any, _send: object) -> None:
            message = await receive()
            assert not message["more_body"]
            received.append(message["body"])

    async def receive() -> Any:
        return next(messages)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(server._handle(Manager(), {}, receive, send))
    assert received == ([data] if size <= 100 else [])
    assert [each["status"] for each in sent[:1]] == ([] if size <= 100 else [413])
    # The rest is not read.
    assert len([*messages]) == max(0, len(parts) - 3)
