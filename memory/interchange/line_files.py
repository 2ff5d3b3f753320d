"""Files of lines that a caller names, compressed with zstd if the name ends in ``.zst``.

Owns the reading of such a file in steps, and the writing of a new one, which appears whole or not
at all. The only module of the room that touches files beside the log.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast

import zstandard

from cerata.engine.arguments import wrong_type
from cerata.engine.disk.storage import refused
from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.open import path_name

from ..ingest.document import open_regular

COMPRESSED: Final = ".zst"
_WINDOW_SIZE_MAX: Final = 128 << 20
_CONTENT_SIZE_MIN: Final = 1 << 30
_CONTENT_PER_BYTE: Final = 256
"""The content may have so many bytes in any case, and so many for each byte of a file: lines of
events shrink to a tenth, and a bomb of zeros to a thirty-thousandth."""

_LEVEL: Final = 3
_STEP_SIZE: Final = 1 << 13
"""Bytes of a step: as many before damage are lost at most."""
_EVENTS: Final = re.compile(rb'"format"\s*:\s*"cerata-events/')

Target: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""A path, or a file that is open for bytes."""


class Source:
    """Bytes of a file of lines; ``taken`` counts those read from the file, before decompression."""

    def __init__(self, file: IO[bytes], *, compressed: bool) -> None:
        self._file = file
        self.taken = 0
        self.read: Callable[[int], bytes] = self._take
        if compressed:
            self.read = decompressed(cast("IO[bytes]", _Reading(self._take))).read1

    def _take(self, size: int) -> bytes:
        # A single read: the bytes before damage are returned, and the next read raises.
        read: Callable[[int], object] = getattr(self._file, "read1", self._file.read)
        data = read(size)
        if not isinstance(data, bytes):
            raise wrong_type("The file", "opened for bytes", data, "Open it with mode 'rb'.")
        self.taken += len(data)
        return data


class _Reading:
    """A file of which only `read` is used."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


class _Decompressed(io.RawIOBase):
    """The content of a file in zstd, decompressed in steps, up to the step with damage."""

    def __init__(self, file: IO[bytes]) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_SIZE_MAX)
        counted = _Reading(lambda size: self._counted(file.read(size)))
        self._reader = decompressor.stream_reader(
            cast("IO[bytes]", counted), read_across_frames=True, closefd=False
        )
        self._rest = _CONTENT_SIZE_MIN
        """Bytes of content that may follow."""
        self._error: InvalidInput | None = None

    def _counted(self, data: bytes) -> bytes:
        self._rest += _CONTENT_PER_BYTE * len(data)
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = 0
        while self._error is None and size < len(buffer):
            try:
                data = self._reader.read(min(_STEP_SIZE, len(buffer) - size))
            except zstandard.ZstdError as error:
                self._error = InvalidInput(
                    f"The file cannot be decompressed: {error}", remedy="Pass an unchanged file."
                )
                break
            if not data:
                break
            self._rest -= len(data)
            if self._rest < 0:
                self._error = InvalidInput(
                    f"The compressed file has over {_CONTENT_PER_BYTE} times its size of content",
                    remedy="Decompress the file with zstd, and import the content.",
                )
                break
            buffer[size : size + len(data)] = data
            size += len(data)
        if self._error is not None and not size:
            raise self._error
        return size


def decompressed(file: IO[bytes]) -> io.BufferedReader:
    """Return the content of a file in zstd; a read raises `InvalidInput` if it is damaged."""
    return io.BufferedReader(_Decompressed(file))


def peekable(file: IO[bytes]) -> io.BufferedReader:
    """Return a file of which the first line can be seen before it is read."""
    if isinstance(file, io.BufferedReader):
        return cast("io.BufferedReader", file)
    return io.BufferedReader(cast("Any", file))


def holds_events(file: io.BufferedReader) -> bool:
    """Return whether a file begins with the line of an export of events; reads nothing."""
    return _EVENTS.search(file.peek().partition(b"\n")[0]) is not None


@contextmanager
def opened_source(source: Target) -> Generator[Source]:
    """Open a file of lines; an open file stays open.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the path is not that of a regular file.
    """
    if not isinstance(source, str | os.PathLike):
        yield Source(_file_of(source, "read"), compressed=False)
        return
    name = path_name(source)
    try:
        file = open_regular(Path(name))
    except FileNotFoundError as error:
        raise NotFound("The file does not exist", where=name, remedy="Check the path.") from error
    except OSError as error:
        raise refused(error, "open", name) from error
    with file:
        yield Source(file, compressed=name.endswith(COMPRESSED))


@contextmanager
def opened_target(target: Target, memory: str | None) -> Generator[IO[bytes]]:
    """Open a file for lines; a path gets its name when the block ends without an error.

    A new file has the mode of the memory at the path ``memory`` (`create_made_file`).

    Raises:
        Conflict: a file exists at the path.
        NotFound: the path's folder does not exist.
    """
    if not isinstance(target, str | os.PathLike):
        yield _file_of(target, "write")
        return
    name = path_name(target)
    path = Path(name)
    try:
        is_taken = path.exists()
    except OSError as error:
        raise refused(error, "write", name) from error
    if is_taken:
        raise _taken(name)
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            with create_made_file(beside, memory) as file:
                with _compressing(file, compressed=name.endswith(COMPRESSED)) as lines:
                    yield lines
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)
        except FileExistsError as error:
            raise _taken(name) from error
        except FileNotFoundError as error:
            raise NotFound(
                "There is no such folder", where=name, remedy="Create it first."
            ) from error
        except OSError as error:
            raise refused(error, "write", name) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def _compressing(file: IO[bytes], *, compressed: bool) -> Generator[IO[bytes]]:
    if not compressed:
        yield file
        return
    with zstandard.ZstdCompressor(_LEVEL).stream_writer(file, closefd=False) as writer:
        yield cast("IO[bytes]", writer)


def _file_of(file: object, method: str) -> IO[bytes]:
    if not callable(getattr(file, method, None)):
        raise wrong_type("The file", "a path or an open file", file, "Pass the file's name.")
    return cast("IO[bytes]", file)


def _taken(name: str) -> Conflict:
    return Conflict(f"{name} exists already", remedy="Pass the name of a new file.")


# --- Files that are made from a memory: only readers of the memory can read them ------------------
#
# Copies of a memory get their mode from the storage (`cerata.engine.log_file.create`).


_OWNER_ONLY = 0o600
_READ_AND_WRITE = 0o666


def create_made_file(path: Path, memory: str | None) -> IO[bytes]:
    """Create a file with the mode of a memory; an existing file raises `FileExistsError`.

    No other user can open the file before it has its mode. Without a memory on the disk only the
    owner can read it.

    Args:
        path: The file to create.
        memory: The path of the memory; None for a memory without a file.
    """
    mode = _OWNER_ONLY if memory is None else _mode_of(memory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, mode & _OWNER_ONLY), "wb")
    try:
        # The mask of the process may have taken bits; those of the group and the world are missing.
        os.fchmod(file.fileno(), mode)
    except BaseException:
        file.close()
        raise
    return file


def _mode_of(memory: str) -> int:
    try:
        return stat.S_IMODE(os.stat(memory).st_mode) & _READ_AND_WRITE
    except OSError:
        return _OWNER_ONLY
