"""Isolated parsing: a parser of hostile formats runs in a child process, under limits.

Owns the start and the end of the child process, and what goes into it and out of it. Parsers of
HTML, PDF and YAML take quadratic time and unbounded memory on crafted files, a JSON Schema may have
any regular expression, and parsers in C may crash. In a child with limits of time and memory the
worst result is an error. The cost is the start of an interpreter, about 50 ms, for a file, or for
all parts of a `ParserProcess`. Leaves out the process itself (`sandbox_child`).
"""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import IO, Final, Self, TypeVar

import msgspec

from cerata.engine.disk.storage import refused
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import install_command
from cerata.engine.limits import STRING_SIZE_MAX

from .document import Document, Flaws, Section, some_text, too_large
from .sandbox_child import ANSWER_SIZE_MAX, SIZE_BYTES, Failure, Limits

SECONDS_MAX: Final = 60
"""Most processor time for a file."""

WALL_SECONDS_MAX: Final = 120
"""Most time on the clock for a file, from the start of the child."""

MEMORY_MAX: Final = 300 << 20
"""Most bytes of address space that a child may take, beyond those of its interpreter."""

_START: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cerata.memory.ingest.formats.sandbox_child import Limits, run_child; "
    "from {module} import parse; run_child(parse, {limits!r})"
)
_FORMATS: Final = "cerata.memory.ingest.formats"
_READ_SIZE: Final = 1 << 20


class Parsed(msgspec.Struct, frozen=True):
    """The answer of a child: the title, and headings and text of each section in order.

    ``skipped`` has the fault and the place of each part that could not be read.
    """

    title: str | None = None
    sections: list[tuple[tuple[str, ...], str]] = []
    error: str | None = None
    skipped: list[tuple[str, str]] = []


def parse_isolated(
    data: bytes, where: str, *, module: str, package: str, media_type: str
) -> Document:
    """Return the document of bytes by ``parse`` of a module in this folder, in a child process.

    Raises:
        Unsupported: the package is not installed; the extra has the name of the module.
        InvalidInput: the parser failed, or ran out of time or memory.
    """
    if not is_installed(package):
        raise Unsupported(
            f"Reading {module.upper()} needs the package {package}",
            where=where,
            remedy=f"Run {install_command(module)}.",
        )
    try:
        parsed = isolated(data, where, module=f"{_FORMATS}.{module}", answer=Parsed)
    except Unparsed as error:
        raise _failed(module, where, str(error)) from error
    return _document(parsed, where, media_type)


class Unparsed(Exception):
    """The parser failed, or ran out of time or memory; the text is the reason."""


_Answer = TypeVar("_Answer")


def isolated(
    data: bytes, where: str, *, module: str, answer: type[_Answer], seconds: int | None = None
) -> _Answer:
    """Return the answer of ``parse(data)`` of a module, in a child process.

    Args:
        data: The bytes to parse.
        where: The place of the bytes, for an error of the system.
        module: The absolute name of our module; its imports cost time in each child.
        answer: The `msgspec.Struct` that ``parse`` returns.
        seconds: Most processor time; default `SECONDS_MAX`.

    Raises:
        Unparsed: the parser failed, or ran out of time or memory.
        StorageFailed: the system starts no process.
    """
    with ParserProcess(where, module=module, seconds=seconds) as parser:
        return parser.parse(data, answer)


class ParserProcess:
    """A child process that parses one part after another, under limits of all of them together.

    - It starts with the first part, and again with the part after a failure.
    - A parser's time on the clock passes only while it has a part.
    - It has ended when the block ends, also after an exception.
    """

    def __init__(
        self,
        where: str,
        *,
        module: str,
        seconds: int | None = None,
        wall_seconds: int | None = None,
        memory: int | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            where: The place of the bytes, for an error of the system.
            module: The absolute name of our module with ``parse``; its imports cost time.
            seconds: Most processor time; default `SECONDS_MAX`.
            wall_seconds: Most time on the clock; default `WALL_SECONDS_MAX`.
            memory: Most bytes of address space; default `MEMORY_MAX`.
        """
        self._where = where
        self._module = module
        self._limits = Limits(
            os.getpid(),
            seconds or SECONDS_MAX,
            wall_seconds or WALL_SECONDS_MAX,
            memory or MEMORY_MAX,
        )
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def parse(self, data: bytes, answer: type[_Answer]) -> _Answer:
        """Return the answer of ``parse(data)``, a `msgspec.Struct` of the type ``answer``.

        Raises:
            Unparsed: the parser failed, or ran out of time or memory; its process has ended.
            StorageFailed: the system starts no process.
        """
        try:
            output = self._answer_to(data)
            failure = msgspec.msgpack.decode(output, type=Failure)
            if failure.error is not None:
                raise Unparsed(failure.error)
            return msgspec.msgpack.decode(output, type=answer)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise refused(error, "start the parser of", self._where) from error
            if isinstance(error, msgspec.DecodeError):
                raise Unparsed(f"its parser gave another answer: {error}") from error
            raise

    def close(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            child, self._child = self._child, None
            child.kill()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
            child.wait()

    def _answer_to(self, data: bytes) -> bytes:
        if self._child is None:
            code = _START.format(path=sys.path, module=self._module, limits=self._limits)
            self._child = subprocess.Popen(  # noqa: S603 - this interpreter, with our code
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=os.environ | _ENVIRONMENT,
            )
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        # For a child whose alarm cannot end it: a stopped child, or a child that has not set it.
        deadline = threading.Timer(self._limits.wall_seconds + 5, child.kill)
        deadline.daemon = True
        try:
            deadline.start()
            _send(child.stdin, data)
            size = int.from_bytes(_received(child.stdout, SIZE_BYTES))
            if size > ANSWER_SIZE_MAX:
                child.kill()
            output = _received(child.stdout, size)
            if size and len(output) == size:
                return output
            status = child.wait()
        finally:
            deadline.cancel()
        reason = "it takes too much time or memory, or crashes its parser"
        raise Unparsed(_ENDS.get(status, f"{reason} (exit code {status})"))


_ENVIRONMENT: Final = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Address space of threads that grows with the processors, and is never used."""

_ENDS: Final = {
    -signal.SIGALRM: "it takes too much time on the clock",
    -signal.SIGXCPU: "it takes too much time",
    -signal.SIGKILL: "it takes too much time, or the system ended its parser",
}
"""The reasons for which a signal ends a child."""


def _send(inlet: IO[bytes], data: bytes) -> None:
    """Write a part after its size; a child that has ended reads nothing."""
    with suppress(BrokenPipeError):
        for part in (len(data).to_bytes(SIZE_BYTES), data):
            rest = memoryview(part)
            while rest:
                rest = rest[inlet.write(rest) :]


def _received(outlet: IO[bytes], size: int) -> bytes:
    """Return so many bytes, or fewer from a child that has ended."""
    data = bytearray()
    while len(data) < size and (part := outlet.read(min(size - len(data), _READ_SIZE))):
        data += part
    return bytes(data)


def is_installed(package: str) -> bool:
    """Return whether a package can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ValueError, ModuleNotFoundError):
        # `find_spec` raises for a loaded module without a spec, and without the parent.
        return False


def _failed(module: str, where: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"The {module.upper()} cannot be read: {why}",
        where=where,
        remedy="Save the file as plain text or Markdown, and remember that file.",
    )


def _document(parsed: Parsed, where: str, media_type: str) -> Document:
    text = "".join(text for _, text in parsed.sections)
    if len(text.encode()) > STRING_SIZE_MAX:
        raise too_large(where)
    some_text(text, where)
    sections: list[Section] = []
    start = 0
    for headings, piece in parsed.sections:
        sections.append(Section(start, start + len(piece), headings))
        start += len(piece)
    flaws = Flaws()
    for why, place in parsed.skipped:
        flaws.skip(why, place)
    return Document(text, tuple(sections), media_type, parsed.title, True, flaws.found())
