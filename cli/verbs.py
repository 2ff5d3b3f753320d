"""The whole command line: the verbs, in the order of the help."""

import argparse
from typing import Final

import cerata

from . import access as accesses
from . import completion, facts, graph, history, links, tour
from . import crash_test as crash_testing
from . import edit as changes
from . import embed as embedding
from . import extract as extraction
from . import import_export as exchange
from . import info as upkeep
from . import maintenance as mending
from . import put as writes
from . import search as asking
from . import show as reads
from .verb_parser import Adding, Parser, add_common

_DESCRIPTION: Final = "The memory of AI agents, in one file."

_EPILOG: Final = """\
The file is -f FILE, else $CERATA_FILE, else the only *.cera in this folder.
Every verb takes --json, and 'cerata VERB --help' has examples.
"""


def parser() -> Parser:
    """Return the parser of the whole command line."""
    top = Parser(
        prog="cerata",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"cerata {cerata.__version__}")
    top.set_defaults(run=upkeep.run_welcome, jsonl=False)
    add_common(top, file=None, as_json=False, lock_timeout=30.0, pages=True)
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    adding: Adding = verbs.add_parser
    writes.add_verbs(adding)
    asking.add_verbs(adding)
    reads.add_verbs(adding)
    accesses.add_verbs(adding)
    facts.add_verbs(adding)
    graph.add_verbs(adding)
    exchange.add_verbs(adding)
    extraction.add_verbs(adding)
    embedding.add_verbs(adding)
    links.add_verbs(adding)
    history.add_verbs(adding)
    changes.add_verbs(adding)
    upkeep.add_verbs(adding)
    mending.add_verbs(adding)
    tour.add_verbs(adding)
    crash_testing.add_verbs(adding)
    completion.add_verbs(adding)
    return top
