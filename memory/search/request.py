"""The request of a search: the arguments of a question, each checked once.

Owns `SearchRequest`, which `search` and `recall` make from their arguments. Leaves out the checks
that need a snapshot: of vectors (`vector_lane`, `late_lane`) and of the filter (`search`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, get_args

import numpy as np

from cerata.engine.arguments import (
    expect_text,
    is_integer,
    is_number,
    is_unicode,
    wrong_type,
)
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.json_value import exact_fields
from cerata.projections.frames.filters import Filter, check_filter, kinds_named
from cerata.projections.fulltext.query import (
    QUESTION_SIZE_MAX,
    Query,
    check_size,
    filters_of,
    plain,
)
from cerata.retrieval.question_times import time_filter
from cerata.retrieval.ranking.profile import Profile
from cerata.retrieval.reranker import check_rerank

from ..values.options import Grouping, Mode, Rerank
from ..values.owners import no_memories
from ..values.vectors import Vector, Vectors, numbers_of

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask

    from ..snapshot.layers import Layers
    from ..values.vector_trust import VectorTrust

_MODES: Final[tuple[str, ...]] = get_args(Mode)
_FLAGS: Final = ("include_superseded", "include_deleted", "approximate")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRequest:
    """A question to any snapshot, with the arguments of `SearchReads.search`.

    - ``text`` is a question in plain language; empty if it is blank or a query.
    - ``tree`` is the query, or that of the question in plain language.
    - ``is_plain`` is true for a question in plain language, false for a query.

    Raises:
        InvalidInput: the query is neither text nor a query, or an argument is out of range.
    """

    query: str | Query
    k: int
    mode: Mode
    profile: Profile
    where: Filter | None
    include_superseded: bool = False
    include_deleted: bool = False
    embedding: Vector | None
    space: str | None
    approximate: bool
    token_embedding: Vectors | None
    tokens_space: str | None
    token_weights: Vector | None = None
    rerank: Rerank
    scores_before: Mapping[int, float] | None = None
    """The scores that the model of ``rerank`` returned for an earlier page."""
    offset: int = 0
    group_by: Grouping = "frame"
    min_cosine: float | None = None
    floor: float | None = None
    trust: VectorTrust | None = None
    """How far vectors count, of a recorded question; None: by the embedder."""
    text: str = field(init=False)
    tree: Query = field(init=False)
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        exact_fields(self, "query", "k", "offset", "min_cosine", "floor", "rerank", *_FLAGS)
        query = self.query
        check_query(query)
        if not (type(self.k) is int or is_integer(self.k)) or self.k <= 0:
            raise InvalidInput(
                f"k must be a positive whole number, not {value_text(self.k)}",
                remedy="Pass k=1 or more.",
            )
        if not (type(self.offset) is int or is_integer(self.offset)) or self.offset < 0:
            raise InvalidInput(
                f"offset must be a whole number from 0, not {value_text(self.offset):.60}",
                remedy="Pass cerata.Page(offset=…) of 0 or more.",
            )
        if self.group_by not in get_args(Grouping):
            raise InvalidInput(
                "group_by must be 'content', 'document' or 'frame', "
                f"not {value_text(self.group_by):.60}",
                remedy="Leave it out for one hit of equal texts, or pass 'frame' for each frame.",
            )
        if self.mode not in _MODES:
            raise InvalidInput(
                f"mode must be a search mode, not {value_text(self.mode):.60}",
                remedy=f"Pass one of {', '.join(_MODES)}.",
            )
        if self.rerank is not None:
            check_rerank(self.rerank)
        if self.token_weights is not None and self.token_embedding is None:
            raise InvalidInput(
                "token_weights came without tokens",
                remedy="Pass cerata.Vectors(tokens=…, token_weights=…), with a weight of each.",
            )
        for name, least in (("min_cosine", self.min_cosine), ("floor", self.floor)):
            if least is not None and not is_number(least):
                raise InvalidInput(
                    f"{name} must be a number, not {value_text(least):.60}",
                    remedy=f"Pass a number such as {name}=0.3, or None.",
                )
        if self.min_cosine is not None and self.mode == "text":
            raise InvalidInput(
                "min_cosine bounds cosines, and mode 'text' compares no vectors",
                remedy="Pass mode='hybrid' or 'vector', or a least score as floor=.",
            )
        text = ""
        tree: Query
        if isinstance(query, str):
            tree = plain(query)
            text = query if query.strip() else ""
        else:
            tree = query
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "is_plain", tree is not query)

    @property
    def is_bounded(self) -> bool:
        """True if hits need a least score or cosine."""
        return self.floor is not None or self.min_cosine is not None

    @property
    def seeks_all_kinds(self) -> bool:
        """True if the filter or the query names a kind of frames that are no memories."""
        filters = [*filters_of(self.tree)] if isinstance(self.query, Query) else []
        if isinstance(self.where, Filter):
            filters.append(self.where)
        if not filters:
            return False
        return any(not kinds_named(where).isdisjoint(no_memories()) for where in filters)

    def searched_in(self, layers: Layers) -> tuple[Mask, ...]:
        """Return the rows that the search ranks, by layer, current or not."""
        return layers.searched if self.seeks_all_kinds else layers.memories

    @property
    def rerank_key(self) -> object:
        """The argument ``rerank`` as plain values: the identity of a model."""
        if isinstance(self.rerank, Mapping):
            return sorted((int(frame), float(score)) for frame, score in self.rerank.items())
        if self.rerank is None or isinstance(self.rerank, bool):
            return self.rerank
        return self.rerank.identity

    def is_same_question(self, request: SearchRequest) -> bool:
        """Return whether two requests have one order of results, of which they may want parts."""
        if any(getattr(self, name) != getattr(request, name) for name in _OF_ORDER):
            return False
        if self.profile != request.profile:
            return False
        pairs = (
            (self.embedding, request.embedding),
            (self.token_embedding, request.token_embedding),
            (self.token_weights, request.token_weights),
        )
        return all(
            mine is other
            or (
                mine is not None
                and other is not None
                and np.array_equal(numbers_of(mine), numbers_of(other))
            )
            for mine, other in pairs
        )


_OF_ORDER: Final = (
    *("query", "mode", "where", "include_superseded", "include_deleted"),
    *("space", "approximate", "tokens_space", "rerank_key", "group_by", "min_cosine", "floor"),
)
"""The arguments that determine the order of the results, besides vectors."""


def in_times_of_question(where: Filter | None, query: object) -> Filter | None:
    """Return a filter with the times that a question names, if it asks for them.

    Raises:
        InvalidInput: ``where`` is no filter.
    """
    if where is None:
        return None
    check_filter(where)
    tests = where.plain()
    during = time_filter(query) if where.of_question and isinstance(query, str) else None
    if during is not None:
        tests &= during
    return None if tests.is_universal else tests


def check_query(query: object) -> None:
    """Raise `InvalidInput` unless ``query`` is a text or a query, and not too large."""
    if type(query) is str and len(query) <= QUESTION_SIZE_MAX and is_unicode(query):
        return
    if not isinstance(query, str | Query):
        remedy = "Pass a question in plain language, or cerata.query('…')."
        raise wrong_type("query", "a string", query, remedy)
    check_size(query)
    if isinstance(query, str):
        expect_text("query", query)
