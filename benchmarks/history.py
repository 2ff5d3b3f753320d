"""The history of figures: each file of benchmarks/results has those of one commit, as JSON.

    python -m benchmarks.history                      # the names
    python -m benchmarks.history vectors              # every figure under a name, oldest first
    python -m benchmarks.history --run size_bench --tiny

``--run`` runs a benchmark and saves its lines under its name. docs/measurements.md has the current
figures. The first file holds the page of measurements as of its commit.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

RESULTS: Final = Path(__file__).with_name("results")


class Table(msgspec.Struct, frozen=True):
    """The rows of a table, each as long as its columns."""

    columns: list[str]
    rows: list[list[str]]


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lines of one benchmark, or a section of the page of measurements."""

    name: str
    title: str
    commands: list[str] = []
    notes: list[str] = []
    tables: list[Table] = []


class Results(msgspec.Struct, frozen=True):
    """The results of one commit on one day."""

    date: str
    commit: str
    results: list[Result]


def load(folder: Path = RESULTS) -> list[Results]:
    """Return the results of a folder, oldest first."""
    files = sorted(folder.glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Results) for path in files]


def series(name: str, all_results: Sequence[Results]) -> Iterator[str]:
    """Yield the lines of every result with a name, with date and commit."""
    for results in all_results:
        for result in results.results:
            if result.name != name:
                continue
            yield f"{results.date} {results.commit}: {result.title}"
            yield from (f"  $ {command}" for command in result.commands)
            yield from (f"  {note}" for note in result.notes)
            for table in result.tables:
                yield from (f"  {' | '.join(row)}" for row in (table.columns, *table.rows))


def save(result: Result, folder: Path = RESULTS) -> Path:
    """Add a result to the file of today and of this commit, and return the file's path."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    date = datetime.now(UTC).date().isoformat()
    path = folder / f"{date}-{commit}.json"
    earlier: list[Result] = []
    if path.exists():
        earlier = msgspec.json.decode(path.read_bytes(), type=Results).results
    results = Results(date, commit, [*earlier, result])
    text = json.dumps(msgspec.to_builtins(results), indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
    return path


def run(module: str, arguments: Sequence[str]) -> Result:
    """Run a benchmark in a new process and return its lines.

    Raises:
        subprocess.CalledProcessError: the benchmark failed.
    """
    command = ["python", "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(
        [sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True, check=True
    )
    machine = f"{platform.platform()}, Python {platform.python_version()}, numpy {np.__version__}"
    return Result(
        module, module, commands=[" ".join(command)], notes=[machine, *done.stdout.splitlines()]
    )


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a series or the names, or run a benchmark; 1 if nothing has the name."""
    parser = argparse.ArgumentParser(description="Print or add figures of the past.")
    parser.add_argument("name", nargs="?", help="the name of a figure")
    parser.add_argument("--run", metavar="MODULE", help="run this benchmark and save its lines")
    options, rest = parser.parse_known_args(arguments)
    if options.run:
        sys.stdout.write(f"{save(run(options.run, [*filter(None, [options.name]), *rest]))}\n")
        return 0
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    all_results = load()
    if options.name is None:
        names = {result.name for results in all_results for result in results.results}
        sys.stdout.writelines(f"{name}\n" for name in sorted(names))
        return 0
    lines = list(series(options.name, all_results))
    sys.stdout.writelines(f"{line}\n" for line in lines or [f"No figure is named {options.name}."])
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())
