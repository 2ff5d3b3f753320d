"""The entry point: parse, find the file, run the verb, turn errors into a line and an exit code.

Exit codes: 0 done; 1 the answer is no (verify found damage, a file was skipped); 2 bad arguments;
3 to 15 the error classes (docs/errors.md); 70 an internal fault of Cerata; 130 interrupted.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cerata.engine.environment import Environment
from cerata.engine.errors import CerataError, Locked, StorageFailed

from .completion import answer_shell
from .open_handles import holders_of
from .output import Output, visible
from .verbs import parser

INTERRUPTED = 130
DEBUG_VARIABLE = "CERATA_DEBUG"
"""Any value makes an unexpected exception show its traceback."""

_STANDARD_OUTPUT = 1


class InternalError(CerataError):
    """An unexpected exception: a fault of Cerata, for any input."""

    exit_code = 70


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
        code = _answer(words, environment)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe and needs no more output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        return 0
    except OSError as error:
        fault = "Cannot write the answer" if error.filename is None else "The system refused"
        where = error.filename or "output"
        failure = StorageFailed(
            f"{fault}: {error.strerror}",
            where=str(where),
            remedy="Check the path and its permissions, and call again.",
        )
        print(f"error: {visible(str(failure))}", file=sys.stderr)
        return failure.exit_code
    return code


def _answer(words: Sequence[str], environment: Environment | None) -> int:
    """Run one command; turn every error except the system's into a line and an exit code."""
    # An error of the parser is printed in the requested form, too.
    output = Output(as_json="--json" in words, as_lines="--jsonl" in words)
    try:
        top = parser()
        answer_shell(top)
        options = top.parse_args(words)
        options.environment = environment
        output = Output(as_json=options.json, as_lines=options.jsonl, pages=options.pages)
        code: int = options.run(options, output)
    except CerataError as error:
        output.error(_with_holders(error) if isinstance(error, Locked) else error)
        return error.exit_code
    except OSError:
        raise
    except Exception as error:
        # The last resort: a traceback helps neither a user nor a program.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        failure = _internal(error)
        output.error(failure)
        return failure.exit_code
    return code


def _with_holders(error: Locked) -> Locked:
    """Return the error with the processes that have the file open, if the system lists them."""
    holders = holders_of(error.where) if error.where else []
    if not holders:
        return error
    place = f"The file is open in {', '.join(map(str, holders))}."
    return Locked(error.what, where=error.where, remedy=f"{place} {error.remedy or ''}".rstrip())


def _internal(error: Exception) -> InternalError:
    """Return the error of an unexpected exception, with the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    fault = " ".join(f"{type(error).__name__}: {error}".split())
    return InternalError(
        f"Internal error: {fault}",
        where=f"{Path(last.filename).name}, line {last.lineno}",
        remedy=f"Report it with the traceback that {DEBUG_VARIABLE}=1 shows.",
    )
