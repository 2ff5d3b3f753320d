"""Additions to ``facts list`` and ``facts graph``: a picture in a file.

Leaves out the lines that the two verbs print (`cerata.cli.facts`, `cerata.cli.links`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.cli.facts import run_list
from cerata.cli.files import write_picture
from cerata.cli.links import run_graph
from cerata.cli.options import file_of
from cerata.engine.errors import InvalidInput

from .canvas import FORMS
from .drawing import draw_facts, draw_graph

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from cerata.cli.output import Output
    from cerata.engine.json_value import JsonValue
    from cerata.memory.values.facts import Fact
    from cerata.memory.view import View

    from .canvas import Form


def run_facts(options: Namespace, output: Output) -> int:
    """Print facts, and draw the printed facts."""
    form = form_of(options.plot)
    if options.conflicts:
        raise InvalidInput(
            "--conflicts does not go with --plot", remedy="Remove --conflicts or --plot."
        )

    def draw(view: View, facts: Sequence[Fact]) -> Mapping[str, JsonValue]:
        title = options.subject or options.predicate or "Facts"
        return _written(draw_facts(view, facts, title=title, form=form), options, output)

    return run_list(options, output, draw)


def run_neighbours(options: Namespace, output: Output) -> int:
    """Print the entities around an entity, and draw them."""
    form = form_of(options.plot)
    if options.together or options.to is not None:
        raise InvalidInput("--plot does not go with --to or --together", remedy="Remove --plot.")

    def draw(view: View) -> Mapping[str, JsonValue]:
        picture = draw_graph(
            view,
            options.entity,
            hops=options.hops or 1,
            predicate=options.predicate,
            direction=options.direction,
            valid_at=options.valid_at,
            form=form,
        )
        return _written(picture, options, output)

    return run_graph(options, output, draw)


def form_of(name: str) -> Form:
    """Return the form of a picture by its file's name. Raises `InvalidInput`."""
    for form in FORMS:
        if name.lower().endswith(f".{form}"):
            return form
    raise InvalidInput(
        f"The name of a picture must end in .svg or .png, not be {name}",
        remedy="Pass a name such as facts.svg.",
    )


def _written(picture: bytes, options: Namespace, output: Output) -> Mapping[str, JsonValue]:
    write_picture(options.plot, picture, file_of(options))
    output.line(f"drawn: {options.plot}", style="dim")
    return {"plot": options.plot}
