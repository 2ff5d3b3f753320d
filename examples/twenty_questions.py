"""Remember about two thousand real files, then ask twenty questions with known answers.

    python examples/twenty_questions.py [--files 2000] [--memory library.cera]

The files are those of the running Python: the sources of the standard library, then sources and
docs of the installed packages. Nothing is downloaded. A second run finds all files in the memory
and only asks. The exit code is 1 unless all twenty answers are among the first five files.
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
"""Questions, each with the file of the standard library that has the answer."""

AMONG_FIRST = 5
SIZE_MAX = 400_000


def library() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib"))


def files(count: int) -> list[Path]:
    """Return ``count`` files: those of the standard library, then those of installed packages."""
    standard = sorted(path for path in library().rglob("*.py") if "site-packages" not in path.parts)
    installed = Path(sysconfig.get_path("purelib"))
    beside = sorted(
        path for end in ("md", "rst", "txt", "py") for path in installed.rglob(f"*.{end}")
    )
    fitting = (path for path in [*standard, *beside] if 0 < path.stat().st_size < SIZE_MAX)
    return list(islice(fitting, count))


def remember(store: cerata.Store, paths: list[Path]) -> None:
    """Remember files that are not stored yet, and print a summary."""
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
    uris = dict.fromkeys(hit.frame.uri for hit in hits if hit.frame.uri is not None)
    return list(uris)[:AMONG_FIRST]


def ask(store: cerata.Store) -> int:
    """Ask all questions, print the rank of each answer, and return the number among the first."""
    right = first = 0
    for question, answer in QUESTIONS:
        uris = best_files(store, question)
        answer_uri = (library() / answer).as_posix()
        place = str(uris.index(answer_uri) + 1) if answer_uri in uris else "-"
        right += answer_uri in uris
        first += place == "1"
        print(f"{place:>2}  {answer:<22} {question}")
    print(f"\n{right} of {len(QUESTIONS)} among the first {AMONG_FIRST}, {first} first")
    return right


def main() -> int:
    """Run the example with the options of the command line."""
    parser = argparse.ArgumentParser(description="Twenty questions on two thousand files.")
    parser.add_argument("--files", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--memory", default="library.cera", help="the file (library.cera)")
    options = parser.parse_args()
    with cerata.open(options.memory) as store:
        remember(store, files(options.files))
        return 0 if ask(store) == len(QUESTIONS) else 1


if __name__ == "__main__":
    sys.exit(main())
