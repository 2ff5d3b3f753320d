"""The verb that shows what is true, when, and since when that is known: facts."""

import contextlib
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.fact_changes import FactChange
from cerata.memory.fact_values import (
    Contradiction,
    Entity,
    EvidenceText,
    Fact,
    FactObject,
    Period,
    plain_object,
    stored_object,
)
from cerata.memory.view import View
from cerata.projections.fact_values import Standing

from .given import form_of, write_picture
from .narrowing import count_of
from .opening import reading, view_of
from .output import Output, clipped, counted
from .parser import Adding, add_count, add_verb

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}

_MATCHING_MAX = 1000
"""Facts that are looked for with a question; -n says how many of them are shown."""

_COLUMNS_MAX = {"subject": 24, "predicate": 20, "object": 28}
"""Characters that a column takes at most; what is longer is cut in the table, not in --json."""


def add_verbs(adding: Adding) -> None:
    """Add facts."""
    facts = add_verb(
        adding,
        "facts",
        "what is true, when, and since when that is known",
        run_facts,
        lists=True,
        examples=(
            "facts alice",
            "facts alice --predicate 'lives in' --valid-at 2024-01-01",
            "facts --object paris --at HEAD~10",
            "facts alice --evidence",
            "facts --matching 'where does Alice live?'",
            "facts --conflicts",
            "facts alice --retracted --plot alice.svg",
        ),
    )
    facts.add_argument("subject", nargs="?", metavar="SUBJECT", help="an entity's name")
    facts.add_argument("--predicate", metavar="NAME", help="with this predicate only")
    facts.add_argument("--object", metavar="VALUE", help="an entity's name, a string or a number")
    facts.add_argument("--valid-at", metavar="TIME", help="true at this time; 'now' is the view's")
    facts.add_argument("--retracted", action="store_true", help="what was retracted too")
    facts.add_argument("--matching", metavar="QUESTION", help="the best for it, best first")
    facts.add_argument("--evidence", action="store_true", help="with the words that say so")
    facts.add_argument("--invalid", action="store_true", help="what is invalid by its links too")
    facts.add_argument(
        "--conflicts", action="store_true", help="what cannot both be true, in pairs"
    )
    facts.add_argument("--plot", metavar="FILE", help="draw them too, as .svg or .png")
    add_count(facts)


def run_facts(options: Namespace, output: Output) -> int:
    """Print facts as a table, oldest first; of contradictions two lines each."""
    count = count_of(options)
    plot: str | None = options.plot
    form = None if plot is None else form_of(plot)
    if form is not None and options.conflicts:
        raise InvalidInput("--conflicts has no picture", remedy="Leave --plot or it out.")
    _refuse_together(options)
    with reading(options) as store:
        view = view_of(store, options)
        if options.conflicts:
            return _run_conflicts(view, options, count, output)
        every = _found(view, options)
        found = every[:count]
        with output.pages():
            _print(found, output, view if options.evidence else None)
            if len(every) > count:
                output.line(f"{counted(len(every) - count, 'fact')} more: -n COUNT", style="dim")
        if not found:
            output.line("There are no such facts.")
            _hint(view, options, output)
        rows = [_as_json(fact, view if options.evidence else None) for fact in found]
        answer: dict[str, JsonValue] = {"basis": view.basis, "facts": rows}
        if plot is not None and form is not None and found:
            title = options.subject or options.predicate or "Facts"
            write_picture(plot, view.draw_facts(found, title=title, form=form))
            output.line(f"drawn: {plot}", style="dim")
            answer["plot"] = plot
        output.result(answer, items="facts")
    return 0


def _refuse_together(options: Namespace) -> None:
    """Refuse options of which one would be passed over. Raises `InvalidInput`."""
    narrowing = ("object", "valid_at", "matching", "retracted", "invalid", "evidence")
    both = {"conflicts": narrowing, "matching": ("retracted", "invalid")}
    for one, others in both.items():
        for other in others:
            if _is_given(options, one) and _is_given(options, other):
                raise InvalidInput(
                    f"--{one} does not go with --{other.replace('_', '-')}",
                    remedy="Leave one of them out.",
                )


def _is_given(options: Namespace, name: str) -> bool:
    return vars(options)[name] not in (None, False)


def _as_json(fact: Fact, view: View | None) -> dict[str, JsonValue]:
    """Return a fact; with a view, its evidence with the text."""
    told = fact.to_dict()
    if view is not None:
        told["evidence"] = [said.to_dict() for said in view.evidence(fact)]
    return told


def _found(view: View, options: Namespace) -> list[Fact]:
    if options.matching is not None:
        if (options.subject, options.predicate, options.object) != (None, None, None):
            raise InvalidInput(
                "A question and what facts must have are both given",
                where="--matching",
                remedy="Give one of them.",
            )
        hits = view.search_facts(options.matching, k=_MATCHING_MAX, valid_at=options.valid_at)
        return [hit.fact for hit in hits]
    asked = {
        "valid_at": options.valid_at,
        "include_retracted": options.retracted,
        "include_invalid": options.invalid,
    }
    if options.object is None:
        return view.facts(options.subject, options.predicate, **asked)
    found = {
        fact.id: fact
        for value in _meant(options.object)
        for fact in view.facts(options.subject, options.predicate, value, **asked)
    }
    return [found[number] for number in sorted(found)]


def _meant(text: str) -> list[FactObject]:
    """Return the objects that a word of the command line may stand for."""
    meant: list[FactObject] = [Entity(text), text]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            meant.append(number(text))
    if text in ("true", "false"):
        meant.append(text == "true")
    return [value for value in meant if _is_storable(value)]


def _is_storable(value: FactObject) -> bool:
    """Tell whether a fact can hold a value: no NaN, and no whole number of more than 64 bits."""
    try:
        stored_object(value)
    except InvalidInput:
        return False
    return True


def _run_conflicts(view: View, options: Namespace, count: int, output: Output) -> int:
    every = view.conflicts(options.subject, options.predicate)
    found = every[:count]
    with output.pages():
        for one in found:
            _print_conflict(one, output)
        if len(every) > count:
            output.line(f"{counted(len(every) - count, 'pair')} more: -n COUNT", style="dim")
    if not found:
        output.line("Nothing contradicts anything.")
    output.result(
        {"basis": view.basis, "conflicts": [one.to_dict() for one in found]}, items="conflicts"
    )
    return 0


def _print_conflict(one: Contradiction, output: Output) -> None:
    output.line(
        f"{one.first.subject} · {one.first.predicate}, {when_text(one.period)}:", style="bold"
    )
    for fact in (one.first, one.second):
        output.row((f"{f'#{fact.id}':>7}  ", "dim"), object_text(fact), "  ", (_why(fact), "dim"))


def _why(fact: Fact) -> str:
    frames = ", ".join(f"#{place.frame}" for place in fact.evidence)
    return f"{fact.source}, {fact.confidence:.0%}" + (f", says {frames}" if frames else "")


def _print(facts: Sequence[Fact], output: Output, quoting: View | None) -> None:
    """Print a table whose columns are as wide as what is in them, up to a limit.

    With a view to quote from, below each fact what says so.
    """
    rows = [(fact.subject, fact.predicate, object_text(fact)) for fact in facts]
    widths = [
        min(limit, max((cell_len(row[place]) for row in rows), default=0))
        for place, limit in enumerate(_COLUMNS_MAX.values())
    ]
    for fact, row in zip(facts, rows, strict=True):
        cells = [
            set_cell_size(clipped(text, width), width)
            for text, width in zip(row, widths, strict=True)
        ]
        gone = fact.standing is Standing.INVALID
        state = "" if fact.standing is Standing.STANDS else f"  {fact.standing}"
        state = f"  retracted by #{fact.retracted_by}" if fact.retracted_by is not None else state
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"),
            (f"{cells[0]}  {cells[1]}  {cells[2]}  ", "dim" if gone else ""),
            (when_text(fact.valid) + state, "dim"),
        )
        for said in () if quoting is None else quoting.evidence(fact):
            _print_said(said, output)


def _print_said(said: EvidenceText, output: Output) -> None:
    """Print what evidence says and where; what became of it, if it is not what was read."""
    if said.text is None:
        words = "(no longer there)"
    else:
        words = f"“{clipped(' '.join(said.text.split()), 200)}”"
    changed = "" if said.is_intact is not False else ", not what was read"
    gone = "" if said.is_current else ", no longer current"
    output.row("         ", (words, "italic"), "  ", (f"{said.source}{changed}{gone}", "dim"))


def print_fact_change(change: FactChange, output: Output) -> None:
    """Print what became of a fact in one line; of one that changed, when it is true now."""
    sign, style = _SIGNS[change.kind]
    fact = change.fact
    was = ""
    if change.old is not None and change.new is not None:
        was = f"{change.old}, {when_text(change.old.valid)} → "
        was = was if str(change.old) != str(fact) else f"{when_text(change.old.valid)} → "
    output.row(
        (f"{sign} ", style),
        (f"{f'#{fact.id}':<5} ", "dim"),
        f"{fact.subject} · {fact.predicate} · {object_text(fact)}  ",
        (f"{was}{when_text(fact.valid)}", "dim"),
    )


def object_text(fact: Fact) -> str:
    """Return a fact's object for people; a string stands in quotes."""
    value = plain_object(fact.object)
    return f'"{value}"' if isinstance(fact.object, str) else str(value)


def when_text(period: Period) -> str:
    """Return a period for people: ``since 2020-01-01``, ``2020-01-01 to 2023-05-01``."""
    if period.start is None:
        return "always" if period.end is None else f"until {_day(period.end)}"
    if period.end is None:
        return f"since {_day(period.start)}"
    return f"{_day(period.start)} to {_day(period.end)}"


def _day(when: datetime) -> str:
    midnight = (when.hour, when.minute, when.second, when.microsecond) == (0, 0, 0, 0)
    return f"{when:%Y-%m-%d}" if midnight else f"{when:%Y-%m-%d %H:%M}"


def _hint(view: View, options: Namespace, output: Output) -> None:
    """Say which entity was probably meant, where the subject is none."""
    if options.subject is None or output.as_json:
        return
    others = [name for name in view.resolve(options.subject) if name != options.subject]
    if others:
        output.warn(f"no fact is about {options.subject!r}; did you mean {others[0]!r}?")
