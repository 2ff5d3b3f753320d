"""``python -m cerata`` and the ``cerata`` command: both call `cerata.cli`."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from cerata.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
