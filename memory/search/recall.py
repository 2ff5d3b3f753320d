"""Recalling: from the result of a search to a context for a model.

Owns the candidates of a context: the facts that the question names or shares words with, and the
frames of the search, or the newest frames without a result. Owns the event that records a context,
too. Leaves out the search (`search`), the entries (`entries`) and filling the budget
(`cerata.retrieval.context.packing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import RecallContext, TimeInterval
from cerata.engine.json_value import exact_fields
from cerata.engine.late import late
from cerata.engine.salted_hashes import context_hash
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.filters import times_of
from cerata.projections.fulltext.query import filters_of, resolved
from cerata.retrieval.context import framing
from cerata.retrieval.context.packing import Candidate, ContextOptions, pack

from ..snapshot.layers import both, end_to_end
from ..values.frames import CONTEXT_HITS, Context
from .entries import FrameEntries, entry_of_fact
from .question_vectors import stored_vectors
from .relevance import relevant_hits
from .reranking import ByModel, ByTokens

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask
    from cerata.retrieval.ranking.relevance import Floor

    from ..facts import corrections
    from ..frames import timeline
    from ..values import vectors as vector_values
    from ..values.vectors import Vector, Vectors
    from .request import SearchRequest
    from .result import SearchResult
else:
    timeline = late("cerata.memory.frames.timeline")
    vector_values = late("cerata.memory.values.vectors")
    corrections = late("cerata.memory.facts.corrections")


_TOKENS_A_FACT: Final = 150
"""Tokens of the budget for each fact that a context may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """The arguments of `SearchReads.recall` about the context, besides the question.

    Raises:
        InvalidInput: ``neighbours`` is no whole number from 0 to 100.
    """

    options: ContextOptions = field(kw_only=False)
    floor: Floor | bool
    is_framed: bool
    neighbours: int

    def __post_init__(self) -> None:
        exact_fields(self, "neighbours", "floor", "is_framed")
        if not is_integer(self.neighbours) or not 0 <= self.neighbours <= CONTEXT_HITS:
            raise InvalidInput(
                f"neighbours must be 0 to {CONTEXT_HITS}, not {value_text(self.neighbours):.60}",
                remedy="Pass cerata.Layout(neighbours=1) for a chunk or turn on each side.",
            )


def context_of(result: SearchResult, recall: RecallOptions) -> Context:
    """Return the context of a result: a pure function of its snapshot, question and policy."""
    snapshot = result.snapshot
    options = recall.options
    fact_hits = result.facts[: options.max_tokens // _TOKENS_A_FACT]
    relevant = relevant_hits(result, floor=recall.floor)
    frames = [hit.id for hit in relevant.hits]
    is_fallback = relevant.confidence == "clear" and not frames and not fact_hits
    if is_fallback:
        frames = _newest(result)
    close = relevant.close
    if recall.neighbours:
        first_far = frames[close] if close is not None and close < len(frames) else None
        frames = _with_neighbours(result, frames, recall.neighbours)
        close = None if first_far is None else frames.index(first_far)
    if close is not None:
        close += len(fact_hits)
    against: Mapping[int, Sequence[int]] = {}
    if fact_hits:
        against = corrections.contradicted(snapshot, [hit.fact for hit in fact_hits])
    read = FrameEntries(result, frames, options.policy).entry
    candidates: list[Candidate] = [
        *(
            (hit.fact.id, partial(entry_of_fact, hit, against.get(hit.fact.id, ())))
            for hit in fact_hits
        ),
        *[(frame, partial(read, place)) for place, frame in enumerate(frames)],
    ]
    is_unclear = relevant.confidence == "unclear"
    lead = framing.UNCLEAR if is_unclear else ""
    if recall.is_framed:
        lead = framing.FOUND if frames or fact_hits else framing.EMPTY
        lead = framing.FALLBACK if is_fallback and frames else lead
        lead = f"{framing.UNCLEAR} {framing.FOUND}" if is_unclear else lead
    budget = options.max_tokens // 2 or 1 if is_unclear else options.max_tokens
    packed = pack(
        candidates,
        msgspec.structs.replace(options, max_tokens=budget),
        result.highlights,
        close=close,
        lead=lead,
    )
    notices = result.notices
    notices += tuple(
        f"entry {omission.id:,} cannot be read and was left out: {omission.error}"
        for omission in packed.omissions
        if omission.error is not None
    )
    if candidates and not packed.items and len(notices) == len(result.notices):
        notices += (f"no entry fits max_tokens={options.max_tokens}: pass a larger budget",)
    return Context(
        text=packed.text,
        tokens=packed.tokens,
        max_tokens=options.max_tokens,
        tokenizer=packed.tokenizer,
        items=packed.items,
        omissions=packed.omissions,
        basis=snapshot.basis,
        now=snapshot.now,
        log_id=snapshot.log_id,
        branch_id=snapshot.identity.branch_id,
        fallback=is_fallback,
        lanes=result.ran(),
        profile=result.request.profile.label,
        policy=options.policy.label,
        framed=recall.is_framed and packed.has_lead,
        confidence=relevant.confidence,
        score=relevant.score,
        floor=relevant.floor,
        notices=notices,
    )


def _with_neighbours(result: SearchResult, frames: list[int], count: int) -> list[int]:
    """Return the frames, each followed by its neighbours that may be shown and are not results."""
    snapshot = result.snapshot
    memories = result.request.searched_in(snapshot.layers)
    may_show = end_to_end(both(_admitted(result), memories))
    chunks_of = timeline.chunks_once(snapshot)
    order: dict[int, None] = {}
    results = set(frames)
    for frame in frames:
        order[frame] = None
        around = timeline.neighbours_of(snapshot, frame, count, count, chunks_of)
        beside = snapshot.layers.among(around, may_show)
        order.update((number, None) for number in beside if number not in results)
    return [*order]


def _admitted(result: SearchResult) -> tuple[Mask, ...]:
    """Return the rows that the filter admits, by layer."""
    request = result.request
    return result.snapshot.layers.admitted(
        request.where, include_superseded=request.include_superseded
    )


def _newest(result: SearchResult) -> list[int]:
    """Return the newest frames that the filter admits."""
    layers = result.snapshot.layers
    masks = both(_admitted(result), result.request.searched_in(layers))
    return list(islice(layers.newest(masks), CONTEXT_HITS))


def recall_of(result: SearchResult, recall: RecallOptions, context: Context) -> RecallContext:
    """Return the event that records a shown context.

    The event has the ids of the context's frames and facts, joined chunks included.
    """
    request = result.request
    options = recall.options
    is_fact = {hit.fact.id for hit in result.facts}
    numbers = [number for item in context.items for number in (item.id, *item.joined)]
    frames = tuple(number for number in numbers if number not in is_fact)
    facts = tuple(number for number in numbers if number in is_fact)
    salts = result.snapshot.layers.salts((*frames, *facts))
    query, where = _stated(request, snapshot_now=result.snapshot.now)
    vectors = result.vectors
    stored = stored_vectors(vectors, result.late, result.trust)
    reranking = result.reranking
    # Scores by token vectors follow from the tokens; those of a model are an input.
    scores: Mapping[int, float] = result.rerank_scores
    if isinstance(reranking, ByTokens):
        scores = {}
    reach = result.snapshot.reach
    floor = None if isinstance(recall.floor, bool) else recall.floor
    return RecallContext(
        query=query,
        basis=context.basis,
        tokenizer=context.tokenizer,
        profile=request.profile.name,
        profile_version=request.profile.version,
        max_tokens=context.max_tokens,
        entry_tokens=options.entry_tokens,
        form=options.form,
        context=context_hash(salts, context.text),
        policy=options.policy.name,
        policy_version=options.policy.version,
        order=options.order,
        framing=recall.is_framed,
        where=where,
        mode=request.mode,
        space=stored.space,
        vector=stored.vector,
        tokens_space=stored.tokens_space,
        tokens=stored.tokens,
        token_weights=stored.token_weights,
        trust=stored.trust,
        vector_weight=stored.vector_weight,
        rerank=isinstance(reranking, ByTokens),
        approximate=vectors is not None and vectors.approximate,
        include_superseded=request.include_superseded,
        neighbours=recall.neighbours,
        floor=recall.floor is not False,
        floor_clear=None if floor is None else float(floor.clear),
        floor_least=None if floor is None else float(floor.least),
        frames=frames,
        facts=facts,
        omitted=tuple(number for number in context.omitted if number not in is_fact),
        omitted_facts=tuple(number for number in context.omitted if number in is_fact),
        now=to_microseconds(context.now),
        times=_times_of(request, result.snapshot.now),
        shared=reach is not None and reach.has_shared,
        reranker=reranking.name if isinstance(reranking, ByModel) else None,
        reranked=tuple(scores),
        reranked_scores=np.array([*scores.values()], "<f8").tobytes() if scores else None,
    )


def _times_of(request: SearchRequest, now: datetime) -> tuple[TimeInterval, ...]:
    """Return the intervals of times that a question's filters name, each once, in order."""
    filters = [*filters_of(request.tree)]
    if request.where is not None:
        filters.append(request.where)
    times = (time for where in filters for time in times_of(where.resolved(now)))
    return tuple(dict.fromkeys(TimeInterval(*time) for time in times))


def call_of(request: SearchRequest, recall: RecallOptions) -> tuple[object, ...]:
    """Return the caller's arguments, by which a keyed transaction recognises the same recall.

    Nothing in them depends on the memory or its embedder: a repeated block may have another model,
    and resolves "yesterday" to another day.
    """
    options = recall.options
    floor = recall.floor
    return (
        *_stated(request),
        *(_numbers(vectors) for vectors in (request.embedding, request.token_embedding)),
        *(request.space, request.tokens_space, request.mode, request.profile.label),
        *(request.rerank_key, request.approximate, request.include_superseded),
        *(options.max_tokens, options.entry_tokens, options.form, options.order),
        *(options.policy.label, recall.is_framed, recall.neighbours),
        floor if isinstance(floor, bool) else (float(floor.clear), float(floor.least)),
    )


def _numbers(vectors: Vector | Vectors | None) -> tuple[object, ...]:
    matrix = None if vectors is None else vector_values.numbers_of(vectors)
    return () if matrix is None else (matrix.dtype.str, matrix.shape, matrix.tobytes())


def _stated(
    request: SearchRequest, *, snapshot_now: datetime | None = None
) -> tuple[str, str | None]:
    """Return the query and the filter of a request as an event stores them.

    With ``snapshot_now`` times in words are resolved, so that the recall can be repeated later.
    """
    query = request.query
    where = request.where
    if snapshot_now is not None:
        query = query if isinstance(query, str) else resolved(query, snapshot_now)
        where = None if where is None else where.resolved(snapshot_now)
    return (
        query if isinstance(query, str) else repr(query),
        None if where is None else msgspec.json.encode(where.to_dict()).decode(),
    )
