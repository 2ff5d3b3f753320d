"""The server over HTTP on the loopback interface: POST /mcp, with a bearer token for each scope.

Owns the choice of the service by the token: each token has its store handle, server and session
manager, so no value of a request chooses a scope. The SDK checks Host and Origin, which protects
from web pages that rebind a name to this machine. Leaves out the shutdown (`shutdown`).
"""

# Where the extra mcp is missing, its types are unknown.
# pyright: basic, reportMissingImports=false

import contextlib
import errno
import hashlib
import hmac
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from cerata.engine.errors import InvalidInput, NotFound, refused
from cerata.engine.events import ScopeValue
from cerata.engine.late import loading
from cerata.memory.store import Store

from .sdk import server_of
from .service import Service
from .shutdown import Shutdown
from .stdio import MESSAGE_SIZE_MAX

# --- The token file: the bearers of a server over HTTP, and the scope of each ---------------------
#
# No error shows a token.


MODE: Final = 0o600

_BYTES_MAX: Final = 1 << 20
_TOKEN_SIZE_MIN: Final = 32


class TokenEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A token, and the rights of its bearer."""

    token: Annotated[str, Meta(min_length=_TOKEN_SIZE_MIN, pattern=r"^[!-~]+$")]
    scope: Annotated[dict[str, ScopeValue], Meta(min_length=1)]
    read_only: bool = False


def tokens_in(path: str) -> Sequence[TokenEntry]:
    """Return the entries of a token file.

    Args:
        path: A regular file of this user with mode 0600.

    Raises:
        NotFound: there is no such file.
        InvalidInput: another user could read or write the file, or its contents are no tokens.
        StorageFailed: the file cannot be read.
    """
    content = _content_of(path)
    try:
        entries = msgspec.json.decode(content, type=list[TokenEntry])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidInput(
            f"The token file is not valid: {error}",
            where=path,
            remedy='Write [{"token": "at least 32 letters", "scope": {"tenant": "acme"}}].',
        ) from error
    if not entries:
        raise InvalidInput("The token file has no token", where=path, remedy="Add an entry.")
    if len({entry.token for entry in entries}) < len(entries):
        raise InvalidInput(
            "The token file has a token twice", where=path, remedy="Give each scope its token."
        )
    return entries


def _content_of(path: str) -> bytes:
    try:
        # Not to wait for a writer, if the path is a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise NotFound(
                "There is no token file", where=path, remedy="Create it with mode 0600."
            ) from error
        raise refused(error, "read the token file", path) from error
    except ValueError as error:
        raise InvalidInput(
            "The path of the token file has a NUL", where="--tokens", remedy="Name a file."
        ) from error
    try:
        _check(os.fstat(descriptor), path)
        content = os.read(descriptor, _BYTES_MAX + 1)
    finally:
        os.close(descriptor)
    if len(content) > _BYTES_MAX:
        raise InvalidInput(
            "The token file is larger than 1 MiB", where=path, remedy="Leave out old tokens."
        )
    return content


def _check(status: os.stat_result, path: str) -> None:
    """Raise `InvalidInput` unless a file is regular, of this user, and closed to other users."""
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput("The token file is no file", where=path, remedy="Name a file.")
    mode = stat.S_IMODE(status.st_mode)
    if mode != MODE or status.st_uid != os.geteuid():
        raise InvalidInput(
            f"The token file must be yours with mode 0600, and has {mode:04o}",
            where=path,
            remedy=f"Run: chmod 600 {path}",
        )


# --- The server over HTTP on the loopback interface: POST /mcp, with a bearer token for each scope


HOST: Final = "127.0.0.1"
PATH: Final = "/mcp"

_INTERNAL_FAULT: Final = 70
_REQUESTS_MAX: Final = 200
"""Requests with a token at the same time; more are refused."""

_WAITING_MAX: Final = 100
"""Connections without a request in progress, with and without a token; a further one closes the
oldest of its sort. So connections that send half a request, or none, keep no client out."""

_KNOWN: Final = "cerata.known"
"""The name in the scope of a request whose token is known."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """The service of a token, which is kept as its SHA-256."""

    digest: bytes
    service: Service


def bearers_of(
    entries: Sequence[TokenEntry],
    store: Store,
    path: str,
    *,
    is_read_only: bool,
    is_recording: bool,
) -> list[Bearer]:
    """Return the services of a token file.

    Args:
        entries: The entries of the file.
        store: The memory; an entry narrows its scope.
        path: The token file, for errors.
        is_read_only: Every token only reads.
        is_recording: Write each recall of a token that writes as an event.

    Raises:
        InvalidInput: an entry's scope is not valid, or would widen that of the store.
    """
    bearers: list[Bearer] = []
    for place, entry in enumerate(entries, 1):
        try:
            scoped = store.scoped(entry.scope)
        except InvalidInput as error:
            raise InvalidInput(
                f"The scope of entry {place} is not valid: {error.what}",
                where=path,
                remedy=error.remedy,
            ) from error
        reads = is_read_only or entry.read_only
        service = Service(scoped, is_read_only=reads, is_recording=is_recording and not reads)
        bearers.append(Bearer(hashlib.sha256(entry.token.encode()).digest(), service))
    return bearers


def listening_socket(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback interface; 0 is any free port.

    Raises:
        InvalidInput: the system refuses the port.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A server that starts again must not wait for old connections to time out.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"Cannot listen on port {port}: {reason}",
            where="--http",
            remedy="Choose another port; 0 takes any free port.",
        ) from error
    return listener


def serve_http(bearers: Sequence[Bearer], shutdown: Shutdown, listener: socket.socket) -> int:
    """Serve clients until a signal, which ends this process.

    Returns an exit code only if uvicorn ends on its own.

    Raises:
        Unsupported: the SDK is not installed.
    """
    with loading("the MCP SDK"):
        import anyio
        import uvicorn
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

    port = listener.getsockname()[1]
    app = _App(bearers, shutdown, port)
    shutdown.is_answered = app.is_answered

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # The shutdown has the signals.
            yield

    # The connections whose last request had a token, and the others: each sort closes its own only.
    waiting: dict[bool, dict[Any, None]] = {True: {}, False: {}}

    class Connection(AutoHTTPProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait(is_known=False)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._leave()

        def on_response_complete(self) -> None:
            is_known = _KNOWN in self.scope
            super().on_response_complete()
            self._wait(is_known=is_known)

        def connection_lost(self, exc: Exception | None) -> None:
            self._leave()
            super().connection_lost(exc)

        def _leave(self) -> None:
            for connections in waiting.values():
                connections.pop(self, None)

        def _wait(self, *, is_known: bool) -> None:
            self._leave()
            connections = waiting[is_known]
            connections[self] = None
            if len(connections) > _WAITING_MAX:
                oldest = next(iter(connections))
                del connections[oldest]
                oldest.transport.abort()

    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
    )

    async def run() -> None:
        async with app.running():
            sys.stderr.write(f"serving http://{HOST}:{port}{PATH}\n")
            sys.stderr.flush()
            await Server(config).serve(sockets=[listener])

    anyio.run(run)
    return _INTERNAL_FAULT


class _App:
    """The ASGI application: path, method and token, then the session manager of the token."""

    def __init__(self, bearers: Sequence[Bearer], shutdown: Shutdown, port: int) -> None:
        with loading("the MCP SDK"):
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
            from mcp.server.transport_security import TransportSecuritySettings

        names = (f"{HOST}:{port}", f"localhost:{port}")
        security = TransportSecuritySettings(
            allowed_hosts=[*names], allowed_origins=[f"http://{name}" for name in names]
        )
        self._managers: list[tuple[bytes, Any]] = [
            (
                bearer.digest,
                StreamableHTTPSessionManager(
                    app=server_of(bearer.service, shutdown.gate),
                    stateless=True,
                    json_response=True,
                    security_settings=security,
                ),
            )
            for bearer in bearers
        ]
        self._open = 0
        self._served = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the session managers in the block."""
        async with contextlib.AsyncExitStack() as stack:
            for _, manager in self._managers:
                await stack.enter_async_context(manager.run())
            yield

    def is_answered(self) -> bool:
        """Return whether each request was answered."""
        return self._open == 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        self._open += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._open -= 1

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != PATH:
            await _refuse(send, 404, f"There is no such path: use {PATH}")
        elif scope["method"] != "POST":
            await _refuse(send, 405, "Only POST is served", (b"allow", b"POST"))
        elif (manager := self._manager_of(scope["headers"])) is None:
            fault = "The token is missing or unknown: pass Authorization: Bearer TOKEN"
            await _refuse(send, 401, fault, (b"www-authenticate", b"Bearer"))
        elif self._served >= _REQUESTS_MAX:
            scope[_KNOWN] = True
            await _refuse(send, 503, "Too many requests: try again", (b"retry-after", b"1"))
        else:
            scope[_KNOWN] = True
            self._served += 1
            try:
                await _handle(manager, scope, receive, send)
            finally:
                self._served -= 1

    def _manager_of(self, headers: Sequence[tuple[bytes, bytes]]) -> Any:
        """Return the session manager of a request's token, or None; always compares with each."""
        values = [value for name, value in headers if name == b"authorization"]
        scheme, _, token = (values[0] if len(values) == 1 else b"").partition(b" ")
        digest = hashlib.sha256(token.strip()).digest()
        found: Any = None
        for known, manager in self._managers:
            if hmac.compare_digest(known, digest):
                found = manager
        return found if scheme.lower() == b"bearer" else None


async def _handle(manager: Any, scope: Any, receive: Any, send: Any) -> None:
    """Let a session manager answer a request; its body is read here, since SDK 1 has no limit."""
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MESSAGE_SIZE_MAX:
            fault = f"The body is over the limit of {MESSAGE_SIZE_MAX:,} bytes"
            await _refuse(send, 413, fault, (b"connection", b"close"))
            return
        is_whole = not message.get("more_body", False)
    messages = iter([{"type": "http.request", "body": b"".join(parts), "more_body": False}])

    async def again() -> Any:
        return next(messages, None) or await receive()

    await manager.handle_request(scope, again, send)


async def _refuse(send: Any, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Answer a request that reaches no server."""
    body = f"{text}\n".encode()
    kind = (b"content-type", b"text/plain; charset=utf-8")
    size = (b"content-length", str(len(body)).encode())
    start = {"type": "http.response.start", "status": status, "headers": [kind, size, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})
