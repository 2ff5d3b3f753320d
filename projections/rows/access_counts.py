"""The fold of accesses: how often each frame was shown and used, and when last.

Owns counts by scope and frame. A frame that an event names twice counts once. This fold handles
no frame events, so an id that names no frame gets a row as well; no reader looks it up.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from cerata.engine.events import AccessFrames, RecallContext, Scope

from ..columnar.scopes import by_name, read_scope, scope_text
from ..core.projection import FoldedEvent
from .row_projection import RowProjection

Counts = tuple[int, int, int, int]
"""How often a frame was shown, and when last; how often a frame was used, and when last.

Times are in microseconds since 1970 UTC; 0 means never.
"""

NEVER: Counts = (0, 0, 0, 0)


class Accesses(RowProjection[tuple[int, str], Counts]):
    """Rows of (frame, scope of the events) and `Counts`."""

    name = "access"
    handles = (RecallContext, AccessFrames)

    @cached_property
    def by_frame(self) -> Mapping[int, Sequence[tuple[Scope, Counts]]]:
        """The rows of each frame; only for a state that no longer changes, such as a view's."""
        counts_of: dict[int, list[tuple[Scope, Counts]]] = {}
        scopes: dict[str, Scope] = {}
        for (frame, text), counts in self.rows.range():
            scope = scopes.get(text) or scopes.setdefault(text, read_scope(text))
            counts_of.setdefault(frame, []).append((scope, counts))
        return counts_of

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if not isinstance(body, RecallContext | AccessFrames) or event.scope is None:
                continue
            scope = scope_text(by_name(event.scope))
            for frame in dict.fromkeys(body.frames):
                shows, last_shown, uses, last_used = self.rows.get((frame, scope), NEVER)
                if isinstance(body, RecallContext):
                    shows += 1
                    last_shown = event.recorded
                else:
                    uses += 1
                    last_used = event.recorded
                self.rows[frame, scope] = (shows, last_shown, uses, last_used)
