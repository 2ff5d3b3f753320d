"""Any endpoint that speaks as OpenAI's ``/v1/embeddings`` does, as an embedder.

Owns the request, its time-out, when it is tried again, and what of the answer is believed. The
protocol is that of OpenAI's API reference, "Create embeddings": texts go in ``input``, vectors come
in ``data``, each with the ``index`` of its text.

- A key goes into one header, and nowhere else: into no message, no representation, and, since
  redirects are not followed, to no other host.
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

from cerata.engine.errors import EmbedderFailed, InvalidInput

from .embedder import BATCH_DEFAULT, Matrix, check_batch, checked_vectors
from .identity import EmbedderIdentity, Metric, VectorType

TRIED_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that pass: too early or too many, and a server that is busy or down."""

FIRST_WAIT_SECONDS: Final = 0.5
"""The wait before the second try; each next one is twice as long."""

WAIT_SECONDS_MAX: Final = 60.0
"""The longest wait between two tries, also where the server asks for a longer one."""

ANSWER_BYTES_MAX: Final = 256 << 20
_PIECE_BYTES: Final = 64 << 10
_SAID_CHARACTERS_MAX: Final = 200


class EndpointEmbedder:
    """An embedding model behind ``url``, such as ``http://localhost:8080/v1/embeddings``.

    ``revision`` is what you call the model's present state: give another one when the service
    changes it. ``key`` is sent as a bearer token; ``key_variable`` names an environment variable
    that has it. A request waits ``timeout`` seconds at most for an answer to begin, and as long for
    it to end; it is tried ``tries`` times where that may help: after 0.5 s, 1 s, 2 s, or what
    ``Retry-After`` says.
    With ``shorten=True`` the dimension is asked for, as some models can be.

    Raises:
        InvalidInput: a URL that is not of http or https, cannot be read, or has a password; a key
        that no header can hold; an identity that cannot be; a number below its least.
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
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._url = _checked_url(url)
        check_batch(batch)
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise InvalidInput(f"timeout is {timeout!r:.60}", remedy="Give seconds above 0.")
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise InvalidInput(f"tries is {tries!r:.60}", remedy="Give a number from 1 on.")
        if key is not None and key_variable is not None:
            raise InvalidInput(
                "Give key or key_variable, not both", remedy="Leave out one of the two."
            )
        _check_key(key)
        self.identity: Final = EmbedderIdentity(model, revision, dimension, metric, dtype)
        self.max_tokens: Final = max_tokens
        self._key, self._key_variable = key, key_variable
        self._timeout, self._tries, self._batch = timeout, tries, batch
        self._shorten = shorten
        self._sleep = sleep
        # Without the handlers of redirects, which would take the key along, and of files.
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

        Raises:
            EmbedderFailed: the endpoint refused, did not answer, or gave what are no vectors.
        """
        rows = np.empty((len(texts), self.identity.dimension), np.float32)
        for first in range(0, len(texts), self._batch):
            some = list(texts[first : first + self._batch])
            rows[first : first + len(some)] = self._ask(some)
        return rows

    def _ask(self, texts: list[str]) -> Matrix:
        asked: dict[str, object] = {"model": self.identity.name, "input": texts}
        if self._shorten:
            asked["dimensions"] = self.identity.dimension
        answer = self._post(msgspec.json.encode(asked))
        try:
            given = _in_order(msgspec.json.decode(answer, type=_Answer), len(texts))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._failed(f"answered with what are no embeddings: {error}") from error
        return checked_vectors(self.identity, len(texts), given)

    # --- requests --------------------------------------------------------------------------------

    def _post(self, body: bytes) -> bytes:
        """Return the answer to a request, tried again where that may help."""
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
        """Return the answer to one request; `_Passing` where another may be answered."""
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
                said = _said(error, key)
            failed = self._failed(f"answered {error.code}{said}", _REMEDIES.get(error.code))
            if error.code not in TRIED_AGAIN:
                raise failed from error
            raise _Passing(failed, _retry_after(error.headers.get("Retry-After"))) from error
        except (OSError, http.client.HTTPException) as error:
            # What urllib says of an address, a refusal, a time-out or an answer cut short.
            reason = getattr(error, "reason", error)
            said = "did not answer in time" if isinstance(reason, TimeoutError) else "failed"
            raise _Passing(self._failed(f"{said}: {_without(key, str(reason))}")) from error

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """Return a whole answer; it must end within a time-out of its beginning."""
        answer, size = bytearray(), response.length
        end = time.monotonic() + self._timeout
        while size is None or len(answer) < size:
            # As it comes: the socket's time-out is of each piece, and a drip never runs into it.
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
                "Set it, or pass key=.",
            )
        _check_key(key)
        return key

    def _failed(self, said: str, remedy: str | None = None) -> EmbedderFailed:
        return EmbedderFailed(
            f"The endpoint of {self.identity.space!r} {said}",
            where=self._url.partition("?")[0],
            remedy=remedy or "Call again when it answers.",
            embedder=self.identity.space,
        )


class _Passing(Exception):
    """A failure that may pass, and the seconds that the server asks to wait, if it does."""

    def __init__(self, failed: EmbedderFailed, wait: float | None = None) -> None:
        super().__init__(str(failed))
        self.failed = failed
        self.wait = wait


def _without(key: str | None, said: str) -> str:
    """Return what a server said, which may repeat the key."""
    return said if key is None else said.replace(key, "…")


_REMEDIES: Final = {
    400: "Check model, dimension and the texts' length.",
    401: "Check the key.",
    403: "Check the key, and what it may do.",
    404: "Check the URL and the model's name.",
    413: "Give a smaller batch.",
}


def _checked_url(url: object) -> str:
    """Return a URL that can be asked; of one that cannot nothing is shown, since it may have a key.

    Raises:
        InvalidInput: it is not of http or https, cannot be read, or has a name or password.
    """
    if not (isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url):
        raise InvalidInput(
            "The endpoint's URL is not one word of printable ASCII",
            remedy="Write other characters as %20 and the like, and hosts as xn--….",
        )
    parts = None
    with suppress(ValueError):
        found = urllib.parse.urlsplit(url)
        # A port that cannot be one raises when it is read.
        if found.scheme in ("http", "https") and found.hostname and found.port != 0:
            parts = found
    if parts is None:
        raise InvalidInput(
            "The endpoint is no URL of http or https",
            remedy="Such as 'http://localhost:8080/v1/embeddings'.",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("The endpoint's URL has a name or password", remedy="Pass key=.")
    return parts.geturl()


def _check_key(key: str | None) -> None:
    """Refuse a key that no header can hold; it is not shown."""
    if key is None:
        return
    is_line = isinstance(key, str) and key and key.isascii() and key.isprintable()
    if not is_line:
        raise InvalidInput(
            "The endpoint's key is not one line of printable ASCII",
            remedy="Pass the key as the provider gave it, without line breaks.",
        )


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    """What is read of an answer."""

    data: list[_Vector]


class _Said(msgspec.Struct):
    message: str


class _Refusal(msgspec.Struct):
    """What is read of an answer that is an error."""

    error: _Said


def _in_order(answer: _Answer, count: int) -> list[list[float]]:
    """Return the vectors of an answer in the order of their texts.

    Raises:
        ValueError: an index is missing, there twice, or of no text.
    """
    vectors: dict[int, list[float]] = {}
    for one in answer.data:
        if one.index in vectors or not 0 <= one.index < count:
            raise ValueError(f"the index {one.index} of {count:,} texts")
        vectors[one.index] = one.embedding
    if len(vectors) != count:
        raise ValueError(f"{len(vectors):,} vectors of {count:,} texts")
    return [vectors[index] for index in range(count)]


def _said(error: urllib.error.HTTPError, key: str | None) -> str:
    """Return what a server says of an error: OpenAI's message, else how the answer begins."""
    try:
        text = error.read(1 << 16).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    with suppress(msgspec.DecodeError, RecursionError):
        text = msgspec.json.decode(text, type=_Refusal).error.message
    # Before it is cut, which would leave a part of the key that nothing finds.
    line = " ".join(_without(key, text).split())
    return f": {line[:_SAID_CHARACTERS_MAX]}" if line else ""


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a server asks to wait; a date is not looked at."""
    said = (value or "").strip()
    return float(said) if said.isascii() and said.isdigit() else None
