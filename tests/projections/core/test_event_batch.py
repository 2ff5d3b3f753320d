"""A batch gives the events of a type once for all projections, and is cut as a list is."""

from dataclasses import dataclass

from cerata.engine.events import DeleteFrame, EventBody, PutFrame, Scope
from cerata.projections.core.event_batch import EventBatch

SCOPE: Scope = (("tenant", "default"),)


@dataclass(frozen=True)
class Parts:
    """The parts of an event that a projection reads."""

    seq: int
    body: EventBody
    recorded: int = 7
    causation: int | None = None
    scope: Scope | None = SCOPE

    @property
    def type(self) -> str:
        return self.body.wire_name


EVENTS = [Parts(1, PutFrame(text="a")), Parts(2, DeleteFrame(frame=1)), Parts(3, PutFrame())]


def test_the_events_of_a_type_keep_their_order() -> None:
    batch = EventBatch(EVENTS)
    assert [*batch] == EVENTS
    assert [*batch.of_types(frozenset(("putFrame",)))] == [EVENTS[0], EVENTS[2]]
    assert [*batch.of_types(frozenset(("deleteFrame", "putFrame")))] == EVENTS
    assert not batch.of_types(frozenset(("putTag",)))


def test_columns_have_the_parts_of_the_events_of_a_type() -> None:
    columns = EventBatch(EVENTS).columns("putFrame")
    assert [*columns.seqs] == [1, 3]
    assert [*columns.recorded] == [7, 7]
    assert [*columns.scopes] == [SCOPE, SCOPE]
    assert [*columns.bodies] == [EVENTS[0].body, EVENTS[2].body]


def test_a_part_of_a_batch_is_a_batch_and_the_whole_is_itself() -> None:
    """A projection that takes all events of a step shares the columns of the step."""
    batch = EventBatch(EVENTS)
    assert batch[0:3] is batch
    assert EventBatch.of(batch) is batch
    assert [*batch[1:].columns("putFrame").seqs] == [3]
    assert batch[-1] is EVENTS[2]
