"""Questions: what is found for a query, and what of it a model is told.

Owns search and recall, for a view and for a store at its newest event. Leaves out reading what is
there without a question (`reading`), ranking, and how a context is filled (`cerata.retrieval`).
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.events import RecallContext
from cerata.projections.filters import Filter
from cerata.projections.maxsim import Tokens
from cerata.projections.query import Query, check_size
from cerata.projections.vector_columns import Matrix
from cerata.retrieval.context import ENTRY_TOKENS_MAX, Order, Telling
from cerata.retrieval.entries import Form
from cerata.retrieval.imitation import on_one_line
from cerata.retrieval.policies import ContextPolicy, policy_of
from cerata.retrieval.profiles import Profile, profile_of

from .access import recall_of
from .drafting import is_unicode
from .explanation import Explanation
from .lanes import Search
from .recalling import CONTEXT_HITS, recalled
from .space_search import Mode
from .spaces import Vector, Vectors
from .token_search import token_query, tokens_of
from .values import Context, Frame, FrameId, Hit
from .vector_search import vector_of, vector_query

if TYPE_CHECKING:
    from .view import View

_NAME_SIZE = 120
"""Most characters of a title or a place in a source."""

_PARTS_SHOWN = 2
"""How many parts of a file's path a source shows: its folder's name and its own."""


class Questions(ABC):
    """The reads that answer a question; ``view`` says of which state."""

    @abstractmethod
    def view(self) -> "View":
        """Return the memory that is asked."""

    def search(
        self,
        query: "str | Query | npt.NDArray[Any]",
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        k: int = 10,
        mode: Mode = "hybrid",
        where: Filter | None = None,
        profile: str | Profile | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        rerank: bool | None = None,
    ) -> list[Hit]:
        """Return the best ``k`` frames for a question, best first.

        Of plain language any word may match, and what stands in double quotes must; `cerata.query`
        makes a query of the full language. Ties go to the older frame. Scores are BM25 over the
        frames that are current in this view, so they are what they were then; ``where`` says
        which of them may be returned, and changes no score.

        Where a question in plain language names an entity of which facts are known, the frames
        that these were read in are a second lane, "facts", and the score is that of both.
        ``profile``, a name or a `Profile`, says which lanes run, what each weighs for which kind of
        question, and how they are fused; ``lanes`` of a hit says which found it, and `explain`
        what each added.

        ``embedding`` is the question's vector, by which the nearest frames are a lane, "vectors",
        too; ``space`` names whose vectors, where several have its dimension. A store with an
        embedder makes it itself. A query that is an array is a vector alone. ``mode`` is "hybrid"
        for all lanes, or leaves only those that go by words ("text") or by vectors ("vector").
        What stands in double quotes, a filter or a NOT in the query holds for frames that are
        found by their vectors, too. ``approximate`` lets a graph choose what is compared (extra
        hnsw), which is quicker among very many and may miss some: the lane then says so.

        ``token_embedding``, (tokens, dimension), has a vector for each token of the question, and
        ``tokens_space`` names whose: the frames in which each finds its like are a lane, "late".
        With ``rerank`` the best 50 of all lanes are put in order by them, where they have token
        vectors; the scores stay, and `explain` says what moved. None leaves it to the profile.

        Raises:
            InvalidInput: the query is neither text, a query nor a vector, k is not positive, there
                is no such profile or mode, or no vector to search or rerank by.
            NotFound: there is no such space. EmbedderFailed: it could not embed the question.
            Unsupported: none of the profile's lanes can run here.
        """
        if isinstance(query, np.ndarray):
            query, embedding, mode = _vector_alone(query, embedding, mode)
        _check_query(query)
        if isinstance(k, bool) or not isinstance(k, int) or k <= 0:
            raise InvalidInput(f"k is {k!r}", remedy="Ask for 1 or more.")
        view, wanted = self.view(), profile_of(profile)
        has_tokens = token_embedding is not None
        vector = vector_query(
            *(view, query, embedding, space, mode), approximate=approximate, has_tokens=has_tokens
        )
        tokens = token_query(
            *(view, query, token_embedding, tokens_space, mode, wanted), rerank=rerank
        )
        return Search(
            view,
            query,
            k,
            wanted,
            where,
            include_superseded,
            include_deleted,
            mode=mode,
            vector=vector,
            tokens=tokens,
            rerank=rerank,
        ).hits

    def embedding(self, frame: FrameId, space: str | None = None) -> Matrix | None:
        """Return a frame's vector, (dimension,), in a space; None where it has none there.

        The space may be left out where the frame has vectors in one alone. It is as it was stored:
        float32, or int8.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
            InvalidInput: it has vectors in several spaces. Corrupt: the vector is damaged.
        """
        view = self.view()
        return vector_of(view, view.existing(frame), space)

    def token_embedding(self, frame: FrameId, space: str | None = None) -> Tokens | None:
        """Return a frame's token vectors, (tokens, dimension) int8, in a space; None without any.

        The space may be left out where the frame has token vectors in one alone.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
            InvalidInput: it has some in several spaces. Corrupt: they are damaged.
        """
        view = self.view()
        return tokens_of(view, view.existing(frame), space)

    def explain(self, hit: Hit) -> Explanation:
        """Return why a hit has its score, as of the view that found it; printing it reads well.

        Raises:
            InvalidInput: it is no hit, one of another log, or a copy without its search.
        """
        if not isinstance(hit, Hit):
            raise InvalidInput(
                f"A {type(hit).__name__} has no score to explain", remedy="Give a hit of a search."
            )
        if hit.made_by.view.log_id != self.view().log_id:
            raise InvalidInput("The hit is of another log", remedy="Ask the store that found it.")
        return hit.made_by.explain(hit)

    def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]:
        """Return where a text says what a query asks: characters [start, end), ascending."""
        _check_query(query)
        if not isinstance(text, str):
            raise InvalidInput(
                f"The text must be a string, not {type(text).__name__}",
                remedy="Pass a str, such as frame.text.",
            )
        found = self.view().layers.ranking.highlights(text, query)
        return [(mark.start, mark.end) for mark in found]

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
        profile: str | Profile | None = None,
        form: Form = "text",
        policy: str | ContextPolicy | None = None,
        order: Order = "score",
        framing: bool = False,
        record: bool = False,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        rerank: bool | None = None,
    ) -> Context:
        """Return the best entries for a question that fit ``max_tokens``, with their sources.

        What is known of the entities that the question names comes first, a fact for each 150
        tokens of the budget at most, with the frames that say so. What fits whole is told before
        anything is cut, and nothing twice; an entry takes at most ``entry_tokens``; neighbouring
        chunks of a document join. ``policy``, a name or a `ContextPolicy`, says which entries are
        told by their gist or in one line, ``omissions`` of the context what is left out and why.
        ``order`` is "score", or "time" for the earliest first. ``framing`` begins with words to the
        model: to state only what stands there, and to name the source. ``form`` is "text" or
        "markdown". All of it is counted, in tokens of ``cl100k_base``; see
        `cerata.retrieval.tokens`. Where nothing matches, the newest frames stand in, and the
        context says so: those that ``where`` and the query's own filters let pass and no NOT
        excludes. Bytes are shown as their ``search_text``, or as how many there are. ``profile``
        is as for `search`, and ``lanes`` of the context says which ran; so are ``embedding``,
        ``space``, ``mode``, ``token_embedding``, ``tokens_space`` and ``rerank``. With ``record``,
        of a store, an event says what was shown, by which `access` counts.

        Raises:
            InvalidInput: as `search`; or a budget is not positive, or there is no such policy, form
            or order. ReadOnly: ``record``, and what is asked does not write.
        """
        telling = Telling(max_tokens, entry_tokens, form, order, policy_of(policy))
        view = self.view()
        _check_query(query)
        wanted = profile_of(profile)
        has_tokens = token_embedding is not None
        vector = vector_query(
            *(view, query, embedding, space, mode), approximate=approximate, has_tokens=has_tokens
        )
        tokens = token_query(
            *(view, query, token_embedding, tokens_space, mode, wanted), rerank=rerank
        )
        search = Search(
            view,
            query,
            CONTEXT_HITS,
            wanted,
            where,
            mode=mode,
            vector=vector,
            tokens=tokens,
            rerank=rerank,
        )
        found = recalled(search, telling, is_framed=framing)
        return self._recorded(found.context, recall_of(found)) if record else found.context

    def _recorded(self, context: Context, said: RecallContext) -> Context:
        """Return a context once the event is written that says that it was shown."""
        raise ReadOnly(
            "A view does not write", remedy="Recall from the store, or without record=True."
        )

    def source_of(self, frame: Frame) -> str:
        """Return the line that names where a frame comes from: id, title, place and day.

        It is one line, and short, whatever they are: no title passes for a source of its own, or
        takes the room of what it names. Of a place the end is kept, of a file's path its name and
        its folder's: the whole one is in ``frame.uri``.
        """
        parts = [f"#{frame.id}"]
        title, place = (on_one_line(name or "") for name in (frame.title, frame.uri))
        if place.startswith("/") and place.count("/") > _PARTS_SHOWN:
            place = "…/" + "/".join(place.split("/")[-_PARTS_SHOWN:])
        if title:
            parts.append(_clipped(title, title[: _NAME_SIZE - 1].rstrip() + "…"))
        if place and place != title:
            parts.append(_clipped(place, "…" + place[1 - _NAME_SIZE :].lstrip()))
        parts.append(frame.created.date().isoformat())
        return " · ".join(parts)


def _vector_alone(
    query: "npt.NDArray[Any]", embedding: Vector | None, mode: Mode
) -> tuple[str, Vector, Mode]:
    """Return the query, embedding and mode of a query that is a vector."""
    if embedding is not None or mode == "text":
        raise InvalidInput(
            "The query is a vector, and words are asked for",
            remedy="Pass the question as the query and its vector as embedding=.",
        )
    return "", query, "vector" if mode == "hybrid" else mode


def _clipped(name: str, short: str) -> str:
    return name if len(name) <= _NAME_SIZE else short


def _check_query(query: object) -> None:
    if isinstance(query, Query):
        check_size(query)
        return
    if not isinstance(query, str):
        raise InvalidInput(
            f"A query must be a string, not {type(query).__name__}",
            remedy="Ask in plain language, or make one with cerata.query('…').",
        )
    check_size(query)
    if not is_unicode(query):
        raise InvalidInput(
            f"The query is not valid Unicode: {query!r}", remedy="Decode it with errors='replace'."
        )
