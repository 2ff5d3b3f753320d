"""Remember some two thousand real files, then ask twenty questions whose answers are known.

    python examples/twenty_questions.py [--files 2000] [--memory library.cera]

The files are those of the Python that runs this: the standard library's sources, then sources and
docs of what is installed beside it. Nothing is fetched. A memory that is there already is gone on
with, so the second run only asks. Exits with 1 if fewer than eighteen answers are among the first
five files.
"""

import argparse
import sys
import sysconfig
import time
from itertools import islice
from pathlib import Path

import cerata

QUESTIONS = [
    ("how do I keep a list sorted while I insert into it?", "bisect.py"),
    ("the n largest elements of an iterable, with a priority queue", "heapq.py"),
    ("decode base85 as Adobe frames it", "base64.py"),
    ("which domains may set a cookie? the policy of the cookie jar", "http/cookiejar.py"),
    ("how similar are two strings? close matches, ratio", "difflib.py"),
    ("remove the common leading whitespace of a paragraph and wrap it", "textwrap.py"),
    ("may a crawler fetch this page according to robots.txt?", "urllib/robotparser.py"),
    ("slope and intercept of a linear regression", "statistics.py"),
    ("is this year a leap year, and on which weekday does a month begin?", "calendar.py"),
    ("the closest fraction with a bounded denominator", "fractions.py"),
    ("cache the results of a function, least recently used go first", "functools.py"),
    ("quote a string so that it is safe in a shell command", "shlex.py"),
    ("guess the MIME type of a file from its name", "mimetypes.py"),
    ("draw a random sample without replacement; weighted choices", "random.py"),
    ("ask for a password without echoing it", "getpass.py"),
    ("where was memory allocated? compare two snapshots", "tracemalloc.py"),
    ("run a blocking function in a thread and await it", "asyncio/threads.py"),
    ("copy a whole directory tree, or pack it into an archive", "shutil.py"),
    ("log to a file that is rotated when it grows too large", "logging/handlers.py"),
    ("convert a colour from RGB to HLS and back", "colorsys.py"),
]
"""What somebody would ask, and the file of the standard library that answers it."""

AMONG_FIRST = 5
ENOUGH = 18
SIZE_MAX = 400_000


def library() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib"))


def files(count: int) -> list[Path]:
    """Return ``count`` files: the standard library's own, then those installed beside it."""
    own = sorted(path for path in library().rglob("*.py") if "site-packages" not in path.parts)
    installed = Path(sysconfig.get_path("purelib"))
    beside = sorted(
        path for end in ("md", "rst", "txt", "py") for path in installed.rglob(f"*.{end}")
    )
    fitting = (path for path in [*own, *beside] if 0 < path.stat().st_size < SIZE_MAX)
    return list(islice(fitting, count))


def remember(store: cerata.Store, paths: list[Path]) -> None:
    """Remember what is not there yet, and say how it went."""
    started = time.perf_counter()
    added = skipped = 0
    for number, path in enumerate(paths, start=1):
        try:
            added += store.remember(path).added
        except cerata.InvalidInput as error:
            skipped += 1
            print(f"skipped: {error}")
        if number % 200 == 0:
            print(f"{number:,} of {len(paths):,} files", file=sys.stderr)
    seconds = time.perf_counter() - started
    print(f"{added:,} files added, {skipped} skipped, {seconds:.1f} s; {len(store):,} frames\n")


def best_files(store: cerata.Store, question: str) -> list[str]:
    """Return the first files that a search finds, best first, each once."""
    hits = store.search(question, k=100)
    found = dict.fromkeys(hit.frame.uri for hit in hits if hit.frame.uri is not None)
    return list(found)[:AMONG_FIRST]


def ask(store: cerata.Store) -> int:
    """Ask all, print where each answer stood, and return how many were among the first."""
    right = 0
    for question, answer in QUESTIONS:
        found = best_files(store, question)
        wanted = (library() / answer).as_posix()
        place = str(found.index(wanted) + 1) if wanted in found else "-"
        right += wanted in found
        print(f"{place:>2}  {answer:<22} {question}")
    print(f"\n{right} of {len(QUESTIONS)} among the first {AMONG_FIRST}")
    return right


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="Twenty questions on two thousand files.")
    parser.add_argument("--files", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--memory", default="library.cera", help="the file (library.cera)")
    given = parser.parse_args()
    with cerata.open(given.memory) as store:
        remember(store, files(given.files))
        return 0 if ask(store) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
