"""Activities by brute force: what docs/agents.md says, as loops over the events.

It shares no code with the fold: each answer is computed again from the first events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.engine.events import RecallContext, Scope

from ...projections.histories import Folded

KINDS = ("session", "run")
STATUSES = ("done", "failed", "left")
CALLS = ("tool", "input", "model", "function", "clock", "random")


@dataclass
class ModelActivity:
    """An activity, and what happened to it."""

    start: Folded
    body: StartActivity
    more: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    ended: tuple[int, str] | None = None
    calls: list[tuple[int, RecordCall]] = field(default_factory=list[tuple[int, RecordCall]])
    has_shown_handoff: bool = False


def same_scope(first: Scope, second: Scope) -> bool:
    return dict(first) == dict(second)


def activities_of(events: Sequence[Folded]) -> list[ModelActivity]:
    """Return the activities that events make, in order."""
    found: list[ModelActivity] = []

    def named(seq: int, scope: Scope) -> ModelActivity | None:
        for activity in found:
            if activity.start.seq == seq and same_scope(activity.start.scope, scope):
                return activity
        return None

    for event in events:
        body = event.body
        if isinstance(body, StartActivity) and body.kind in KINDS:
            if body.resumes is None:
                alike = [
                    each
                    for each in found
                    if each.ended is None
                    and same_scope(each.start.scope, event.scope)
                    and (each.body.kind, each.body.agent, each.body.name)
                    == (body.kind, body.agent, body.name)
                ]
                target = alike[-1] if alike else None
                if target is None:
                    found.append(ModelActivity(event, body))
                    continue
            else:
                target = named(body.resumes, event.scope)
            if target is None or (target.ended and target.body.kind == "run"):
                continue
            target.ended = None
            target.more.append((event.seq, body.replays))
        elif isinstance(body, EndActivity) and body.status in STATUSES:
            target = named(body.activity, event.scope)
            if target is not None and target.ended is None:
                target.ended = event.seq, body.status
        elif isinstance(body, RecordCall) and body.kind in CALLS:
            target = named(body.activity, event.scope)
            if target is not None:
                target.calls.append((event.seq, body))
        elif isinstance(body, RecallContext) and "handoff" in body.blocks and body.activity:
            target = named(body.activity, event.scope)
            if target is not None:
                target.has_shown_handoff = True
    return found
