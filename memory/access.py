"""Access: what was shown to models and used, as events and as counts.

Owns the event that a recall writes, and the counts of a frame as a view sees them. Counts change
no ranking but where a profile says so, and then those of use: what is shown more is not for that
more worth showing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.events import JsonValue, RecallContext
from cerata.engine.salted_hashes import context_hash
from cerata.projections.accesses import NEVER, Counts
from cerata.projections.query import Query
from cerata.projections.times import to_datetime
from cerata.retrieval.strength import Use, days_between

if TYPE_CHECKING:
    from .recalling import Recalled
    from .view import View


@dataclass(frozen=True, slots=True)
class Access:
    """How often recorded recalls showed a frame, and it was used; when last, None for never.

    Counted are the events within the view's scope, up to its basis.
    """

    frame: int
    shown: int
    last_shown: datetime | None
    used: int
    last_used: datetime | None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "frame": self.frame,
            "shown": self.shown,
            "last_shown": None if self.last_shown is None else self.last_shown.isoformat(),
            "used": self.used,
            "last_used": None if self.last_used is None else self.last_used.isoformat(),
        }


def access_of(view: "View", frame: int) -> Access:
    """Return the counts of a frame. Cost: O(1); once for each event that counts, all rows."""
    shown, last_shown, used, last_used = _counts_of(view, frame)
    return Access(frame, shown, _time(last_shown), used, _time(last_used))


def use_of(view: "View", frame: int, now: int) -> Use:
    """Return how often a frame was used, and when, in days before a time in microseconds.

    It is when the view's last event was recorded, and not the clock's: the same basis then gives
    the same answer at any time.
    """
    _, _, used, last_used = _counts_of(view, frame)
    age = days_between(view.layers.created(frame), now)
    return Use(age, used, days_between(last_used, now))


def uses_among(view: "View", frames: Iterable[int]) -> dict[int, Use]:
    """Return the uses of those frames that were used, by their ids.

    Cost: a look-up for each; as `access_of` for the first of a state.
    """
    now = view.head.recorded
    found = {one: use_of(view, one, now) for one in frames if view.counts_of(one)}
    return {one: use for one, use in found.items() if use.count}


def all_access(view: "View") -> list[Access]:
    """Return the counts of all frames that were shown or used, the most used first.

    Of those as often used the most shown, then the newest. Cost: a pass over all counts.
    """
    every = (access_of(view, one) for one in view.counted())
    counted = (one for one in every if one.shown or one.used)
    return sorted(counted, key=lambda one: (-one.used, -one.shown, -view.layers.moment(one.frame)))


def _counts_of(view: "View", frame: int) -> Counts:
    """Return the counts of a frame over the scopes within the view's."""
    shown, last_shown, used, last_used = NEVER
    for row in view.counts_of(frame):
        shown, last_shown = shown + row[0], max(last_shown, row[1])
        used, last_used = used + row[2], max(last_used, row[3])
    return shown, last_shown, used, last_used


def _time(recorded: int) -> datetime | None:
    return to_datetime(recorded) if recorded else None


def recall_of(recalled: "Recalled") -> RecallContext:
    """Return the event that says that a context was shown.

    Of the frames and facts that it has, the ids; those of chunks that joined another, too.
    """
    search, telling, context = recalled.search, recalled.telling, recalled.context
    is_fact = set(recalled.facts)
    shown = [one for item in context.items for one in (item.id, *item.joined)]
    frames = tuple(one for one in shown if one not in is_fact)
    facts = tuple(one for one in shown if one in is_fact)
    query, where, vector, tokens = search.query, search.where, search.vector, search.tokens
    return RecallContext(
        query=repr(query) if isinstance(query, Query) else query,
        basis=context.basis,
        tokenizer=context.tokenizer,
        profile=search.profile.name,
        profile_version=search.profile.version,
        max_tokens=context.max_tokens,
        entry_tokens=telling.entry_tokens,
        form=telling.form,
        context=context_hash(_salts_of(search.view, (*frames, *facts)), context.text),
        policy=telling.policy.name,
        policy_version=telling.policy.version,
        order=telling.order,
        framing=recalled.is_framed,
        where=None if where is None else msgspec.json.encode(where.to_dict()).decode(),
        mode=search.mode,
        space=None if vector is None else vector.key[0],
        vector=None if vector is None else vector.query.astype("<f4").tobytes(),
        tokens_space=None if tokens is None else tokens.key[0],
        tokens=None if tokens is None else tokens.tokens.tobytes(),
        rerank=search.is_reranked,
        approximate=vector is not None and vector.approximate,
        frames=frames,
        facts=facts,
        omitted=tuple(one for one in context.omitted if one not in is_fact),
        omitted_facts=tuple(one for one in context.omitted if one in is_fact),
    )


def _salts_of(view: "View", numbers: Iterable[int]) -> list[bytes | None]:
    """Return the salts of events that a view shows, in the order of their numbers."""
    return [view.layers.salt(number) for number in numbers]
