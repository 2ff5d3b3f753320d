"""Transactions: writes gathered, to be appended as one batch when the block ends."""

from collections.abc import Callable, Sequence
from typing import Final

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    AssertFact,
    Draft,
    LinkFacts,
    MergeEntities,
    PutFrame,
    ScopeValue,
    SplitEntity,
    SupersedeFrame,
)
from cerata.engine.handle import Handle
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.engine.log import KeyUse
from cerata.projections.scopes import tenant_key

from .checks import Checked, Checks
from .drafting import arguments_hash, within_scope
from .gathered import Gathering
from .text_vectors import TextVectors
from .values import Receipt
from .view import View

MAKERS: Final = frozenset(
    kind.wire_name for kind in (PutFrame, AssertFact, MergeEntities, SplitEntity, LinkFacts)
)
"""The kinds of events that make a thing, whose id is theirs."""


class Transaction(Handle):
    """What a ``with store.transaction()`` block has gathered; ``receipt`` is there afterwards."""

    _instead = "Pass its receipt, after the block."

    def __init__(
        self, checks: Checks, find: Callable[[ScopeValue], KeyUse | None] | None = None
    ) -> None:
        self.drafts: list[Draft] = []
        self.payloads: list[bytes] = []
        """What the drafts say, encoded when they were checked."""
        self.receipt: Receipt | None = None
        self.first: KeyUse | None = None
        """What the transaction's key was first used for, if this is a repetition."""
        self.vectors: Sequence[TextVectors] | None = None
        """What an embedder made of the texts of the block, where the store has one."""
        self._checks = checks
        self._find = find
        self._tenants = dict[str, ScopeValue]()
        self._calls: list[bytes] = []
        self._base: View | None = None
        # None while it takes drafts: after an interrupt it is made anew from all of them.
        self._gathering: Gathering | None = None

    def add(self, drafts: Sequence[Draft]) -> Receipt:
        """Gather events; their receipt names them by −place in the batch, from 1.

        Drafts without a scope of their own get the store's.

        Raises:
            InvalidInput, NotFound, Conflict: they cannot be stored; nothing of them was gathered.
        """
        if not drafts:
            raise InvalidInput("A batch needs at least one event", remedy="Pass one draft or more.")
        if len(self.drafts) + len(drafts) > BATCH_EVENTS_MAX:
            raise InvalidInput(
                f"The transaction would pass {BATCH_EVENTS_MAX:,} events",
                remedy="Write it in several transactions.",
            )
        self.check_whole()
        drafts = within_scope(drafts, self._checks.scope)
        # From here on evidence may quote a frame of the block, which takes the salt of its event.
        drafts = self._checks.salted(drafts)
        first = len(self.drafts) + 1
        try:
            self.drafts += drafts
            checked = self._checked(first)
        except BaseException:
            del self.drafts[first - 1 :]
            raise
        self._checks.keep(checked)
        # Last: a draft without a payload shows that an interrupt came in between.
        self.payloads += checked.payloads
        places = tuple(-place for place in range(first, len(self.drafts) + 1))
        made = tuple(
            place
            for place, draft in zip(places, drafts, strict=True)
            if draft.body.wire_name in MAKERS
        )
        return Receipt(
            id=made[0] if made else places[0],
            ids=made,
            seqs=places,
            head=None,
            durable=False,
            replaced=tuple(
                draft.body.old for draft in drafts if isinstance(draft.body, SupersedeFrame)
            ),
        )

    def check_whole(self) -> None:
        """Refuse to go on after a call that an interrupt left half done.

        Raises:
            Conflict: a call in the block was interrupted.
        """
        if len(self.drafts) != len(self.payloads):
            raise Conflict(
                "A call in the transaction was interrupted, so the block is not whole",
                remedy="Run the block again; nothing of it was written.",
            )

    def _checked(self, first: int) -> Checked:
        """Return what the checks found of the drafts from a place on.

        What the end of the block would refuse is refused now, as far as it can be known.
        """
        known = self.first
        try:
            return self._checks.take(self.drafts, first, self.end)
        except (Conflict, NotFound):
            self.look_up_again()
            if self.first is known:
                raise
            # Somebody else was quicker with this key, and did what stood in the way.
            return self._checks.take(self.drafts, first, self.end)

    @property
    def end(self) -> int | None:
        """The last event before the key's first use, where the log ends for a block run again."""
        return None if self.first is None else self.first.appended.first_seq - 1

    # --- a key -----------------------------------------------------------------------------------

    @property
    def is_keyed(self) -> bool:
        """Whether the block has an idempotency key, and so every call in it is taken down."""
        return self._find is not None

    def called(self, *arguments: object) -> None:
        """Take down what a call was given, before anything is looked up for it."""
        self._calls.append(arguments_hash(arguments))

    @property
    def arguments(self) -> bytes | None:
        """The hash of all calls in order; None where there were none."""
        return arguments_hash(self._calls) if self._calls else None

    def look_up(self, tenant: ScopeValue) -> None:
        """Find the key's first use in a tenant: the block then runs over what was there before.

        So it gathers what it gathered then, and nothing in it fails for what it did itself.
        """
        name = tenant_key(tenant)
        if self._find is None or self.first is not None or name in self._tenants:
            return
        found = self._find(tenant)
        self._tenants[name] = tenant
        self._take(found)

    def look_up_again(self) -> None:
        """Find the first use by a writer who was quicker than this block."""
        if self._find is None:
            return
        for _, tenant in sorted(self._tenants.items()):
            if self.first is None:
                self._take(self._find(tenant))

    def _take(self, found: KeyUse | None) -> None:
        self.first = found
        if found is not None:
            self._base = self._gathering = None

    # --- reads -----------------------------------------------------------------------------------

    def view(self, newest: Callable[[], View]) -> View:
        """Return what reads in the block see; ``newest`` gives the log's view for the first."""
        base = self._base
        if base is None:
            base = self._base = newest()
        gathering, self._gathering = self._gathering, None
        if gathering is None:
            # A block that is run again sees what it put as made when it was.
            first = self.first
            recorded = (base.now_us or 0) if first is None else first.appended.head.recorded
            gathering = Gathering(base.base, recorded)
        gathered = gathering.through(self.drafts)
        self._gathering = gathering
        return base.over(gathered)
