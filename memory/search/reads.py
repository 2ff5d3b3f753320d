"""Questions: the best frames for a query, and the context that a model gets for one.

Owns search and recall, for a view and for a store at its newest event. Leaves out reads without a
question (`frames.reads`), and ranking and the filling of a context (`cerata.retrieval`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.late import late
from cerata.retrieval.context.budget import ENTRY_TOKENS_MAX

from ..snapshot.reader import Reader
from ..values.frames import CONTEXT_HITS, Context, Frame, FrameId, Hit, Hits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cerata.engine.events import RecallContext
    from cerata.projections.columnar import scopes
    from cerata.projections.frames.filter_tests import TimeRange
    from cerata.projections.frames.filters import Filter
    from cerata.projections.fulltext.query import Query
    from cerata.projections.vectors.columns import Matrix
    from cerata.projections.vectors.maxsim import Tokens
    from cerata.retrieval.context import packing, policies
    from cerata.retrieval.context.entries import Form
    from cerata.retrieval.context.packing import Order
    from cerata.retrieval.context.policies import ContextPolicy
    from cerata.retrieval.ranking import profiles
    from cerata.retrieval.ranking.profile import Profile
    from cerata.retrieval.ranking.relevance import Floor

    from ..values import embedder as embedder_values
    from ..values import source_line as source_lines
    from ..values.embedder import RememberedEmbedder
    from ..values.explanation import Explanation
    from ..values.vectors import Vector, Vectors
    from . import late_lane as late_lanes
    from . import recall as recalls
    from . import request as requests
    from . import search as searches
    from . import vector_lane as vector_lanes
    from .request import Grouping, Mode, Rerank
else:
    late_lanes = late("cerata.memory.search.late_lane")
    embedder_values = late("cerata.memory.values.embedder")
    vector_lanes = late("cerata.memory.search.vector_lane")
    source_lines = late("cerata.memory.values.source_line")
    np = late("numpy")
    scopes = late("cerata.projections.columnar.scopes")
    packing = late("cerata.retrieval.context.packing")
    policies = late("cerata.retrieval.context.policies")
    profiles = late("cerata.retrieval.ranking.profiles")
    recalls = late("cerata.memory.search.recall")
    requests = late("cerata.memory.search.request")
    searches = late("cerata.memory.search.search")


class SearchReads(Reader):
    """The reads that answer a question."""

    def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        k: int = 10,
        mode: Mode = "hybrid",
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        offset: int = 0,
        after: Hit | None = None,
        group_by: Grouping = "content",
        min_cosine: float | None = None,
        min_score: float | None = None,
    ) -> Hits:
        """Return the best ``k`` frames for a question, best first; ties go to the older frame.

        `Hit.score` is about a half for a frame with each word of the question once, and 1 more for
        an equal vector (`cerata.retrieval.ranking.fusion`). The frames that are current in this
        view count, so the same basis gives the same scores. A question in plain language that names
        an entity with known facts, or shares enough words with facts, adds the lane "facts": the
        frames in which these were read.
        Filters and NOT in the query hold in every lane. `Hit.lanes` names the lanes
        that found a hit (an approximate lane as "vectors (hnsw)"), and `explain` shows the share of
        each in its score.

        Args:
            query: Plain language (any word may match), a query, or a vector.
            embedding: The question's vector, for the lane "vectors"; by default the embedder's.
            space: The vector space to search; needed if several spaces have the same dimension.
            k: Most hits to return.
            mode: "hybrid" for all lanes, "text" for those by words, "vector" for those by vectors.
            where: Which frames may be returned; no score changes.
            when: Return only frames with a content time in a time, such as "last week", or in a
                range; "question": in the times that a plain question names, if it names any.
            profile: Name or `Profile`: the weights of lanes and signals; default "default".
            include_superseded: Also return frames that a newer version replaced.
            include_deleted: Also return deleted frames.
            approximate: Compare only vectors that a graph (extra hnsw) chooses; may miss frames.
            token_embedding: The question's token vectors, (tokens, dimension), for the lane "late".
            tokens_space: The space of the token vectors; as ``space``.
            token_weights: A weight from 0 for each token vector of the question; default 1.
            rerank: Reorder the best 50 hits, scores unchanged: True by token vectors, or by a
                `Reranker`, or by passed scores of frame ids; default None.
            offset: Hits to skip, of the best; the pages of a view neither repeat nor skip a hit.
            after: The last hit of the page before, of the same question; the page has the state
                that this hit was found in, also if frames were written since.
            group_by: "content", the default: current frames of equal text take one place;
                "document": the hits of a document do; "frame": each frame is a hit. `Hit.grouped`
                has the further hits of a place, of the first 128 or more of the search.
            min_cosine: Least `Hit.cosine`; leaves out hits without a vector. None for no bound. If
                no vectors can be compared, `Hits.notices` has the reason; not with mode "text".
            min_score: Least `Hit.score`; None for no bound.

        Raises:
            InvalidInput: query is neither text, a query nor a vector, k is not positive, no such
                profile or mode exists, no vector is available to search or rerank by, or ``after``
                is a hit of another question.
            NotFound: no space is named, and there are no vectors.
            EmbedderFailed: the embedder could not embed the question.
            RerankerFailed: the reranker raised, or returned no finite score for each text.
            Unsupported: none of the profile's lanes can run here.
        """
        if isinstance(query, np.ndarray):
            _check_alone(embedding, mode)
            embedding = query
            query = ""
            mode = "vector" if mode == "hybrid" else mode
        request = requests.SearchRequest(
            query=query,
            k=k,
            mode=mode,
            profile=profiles.profile_of(profile),
            where=requests.narrowed_in_time(where, when, query),
            include_superseded=include_superseded,
            include_deleted=include_deleted,
            embedding=embedding,
            space=space,
            approximate=approximate,
            token_embedding=token_embedding,
            tokens_space=tokens_space,
            token_weights=token_weights,
            rerank=rerank,
            min_cosine=min_cosine,
            min_score=min_score,
            offset=offset,
            group_by=group_by,
        )
        snapshot = self._snapshot()
        if after is not None:
            snapshot, request = searches.continued(snapshot, request, after)
        result = searches.run_search(snapshot, request)
        return Hits(result.hits(), result.notices)

    def embedding(self, frame: FrameId, space: str | None = None) -> Matrix | None:
        """Return a frame's vector, (dimension,), as stored: float32 or int8; None without one.

        Args:
            frame: The frame's id, or the receipt of its write.
            space: Name of the vector space; may be left out if the frame has vectors in only one.

        Raises:
            NotFound: no frame with this id exists at this basis, or the frame is out of scope.
            InvalidInput: the frame has vectors in several spaces, and none was named.
            Corrupt: the vector is damaged.
        """
        snapshot = self._snapshot()
        return vector_lanes.vector_of(snapshot, snapshot.id_of(frame), space)

    def token_embedding(self, frame: FrameId, space: str | None = None) -> Tokens | None:
        """Return a frame's token vectors, (tokens, dimension) int8; None without any.

        Args:
            frame: The frame's id, or the receipt of its write.
            space: Name of the space; may be left out if the frame has token vectors in only one.

        Raises:
            NotFound: no frame with this id exists at this basis, or the frame is out of scope.
            InvalidInput: the frame has token vectors in several spaces, and none was named.
            Corrupt: the token vectors are damaged.
        """
        snapshot = self._snapshot()
        return late_lanes.tokens_of(snapshot, snapshot.id_of(frame), space)

    def _explain_hit(self, hit: Hit) -> Explanation:
        """Return how a hit's score came about, as of the view that found it.

        Raises:
            InvalidInput: hit is no `Hit`, comes from another log or scope, or is a copy without its
                search.
        """
        expect_type("hit", hit, Hit, "a Hit", "Pass a hit of search().")
        snapshot = self._snapshot()
        if hit.made_by.identity != snapshot.identity:
            raise InvalidInput(
                "hit comes from another log", remedy="Call explain() of the store that found it."
            )
        if not scopes.sees_same(hit.made_by.reach, snapshot.reach):
            raise InvalidInput(
                "hit comes from another scope",
                remedy="Call explain() of the store or view that found it.",
            )
        return hit.made_by.explain(hit)

    def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]:
        """Return the characters [start, end) of a text that match a query, ascending.

        Args:
            text: The text to search.
            query: Plain language, or a `cerata.query`.

        Raises:
            InvalidInput: text is no string, or query is neither a string nor a query.
        """
        requests.check_query(query)
        expect_type("text", text, str, "a string", "Pass a str, such as frame.text.")
        return self._snapshot().layers.highlights(text, query)

    def recall(
        self,
        query: str | Query,
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        mode: Mode = "hybrid",
        max_tokens: int = 1500,
        entry_tokens: int = ENTRY_TOKENS_MAX,
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        form: Form = "text",
        policy: str | ContextPolicy | None = None,
        order: Order = "score",
        framing: bool = False,
        record: bool = False,
        include_superseded: bool = False,
        neighbours: int = 0,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        actor: str | None = None,
        floor: Floor | bool = True,
    ) -> Context:
        """Return the best entries for a question that fit ``max_tokens``, with their sources.

        Facts about the entities that the question names, or with enough of its words, come first,
        at most one for each 150 tokens of the budget, with the frames in which they were read.
        Entries that fit whole are written before any entry is cut, and none twice; neighbouring
        chunks of a document join.
        Bytes are shown as their ``search_text``, or as their size. `Context.confidence` is "clear";
        or "unclear", and the closest entries take half of the budget, under a line that no entry
        clearly answers; or "none", and the context is empty. A question without any word shows the
        newest frames instead, which pass ``where``, and `Context.fallback` is true.
        `Context.omissions` lists the entries left out, and why. The budget covers the whole text,
        sources and framing included (see `cerata.retrieval.tokenizer`); one without room for the id
        of an entry gives an empty context and a line in `Context.notices`.

        Args:
            query: Plain language (any word may match), or a `cerata.query`.
            embedding: The question's vector; as in `search`.
            space: The vector space to search; as in `search`.
            mode: "hybrid", "text" or "vector"; as in `search`.
            max_tokens: Budget of the context, in tokens of ``cl100k_base``.
            entry_tokens: Most tokens of an entry.
            where: Which frames may be shown, and facts by their evidence (docs/facts.md).
            when: As in `search`.
            profile: Name or `Profile`; as in `search`. `Context.lanes` names the lanes that ran.
            form: "text", or "markdown" with headings and quotes.
            policy: Name or `ContextPolicy`: the entries shortened to a gist or a line; duplicates.
            order: "score" for the best entry first, or "time" for the earliest.
            framing: Begin with instructions to the model: use only this text, name the sources.
            record: Write an event that lists the entries shown, which `access` counts; store only.
            include_superseded: Also show frames that a newer version replaced, marked so.
            neighbours: Chunks or turns on each side of a hit (see `around`) that are shown after
                the hit if they pass ``where`` and the budget allows; default 0.
            approximate: Let a graph choose the vectors to compare; as in `search`.
            token_embedding: The question's token vectors; as in `search`.
            tokens_space: The space of the token vectors; as in `search`.
            token_weights: The weights of the token vectors; as in `search`.
            rerank: Reorder the best hits; as in `search`. A recorded recall has the scores.
            floor: A `Floor`; True for the measured marks of the model; False for none, which shows
                the closest entries to any question.
            actor: Name of the writer, for ``record``; default as for other calls.

        Raises:
            InvalidInput: as `search`; or a budget is not positive, ``neighbours`` is negative or
                above 100, or no such policy, form or order exists.
            ReadOnly: ``record`` is set, and this is a view.
            EmbedderFailed: as `search`.
            RerankerFailed: as `search`; nothing is recorded.
        """
        options = packing.ContextOptions(
            max_tokens, entry_tokens, form, order, policies.policy_of(policy)
        )
        recall = recalls.RecallOptions(
            options, floor=floor, is_framed=framing, neighbours=neighbours
        )
        request = requests.SearchRequest(
            query=query,
            k=CONTEXT_HITS,
            mode=mode,
            profile=profiles.profile_of(profile),
            where=requests.narrowed_in_time(where, when, query),
            include_superseded=include_superseded,
            embedding=embedding,
            space=space,
            approximate=approximate,
            token_embedding=token_embedding,
            tokens_space=tokens_space,
            token_weights=token_weights,
            rerank=rerank,
        )
        result = searches.run_search(self._snapshot(), request)
        context = recalls.context_of(result, recall)
        if not record:
            return context
        event = recalls.recall_of(result, recall, context)
        return self._recorded(context, event, recalls.call_of(request, recall), actor)

    def _recorded(
        self,
        context: Context,
        event: RecallContext,
        call: tuple[object, ...],
        actor: str | None,
    ) -> Context:
        """Write the event that lists the entries shown, and return the context.

        ``call`` has the caller's arguments, as `call_of` returns them.
        """
        raise ReadOnly(
            "A view does not write",
            remedy="Call recall() of the store, or leave out record=True.",
        )

    def remembered_embedder(self) -> RememberedEmbedder | None:
        """Return the embedder of the memory's vectors at this basis; None before the first.

        Each tenant has its embedder; without a scope, the result is that of the tenant "default",
        else the newest of any.
        """
        used = self._snapshot().used_embedder
        if used is None:
            return None
        return embedder_values.RememberedEmbedder(
            used.name, used.identity, used.space, used.tokens_space, used.seq
        )

    def source_of(self, frame: Frame) -> str:
        """Return a short line that names a frame's source: id, title, place and day.

        Line breaks in a title or place become blanks, so that no title passes for another source.
        Long names are cut: a place keeps its end, and a file's path the names of the file and its
        folder; ``frame.uri`` has the whole place.

        Args:
            frame: The frame to cite.
        """
        return source_lines.source_line(frame)


def _check_alone(embedding: Vector | None, mode: Mode) -> None:
    """Refuse a vector as the query together with another, or in a search by words."""
    if embedding is not None or mode == "text":
        raise InvalidInput(
            "query must be text, not a vector, with embedding= or mode='text'",
            remedy="Pass the question as the query and its vector as embedding=.",
        )
