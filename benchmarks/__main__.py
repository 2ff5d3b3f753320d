"""Cerata beside SQLite, LanceDB and Chroma.

    python -m benchmarks               # 1,000 and 10,000 documents, five rounds
    python -m benchmarks --sizes 1000,10000,100000 --svg growth.svg
    python -m benchmarks --peers sqlite --rounds 9 --json
    python -m benchmarks --tiny        # some seconds

SQLite needs the extra ``bench``, the other peers need the extra ``peers``; a peer that is not
installed is skipped with a line.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from cerata.cli.output import Output
from cerata.engine.errors import CerataError

from .beside.comparison import compare

PEERS: Final = ("sqlite", "lancedb", "chroma")
SIZE_MAX: Final = 10_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the systems, and return the exit code: 0, or 2 and more for an error."""
    options = _parser().parse_args(arguments)
    output = Output(as_json=options.json)
    try:
        return compare(options, output)
    except CerataError as error:
        output.error(error)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare speed and size with SQLite, LanceDB and Chroma.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--sizes",
        type=_sizes,
        default=(1_000, 10_000),
        metavar="COUNTS",
        help="numbers of documents (1000,10000)",
    )
    add("--rounds", type=_count, default=5, metavar="N", help="rounds (5)")
    add("--queries", type=_count, default=50, metavar="N", help="questions (50)")
    add(
        "--peers",
        type=_peers,
        default=PEERS,
        metavar="NAMES",
        help=f"systems to compare with, or none ({','.join(PEERS)})",
    )
    add("--folder", metavar="FOLDER", help="a folder on the disk to measure")
    add("--svg", metavar="FILE", help="draw times over sizes into a picture")
    add("--tiny", action="store_true", help="200 and 400 documents, one round: some seconds")
    add("--json", action="store_true", help="print one JSON object")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if not 100 <= sizes[0] <= sizes[-1] <= SIZE_MAX:
        raise argparse.ArgumentTypeError(f"must be from 100 to {SIZE_MAX:,}, not {text}")
    return sizes


def _peers(text: str) -> tuple[str, ...]:
    names = () if text == "none" else tuple(text.split(","))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"must be of {', '.join(PEERS)}, not {name!r}")
    return names


if __name__ == "__main__":
    sys.exit(main())
