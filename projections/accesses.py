"""The fold that knows what was shown and used: how often each frame was, and when last.

Owns counts by scope and frame. A frame that an event names twice counts once. What names no frame
has a row, too, which nobody reads: a fold of these events alone knows no frames.
"""

from collections.abc import Sequence

from cerata.engine.events import AccessFrames, RecallContext

from .projection import FoldedEvent
from .rows import RowProjection
from .scopes import by_name, scope_text

Counts = tuple[int, int, int, int]
"""How often a frame was shown, and when last; how often it was used, and when last.

Times are in microseconds since 1970 UTC, 0 where there is none.
"""

NEVER: Counts = (0, 0, 0, 0)


class Accesses(RowProjection[tuple[int, str], Counts]):
    """Rows of (frame, scope of the events) and `Counts`."""

    name = "access"
    handles = (RecallContext, AccessFrames)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body, scope = event.body, scope_text(by_name(event.scope))
            if not isinstance(body, RecallContext | AccessFrames):
                continue
            for frame in dict.fromkeys(body.frames):
                shown, last_shown, used, last_used = self.rows.get((frame, scope), NEVER)
                if isinstance(body, RecallContext):
                    shown, last_shown = shown + 1, event.recorded
                else:
                    used, last_used = used + 1, event.recorded
                self.rows[frame, scope] = (shown, last_shown, used, last_used)
