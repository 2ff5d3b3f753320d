"""The verb reflect: the tasks of an agent's continuity that are due."""

from __future__ import annotations

from argparse import Namespace

from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.words import clipped, counted

from .agent_options import agent_in
from .output import Output
from .store_options import changing, reading


def run_reflect(options: Namespace, output: Output) -> int:
    """Perform the due tasks with the model that quotes, or list them."""
    with reading(options) if options.dry_run else changing(options, output) as store:
        agent = agent_in(store, snapshot_of(store), options.agent)
        reflection = agent.reflect(dry_run=options.dry_run, limit=options.limit)
        for word, style, reports in (
            ("done", "green", reflection.done),
            ("failed", "red", reflection.failed),
            ("skipped", "yellow", reflection.skipped),
        ):
            for report in reports:
                output.row((f"{word:>7}  ", style), clipped(str(report), 500))
        done, failed, skipped = map(len, (reflection.done, reflection.failed, reflection.skipped))
        output.line(f"{counted(done, 'task')} done, {failed:,} failed, {skipped:,} skipped")
        output.result({"file": store.path, "agent": agent.name, **reflection.to_dict()})
    return 1 if failed else 0
