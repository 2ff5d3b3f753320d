"""The entry point: parse the words, then run the verb.

Help, the version, completion and errors of usage load no part of the engine; `execution` does.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from .completion_verbs import answer_shell, is_shell_asking
from .verbs import parser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cerata.engine.environment import Environment

INTERRUPTED = 130


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
        top = parser(() if is_shell_asking() else words)
        answer_shell(top)
        options: Namespace | Exception
        try:
            options = top.parse_args(words)
        except Exception as error:  # noqa: BLE001 - `execute` raises it again and prints it
            options = error
        # Imported here: it loads the engine, which help and completion do not need.
        from .execution import execute

        return execute(words, options, environment)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
