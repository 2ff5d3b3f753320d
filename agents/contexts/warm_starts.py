"""Warm starts: a model's text in place of a handoff, for an agent that comes back.

Owns the task and the look-up of its answer, which belongs to the handoff's newest message.
"""

from __future__ import annotations

from typing import Final

from cerata.memory.frames.drafts import frame_fields
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Frame

from ..activities.events import RecordCall
from ..activities.values import activities_at
from ..continuity.candidates import REFLECTION_KIND, TASK
from ..continuity.handoff import Handoff
from ..continuity.models import Source, Task
from ..continuity.tasks import MODEL_CALL, Writer, task_of
from ..turns.line import Line

WARM_START: Final = "warm_start"

_CALL: Final = f"{MODEL_CALL}{WARM_START}"
_INSTRUCTIONS: Final = (
    "This is the state of a conversation that you return to. Write in the second person what to "
    "keep in mind: where it stood, what is open, and what to do first."
)


def warm_start_task(handoff: Handoff) -> Task:
    """Return the task that turns a handoff into a warm start."""
    source = Source(handoff.messages[-1].id, "handoff", str(handoff))
    return task_of(WARM_START, _INSTRUCTIONS, [source])


def warm_start_of(snapshot: Snapshot, handoff: Handoff) -> Frame | None:
    """Return the newest warm start of a handoff, or None."""
    if not handoff.messages:
        return None
    for seq in reversed(activities_at(snapshot).calls_using(handoff.messages[-1].id)):
        event = snapshot.event_of(seq)
        body = None if event is None else event.body
        if isinstance(body, RecordCall) and body.name == _CALL and body.results:
            [frame] = body.results
            if snapshot.is_current(frame):
                return snapshot.frame_at(frame)
    return None


def write_warm_start(writer: Writer, agent: str, line: Line, handoff: Handoff) -> None:
    """Ask for the warm start of a handoff unless the task has an answer. Durable on return.

    Raises:
        ModelFailed: the model raised, or returned no text.
    """
    if not handoff.messages:
        return
    task = warm_start_task(handoff)
    if not writer.is_known(task):
        fields = frame_fields(kind=REFLECTION_KIND, track=agent, metadata={TASK: WARM_START})
        writer.record(task, writer.ask(task), fields, line.scope)
