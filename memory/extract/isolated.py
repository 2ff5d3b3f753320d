"""Isolated parsing: a parser of hostile formats runs in a process of its own, under limits.

Parsers of HTML and PDF take quadratic time and unbounded memory on files made for it, and those
in C may crash. In a child with a limit of processor time and memory the worst is an error. It
costs the start of an interpreter, about 50 ms a file.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import msgspec

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.limits import STRING_SIZE_MAX

from .document import Document, Section, some_text, too_large

SECONDS_MAX: Final = 60
"""Processor time of one file; also the time on the clock, four times over."""

MEMORY_MAX: Final = 2 << 30
"""Bytes of address space of the child."""

_START: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cerata.memory.extract.isolated import run_child; "
    "from cerata.memory.extract.{module} import parse; run_child(parse)"
)


class Parsed(msgspec.Struct, frozen=True):
    """What a child found: the title, and headings and text of each section in order."""

    title: str | None = None
    sections: list[tuple[tuple[str, ...], str]] = []
    error: str | None = None


def parse_isolated(
    data: bytes, where: str, *, module: str, package: str, media_type: str
) -> Document:
    """Return the document that ``parse`` of a module here makes of the bytes, in a child process.

    Raises:
        Unsupported: the package is not installed; names the extra, which is called as the module.
        InvalidInput: the parser failed, or ran out of time or memory.
    """
    if not _is_installed(package):
        raise Unsupported(
            f"Reading {module.upper()} needs the package {package}",
            where=where,
            remedy=f"Install it: pip install 'cerata[{module}]'.",
        )
    code = _START.format(path=sys.path, module=module)
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", code],
            input=data,
            capture_output=True,
            timeout=SECONDS_MAX * 4,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(module, where, "it takes too long") from error
    try:
        found = msgspec.json.decode(child.stdout, type=Parsed)
    except msgspec.DecodeError as error:
        reason = "it takes too much time or memory, or crashes its parser"
        raise _failed(module, where, f"{reason} (exit code {child.returncode})") from error
    if found.error is not None:
        raise _failed(module, where, found.error)
    return _document(found, where, media_type)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:
        # Python's own mark for a module that must not be imported.
        return False


def _failed(module: str, where: str, why: str) -> InvalidInput:
    return InvalidInput(f"The {module.upper()} cannot be read: {why}", where=where)


def _document(found: Parsed, where: str, media_type: str) -> Document:
    text = "".join(text for _, text in found.sections)
    if len(text.encode()) > STRING_SIZE_MAX:
        raise too_large(where)
    some_text(text, where)
    sections: list[Section] = []
    start = 0
    for headings, piece in found.sections:
        sections.append(Section(start, start + len(piece), headings))
        start += len(piece)
    return Document(text, tuple(sections), media_type, found.title, is_extracted=True)


def run_child(parse: Callable[[bytes], Parsed]) -> None:
    """Parse standard input and write what was found: what the child does, from its limits on."""
    _set_limits()
    try:
        found = parse(sys.stdin.buffer.read())
    except MemoryError:
        found = Parsed(error="it takes too much memory")
    except RecursionError:
        found = Parsed(error="it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - whatever a parser raises on bytes from anywhere
        found = Parsed(error=f"{type(error).__name__}: {error}"[:300])
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _set_limits() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
