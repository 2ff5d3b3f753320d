"""The verb that prints events as they are written: follow."""

from argparse import Namespace
from itertools import islice

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.frames.event_summary import act_of, describe, event_row, type_of_act
from cerata.memory.values.acts import credit
from cerata.memory.values.words import clipped
from cerata.projections.columnar.times import to_datetime

from .output import Output
from .store_options import reading


def run_follow(options: Namespace, output: Output) -> int:
    """Print each event after a point, and each later event as it is written."""
    if options.count is not None and options.count < 1:
        raise InvalidInput(
            f"-n must be at least 1, not {options.count}", remedy="Leave it out to follow for ever."
        )
    rows: list[JsonValue] = []
    with (
        reading(options) as store,
        store.follow(
            options.after,
            types=[type_of_act(name) for name in options.type] or None,
            actor=options.actor,
            correlation=options.correlation,
            causation=options.causation,
            timeout=options.timeout,
        ) as events,
    ):
        for event in islice(events, options.count):
            row = event_row(event)
            output.item(row)
            output.row(
                (f"{event.seq:>7}  ", "yellow"),
                (f"{to_datetime(event.recorded):%Y-%m-%d %H:%M:%S}", "dim"),
                (f"  {act_of(event.type):<9}", "bold"),
                f"  {clipped(describe(event), 200)}",
                (f"  {text}" if (text := credit(event.actor, event.reason)) else "", "dim"),
            )
            if options.json:
                rows.append(row)
        position = events.position
    if not options.jsonl:
        output.result({"position": position, "events": rows})
    return 0
