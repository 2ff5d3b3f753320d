"""Transactions: writes gathered, to be appended as one batch when the block ends."""

from collections.abc import Sequence

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Draft, PutFrame, Scope
from cerata.engine.limits import BATCH_EVENTS_MAX

from .drafting import FrameFields
from .values import Receipt


class Transaction:
    """What a ``with store.transaction()`` block has gathered; ``receipt`` is there afterwards."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.receipt: Receipt | None = None

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

    def fields_of(self, place: int) -> tuple[FrameFields, Scope]:
        """Return fields and scope of the frame that this batch will put at −``place``."""
        body = self.drafts[-place - 1].body if -place <= len(self.drafts) else None
        if not isinstance(body, PutFrame):
            raise NotFound(f"There is no frame {place} in this transaction")
        fields = FrameFields(
            kind=body.kind,
            role=body.role,
            uri=body.uri,
            title=body.title,
            tags=body.tags,
            labels=body.labels,
            metadata=body.metadata,
        )
        return fields, self.drafts[-place - 1].scope
