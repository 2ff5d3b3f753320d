"""Projections of a user's own, for tests: what was spent on each tag."""

from collections.abc import Sequence

from cerata import EventBody, RowProjection, event
from cerata.projections.core.projection import FoldedEvent


@event("testSpent")
class Spent(EventBody, frozen=True):
    """Money was spent on something."""

    tag: str
    cents: int


class Spending(RowProjection[str, int]):
    """Cents by tag; a tag that is even again has no row."""

    name = "spending"
    handles = (Spent,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for one in events:
            body = one.body
            assert isinstance(body, Spent)
            if body.tag == "bad":
                raise ZeroDivisionError("cannot divide")
            cents = self.rows.get(body.tag, 0) + body.cents
            if cents:
                self.rows[body.tag] = cents
            else:
                del self.rows[body.tag]
