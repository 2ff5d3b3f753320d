"""Dates in the texts of drafts: `content_dates` of frames whose writer gives none.

Owns the choice of the text and of its time. Leaves out the phrases and their meaning
(`cerata.retrieval.text_dates`). The dates are found once, by the write: no fold and no read looks
for them. The hash of a call leaves them out, since they are no argument of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.events import Draft, PutFrame
from cerata.retrieval.text_dates import dates_of, phrases_in

if TYPE_CHECKING:
    from .session import WriteSession


def with_text_dates(
    session: WriteSession, drafts: Sequence[Draft], *, are_of_now: bool = True
) -> Sequence[Draft]:
    """Return drafts whose frames without content dates have the dates that their texts name.

    Args:
        session: The session that will write the drafts.
        drafts: Events; those that put no frame with a text are returned as they are.
        are_of_now: If True, texts without ``created`` are of the time of the write; if False, as
            for files, their relative dates do not count.
    """
    texts: list[str] = []
    places: list[int] = []
    for place, draft in enumerate(drafts):
        body = draft.body
        if isinstance(body, PutFrame) and not body.content_dates:
            text = body.text or body.search_text
            if text:
                texts.append(text)
                places.append(place)
    phrases = phrases_in(texts)
    if not phrases:
        return drafts
    now_us = _time_of_write(session) if are_of_now else None
    created = [_created(drafts[place], now_us) for place in places]
    dated = [*drafts]
    for index, dates in dates_of(phrases, created).items():
        draft = dated[places[index]]
        dated_body = msgspec.structs.replace(draft.body, content_dates=dates)
        dated[places[index]] = msgspec.structs.replace(draft, body=dated_body)
    return dated


def _created(draft: Draft, now_us: int | None) -> int | None:
    created = draft.body.created if isinstance(draft.body, PutFrame) else None
    return now_us if created is None else created


def _time_of_write(session: WriteSession) -> int:
    """Return the clock; in the repetition of a keyed transaction the time of its first run."""
    end = session.end_of_run
    if end is not None:
        return session.log.event(end + 1).recorded
    return max(session.log.environment.now_us(), session.log.head.recorded)
