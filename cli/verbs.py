"""The whole command line: the verbs, in the order of the help."""

import argparse
from typing import Final

import cerata

from . import (
    access,
    completion,
    crash_test,
    edit,
    embed,
    extract,
    facts,
    graph,
    history,
    import_export,
    info,
    links,
    maintenance,
    put,
    search,
    show,
    tour,
)
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
    top.set_defaults(run=info.run_welcome, jsonl=False)
    add_common(top, file=None, as_json=False, lock_timeout=30.0, pages=True)
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    adding: Adding = verbs.add_parser
    for add_verbs in (
        put.add_verbs, search.add_verbs, show.add_verbs, access.add_verbs, facts.add_verbs,
        graph.add_verbs, import_export.add_verbs, extract.add_verbs, embed.add_verbs,
        links.add_verbs, history.add_verbs, edit.add_verbs, info.add_verbs, maintenance.add_verbs,
        tour.add_verbs, crash_test.add_verbs, completion.add_verbs,
    ):  # fmt: skip
        add_verbs(adding)
    return top
