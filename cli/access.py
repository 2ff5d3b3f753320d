"""The verb that prints accesses of frames, and records uses: access."""

from argparse import Namespace
from datetime import datetime

from cerata.engine.errors import InvalidInput
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.frames.access import Access

from .filter_options import count_of
from .output import Output
from .store_options import changing, reading, view_of


def run_access(options: Namespace, output: Output) -> int:
    """Print counts, one frame a line, the most used first."""
    count = count_of(options)
    if options.record and options.at is not None:
        raise InvalidInput(
            "--record works at the newest point only, not with --at",
            remedy="Remove --at or --record.",
        )
    with changing(options, output) if options.record else reading(options) as store:
        if options.record:
            store.record_access(*options.ids)
        view = view_of(store, options)
        accesses = (
            [view.access(number) for number in options.ids] if options.ids else view.accesses()
        )
        page = accesses if options.ids else accesses[:count]
        is_whole = len(page) == len(accesses)
        named = readable(
            page,
            lambda access: (access, view.source_of(view.frame(access.frame))),
            lambda access: frame_place(access.frame),
        )
        sources = [*named]
        page = [access for access, _ in sources]
        with output.pages():
            for access, source in sources:
                _print(access, source, output)
            if not is_whole:
                output.line("More: -n COUNT", style="dim")
        if not page:
            output.line("No access is recorded; 'recall --record' records the shown frames.")
        output.result(
            {"basis": view.basis, "accesses": [access.to_dict() for access in page]},
            items="accesses",
        )
    return 0


def _print(access: Access, source: str, output: Output) -> None:
    output.row(
        (f"{f'#{access.frame}':>7}  ", "yellow"),
        f"used {_use_text(access.used, access.last_used)}  ",
        f"shown {_use_text(access.shown, access.last_shown)}  ",
        (source.partition(" · ")[2], "dim"),
    )


def _use_text(count: int, last: datetime | None) -> str:
    return f"{count:,}" if last is None else f"{count:,} (last {last:%Y-%m-%d})"
