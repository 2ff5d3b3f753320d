"""Blocks: the drafts of a transaction, to be appended as one batch when its block ends.

Owns the drafts, the log of calls that an idempotency key covers, and the view that reads in the
block use. Leaves out the checks (`validation`), the append (`session`), and the object that callers
get (`transaction`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import TYPE_CHECKING
from weakref import ref

import msgspec

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    MAKERS,
    DeleteFrame,
    Draft,
    ScopeValue,
    SupersedeFrame,
)
from cerata.engine.json_value import PendingId
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.projections.columnar.scopes import tenant_key

from ..values.arguments import arguments_hash
from ..values.frames import Receipt
from ..values.pending_ids import PendingIds
from .author import NO_AUTHOR, Author
from .recent_triples import hashes_of

if TYPE_CHECKING:
    from cerata.engine.log import KeyUse

    from ..snapshot.pending import PendingBuilder
    from ..snapshot.snapshot import Snapshot
    from .validation import BatchChecks


class Block:
    """A ``with store.transaction()`` block of one thread or task.

    - The block is open while its generator, ``steps``, waits at the ``yield``. A ``finally`` alone
      cannot close it: a recursion that is too deep ends a generator before any statement of it
      runs.
    - ``author`` gives the actor and reason of calls in the block that have none.
    """

    steps: ref[GeneratorType[object, None, None]] | None = None

    def __init__(
        self,
        checks: BatchChecks,
        is_current: Callable[[Block], bool],
        find: Callable[[ScopeValue], KeyUse | None] | None = None,
        author: Author = NO_AUTHOR,
    ) -> None:
        self.drafts: list[Draft] = []
        self.triples = set[int]()
        """The `hashes_of` each draft."""
        self.payloads: list[bytes] = []
        """The encoded payload of each draft, from the check of its call."""
        self.receipt: Receipt | None = None
        """The receipt of the batch, after the block."""
        self.first: KeyUse | None = None
        """The first use of the block's key, if this block is a repetition."""
        self.author = author
        self.notices = dict[str, None]()
        """The notices of the block's calls."""
        this = ref(self)

        def is_inside() -> bool:
            block = this()
            return block is not None and is_current(block)

        # Weak, since receipts share it and must not hold the drafts or the session.
        self.ids = PendingIds(is_inside)
        self._checks = checks
        self._find = find
        self._tenants = dict[str, ScopeValue]()
        self._calls: list[bytes] = []
        self._base: Snapshot | None = None
        # None while drafts are folded: after an interrupt a new one folds all of them.
        self._builder: PendingBuilder | None = None

    def end_with(self, receipt: Receipt) -> None:
        """Take the receipt of the block's batch: ids of the block become seqs of it."""
        if receipt.seqs:
            self.ids.batch = receipt.seqs[0], receipt.seqs[-1]
        self.receipt = replace(receipt, notices=tuple(self.notices)) if self.notices else receipt

    @property
    def is_open(self) -> bool:
        """True if the block has begun and not ended."""
        steps = None if self.steps is None else self.steps()
        return steps is not None and steps.gi_suspended

    def add(self, drafts: Sequence[Draft]) -> Receipt:
        """Add events; their receipt names them by −place in the batch, from 1.

        Args:
            drafts: The events, with scopes within the store's.

        Raises:
            InvalidInput, NotFound, Conflict: a draft cannot be stored; none of the drafts was
                added.
        """
        if not drafts:
            raise InvalidInput("A batch needs at least one event", remedy="Pass one draft or more.")
        if len(self.drafts) + len(drafts) > BATCH_EVENTS_MAX:
            raise InvalidInput(
                f"The transaction would pass {BATCH_EVENTS_MAX:,} events",
                remedy="Write the events in several transactions.",
            )
        self.check_whole()
        # Draw the salts now: evidence may quote a frame of the block, which needs its salt.
        drafts = self._checks.salted(drafts)
        first = len(self.drafts) + 1
        try:
            self.drafts += drafts
            payloads = self._checked(first)
        except BaseException:
            del self.drafts[first - 1 :]
            raise
        self._checks.keep()
        self.triples.update(hashed for draft in drafts for hashed in hashes_of(draft.body))
        # Keep this last: more drafts than payloads shows an interrupt, see `check_whole`.
        self.payloads += payloads
        places = tuple(PendingId(-place) for place in range(first, len(self.drafts) + 1))
        new_ids = tuple(
            place
            for place, draft in zip(places, drafts, strict=True)
            if draft.body.wire_name in MAKERS
        )
        return Receipt(
            id=new_ids[0] if new_ids else places[0],
            ids=new_ids,
            seqs=places,
            head=None,
            durable=False,
            replaced=tuple(
                draft.body.old for draft in drafts if isinstance(draft.body, SupersedeFrame)
            ),
            deleted=tuple(
                draft.body.frame for draft in drafts if isinstance(draft.body, DeleteFrame)
            ),
            _block=self.ids,
        )

    def check_whole(self) -> None:
        """Refuse to continue after an interrupt left a call incomplete.

        Raises:
            Conflict: a call in the block was interrupted.
        """
        if len(self.drafts) != len(self.payloads):
            raise Conflict(
                "A call in the transaction was interrupted, so the batch is incomplete",
                remedy="Run the block again; it has written nothing.",
            )

    def _checked(self, first: int) -> list[bytes]:
        """Check the drafts from a place on, as the end of the block will check the whole batch."""
        first_use = self.first
        try:
            return self._checks.take(self.drafts, first, self.end)
        except (Conflict, NotFound):
            self.look_up_again()
            if self.first is first_use:
                raise
            # Another writer has used this key since, and its batch caused the refusal.
            return self._checks.take(self.drafts, first, self.end)

    @property
    def end(self) -> int | None:
        """The last event before the key's first use: the log's end for a repeated block."""
        return None if self.first is None else self.first.appended.first_seq - 1

    # --- a key -----------------------------------------------------------------------------------

    @property
    def is_keyed(self) -> bool:
        """True if the block has an idempotency key, so that its calls are recorded."""
        return self._find is not None

    def record_call(self, *arguments: object) -> None:
        """Record the arguments of a call, before any look-up for the call."""
        self._calls.append(arguments_hash(arguments))

    @property
    def arguments(self) -> bytes | None:
        """The hash of all recorded calls in order; None without calls."""
        return arguments_hash(self._calls) if self._calls else None

    def look_up(self, tenant: ScopeValue) -> None:
        """Find the key's first use in a tenant; the block then reads the log before that use.

        So a repeated block has the same drafts, and its first run causes no conflict.
        """
        name = tenant_key(tenant)
        if self._find is None or self.first is not None or name in self._tenants:
            return
        use = self._find(tenant)
        self._tenants[name] = tenant
        self._take(use)

    def look_up_again(self) -> None:
        """Find a first use that another writer has appended since the block began."""
        if self._find is None:
            return
        for _, tenant in sorted(self._tenants.items()):
            if self.first is None:
                self._take(self._find(tenant))

    def _take(self, use: KeyUse | None) -> None:
        self.first = use
        if use is not None:
            self._base = self._builder = None

    # --- reads -----------------------------------------------------------------------------------

    def snapshot(self, newest: Callable[[], Snapshot]) -> Snapshot:
        """Return the state of reads in the block; the first takes the log's from ``newest``."""
        base = self._base
        if base is None:
            base = newest()
            # The drafts, and "now", have the time that the append gives to its events, which is
            # after the last event; in a repeated block, that of the first run.
            recorded = max(base.now_us or 0, base.head.recorded + 1)
            if self.first is not None:
                recorded = self.first.appended.head.recorded
            base = self._base = msgspec.structs.replace(base, now_us=recorded, _base=base.base)
        builder, self._builder = self._builder, None
        if builder is None:
            builder = base.pending_builder(base.now_us or 0, self.ids)
        pending = builder.through(self.drafts)
        self._builder = builder
        return base.with_pending(pending)
