"""The tools that write: remember, assert_fact, correct and forget, each a durable batch.

A call that raises has written nothing. Leaves out the forms of the texts (`answers`).
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from cerata.engine.errors import Conflict, InvalidInput
from cerata.memory.facts.corrections import current_fact
from cerata.memory.frames.versions import standing_version
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store
from cerata.memory.values.facts import OPEN, Entity, Fact, FactObject
from cerata.memory.values.frames import Receipt
from cerata.memory.values.options import PutOptions
from cerata.memory.view import View
from cerata.projections.columnar.relative_times import interval_of
from cerata.projections.columnar.times import to_datetime

from .answers import period_text, statement
from .arguments import (
    AssertArguments,
    CorrectArguments,
    ForgetArguments,
    RememberArguments,
    Value,
)
from .reading import is_entry

_ATTEMPTS: Final = 20
"""Attempts of a call whose entries other writers close at the same time."""


def remember(store: Store, arguments: RememberArguments) -> str:
    """Store a text once, and return its id."""
    about = _time(store, arguments.about_time)
    receipt = store.remember(
        arguments.text,
        tags=arguments.tags,
        options=PutOptions(content_dates=None if about is None else [about]),
    )
    return "\n".join([_stored(receipt), *receipt.notices])


def _time(store: Store, text: str | None) -> date | str | None:
    """Return the start of a time as a tool that reads takes it: "yesterday", 2026-03, an ISO time.

    Raises:
        InvalidInput: the text is no time, or is a range.
    """
    if text is None or text == OPEN:
        return text
    return to_datetime(interval_of(text, store.history.view().now).start)


def _stored(receipt: Receipt) -> str:
    return f"#{receipt.id}" if receipt.added else f"#{receipt.id} (already stored)"


def assert_fact(store: Store, arguments: AssertArguments) -> str:
    """Record a fact, and return its id, the facts that it ends, and those that it contradicts."""
    named = arguments.object
    receipt = store.assert_fact(
        arguments.subject,
        arguments.predicate,
        Entity(named) if arguments.is_entity and isinstance(named, str) else named,
        valid_from=_time(store, arguments.valid_from),
        valid_to=_time(store, arguments.valid_to),
        evidence=arguments.evidence,
    )
    return " · ".join([_stored(receipt), *_effects(store, receipt.id)])


def _effects(store: Store, number: int) -> list[str]:
    """Return the facts that a fact ends or contradicts."""
    view = store.history.view()
    fact = view.graph.fact(number)
    effects = [
        f"ends #{ended.id} ({statement(ended)}) on {period_text(ended.valid).split(' to ')[1]}"
        for ended in view.graph.versions(fact.subject, fact.predicate)
        if ended.ended_by == fact.id
    ]
    for conflict in view.graph.conflicts(fact.subject, fact.predicate):
        pair = conflict.first.id, conflict.second.id
        if fact.id in pair:
            effects.append(f"contradicts #{pair[0] if pair[1] == fact.id else pair[1]}")
    return effects


def correct(store: Store, arguments: CorrectArguments) -> str:
    """Replace an entry, or correct a fact, and return both ids."""
    number = arguments.id
    view = store.history.view()
    of_fact = (arguments.object, arguments.valid_from, arguments.valid_to)
    if is_entry(view, number):
        if arguments.text is None or of_fact != (None, None, None):
            raise InvalidInput(
                f"#{number} is an entry, which has a text and no object or period",
                where="correct",
                remedy="Pass text alone.",
            )
        receipt = store.supersede(number, arguments.text, reason=arguments.reason)
        return f"#{number} → #{receipt.id}"
    if arguments.text is not None:
        raise InvalidInput(
            f"#{number} is a fact, which has no text",
            where="correct, text",
            remedy="Pass object, valid_from or valid_to.",
        )
    fact = view.graph.fact(number)
    receipt = store.correct_fact(
        number,
        object=None if arguments.object is None else _object_like(fact, arguments.object, view.now),
        valid_from=_time(store, arguments.valid_from),
        valid_to=_time(store, arguments.valid_to),
        reason=arguments.reason,
    )
    return f"#{number} → #{receipt.id}"


def _object_like(fact: Fact, text: Value, now: datetime) -> FactObject:
    """Return a text as an object of the type that a fact has; a number or truth value as it is.

    Raises:
        InvalidInput: the text is no value of the type.
    """
    old = fact.object
    if not isinstance(text, str):
        return text
    try:
        if isinstance(old, Entity):
            return Entity(text)
        if isinstance(old, bool):
            return {"true": True, "false": False}[text.strip().lower()]
        if isinstance(old, datetime):
            return to_datetime(interval_of(text, now).start)
        if isinstance(old, int | float):
            return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except (KeyError, ValueError) as error:
        raise InvalidInput(
            f"object must be a {type(old).__name__} like {old!r:.40}, not {text!r:.40}",
            where="correct, object",
            remedy="Pass a value of this type, or forget the fact and assert another.",
        ) from error
    return text


def forget(store: Store, arguments: ForgetArguments) -> str:
    """Hide entries and retract facts in one batch: all ids or none. Hidden ids stay hidden."""
    numbers = arguments.ids
    already: list[int] = []
    for attempt in range(_ATTEMPTS):
        head = store.head.seq
        try:
            already = _forget(store, numbers, arguments.reason)
            break
        except Conflict:
            # Another writer closed one of them since; the next attempt passes over it.
            if attempt == _ATTEMPTS - 1 or store.head.seq == head:
                raise
    before = f" ({_names(already)}: already)" if already else ""
    return f"hidden: {_names(numbers)}{before}. Earlier states still show them."


def _names(numbers: Sequence[int]) -> str:
    return ", ".join(f"#{number}" for number in numbers)


def _forget(store: Store, numbers: Sequence[int], reason: str | None) -> list[int]:
    """Hide what is current in one batch, and return the ids that were hidden before it.

    Raises:
        Conflict: an id was corrected, and the current id is not among the ids.
    """
    view = store.history.view()
    entries = [number for number in numbers if is_entry(view, number)]
    already: list[int] = []
    with store.transaction(reason=reason):
        for number in numbers:
            if number in entries:
                was_open = view.frame(number).active or view.frame(number).is_expired
                # Read inside the block: hiding a document has hidden the entries below it.
                frame = store.frame(number)
                if frame.active or frame.is_expired:
                    store.delete(number)
            else:
                was_open = view.graph.fact(number).is_known
                if store.graph.fact(number).is_known:
                    store.retract_fact(number)
            if not was_open:
                _check_gone(view, number, numbers, is_frame=number in entries)
                already.append(number)
    return already


def _check_gone(view: View, number: int, numbers: Sequence[int], *, is_frame: bool) -> None:
    """Refuse an id of which another version is current, unless that is hidden too: `Conflict`."""
    snapshot = snapshot_of(view)
    if is_frame:
        current = standing_version(snapshot, number)
    else:
        fact = current_fact(snapshot, view.graph.fact(number))
        current = None if fact is None else fact.id
    if current is not None and current not in numbers:
        raise Conflict(
            f"#{number} was corrected, and #{current} is current; nothing changed",
            where="forget, ids",
            remedy=f"Pass #{current}, which is shown now.",
        )
