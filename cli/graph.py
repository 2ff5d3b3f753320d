"""The verb that prints the graph of facts around an entity: graph."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.values.facts import Entity, Fact
from cerata.memory.values.graph import Cooccurrence, FactPath, Neighbour, Reached
from cerata.memory.values.words import clipped, counted
from cerata.memory.view import View
from cerata.packs.plots import draw_graph
from cerata.packs.plots.canvas import Form

from .facts import when_text
from .filter_options import count_of
from .output import Output
from .output_files import form_of, write_picture
from .store_options import file_of, reading, view_of

_NAME_MAX: Final = 24
_PREDICATE_MAX: Final = 20
"""Most characters of a cell: longer texts are cut in the table, not in --json."""

Answer = Neighbour | FactPath | Cooccurrence


def run_graph(options: Namespace, output: Output) -> int:
    """Print neighbours, a walk, paths to another entity, or entities in the same frames."""
    count = count_of(options)
    plot: str | None = options.plot
    form = None if plot is None else form_of(plot)
    if form is not None and (options.together or options.to is not None):
        raise InvalidInput("--plot does not go with --to or --together", remedy="Remove --plot.")
    with reading(options) as store:
        view = view_of(store, options)
        name, answer = _answer(view, options)
        page = answer[:count]
        with output.pages():
            _print(page, output, marking=options.valid_at is None)
            if len(answer) > count:
                output.line(f"{len(answer) - count:,} more: -n COUNT", style="dim")
        if not answer:
            output.line("There are no results.")
            _hint(view, options, output)
        items: list[JsonValue] = [item.to_dict() for item in page]
        result: dict[str, JsonValue] = {"basis": view.basis, "entity": options.entity, name: items}
        if plot is not None and form is not None and answer:
            write_picture(plot, _drawn(view, options, form), file_of(options))
            output.line(f"drawn: {plot}", style="dim")
            result["plot"] = plot
        output.result(result, items=name)
    return 0


def _drawn(view: View, options: Namespace, form: Form) -> bytes:
    return draw_graph(
        view,
        options.entity,
        hops=options.hops or 1,
        predicate=options.predicate,
        direction=options.direction,
        valid_at=options.valid_at,
        form=form,
    )


def _answer(view: View, options: Namespace) -> tuple[str, Sequence[Answer]]:
    if options.together:
        if options.predicate is not None or options.direction != "both":
            raise InvalidInput(
                "--together takes neither --predicate nor --direction",
                remedy="Remove these options.",
            )
        return "together", view.cooccurring(options.entity, valid_at=options.valid_at)
    by: dict[str, Any] = {
        "predicate": options.predicate,
        "direction": options.direction,
        "valid_at": options.valid_at,
    }
    if options.to is not None:
        return "paths", view.paths(options.entity, options.to, limit=options.n + 1, **by)
    if options.hops is not None:
        return "reached", view.walk(options.entity, hops=options.hops, **by)
    return "neighbours", view.neighbours(options.entity, **by)


def _print(answer: Sequence[Answer], output: Output, *, marking: bool) -> None:
    """Print the results; with ``marking``, facts that have ended are marked."""
    near = [item for item in answer if not isinstance(item, FactPath)]
    width = _width((item.entity for item in near), _NAME_MAX)
    predicate_width = _width(
        (fact.predicate for item in near if type(item) is Neighbour for fact in item.facts),
        _PREDICATE_MAX,
    )
    for item in answer:
        if isinstance(item, FactPath):
            _print_path(item, output, marking=marking)
            continue
        name = _cell(item.entity, width)
        if isinstance(item, Cooccurrence):
            frames = ", ".join(f"#{number}" for number in item.frames)
            output.row(f"{name}  ", (f"{counted(item.count, 'frame')}: {frames}", "dim"), indent=2)
        elif isinstance(item, Reached):
            details = f"{item.score:.4f}  {counted(item.hop, 'hop'):<7}  "
            first, *rest = sorted(item.facts, key=lambda fact: marking and fact.is_ended)
            ended = _ended(first, marking=marking)
            more = f" and {len(rest):,} more" if rest else ""
            output.row((details, "dim"), f"{name}  ", (f"{first}{ended}{more}", "dim"), indent=2)
        else:
            _print_neighbour(item, name, predicate_width, output, marking=marking)


def _ended(fact: Fact, *, marking: bool) -> str:
    return "  ended" if marking and fact.is_ended else ""


def _print_neighbour(
    neighbour: Neighbour, name: str, width: int, output: Output, *, marking: bool
) -> None:
    """Print a line for each fact; the arrow points from its subject to its object."""
    for fact in neighbour.facts:
        arrow = "→" if fact.object == Entity(neighbour.entity) else "←"
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"),
            f"{arrow} {name}  {_cell(fact.predicate, width)}  ",
            (when_text(fact.valid) + _ended(fact, marking=marking), "dim"),
        )


def _width(texts: Iterable[str], limit: int) -> int:
    return min(limit, max(map(cell_len, texts), default=0))


def _cell(text: str, width: int) -> str:
    return set_cell_size(clipped(text, width), width)


def _print_path(path: FactPath, output: Output, *, marking: bool) -> None:
    output.row((f"{counted(len(path), 'step')}: {path}", "bold"))
    for step in path.steps:
        for fact in step.facts:
            output.row(
                (f"{f'#{fact.id}':>7}  ", "dim"),
                f"{fact}  ",
                (when_text(fact.valid) + _ended(fact, marking=marking), "dim"),
            )


def _hint(view: View, options: Namespace, output: Output) -> None:
    """Suggest an entity for an unknown name."""
    if output.as_json:
        return
    for name in (options.entity, options.to):
        candidates = [] if name is None else view.resolve(name)
        if candidates and name not in candidates:
            output.warn(f"no entity is named {name!r}; did you mean {candidates[0]!r}?")
