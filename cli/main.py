"""The entry point: parse the words, then run the verb; errors become a line and an exit code.

Exit codes: 0 done; 1 the answer is no (verify found damage, a file was skipped); 2 bad arguments;
3 to 22 the error classes (docs/errors.md); 70 an internal fault of Cerata; 130 interrupted. Help,
the version, completion and errors of usage load no part of the engine; a verb's function does.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cerata.engine.errors import (
    CerataError,
    InvalidInput,
    Locked,
    StorageFailed,
    UnreadableItem,
    value_text,
)
from cerata.engine.packs import target

from .output import Output
from .parser import answer_shell, is_shell_asking, parser
from .verbs import add_packs_in, function_of
from .visible_text import visible

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cerata.engine.disk.environment import Environment

INTERRUPTED = 130

DEBUG_VARIABLE = "CERATA_DEBUG"
"""Any value makes an unexpected exception show its traceback."""

_STANDARD_OUTPUT = 1


def main(arguments: Sequence[str] | None = None, environment: Environment | None = None) -> int:
    """Run the command line on ``arguments``, by default the process's, and return the exit code.

    ``environment`` replaces disk, clock and randomness.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without a character shows its code; the answer is printed anyway.
            stream.reconfigure(errors="backslashreplace")
    try:
        if is_shell_asking():
            answer_shell()
        options: Namespace | Exception
        try:
            add_packs_in(words)
            options = parser(words).parse_args(words)
        except Exception as error:  # noqa: BLE001 - `execute` raises it again and prints it
            options = error
        return execute(words, options, environment)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


class InternalError(CerataError):
    """An unexpected exception: a fault of Cerata, for any input."""

    exit_code = 70


def execute(
    words: Sequence[str], options: Namespace | Exception, environment: Environment | None
) -> int:
    """Run a verb with its options, or print the parser's error; return the exit code.

    Args:
        words: the words of the command line: an error is printed in the requested form.
        options: the parsed words, or the exception of the parser.
        environment: replaces disk, clock and randomness.
    """
    try:
        code = _answer(words, options, environment)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe and needs no more output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        return 0
    except OSError as error:
        failure = _of_system("Cannot write the answer", error)
        print(f"error: {visible(str(failure))}", file=sys.stderr)
        return failure.exit_code
    return code


def _of_system(fault: str, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{fault}: {error.strerror}",
        where=str(error.filename or "output"),
        remedy="Check the path and its permissions, and call again.",
    )


def _answer(
    words: Sequence[str], options: Namespace | Exception, environment: Environment | None
) -> int:
    """Run one command; turn every error, except one of the output, into a line and an exit code."""
    output = Output(as_json="--json" in words, as_lines="--jsonl" in words)
    try:
        if isinstance(options, Exception):
            raise options
        options.environment = environment
        output = Output(as_json=options.json, as_lines=options.jsonl, pages=options.pages)
        with warnings.catch_warnings():
            _print_unreadable(output)
            name = function_of(options)
            code = _exit_code(name, target(name)(options, output))
    except CerataError as error:
        output.error(_with_holders(error) if isinstance(error, Locked) else error)
        return error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        refusal = _of_system("The system refused", error)
        output.error(refusal)
        return refusal.exit_code
    except Exception as error:
        # The last resort: a traceback helps neither a user nor a program.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        failure = _internal(error)
        output.error(failure)
        return failure.exit_code
    return code


def _exit_code(name: str, code: object) -> int:
    """Return what the function of a verb returned; that of a pack may lack a ``return``."""
    if not isinstance(code, int):
        raise InvalidInput(
            f"The function {name!r} ran, and returned {value_text(code)}, which is no exit code",
            remedy="Return 0 for done, or the exit code of the error, in the pack of the verb.",
        )
    return code


def _print_unreadable(output: Output) -> None:
    """Print the items that a list leaves out as notes, until the filters of warnings are reset."""
    show = warnings.showwarning

    def print_note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, UnreadableItem):
            output.warn_unreadable(str(message))
        else:
            show(message, category, filename, lineno, file, line)

    warnings.simplefilter("always", UnreadableItem)
    warnings.showwarning = print_note


def _with_holders(error: Locked) -> Locked:
    """Return the error with the processes that have the file open, if the system lists them."""
    from .files import holders_of

    holders = holders_of(error.where) if error.where else []
    if not holders:
        return error
    place = f"The file is open in {', '.join(map(str, holders))}."
    return Locked(error.what, where=error.where, remedy=f"{place} {error.remedy or ''}".rstrip())


def _internal(error: Exception) -> InternalError:
    """Return the error of an unexpected exception, with the line that raised it."""
    # Imported here: it takes longer than most of a command.
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    fault = " ".join(f"{type(error).__name__}: {error}".split())
    return InternalError(
        f"Internal error: {fault}",
        where=f"{Path(last.filename).name}, line {last.lineno}",
        remedy=f"Report it with the traceback that {DEBUG_VARIABLE}=1 shows.",
    )
