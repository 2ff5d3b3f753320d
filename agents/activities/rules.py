"""Rules of agents: activities start, record calls and end in turn.

Owns the checks of these events before an append, and under the lock: an activity that an event
names must be open, and a name must be free. Leaves out the existence of references
(`cerata.memory.batch.reference_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.errors import Closed, Conflict, InvalidInput
from cerata.engine.late import late
from cerata.memory.batch.rule import Rule, State, drafts_of
from cerata.projections.columnar.scopes import is_same

from .events import (
    ACTIVITY_KINDS,
    CALL_KINDS,
    DIGEST_SIZE,
    STATUSES,
    EndActivity,
    RecordCall,
    StartActivity,
)
from .open_run import OpenRun

if TYPE_CHECKING:
    from cerata.engine.events import Draft, Event, EventBody, Scope
    from cerata.engine.log import Validate
    from cerata.memory.batch.rule import Proof

    from . import columns as activity_columns
    from . import projection as activity_projection
    from .reader import ActivitiesAt
else:
    activity_columns = late("cerata.agents.activities.columns")
    activity_projection = late("cerata.agents.activities.projection")

_KINDS: Final = (StartActivity, EndActivity, RecordCall)

Named: TypeAlias = tuple[str, str, str]
"""The kind, the agent and the name of an activity."""


class ActivityRules(Rule):
    """The agent events among the drafts of a batch."""

    kinds = _KINDS

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._drafts = drafts
        self._new = drafts_of(drafts[first - 1 :], _KINDS)
        for draft in self._new:
            _check_words(draft.body)
        return bool(self._new)

    def check(self, state: State) -> Validate:
        kind = activity_projection.ActivitiesProjection
        activities = state.fold.columns(kind, state.n).at(state.n, None)
        named: set[int] = set()
        started: list[tuple[Scope, Named]] = []
        for draft in self._new:
            body = draft.body
            target = _target(body)
            if target is None:
                assert isinstance(body, StartActivity)
                _check_free(activities, draft.scope, body)
                started.append((draft.scope, _named(body)))
            elif target < 0:
                _check_start(self._drafts[-target - 1], draft, target)
            else:
                _check_open(activities, draft, target)
                named.add(target)
        return partial(_check_later, named, started)

    def is_proven(self, proof: Proof) -> bool:
        """Return whether all events are calls of the open run, in its scope."""
        return isinstance(proof, OpenRun) and all(
            isinstance(draft.body, RecordCall)
            and draft.body.activity == proof.run
            and proof.has_scope(draft)
            for draft in self._new
        )


def _check_words(body: EventBody) -> None:
    if isinstance(body, StartActivity):
        _check_word("kind", body.kind, ACTIVITY_KINDS)
    elif isinstance(body, EndActivity):
        _check_word("status", body.status, STATUSES)
    elif isinstance(body, RecordCall):
        _check_word("kind", body.kind, CALL_KINDS)
        if not isinstance(body.digest, bytes) or len(body.digest) != DIGEST_SIZE:
            raise InvalidInput(
                f"digest of the call {body.name!r} is {body.digest!r:.40}, expected "
                f"{DIGEST_SIZE} bytes",
                remedy="Record calls with Agent.run(), which computes the digest.",
            )


def _check_word(field: str, word: object, words: Sequence[str]) -> None:
    if word not in words:
        raise InvalidInput(
            f"{field} is {word!r:.40}, expected one of {', '.join(words)}",
            remedy="Record activities with cerata.Agent, which writes these events.",
        )


def _target(body: EventBody) -> int | None:
    """Return the activity that an event names, or None for a first start."""
    if isinstance(body, StartActivity):
        return body.resumes
    assert isinstance(body, EndActivity | RecordCall)
    return body.activity


def _named(body: StartActivity) -> Named:
    return body.kind, body.agent, body.name


def _check_free(activities: ActivitiesAt, scope: Scope, body: StartActivity) -> None:
    kind = activity_columns.ActivityKind[body.kind.upper()]
    if activities.named(kind, body.name, body.agent, scope):
        raise Conflict(
            f"The {body.kind} {body.name!r} of agent {body.agent!r} exists already",
            remedy="Choose another id; an open run goes on with run(id).",
        )


def _check_start(start: Draft, draft: Draft, target: int) -> None:
    body = start.body
    if not isinstance(body, StartActivity) or body.resumes is not None:
        raise InvalidInput(
            f"Event {target} of the batch is not the first start of an activity",
            remedy="Name the first start.",
        )
    _check_scope(f"The {body.kind} {body.name!r}", start.scope, draft)


def _check_open(activities: ActivitiesAt, draft: Draft, target: int) -> None:
    row = activities.activity(target)
    if row is None:
        raise InvalidInput(
            f"Event {target:,} is not the first start of an activity",
            remedy="Name the first start; Agent.runs() lists them.",
        )
    kind = row.kind.name.lower()
    _check_scope(f"The {kind} {row.name!r}", activities.scope_of(row.row), draft)
    reopens = (
        isinstance(draft.body, StartActivity) and row.kind is activity_columns.ActivityKind.SESSION
    )
    if row.end is not None and not reopens:
        raise Closed(
            f"The {kind} {row.name!r} has ended",
            where=f"event {row.end:,}",
            remedy="Start another with run() or session().",
        )


def _check_scope(subject: str, scope: Scope, draft: Draft) -> None:
    if not is_same(scope, draft.scope):
        raise InvalidInput(
            f"{subject} has the scope {dict(scope)!r}, and the event {dict(draft.scope)!r}",
            remedy="Append the event with the scope of its activity.",
        )


def _check_later(
    named: set[int], started: Sequence[tuple[Scope, Named]], delta: Sequence[Event]
) -> None:
    """Refuse the drafts if another writer ended an activity, or took a name, in the meantime."""
    for event in delta:
        body = event.body
        if isinstance(body, EndActivity) and body.activity in named:
            raise Closed(
                f"Another writer ended the activity {body.activity:,}",
                where=f"event {event.seq:,}",
                remedy="Start another with run() or session().",
            )
        if isinstance(body, StartActivity) and event.scope is not None:
            for scope, name in started:
                if name == _named(body) and is_same(scope, event.scope):
                    raise Conflict(
                        f"Another writer has just started the {body.kind} {body.name!r}",
                        where=f"event {event.seq:,}",
                        remedy="Choose another id, or go on with run(id).",
                    )
