"""Recalling: from what a search found to what a model is told.

Owns what a context chooses from: the facts of whom the question names, the frames that were found,
or the newest where nothing was, each as an entry with its tier. Leaves out what is found (`lanes`),
how a budget is filled (`cerata.retrieval.context`), and the event that says it was shown
(`access`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cerata.projections.query import Query
from cerata.projections.times import to_microseconds
from cerata.retrieval import framing
from cerata.retrieval.context import Filled, Telling, fill
from cerata.retrieval.entries import Entry
from cerata.retrieval.policies import Tier, specificity

from .access import uses_of
from .drafting import SPAN
from .fact_search import FactHit, source_of_fact, told_fact
from .lanes import Search
from .layers import both
from .values import Context, Frame

CONTEXT_HITS: Final = 100
"""Hits that a context chooses from."""

_TOKENS_A_FACT: Final = 150
"""A context has a fact of what the question names for each so many tokens of its budget."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A context, how it was told, and what it was chosen from."""

    search: Search
    telling: Telling
    is_framed: bool
    context: Context
    facts: tuple[int, ...]


def recalled(search: Search, telling: Telling, *, is_framed: bool) -> Recalled:
    """Return the context of a search: a pure function of its view, the question and the policy."""
    view = search.view
    most = telling.max_tokens // _TOKENS_A_FACT
    told = search.named[:most] if search.where is None else []
    found = [hit.frame for hit in search.hits]
    is_fallback = not found and not told
    if is_fallback:
        found = list(_newest(search))
    entries = [*map(_entry_of_fact, told), *_entries_of(search, telling, found)]
    lead = ""
    if is_framed:
        lead = framing.FOUND if not is_fallback else framing.FALLBACK if found else framing.EMPTY
    query = search.query
    filled = fill(entries, telling, lambda text: view.highlights(text, query), lead=lead)
    context = _context(search, telling, filled, is_fallback=is_fallback)
    return Recalled(search, telling, is_framed, context, tuple(hit.fact.id for hit in told))


def _context(search: Search, telling: Telling, filled: Filled, *, is_fallback: bool) -> Context:
    view = search.view
    return Context(
        text=filled.text,
        tokens=filled.tokens,
        max_tokens=telling.max_tokens,
        tokenizer=filled.tokenizer,
        items=filled.items,
        omissions=filled.omissions,
        basis=view.basis,
        now=view.now,
        log_id=view.log_id,
        fallback=is_fallback,
        lanes=search.ran,
        profile=search.profile.label,
        policy=telling.policy.label,
        framed=filled.has_lead,
    )


def _newest(search: Search) -> Iterator[Frame]:
    """Yield the newest frames that the filter and the query's own let pass, and no NOT excludes."""
    view = search.view
    masks = both(view.layers.admitted(search.where), view.layers.searched)
    if isinstance(search.query, Query):
        masks = both(masks, view.layers.let_in(search.query))
    return map(view.shown, islice(view.layers.newest(masks), CONTEXT_HITS))


def _entry_of_fact(hit: FactHit) -> Entry:
    fact = hit.fact
    known = fact.known.start
    time = 0 if known is None else to_microseconds(known)
    return Entry(fact.id, source_of_fact(fact), told_fact(fact), time=time)


def _entries_of(search: Search, telling: Telling, frames: Sequence[Frame]) -> Iterator[Entry]:
    """Yield frames as entries, each told no longer than the policy lets it."""
    view, policy = search.view, telling.policy
    tiers: dict[int, Tier] = {}
    if policy.tier_days is not None:
        exactly = specificity(search.query)
        uses = uses_of(view, frames)
        tiers = {number: policy.tier(one.effective_age, exactly) for number, one in uses.items()}
    for frame in frames:
        document, start = _place_of(frame)
        text = frame.text if frame.text.strip() else frame.search_text or ""
        yield Entry(
            frame.id,
            view.source_of(frame),
            # Everything that was found is shown or omitted, of bytes how many they are.
            text if text.strip() else _size_of(frame),
            document,
            start,
            time=to_microseconds(frame.created),
            tier=tiers.get(frame.id, "full"),
            stands_for=not text.strip(),
        )


def _place_of(frame: Frame) -> tuple[int | None, int]:
    """Return the document that a chunk is of, and where in it its text starts; a turn is whole."""
    match frame.metadata.get(SPAN):
        case [int() as start, int() as end] if end - start == len(frame.text) and not frame.role:
            return frame.parent, start
        case _:
            return None, 0


def _size_of(frame: Frame) -> str:
    return f"({frame.size:,} {'byte' if frame.size == 1 else 'bytes'})"
