"""Rules: a store of a shared scope changes only things of its own scope.

Owns the list of the references by which an event changes a thing. Scopes never change, so nothing
is checked under the lock. Leaves out whether the named things exist (`reference_rules`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cerata.engine.errors import ReadOnly
from cerata.engine.events import (
    AssertFact,
    DeleteFrame,
    Draft,
    EventBody,
    LinkFacts,
    MergeEntities,
    PutEmbedding,
    PutFrame,
    RetractFact,
    Scope,
    SplitEntity,
    SupersedeFrame,
    UnlinkFacts,
    UnmergeEntities,
    UnsplitEntity,
    named_by,
)
from cerata.projections.columnar.scopes import Reach, admits, tenant_in

from .rule import Rule, State

CHANGED: Final[Mapping[type[EventBody], Sequence[str]]] = {
    DeleteFrame: ("frame",),
    SupersedeFrame: ("old", "new"),
    PutEmbedding: ("frame",),
    RetractFact: ("fact",),
    UnmergeEntities: ("merge",),
    SplitEntity: ("facts",),
    UnsplitEntity: ("split",),
    UnlinkFacts: ("link",),
}
"""The references of each event type by which the event changes a thing for all its readers. A new
version names both frames: its readers would see which private frame it replaced."""


class SharedRules(Rule):
    """The drafts of a batch that change a frame, fact, link, merge or split, or merge an entity."""

    def __init__(self, reach: Reach | None) -> None:
        self._reach = reach if reach is not None and reach.has_shared else None

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        if self._reach is None:
            return False
        new = [draft.body for draft in drafts[first - 1 :]]
        self._targets = [target for body in new for target in _changed_by(body)]
        self._merges = [body for body in new if isinstance(body, MergeEntities)]
        return bool(self._targets or self._merges)

    def check(self, state: State) -> None:
        """Refuse changes of shared things.

        Raises:
            ReadOnly: with the thing and its scope.
        """
        reach = self._reach
        assert reach is not None
        for noun, target in self._targets:
            check_own(f"The {noun} {target:,}", state.log.event(target).scope, reach)
        if self._merges:
            scopes = state.facts().columns.scopes
            shared = (scopes.admitted(reach) or frozenset()) - (
                scopes.admitted(reach.private) or frozenset()
            )
            tenant = tenant_in(reach.pairs)
            for merge in self._merges:
                if state.facts().is_named_within(tenant, merge.entity, state.n, shared):
                    raise _read_only(f"The entity {merge.entity!r}", None, reach)


def check_own(subject: str, scope: Scope | None, reach: Reach | None) -> None:
    """Refuse to change a thing of a scope through a reach that only shares it.

    Raises:
        ReadOnly: with the thing, and the names that its scope lacks.
    """
    if reach is not None and not admits(scope, reach.private):
        raise _read_only(subject, scope, reach)


def _changed_by(body: EventBody) -> Iterator[tuple[str, int]]:
    """Yield the things of the log that a body changes: the noun of an error, and the id."""
    names = CHANGED.get(type(body), ())
    if isinstance(body, PutFrame) and body.chunk_index is not None:
        names = ("parent",)
    for name, kind, value in named_by(body):
        if name in names and value > 0:
            yield _NOUNS[kind], value


_NOUNS: Final = {
    PutFrame.wire_name: "frame",
    AssertFact.wire_name: "fact",
    MergeEntities.wire_name: "merge",
    SplitEntity.wire_name: "split",
    LinkFacts.wire_name: "link",
}


def _read_only(subject: str, scope: Scope | None, reach: Reach) -> ReadOnly:
    lacking = [name for name, _ in reach.pairs if scope is not None and name not in dict(scope)]
    without = f" has no {' and no '.join(lacking)}, so it" if lacking else ""
    return ReadOnly(
        f"{subject}{without} is shared, and a narrower scope only reads it",
        remedy="Open the store with the wider scope to change shared things.",
    )
