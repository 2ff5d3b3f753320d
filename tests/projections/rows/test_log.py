"""The projections over a real log: what the codec gives back folds as what was put in."""

from collections.abc import Sequence

import pytest

from cerata.engine.disk.environment import Environment
from cerata.engine.events import DeleteFrame, Draft, EventBody, PutFrame, PutTag, SupersedeFrame
from cerata.engine.open import open_log
from cerata.projections.core.projection import FoldedEvent, Projection
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.projection import FulltextProjection

BODIES: Sequence[EventBody] = (
    PutFrame(text="", title="A document", chunk_count=1, uri="file:a"),
    PutFrame(text="Its only chunk: índices", parent=1, chunk_index=0, content_hash=b"h" * 16),
    PutTag(tag="before", at=2),
    PutFrame(text="The new version", kind="note", role="user", created=5),
    SupersedeFrame(old=1, new=4),
    DeleteFrame(frame=4),
)


@pytest.fixture
def events() -> Sequence[FoldedEvent]:
    """Return what a log gives back: two batches, the second with references by seq."""
    with open_log("a.cera", environment=Environment.in_memory()) as log:
        log.append([Draft(body) for body in BODIES[:3]])
        log.append([Draft(body) for body in BODIES[3:]])
        return list(log.read())


def test_every_projection_folds_a_real_log_and_comes_back(events: Sequence[FoldedEvent]) -> None:
    for kind in (FramesProjection, FulltextProjection):
        folded: Projection = kind()
        folded.apply(events)
        loaded: Projection = kind()
        loaded.load(folded.chunk(0, 3))
        loaded.apply(events[3:])
        assert loaded.digest() == folded.digest()
        assert loaded.seq == len(BODIES)


def test_a_question_is_answered_as_of_each_event(events: Sequence[FoldedEvent]) -> None:
    frames, fulltext = FramesProjection(), FulltextProjection()
    frames.apply(events)
    fulltext.apply(events)
    table, index = frames.snapshot(), fulltext.snapshot()
    found: list[list[int]] = []
    for n in range(len(events) + 1):
        ranking = index.view(table.alive(n)).search("indices of the versions")
        found.append(table.ids[ranking.rows].tolist())
    assert found == [[], [], [2], [2], [2, 4], [4], []]
    row = table.frame(4)
    assert row is not None
    assert (row.kind, row.role, row.created, row.scope) == ("note", "user", 5, events[3].scope)
