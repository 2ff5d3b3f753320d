"""Tags of a batch: their names must be valid and free, and they must name the end of a batch.

Owns the checks of tags before an append. Rules for names and ends of batches never change, so they
are checked before the lock; under the lock the check is that the name is still free.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import Draft, Event, PutTag, Scope
from cerata.engine.log import Log
from cerata.projections.columnar.scopes import read_scope
from cerata.replay.basis import check_tag_name

from ..values.arguments import realm

TagKey: TypeAlias = tuple[str | None, str]
"""A tag: the realm within which its name is unique, and the name."""


class Tagging:
    """The tags of a batch, put through a store of the scope ``within``."""

    def __init__(self, drafts: Sequence[Draft], within: Scope | None) -> None:
        self._within = within
        self._tags = [(d.scope, d.body) for d in drafts if isinstance(d.body, PutTag)]

    def __bool__(self) -> bool:
        return bool(self._tags)

    @property
    def keys(self) -> set[TagKey]:
        """The names that these tags take."""
        return {self._key(scope, body.tag) for scope, body in self._tags}

    def _key(self, scope: Scope, name: str) -> TagKey:
        return realm(scope, self._within), name

    def check(self, log: Log, n: int) -> None:
        """Refuse names that are not valid, and events that are not the end of a batch up to ``n``.

        Raises:
            InvalidInput, NotFound: with the name or the event.
        """
        for _, body in self._tags:
            check_tag_name(body.tag)
            _check_batch_end(log, body, n)

    def check_free(
        self,
        rows: Collection[tuple[str, str]],
        delta: Sequence[Event],
        *,
        before: Collection[TagKey] = (),
    ) -> None:
        """Refuse names that ``rows`` of `Tags`, the later events ``delta`` or ``before`` have.

        Raises:
            Conflict: with the name.
        """
        taken = {self._key(read_scope(text), name) for text, name in rows}
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
                    f"The tag {body.tag!r} exists already",
                    remedy="Choose another name; a tag never moves.",
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
            f"Event {tag.at:,} is inside a batch, and a tag must name the end of a batch",
            remedy=f"Tag event {end:,}.",
        )
