"""The rows of LangGraph's threads: the places of checkpoints and writes, in any order of events."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import EventBody
from cerata.integrations.langgraph.events import (
    DropCheckpoints,
    DroppedCheckpoints,
    PutCheckpoint,
    PutWrites,
    TaskWrite,
)
from cerata.integrations.langgraph.rows import CHECKPOINT, WRITES, GraphThreads, realm_of
from cerata.projections.rows.row_fold import row_fold

from ..histories import events_of

names = st.sampled_from(("", "a", "a\0", "ab", "%"))
some = st.none() | names
puts = st.builds(
    PutCheckpoint,
    thread=names,
    ns=names,
    checkpoint_id=names,
    run_id=some,
    encoding=st.just("bytes"),
    checkpoint=st.just(b""),
    metadata_encoding=st.just("bytes"),
    metadata=st.just(b""),
)
writes = st.builds(
    PutWrites,
    thread=names,
    ns=names,
    checkpoint_id=names,
    task_id=names,
    writes=st.just((TaskWrite(0, "c", "null", b""),)),
)
drops = st.builds(
    DropCheckpoints,
    dropped=st.lists(st.builds(DroppedCheckpoints, names, some, some), max_size=2).map(tuple),
)
bodies: st.SearchStrategy[EventBody] = st.one_of(puts, puts, writes, drops)


def is_in(place: Sequence[object], dropped: DroppedCheckpoints) -> bool:
    thread, ns, checkpoint_id = place[:3]
    return (
        thread == dropped.thread
        and dropped.ns in (None, ns)
        and dropped.checkpoint_id in (None, checkpoint_id)
    )


@given(st.lists(bodies, max_size=30))
def test_rows_are_those_of_a_plain_model(history: list[EventBody]) -> None:
    """A drop hides exactly the places it names, in its scope, and a later put shows again."""
    events = events_of(history)
    rows: dict[tuple[object, ...], object] = {}
    for event in events:
        body = event.body
        assert event.scope
        realm = realm_of(event.scope)
        if isinstance(body, PutCheckpoint):
            place = (body.thread, body.ns, body.checkpoint_id)
            rows[(*realm, CHECKPOINT, *place)] = (event.seq, body.run_id)
        elif isinstance(body, PutWrites):
            place = (body.thread, body.ns, body.checkpoint_id)
            rows[(*realm, WRITES, *place, event.seq)] = None
        elif isinstance(body, DropCheckpoints):
            for dropped in body.dropped:
                rows = {
                    key: row
                    for key, row in rows.items()
                    if key[:2] != realm or not is_in(key[3:], dropped)
                }
    fold = row_fold(GraphThreads)
    if events:
        fold.apply(events)
    assert dict(fold.snapshot().rows.items()) == rows
