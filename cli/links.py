"""The verbs of links between facts and of their graph: link, why, graph and extract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.verbs import ACTOR, AT, LISTS, Arg, Option, Verb, identifier

from .facts import when_text
from .options import (
    DIRECTIONS,
    LINK_KINDS,
    changing,
    check_goes_with,
    count_of,
    reading,
    view_of,
    where_of,
)
from .shared_options import COUNT, FILTERS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from cerata.engine.events import JsonValue
    from cerata.memory.facts.extraction import Extracted, Extraction
    from cerata.memory.store import Store
    from cerata.memory.values.facts import Fact
    from cerata.memory.values.graph import Cooccurrence, FactPath, Link, Neighbour
    from cerata.memory.view import View

    from .output import Output

    Drawing = Callable[[View], Mapping[str, JsonValue]]
    """A function that draws the neighbourhood, and returns more of the answer."""

VERBS: Final = (
    Verb(
        "link",
        "facts",
        "link a fact to another fact, or to a frame, or remove a link",
        "cerata.cli.links:run_link",
        (
            Arg("fact", "id of the fact", "?", type=identifier, metavar="FACT"),
            Arg("kind", ", ".join(LINK_KINDS), "?", choices=LINK_KINDS, metavar="KIND"),
            Arg("target", "id of a fact or frame", "?", type=identifier, metavar="TARGET"),
            Option("--remove LINK", "id of a link to remove", type=identifier),
            ACTOR,
            Option("--reason TEXT", "with --remove: the cause, recorded in the log"),
        ),
        ("14 depends_on 9", "21 invalidates 14", "14 generated_from 3", "--remove 22"),
        page="links.md",
    ),
    Verb(
        "why",
        "facts",
        "explain why a fact stands, or does not",
        "cerata.cli.links:run_why",
        (
            Arg("fact", "id of the fact", type=identifier, metavar="FACT"),
            Option("--depth COUNT", "most levels (16)", type=int, default=16),
            AT,
        ),
        ("14", "14 --at before-the-move", "14 --depth 2"),
        page="links.md#reasons",
    ),
    Verb(
        "graph",
        "facts",
        "print the neighbours of an entity, and paths between entities",
        "cerata.cli.links:run_graph",
        (
            Arg("entity", "name of the entity", metavar="ENTITY"),
            Option(
                "--hops COUNT",
                "entities at most so many facts away, ranked",
                type=int,
                either="shape",
            ),
            Option("--to ENTITY", "shortest paths to another entity", either="shape"),
            Option("--together", "entities named in the same frames", either="shape"),
            Option("--predicate NAME", "only facts with this predicate"),
            Option(
                "--direction",
                "out: from subject to object (both)",
                choices=DIRECTIONS,
                default="both",
            ),
            Option("--valid-at TIME", "only facts true at this time"),
            COUNT,
            *LISTS,
        ),
        (
            "alice",
            "alice --hops 3 --valid-at 2024-01-01",
            "alice --to acme",
            "alice --together --at HEAD~10",
        ),
        page="graph.md",
    ),
    Verb(
        "extract",
        "facts",
        "find facts in the text of frames",
        "cerata.cli.links:run_extract",
        (
            Arg("ids", "ids of frames (all current frames)", "*", type=identifier, metavar="ID"),
            Option("--dry-run", "print the facts; write nothing"),
            *FILTERS,
            ACTOR,
        ),
        ("--dry-run", "12 13", "--tag people"),
        page="extraction.md",
    ),
)

_STYLES = {"stands": "", "disputed": "yellow", "invalid": "red"}


def run_why(options: Namespace, output: Output) -> int:
    """Print a fact's links, those for it and those against it, as a tree."""
    with reading(options) as store:
        view = view_of(store, options)
        why = view.graph.why(options.fact, depth=options.depth)
        for line in str(why).splitlines():
            output.line(line)
        output.result({"basis": view.basis, "why": why.to_dict()})
    return 0


def run_link(options: Namespace, output: Output) -> int:
    """Link a fact, or remove a link, and print the standing of both ends."""
    is_new = options.remove is None
    words = {"FACT": options.fact, "KIND": options.kind, "TARGET": options.target}
    check_goes_with("a new link, without --remove", words, is_passed=is_new)
    check_goes_with("--remove", {"--reason": options.reason}, is_passed=not is_new)
    if not is_new:
        return _unlink(options, output)
    if options.target is None:
        raise InvalidInput(
            "link needs FACT, KIND and TARGET", remedy="Pass all three, or --remove LINK."
        )
    with changing(options, output) as store:
        receipt = store.graph.link(options.fact, options.kind, options.target)
        link = next(link for link in store.graph.links(options.fact) if link.id == receipt.id)
        output.line(f"link #{link.id}: {link}" + ("" if receipt.added else ", unchanged"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def _unlink(options: Namespace, output: Output) -> int:
    """Remove a link, and print the standing of both ends."""
    with changing(options, output) as store:
        receipt = store.graph.unlink(options.remove, reason=options.reason)
        links = store.graph.links(include_unlinked=True)
        link = next(link for link in links if link.id == options.remove)
        output.line(f"unlinked: {link}" + ("" if receipt.added else ", unchanged"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def _print_ends(store: Store, link: Link, output: Output) -> None:
    for number in (link.fact,) if link.is_frame else (link.fact, link.target):
        fact = store.graph.fact(number)
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"), f"{fact}: ", (fact.standing, _STYLES[fact.standing])
        )


_NAME_MAX: Final = 24

_PREDICATE_MAX: Final = 20
"""Most characters of a cell: longer texts are cut in the table, not in --json."""


def run_graph(options: Namespace, output: Output, draw: Drawing | None = None) -> int:
    """Print neighbours, a walk, paths to another entity, or entities in the same frames."""
    count = count_of(options)
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
        if draw is not None and answer:
            result |= draw(view)
        output.result(result, items=name)
    return 0


def _answer(
    view: View, options: Namespace
) -> tuple[str, Sequence[Neighbour | FactPath | Cooccurrence]]:
    if options.together:
        if options.predicate is not None or options.direction != "both":
            raise InvalidInput(
                "--together takes neither --predicate nor --direction",
                remedy="Remove these options.",
            )
        return "together", view.graph.cooccurring(options.entity, valid_at=options.valid_at)
    by: dict[str, Any] = {
        "predicate": options.predicate,
        "direction": options.direction,
        "valid_at": options.valid_at,
    }
    if options.to is not None:
        return "paths", view.graph.paths(options.entity, options.to, limit=options.n + 1, **by)
    if options.hops is not None:
        return "reached", view.graph.walk(options.entity, hops=options.hops, **by)
    return "neighbours", view.graph.neighbours(options.entity, **by)


def _print(
    answer: Sequence[Neighbour | FactPath | Cooccurrence], output: Output, *, marking: bool
) -> None:
    """Print the results; with ``marking``, facts that have ended are marked."""
    from cerata.engine.words import counted
    from cerata.memory.values.graph import Cooccurrence, FactPath, Neighbour, Reached

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
    from cerata.memory.values.facts import Entity

    for fact in neighbour.facts:
        arrow = "→" if fact.object == Entity(neighbour.entity) else "←"
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"),
            f"{arrow} {name}  {_cell(fact.predicate, width)}  ",
            (when_text(fact.valid) + _ended(fact, marking=marking), "dim"),
        )


def _width(texts: Iterable[str], limit: int) -> int:
    from rich.cells import cell_len

    return min(limit, max(map(cell_len, texts), default=0))


def _cell(text: str, width: int) -> str:
    from rich.cells import set_cell_size

    from cerata.engine.words import clipped

    return set_cell_size(clipped(text, width), width)


def _print_path(path: FactPath, output: Output, *, marking: bool) -> None:
    from cerata.engine.words import counted

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
        candidates = [] if name is None else view.graph.resolve(name)
        if candidates and name not in candidates:
            output.warn(f"no entity is named {name!r}; did you mean {candidates[0]!r}?")


def run_extract(options: Namespace, output: Output) -> int:
    """Assert the facts of plain English sentences, with evidence."""
    opening = reading(options) if options.dry_run else changing(options, output)
    with opening as store:
        with output.progress("reading", 0) as steps:

            def report(_extracted: Extracted, at: int, total: int) -> None:
                steps.stand("reading", at, total)

            extraction = store.graph.extract(
                options.ids or None, where=where_of(options), dry_run=options.dry_run, report=report
            )
        with output.pages():
            _print_extraction(extraction, store.history.view(), output)
        output.result({"file": store.path, **extraction.to_dict()})
    return 0


def _print_extraction(extraction: Extraction, view: View, output: Output) -> None:
    from cerata.engine.words import counted

    for extracted in extraction.frames:
        if extracted.candidates:
            output.row((f"[{view.files.source(view.frame(extracted.frame))}]", "bold"))
        for number, candidate in enumerate(extracted.candidates):
            fact = "" if extraction.dry_run else f"#{extracted.facts[number]}"
            output.row((f"{fact:>7}  ", "dim"), str(candidate))
    read = sum(extracted.added for extracted in extraction.frames)
    frames = counted(len(extraction.frames), "frame")
    summary = f"{counted(extraction.found, 'fact')} in {frames}"
    output.line(
        f"{summary}; nothing was written: this was a dry run" if extraction.dry_run else summary
    )
    if not extraction.dry_run and read < len(extraction.frames):
        output.line(f"{len(extraction.frames) - read:,} were read before", style="dim")
