"""``python -m cerata`` and the ``cerata`` command: both call `cerata.cli`.

Owns the settings of a process that runs a single command. A program that imports Cerata keeps its
settings.
"""

import atexit
import gc
import os
import sys

_YOUNG_OBJECTS = 200_000
"""Objects between two collections. A recall makes half as many, nearly all by its imports; with
Python's 700 a tenth of its time was collections that found nothing."""


def main() -> int:
    """Run the command line, and end the process with its exit code.

    Returns the exit code if a debugger, a profiler or another thread needs the rest of the process.
    """
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)
    # A question multiplies small arrays; numpy would start a thread for every core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cerata.cli import main as run

    code = run()
    if sys.gettrace() is None and sys.getprofile() is None and _is_alone():
        _leave(code)
    return code


def _is_alone() -> bool:
    """Return whether no thread but this has to end before the process."""
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


def _leave(code: int) -> None:
    """End the process; the system frees its memory faster than Python frees each object.

    If an answer cannot be written any more, Python ends the process and reports that.
    """
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
