"""Tags of a batch: their names must be valid and free, and they must name the end of a batch.

Owns the checks of tags before an append. Rules for names and ends of batches never change, so they
are checked before the lock; under the lock the check is that the name is still free.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from cerata.engine.arguments import is_integer
from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import Draft, Event, PutTag
from cerata.projections.columnar.scopes import Reach, read_scope
from cerata.projections.rows.tags import Tags
from cerata.replay.basis import check_tag_name

from ..values.arguments import realm
from .rule import Rule, State, drafts_of

if TYPE_CHECKING:
    from cerata.engine.log import Log, Validate

TagKey: TypeAlias = tuple[str | None, str]
"""A tag: the realm within which its name is unique, and the name."""


class TagRules(Rule):
    """The tags of a batch."""

    kinds = (PutTag,)

    _keys: frozenset[TagKey] = frozenset()
    """The tags of earlier calls."""

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._new_keys = self._keys
        new = drafts_of(drafts[first - 1 :], (PutTag,))
        self._tags = [(d.scope, d.body) for d in new if isinstance(d.body, PutTag)]
        return bool(self._tags)

    def check(self, state: State) -> Validate:
        for _, body in self._tags:
            check_tag_name(body.tag)
            _check_batch_end(state.log, body, state.n)
        keys = {(realm(scope, state.reach), body.tag) for scope, body in self._tags}
        self._new_keys = self._keys | keys
        rows = state.fold.own(Tags.name, state.n).rows
        return partial(self._check_free, state.reach, rows)

    def keep(self) -> None:
        self._keys = self._new_keys

    def _check_free(
        self, reach: Reach | None, rows: Collection[tuple[str, str]], delta: Sequence[Event]
    ) -> None:
        """Refuse names that ``rows`` of `Tags`, later events or earlier calls have.

        Raises:
            Conflict: with the name.
        """
        taken = {(realm(read_scope(text), reach), name) for text, name in rows}
        taken |= self._keys
        taken |= {
            (realm(event.scope, reach), event.body.tag)
            for event in delta
            if isinstance(event.body, PutTag) and event.scope is not None
        }
        for scope, body in self._tags:
            key = realm(scope, reach), body.tag
            if key in taken:
                raise Conflict(
                    f"The tag {body.tag!r} exists already",
                    remedy="Choose another name; a tag never moves.",
                )
            taken.add(key)


def _check_batch_end(log: Log, tag: PutTag, n: int) -> None:
    if not is_integer(tag.at):
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
