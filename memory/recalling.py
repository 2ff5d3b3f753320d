"""Recalling: from what a search found to what a model is told.

Owns what a context chooses from: the facts of whom the question names, the frames that were found,
or the newest where nothing was, each as an entry with its tier. Leaves out what is found (`lanes`),
how a budget is filled (`cerata.retrieval.context`), and the event that says it was shown
(`access`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from cerata.projections.query import Query
from cerata.projections.times import to_microseconds
from cerata.retrieval import framing
from cerata.retrieval.context import Candidate, Filled, Telling, fill
from cerata.retrieval.entries import Entry
from cerata.retrieval.policies import ContextPolicy, Tier, specificity

from .access import use_of
from .drafting import SPAN
from .fact_search import FactHit, source_of_fact, told_fact
from .lanes import Search
from .layers import both
from .values import Context, Frame

if TYPE_CHECKING:
    from .view import View

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
    view, query = search.view, search.query
    most = telling.max_tokens // _TOKENS_A_FACT
    told = search.named[:most] if search.where is None else []
    frames = [hit.id for hit in search.hits]
    is_fallback = not frames and not told
    if is_fallback:
        frames = _newest(search)
    tier_of = _tiers(search, telling.policy)
    candidates: list[Candidate] = [
        *((hit.fact.id, partial(_entry_of_fact, hit)) for hit in told),
        *((frame, partial(_entry_of, view, frame, tier_of)) for frame in frames),
    ]
    lead = ""
    if is_framed:
        lead = framing.FOUND if not is_fallback else framing.FALLBACK if frames else framing.EMPTY
    filled = fill(candidates, telling, lambda text: view.highlights(text, query), lead=lead)
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


def _newest(search: Search) -> list[int]:
    """Return the newest frames that filters, the query's own too, let pass and no NOT excludes."""
    view = search.view
    masks = both(view.layers.admitted(search.where), view.layers.searched)
    if isinstance(search.query, Query):
        masks = both(masks, view.layers.let_in(search.query))
    return list(islice(view.layers.newest(masks), CONTEXT_HITS))


def _tiers(search: Search, policy: ContextPolicy) -> Callable[[int], Tier]:
    """Return what says how long a frame is told, by its age, its uses and the question."""
    if policy.tier_days is None:
        return lambda _: "full"
    view, exactly = search.view, specificity(search.query)
    now = view.head.recorded
    return lambda frame: policy.tier(use_of(view, frame, now).effective_age, exactly)


def _entry_of_fact(hit: FactHit) -> Entry:
    fact = hit.fact
    known = fact.known.start
    time = 0 if known is None else to_microseconds(known)
    return Entry(fact.id, source_of_fact(fact), told_fact(fact), time=time)


def _entry_of(view: "View", number: int, tier_of: Callable[[int], Tier]) -> Entry:
    frame = view.shown(number)
    document, start = _place_of(frame)
    text = frame.text if frame.text.strip() else frame.search_text or ""
    return Entry(
        number,
        view.source_of(frame),
        # Everything that was found is shown or omitted, of bytes how many they are.
        text if text.strip() else _size_of(frame),
        document,
        start,
        time=to_microseconds(frame.created),
        tier=tier_of(number),
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
