"""The values that a store gives back: frozen, typed, and plain through ``to_dict()``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue, ScopeValue
from cerata.engine.head import Head
from cerata.projections.timeline import Position
from cerata.retrieval.context import ContextItem, Omission
from cerata.retrieval.span import best_span

if TYPE_CHECKING:
    from .lanes import Search
    from .view import View


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did.

    ``id`` is the new thing, or the seq of the batch's first event where none was made; ``ids``
    are all things made, ``seqs`` all events. Inside a transaction ids are −1, −2, … of its own
    batch, and ``head`` is None until it ends. ``added`` is False where it was all there before;
    ``replaced`` are the frames whose place something took.
    """

    id: int
    ids: tuple[int, ...]
    seqs: tuple[int, ...]
    head: Head | None
    durable: bool
    added: bool = True
    replaced: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "ids": list(self.ids),
            "seqs": list(self.seqs),
            "head": None if self.head is None else self.head.seq,
            "durable": self.durable,
            "added": self.added,
            "replaced": list(self.replaced),
        }


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as a view sees it: its content, what was said about it, and its place.

    ``text`` of a document that was split is that of its chunks, joined; of bytes it is empty.
    ``scope`` of a frame that was erased is empty: it is unknown.
    """

    id: int
    text: str
    kind: str
    role: str | None
    uri: str | None
    title: str | None
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    metadata: Mapping[str, JsonValue]
    scope: Mapping[str, ScopeValue]
    created: datetime
    recorded: datetime
    parent: int | None
    supersedes: tuple[int, ...]
    superseded_by: int | None
    active: bool
    chunk_index: int | None = None
    chunk_count: int | None = None
    search_text: str | None = None
    """What is searched in place of the text, as of bytes."""
    size: int = 0
    """Bytes of content: of the UTF-8 text, or of the blob."""
    unread: tuple[int, ...] = ()
    """Events that put or name the frame and are of later versions: they are kept, not applied."""

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "role": self.role,
            "uri": self.uri,
            "title": self.title,
            "tags": list(self.tags),
            "labels": list(self.labels),
            "metadata": dict(self.metadata),
            "scope": dict(self.scope),
            "created": self.created.isoformat(),
            "recorded": self.recorded.isoformat(),
            "parent": self.parent,
            "supersedes": list(self.supersedes),
            "superseded_by": self.superseded_by,
            "active": self.active,
            "chunk_index": self.chunk_index,
            "chunk_count": self.chunk_count,
            "search_text": self.search_text,
            "size": self.size,
            **({"unread": list(self.unread)} if self.unread else {}),
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """A content that is there: its frame, and what of it is still to be done.

    ``chunks`` are the current chunks by index; ``missing`` the indices that have none, and
    ``unembedded`` the frames that have no embedding in the space asked for. A document that was
    split is embedded by its chunks.
    """

    id: int
    chunks: Mapping[int, int]
    missing: tuple[int, ...]
    unembedded: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """The frame and its chunks, in order."""
        return self.id, *self.chunks.values()

    @property
    def is_complete(self) -> bool:
        """Whether storing the content again would add nothing."""
        return not (self.missing or self.unembedded)


@dataclass(frozen=True)
class Hit:
    """A frame that a search found; text and frame are read when asked for.

    ``lanes`` are those that found it; `View.explain` says what each of them added to the score.
    """

    id: int
    score: float
    lanes: tuple[str, ...]
    search: "Search | None" = field(repr=False, compare=False)
    """What was asked of which view, and what every lane found; None in a copy."""

    def __getstate__(self) -> dict[str, object]:
        # The search stays with its process: a copy has what would be read when asked for.
        state = {"frame": self.frame, "highlights": self.highlights, "span": self.span}
        return {**vars(self), **state, "search": None}

    @property
    def made_by(self) -> "Search":
        """The search that found it.

        Raises:
            InvalidInput: it is a copy.
        """
        if self.search is None:
            raise InvalidInput(
                "The hit was copied or pickled, without its search",
                remedy="Search again, and use the hit that this returns.",
            )
        return self.search

    @cached_property
    def frame(self) -> Frame:
        """The frame as the view sees it."""
        return self.made_by.view.frame(self.id)

    @property
    def text(self) -> str:
        """The frame's text."""
        return self.frame.text

    @cached_property
    def highlights(self) -> list[tuple[int, int]]:
        """Where the text says what was asked: characters [start, end), ascending, apart."""
        return self.made_by.view.highlights(self.text, self.made_by.query)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The best span of the text for the query: characters [start, end)."""
        return best_span(self.text, self.highlights)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "score": self.score,
            "text": self.text,
            "span": list(self.span),
            "highlights": [list(mark) for mark in self.highlights],
            "lanes": list(self.lanes),
            "frame": self.frame.to_dict(),
        }


@dataclass(frozen=True)
class TimelineEntry:
    """A frame at one of its times; ``id`` is the frame's, which is read when asked for."""

    id: int
    time: datetime
    _view: "View" = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The view stays with its process: a copy has the frame.
        return {"id": self.id, "time": self.time, "frame": self.frame}

    @cached_property
    def frame(self) -> Frame:
        """The frame as the view sees it."""
        return self._view.frame(self.id)

    def to_dict(self) -> dict[str, JsonValue]:
        return {"id": self.id, "time": self.time.isoformat(), "frame": self.frame.to_dict()}


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Entries in order of time; ``next`` is the ``after`` of the next page, None at the end."""

    entries: tuple[TimelineEntry, ...]
    next: Position | None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "entries": [entry.to_dict() for entry in self.entries],
            "next": None if self.next is None else list(self.next),
        }


@dataclass(frozen=True, slots=True)
class Context:
    """What to tell a model: the best entries within a budget of tokens, each with its source.

    ``text`` takes ``tokens`` of at most ``max_tokens``; ``omissions`` say what was found and is not
    shown, and why; ``fallback`` says that nothing matched and the newest frames stand in.
    ``basis`` and ``now`` are those of the view: `Store.at` of a context gives it again. ``lanes``
    are those that were asked, whatever they found, as ``profile``, a name and a version, says.
    Printing it gives the text and one last line that says what was shown.
    """

    text: str
    tokens: int
    max_tokens: int
    items: tuple[ContextItem, ...]
    omissions: tuple[Omission, ...]
    basis: int
    now: datetime
    log_id: bytes
    """The id of the log that it was recalled from."""
    fallback: bool = False
    tokenizer: str = ""
    """What counted: the encoding, and the package and version that has it."""
    lanes: tuple[str, ...] = ()
    profile: str = ""
    policy: str = ""
    """The name and version of what said how long each entry is told."""
    framed: bool = False
    """Whether it begins with words to the model; not where they took over half of the budget."""
    recorded: int | None = None
    """The event that says that it was shown; None where that was not asked for."""

    @property
    def omitted(self) -> tuple[int, ...]:
        """The ids of what was found and is not shown."""
        return tuple(one.id for one in self.omissions)

    @property
    def summary(self) -> str:
        """One line: how much was shown, how many tokens, as of which basis."""
        joined = sum(len(item.joined) for item in self.items)
        found = len(self.items) + joined + len(self.omitted)
        note = "nothing matched, newest first; " if self.fallback and found else ""
        return (
            f"{note}{len(self.items) + joined:,} of {found:,} shown, {self.tokens:,} of "
            f"{self.max_tokens:,} tokens, basis {self.basis}"
        )

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.summary}" if self.text else self.summary

    def to_messages(self, role: str = "user") -> list[dict[str, str]]:
        """Return the context as chat messages, as OpenAI's and Anthropic's interfaces take them.

        The content is ``text``, so its tokens are those that were counted; none if it is empty.
        """
        return [{"role": role, "content": self.text}] if self.text else []

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "text": self.text,
            "tokens": self.tokens,
            "max_tokens": self.max_tokens,
            "tokenizer": self.tokenizer,
            "items": [item.to_dict() for item in self.items],
            "omitted": list(self.omitted),
            "omissions": [one.to_dict() for one in self.omissions],
            "basis": self.basis,
            "now": self.now.isoformat(),
            "fallback": self.fallback,
            "lanes": list(self.lanes),
            "profile": self.profile,
            "policy": self.policy,
            "framed": self.framed,
            "recorded": self.recorded,
        }


FrameId: TypeAlias = int | Receipt | Frame | Hit
"""Whatever names one frame: its id, or a value that has it."""


def frame_id(value: FrameId) -> int:
    """Return the id that a value names.

    Raises:
        InvalidInput: it names none.
    """
    if isinstance(value, Receipt | Frame | Hit):
        return value.id
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(
            f"A {type(value).__name__} names no frame",
            remedy="Give its id, or the receipt, frame or hit that has it.",
        )
    return value
