"""The command line: verbs, their arguments, and how answers are printed.

Each verb is a thin caller of `cerata.memory` and `cerata.replay`; what it prints it also returns as
plain values for ``--json``. Leaves out every decision about data. This is the one room that reads
the user's own files. Start at `main`, then `arguments`.
"""

from .main import main

__all__ = ["main"]
