"""Rules of owners: a role writes, changes and hides only frames and events that are free or its.

Owns the check of a call's drafts against the table (`values.owners`), before they join a batch.
Kind, URI and parent of a frame never change, so nothing is checked under the lock. A frame below an
owned frame, such as a chunk or a recorded result, has its owner. Leaves out the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import Conflict, ReadOnly, Refused
from cerata.engine.events import (
    AssertFact,
    DeleteFrame,
    Draft,
    Event,
    EventBody,
    LinkFacts,
    MergeEntities,
    PutFrame,
    PutPredicate,
    Scope,
    SplitEntity,
    SupersedeFrame,
    named_by,
)
from cerata.engine.packs import Owned, Role
from cerata.projections.columnar.scopes import Reach, admits, tenant_in

from ..values.owners import FREE_EVENTS, owner_of_event, owners_of_frame
from .reference_rules import closed_by
from .rule import Rule, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from cerata.engine.log import Validate
    from cerata.projections.frames.reader import Frames

    from ..snapshot.layers import Layers
    from ..snapshot.snapshot import Snapshot


def check_owners(
    role: Role,
    drafts: Sequence[Draft],
    first: int,
    snapshot: Callable[[], Snapshot],
    own: Sequence[int] = (),
) -> None:
    """Refuse drafts of a call that write, change or hide what its role may not.

    Args:
        role: The role of the handle.
        drafts: The drafts of the call.
        first: The place of the first draft in its batch, from 1.
        snapshot: Returns the state with the earlier drafts of the batch; called if a draft names
            a frame.
        own: Frames that are known to be the role's.

    Raises:
        Refused: with the owner, and the frame if there is one.
    """
    _Check(role, first, snapshot, own).run(drafts)


class _Check:
    def __init__(
        self, role: Role, first: int, snapshot: Callable[[], Snapshot], own: Sequence[int]
    ) -> None:
        self._role = role
        self._first = first
        self._snapshot = snapshot
        self._of_frames: dict[int, Owned | None] = dict.fromkeys(own)
        self._layers: Layers | None = None

    def run(self, drafts: Sequence[Draft]) -> None:
        # The changes first: a refusal of a correction names the frame to correct.
        bodies = [draft.body for draft in drafts]
        for body in bodies:
            self._check_event(body.wire_name)
            names = body.changes
            for name, kind, target in named_by(body) if names else ():
                if name in names and kind == PutFrame.wire_name:
                    self._check_change(target)
            if isinstance(body, DeleteFrame):
                self._check_below(body.frame)
            elif isinstance(body, SupersedeFrame):
                self._check_below(body.old)
        for body in bodies:
            if isinstance(body, PutFrame):
                self._check_put(body)

    def _check_put(self, body: PutFrame) -> None:
        for owned in owners_of_frame(body.kind, body.uri):
            if not owned.admits(self._role):
                raise self._refused(f"write a frame of kind {body.kind!r:.40}", owned, body.uri)
        if body.parent is not None:
            self._check_change(body.parent)
        if body.uri is not None and body.chunk_index is None:
            # A newer frame with the URI would be read in place of the owned frame.
            for frame in self._frames().find_uri(body.uri):
                self._check_change(frame)

    def _check_event(self, wire_name: str) -> None:
        if wire_name in FREE_EVENTS:
            return
        owned = owner_of_event(wire_name)
        if self._role is not Role.COPY if owned is None else not owned.admits(self._role):
            raise self._refused(f"write {wire_name} events", owned, None)

    def _check_change(self, frame: int) -> None:
        owned = self._owner_of(frame)
        if owned is not None and not owned.admits(self._role):
            raise self._refused(f"change frame {frame:,}", owned, None)

    def _check_below(self, frame: int) -> None:
        """Refuse to close a frame together with an owned frame below."""
        for below in self._below(frame):
            self._check_change(below)

    def _below(self, frame: int) -> Iterator[int]:
        if self._is_of_call(frame):
            return
        layers = self._frames()
        left = [frame]
        while left:
            children = [
                child
                for child in layers.children(left.pop())
                if layers.has(child) and layers.closing_of(child) is None
            ]
            yield from children
            left += children

    def _owner_of(self, frame: int) -> Owned | None:
        """Return the owner of a frame, or of the nearest owned frame above; None if it is free.

        A frame that does not exist within the scope has none: `ReferenceRules` refuses it.
        """
        if frame in self._of_frames:
            return self._of_frames[frame]
        owned = None
        if not self._is_of_call(frame):
            layers = self._frames()
            row = layers.row(frame) if layers.has(frame) else None
            if row is not None:
                owners = [*owners_of_frame(row.kind, row.uri)]
                owned = next((each for each in owners if not each.admits(self._role)), None)
                owned = owned or next(iter(owners), None)
                above = None if owned is not None else layers.parent_of(frame)
                if above is not None:
                    owned = self._owner_of(above)
        self._of_frames[frame] = owned
        return owned

    def _is_of_call(self, frame: int) -> bool:
        """Return whether a frame is a draft of this call, of which each is checked itself."""
        return frame <= -self._first

    def _frames(self) -> Layers:
        if self._layers is None:
            self._layers = self._snapshot().layers
        return self._layers

    def _refused(self, act: str, owned: Owned | None, where: str | None) -> Refused:
        owner = "no table of owners" if owned is None else owned.name
        reason = (
            f"which belongs to {owner}" if owned is not None else "which its role does not have"
        )
        return Refused(f"{self._role.subject} cannot {act}, {reason}", where=where)


# --- Rules: a store of a shared scope changes only things of its own scope ------------------------
#
# Scopes never change, but other writers put frames below a frame: these are checked under the lock.


class SharedRules(Rule):
    """The drafts of a batch that change a thing, merge an entity, or declare a predicate."""

    def __init__(self, reach: Reach | None) -> None:
        self._reach = reach if reach is not None and reach.has_shared else None

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        if self._reach is None:
            return False
        new = [draft.body for draft in drafts[first - 1 :]]
        self._targets = [target for body in new for target in _changed_by(body)]
        self._merges = [body for body in new if isinstance(body, MergeEntities)]
        self._declared = [body.predicate for body in new if isinstance(body, PutPredicate)]
        self._closings = [
            (closed_by(body), body.new if isinstance(body, SupersedeFrame) else None)
            for body in new
            if isinstance(body, DeleteFrame | SupersedeFrame) and closed_by(body) > 0
        ]
        return bool(self._targets or self._merges or self._declared)

    def check(self, state: State) -> Validate | None:
        """Refuse changes of shared things.

        Raises:
            ReadOnly: with the thing and its scope.
        """
        reach = self._reach
        assert reach is not None
        for noun, target in self._targets:
            check_own(f"The {noun} {target:,}", _scope_of(noun, target, state), reach)
        if self._merges or self._declared:
            scopes = state.facts().columns.scopes
            shared = (scopes.admitted(reach) or frozenset()) - (
                scopes.admitted(reach.private) or frozenset()
            )
            tenant = tenant_in(reach.pairs)
            for merge in self._merges:
                if state.facts().is_named_within(tenant, merge.entity, state.n, shared):
                    raise _read_only(f"The entity {merge.entity!r}", None, reach)
            for predicate in self._declared:
                if state.facts().has_predicate_within(tenant, predicate, state.n, shared):
                    raise _read_only(f"The predicate {predicate!r}", None, reach)
        if not self._closings:
            return None
        frames, closed = state.frames(), set[int]()
        error: ReadOnly | None = None
        for frame, successor in self._closings:
            below = _below(frames, frame, state.n, successor)
            closed.update((frame, *below))
            error = error or _error_below(frames, frame, below, state.n, reach)
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_closed, reach, closed, error)

    def _check_closed(
        self, reach: Reach, closed: set[int], error: ReadOnly | None, delta: Sequence[Event]
    ) -> None:
        """Refuse to close a frame together with a shared frame below.

        Raises:
            ReadOnly: with the frame below, and the names that its scope lacks.
            Conflict: another writer put the frame below just before; ``where`` names the event.
        """
        if error is not None:
            raise error
        for event in delta:
            body = event.body
            if isinstance(body, PutFrame) and body.parent in closed:
                closed.add(event.seq)
                if _is_shared(event.scope, reach):
                    raise Conflict(
                        f"Another writer put a shared frame below frame {body.parent:,}",
                        where=f"event {event.seq:,}",
                        remedy="Read the memory again, and decide again.",
                    )


def _scope_of(noun: str, target: int, state: State) -> Scope | None:
    """Return the scope of an existing thing; the folds give those of frames and facts."""
    match noun:
        case "frame":
            return state.frames().scope_of(target)
        case "fact":
            return state.facts().scope_of_fact(target)
        case _:
            return state.log.event(target).scope


def shared_error(frames: Frames, frame: int, n: int, reach: Reach) -> ReadOnly | None:
    """Return the error of deleting a frame of the log, if it or an open frame below is shared."""
    scope = frames.scope_of(frame)
    if _is_shared(scope, reach):
        return _read_only(f"The frame {frame:,}", scope, reach)
    return _error_below(frames, frame, _below(frames, frame, n), n, reach)


def _below(frames: Frames, frame: int, n: int, successor: int | None = None) -> list[int]:
    """Return the frames below a frame by ``n``, without its successor and those below that."""
    below: list[int] = []
    waiting = [frame]
    while waiting:
        children = [one for one in frames.children(waiting.pop(), n) if one != successor]
        below += children
        waiting += children
    return below


def _error_below(
    frames: Frames, frame: int, below: Sequence[int], n: int, reach: Reach
) -> ReadOnly | None:
    """Return the error for the first open shared frame; other frames are not named."""
    for child in below:
        scope = frames.scope_of(child)
        if _is_shared(scope, reach) and frames.closing_of(child, n) is None:
            return _read_only(f"The frame {child:,}, below frame {frame:,},", scope, reach)
    return None


def _is_shared(scope: Scope | None, reach: Reach) -> bool:
    return admits(scope, reach) and not admits(scope, reach.private)


def check_own(subject: str, scope: Scope | None, reach: Reach | None) -> None:
    """Refuse to change a thing of a scope through a reach that only shares it.

    Raises:
        ReadOnly: with the thing, and the names that its scope lacks.
    """
    if reach is not None and not admits(scope, reach.private):
        raise _read_only(subject, scope, reach)


def _changed_by(body: EventBody) -> Iterator[tuple[str, int]]:
    """Yield the things of the log that a body changes: the noun of an error, and the id."""
    names = body.changes
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
