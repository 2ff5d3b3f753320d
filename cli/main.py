"""The entry: parse, find the file, run the verb, turn every error into a line and an exit code.

Exit codes: 0 done; 1 the answer is no (verify found damage, a file was skipped); 2 bad arguments;
3 to 12 the error classes (docs/errors.md); 130 interrupted.
"""

import io
import os
import sys
from collections.abc import Sequence

from cerata.engine.errors import CerataError, StorageFailed

from .arguments import parser
from .output import Output

INTERRUPTED = 130
_STANDARD_OUTPUT = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on ``arguments``, by default the process's, and return the exit code."""
    options = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows its code, and the answer still comes.
            stream.reconfigure(errors="backslashreplace")
    output = Output(as_json=options.json)
    try:
        code: int = options.run(options, output)
        if sys.stdout is not None:
            sys.stdout.flush()
    except CerataError as error:
        output.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (head, less); what was not printed was not wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        return 0
    except OSError as error:
        failure = StorageFailed(f"Cannot write the answer: {error.strerror}", where="output")
        print(f"error: {failure}", file=sys.stderr)
        return failure.exit_code
    return code
