"""Tags that are about to be put: names that may be, for what is the end of a batch, and free.

Names and ends of batches never change, so they are checked before the lock; whether a name is
free, under it.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import Draft, Event, PutTag, Scope
from cerata.engine.log import Log
from cerata.projections.scopes import read_scope
from cerata.replay.basis import check_tag_name

from .drafting import realm

TagKey: TypeAlias = tuple[str | None, str]
"""A tag: the realm in which its name is taken, and the name."""


class Tagging:
    """The tags that one batch puts, through a store of the scope ``within``."""

    def __init__(self, drafts: Sequence[Draft], within: Scope | None) -> None:
        self._within = within
        self._tags = [(d.scope, d.body) for d in drafts if isinstance(d.body, PutTag)]

    def __bool__(self) -> bool:
        return bool(self._tags)

    @property
    def keys(self) -> set[TagKey]:
        """What no other tag may have afterwards."""
        return {self._key(scope, body.tag) for scope, body in self._tags}

    def _key(self, scope: Scope, name: str) -> TagKey:
        return realm(scope, self._within), name

    def check(self, log: Log, n: int) -> None:
        """Refuse names that cannot be, and those for what is no end of a batch up to event ``n``.

        Raises:
            InvalidInput, NotFound: with the name or the event.
        """
        for _, body in self._tags:
            check_tag_name(body.tag)
            _check_batch_end(log, body, n)

    def check_free(
        self,
        known: Collection[tuple[str, str]],
        delta: Sequence[Event],
        *,
        before: Collection[TagKey] = (),
    ) -> None:
        """Refuse names that are taken: by rows of `Tags`, the events after them, or ``before``.

        Raises:
            Conflict: with the name.
        """
        taken = {self._key(read_scope(text), name) for text, name in known}
        taken |= set(before)
        taken |= {
            self._key(event.scope, event.body.tag)
            for event in delta
            if isinstance(event.body, PutTag) and event.scope is not None
        }
        for scope, body in self._tags:
            key = self._key(scope, body.tag)
            if key in taken:
                raise Conflict(
                    f"There is a tag {body.tag!r} already",
                    remedy="Tags are not moved: choose another name.",
                )
            taken.add(key)


def _check_batch_end(log: Log, tag: PutTag, n: int) -> None:
    if isinstance(tag.at, bool) or not isinstance(tag.at, int):
        raise InvalidInput(
            f"A tag names an event by its seq, not by a {type(tag.at).__name__}",
            remedy="Pass a seq, such as store.head.seq.",
        )
    if not 1 <= tag.at <= n:
        raise NotFound(f"There is no event {tag.at:,} to tag", remedy=f"The log ends at {n:,}.")
    end = log.event(tag.at).header.last_seq
    if end != tag.at:
        raise InvalidInput(
            f"Event {tag.at:,} is inside a batch, and a tag names the end of one",
            remedy=f"Tag event {end:,}.",
        )
