"""Drafts of facts: the events that assert facts, from checked arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, cast

import msgspec

from cerata.engine.arguments import expect_one_of, located, wrong_type
from cerata.engine.errors import InvalidInput, NotFound, value_text
from cerata.engine.events import AssertFact, Draft, Evidence, PutFrame, Scope
from cerata.engine.json_value import exact
from cerata.engine.salted_hashes import quote_hash
from cerata.projections.columnar.times import BEGINNING, to_datetime, to_microseconds

from ..values.arguments import NO_ITEMS, listed
from ..values.facts import (
    OPEN,
    SOURCES,
    Entity,
    EvidenceText,
    FactEvidence,
    FactId,
    FactObject,
    checked_name,
    entity_name,
    fact_id,
    stored_object,
)
from ..values.frames import FrameId, frame_id
from ..values.source_line import source_line

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot


EvidenceLike = FactEvidence | FrameId | tuple[FrameId, int, int]
"""A frame, or a frame and the UTF-8 bytes [start, end) of its text."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact to assert, for `Store.graph.assert_many`; fields as in `assert_fact`."""

    subject: str | Entity
    predicate: str
    object: FactObject
    valid_from: date | str | None = None
    valid_to: date | str | None = None
    confidence: float = 1.0
    source: str = "observed"
    evidence: Sequence[EvidenceLike] = ()
    assumptions: Sequence[str] = ()
    because: FactId | None = None


def triple(value: object) -> tuple[str | Entity, str, FactObject]:
    """Return a caller's (subject, predicate, object). Raises `InvalidInput`."""
    if not isinstance(value, tuple) or len(cast("tuple[object, ...]", value)) != 3:
        raise InvalidInput(
            f"A fact must be (subject, predicate, object), not {value_text(value):.60}",  # pyright: ignore[reportUnknownArgumentType]
            remedy="Pass (subject, predicate, object), or a cerata.Assertion.",
        )
    return cast("tuple[str | Entity, str, FactObject]", value)


def assertion_draft(assertion: Assertion, scope: Scope, now_us: int) -> Draft:
    """Return the event that asserts a fact. Raises `InvalidInput`."""
    kind, value = stored_object(assertion.object)
    start = end = None
    if assertion.valid_from is not None:
        start = _time("valid_from", assertion.valid_from, BEGINNING)
    if assertion.valid_to is not None:
        end = _time("valid_to", assertion.valid_to, None)
    if end is not None and end <= (now_us if start is None else start):
        begins = "when it is recorded" if start is None else to_datetime(start).isoformat()
        raise InvalidInput(
            f"The fact would end at {to_datetime(end).isoformat()}, and begin at {begins}",
            where="valid_to",
            remedy="Pass a valid_from before valid_to, or valid_from='open' for no beginning.",
        )
    remedy = "Pass source='observed', or leave it out."
    expect_one_of("source", assertion.source, SOURCES, remedy)
    confidence: object = exact(assertion.confidence)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise wrong_type("confidence", "a number", confidence, "Pass a number from 0 to 1.")
    if not 0 <= confidence <= 1:
        raise InvalidInput(
            f"confidence must be from 0 to 1, not {value_text(confidence)}",
            remedy="Pass a number from 0 to 1.",
        )
    body = AssertFact(
        subject=entity_name("The subject", assertion.subject),
        predicate=checked_name("The predicate", assertion.predicate),
        object_kind=kind.name.lower(),
        object=value,
        valid_from=start,
        valid_to=end,
        confidence=float(confidence),
        source=assertion.source,
        evidence=() if assertion.evidence is NO_ITEMS else _evidence(assertion.evidence),
        assumptions=()
        if assertion.assumptions is NO_ITEMS
        else _assumptions(assertion.assumptions),
    )
    return Draft(
        body, scope, causation=None if assertion.because is None else fact_id(assertion.because)
    )


def _time(name: str, time: date | str, if_open: int | None) -> int | None:
    if time == OPEN:
        return if_open
    with located(name):
        return to_microseconds(time)


def _evidence(places: Iterable[EvidenceLike]) -> tuple[Evidence, ...]:
    return tuple([evidence_of(place) for place in listed("evidence", places)])


def _assumptions(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple([checked_name("An assumption", text) for text in listed("assumptions", texts)])


def evidence_of(place: EvidenceLike) -> Evidence:
    """Return a caller's evidence as an event holds it. Raises `InvalidInput`."""
    if isinstance(place, FactEvidence):
        start, end = place.start, place.end
        frame = place.frame
    elif isinstance(place, tuple):
        if len(place) != 3:
            raise InvalidInput(
                f"Evidence must be a frame or (frame, start, end), not {place!r:.60}",
                remedy="Pass a frame, or (frame, start, end) in bytes of its UTF-8.",
            )
        frame, start, end = frame_id(place[0]), exact(place[1]), exact(place[2])
    else:
        frame, start, end = frame_id(place), None, None
    if start is None and end is None:
        return Evidence(frame)
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        raise InvalidInput(
            f"The evidence [{start}, {end}) of frame {frame} is not a range of bytes",
            remedy="Pass 0 <= start < end, in bytes of the frame's UTF-8.",
        )
    return Evidence(frame, start, end)


# --- Evidence: the text of a range of a frame's bytes, and the salted hash of the range -----------


def evidence_text(snapshot: Snapshot, place: FactEvidence) -> EvidenceText:
    """Return the text and state of evidence as of a view."""
    try:
        frame = snapshot.frame_at(place.frame)
    except NotFound:
        # The frame is out of scope, or another writer named a frame that does not exist.
        return EvidenceText(place, None, f"#{place.frame}", None, is_current=False)
    if not isinstance(snapshot.layers.event(frame.id).body, PutFrame):  # it was erased
        return EvidenceText(place, None, f"#{place.frame}", None, is_current=frame.active)
    data = frame.text.encode()[place.start : place.end]
    salt = _salt_of(snapshot, frame.id)
    return EvidenceText(
        place,
        data.decode(errors="replace"),
        source_line(frame),
        None if place.quote is None or salt is None else quote_hash(salt, data) == place.quote,
        is_current=frame.active,
    )


def quoted(snapshot: Callable[[], Snapshot], draft: Draft) -> Draft:
    """Return an assertion with the salted hash of each range of bytes in its evidence.

    Cost: a read of each frame that has a range; without ranges ``view`` is not called.

    Raises:
        NotFound: a frame does not exist.
        InvalidInput: a range is not within its frame's text, or cuts a character.
    """
    body = draft.body
    if not isinstance(body, AssertFact) or not body.evidence:
        return draft
    if all(place.end is None for place in body.evidence):
        return draft
    places = tuple(_hashed(snapshot(), place) for place in body.evidence)
    return msgspec.structs.replace(draft, body=msgspec.structs.replace(body, evidence=places))


def _salt_of(snapshot: Snapshot, frame: int) -> bytes | None:
    """Return the salt that keys the quotes of a frame; None after an erasure."""
    return snapshot.layers.event(frame).salt


def _hashed(snapshot: Snapshot, place: Evidence) -> Evidence:
    if place.end is None:
        return place
    frame = snapshot.frame_at(place.frame)
    salt = _salt_of(snapshot, frame.id)
    if salt is None:
        return place
    data = frame.text.encode()
    where = f"evidence, frame {place.frame:,}"
    if place.end > len(data):
        raise InvalidInput(
            f"The evidence ends at byte {place.end:,} of a text of {len(data):,}",
            where=where,
            remedy="Pass 0 <= start < end, in bytes of the frame's UTF-8.",
        )
    part = data[place.start : place.end]
    try:
        part.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The evidence [{place.start}, {place.end}) cuts a character in two",
            where=where,
            remedy="Count bytes of the UTF-8, not characters.",
        ) from error
    return msgspec.structs.replace(place, quote=quote_hash(salt, part))
