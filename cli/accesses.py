"""The verb that shows what was shown and used, and records what was: access."""

from argparse import Namespace
from datetime import datetime

from cerata.engine.errors import InvalidInput
from cerata.memory.access import Access
from cerata.memory.view import View

from .narrowing import count_of
from .opening import changing, reading, view_of
from .output import Output
from .parser import Adding, add_count, add_verb


def add_verbs(adding: Adding) -> None:
    """Add access."""
    access = add_verb(
        adding,
        "access",
        "how often frames were shown and used",
        run_access,
        lists=True,
        examples=("access", "access 3 8 --at before-the-move", "access 3 8 --record"),
    )
    access.add_argument(
        "ids", nargs="*", type=int, metavar="ID", help="these frames; all that were, if none"
    )
    add_count(access)
    access.add_argument(
        "--record", action="store_true", help="say that these were used, once each; not with --at"
    )


def run_access(options: Namespace, output: Output) -> int:
    """Print counts, one frame a line, the most used first."""
    count = count_of(options)
    if options.record and options.at is not None:
        raise InvalidInput(
            "What is used is recorded now, not in the past", remedy="Leave out --at, or --record."
        )
    with changing(options, output) if options.record else reading(options) as store:
        if options.record:
            store.record_access(*options.ids)
        view = view_of(store, options)
        every = [view.access(one) for one in options.ids] if options.ids else view.accesses()
        found = every if options.ids else every[:count]
        with output.pages():
            for one in found:
                _print(view, one, output)
            if len(found) < len(every):
                output.line("More: -n COUNT", style="dim")
        if not found:
            output.line("Nothing was recorded as shown or used: 'recall --record' does.")
        output.result(
            {"basis": view.basis, "accesses": [one.to_dict() for one in found]}, items="accesses"
        )
    return 0


def _print(view: View, access: Access, output: Output) -> None:
    source = view.source_of(view.frame(access.frame)).partition(" · ")[2]
    output.row(
        (f"{f'#{access.frame}':>7}  ", "yellow"),
        f"used {_told(access.used, access.last_used)}  ",
        f"shown {_told(access.shown, access.last_shown)}  ",
        (source, "dim"),
    )


def _told(count: int, last: datetime | None) -> str:
    return f"{count:,}" if last is None else f"{count:,} (last {last:%Y-%m-%d})"
