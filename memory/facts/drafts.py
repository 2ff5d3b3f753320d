"""Drafts of facts: the events that assert facts, from checked arguments."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

from cerata.engine.arguments import expect_one_of, located, wrong_type
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import AssertFact, Draft, Evidence, Scope
from cerata.engine.json_value import exact
from cerata.projections.columnar.intervals import BEGINNING
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..values.arguments import listed
from ..values.facts import (
    OPEN,
    SOURCES,
    Entity,
    FactEvidence,
    FactId,
    FactObject,
    checked_name,
    entity_name,
    fact_id,
    stored_object,
)
from ..values.frames import FrameId, frame_id

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
        evidence=() if assertion.evidence == () else _evidence(assertion.evidence),
        assumptions=() if assertion.assumptions == () else _assumptions(assertion.assumptions),
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
