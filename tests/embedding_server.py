"""A server of embeddings for tests, in a thread: it answers as OpenAI's, or as it is told."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = tuple[int, dict[str, str], bytes]


def embeddings(texts: list[str]) -> bytes:
    """What a good server answers, in an order of its own."""
    data = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(texts)]
    return json.dumps({"data": data[::-1], "model": "m"}).encode()


class Server:
    """A server that answers as it is told, then well; it keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Answer | Callable[[BaseHTTPRequestHandler], None]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.asked.append(json.loads(body))
                server.headers.append(dict(self.headers))
                answer = server.answers.pop(0) if server.answers else None
                if callable(answer):
                    answer(self)
                    return
                good: Answer = (200, {}, embeddings(server.asked[-1]["input"]))
                status, headers, data = answer or good
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its parent's
                """Say nothing: what is printed by a test is read as a fault."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1/embeddings"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the server itself, whatever this machine's environment says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
