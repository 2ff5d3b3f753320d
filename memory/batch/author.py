"""Authors: the actor and the reason of events.

Owns the one order of the places that may name them: a draft itself, the call, the transaction, and
the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from cerata.engine.draft_validation import check_note
from cerata.engine.limits import ACTOR_SIZE_MAX, REASON_SIZE_MAX

if TYPE_CHECKING:
    from cerata.engine.events import Draft


class Author(NamedTuple):
    """The actor and the reason of writes; None leaves one to the next place."""

    actor: str | None = None
    reason: str | None = None

    def over(self, fallback: Author) -> Author:
        """Return this author, with the fallback's actor and reason if it has none."""
        actor = fallback.actor if self.actor is None else self.actor
        return Author(actor, fallback.reason if self.reason is None else self.reason)

    def signed(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """Return drafts with this actor and reason; each that a draft has stays."""
        if self == NO_AUTHOR:
            return drafts
        return [self._signed(draft) for draft in drafts]

    def _signed(self, draft: Draft) -> Draft:
        author = Author(draft.actor, draft.reason).over(self)
        if author == (draft.actor, draft.reason):
            return draft
        return msgspec.structs.replace(draft, actor=author.actor, reason=author.reason)


NO_AUTHOR: Final = Author()


def author_of(actor: str | None, reason: str | None = None) -> Author:
    """Return the author that a call names. Raises `InvalidInput` if one cannot be stored."""
    if actor is not None:
        check_note(actor, "actor", ACTOR_SIZE_MAX)
    if reason is not None:
        check_note(reason, "reason", REASON_SIZE_MAX)
    return Author(actor, reason)
