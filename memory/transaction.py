"""Transactions: writes gathered, to be appended as one batch when the block ends."""

from collections.abc import Callable, Sequence

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, PutFrame
from cerata.engine.limits import BATCH_EVENTS_MAX

from .gathered import Gathering
from .values import Receipt
from .view import View


class Transaction:
    """What a ``with store.transaction()`` block has gathered; ``receipt`` is there afterwards."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.receipt: Receipt | None = None
        self._base: View | None = None
        self._gathering: Gathering | None = None

    def add(self, drafts: Sequence[Draft]) -> Receipt:
        """Gather events; their receipt names them by −place in the batch, from 1."""
        if len(self.drafts) + len(drafts) > BATCH_EVENTS_MAX:
            raise InvalidInput(
                f"The transaction would pass {BATCH_EVENTS_MAX:,} events",
                remedy="Write it in several transactions.",
            )
        first = len(self.drafts) + 1
        self.drafts += drafts
        places = tuple(-place for place in range(first, len(self.drafts) + 1))
        made = tuple(
            place
            for place, draft in zip(places, drafts, strict=True)
            if isinstance(draft.body, PutFrame)
        )
        return Receipt(
            id=made[0] if made else places[0], ids=made, seqs=places, head=None, durable=False
        )

    def view(self, newest: Callable[[], View]) -> View:
        """Return what reads in the block see; ``newest`` gives the log's view for the first."""
        if self._base is None or self._gathering is None:
            self._base = newest()
            recorded = self._base.now_us or 0
            self._gathering = Gathering(self._base.base, recorded)
        return self._base.over(self._gathering.through(self.drafts))
