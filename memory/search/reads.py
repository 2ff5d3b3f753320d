"""Questions: the best frames for a query, and the context that a model gets for one.

Owns search and recall, for a view and for a store at its newest event. Leaves out reads without a
question (`frames.reads`), and ranking and the filling of a context (`cerata.retrieval`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never, cast

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.json_value import exact
from cerata.engine.late import late

from ..snapshot.reader import Reader
from ..values.frames import CONTEXT_HITS, Context, Frame, FrameId, Hits
from ..values.options import (
    LAYOUT,
    NO_VECTORS,
    PAGE,
    WRITE,
    Layout,
    Page,
    Ranking,
    Vectors,
    WriteOptions,
    check_unused,
    checked,
)
from ..values.renamed import refuse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cerata.engine.events import RecallContext
    from cerata.projections.frames import filters
    from cerata.projections.frames.filters import Filter
    from cerata.projections.fulltext.query import Query
    from cerata.projections.vectors.columns import Matrix
    from cerata.projections.vectors.maxsim import Tokens
    from cerata.retrieval.context import packing, policies
    from cerata.retrieval.context.policies import ContextPolicy
    from cerata.retrieval.ranking import profile as profiles
    from cerata.retrieval.ranking.profile import Profile
    from cerata.retrieval.ranking.relevance import Floor

    from ..values import embedder as embedder_values
    from ..values import source_line as source_lines
    from ..values.embedder import RememberedEmbedder
    from ..values.options import Mode, Rerank
    from ..values.vectors import Vector
    from ..values.vectors import Vectors as VectorRows
    from . import late_lane as late_lanes
    from . import recall as recalls
    from . import request as requests
    from . import search as searches
    from . import vector_lane as vector_lanes
else:
    late_lanes = late("cerata.memory.search.late_lane")
    embedder_values = late("cerata.memory.values.embedder")
    vector_lanes = late("cerata.memory.search.vector_lane")
    source_lines = late("cerata.memory.values.source_line")
    np = late("numpy")
    filters = late("cerata.projections.frames.filters")
    packing = late("cerata.retrieval.context.packing")
    policies = late("cerata.retrieval.context.policies")
    profiles = late("cerata.retrieval.ranking.profile")
    recalls = late("cerata.memory.search.recall")
    requests = late("cerata.memory.search.request")
    searches = late("cerata.memory.search.search")


class SearchReads(Reader):
    """The reads that answer a question."""

    def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        k: int = 10,
        where: Filter | None = None,
        mode: Mode = "hybrid",
        profile: str | Profile | None = None,
        vectors: Vectors = NO_VECTORS,
        page: Page = PAGE,
        rerank: Rerank = None,
        floor: float | None = None,
        **_moved: Never,
    ) -> Hits:
        """Return the best ``k`` frames for a question, best first; ties go to the older frame.

        `Hit.score` is about a half for a frame with each word of the question once, and 1 more for
        an equal vector (`cerata.retrieval.ranking.fusion`). The frames that are current in this
        view count, so the same basis gives the same scores. A question in plain language that names
        an entity with known facts, or shares enough words with facts, adds the lane "facts": the
        frames in which these were read. Filters and NOT in the query hold in every lane.
        `Hit.lanes` names the lanes that found a hit (an approximate lane as "vectors (hnsw)"), and
        `history.explain` shows the share of each in its score.

        Args:
            query: Plain language (any word may match), a query, or a vector.
            k: Most hits to return.
            where: Which frames may be returned; no score changes. Its ``include_superseded`` and
                ``include_deleted`` admit frames that are no longer current.
            mode: "hybrid" for all lanes, "text" for those by words, "vector" for those by vectors.
            profile: Name or `Profile`: the weights of lanes and signals; default "default".
            vectors: The question's vectors, for the lanes "vectors" and "late", and how vectors
                are compared; by default the embedder's.
            page: Which part of the ranking, and which hits share a place.
            rerank: Reorder the best 50 hits, scores unchanged: True by token vectors, or by a
                `Reranker`, or by passed scores of frame ids; default None.
            floor: Least `Hit.score`; None for no bound. `Vectors.min_cosine` bounds cosines: if no
                vectors can be compared, `Hits.notices` has the reason; not with mode "text".

        Raises:
            InvalidInput: query is neither text, a query nor a vector, k is not positive, no such
                profile or mode exists, no vector is available to search or rerank by, or
                `Page.after` is a hit of another question.
            NotFound: no space is named, and there are no vectors.
            EmbedderFailed: the embedder could not embed the question.
            RerankerFailed: the reranker raised, or returned no finite score for each text.
            Unsupported: none of the profile's lanes can run here.
        """
        if _moved:
            refuse("search", _moved)
        if vectors is not NO_VECTORS:
            checked("vectors", vectors, Vectors)
        if page is not PAGE:
            checked("page", page, Page)
        if isinstance(query, np.ndarray):
            _check_alone(cast("Vector | None", vectors.dense), mode)
            vectors = replace(vectors, dense=query)
            query = ""
            mode = "vector" if mode == "hybrid" else mode
        request = requests.SearchRequest(
            query=query,
            k=k,
            mode=mode,
            profile=profiles.profile_of(profile),
            where=None if where is None else requests.in_times_of_question(where, query),
            include_superseded=where is not None and where.include_superseded,
            include_deleted=where is not None and where.include_deleted,
            embedding=cast("Vector | None", vectors.dense),
            space=vectors.space,
            approximate=vectors.approximate,
            token_embedding=cast("VectorRows | None", vectors.tokens),
            tokens_space=vectors.tokens_space,
            token_weights=vectors.token_weights,
            min_cosine=vectors.min_cosine,
            rerank=rerank,
            floor=floor,
            offset=page.offset,
            group_by=page.group_by,
        )
        snapshot = self._snapshot()
        if page.after is not None:
            snapshot, request = searches.continued(snapshot, request, page.after)
        result = searches.run_search(snapshot, request)
        return Hits(result.hits(), result.notices)

    def recall(
        self,
        query: str | Query,
        *,
        max_tokens: int = 1500,
        where: Filter | None = None,
        profile: str | Profile | Ranking | None = None,
        policy: str | ContextPolicy | None = None,
        vectors: Vectors = NO_VECTORS,
        layout: Layout = LAYOUT,
        record: bool | WriteOptions = False,
        floor: Floor | bool = True,
        **_moved: Never,
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
            max_tokens: Budget of the context, in tokens of ``cl100k_base``.
            where: Which frames may be shown, and facts by their evidence (docs/facts.md); its
                ``include_superseded`` also shows replaced frames, marked so.
            profile: Name, `Profile` or `Ranking`: weights, lanes and a second order; as in
                `search`. `Context.lanes` names the lanes that ran.
            policy: Name or `ContextPolicy`: the entries shortened to a gist or a line; duplicates.
            vectors: The question's vectors; as in `search`.
            layout: Form, order and framing of the text, the size of an entry, and neighbours.
            record: Write an event that lists the entries shown, which `access` counts; store only.
                `WriteOptions` name its writer.
            floor: A `Floor`; True for the measured marks of the model; False for none, which shows
                the closest entries to any question.

        Raises:
            InvalidInput: as `search`; or a budget is not positive, ``neighbours`` is negative or
                above 100, no such policy, form or order exists, or ``where`` includes deleted
                frames.
            ReadOnly: ``record`` is set, and this is a view.
            EmbedderFailed: as `search`.
            RerankerFailed: as `search`; nothing is recorded.
        """
        if _moved:
            refuse("recall", _moved)
        if vectors is not NO_VECTORS:
            checked("vectors", vectors, Vectors)
            check_unused("recall", vectors, ("min_cosine",))
        if layout is not LAYOUT:
            checked("layout", layout, Layout)
        if where is not None:
            _check_shown(where)
        options = packing.ContextOptions(
            max_tokens, layout.entry_tokens, layout.form, layout.order, policies.policy_of(policy)
        )
        recall = recalls.RecallOptions(
            options, floor=floor, is_framed=layout.framing, neighbours=layout.neighbours
        )
        ranking = profile if isinstance(profile, Ranking) else Ranking(profile=profile)
        request = requests.SearchRequest(
            query=query,
            k=CONTEXT_HITS,
            mode=ranking.mode,
            profile=profiles.profile_of(ranking.profile),
            where=requests.in_times_of_question(where, query),
            include_superseded=where is not None and where.include_superseded,
            embedding=cast("Vector | None", vectors.dense),
            space=vectors.space,
            approximate=vectors.approximate,
            token_embedding=cast("VectorRows | None", vectors.tokens),
            tokens_space=vectors.tokens_space,
            token_weights=vectors.token_weights,
            rerank=ranking.rerank,
        )
        result = searches.run_search(self._snapshot(), request)
        context = recalls.context_of(result, recall)
        if record is False:
            return context
        writer = record
        if not isinstance(writer, WriteOptions):
            is_recorded = exact(writer)
            if is_recorded is False:
                return context
            if is_recorded is not True:
                checked("record", record, WriteOptions)
            writer = WRITE
        check_unused("record", writer, ("key", "scope"))
        event = recalls.recall_of(result, recall, context)
        return self._recorded(context, event, recalls.call_of(request, recall), writer.actor)

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


class SourceReads(Reader):
    """The reads that cite a frame and mark its words."""

    def source(self, frame: Frame) -> str:
        """Return a short line that names a frame's source: id, title, place and day.

        Line breaks in a title or place become blanks, so that no title passes for another source.
        Long names are cut: a place keeps its end, and a file's path the names of the file and its
        folder; ``frame.uri`` has the whole place.

        Args:
            frame: The frame to cite.
        """
        return source_lines.source_line(frame)

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


class VectorReads(Reader):
    """The reads of stored vectors, and of the embedder that made them."""

    def used(self) -> RememberedEmbedder | None:
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

    def of(self, frame: FrameId, space: str | None = None) -> Matrix | None:
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

    def tokens_of(self, frame: FrameId, space: str | None = None) -> Tokens | None:
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


def _check_shown(where: object) -> None:
    """Refuse the deleted frames in a context."""
    filters.check_filter(where)
    if cast("Filter", where).include_deleted:
        raise InvalidInput(
            "A context shows no deleted frames",
            remedy="Leave include_deleted out of the filter, or call search().",
        )


def _check_alone(embedding: Vector | None, mode: Mode) -> None:
    """Refuse a vector as the query together with another, or in a search by words."""
    if embedding is not None or mode == "text":
        raise InvalidInput(
            "query must be text, not a vector, with Vectors.dense or mode='text'",
            remedy="Pass the question as the query, and its vector as "
            "vectors=cerata.Vectors(dense=…).",
        )
