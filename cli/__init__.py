"""The command line: verbs, their arguments, and the printing of answers.

Each verb is a thin caller of `cerata.memory` and `cerata.replay`; it prints for people, and
returns the same as plain values for ``--json``. Leaves out every decision about data. No other room
reads the user's files. ``<subject>_verbs.py`` has the parsers of a subject and loads no engine;
``<subject>.py`` has the functions that run. Start at `main`, then `verbs`.
"""

from .main import main

__all__ = ["main"]
