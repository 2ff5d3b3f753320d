"""The fold of tags: names for ends of batches, by scope.

A tag never moves. A store refuses a name that is taken in its scope. No store writes two events
with the same name and scope; if a log has them, the first holds.
"""

from collections.abc import Sequence

from cerata.engine.events import PutTag

from ..columnar.scopes import by_name, scope_text
from ..core.projection import FoldedEvent
from .row_projection import RowProjection


class Tags(RowProjection[tuple[str, str], tuple[int, int]]):
    """Rows by (text of the scope, name): the tagged seq, and the seq of the tag's event."""

    name = "tags"
    version = 2
    handles = (PutTag,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, PutTag) and event.scope is not None:
                key = scope_text(by_name(event.scope)), body.tag
                self.rows.setdefault(key, (body.at, event.seq))
