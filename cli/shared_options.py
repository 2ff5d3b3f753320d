"""The options that several verbs share.

Leaves out the data of a verb (`cerata.engine.verbs`). Loads no engine.
"""

from __future__ import annotations

import argparse
from typing import Final

from cerata.engine.verbs import ACTOR, Option, identifier


def some_name(text: str) -> str:
    """Return a name of a filter; an empty one, as of an unset variable, would select by chance."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"a name has a visible character, and {text!r} has none")
    return text


SCOPE: Final = (
    Option(
        "--scope NAME=VALUE",
        "read and write only within this scope; repeat for several names",
        repeats=True,
    ),
    Option("--shared", "with --scope: read what lacks its names, too, but not the tenant"),
)
REASONS: Final = (ACTOR, Option("--reason TEXT", "the cause, recorded in the log"))
FILTERS: Final = (
    Option(
        "--tag TAG", "only frames with this tag; repeat for several", repeats=True, type=some_name
    ),
    Option("--kind KIND", "only frames of this structure", type=some_name),
    Option("--role ROLE", "only frames of this speaker", type=some_name),
    Option(
        "--absent NAME",
        "only frames without this name in scope and metadata; repeat for several",
        repeats=True,
        type=some_name,
    ),
    Option("--where TESTS", "only frames that pass: 'metadata.user.name:anna created:yesterday'"),
)
SUPERSEDED: Final = Option("--superseded", "include superseded frames")
CLOSED: Final = (SUPERSEDED, Option("--deleted", "include deleted frames"))
"""Options for frames that are not current."""

COUNT: Final = Option("-n COUNT", "how many (20)", type=int, default=20)
HTML: Final = Option("--html FILE", "also write a page of HTML, which needs no other file")
EVENTS: Final = (
    Option("--actor NAME", "only events that this actor wrote"),
    Option("--correlation ID", "only events of this request or run"),
    Option("--causation ID", "only what this event led to", type=identifier),
)
"""Options that select events."""
