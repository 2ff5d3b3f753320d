# Where the extra mcp is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The server over stdin and stdout.

Owns both streams: descriptor 1 leads to stderr while a private copy carries the protocol, so that a
print of any library spoils no message. The SDK never sees the end of stdin, which would cancel
running calls; the end triggers the shutdown instead. Leaves out the shutdown (`shutdown`).
"""

import os
import sys
import threading
from typing import Any, BinaryIO, Final

import msgspec

from cerata.engine.late import loading

from .sdk import server_of
from .service import Service
from .shutdown import Shutdown

_INTERNAL_FAULT: Final = 70

MESSAGE_SIZE_MAX: Final = 32 << 20
"""Bytes of a message: a text of the largest size, escaped."""

_TOO_LONG: Final = b'"a message over the limit of bytes was dropped"\n'
"""In place of a line over the limit: it is no message, which the SDK reports to the client."""

_END_SECONDS: Final = 5
"""More than a shutdown takes."""


class _Header(msgspec.Struct, frozen=True):
    """The members of a message that show whether it is a request, an answer, or a cancellation."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()


class _Cancelled(msgspec.Struct, frozen=True):
    requestId: int | str | None = None  # noqa: N815 - the protocol's name


class Requests:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[int | str] = set()

    def is_empty(self) -> bool:
        """Return whether each request was answered."""
        with self._lock:
            return not self._open

    def take(self, line: str) -> None:
        """Take a message of the client or of the server; other lines are passed over."""
        try:
            header = msgspec.json.decode(line, type=_Header)
            number = header.id
            if header.method == "notifications/cancelled":
                number = msgspec.json.decode(header.params, type=_Cancelled).requestId
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return
        if number is None:
            return
        with self._lock:
            if header.id is not None and header.method is not None:
                self._open.add(number)
            else:
                self._open.discard(number)


class _Input:
    """The lines of stdin; after the last one it waits for the end of the process."""

    def __init__(self, stream: BinaryIO, shutdown: Shutdown, requests: Requests) -> None:
        self._stream = stream
        self._shutdown = shutdown
        self._requests = requests
        self._limiter: Any = None

    def __aiter__(self) -> "_Input":
        return self

    async def __anext__(self) -> str:
        with loading("the MCP SDK"):
            import anyio
            import anyio.to_thread

        # With its own limiter: running calls may hold every thread of the default one.
        self._limiter = self._limiter or anyio.CapacityLimiter(1)
        line: bytes = await anyio.to_thread.run_sync(self._read, limiter=self._limiter)
        if not line:
            self._shutdown.trigger(0)
            await anyio.sleep_forever()
        text: str = line.decode(errors="replace")
        self._requests.take(text)
        return text

    def _read(self) -> bytes:
        line = self._line()
        if len(line) < MESSAGE_SIZE_MAX or line.endswith(b"\n"):
            return line
        while line and not line.endswith(b"\n"):
            line = self._line()
        return _TOO_LONG

    def _line(self) -> bytes:
        try:
            return self._stream.readline(MESSAGE_SIZE_MAX)
        except OSError:
            # The terminal or the other end is gone.
            return b""


class _Output:
    """The messages to the client; if it is gone, the server ends as at the end of stdin."""

    def __init__(self, descriptor: int, shutdown: Shutdown, requests: Requests) -> None:
        self._descriptor = descriptor
        self._shutdown = shutdown
        self._requests = requests
        self._limiter: Any = None

    async def write(self, text: str) -> None:
        with loading("the MCP SDK"):
            import anyio
            import anyio.to_thread

        self._limiter = self._limiter or anyio.CapacityLimiter(1)
        data = text.encode(errors="replace")
        await anyio.to_thread.run_sync(self._write, data, limiter=self._limiter)
        self._requests.take(text)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            self._shutdown.trigger(0)

    async def flush(self) -> None:
        """Nothing is buffered."""


def protocol_streams() -> tuple[BinaryIO, int]:
    """Return stdin, and a copy of stdout's descriptor; prints go to stderr from now on."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    input_stream = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return input_stream, output


def serve_stdio(service: Service, shutdown: Shutdown, streams: tuple[BinaryIO, int]) -> int:
    """Serve one client until a trigger of the shutdown, which ends this process.

    Returns an exit code only if the SDK fails and the shutdown, too.

    Args:
        service: The answers.
        shutdown: Ends the process; started.
        streams: The protocol's streams.

    Raises:
        Unsupported: the SDK is not installed.
    """
    with loading("the MCP SDK"):
        import anyio

    requests = Requests()
    shutdown.is_answered = requests.is_empty
    lines = _Input(streams[0], shutdown, requests)
    output = _Output(streams[1], shutdown, requests)
    server = server_of(service, shutdown.gate)
    anyio.run(_serve, server, lines, output)
    # The SDK returned on its own, which it does only after a fault that it has logged.
    shutdown.trigger(_INTERNAL_FAULT)
    threading.Event().wait(_END_SECONDS)
    return _INTERNAL_FAULT


async def _serve(server: Any, lines: _Input, output: _Output) -> None:
    with loading("the MCP SDK"):
        from mcp.server.stdio import stdio_server

    stdio: Any = stdio_server
    async with stdio(stdin=lines, stdout=output) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
