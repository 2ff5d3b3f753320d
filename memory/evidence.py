"""Evidence: from a frame and a range of its bytes to the text that says so, and back to a hash.

Owns what is read of a frame for it. Where evidence is kept is the business of `cerata.projections`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import AssertFact, Draft, Evidence, PutFrame
from cerata.engine.salted_hashes import quote_hash

from .fact_values import EvidenceText, FactEvidence

if TYPE_CHECKING:
    from .view import View


def evidence_text(view: "View", place: FactEvidence) -> EvidenceText:
    """Return what evidence says in a view."""
    try:
        frame = view.frame(place.frame)
    except NotFound:
        # Another writer may name what is not there, and a scope hides it.
        return EvidenceText(place, None, f"#{place.frame}", None, is_current=False)
    if _is_erased(view, frame.id):
        return EvidenceText(place, None, f"#{place.frame}", None, is_current=frame.active)
    data, salt = frame.text.encode()[place.start : place.end], _salt_of(view, frame.id)
    return EvidenceText(
        place,
        data.decode(errors="replace"),
        view.source_of(frame),
        None if place.quote is None or salt is None else quote_hash(salt, data) == place.quote,
        is_current=frame.active,
    )


def quoted(view: Callable[[], "View"], draft: Draft) -> Draft:
    """Return an assertion with the salted hash of each range of bytes that it names as evidence.

    Cost: a read of each frame that is named with a range; where none is, ``view`` is not called.

    Raises:
        NotFound: a frame is not there. InvalidInput: the range is not one of its text's.
    """
    body = draft.body
    if not isinstance(body, AssertFact) or all(one.end is None for one in body.evidence):
        return draft
    places = tuple(_hashed(view(), place) for place in body.evidence)
    return msgspec.structs.replace(draft, body=msgspec.structs.replace(body, evidence=places))


def _is_erased(view: "View", frame: int) -> bool:
    return not isinstance(view.layers.event(frame).body, PutFrame)


def _salt_of(view: "View", frame: int) -> bytes | None:
    """Return the salt that keys the quotes of a frame; an erasure takes it away."""
    return view.layers.event(frame).salt


def _hashed(view: "View", place: Evidence) -> Evidence:
    if place.end is None:
        return place
    frame = view.frame(place.frame)
    salt = _salt_of(view, frame.id)
    if salt is None:
        return place
    data = frame.text.encode()
    where = f"evidence, frame {place.frame:,}"
    if place.end > len(data):
        raise InvalidInput(
            f"The evidence ends at byte {place.end:,} of a text of {len(data):,}",
            where=where,
            remedy="Give 0 <= start < end, in bytes of the frame's UTF-8.",
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
