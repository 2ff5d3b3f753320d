"""The gathered drafts of an open transaction, as reads inside the transaction see them.

Owns the fold of the drafts alone, by the same projections as the log, into a layer over the log's
layer, and a list of the log's frames that the drafts close. No state of the log is copied. A read
inside costs as much as outside, plus a fold of the drafts since the last read.

The rules of closing are those of `cerata.projections.frames.projection`; a test compares the two.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from cerata.engine.codec import kind_of
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Erased,
    Event,
    EventBody,
    EventHeader,
    Payload,
    PutEmbedding,
    PutFrame,
    Scope,
    SupersedeFrame,
    lifted_by,
    once,
)
from cerata.projections.facts.projection import FACT_EVENTS
from cerata.projections.frames.columns import ClosingKind
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.frames.reader import Closing, Frames
from cerata.projections.fulltext.bm25 import Fulltext
from cerata.projections.fulltext.overlay import JointTerms, layered
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.links.projection import LINK_EVENTS

from .layer import Layer


@dataclass(frozen=True, slots=True)
class GatheredEvent:
    """A draft as an event for projections and views; ``seq`` is its place in the batch, from 1."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody
    causation: int | None = None
    salt: bytes | None = None


class DraftEvent(Event, frozen=True, dict=True, kw_only=True):
    """A draft as an event of the log; its seq is minus its place.

    A draft is not stored, so it has no commitment, and its leaf binds nothing.
    """

    draft: Draft

    @once
    def payload(self) -> Payload[msgspec.Raw] | None:
        draft = self.draft
        return Payload(draft.scope, draft.actor, draft.correlation, None, None, msgspec.Raw())

    @once
    def body(self) -> EventBody | Erased:
        return self.draft.body

    @property
    def causation(self) -> int | None:
        return self.draft.causation


class DraftFolds:
    """The projections of the drafts alone.

    - An attribute is None while its fold changes, so an interrupted fold is built again from all
      drafts.
    """

    def __init__(self) -> None:
        self._frames: FramesProjection | None = None
        self._fulltext: FulltextProjection | None = None
        self._events: list[GatheredEvent] = []
        self._terms: JointTerms | None = None

    def extend(self, events: Sequence[GatheredEvent]) -> None:
        """Add drafts; the next read folds them."""
        self._events += events

    def frames(self, through: int | None = None) -> Frames:
        """Return the frames of all drafts; ``through`` is ignored."""
        fold, self._frames = self._frames or FramesProjection(), None
        fold.apply(self._events[fold.seq :])
        frames = fold.snapshot()
        self._frames = fold
        return frames

    def fulltext(self, through: int | None = None) -> Fulltext:
        """Return the full text of all drafts; ``through`` is ignored."""
        fold, self._fulltext = self._fulltext or FulltextProjection(), None
        fold.apply(self._events[fold.seq :])
        fulltext = fold.snapshot()
        self._fulltext = fold
        return fulltext

    def fulltext_over(self, lower: Fulltext, rows: int) -> Fulltext:
        """Return the full text of the log's first ``rows`` frames, then of the drafts.

        All calls must pass the same ``lower``.
        """
        if self._terms is None:
            self._terms = JointTerms(lower.vocabulary)
        return layered(lower, rows, self.fulltext(), self._terms)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The first ``count`` drafts of a transaction; later drafts do not change the value.

    - ``closings`` maps the frames that the drafts close, of the log (positive) or of the drafts
      (negative), to closings. Their seqs are those of the drafts if no other writer appends.
    - ``replaced`` maps a frame to the frames that it supersedes.
    - ``children`` maps a frame to the drafts below it.
    - ``spaces`` maps a frame of the log to the spaces in which the drafts embed it.
    """

    count: int
    drafts: Sequence[Draft]
    recorded: int
    folds: DraftFolds
    closings: Mapping[int, Closing]
    replaced: Mapping[int, Sequence[int]]
    children: Mapping[int, Sequence[int]]
    spaces: Mapping[int, Sequence[str]]

    def event(self, frame: int) -> GatheredEvent:
        """Return the draft of a frame, whose id is minus its place."""
        draft = self.drafts[-frame - 1]
        return GatheredEvent(
            -frame,
            draft.body.wire_name,
            self.recorded,
            draft.scope,
            draft.body,
            draft.causation,
            draft.salt,
        )

    def events(self) -> Iterator[Event]:
        """Yield the drafts as events with seqs −1, −2, …, which their references use, too."""
        for place, draft in enumerate(self.drafts[: self.count], start=1):
            name, version = kind_of(draft.body)
            header = EventHeader(
                -place, self.recorded, None, name, version, place - 1, self.count, draft.causation
            )
            yield DraftEvent(header, draft.salt, None, draft=draft)

    @property
    def has_facts(self) -> bool:
        """True if the fold of facts handles a draft."""
        return any(draft.body.wire_name in FACT_EVENTS for draft in self.drafts[: self.count])

    @property
    def has_links(self) -> bool:
        """True if the fold of links handles a draft."""
        return any(draft.body.wire_name in LINK_EVENTS for draft in self.drafts[: self.count])

    def all_events(self) -> list[GatheredEvent]:
        """Return the drafts as events for a fold, before `lifted_after`.

        ``seq`` is the place, and references are as the caller gave them.
        """
        return [
            GatheredEvent(
                place,
                draft.body.wire_name,
                self.recorded,
                draft.scope,
                draft.body,
                draft.causation,
            )
            for place, draft in enumerate(self.drafts[: self.count], start=1)
        ]

    def below(self, frame: int) -> list[int]:
        """Return the drafts directly below a frame, in order."""
        return [child for child in self.children.get(frame, ()) if child >= -self.count]


def lifted_after(basis: int, event: GatheredEvent) -> GatheredEvent:
    """Return a draft as an event after a log that ends at ``basis``: −k becomes basis + k."""
    cause = event.causation
    return replace(
        event,
        seq=basis + event.seq,
        body=lifted_by(event.body, basis),
        causation=basis - cause if cause is not None and cause < 0 else cause,
    )


class Gathering:
    """The state of a transaction's drafts over the layer of the log at the first read."""

    def __init__(self, base: Layer, recorded: int) -> None:
        self._base = base
        self._recorded = recorded
        self._count = 0
        self._folds = DraftFolds()
        self._born = set[int]()
        self._closings: dict[int, Closing] = {}
        self._replaced: dict[int, tuple[int, ...]] = {}
        self._children: dict[int, list[int]] = {}
        self._spaces: dict[int, tuple[str, ...]] = {}

    def through(self, drafts: Sequence[Draft]) -> Gathered:
        """Add the drafts that are new, and return the state of all drafts."""
        new = list(enumerate(drafts[self._count :], start=self._count + 1))
        self._folds.extend([self._event(place, draft) for place, draft in new])
        for place, draft in new:
            self._take(place, draft.body)
        self._count = len(drafts)
        return Gathered(
            self._count,
            drafts,
            self._recorded,
            self._folds,
            dict(self._closings),
            dict(self._replaced),
            self._children,
            dict(self._spaces),
        )

    def _event(self, place: int, draft: Draft) -> GatheredEvent:
        """Return a draft for the fold, which gets only new frames and embeddings of new frames.

        `_take` records closings, which cross the layers, and embeddings of frames of the log.
        """
        body = draft.body
        kind = ""
        if isinstance(body, PutFrame):
            body = msgspec.structs.replace(body, parent=None)
            kind = PutFrame.wire_name
        elif isinstance(body, PutEmbedding) and body.frame < 0:
            body = msgspec.structs.replace(body, frame=-body.frame)
            kind = PutEmbedding.wire_name
        return GatheredEvent(place, kind, self._recorded, draft.scope, body)

    def _take(self, place: int, body: EventBody) -> None:
        if isinstance(body, PutFrame):
            self._born.add(-place)
            if body.parent is not None:
                self._children.setdefault(body.parent, []).append(-place)
        elif isinstance(body, DeleteFrame):
            self._close(place, body.frame, None)
        elif isinstance(body, SupersedeFrame):
            self._close(place, body.old, body.new)
        elif isinstance(body, PutEmbedding) and body.frame > 0:
            spaces = self._spaces.get(body.frame, ())
            self._spaces[body.frame] = (*spaces, body.embedding.space)

    def _close(self, place: int, target: int, by: int | None) -> None:
        """Close a frame and the frames below it, unless the frame is closed already."""
        replacements = self._replacements(by)
        if not self._is_open(target) or target in replacements:
            return
        kind = ClosingKind.DELETE if by is None else ClosingKind.SUPERSEDE
        along = ClosingKind.WITH_DELETED if by is None else ClosingKind.WITH_SUPERSEDED
        moment = self._base.n + place
        if by is not None:
            self._replaced[by] = (*self._replaced.get(by, ()), target)
        self._closings[target] = Closing(moment, kind, by)
        pending = [target]
        while pending:
            for child in self._below(pending.pop()):
                # A replacement, and the frames below it, stay open.
                if child not in replacements:
                    pending.append(child)
                    if self._is_open(child):
                        self._closings[child] = Closing(moment, along, by)

    def _replacements(self, frame: int | None) -> set[int]:
        """Return a frame, its replacement, the replacement of that frame, and so on."""
        chain = set[int]()
        while frame is not None and frame not in chain:
            chain.add(frame)
            closing = self._closing(frame)
            frame = None if closing is None else closing.by
        return chain

    def _closing(self, frame: int) -> Closing | None:
        if frame in self._closings or frame < 0:
            return self._closings.get(frame)
        return self._base.frames.closing_of(frame, self._base.n)

    def _is_open(self, frame: int) -> bool:
        """Return whether a frame exists and is current."""
        if frame > 0:
            exists = frame <= self._base.n and self._base.frames.row_of(frame) is not None
        else:
            exists = frame in self._born
        return exists and self._closing(frame) is None

    def _below(self, frame: int) -> list[int]:
        stored = self._base.frames.children(frame, self._base.n) if frame > 0 else []
        return [*stored, *self._children.get(frame, ())]
