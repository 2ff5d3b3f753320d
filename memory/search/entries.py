"""Entries: from the facts and frames of a result to the entries of its context.

Owns the source, speaker and place of an entry, and the reads of events ahead. Leaves out the choice
of frames (`recall`) and filling the budget (`cerata.retrieval.context.packing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import Corrupt
from cerata.engine.events import PutFrame
from cerata.engine.late import late
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.conversations import name_of
from cerata.retrieval.context.entries import Entry
from cerata.retrieval.context.policies import specificity

from ..snapshot import frame_conversion
from ..values.arguments import SPAN, header_size
from ..values.source_line import DAY_US, day_text, heading_text, source_text, speaker_text

if TYPE_CHECKING:
    from cerata.engine.events import Event
    from cerata.retrieval.context.policies import ContextPolicy, Tier

    from ..facts import search as fact_search
    from ..facts.search import FactHit
    from ..frames import access as accesses
    from .result import SearchResult
else:
    fact_search = late("cerata.memory.facts.search")
    accesses = late("cerata.memory.frames.access")

_AHEAD: Final = 32
"""Frames that are read together: about as many as a context of 1,500 tokens shows."""


class FrameEntries:
    """The entries of frames, which a context reads in order until the budget is full.

    - The events of 32 frames are read together, when the first of them is read.
    """

    def __init__(self, result: SearchResult, frames: Sequence[int], policy: ContextPolicy) -> None:
        self._snapshot = result.snapshot
        self._frames = frames
        self._policy = policy
        self._tier_of = _tiers(result, policy)
        # Else each frame is current, and no source names a replacement.
        self._has_replaced = result.request.include_superseded
        self._read = 0
        self._events: dict[int, Event] = {}
        self._turns: dict[int, tuple[int, int]] = {}

    def entry(self, place: int) -> Entry:
        """Return the entry of the frame at a place.

        Raises:
            Corrupt: the frame, or the text of a chunk of it, is damaged.
        """
        number = self._frames[place]
        if place >= self._read:
            self._read_from(place)
        layers = self._snapshot.layers
        event = self._events.pop(number, None) or layers.event(number)
        body = event.body
        if type(body) is not PutFrame:
            body = frame_conversion.frame_body(layers, event)
        text = body.text or ""
        if body.chunk_count is not None:
            text = frame_conversion.text_of(layers, number, body)
        document, start, header = (None, 0, 0)
        if SPAN in body.metadata:
            document, start, header = _place_in(text, body)
        stands_for = False
        if not text or text.isspace():
            text, stands_for = _in_place_of(text, body)
        created = event.recorded if body.created is None else body.created
        day = day_text(created // DAY_US)
        replaced = self._replaced(number) if self._has_replaced else ""
        speaker = ""
        if body.role and self._policy.by_session:
            speaker = speaker_text(body.role)
        return Entry(
            number,
            source_text(number, body.title, body.uri, day) + replaced,
            text,
            document,
            start,
            time=created,
            tier="full" if self._tier_of is None else self._tier_of(number),
            stands_for=stands_for,
            header=header,
            speaker=speaker,
            session=name_of(body, event.scope or ()) if speaker else None,
            heading=heading_text(body.title, body.uri, day) + replaced if speaker else "",
            turn=self._turns.get(number) or self._turn(number) if speaker else (0, 0),
        )

    def _read_from(self, place: int) -> None:
        """Read the events of the next frames of the log."""
        self._read = place + _AHEAD
        seqs = sorted([frame for frame in self._frames[place : self._read] if frame > 0])
        # A damaged event must not hide its neighbours: they are read one by one.
        with suppress(Corrupt):
            events = self._snapshot.layers.log.events_at(seqs)
            self._events = dict(zip(seqs, events, strict=True))

    def _turn(self, number: int) -> tuple[int, int]:
        """Return the place of a turn in its conversation; looks up all that are read together."""
        frames = self._frames[self._read - _AHEAD : self._read]
        places = self._snapshot.layers.places_in_conversation(frames)
        self._turns = dict(zip(frames, places, strict=True))
        return self._turns[number]

    def _replaced(self, number: int) -> str:
        """Return the end of a source that names the replacement of a frame that is not current."""
        snapshot = self._snapshot
        if snapshot.layers.closing_of(number) is None:
            return ""
        by = snapshot.frame_at(number).superseded_by
        return "" if by is None else f" · superseded by #{by}"


def _place_in(text: str, body: PutFrame) -> tuple[int | None, int, int]:
    """Return a chunk's document, the start of its text there, and the size of a repeated header.

    A turn counts as a whole.
    """
    header = header_size(text, body.metadata)
    size = len(text) - header
    match body.metadata[SPAN]:
        case [int() as start, int() as end] if end - start == size and not body.role:
            return body.parent, start, header
        case _:
            return None, 0, 0


def _in_place_of(text: str, body: PutFrame) -> tuple[str, bool]:
    """Return the text of a frame without words, and whether it is only the size of the frame.

    Every result is shown or omitted.
    """
    found = body.search_text
    if found and not found.isspace():
        return found, False
    size = body.blob.size if body.blob is not None else len(text.encode())
    return f"({size:,} {'byte' if size == 1 else 'bytes'})", True


def _tiers(result: SearchResult, policy: ContextPolicy) -> Callable[[int], Tier] | None:
    """Return the function from a frame to its tier, by its age, its uses and the question.

    None if a policy has full texts alone.
    """
    if policy.tier_days is None:
        return None
    snapshot = result.snapshot
    exactly = specificity(result.request.query)
    now = snapshot.head.recorded
    return lambda frame: policy.tier(accesses.use_of(snapshot, frame, now).effective_age, exactly)


def entry_of_fact(hit: FactHit, contradicting: Sequence[int]) -> Entry:
    """Return the entry of a fact; ``contradicting`` are the facts that cannot be true beside it."""
    fact = hit.fact
    start = fact.known.start
    time = 0 if start is None else to_microseconds(start)
    text = fact_search.fact_text(fact, contradicting)
    return Entry(fact.id, fact_search.source_of_fact(fact), text, time=time)
