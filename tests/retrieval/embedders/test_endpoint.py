"""An endpoint as an embedder, against a server in a thread: what fails, and what is tried again."""

import json
import re
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import cerata
from cerata import EmbedderFailed, EndpointEmbedder, InvalidInput
from cerata.retrieval.embedders import endpoint

from ...embedding_server import Server, embeddings, without_proxies

KEY = "sk-secret-0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    without_proxies(monkeypatch)
    server = Server()
    yield server
    server.close()


class Asking:
    """An embedder of a server, whose waits are taken down and not waited."""

    def __init__(self, url: str, **changed: Any) -> None:
        self.waits: list[float] = []
        given: dict[str, Any] = {"model": "m", "revision": "1", "dimension": 2, **changed}
        self.embedder = EndpointEmbedder(url, sleep=self.waits.append, **given)

    def embed(self, *texts: str) -> list[list[float]]:
        vectors: list[list[float]] = self.embedder.embed(texts).tolist()
        return vectors


def refused(asking: Asking, *texts: str) -> EmbedderFailed:
    with pytest.raises(EmbedderFailed) as caught:
        asking.embed(*(texts or ("wax",)))
    assert caught.value.embedder == "m@1/2/cosine"
    return caught.value


# --- what is asked -------------------------------------------------------------------------------


def test_texts_go_out_in_batches_and_vectors_come_back_in_order(server: Server) -> None:
    """A server may answer in any order: the index says which text a vector is of."""
    asking = Asking(server.url, batch=2)
    assert asking.embed("a", "bb", "ccc") == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    assert server.asked == [
        {"model": "m", "input": ["a", "bb"]},
        {"model": "m", "input": ["ccc"]},
    ]
    assert "Authorization" not in server.headers[0]
    assert asking.waits == []


def test_a_store_embeds_with_it(server: Server) -> None:
    asking = Asking(server.url)
    with cerata.open(":memory:", embedder=asking.embedder) as store:
        store.put_frames(["wax", "tablet", "wax"])
        store.put_frame("wax")
    assert [one["input"] for one in server.asked] == [["wax", "tablet"]]


def test_the_dimension_is_asked_for_where_it_can_be(server: Server) -> None:
    Asking(server.url, shorten=True).embed("wax")
    assert server.asked == [{"model": "m", "input": ["wax"], "dimensions": 2}]


def test_a_key_is_sent_as_a_bearer_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the argument, or from the variable that was named, when it is needed."""
    Asking(server.url, key=KEY).embed("wax")
    asking = Asking(server.url, key_variable="CERATA_TEST_KEY")
    assert "CERATA_TEST_KEY is not set" in str(refused(asking))
    monkeypatch.setenv("CERATA_TEST_KEY", KEY)
    asking.embed("wax")
    assert [one["Authorization"] for one in server.headers] == [f"Bearer {KEY}"] * 2


# --- what is tried again -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: Server, status: int) -> None:
    """After waits that double."""
    server.answers = [(status, {}, b"busy")] * 3
    asking = Asking(server.url)
    assert asking.embed("wax") == [[3.0, 1.0]]
    assert asking.waits == [0.5, 1.0, 2.0]
    assert len(server.asked) == 4


def test_a_server_may_say_how_long_to_wait(server: Server) -> None:
    """In seconds, up to a minute; what is no number is passed over."""
    server.answers = [(429, {"Retry-After": said}, b"") for said in ("7", "86400", "Sun", "-1")]
    asking = Asking(server.url)
    asking.embed("wax")
    assert asking.waits == [7.0, 60.0, 2.0, 4.0]


def test_after_the_last_try_it_fails(server: Server) -> None:
    server.answers = [(503, {}, b"down for repair")] * 3
    asking = Asking(server.url, tries=3)
    assert "answered 503: down for repair" in str(refused(asking))
    assert (len(server.asked), asking.waits) == (3, [0.5, 1.0])


@pytest.mark.parametrize(
    ("status", "remedy"), [(400, "length"), (401, "key"), (404, "URL"), (413, "batch"), (301, "")]
)
def test_what_will_not_pass_is_told_at_once(server: Server, status: int, remedy: str) -> None:
    """A redirect too: the key is for this host."""
    said = {"error": {"message": "no such\n model", "type": "x"}}
    server.answers = [(status, {"Location": server.url}, json.dumps(said).encode())]
    error = refused(Asking(server.url))
    assert f"answered {status}: no such model" in error.what
    assert remedy in (error.remedy or "")
    assert len(server.asked) == 1


def test_no_answer_in_time_is_tried_again(server: Server) -> None:
    released = threading.Event()

    def hang(_handler: BaseHTTPRequestHandler) -> None:
        released.wait(10)

    server.answers = [hang, hang]
    asking = Asking(server.url, timeout=0.05, tries=2)
    error = refused(asking)
    released.set()
    assert "did not answer in time" in str(error)
    assert asking.waits == [0.5]


def test_an_answer_that_drips_is_not_waited_for(server: Server) -> None:
    """Each byte came in time, and the whole would have taken for ever."""
    released = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        with suppress(OSError):
            # Until the other side is gone; 5 s if it never goes.
            for _ in range(250):
                handler.wfile.write(b" ")
                if released.wait(0.02):
                    return

    server.answers = [drip]
    asking = Asking(server.url, timeout=0.2)
    assert asking.embed("wax") == [[3.0, 1.0]]
    released.set()
    assert asking.waits == [0.5]
    assert len(server.asked) == 2


def test_an_answer_that_is_too_large_is_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it says so before or not; it is not asked for again."""
    monkeypatch.setattr(endpoint, "ANSWER_BYTES_MAX", 1_000)

    def pour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        with suppress(OSError):
            for _ in range(10_000):
                handler.wfile.write(b" " * 1_000)

    server.answers = [(200, {}, b" " * 1_001), pour, (200, {}, b" " * 1_000)]
    asking = Asking(server.url)
    for said in ("over 1,000 bytes", "over 1,000 bytes", "without valid embeddings"):
        assert said in str(refused(asking))
    assert len(server.asked) == 3


def test_an_answer_may_come_in_chunks(server: Server) -> None:
    """As from a server that does not know its size before."""

    def chunked(handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.close_connection = True
        data = embeddings(server.asked[-1]["input"])
        for at in range(0, len(data), 7):
            piece = data[at : at + 7]
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        # Of the first answer the end is missing.
        handler.wfile.write(b"0\r\n\r\n" if len(server.asked) > 1 else b"7\r\n")

    server.answers = [chunked, chunked]
    asking = Asking(server.url)
    assert asking.embed("wax") == [[3.0, 1.0]]
    assert asking.waits == [0.5]


def test_an_answer_cut_short_is_tried_again(server: Server) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data"')
        handler.close_connection = True

    server.answers = [cut]
    assert Asking(server.url).embed("wax") == [[3.0, 1.0]]


def test_where_nobody_listens_it_says_so() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        asking = Asking(f"http://127.0.0.1:{held.getsockname()[1]}/v1", tries=2)
        assert "failed" in str(refused(asking))
    assert asking.waits == [0.5]


# --- what is believed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"data": {}}',
        b'{"data": [1, 2]}',
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 2, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": true, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": null}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": "AAAA"}]}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_are_no_vectors_of_the_texts_is_refused(server: Server, data: bytes) -> None:
    server.answers = [(200, {}, data)]
    refused(Asking(server.url), "a", "b")
    assert len(server.asked) == 1


# --- the key stays secret ------------------------------------------------------------------------


def test_a_key_is_in_no_message_and_no_representation(server: Server) -> None:
    """Servers repeat it; logs are kept."""
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()
    server.answers = [(401, {}, said), (500, {}, KEY.encode())]
    asking = Asking(server.url + "?api-version=1", key=KEY, tries=1)
    for _ in range(2):
        error = refused(asking)
        shown = [str(error), repr(error), json.dumps(error.to_dict())]
        shown += traceback.format_exception(error)
        assert not any(KEY in one for one in shown)
    server.answers = [(401, {}, said)]
    assert "provided: …" in str(refused(asking))
    assert KEY not in repr(asking.embedder)
    assert repr(asking.embedder) == "<EndpointEmbedder m@1/2/cosine>"


def test_a_key_is_not_shown_where_a_message_is_cut(server: Server) -> None:
    """It was blotted out after the cut, and what had been cut in two stayed."""
    asking = Asking(server.url, key=KEY)
    for before in range(175, 201):
        server.answers = [(401, {}, f"{'x' * before} {KEY}".encode())]
        assert KEY[:3] not in str(refused(asking))


@pytest.mark.parametrize(
    "changed",
    [
        {"key": f"{KEY}\n"},
        {"key": f"{KEY}é"},
        {"key": ""},
        {"key": KEY, "key_variable": "X"},
        {"url": f"http://{KEY}@localhost/v1"},
        {"url": f"http://user:{KEY}@localhost/v1"},
        {"url": f"ftp://user:{KEY}@localhost/v1"},
        {"url": f"localhost/v1?api-key={KEY}"},
        {"url": f"http://localhost/v1 ?api-key={KEY}"},
    ],
)
def test_a_key_that_is_refused_is_not_shown(changed: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=re.compile("key|password|URL")) as caught:
        Asking(**{"url": "http://localhost/v1", **changed})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "file:///etc/passwd"},
        {"url": "localhost:8080/v1"},
        {"url": "http://"},
        {"url": "http://[::1/v1"},
        {"url": "http://localhost:port/v1"},
        {"url": "http://localhost:0/v1"},
        {"url": "http://localhost:65536/v1"},
        {"url": "http://localhost/v1 embeddings"},
        {"url": "http://localhost/\n"},
        {"url": "http://localhost/é"},
        {"url": None},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"timeout": "1"},
        {"tries": 0},
        {"tries": 1.5},
        {"batch": 0},
        {"model": "a@b"},
        {"revision": ""},
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_made(changed: dict[str, Any]) -> None:
    """Of a URL too: it raised another error, or was tried five times, at the first text."""
    with pytest.raises(InvalidInput):
        Asking(**{"url": "http://localhost/v1", **changed})
