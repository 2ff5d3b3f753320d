"""Access: which frames models were shown and used, as events and as counts.

Owns the event that a recall writes, and the counts of a frame as of a view. Counts change a ranking
only if a profile has an importance, and then only the counts of uses: a frame that is shown more
often is not more useful for that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.events import JsonValue, RecallContext
from cerata.engine.salted_hashes import context_hash
from cerata.projections.columnar.times import to_datetime
from cerata.projections.fulltext.query import Query
from cerata.projections.rows.access_counts import NEVER, Counts
from cerata.retrieval.base_level_activation import Use, days_between

from ..snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from ..search.recall import Recalled


@dataclass(frozen=True, slots=True)
class Access:
    """How often recorded recalls showed a frame, how often it was used, and when last.

    - The counts cover events within the view's scope, up to its basis.
    - A time before the first event is unset (None).
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


def access_of(snapshot: Snapshot, frame: int) -> Access:
    """Return the counts of a frame. Cost: O(1); the first call of a state reads all rows."""
    shown_count, last_shown, used_count, last_used = _counts_of(snapshot, frame)
    return Access(frame, shown_count, _time(last_shown), used_count, _time(last_used))


def use_of(snapshot: Snapshot, frame: int, now: int) -> Use:
    """Return how often a frame was used, and when, in days before ``now`` in microseconds.

    ``now`` is the recorded time of the view's last event, not the clock's, so the same basis gives
    the same result at any time.
    """
    _, _, used, last_used = _counts_of(snapshot, frame)
    age = days_between(snapshot.layers.created(frame), now)
    return Use(age, used, days_between(last_used, now))


def uses_among(snapshot: Snapshot, frames: Iterable[int]) -> dict[int, Use]:
    """Return the uses of the frames that were used, by id.

    Cost: a look-up for each frame; the first of a state as `access_of`.
    """
    now = snapshot.head.recorded
    uses = {frame: use_of(snapshot, frame, now) for frame in frames if snapshot.counts_of(frame)}
    return {frame: use for frame, use in uses.items() if use.count}


def all_access(snapshot: Snapshot) -> list[Access]:
    """Return the counts of all frames that were shown or used, the most used first.

    Ties go to the frame shown most often, then to the newest. Cost: a pass over all counts.
    """
    accesses = (access_of(snapshot, frame) for frame in snapshot.accessed_frames())
    counted = (access for access in accesses if access.shown or access.used)
    return sorted(
        counted,
        key=lambda access: (-access.used, -access.shown, -snapshot.layers.moment(access.frame)),
    )


def _counts_of(snapshot: Snapshot, frame: int) -> Counts:
    """Return the counts of a frame over the scopes within the view's."""
    shown_count, last_shown, used_count, last_used = NEVER
    for row in snapshot.counts_of(frame):
        shown_count, last_shown = shown_count + row[0], max(last_shown, row[1])
        used_count, last_used = used_count + row[2], max(last_used, row[3])
    return shown_count, last_shown, used_count, last_used


def _time(recorded: int) -> datetime | None:
    return to_datetime(recorded) if recorded else None


def recall_of(recalled: "Recalled") -> RecallContext:
    """Return the event that records a shown context.

    The event has the ids of the context's frames and facts, joined chunks included.
    """
    search = recalled.search
    telling = recalled.telling
    context = recalled.context
    is_fact = set(recalled.facts)
    numbers = [number for item in context.items for number in (item.id, *item.joined)]
    frames = tuple(number for number in numbers if number not in is_fact)
    facts = tuple(number for number in numbers if number in is_fact)
    query = search.query
    where = search.where
    vector = search.vector
    tokens = search.tokens
    return RecallContext(
        query=repr(query) if isinstance(query, Query) else query,
        basis=context.basis,
        tokenizer=context.tokenizer,
        profile=search.profile.name,
        profile_version=search.profile.version,
        max_tokens=context.max_tokens,
        entry_tokens=telling.entry_tokens,
        form=telling.form,
        context=context_hash(_salts_of(search.snapshot, (*frames, *facts)), context.text),
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
        omitted=tuple(number for number in context.omitted if number not in is_fact),
        omitted_facts=tuple(number for number in context.omitted if number in is_fact),
    )


def _salts_of(snapshot: Snapshot, numbers: Iterable[int]) -> list[bytes | None]:
    """Return the salts of events that a view shows, in the order of their numbers."""
    return [snapshot.layers.salt(number) for number in numbers]
