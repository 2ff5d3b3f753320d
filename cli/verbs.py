"""The whole command line: the verbs, in the order of the help."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import cerata

from .verb_parser import Adding, Help, Parser, add_common

_DESCRIPTION: Final = "The memory of AI agents, in one file."

_EPILOG: Final = f"""\
The file is -f FILE, else $CERATA_FILE, else the only *.cera in this folder.
Every verb takes --json, and 'cerata VERB --help' has examples.
Documentation: {Path(cerata.__file__).parent / "docs" / "index.md"}
"""

SUBJECTS: Final = {
    "put_verbs": ("remember", "put"),
    "search_verbs": ("recall", "search"),
    "explain_verbs": ("explain",),
    "show_verbs": ("show", "frames", "timeline"),
    "access_verbs": ("access",),
    "tune_verbs": ("tune",),
    "facts_verbs": ("facts",),
    "assertions_verbs": ("assert", "correct", "retract"),
    "graph_verbs": ("graph",),
    "import_export_verbs": ("export", "import"),
    "extract_verbs": ("extract",),
    "embed_verbs": ("embed",),
    "links_verbs": ("why", "link", "unlink"),
    "history_verbs": ("log", "audit", "history", "blame", "diff"),
    "follow_verbs": ("follow",),
    "bisect_verbs": ("bisect",),
    "runs_verbs": ("runs", "rerun"),
    "slots_verbs": ("slots", "slot", "refs", "ref"),
    "growth_verbs": ("proposals", "approve", "reject", "revoke"),
    "conversations_verbs": (
        "sessions",
        "threads",
        "topics",
        "standing",
        "handoff",
        "summaries",
        "assemble",
        "reflect",
    ),
    "mcp_verbs": ("mcp",),
    "fork_verbs": ("fork",),
    "edit_verbs": ("supersede", "delete", "tag"),
    "versions_verbs": ("update", "restore", "sweep", "values"),
    "info_verbs": ("info", "head"),
    "maintenance_verbs": ("verify", "rebuild", "checkpoint", "backup", "doctor", "repair"),
    "compact_verbs": ("compact", "maintain"),
    "tour_verbs": ("tour",),
    "crash_test_verbs": ("crash-test",),
    "completion_verbs": ("completion",),
}
"""The verbs of each module of parsers; a command loads the module of its verb."""

_FLAGS: Final = frozenset({"--json", "--no-pager"})
_OPTIONS: Final = frozenset({"-f", "--file", "--lock-timeout", "--pack"})
"""The options that may precede the verb: without a value, and with one."""


def parser(words: Sequence[str] = ()) -> Parser:
    """Return the parser of a command line: the verbs of one subject, or all verbs.

    A parser of all verbs takes five times as long to build; only help, completion and errors of
    usage need it.

    Args:
        words: the words of the command line; by default none.
    """
    top = Parser(
        prog="cerata",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"cerata {cerata.__version__}")
    top.set_defaults(run="info.run_welcome", jsonl=False, scope=[])
    add_common(top, file=None, as_json=False, lock_timeout=30.0, pages=True, pack=[])
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    adding: Adding = verbs.add_parser
    verb = _verb_of(words)
    for module, names in SUBJECTS.items():
        if verb is None or verb in names:
            importlib.import_module(f"{__package__}.{module}").add_verbs(adding)
    return top


def _verb_of(words: Sequence[str]) -> str | None:
    """Return the verb of a command line; None if the words before the verb need all verbs.

    The version is printed before any verb is read, so it counts as a verb without a parser.
    """
    unread = iter(words)
    for word in unread:
        if word == "--version":
            return word
        if word in _OPTIONS:
            next(unread, None)
        elif word not in _FLAGS:
            return word if any(word in names for names in SUBJECTS.values()) else None
    return None
