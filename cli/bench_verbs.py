"""The parser of bench."""

import argparse
from typing import Final

from .choices import PEERS
from .verb_parser import Adding, add_verb

SIZES: Final = (1_000, 10_000)
ROUNDS: Final = 5
QUERIES: Final = 50
SIZE_MAX: Final = 10_000_000


def add_verbs(adding: Adding) -> None:
    """Add bench."""
    verb = add_verb(
        adding,
        "bench",
        "compare speed and size with SQLite, LanceDB and Chroma",
        "bench.run_bench",
        scoped=False,
        examples=(
            "bench --tiny",
            "bench --sizes 1000,10000,100000 --svg growth.svg",
            "bench --peers sqlite --rounds 9 --json",
        ),
    )
    verb.add_argument(
        "--sizes",
        type=_sizes,
        default=SIZES,
        metavar="COUNTS",
        help="numbers of documents (1000,10000)",
    )
    verb.add_argument(
        "--rounds", type=_count, default=ROUNDS, metavar="N", help=f"rounds ({ROUNDS})"
    )
    verb.add_argument(
        "--queries", type=_count, default=QUERIES, metavar="N", help=f"questions ({QUERIES})"
    )
    verb.add_argument(
        "--peers",
        type=_peers,
        default=PEERS,
        metavar="NAMES",
        help=f"systems to compare with, or none ({','.join(PEERS)})",
    )
    verb.add_argument("--folder", metavar="FOLDER", help="a folder on the disk to measure")
    verb.add_argument("--svg", metavar="FILE", help="draw times over sizes into a picture")
    verb.add_argument(
        "--tiny", action="store_true", help="200 and 400 documents, one round: some seconds"
    )


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
