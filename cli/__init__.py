"""The command line: verbs, their arguments, and the printing of answers.

Each verb is a thin caller of `cerata.memory` and `cerata.replay`; it prints for people, and
returns the same as plain values for ``--json``. Leaves out every decision about data. No other room
of the kernel reads the user's files. A file has the verbs of a subject as data and the functions
that run, which load the engine; packs bring verbs of their own. Start at `main`, then `verbs` and
`parser`.
"""

from .main import main

__all__ = ["main"]
