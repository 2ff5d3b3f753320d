"""Access: what was shown to models and used, as events and as counts.

Owns the event that a recall writes, and the counts of a frame as a view sees them. Counts change no
ranking: what is shown more is not for that more worth showing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.events import JsonValue, RecallContext
from cerata.engine.integrity import hash_bytes
from cerata.projections.accesses import NEVER, Accesses
from cerata.projections.query import Query
from cerata.projections.scopes import is_within, read_scope
from cerata.projections.times import to_datetime
from cerata.retrieval.context import Form

from .lanes import Search
from .values import Context

if TYPE_CHECKING:
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
    """Return the counts of a frame. Cost: a pass over the rows of the projection ``access``."""
    shown, last_shown, used, last_used = NEVER
    for (one, scope), row in view.own(Accesses.name).rows.items():
        if one != frame or (view.scope and not is_within(read_scope(scope), view.scope)):
            continue
        shown, last_shown = shown + row[0], max(last_shown, row[1])
        used, last_used = used + row[2], max(last_used, row[3])
    return Access(frame, shown, _time(last_shown), used, _time(last_used))


def _time(recorded: int) -> datetime | None:
    return to_datetime(recorded) if recorded else None


def recall_of(
    search: Search, context: Context, facts: Sequence[int], *, entry_tokens: int, form: Form
) -> RecallContext:
    """Return the event that says that a context was shown; ``facts`` are those that it chose from.

    Of the frames and facts that it has, the ids; those of chunks that joined another, too.
    """
    is_fact = set(facts)
    shown = [one for item in context.items for one in (item.id, *item.joined)]
    query, where, vector, tokens = search.query, search.where, search.vector, search.tokens
    return RecallContext(
        query=repr(query) if isinstance(query, Query) else query,
        basis=context.basis,
        tokenizer=context.tokenizer,
        profile=search.profile.name,
        profile_version=search.profile.version,
        max_tokens=context.max_tokens,
        entry_tokens=entry_tokens,
        form=form,
        context=hash_bytes(context.text.encode()),
        where=None if where is None else msgspec.json.encode(where.to_dict()).decode(),
        mode=search.mode,
        space=None if vector is None else vector.key[0],
        vector=None if vector is None else vector.query.astype("<f4").tobytes(),
        tokens_space=None if tokens is None else tokens.key[0],
        tokens=None if tokens is None else tokens.tokens.tobytes(),
        rerank=search.is_reranked,
        frames=tuple(one for one in shown if one not in is_fact),
        facts=tuple(one for one in shown if one in is_fact),
        omitted=tuple(one for one in context.omitted if one not in is_fact),
        omitted_facts=tuple(one for one in context.omitted if one in is_fact),
    )
