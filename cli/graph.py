"""The verb that walks the graph over facts: graph."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.fact_values import Entity
from cerata.memory.graph_values import Cooccurrence, FactPath, Neighbour, Reached
from cerata.memory.pictures.canvas import Form
from cerata.memory.view import View
from cerata.projections.fact_graph import DIRECTIONS

from .facts import when_text
from .given import form_of, write_picture
from .narrowing import count_of
from .opening import reading, view_of
from .output import Output, clipped, counted
from .parser import Adding, add_count, add_verb

_NAME_MAX: Final = 24
_PREDICATE_MAX: Final = 20
"""Characters that these take at most; what is longer is cut in the table, not in --json."""

Answer = Neighbour | FactPath | Cooccurrence


def add_verbs(adding: Adding) -> None:
    """Add graph."""
    graph = add_verb(
        adding,
        "graph",
        "what is around an entity, by the facts that join it to others",
        run_graph,
        lists=True,
        examples=(
            "graph alice",
            "graph alice --hops 3 --valid-at 2024-01-01",
            "graph alice --to acme",
            "graph alice --together --at HEAD~10",
            "graph alice --hops 2 --plot alice.svg",
        ),
    )
    graph.add_argument("entity", metavar="ENTITY", help="its name")
    shapes = graph.add_mutually_exclusive_group()
    shapes.add_argument("--hops", type=int, metavar="COUNT", help="so many facts away, ranked")
    shapes.add_argument("--to", metavar="ENTITY", help="the shortest ways to another")
    shapes.add_argument("--together", action="store_true", help="who is named in the same frames")
    graph.add_argument("--predicate", metavar="NAME", help="by facts with this predicate only")
    graph.add_argument(
        "--direction", choices=DIRECTIONS, default="both", help="from subject to object is out"
    )
    graph.add_argument("--valid-at", metavar="TIME", help="true at this time; 'now' is the view's")
    graph.add_argument("--plot", metavar="FILE", help="draw what is around it, as .svg or .png")
    add_count(graph)


def run_graph(options: Namespace, output: Output) -> int:
    """Print the neighbours of an entity, a walk, ways to another, or who is named with it."""
    count = count_of(options)
    plot: str | None = options.plot
    form = None if plot is None else form_of(plot)
    if form is not None and (options.together or options.to is not None):
        raise InvalidInput("Only what is around an entity is drawn", remedy="Leave --plot out.")
    with reading(options) as store:
        view = view_of(store, options)
        name, answer = _answer(view, options)
        shown = answer[:count]
        with output.pages():
            _print(shown, output)
            if len(answer) > count:
                output.line(f"{len(answer) - count:,} more: -n COUNT", style="dim")
        if not answer:
            output.line("There are none.")
            _hint(view, options, output)
        items: list[JsonValue] = [one.to_dict() for one in shown]
        found: dict[str, JsonValue] = {
            "basis": view.basis,
            "entity": options.entity,
            name: items,
        }
        if plot is not None and form is not None and answer:
            write_picture(plot, _drawn(view, options, form))
            output.line(f"drawn: {plot}", style="dim")
            found["plot"] = plot
        output.result(found, items=name)
    return 0


def _drawn(view: View, options: Namespace, form: Form) -> bytes:
    return view.draw_graph(
        options.entity,
        hops=options.hops or 1,
        predicate=options.predicate,
        direction=options.direction,
        valid_at=options.valid_at,
        form=form,
    )


def _answer(view: View, options: Namespace) -> tuple[str, Sequence[Answer]]:
    """Return what the items of an answer are called, and the items."""
    if options.together:
        if options.predicate is not None or options.direction != "both":
            raise InvalidInput("--together goes by frames", remedy="Leave other options out.")
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


def _print(answer: Sequence[Answer], output: Output) -> None:
    near = [one for one in answer if not isinstance(one, FactPath)]
    width = _width((one.entity for one in near), _NAME_MAX)
    predicate_width = _width(
        (fact.predicate for one in near if type(one) is Neighbour for fact in one.facts),
        _PREDICATE_MAX,
    )
    for one in answer:
        if isinstance(one, FactPath):
            _print_path(one, output)
            continue
        name = _cell(one.entity, width)
        if isinstance(one, Cooccurrence):
            frames = ", ".join(f"#{number}" for number in one.frames)
            output.row(f"{name}  ", (f"{counted(one.count, 'frame')}: {frames}", "dim"), indent=2)
        elif isinstance(one, Reached):
            said = f"{one.score:.4f}  {counted(one.hop, 'hop'):<7}  "
            first, *others = one.facts
            more = f" and {len(others):,} more" if others else ""
            output.row((said, "dim"), f"{name}  ", (f"{first}{more}", "dim"), indent=2)
        else:
            _print_neighbour(one, name, predicate_width, output)


def _print_neighbour(one: Neighbour, name: str, width: int, output: Output) -> None:
    """Print a line for each fact; the arrow goes from its subject to its object."""
    for fact in one.facts:
        arrow = "→" if fact.object == Entity(one.entity) else "←"
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"),
            f"{arrow} {name}  {_cell(fact.predicate, width)}  ",
            (when_text(fact.valid), "dim"),
        )


def _width(texts: Iterable[str], limit: int) -> int:
    return min(limit, max(map(cell_len, texts), default=0))


def _cell(text: str, width: int) -> str:
    return set_cell_size(clipped(text, width), width)


def _print_path(path: FactPath, output: Output) -> None:
    output.row((f"{counted(len(path), 'step')}: {path}", "bold"))
    for step in path.steps:
        for fact in step.facts:
            output.row(
                (f"{f'#{fact.id}':>7}  ", "dim"), f"{fact}  ", (when_text(fact.valid), "dim")
            )


def _hint(view: View, options: Namespace, output: Output) -> None:
    """Say which entity was probably meant, where one that was named is none."""
    if output.as_json:
        return
    for name in (options.entity, options.to):
        others = [] if name is None else view.resolve(name)
        if others and name not in others:
            output.warn(f"no entity is named {name!r}; did you mean {others[0]!r}?")
