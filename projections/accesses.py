"""The fold that knows what was shown and used: how often each frame was, and when last.

Owns counts by scope and frame. A frame that an event names twice counts once. What names no frame
has a row, too, which nobody reads: a fold of these events alone knows no frames.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from cerata.engine.events import AccessFrames, RecallContext, Scope

from .projection import FoldedEvent
from .rows import RowProjection
from .scopes import by_name, read_scope, scope_text

Counts = tuple[int, int, int, int]
"""How often a frame was shown, and when last; how often it was used, and when last.

Times are in microseconds since 1970 UTC, 0 where there is none.
"""

NEVER: Counts = (0, 0, 0, 0)


class Accesses(RowProjection[tuple[int, str], Counts]):
    """Rows of (frame, scope of the events) and `Counts`."""

    name = "access"
    handles = (RecallContext, AccessFrames)

    @cached_property
    def by_frame(self) -> Mapping[int, Sequence[tuple[Scope, Counts]]]:
        """The rows of each frame, of a state that no longer changes: a view's."""
        found: dict[int, list[tuple[Scope, Counts]]] = {}
        scopes: dict[str, Scope] = {}
        for (frame, text), counts in self.rows.in_no_order():
            scope = scopes.get(text) or scopes.setdefault(text, read_scope(text))
            found.setdefault(frame, []).append((scope, counts))
        return found

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if not isinstance(body, RecallContext | AccessFrames) or event.scope is None:
                continue
            scope = scope_text(by_name(event.scope))
            for frame in dict.fromkeys(body.frames):
                shown, last_shown, used, last_used = self.rows.get((frame, scope), NEVER)
                if isinstance(body, RecallContext):
                    shown, last_shown = shown + 1, event.recorded
                else:
                    used, last_used = used + 1, event.recorded
                self.rows[frame, scope] = (shown, last_shown, used, last_used)
