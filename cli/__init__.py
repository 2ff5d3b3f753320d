"""The command line: verbs, their arguments, and how answers are printed.

Each verb is a thin caller of `cerata.memory` and `cerata.replay`; what it prints it also returns as
plain values for ``--json``. Leaves out every decision about data. This is the one room that reads
the user's own files. Start at `main`.
"""

import sys


def main() -> int:
    """Run the command line on ``sys.argv`` and return its exit code."""
    print("cerata: this version has no commands yet.", file=sys.stderr)
    return 1
