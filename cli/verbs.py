"""The whole command line: the verbs, in the order of the help."""

import argparse
from pathlib import Path
from typing import Final

import cerata

from . import (
    access_verbs,
    assertions_verbs,
    bench_verbs,
    bisect_verbs,
    completion_verbs,
    crash_test_verbs,
    edit_verbs,
    embed_verbs,
    extract_verbs,
    facts_verbs,
    graph_verbs,
    history_verbs,
    import_export_verbs,
    info_verbs,
    links_verbs,
    maintenance_verbs,
    put_verbs,
    search_verbs,
    show_verbs,
    tour_verbs,
    tune_verbs,
    versions_verbs,
)
from .verb_parser import Adding, Parser, add_common

_DESCRIPTION: Final = "The memory of AI agents, in one file."

_EPILOG: Final = f"""\
The file is -f FILE, else $CERATA_FILE, else the only *.cera in this folder.
Every verb takes --json, and 'cerata VERB --help' has examples.
Documentation: {Path(cerata.__file__).parent / "docs" / "index.md"}
"""

_SUBJECTS: Final = (
    put_verbs,
    search_verbs,
    show_verbs,
    access_verbs,
    tune_verbs,
    facts_verbs,
    assertions_verbs,
    graph_verbs,
    import_export_verbs,
    extract_verbs,
    embed_verbs,
    links_verbs,
    history_verbs,
    bisect_verbs,
    edit_verbs,
    versions_verbs,
    info_verbs,
    maintenance_verbs,
    tour_verbs,
    crash_test_verbs,
    bench_verbs,
    completion_verbs,
)


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
    top.set_defaults(run="info.run_welcome", jsonl=False, scope=[])
    add_common(top, file=None, as_json=False, lock_timeout=30.0, pages=True)
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    adding: Adding = verbs.add_parser
    for subject in _SUBJECTS:
        subject.add_verbs(adding)
    return top
