"""Validation: the rules that each batch must pass, in one list.

A transaction checks each call when it is made. Every append checks its whole batch, since other
writers may have appended events by then. Owns both runs, and the rules of tags. Leaves out the
other rules (`reference_rules`, `owner_rules`, `fact_rules`, `frame_rules`, `vector_rules`, and
those of packs).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from cerata.engine.arguments import is_integer
from cerata.engine.codec import encode_payloads, salts_of
from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import Draft, Event, EventBody, PutTag
from cerata.engine.packs import of_packs, packs, target
from cerata.projections.columnar.scopes import Reach, read_scope
from cerata.projections.rows.built_in import Tags
from cerata.replay.basis import check_tag_name

from ..values.arguments import realm
from .fact_rules import FactRules, LinkRules
from .frame_rules import ExpiryRules, UriRules, VersionRules
from .owner_rules import SharedRules
from .reference_rules import ReferenceRules
from .rule import Rule, State, drafts_of
from .vector_rules import EmbedderRules, LogShapes, SpaceRules

if TYPE_CHECKING:
    from cerata.engine.log import Log, Validate
    from cerata.replay.fold import Fold

    from .embedder_use import EmbedderUse
    from .rule import Proof


def all_rules(
    reach: Reach | None, fold: Fold, shapes: LogShapes, uses: EmbedderUse
) -> tuple[Rule, ...]:
    """Return all rules, in the order of their checks."""
    return (
        ReferenceRules(),
        SharedRules(reach),
        LinkRules(),
        FactRules(),
        TagRules(),
        UriRules(),
        VersionRules(),
        ExpiryRules(),
        SpaceRules(reach, fold, shapes),
        EmbedderRules(uses),
    )


@of_packs
def _rules_of_packs(kinds: frozenset[type]) -> tuple[str, ...]:
    """Return the rules of each pack that has one of the types of events."""
    names = {kind.wire_name for kind in kinds if issubclass(kind, EventBody)}
    return tuple(rule for pack in packs() if names & pack.events.keys() for rule in pack.rules)


class BatchChecks:
    """The checks of one transaction, or of one append.

    The rules cover the drafts that passed; only `keep` adds to these.
    """

    def __init__(
        self, log: Log, fold: Fold, reach: Reach | None, shapes: LogShapes, uses: EmbedderUse
    ) -> None:
        self._log = log
        self._fold = fold
        self.reach = reach
        self._rules = list(all_rules(reach, fold, shapes, uses))
        self._of_packs: set[str] = set()
        self._of_kinds: dict[frozenset[type], list[Rule]] = {}
        self._taking: list[Rule] = []
        self._due: list[Rule] = []

    def salted(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return drafts with the salts that their events will have."""
        salts = salts_of(drafts, self._log.environment.random_bytes)
        return [
            msgspec.structs.replace(draft, salt=salt)
            for draft, salt in zip(drafts, salts, strict=True)
        ]

    def take(self, drafts: Sequence[Draft], first: int, n: int | None) -> list[bytes]:
        """Check the drafts from place ``first`` on, as if the log ended at event ``n``.

        By default ``n`` is the log's end. Returns the payloads. Cost: encodes the drafts and looks
        up each frame that they name.

        Raises:
            InvalidInput, NotFound, Conflict: as `Store.append` does.
        """
        payloads = encode_payloads(drafts[first - 1 :], first=first)
        self.gather(drafts, first)
        if self._due:
            # All rules check their drafts before the first check of later events, as an append.
            for check in list(self._checked(self._log.refresh().seq if n is None else n)):
                check(())
        return payloads

    def gather(self, drafts: Sequence[Draft], first: int = 1) -> None:
        """Give the drafts from place ``first`` on to the rules. Raises `InvalidInput`."""
        new = drafts[first - 1 :]
        kinds: set[type] = {*map(type, new)}
        for draft in new:
            kinds.add(type(draft.body))
        self._taking = self._rules_of(frozenset(kinds))
        self._due = []
        for rule in self._taking:
            if rule.take(drafts, first):
                self._due.append(rule)

    def _rules_of(self, kinds: frozenset[type]) -> list[Rule]:
        """Return the rules about any of the types; most calls of a transaction have the same."""
        rules = self._of_kinds.get(kinds)
        if rules is None:
            for name in _rules_of_packs(kinds):
                if name not in self._of_packs:
                    self._of_packs.add(name)
                    self._rules.append(target(name)())
            bases: set[type] = set()
            for kind in kinds:
                bases.update(kind.__mro__)
            about: list[Rule] = []
            for rule in self._rules:
                if not bases.isdisjoint(rule.kinds):
                    about.append(rule)
            rules = self._of_kinds[kinds] = about
        return rules

    def check(self, proof: Proof | None = None) -> tuple[int, Validate | None]:
        """Check the batch; return the log's end, or that of a proof, and the check of later events.

        The end is 0 if there is nothing to check. A rule that the proof covers folds nothing.
        """
        if proof is None:
            if not self._due:
                return 0, None
            end = self._log.refresh().seq
            checks = list(self._checked(end))
        else:
            end = proof.n
            self._due = [rule for rule in self._due if not rule.is_proven(proof)]
            checks = [proof.check_later, *self._checked(end)]

        def validate(delta: Sequence[Event]) -> None:
            for check in checks:
                check(delta)

        return end, validate if checks else None

    def _checked(self, n: int) -> Iterator[Validate]:
        """Run the checks of each rule at event ``n``; yield those of events after ``n``."""
        state = State(self._log, self._fold, self.reach, n)
        for rule in self._due:
            check = rule.check(state)
            if check is not None:
                yield check

    def keep(self) -> None:
        """Add the drafts that passed to the state for later checks."""
        for rule in self._taking:
            rule.keep()

    def appended(self) -> None:
        """Note that the batch is in the log."""
        for rule in self._taking:
            if type(rule).appended is not Rule.appended:
                rule.appended()


# --- Tags of a batch: their names must be valid and free, and they must name the end of a batch
#
# Rules for names and ends of batches never change, so they are checked before the lock; under the
# lock the check is that the name is still free.


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
