"""The values that a store returns.

Owns `Receipt`, `Frame`, `Stored`, `Hit`, the timeline's values, `Context` and `FrameId`: frozen,
typed, and plain through ``to_dict()``. Leaves out facts (`facts`) and links (`graph`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import CerataError, InvalidInput
from cerata.engine.json_value import exact
from cerata.engine.late import late
from cerata.engine.log_file.lineage import Identity
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.unreadable import frame_place, readable

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue, ScopeValue
    from cerata.engine.head import Head
    from cerata.projections.columnar.scopes import Reach
    from cerata.projections.frames.timeline import Position
    from cerata.retrieval import tables
    from cerata.retrieval.context import extracts as best_spans
    from cerata.retrieval.context.blocks import ContextItem
    from cerata.retrieval.context.packing import Omission
    from cerata.retrieval.ranking.relevance import Confidence, Floor

    from .acts import Act
    from .explanation import Explanation
    from .pending_ids import PendingIds
else:
    best_spans = late("cerata.retrieval.context.extracts")
    tables = late("cerata.retrieval.tables")

_REPR_SIZE: Final = 80
"""Characters of a hit's text in its repr."""


@dataclass(frozen=True, slots=True)
class Receipt(PlainValue):
    """The result of a write.

    - ``id`` is the first new id; after `supersede` the frame that is now current, also a stored
      one; else the seq of the batch's first event.
    - ``ids`` are all new ids, ``seqs`` all events.
    - Inside a transaction ids are −1, −2, … of its batch, without a ``head``. After the block the
      receipt still names the same thing, as the argument of any call; ``tx.receipt`` has the seqs.
    - ``added`` is False if the content was stored before; ``replaced`` are the superseded frames,
      ``deleted`` the deleted frames.
    - ``notices`` has a line for each reason for which texts were stored without a vector although
      the memory has vectors, and for the shared frames that a sweep left.
    """

    id: int
    ids: tuple[int, ...]
    seqs: tuple[int, ...]
    head: Head | None
    durable: bool
    added: bool = True
    replaced: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    _block: PendingIds | None = field(default=None, repr=False, compare=False, kw_only=True)
    """The ids of the transaction that the call joined."""

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("id", "ids", "seqs")),
            "head": None if self.head is None else self.head.seq,
            **plain_fields(self, ("durable", "added", "replaced")),
            **(plain_fields(self, ("deleted",)) if self.deleted else {}),
            **(plain_fields(self, ("notices",)) if self.notices else {}),
        }


@dataclass(frozen=True, slots=True)
class Frame(PlainValue):
    """A frame as a view sees it: its content, its fields, and its relations to other frames.

    - ``text`` is empty for bytes; a split document has the joined text of its chunks.
    - ``active`` is True for a current frame, as `View.count` counts: neither closed nor expired.
    - ``scope`` is empty for an erased frame, because its scope is unknown.
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
    """The text that is searched in place of ``text``, as for bytes."""
    size: int = 0
    """Bytes of content: UTF-8 text, or blob."""
    track: str | None = None
    """The named line of frames that the frame belongs to."""
    content_dates: tuple[datetime, ...] = ()
    """Dates that the content names."""
    content_hash: bytes | None = None
    """The hash of the content, which `files.by_content` takes; None for a chunk."""
    expires: datetime | None = None
    """From this time on, reads of many frames leave the frame out."""
    is_expired: bool = False
    """True if ``expires`` is past by the view's "now", and no event closed the frame."""
    unread: tuple[int, ...] = ()
    """Events of later versions that put or name the frame: stored, and not applied."""
    actor: str | None = None
    """The writer of this version."""
    reason: str | None = None
    """The reason of this version."""
    closed: Act | None = None
    """The event that closed the frame; None while it is current, or if the scope hides it."""
    _block: PendingIds | None = field(default=None, repr=False, compare=False, kw_only=True)
    """The ids of the transaction in which the frame was read."""

    def to_dict(self) -> dict[str, JsonValue]:
        empty = {name for name in ("unread", "is_expired") if not getattr(self, name)}
        return plain_fields(self, (name for name in self.__match_args__ if name not in empty))


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored content: its frame, and the parts that are still missing.

    - ``chunks`` are the current chunks by index; ``missing`` are the indices without a chunk.
    - ``unembedded`` are the frames without an embedding in the requested space; only the chunks
      of a split document are embedded.
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
        """True if storing the content again would add nothing."""
        return not (self.missing or self.unembedded)


class FrameSource(Protocol):
    """A state of the memory, which reads frames."""

    def frame_at(self, number: int) -> Frame: ...


class HitSource(FrameSource, Protocol):
    """The search that found a hit."""

    @property
    def identity(self) -> Identity: ...

    @property
    def reach(self) -> Reach | None: ...

    def highlights(self, text: str) -> list[tuple[int, int]]: ...

    def grouped_with(self, hit: Hit) -> tuple[Hit, ...]: ...

    def explain(self, hit: Hit) -> Explanation: ...


@dataclass(frozen=True)
class Hit(PlainValue):
    """A frame that a search found, by the lanes ``lanes``; text and frame are read on first use.

    `View.history.explain` returns the share of each lane in the score.
    """

    _plain = ("id", "score", "cosine", "text", "span", "highlights", "lanes", "frame")

    id: int
    score: float
    lanes: tuple[str, ...]
    cosine: float | None
    """The cosine of the frame's and the question's vectors; None without such a comparison."""
    search: HitSource | None = field(repr=False, compare=False)
    """The question, its view and the results of each lane; None in a copy."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the hit as plain values; ``grouped`` only if there are further hits.

        A further hit that cannot be read is left out, with the warning `UnreadableItem`.
        """
        values = plain_fields(self, self._plain)
        further = [*readable(self.grouped, Hit.to_dict, lambda hit: frame_place(hit.id))]
        return {**values, "grouped": [*further]} if further else values

    def __repr__(self) -> str:
        try:
            text = " ".join(self.text.split())
        except CerataError:
            # The store is closed, or the frame cannot be read: a repr never raises.
            text = "…"
        clipped = text if len(text) <= _REPR_SIZE else f"{text[: _REPR_SIZE - 1]}…"
        return f"Hit(id={self.id}, score={self.score:.4g}, lanes={self.lanes!r}, text={clipped!r})"

    def __getstate__(self) -> dict[str, object]:
        # The search cannot leave its process, so a copy carries the values read from it.
        state = {name: getattr(self, name) for name in ("frame", "highlights", "span", "grouped")}
        return {**vars(self), **state, "search": None}

    @property
    def made_by(self) -> HitSource:
        """The search that found the frame.

        Raises:
            InvalidInput: the hit is a copy.
        """
        if self.search is None:
            raise InvalidInput(
                "The hit is a copy, which has no search",
                remedy="Search again, and use the new hit.",
            )
        return self.search

    @cached_property
    def grouped(self) -> tuple[Hit, ...]:
        """The further hits of the same text, or the same document, best first; see ``group_by``.

        Cost: if no hit before the end of the page has an equal, the first read searches again.
        """
        return self.made_by.grouped_with(self)

    @cached_property
    def frame(self) -> Frame:
        """The frame as the view sees it."""
        return self.made_by.frame_at(self.id)

    @property
    def text(self) -> str:
        """The frame's text."""
        return self.frame.text

    @cached_property
    def highlights(self) -> list[tuple[int, int]]:
        """The parts of the text that match the query: characters [start, end), ascending, apart."""
        return self.made_by.highlights(self.text)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The best span of the text for the query, in a table a row: characters [start, end)."""
        return best_spans.best_span(self.text, self.highlights, tables.find_tables(self.text))


def first_readable(hit: Hit, admits: Callable[[Frame], bool] = lambda _: True) -> Hit | None:
    """Return the best of a hit and its group that can be read and is admitted; None without one.

    A frame that cannot be read is named by the warning `UnreadableItem`.
    """

    def group() -> Iterator[Hit]:
        yield hit
        yield from hit.grouped

    hits = group()
    for each, frame in readable(
        hits, lambda hit: (hit, hit.frame), lambda hit: frame_place(hit.id)
    ):
        if admits(frame):
            if each is not hit:
                # It takes the place of the group, of which it has the rest.
                vars(each)["grouped"] = (*hits,)
            return each
    return None


class Hits(list[Hit]):
    """The hits of a search, best first; a list.

    - ``notices`` has a line for each thing that limited the search, such as a missing embedder.
    """

    def __init__(self, hits: Iterable[Hit] = (), notices: tuple[str, ...] = ()) -> None:
        super().__init__(hits)
        self.notices = notices


@dataclass(frozen=True)
class TimelineEntry(PlainValue):
    """A frame at one of its times; ``id`` is the id of the frame, which is read on first use."""

    _plain = ("id", "time", "frame")

    id: int
    time: datetime
    _source: FrameSource = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The view cannot leave its process, so a copy carries the frame.
        return {"id": self.id, "time": self.time, "frame": self.frame}

    @cached_property
    def frame(self) -> Frame:
        """The frame as the view sees it."""
        return self._source.frame_at(self.id)


@dataclass(frozen=True, slots=True)
class TimelinePage(PlainValue):
    """Entries in order of time; ``next`` is the ``after`` of the next page, None at the end."""

    entries: tuple[TimelineEntry, ...]
    next: Position | None


CONTEXT_HITS: Final = 100
"""Hits that a context chooses from."""


@dataclass(frozen=True, slots=True)
class Context(PlainValue):
    """A prompt for a model: the best entries within a budget of tokens, each with its source.

    - ``text`` takes ``tokens`` of at most ``max_tokens``.
    - ``omissions`` are the results that ``text`` does not show, each with the reason.
    - ``confidence`` is "clear"; or "unclear" if no entry clearly answers the question, so that the
      text has the closest ones in half of the budget; or "none", and the text has no entry.
    - ``score`` is that of the best result, about a half for each word of the question once, and
      ``floor`` has the marks that it was compared with (None for no floor).
    - ``fallback`` is True if the newest frames are shown, since the question has no word to find.
    - ``notices`` has a line for each thing that limited the answer, such as a missing embedder.
    - ``basis`` and ``now`` are the view's; pass the context to `Store.at` to get that view.
    - ``lanes`` are the lanes that ran, as ``profile``, a name and a version, prescribes.
    - `str` gives the text and a last line with the counts of shown entries and tokens.
    """

    _plain = (
        "text", "tokens", "max_tokens", "tokenizer", "items", "omitted", "omissions", "basis",
        "now", "fallback", "lanes", "profile", "policy", "framed", "recorded",
        "confidence", "score", "floor", "notices",
    )  # fmt: skip

    text: str
    tokens: int
    max_tokens: int
    items: tuple[ContextItem, ...]
    omissions: tuple[Omission, ...]
    basis: int
    now: datetime
    log_id: bytes
    """The id of the recalled log."""
    fallback: bool = False
    tokenizer: str = ""
    """The tokenizer that counted: the encoding, and the package and version that has it."""
    lanes: tuple[str, ...] = ()
    profile: str = ""
    policy: str = ""
    """The name and version of the context policy, which sets the length of each entry."""
    framed: bool = False
    """True if the text begins with words to the model, which may take at most half the budget."""
    recorded: int | None = None
    """The seq of the event that records this context; None without ``record=True``."""
    confidence: Confidence = "clear"
    score: float = 0.0
    floor: Floor | None = None
    notices: tuple[str, ...] = ()
    branch_id: bytes | None = None
    """The id of the newest branch of the recalled log; None if the log is no fork."""

    @property
    def identity(self) -> Identity:
        """The identity of the recalled log."""
        return Identity(self.log_id, self.branch_id)

    @property
    def omitted(self) -> tuple[int, ...]:
        """The ids of the results that are not shown."""
        return tuple(omission.id for omission in self.omissions)

    @property
    def summary(self) -> str:
        """One line: how much was shown, how many tokens, as of which basis."""
        if self.confidence == "none":
            return f"nothing relevant, basis {self.basis}"
        joined = sum(len(item.joined) for item in self.items)
        total = len(self.items) + joined + len(self.omitted)
        # More frames may match than a context considers.
        candidates = f"{total:,}" if total < CONTEXT_HITS else f"the first {total:,}"
        entries = f" in {len(self.items):,} entries" if joined and len(self.items) > 1 else ""
        note = "nothing matched, newest first; " if self.fallback and total else ""
        note = "no entry clearly answers; " if self.confidence == "unclear" else note
        return (
            f"{note}{len(self.items) + joined:,} of {candidates} shown{entries}, "
            f"{self.tokens:,} of {self.max_tokens:,} tokens, basis {self.basis}"
        )

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.summary}" if self.text else self.summary

    def to_messages(self, role: str = "user") -> list[dict[str, str]]:
        """Return the context as chat messages, as OpenAI's and Anthropic's interfaces take them.

        The content is ``text``, so ``tokens`` counts it; no message if the text is empty.

        Args:
            role: The role of the message; default "user".
        """
        return [{"role": role, "content": self.text}] if self.text else []


FrameId: TypeAlias = int | Receipt | Frame | Hit
"""The forms in which a caller names a frame: its id, or a value that has the id."""


def frame_id(value: FrameId, inside: PendingIds | None = None) -> int:
    """Return the id that a value names; ``inside`` are the ids of the reader's transaction.

    Raises:
        InvalidInput: the value is neither an id nor a value that has the id of a frame.
        NotFound: the value is of a transaction that wrote nothing.
    """
    if isinstance(value, Hit):
        return value.id if value.id >= 0 else id_in(value.frame, inside)
    if isinstance(value, Receipt | Frame):
        return id_in(value, inside)
    remedy = "Pass the frame's id, or a value that has the id."
    return expect_integer("A frame", value, "an id, Receipt, Frame or Hit", remedy)


def end_of(receipt: Receipt) -> Head | int | None:
    """Return the end of a receipt's batch; None until its transaction has written the batch."""
    block = receipt._block  # pyright: ignore[reportPrivateUsage]
    if receipt.head is not None or block is None or block.batch is None:
        return receipt.head
    return block.batch[1]


def id_in(value: Receipt | Frame, inside: PendingIds | None = None) -> int:
    """Return the id of a value that a transaction may have returned.

    Args:
        value: The value.
        inside: The ids of the transaction that the reader has a view of: its ids are valid as
            they are, also after the block.

    Raises:
        NotFound: the value is of a transaction that wrote nothing.
    """
    block = value._block  # pyright: ignore[reportPrivateUsage]
    number = value.id if block is None or block is inside else block.id_of(value.id)
    return exact(number)
