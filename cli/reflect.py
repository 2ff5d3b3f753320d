"""The verb reflect: the tasks of an agent's continuity that are due."""

from __future__ import annotations

from argparse import Namespace
from typing import Final, cast

from cerata.agents.code import object_named
from cerata.agents.continuity.models import Model
from cerata.engine.errors import InvalidInput
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.words import clipped, counted

from .agent_options import agent_in
from .named_code import add_current_folder
from .output import Output
from .store_options import changing, reading

_REMEDY: Final = "Pass --model MODULE:NAME of an object with name, version and write(task)."


def run_reflect(options: Namespace, output: Output) -> int:
    """Perform the due tasks with a model, by default `Extractive`, or list them."""
    model = None if options.model is None else model_named(options.model)
    with reading(options) if options.dry_run else changing(options, output) as store:
        agent = agent_in(store, snapshot_of(store), options.agent, model=model)
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


def model_named(name: str) -> Model:
    """Return the model with a name ``module:name``; a class is called without arguments.

    Raises:
        InvalidInput: the name has another form, or the class cannot be called so.
        NotFound: there is no such module or object.
    """
    add_current_folder()
    model = object_named(name, "model", _REMEDY)
    if not isinstance(model, type):
        return cast("Model", model)  # the agent checks it
    try:
        return cast("Model", model())
    except Exception as error:
        raise InvalidInput(
            f"The model {name!r:.120} cannot be made: {type(error).__name__}: {error}",
            remedy="Name an object, or a class that needs no arguments.",
        ) from error
