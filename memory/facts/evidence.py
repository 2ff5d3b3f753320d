"""Evidence: the text of a range of a frame's bytes, and the salted hash of the range.

Owns the reads of frames for evidence. Leaves out the storage of evidence (`cerata.projections`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import AssertFact, Draft, Evidence, PutFrame
from cerata.engine.salted_hashes import quote_hash

from ..values.facts import EvidenceText, FactEvidence
from ..values.source_line import source_line

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot


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
