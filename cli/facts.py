"""The verbs that print and write facts: list, assert and retract."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.late import late
from cerata.engine.verbs import ACTOR, LISTS, Arg, Option, Verb, identifier

from .options import (
    FACT_SOURCES,
    OBJECT_KINDS,
    changing,
    check_goes_with,
    count_of,
    reading,
    view_of,
    writing,
)
from .shared_options import COUNT, REASONS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from cerata.engine.events import JsonValue
    from cerata.memory.facts.changes import FactChange
    from cerata.memory.store import Store
    from cerata.memory.values import options as value_options
    from cerata.memory.values.facts import Contradiction, EvidenceText, Fact, FactObject, Period
    from cerata.memory.view import View

    from .output import Output

    Drawing = Callable[[View, Sequence[Fact]], Mapping[str, JsonValue]]
    """A function that draws the printed facts, and returns more of the answer."""
else:
    value_options = late("cerata.memory.values.options")

VERBS: Final = (
    Verb(
        "list",
        "facts",
        "print facts, with the periods when they are true",
        "cerata.cli.facts:run_list",
        (
            Arg("subject", "an entity's name", "?", metavar="SUBJECT"),
            Option("--predicate NAME", "only facts with this predicate"),
            Option("--object VALUE", "an entity's name, a string or a number"),
            Option("--valid-at TIME", "only facts true at this time"),
            Option("--ended", "include facts that have ended"),
            Option("--retracted", "include retracted facts"),
            Option("--matching QUESTION", "the best facts for a question, best first"),
            Option("--evidence", "print the evidence of each fact, too"),
            Option("--invalid", "include facts that links make invalid"),
            Option("--conflicts", "print contradictions, in pairs"),
            COUNT,
            *LISTS,
        ),
        (
            "alice",
            "alice --predicate 'lives in' --valid-at 2024-01-01",
            "--object paris --at HEAD~10",
            "alice --evidence",
            "--matching 'where does Alice live?'",
            "--conflicts",
        ),
        page="facts.md",
    ),
    Verb(
        "assert",
        "facts",
        "assert that a fact is true, also instead of a wrong fact",
        "cerata.cli.facts:run_assert",
        (
            Arg("subject", "an entity's name; with --instead no word", "?", metavar="SUBJECT"),
            Arg("predicate", "the property or relation", "?", metavar="PREDICATE"),
            Arg("object", "the value", "?", metavar="OBJECT"),
            Option(
                "--instead ID",
                "id of a wrong fact, which is retracted; its other parts stay",
                type=identifier,
            ),
            Option("--object VALUE", "with --instead: the right value", dest="value"),
            Option("--as", "kind of the value (string)", dest="kind", choices=OBJECT_KINDS),
            Option("--valid-from TIME", "true from then on, or 'open'"),
            Option("--valid-to TIME", "true until then, or 'open'"),
            Option("--confidence P", "probability, from 0 to 1", type=float),
            Option(
                "--evidence ID",
                "a frame in which it was read; repeat for several",
                repeats=True,
                type=identifier,
            ),
            Option("--source", "where it is from (observed)", choices=FACT_SOURCES),
            Option(
                "--assumption ASSUMPTION", "holds only under it; repeat for several", repeats=True
            ),
            Option("--because FACT", "the fact that led to this fact", type=identifier),
            ACTOR,
            Option("--reason TEXT", "with --instead: the cause, recorded in the log"),
        ),
        (
            "alice 'lives in' paris --as entity --valid-from open",
            "staging 'database port' 5433 --as number --evidence '#3'",
            "--instead 12 --object rome --as entity",
            "--instead 12 --valid-to 2025-06-01",
        ),
        page="facts.md",
    ),
    Verb(
        "retract",
        "facts",
        "retract facts; earlier views keep them",
        "cerata.cli.facts:run_retract",
        (Arg("facts", "ids of facts", "+", type=identifier, metavar="FACT"), *REASONS),
        ("12", "12 13"),
        page="facts.md",
    ),
)

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}

_MATCHING_MAX = 1000
"""Facts that a question retrieves; -n limits the printed facts."""

_COLUMNS_MAX = {"subject": 24, "predicate": 20, "object": 28}
"""Most characters of a column: longer texts are cut in the table, not in --json."""


def run_list(options: Namespace, output: Output, draw: Drawing | None = None) -> int:
    """Print facts as a table, oldest first, or contradictions in two lines each."""
    from cerata.engine.words import counted

    count = count_of(options)
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
        if draw is not None and page:
            answer |= draw(view, page)
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
        fields["evidence"] = [text.to_dict() for text in view.graph.evidence(fact)]
    return fields


def _matches(view: View, options: Namespace) -> list[Fact]:
    if options.matching is not None:
        if (options.subject, options.predicate, options.object) != (None, None, None):
            raise InvalidInput(
                "--matching does not go with a subject, --predicate or --object",
                where="--matching",
                remedy="Remove --matching, or all of these.",
            )
        hits = view.graph.search(options.matching, k=_MATCHING_MAX, valid_at=options.valid_at)
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
    from cerata.memory.values.facts import Entity

    objects: list[FactObject] = [Entity(text), text]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            objects.append(number(text))
    if text in ("true", "false"):
        objects.append(text == "true")
    return [value for value in objects if _is_storable(value)]


def _is_storable(value: FactObject) -> bool:
    """Return whether a fact can have a value: no NaN, no whole number over 64 bits."""
    from cerata.memory.values.facts import stored_object

    try:
        stored_object(value)
    except InvalidInput:
        return False
    return True


def _run_conflicts(view: View, options: Namespace, count: int, output: Output) -> int:
    from cerata.engine.words import counted

    conflicts = view.graph.conflicts(options.subject, options.predicate)
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
    from rich.cells import cell_len, set_cell_size

    from cerata.engine.words import clipped
    from cerata.projections.facts.objects import Standing

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
        for evidence in () if quoting is None else quoting.graph.evidence(fact):
            _print_evidence(evidence, output)


def _print_evidence(evidence: EvidenceText, output: Output) -> None:
    from cerata.engine.words import clipped

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
    from cerata.memory.values.facts import plain_object

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
    candidates = [name for name in view.graph.resolve(options.subject) if name != options.subject]
    if candidates:
        output.warn(f"no fact is about {options.subject!r}; did you mean {candidates[0]!r}?")


def run_assert(options: Namespace, output: Output) -> int:
    """Assert a fact, also instead of a wrong fact, and print it with its id."""
    is_new = options.instead is None
    words = {
        "SUBJECT": options.subject,
        "PREDICATE": options.predicate,
        "OBJECT": options.object,
        "--source": options.source,
        "--assumption": options.assumption,
        "--because": options.because,
    }
    check_goes_with("a fact without --instead", words, is_passed=is_new)
    correction = {"--object": options.value, "--reason": options.reason}
    check_goes_with("--instead", correction, is_passed=not is_new)
    return (_assert if is_new else _correct)(options, output)


def _assert(options: Namespace, output: Output) -> int:
    if options.object is None:
        raise InvalidInput(
            "assert needs SUBJECT, PREDICATE and OBJECT", remedy="Pass all three, or --instead ID."
        )
    value = _object(options.object, options.kind)
    with writing(options, output) as store:
        receipt = store.assert_fact(
            options.subject,
            options.predicate,
            value,
            valid_from=options.valid_from,
            valid_to=options.valid_to,
            confidence=1.0 if options.confidence is None else options.confidence,
            source=options.source or "observed",
            evidence=options.evidence,
            options=value_options.FactOptions(
                assumptions=options.assumption, because=options.because
            ),
        )
        fact = store.graph.fact(receipt.id)
        _print_change("+", fact, output, "" if receipt.added else ", unchanged")
        output.result({"file": store.path, "fact": fact.to_dict(), **receipt.to_dict()})
    return 0


def _correct(options: Namespace, output: Output) -> int:
    """Replace a wrong fact by the right one, and print both."""
    value = None if options.value is None else _object(options.value, options.kind)
    if value is None and options.kind is not None:
        raise InvalidInput("--as needs --object", remedy="Pass --object VALUE, or remove --as.")
    with changing(options, output) as store:
        receipt = store.correct_fact(
            options.instead,
            object=value,
            valid_from=options.valid_from,
            valid_to=options.valid_to,
            confidence=options.confidence,
            evidence=options.evidence,
            reason=options.reason,
        )
        old, new = store.graph.fact(options.instead), store.graph.fact(receipt.id)
        _print_change("-", old, output)
        _print_change("+", new, output)
        output.result(
            {"file": store.path, "old": old.to_dict(), "fact": new.to_dict(), **receipt.to_dict()}
        )
    return 0


def run_retract(options: Namespace, output: Output) -> int:
    """Retract facts, all or none."""
    with changing(options, output) as store:
        facts = _facts(store, options.facts)
        receipt = store.graph.retract_many(facts, reason=options.reason)
        for fact in facts:
            _print_change("-", fact, output)
        output.line(f"Still readable with --at {receipt.seqs[0] - 1}.", style="dim")
        output.result(
            {"file": store.path, "retracted": [fact.id for fact in facts], **receipt.to_dict()}
        )
    return 0


def _facts(store: Store, ids: list[int]) -> list[Fact]:
    return [store.graph.fact(number) for number in dict.fromkeys(ids)]


def _object(text: str, kind: str | None) -> FactObject:
    """Return the value that a word of the command line means.

    Raises:
        InvalidInput: the word is no value of the kind.
    """
    from cerata.memory.values.facts import Entity
    from cerata.projections.columnar.times import to_datetime, to_microseconds

    if kind == "entity":
        return Entity(text)
    if kind == "time":
        return to_datetime(to_microseconds(text))
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "number":
        for number in (int, float):
            with contextlib.suppress(ValueError):
                return number(text)
    if kind in ("boolean", "number"):
        example = "true or false" if kind == "boolean" else "a number such as 5433 or 0.5"
        raise InvalidInput(
            f"The object {text!r} is no {kind}", remedy=f"Pass {example}, or another --as."
        )
    return text


def _print_change(sign: str, fact: Fact, output: Output, note: str = "") -> None:
    colour = "green" if sign == "+" else "red"
    output.row(
        (f"{sign} ", colour),
        (f"#{fact.id} ", "dim"),
        f"{fact.subject} · {fact.predicate} · {object_text(fact)}  ",
        (f"{when_text(fact.valid)}{note}", "dim"),
    )
