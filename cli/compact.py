"""The verbs that give space back: compact and maintain."""

from argparse import Namespace

from cerata.memory.compaction import Compaction
from cerata.memory.values.words import bytes_text, counted

from .output import Output
from .store_options import changing


def run_compact(options: Namespace, output: Output) -> int:
    """Write a new file without dead space."""
    with changing(options, output) as store, output.progress("compacting", store.head.seq) as steps:
        result = store.compact(
            horizon=options.horizon, dry_run=options.dry_run, progress=steps.stand
        )
        _print_compaction(result, output)
        output.result({"file": store.path, **result.to_dict()})
    return 0


def run_maintain(options: Namespace, output: Output) -> int:
    """Do the upkeep that is due."""
    with changing(options, output) as store, output.progress("upkeep", store.head.seq) as steps:
        result = store.maintain(options.budget, progress=steps.stand)
        if result.checkpointed:
            output.line("saved a checkpoint")
        if result.compaction is not None and result.compaction.done:
            _print_compaction(result.compaction, output)
        if result.due:
            output.line("Work remains: run 'cerata maintain' again.", style="dim")
        elif not result.checkpointed and result.compaction is None:
            output.line("Nothing is due.")
        output.result({"file": store.path, **result.to_dict()})
    return 0


def _print_compaction(result: Compaction, output: Output) -> None:
    sizes = f"{bytes_text(result.before)} to {bytes_text(result.after)}"
    stays = not result.done and not result.dropped and result.after >= result.before
    if result.done:
        output.parts(("compacted: ", "bold green"), f"{counted(result.events, 'event')}, {sizes}")
    elif stays:
        output.line(f"Nothing to gain: the file stays at {bytes_text(result.before)}.")
    else:
        output.line(f"The file would shrink from {sizes}, about.")
    if result.horizon is not None:
        verb = "gave up" if result.done or stays else "would give up"
        output.line(
            f"{verb} the contents of {counted(result.dropped, 'event')}; "
            f"their hashes stay (horizon: event {result.horizon:,})",
            style="dim",
        )
