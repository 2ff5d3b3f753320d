"""The verb that prints facts and their periods: facts."""

import contextlib
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.facts.changes import FactChange
from cerata.memory.values.facts import (
    Contradiction,
    Entity,
    EvidenceText,
    Fact,
    FactObject,
    Period,
    plain_object,
    stored_object,
)
from cerata.memory.values.words import clipped, counted
from cerata.memory.view import View
from cerata.packs.plots import draw_facts
from cerata.projections.facts.objects import Standing

from .filter_options import count_of
from .output import Output
from .output_files import form_of, write_picture
from .store_options import file_of, reading, view_of

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}

_MATCHING_MAX = 1000
"""Facts that a question retrieves; -n limits the printed facts."""

_COLUMNS_MAX = {"subject": 24, "predicate": 20, "object": 28}
"""Most characters of a column: longer texts are cut in the table, not in --json."""


def run_facts(options: Namespace, output: Output) -> int:
    """Print facts as a table, oldest first, or contradictions in two lines each."""
    count = count_of(options)
    plot: str | None = options.plot
    form = None if plot is None else form_of(plot)
    if form is not None and options.conflicts:
        raise InvalidInput(
            "--conflicts does not go with --plot", remedy="Remove --conflicts or --plot."
        )
    _refuse_together(options)
    with reading(options) as store:
        view = view_of(store, options)
        if options.conflicts:
            return _run_conflicts(view, options, count, output)
        facts = _matches(view, options)
        page = facts[:count]
        with output.pages():
            _print(page, output, view if options.evidence else None)
            if len(facts) > count:
                output.line(f"{counted(len(facts) - count, 'fact')} more: -n COUNT", style="dim")
        if not page:
            output.line("No fact matches.")
            _hint(view, options, output)
        rows = [_as_json(fact, view if options.evidence else None) for fact in page]
        answer: dict[str, JsonValue] = {"basis": view.basis, "facts": rows}
        if plot is not None and form is not None and page:
            title = options.subject or options.predicate or "Facts"
            picture = draw_facts(view, page, title=title, form=form)
            write_picture(plot, picture, file_of(options))
            output.line(f"drawn: {plot}", style="dim")
            answer["plot"] = plot
        output.result(answer, items="facts")
    return 0


def _refuse_together(options: Namespace) -> None:
    """Raise `InvalidInput` for a pair of options if one would have no effect."""
    narrowing = ("object", "valid_at", "matching", "ended", "retracted", "invalid", "evidence")
    exclusions = {"conflicts": narrowing, "matching": ("ended", "retracted", "invalid")}
    for option, excluded in exclusions.items():
        for partner in excluded:
            if _is_set(options, option) and _is_set(options, partner):
                name = partner.replace("_", "-")
                raise InvalidInput(
                    f"--{option} does not go with --{name}",
                    remedy=f"Remove --{option} or --{name}.",
                )


def _is_set(options: Namespace, name: str) -> bool:
    return vars(options)[name] not in (None, False)


def _as_json(fact: Fact, view: View | None) -> dict[str, JsonValue]:
    """Return a fact; with a view, also the texts of its evidence."""
    fields = fact.to_dict()
    if view is not None:
        fields["evidence"] = [text.to_dict() for text in view.evidence(fact)]
    return fields


def _matches(view: View, options: Namespace) -> list[Fact]:
    if options.matching is not None:
        if (options.subject, options.predicate, options.object) != (None, None, None):
            raise InvalidInput(
                "--matching does not go with a subject, --predicate or --object",
                where="--matching",
                remedy="Remove --matching, or all of these.",
            )
        hits = view.search_facts(options.matching, k=_MATCHING_MAX, valid_at=options.valid_at)
        return [hit.fact for hit in hits]
    restrictions = {
        "valid_at": options.valid_at,
        "include_ended": options.ended,
        "include_retracted": options.retracted,
        "include_invalid": options.invalid,
    }
    if options.object is None:
        return view.facts(options.subject, options.predicate, **restrictions)
    facts = {
        fact.id: fact
        for value in _objects(options.object)
        for fact in view.facts(options.subject, options.predicate, value, **restrictions)
    }
    return [facts[number] for number in sorted(facts)]


def _objects(text: str) -> list[FactObject]:
    objects: list[FactObject] = [Entity(text), text]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            objects.append(number(text))
    if text in ("true", "false"):
        objects.append(text == "true")
    return [value for value in objects if _is_storable(value)]


def _is_storable(value: FactObject) -> bool:
    """Return whether a fact can have a value: no NaN, no whole number over 64 bits."""
    try:
        stored_object(value)
    except InvalidInput:
        return False
    return True


def _run_conflicts(view: View, options: Namespace, count: int, output: Output) -> int:
    conflicts = view.conflicts(options.subject, options.predicate)
    page = conflicts[:count]
    with output.pages():
        for conflict in page:
            _print_conflict(conflict, output)
        if len(conflicts) > count:
            output.line(f"{counted(len(conflicts) - count, 'pair')} more: -n COUNT", style="dim")
    if not page:
        output.line("There are no contradictions.")
    output.result(
        {"basis": view.basis, "conflicts": [conflict.to_dict() for conflict in page]},
        items="conflicts",
    )
    return 0


def _print_conflict(conflict: Contradiction, output: Output) -> None:
    output.line(
        f"{conflict.first.subject} · {conflict.first.predicate}, {when_text(conflict.period)}:",
        style="bold",
    )
    for fact in (conflict.first, conflict.second):
        output.row((f"{f'#{fact.id}':>7}  ", "dim"), object_text(fact), "  ", (_why(fact), "dim"))


def _why(fact: Fact) -> str:
    frames = ", ".join(f"#{place.frame}" for place in fact.evidence)
    return f"{fact.source}, {fact.confidence:.0%}" + (f", evidence {frames}" if frames else "")


def _print(facts: Sequence[Fact], output: Output, quoting: View | None) -> None:
    """Print a table with columns as wide as their contents, up to a limit.

    With ``quoting`` each fact is followed by its evidence.
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
        is_invalid = fact.standing is Standing.INVALID
        state = "" if fact.standing is Standing.STANDS else f"  {fact.standing}"
        state = f"  retracted by #{fact.retracted_by}" if fact.retracted_by is not None else state
        state = f"  ended{state}" if fact.is_ended else state
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"),
            (f"{cells[0]}  {cells[1]}  {cells[2]}  ", "dim" if is_invalid else ""),
            (when_text(fact.valid) + state, "dim"),
        )
        for evidence in () if quoting is None else quoting.evidence(fact):
            _print_evidence(evidence, output)


def _print_evidence(evidence: EvidenceText, output: Output) -> None:
    if evidence.text is None:
        words = "(erased)"
    else:
        words = f"“{clipped(' '.join(evidence.text.split()), 200)}”"
    changed = "" if evidence.is_intact is not False else ", changed since"
    closed = "" if evidence.is_current else ", no longer current"
    output.row("         ", (words, "italic"), "  ", (f"{evidence.source}{changed}{closed}", "dim"))


def print_fact_change(change: FactChange, output: Output) -> None:
    """Print a change of a fact in one line; for a changed fact with its old period."""
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
        (f"  {change.verb}", "dim"),
    )


def object_text(fact: Fact) -> str:
    """Return a fact's object for people, a string in quotes."""
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
    """Suggest an entity for an unknown subject."""
    if options.subject is None or output.as_json:
        return
    candidates = [name for name in view.resolve(options.subject) if name != options.subject]
    if candidates:
        output.warn(f"no fact is about {options.subject!r}; did you mean {candidates[0]!r}?")
