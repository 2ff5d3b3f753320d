"""Values in place of lists of parameters: of writes, of vectors, of pages and of contexts.

Each is frozen, compares by its fields, and takes them by name. A call refuses a field that it
cannot use (`check_unused`), so that none is lost in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cerata.engine.arguments import wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import ScopeValue
from cerata.retrieval.context.budget import ENTRY_TOKENS_MAX

if TYPE_CHECKING:
    from cerata.engine.log import SyncPolicy
    from cerata.retrieval.context.entries import Form
    from cerata.retrieval.context.packing import Order
    from cerata.retrieval.ranking.profile import Profile
    from cerata.retrieval.reranker import Reranker

    from .facts import FactId
    from .frames import FrameId, Hit
    from .vectors import Vector
    from .vectors import Vectors as VectorRows

Mode: TypeAlias = Literal["hybrid", "text", "vector"]
"""The lanes that a search uses: all, those of words, or those of vectors."""

Grouping: TypeAlias = Literal["content", "document", "frame"]
"""The hits that take one place: those of equal text, those of a document, or each for itself."""

Rerank: TypeAlias = "bool | Reranker | Mapping[int, float] | None"
"""How the best hits get another order: by token vectors, by a model, or by scores of frames."""

EMBED_LIMIT: Final = 256
"""Passages of a log or table that get a vector, if a caller names no other number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Where a write goes, who makes it, and how a repeated call is known.

    >>> WriteOptions(scope={"user_id": "anna"}, key="import-7")
    WriteOptions(scope={'user_id': 'anna'}, actor=None, key='import-7')

    Args:
        scope: Names and values to add to the store's scope; default the store's scope.
        actor: Name of the writer; default that of the transaction, else of the store.
        key: An idempotency key: the same key and arguments return the first receipt.
    """

    scope: Mapping[str, ScopeValue] | None = None
    actor: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOptions(WriteOptions):
    """The rarer fields of new frames, and the options of their write.

    Args:
        labels: Labels, which are filtered by; default none.
        track: A named line of frames that the frame belongs to; default none.
        parent: The frame above this frame; default none.
        content_dates: Dates that the content names, as datetimes or ISO strings; default those
            that the text names ("yesterday", "8 May 2023"), relative to ``created``.
        created: When the content was created; default the time of recording.
        expires: The time from which reads of many frames leave the frame out; default never.
        search_text: Text to search in place of the content, as for bytes; default none.
        replace: Supersede the current frames with this ``uri`` in the same scope, also if other
            writers replace them at the same time: one remains. Default False.
        because: The event that led to the frame, recorded as its causation; default none.
        embed_limit: Most passages of a log or table that get a vector; None for all.
    """

    labels: Sequence[str] = ()
    track: str | None = None
    parent: FrameId | None = None
    content_dates: Sequence[date | str] | None = None
    created: date | str | None = None
    expires: date | str | None = None
    search_text: str | None = None
    replace: bool = False
    because: int | None = None
    embed_limit: int | None = EMBED_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class FactOptions(WriteOptions):
    """The rarer fields of a new fact, and the options of its write.

    Args:
        assumptions: Texts: the assumptions under which the fact holds.
        because: The fact that led to this fact.
    """

    assumptions: Sequence[str] = ()
    because: FactId | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vectors:
    """Vectors that the caller computed, for a frame or a question.

    >>> Vectors(dense=[0.6, 0.8], space="my-model").space
    'my-model'

    Args:
        dense: The vector, (dimension,); of many texts (texts, dimension).
        space: The name of its space; a question needs it if several spaces have the dimension.
        tokens: A vector for each token, (tokens, dimension), stored as int8; of many texts a
            sequence of these.
        tokens_space: The name of the space of ``tokens``.
        token_weights: Weights from 0 for the token vectors of a question; default 1.
        approximate: Compare only vectors that a graph (extra hnsw) chooses, for a question.
        min_cosine: Least `Hit.cosine` of a search; leaves out hits without a vector.
    """

    dense: Vector | VectorRows | None = None
    space: str | None = None
    tokens: VectorRows | Sequence[VectorRows] | None = None
    tokens_space: str | None = None
    token_weights: Vector | None = None
    approximate: bool = False
    min_cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a ranking.

    Args:
        offset: Hits to skip, of the best; the pages of a view neither repeat nor skip a hit.
        after: The last hit of the page before, of the same question; the page has the state
            that this hit was found in, also if frames were written since.
        group_by: "content", the default: current frames of equal text take one place;
            "document": the hits of a document do; "frame": each frame is a hit. `Hit.grouped`
            has the further hits of a place, of the first 128 or more of the search.
    """

    offset: int = 0
    after: Hit | None = None
    group_by: Grouping = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How a recall ranks: its weights, its lanes, and a second order of the best.

    Args:
        profile: Name or `Profile`: the weights of lanes and signals; default "default".
        mode: "hybrid" for all lanes, "text" for those by words, "vector" for those by vectors.
        rerank: Reorder the best 50 hits, scores unchanged: True by token vectors, or by a
            `Reranker`, or by passed scores of frame ids; default None.
    """

    profile: str | Profile | None = None
    mode: Mode = "hybrid"
    rerank: Rerank = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a context is laid out.

    Args:
        form: "text", or "markdown" with headings and quotes.
        order: "score" for the best entry first, or "time" for the earliest.
        framing: Begin with instructions to the model: use only this text, name the sources.
        entry_tokens: Most tokens of an entry.
        neighbours: Chunks or turns on each side of a hit that are shown after the hit if they pass
            the filter and the budget allows.
    """

    form: Form = "text"
    order: Order = "score"
    framing: bool = False
    entry_tokens: int = ENTRY_TOKENS_MAX
    neighbours: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """The rarer options of `cerata.open`, of scopes, syncs, locks, caches and salvage.

    Args:
        shared: Reads also admit events that lack names of the scope, other than the tenant; such
            shared things cannot be changed by this handle. Default False.
        require_scope: Without a scope, reads and writes raise `InvalidInput` until `Store.scoped`,
            `View.within` or the scope of a write gives one. Default False.
        salvage: Read the events that a damaged file still has, and never write; default False.
        sync: "commit" syncs each call, "always" syncs twice as proof, a number after so many bytes.
        lock_timeout: Seconds to wait for a lock, default 30; 0 fails at once, None never.
        ring_bytes: Size of a new file's ring in bytes; default None, 128 KiB; grows to 512 KiB.
        cache_bytes: Bytes of all caches of this handle together; default None, 1 GiB.
    """

    shared: bool = False
    require_scope: bool = False
    salvage: bool = False
    sync: SyncPolicy = "commit"
    lock_timeout: float | None = 30.0
    ring_bytes: int | None = None
    cache_bytes: int | None = None


NO_VECTORS: Final = Vectors()
WRITE: Final = WriteOptions()
PUT: Final = PutOptions()
FACT: Final = FactOptions()
PAGE: Final = Page()
LAYOUT: Final = Layout()
OPEN: Final = OpenOptions()
RANKING: Final = Ranking()


def checked(name: str, value: object, kind: type[Any]) -> None:
    """Raise `InvalidInput` unless an option is of its class."""
    if not isinstance(value, kind):
        raise wrong_type(
            name,
            f"a cerata.{kind.__name__}",
            value,
            f"Pass {name}=cerata.{kind.__name__}(…), with its fields by name.",
        )


def check_unused(call: str, value: Any, names: Iterable[str]) -> None:
    """Raise `InvalidInput` if a field that a call cannot use is set."""
    default = _DEFAULTS[type(value)]
    for name in names:
        if getattr(value, name) != getattr(default, name):
            raise InvalidInput(
                f"{call} takes no {name}",
                remedy=f"Leave {name} out of cerata.{type(value).__name__}(…).",
            )


_DEFAULTS: Final[Mapping[type, object]] = {
    type(default): default for default in (NO_VECTORS, WRITE, PUT, FACT)
}
