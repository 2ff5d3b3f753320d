"""The verbs that write facts: assert, correct and retract."""

import contextlib
from argparse import Namespace

from cerata.engine.errors import InvalidInput
from cerata.memory.store import Store
from cerata.memory.values.facts import Entity, Fact, FactObject
from cerata.projections.columnar.times import to_datetime, to_microseconds

from .facts import object_text, when_text
from .output import Output
from .store_options import changing, writing


def run_assert(options: Namespace, output: Output) -> int:
    """Assert a fact, and print it with its id."""
    value = _object(options.object, options.kind)
    with writing(options, output) as store:
        receipt = store.assert_fact(
            options.subject,
            options.predicate,
            value,
            valid_from=options.valid_from,
            valid_to=options.valid_to,
            confidence=1.0 if options.confidence is None else options.confidence,
            source=options.source,
            evidence=options.evidence,
            assumptions=options.assumption,
            because=options.because,
        )
        fact = store.fact(receipt.id)
        _print("+", fact, output, "" if receipt.added else ", unchanged")
        output.result({"file": store.path, "fact": fact.to_dict(), **receipt.to_dict()})
    return 0


def run_correct(options: Namespace, output: Output) -> int:
    """Replace a wrong fact by the right one, and print both."""
    value = None if options.object is None else _object(options.object, options.kind)
    if value is None and options.kind is not None:
        raise InvalidInput("--as needs --object", remedy="Pass --object VALUE, or remove --as.")
    with changing(options, output) as store:
        receipt = store.correct_fact(
            options.fact,
            object=value,
            valid_from=options.valid_from,
            valid_to=options.valid_to,
            confidence=options.confidence,
            evidence=options.evidence,
            reason=options.reason,
        )
        old, new = store.fact(options.fact), store.fact(receipt.id)
        _print("-", old, output)
        _print("+", new, output)
        output.result(
            {
                "file": store.path,
                "old": old.to_dict(),
                "fact": new.to_dict(),
                **receipt.to_dict(),
            }
        )
    return 0


def run_retract(options: Namespace, output: Output) -> int:
    """Retract facts, all or none."""
    with changing(options, output) as store:
        facts = _facts(store, options.facts)
        receipt = store.retract_facts(facts, reason=options.reason)
        for fact in facts:
            _print("-", fact, output)
        output.line(f"Still readable with --at {receipt.seqs[0] - 1}.", style="dim")
        output.result(
            {"file": store.path, "retracted": [fact.id for fact in facts], **receipt.to_dict()}
        )
    return 0


def _facts(store: Store, ids: list[int]) -> list[Fact]:
    return [store.fact(number) for number in dict.fromkeys(ids)]


def _object(text: str, kind: str | None) -> FactObject:
    """Return the value that a word of the command line means.

    Raises:
        InvalidInput: the word is no value of the kind.
    """
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


def _print(sign: str, fact: Fact, output: Output, note: str = "") -> None:
    colour = "green" if sign == "+" else "red"
    output.row(
        (f"{sign} ", colour),
        (f"#{fact.id} ", "dim"),
        f"{fact.subject} · {fact.predicate} · {object_text(fact)}  ",
        (f"{when_text(fact.valid)}{note}", "dim"),
    )
