"""An endpoint with the interface of OpenAI's ``/v1/embeddings``, as an embedder.

Owns the request, its time-out, its retries, and the check of the answer. The protocol is that of
OpenAI's API reference, "Create embeddings": texts go in ``input``, vectors come in ``data``, each
with the ``index`` of its text.

- A key goes into one header only: into no message, no representation and, since redirects are not
  followed, to no other host.
"""

import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
import numpy as np

from cerata.engine.arguments import expect_positive
from cerata.engine.errors import EmbedderFailed, InvalidInput

from .embedder import BATCH_DEFAULT, Matrix, Vector, check_batch, checked_vectors
from .identity import EmbedderIdentity, Metric, Prefixes, VectorType

TRIED_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may pass: too early, too many requests, a busy or stopped server."""

FIRST_WAIT_SECONDS: Final = 0.5
"""The wait before the second try; each further wait is twice as long."""

WAIT_SECONDS_MAX: Final = 60.0
"""The longest wait between two tries, even if the server asks for more."""

ANSWER_BYTES_MAX: Final = 256 << 20
_PIECE_BYTES: Final = 64 << 10
_MESSAGE_CHARACTERS_MAX: Final = 200


class EndpointEmbedder:
    """An embedding model behind an HTTP endpoint.

    A request is repeated after a failure that may pass: after 0.5 s, 1 s, 2 s, or the seconds of
    ``Retry-After``.

    Args:
        url: the endpoint, such as ``http://localhost:8080/v1/embeddings``
        model: the model's name in requests, and in the identity
        revision: your name for the state of the model; change it when the service changes
        dimension: numbers in a vector
        metric: "cosine" (default) or "dot"
        dtype: "f4" (default), or "i1" to store a byte for each number
        key: sent as a bearer token; default none
        key_variable: name of an environment variable with the key; default none
        timeout: seconds until an answer must begin, and again until it must end; default 30
        tries: requests at most for each batch, default 5
        batch: texts in a request, default 32
        max_tokens: tokens of a text that the model reads; None if unknown
        shorten: if True, requests contain the dimension, for models that can shorten; default False
        text_prefix: added before each text, such as "passage: "; default none
        question_prefix: added before each question, such as "query: "; default none
        sleep: function that waits for seconds, for tests

    Raises:
        InvalidInput: the URL is not http or https, is unreadable or contains a password; no header
            can hold the key; the identity is invalid; or a number is too small.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        revision: str,
        dimension: int,
        metric: Metric = "cosine",
        dtype: VectorType = "f4",
        key: str | None = None,
        key_variable: str | None = None,
        timeout: float = 30.0,
        tries: int = 5,
        batch: int = BATCH_DEFAULT,
        max_tokens: int | None = None,
        shorten: bool = False,
        text_prefix: str = "",
        question_prefix: str = "",
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._url = _checked_url(url)
        check_batch(batch)
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise InvalidInput(
                f"timeout must be a number of seconds above 0, not {timeout!r:.60}",
                remedy="Pass a number above 0, such as timeout=30.",
            )
        tries = expect_positive("tries", tries)
        if key is not None and key_variable is not None:
            raise InvalidInput(
                "key and key_variable are both set", remedy="Pass key or key_variable."
            )
        _check_key(key)
        self._prefixes = Prefixes(text_prefix, question_prefix)
        self.identity: Final = EmbedderIdentity(
            model, self._prefixes.revision(revision), dimension, metric, dtype
        )
        self.max_tokens: Final = max_tokens
        self._key = key
        self._key_variable = key_variable
        self._timeout = timeout
        self._tries = tries
        self._batch = batch
        self._shorten = shorten
        self._sleep = sleep
        # No handler of redirects, which would forward the key, and none of files.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32, ``batch`` at a time.

        Args:
            texts: the texts, in order

        Raises:
            EmbedderFailed: the endpoint refused, did not answer, or returned no valid vectors.
        """
        rows = np.empty((len(texts), self.identity.dimension), np.float32)
        for first in range(0, len(texts), self._batch):
            group = [self._prefixes.of_texts + text for text in texts[first : first + self._batch]]
            rows[first : first + len(group)] = self._ask(group)
        return rows

    def embed_question(self, text: str) -> Vector:
        """Return the vector of a question, (dimension,) float32; errors are those of `embed`.

        Args:
            text: the question
        """
        vector: Vector = self._ask([self._prefixes.of_questions + text])[0]
        return vector

    def _ask(self, texts: list[str]) -> Matrix:
        request: dict[str, object] = {"model": self.identity.name, "input": texts}
        if self._shorten:
            request["dimensions"] = self.identity.dimension
        answer = self._post(msgspec.json.encode(request))
        try:
            vectors = _in_order(msgspec.json.decode(answer, type=_Answer), len(texts))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._failed(f"answered without valid embeddings: {error}") from error
        return checked_vectors(self.identity, len(texts), vectors)

    # --- requests --------------------------------------------------------------------------------

    def _post(self, body: bytes) -> bytes:
        key = self._read_key()
        for number in range(self._tries):
            try:
                return self._send(body, key)
            except _Passing as error:
                if number + 1 == self._tries:
                    raise error.failed from error.__cause__
                wait = FIRST_WAIT_SECONDS * 2**number if error.wait is None else error.wait
                self._sleep(min(WAIT_SECONDS_MAX, wait))
        raise AssertionError("the last try returns or raises")

    def _send(self, body: bytes, key: str | None) -> bytes:
        """Return the answer to one request; raise `_Passing` if another may succeed."""
        headers = {"Content-Type": "application/json", "User-Agent": "cerata"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self._url, body, headers, method="POST"
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return self._read(response)
        except urllib.error.HTTPError as error:
            with error:
                message = _server_message(error, key)
            failed = self._failed(f"answered {error.code}{message}", _REMEDIES.get(error.code))
            if error.code not in TRIED_AGAIN:
                raise failed from error
            raise _Passing(failed, _retry_after(error.headers.get("Retry-After"))) from error
        except (OSError, http.client.HTTPException) as error:
            # From urllib: a bad address, a refusal, a time-out or an answer cut short.
            reason = getattr(error, "reason", error)
            message = "did not answer in time" if isinstance(reason, TimeoutError) else "failed"
            raise _Passing(self._failed(f"{message}: {_without(key, str(reason))}")) from error

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """Return a whole answer; it must end within a time-out of its beginning."""
        answer = bytearray()
        size = response.length
        end = time.monotonic() + self._timeout
        while size is None or len(answer) < size:
            # Piecewise: the socket's time-out is for each piece, and a slow drip never exceeds it.
            piece = response.read1(_PIECE_BYTES)
            answer += piece
            if len(answer) > ANSWER_BYTES_MAX:
                raise self._failed(f"answered with over {ANSWER_BYTES_MAX:,} bytes")
            if not piece:
                break
            if time.monotonic() > end:
                raise TimeoutError
        if size is not None and len(answer) < size:
            raise http.client.IncompleteRead(bytes(answer), size - len(answer))
        return bytes(answer)

    def _read_key(self) -> str | None:
        if self._key_variable is None:
            return self._key
        key = os.environ.get(self._key_variable)
        if not key:
            raise self._failed(
                f"has no key: the environment variable {self._key_variable} is not set",
                "Set the variable, or pass key=.",
            )
        _check_key(key)
        return key

    def _failed(self, fault: str, remedy: str | None = None) -> EmbedderFailed:
        return EmbedderFailed(
            f"The endpoint of {self.identity.space!r} {fault}",
            where=self._url.partition("?")[0],
            remedy=remedy or "Call again when the endpoint answers.",
            embedder=self.identity.space,
        )


class _Passing(Exception):
    """A failure that may pass, and the seconds that the server asks to wait, if any."""

    def __init__(self, failed: EmbedderFailed, wait: float | None = None) -> None:
        super().__init__(str(failed))
        self.failed = failed
        self.wait = wait


def _without(key: str | None, message: str) -> str:
    """Return a server's message without the key, which it may repeat."""
    return message if key is None else message.replace(key, "…")


_REMEDIES: Final = {
    400: "Check model, dimension and the texts' length.",
    401: "Check the key.",
    403: "Check the key and its permissions.",
    404: "Check the URL and the model's name.",
    413: "Give a smaller batch.",
}


def _checked_url(url: object) -> str:
    """Return a usable URL; an error shows nothing of the URL, since it may contain a key.

    Raises:
        InvalidInput: the URL is not http or https, is unreadable, or contains a name or password.
    """
    if not (isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url):
        raise InvalidInput(
            "The endpoint's URL must be one word of printable ASCII",
            remedy="Write other characters as %20 and the like, and hosts as xn--….",
        )
    parts = None
    with suppress(ValueError):
        split = urllib.parse.urlsplit(url)
        # Reading an invalid port raises.
        if split.scheme in ("http", "https") and split.hostname and split.port != 0:
            parts = split
    if parts is None:
        raise InvalidInput(
            "The endpoint must be a URL of http or https",
            remedy="Pass a URL such as 'http://localhost:8080/v1/embeddings'.",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "The endpoint's URL must not contain a name or password", remedy="Pass the key as key=."
        )
    return parts.geturl()


def _check_key(key: str | None) -> None:
    """Refuse a key that no header can hold; the error does not show the key."""
    if key is None:
        return
    is_line = isinstance(key, str) and key and key.isascii() and key.isprintable()
    if not is_line:
        raise InvalidInput(
            "The endpoint's key must be one line of printable ASCII",
            remedy="Pass the key as the provider gave it, without line breaks.",
        )


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Vector]


class _Said(msgspec.Struct):
    message: str


class _Refusal(msgspec.Struct):
    error: _Said


def _in_order(answer: _Answer, count: int) -> list[list[float]]:
    """Return the vectors of an answer in the order of their texts.

    Raises:
        ValueError: an index is missing, repeated, or out of range.
    """
    vectors: dict[int, list[float]] = {}
    for item in answer.data:
        if item.index in vectors or not 0 <= item.index < count:
            raise ValueError(f"index {item.index} is repeated or out of range of {count:,} texts")
        vectors[item.index] = item.embedding
    if len(vectors) != count:
        raise ValueError(f"{len(vectors):,} vectors for {count:,} texts")
    return [vectors[index] for index in range(count)]


def _server_message(error: urllib.error.HTTPError, key: str | None) -> str:
    """Return a server's message about an error: OpenAI's, else the beginning of the answer."""
    try:
        text = error.read(1 << 16).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    with suppress(msgspec.DecodeError, RecursionError):
        text = msgspec.json.decode(text, type=_Refusal).error.message
    # Before the cut, which could leave an unrecognisable part of the key.
    line = " ".join(_without(key, text).split())
    return f": {line[:_MESSAGE_CHARACTERS_MAX]}" if line else ""


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a server asks to wait; a date is ignored."""
    text = (value or "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
