"""What an open transaction has gathered, as reads inside it see it.

The drafts are folded alone, by the same projections as the log, into a layer over the log's; the
frames of the log that they close are noted beside. So nothing of the log's state is copied, and a
read inside costs what it costs outside, and a fold of the drafts that came since the last one.

The rules of closing are those of `cerata.projections.frames`, which a test holds this against.
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
from cerata.projections.facts import FACT_EVENTS
from cerata.projections.frame_columns import ClosingKind
from cerata.projections.frame_table import Closing, Frames
from cerata.projections.frames import FramesProjection
from cerata.projections.fulltext import FulltextProjection
from cerata.projections.layered import JointTerms, layered
from cerata.projections.links import LINK_EVENTS
from cerata.projections.ranking import Fulltext

from .layer import Layer


@dataclass(frozen=True, slots=True)
class GatheredEvent:
    """A draft as a projection and a view see it; ``seq`` is its place in the batch, from 1."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody
    causation: int | None = None
    salt: bytes | None = None


class DraftEvent(Event, frozen=True, dict=True, kw_only=True):
    """A draft as an event of the log: its seq is minus its place.

    It is not stored, so it has no commitment, and its leaf binds nothing.
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
    """The projections of drafts alone, fed as they come.

    - An attribute never holds a fold that is being changed: it is None until the change is done,
      and an interrupted fold is made anew from all drafts.
    """

    def __init__(self) -> None:
        self._frames: FramesProjection | None = None
        self._fulltext: FulltextProjection | None = None
        self._events: list[GatheredEvent] = []
        self._terms: JointTerms | None = None

    def extend(self, events: Sequence[GatheredEvent]) -> None:
        """Take the next drafts; a read folds them."""
        self._events += events

    def frames(self, through: int | None = None) -> Frames:
        """Return the frames of the drafts, all of them; ``through`` is less than all."""
        fold, self._frames = self._frames or FramesProjection(), None
        fold.apply(self._events[fold.seq :])
        frames = fold.snapshot()
        self._frames = fold
        return frames

    def fulltext(self, through: int | None = None) -> Fulltext:
        """Return the full text of the drafts, all of them."""
        fold, self._fulltext = self._fulltext or FulltextProjection(), None
        fold.apply(self._events[fold.seq :])
        fulltext = fold.snapshot()
        self._fulltext = fold
        return fulltext

    def fulltext_over(self, lower: Fulltext, rows: int) -> Fulltext:
        """Return the full text of the log's first ``rows`` frames and, after them, of the drafts.

        ``lower`` is the same in every call.
        """
        if self._terms is None:
            self._terms = JointTerms(lower.vocabulary)
        return layered(lower, rows, self.fulltext(), self._terms)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The first ``count`` drafts of a transaction; it stays as it is while more are gathered.

    ``closings`` say which frames they close, of the log's (positive) and of their own (negative):
    when is the seq that the draft would have if nobody else wrote. ``replaced`` says which ones a
    frame takes the place of, ``children`` which drafts are below a frame, ``spaces`` in which
    spaces frames of the log come to have an embedding.
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
        """Yield the drafts as events of the log: seq −1, −2, …, and what they name by such ids."""
        for place, draft in enumerate(self.drafts[: self.count], start=1):
            name, version = kind_of(draft.body)
            header = EventHeader(
                -place, self.recorded, None, name, version, place - 1, self.count, draft.causation
            )
            yield DraftEvent(header, draft.salt, None, draft=draft)

    @property
    def has_facts(self) -> bool:
        """Whether a draft says something that the fold of facts handles."""
        return any(draft.body.wire_name in FACT_EVENTS for draft in self.drafts[: self.count])

    @property
    def has_links(self) -> bool:
        """Whether a draft says something that the fold of links handles."""
        return any(draft.body.wire_name in LINK_EVENTS for draft in self.drafts[: self.count])

    def all_events(self) -> list[GatheredEvent]:
        """Return the drafts as a fold of the log would be given them, but for seqs and references.

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
    """Return a draft as the next events of a log that ends at ``basis``: −k is event basis + k."""
    cause = event.causation
    return replace(
        event,
        seq=basis + event.seq,
        body=lifted_by(event.body, basis),
        causation=basis - cause if cause is not None and cause < 0 else cause,
    )


class Gathering:
    """Follows the drafts of one transaction, over the log as it stood at the first read."""

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
        """Take the drafts that are new, and return all as they are now."""
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
        """Return a draft for the fold, which is told of births, and of embeddings of these.

        What is done to frames of the log, and closings, which cross the layers, are kept beside.
        """
        body, kind = draft.body, ""
        if isinstance(body, PutFrame):
            body, kind = msgspec.structs.replace(body, parent=None), PutFrame.wire_name
        elif isinstance(body, PutEmbedding) and body.frame < 0:
            body, kind = msgspec.structs.replace(body, frame=-body.frame), PutEmbedding.wire_name
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
            known = self._spaces.get(body.frame, ())
            self._spaces[body.frame] = (*known, body.embedding.space)

    def _close(self, place: int, target: int, by: int | None) -> None:
        """Close a frame and what hangs below it, unless it is closed already."""
        instead = self._replacements(by)
        if not self._is_open(target) or target in instead:
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
                # What stands in its place, and what is below that, does not go along.
                if child not in instead:
                    pending.append(child)
                    if self._is_open(child):
                        self._closings[child] = Closing(moment, along, by)

    def _replacements(self, frame: int | None) -> set[int]:
        """Return a frame, what took its place, what took that one's, and so on."""
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
        """Tell whether a frame is there and current."""
        if frame > 0:
            is_there = frame <= self._base.n and self._base.frames.row_of(frame) is not None
        else:
            is_there = frame in self._born
        return is_there and self._closing(frame) is None

    def _below(self, frame: int) -> list[int]:
        stored = self._base.frames.children(frame, self._base.n) if frame > 0 else []
        return [*stored, *self._children.get(frame, ())]
