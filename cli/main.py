"""The entry: parse, find the file, run the verb, turn every error into a line and an exit code.

Exit codes: 0 done; 1 the answer is no (verify found damage, a file was skipped); 2 bad arguments;
3 to 15 the error classes (docs/errors.md); 70 a fault of Cerata's own; 130 interrupted.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cerata.engine.environment import Environment
from cerata.engine.errors import CerataError, Locked, StorageFailed

from .arguments import parser
from .completion import answer_shell
from .holders import holders_of
from .output import Output, visible

INTERRUPTED = 130
DEBUG_VARIABLE = "CERATA_DEBUG"
"""Set to anything, an unexpected exception shows its traceback."""

_STANDARD_OUTPUT = 1


class InternalError(CerataError):
    """An exception that nobody foresaw: a fault of Cerata, whatever the input was."""

    exit_code = 70


def main(arguments: Sequence[str] | None = None, environment: Environment | None = None) -> int:
    """Run the command line on ``arguments``, by default the process's, and return the exit code.

    ``environment`` stands in for disk, clock and chance.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows its code, and the answer still comes.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _answer(given, environment)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (head, less); what was not printed was not wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        return 0
    except OSError as error:
        what = "Cannot write the answer" if error.filename is None else "The system refused"
        where = error.filename or "output"
        failure = StorageFailed(
            f"{what}: {error.strerror}",
            where=str(where),
            remedy="Check the path and its permissions, and call again.",
        )
        print(f"error: {visible(str(failure))}", file=sys.stderr)
        return failure.exit_code
    return code


def _answer(given: Sequence[str], environment: Environment | None) -> int:
    """Run one command; every error but the system's becomes a line and an exit code."""
    # Also what cannot be parsed is answered in the form that was asked for.
    output = Output(as_json="--json" in given, as_lines="--jsonl" in given)
    try:
        top = parser()
        answer_shell(top)
        options = top.parse_args(given)
        options.environment = environment
        output = Output(as_json=options.json, as_lines=options.jsonl, pages=options.pages)
        code: int = options.run(options, output)
    except CerataError as error:
        output.error(_with_holders(error) if isinstance(error, Locked) else error)
        return error.exit_code
    except OSError:
        raise
    except Exception as error:
        # The last resort: a traceback would tell a user nothing, and a program less.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        failure = _internal(error)
        output.error(failure)
        return failure.exit_code
    return code


def _with_holders(error: Locked) -> Locked:
    """Return the error with who has the file open, where the system tells."""
    holders = holders_of(error.where) if error.where else []
    if not holders:
        return error
    said = f"It is open in {', '.join(map(str, holders))}."
    return Locked(error.what, where=error.where, remedy=f"{said} {error.remedy or ''}".rstrip())


def _internal(error: Exception) -> InternalError:
    """Return the error of an exception that nobody foresaw, with the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return InternalError(
        f"Internal error: {said}",
        where=f"{Path(last.filename).name}, line {last.lineno}",
        remedy=f"Please report it; {DEBUG_VARIABLE}=1 shows the traceback.",
    )
