"""The tools that read: recall, show, facts and changes, each a function from a store to a text.

Every read goes through the store's scope. Leaves out the forms of the texts (`answers`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from cerata.engine.errors import CerataError, InvalidInput, NotFound
from cerata.engine.late import loading
from cerata.engine.unreadable import UNREADABLE, noticing
from cerata.engine.words import clipped, counted
from cerata.memory.facts.changes import FactChange
from cerata.memory.frames.diff import Change
from cerata.memory.store import Store
from cerata.memory.values.options import Layout
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter
from cerata.retrieval.context.imitation import on_one_line
from cerata.retrieval.tokenizer import tokenizer

from .answers import (
    change_text,
    entry_text,
    error_text,
    fact_line,
    moment_of,
    version_text,
)
from .arguments import (
    ChangesArguments,
    FactsArguments,
    RecallArguments,
    ShowArguments,
    basis_of,
)

SUMMARY_TOKENS: Final = 40
"""Tokens of a recall's budget that its last line may take."""

_NOTICES_MAX: Final = 5
"""Unreadable items that an answer names; it counts the rest."""

_QUOTE_SIZE: Final = 400
"""Characters of a passage of evidence."""


def _view(store: Store, at: str | None, valid_at: str | None = None) -> View:
    return store.at("HEAD" if at is None else basis_of(at), valid_at=valid_at)


def recall(store: Store, arguments: RecallArguments, *, is_recording: bool = False) -> str:
    """Return a context for a question, and a line with the counts of its entries and tokens.

    Args:
        store: The memory.
        arguments: The arguments of the call.
        is_recording: Write an event that lists the entries shown; only of the newest state.
    """
    where = None if arguments.where is None else _filter(arguments.where)
    is_newest = arguments.at is None and arguments.valid_at is None
    source = store if is_newest else _view(store, arguments.at, arguments.valid_at)
    unreadable: list[str] = []
    with noticing(unreadable):
        context = source.recall(
            arguments.query,
            max_tokens=arguments.max_tokens - SUMMARY_TOKENS,
            where=where,
            record=is_recording and is_newest,
            layout=Layout(framing=True),
        )
    named = {notice.casefold() for notice in context.notices}
    notices = [
        *context.notices,
        *(on_one_line(notice) for notice in unreadable if notice.casefold() not in named),
    ]
    return _with_notices(str(context), notices, arguments.max_tokens)


def _filter(text: str) -> Filter:
    with loading("the query language"):
        from cerata.retrieval.query_language.parser import query_filter
    return query_filter(text)


def _with_notices(text: str, notices: Sequence[str], tokens_max: int) -> str:
    for notice in notices:
        longer = f"{text}\n{notice}"
        if tokenizer().count(longer) <= tokens_max:
            text = longer
    return text


def naming_unreadable(run: Callable[[], str]) -> str:
    """Return the text of a tool; its first lines name the items that its lists lack."""
    notices: list[str] = []
    with noticing(notices):
        text = run()
    lines = [f"note: {on_one_line(notice)}" for notice in notices[:_NOTICES_MAX]]
    if len(notices) > _NOTICES_MAX:
        lines.append(f"note: {len(notices) - _NOTICES_MAX:,} more cannot be read")
    return "\n".join([*lines, text])


def show(store: Store, arguments: ShowArguments) -> str:
    """Return entries and facts in full, with history also their versions and reasons."""
    view = _view(store, arguments.at)
    text = _past if arguments.history else thing_text
    blocks: list[str] = []
    errors: list[CerataError] = []
    for number in arguments.ids:
        try:
            blocks.append(text(view, number))
        except (NotFound, *UNREADABLE) as error:
            errors.append(error)
            blocks.append(f"#{number}\n{error_text(error)}")
    if len(errors) == len(blocks):
        raise errors[0]
    return "\n\n".join(blocks)


def thing_text(view: View, number: int) -> str:
    """Return an entry or a fact. Raises `NotFound`."""
    if is_entry(view, number):
        return entry_text(view, view.frame(number))
    return fact_line(view.graph.fact(number))


def is_entry(view: View, number: int) -> bool:
    """Return whether an id is of an entry, not of a fact.

    Raises:
        NotFound: neither an entry nor a fact of the scope has the id.
    """
    try:
        view.frame(number)
    except NotFound:
        try:
            view.graph.fact(number)
        except NotFound:
            raise NotFound(
                f"There is no entry or fact #{number} (basis {view.basis})",
                remedy="Find ids with recall, facts or changes.",
            ) from None
        return False
    return True


def _past(view: View, number: int) -> str:
    if is_entry(view, number):
        return "\n\n".join(version_text(frame) for frame in view.history.of(view.frame(number)))
    fact = view.graph.fact(number)
    lines = [fact_line(fact)]
    for entry in view.history.of(fact):
        credit = "" if entry.act is None or not entry.act.credit else f" {entry.act.credit}"
        day = "" if entry.act is None else f"{entry.act.recorded:%Y-%m-%d} "
        lines.append(f"event {entry.seq}: {day}{entry.verb} {entry.summary}{credit}")
    for place in view.graph.evidence(fact):
        quote = "(erased)" if place.text is None else f"“{clipped(place.text, _QUOTE_SIZE)}”"
        lines.append(f"evidence [{place.source}]: {quote}")
    return "\n".join([*lines, str(view.graph.why(fact))])


def facts(store: Store, arguments: FactsArguments) -> str:
    """Return facts about a subject, or the best facts for a question, one a line."""
    names = (arguments.subject, arguments.predicate)
    if arguments.question is not None and names != (None, None):
        raise InvalidInput(
            "facts takes a question, or a subject and predicate, not both",
            where="facts, question",
            remedy="Leave out question, or leave out subject and predicate.",
        )
    view = _view(store, arguments.at, arguments.valid_at)
    if arguments.question is not None:
        hits = view.graph.search(arguments.question, k=arguments.limit + 1)
        found = [hit.fact for hit in hits]
        more = "more"
    else:
        found = view.facts(arguments.subject, arguments.predicate)
        more = f"{len(found) - arguments.limit:,} more"
    lines = [fact_line(fact) for fact in found[: arguments.limit]]
    if len(found) > arguments.limit:
        lines.append(f"[{more}: pass a limit up to 100, or a subject and predicate]")
    return "\n".join(lines or [f"No fact matches, basis {view.basis}."])


def changes(store: Store, arguments: ChangesArguments) -> str:
    """Return the changes between two points, newest first, and their counts."""
    diff = store.diff(basis_of(arguments.since), basis_of(arguments.until))
    every: list[Change | FactChange] = [*diff.changes, *diff.facts]
    every.sort(key=moment_of, reverse=True)
    blocks = [change_text(change) for change in every[: arguments.limit]]
    left = len(every) - arguments.limit
    if left > 0:
        blocks.append(f"[{counted(left, 'older change')}: pass a limit up to 100]")
    return "\n\n".join([*blocks, diff.summary])
