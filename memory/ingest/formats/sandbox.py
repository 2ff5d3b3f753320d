"""Isolated parsing: a parser of hostile formats runs in a child process, under limits.

Owns the child process and its limits. Parsers of HTML, PDF and YAML take quadratic time and
unbounded memory on crafted files, a JSON Schema may have any regular expression, and parsers in C
may crash. In a child with limits of time and memory the worst result is an error. The cost is the
start of an interpreter, about 50 ms a file.

The child ends at a deadline by an alarm of the system, even if its parser never returns. If the
parent ends first, on Linux the system ends the child at once. Elsewhere a thread of the child waits
for the end of the input, and ends the child as soon as the parser lets a thread run.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, TypeVar

import msgspec

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.extras import install_command
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.engine.storage import refused

from .document import Document, Section, some_text, too_large
from .flaws import Flaws

SECONDS_MAX: Final = 60
"""Most processor time for a file."""

WALL_SECONDS_MAX: Final = 120
"""Most time on the clock for a file, from the start of the child."""

MEMORY_MAX: Final = 300 << 20
"""Most bytes of address space that a child may take, beyond those of its interpreter."""

ANSWER_SIZE_MAX: Final = 2 * STRING_SIZE_MAX
"""Most bytes of a child's answer: its text, and the headings of each section."""

_START: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cerata.memory.ingest.formats.sandbox import Limits, run_child; "
    "from {module} import parse; run_child(parse, {limits!r})"
)
_FORMATS: Final = "cerata.memory.ingest.formats"
_PR_SET_PDEATHSIG: Final = 1


class Failure(msgspec.Struct, frozen=True):
    """The part that every answer has: the reason of a failure."""

    error: str | None = None


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
    limits = Limits(len(data), os.getpid(), seconds or SECONDS_MAX, WALL_SECONDS_MAX, MEMORY_MAX)
    try:
        output, code = _answer_of(_START.format(path=sys.path, module=module, limits=limits), data)
    except OSError as error:
        raise refused(error, "start the parser of", where) from error
    if code in _ENDS:
        raise Unparsed(_ENDS[code])
    try:
        failure = msgspec.msgpack.decode(output, type=Failure)
        if failure.error is not None:
            raise Unparsed(failure.error)
        return msgspec.msgpack.decode(output, type=answer)
    except msgspec.DecodeError as error:
        reason = "it takes too much time or memory, or crashes its parser"
        raise Unparsed(f"{reason} (exit code {code})") from error


_ENDS: Final = {
    -signal.SIGALRM: "it takes too much time on the clock",
    -signal.SIGXCPU: "it takes too much time",
    -signal.SIGKILL: "it takes too much time, or the system ended its parser",
}
"""The reasons for which a signal ends a child."""


def _answer_of(code: str, data: bytes) -> tuple[bytes, int]:
    with _child(code) as (child, inlet, outlet):
        feeder = threading.Thread(target=_feed, args=(inlet, data), daemon=True)
        feeder.start()
        # One byte more than the limit, so that a longer answer cannot be decoded.
        answer = outlet.read(ANSWER_SIZE_MAX + 1)
        if len(answer) > ANSWER_SIZE_MAX:
            child.kill()
        # Keep the input open until here: the child exits at its end.
        feeder.join()
        inlet.close()
        return answer, child.wait()


@contextmanager
def _child(code: str) -> "Generator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]":
    """Start a child that has ended when the block ends, also after an exception."""
    child = subprocess.Popen(  # noqa: S603 - this interpreter, with code from this module
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    # For a child whose alarm cannot end it: a stopped child, or a child that has not set it yet.
    deadline = threading.Timer(WALL_SECONDS_MAX + 5, child.kill)
    deadline.daemon = True
    try:
        deadline.start()
        assert child.stdin is not None
        assert child.stdout is not None
        with open(child.stdout.fileno(), "rb", closefd=False) as outlet:
            yield child, child.stdin, outlet
    finally:
        deadline.cancel()
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        child.wait()


def _feed(inlet: IO[bytes], data: bytes) -> None:
    """Write the whole input; a child that has ended reads nothing."""
    rest = memoryview(data)
    with suppress(OSError, ValueError):
        while rest:
            rest = rest[inlet.write(rest) :]


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


# --- in the child --------------------------------------------------------------------------------


class Limits(msgspec.Struct, frozen=True):
    """The child's input size in bytes, its parent's process id, and the limits of its resources."""

    size: int
    parent: int
    seconds: int
    wall_seconds: int
    memory: int


def run_child(parse: Callable[[bytes], Any], limits: Limits) -> None:
    """Set the limits, parse standard input, and write the answer; runs in the child."""
    _end_with_parent(limits.parent)
    _set_limits(limits)
    data = sys.stdin.buffer.read(limits.size)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        answer = msgspec.msgpack.encode(parse(data))
        if len(answer) > ANSWER_SIZE_MAX:
            answer = _error("it has too much text, or too many headings")
    except MemoryError:
        answer = _error("it takes too much memory")
    except RecursionError:
        answer = _error("it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a parser may raise anything on hostile bytes
        answer = _error(f"{type(error).__name__}: {error}"[:300])
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    # Skip the interpreter's cleanup, which needs memory that may be full.
    os._exit(0)


def _error(why: str) -> bytes:
    return msgspec.msgpack.encode(Failure(error=why.encode(errors="replace").decode()))


def _end_with_parent(parent: int) -> None:
    """Let the system end this process with its parent, on Linux."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end_with_input() -> None:
    """End this process when its parent closes the input or ends."""
    with suppress(OSError):
        os.read(0, 1)
    os._exit(1)


def _set_limits(limits: Limits) -> None:
    if sys.platform != "win32":
        import resource

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGXCPU})
        signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
        space = _address_space() + limits.memory
        # Some systems cannot limit memory; macOS refuses.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (space, space))


def _address_space() -> int:
    """Return the bytes of address space of this process; an estimate outside of Linux."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 256 << 20
