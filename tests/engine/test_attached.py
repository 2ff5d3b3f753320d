"""Attachments and vectors as their readers get them: from the ring, from spills, from segments."""

from collections.abc import Iterator

import numpy as np
import pytest

from cerata.engine.disk.environment import Environment
from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Attachment, Draft, Embedding, PutFrame
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.segments.segment_reader import Segment

DIMENSION = 16
KEY = ("s", "f4", DIMENSION)
ROWS = np.random.default_rng(2).standard_normal((400, DIMENSION)).astype(np.float32)


def put(row: int) -> Draft:
    data = ROWS[row].tobytes()
    named = Embedding("s", "f4", DIMENSION, Attachment(hash_bytes(data), len(data)))
    return Draft(PutFrame(text=f"{row}", embedding=named), attachments=(data,))


@pytest.fixture
def log() -> Iterator[Log]:
    """Row r is that of event r + 1; batches of every size, some of which stand in spills."""
    with open_log("a", environment=Environment.in_memory(), ring_bytes=1 << 16) as log:
        row = 0
        for size in (1, 2, 180, 3, 150, 1, 40, 3, 20):
            log.append([put(one) for one in range(row, row + size)])
            row += size
            if size == 150:
                log.seal()
        assert row == len(ROWS)
        assert 0 < log.snapshot.page.sealed_seq < 400
        yield log


def test_an_event_gives_its_attachments_wherever_it_stands(log: Log) -> None:
    for event in log.read():
        body = event.body
        assert isinstance(body, PutFrame)
        assert body.embedding is not None
        assert event.attached(body.embedding.data) == ROWS[event.seq - 1].tobytes()
        with pytest.raises(NotFound):
            event.attached(Attachment(bytes(32), 3))
        with pytest.raises(Corrupt, match=f"event {event.seq:,} is damaged"):
            event.attached(Attachment(bytes(32), 4 * DIMENSION))


def test_vectors_of_any_events_come_in_their_order(log: Log) -> None:
    source = np.random.default_rng(3)
    for count in (1, 3, 40, 399, 400):
        chosen = np.sort(source.choice(400, count, replace=False))
        found = log.embeddings(KEY, chosen + 1)
        assert found.tobytes() == ROWS[chosen].tobytes()


def test_an_event_without_such_a_vector_is_an_error(log: Log) -> None:
    log.append([Draft(PutFrame(text="none"))])
    for key, seq in (
        (KEY, 401),
        (("other", "f4", DIMENSION), 5),
        (("other", "f4", DIMENSION), 400),
    ):
        with pytest.raises(Corrupt, match="no vector"):
            log.embeddings(key, np.array([seq]))


def test_a_vector_is_read_without_the_blob_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding vectors read every file that was put with one, whole."""
    blob, data = bytes(3 << 20), ROWS[0].tobytes()
    named = Embedding("s", "f4", DIMENSION, Attachment(hash_bytes(data), len(data)))
    body = PutFrame(blob=Attachment(hash_bytes(blob), len(blob)), embedding=named)
    with open_log("a", environment=Environment.in_memory(), ring_bytes=1 << 16) as log:
        log.append([Draft(body, attachments=(blob, data))])
        log.seal()
        read: list[int] = []
        plain = Segment._read

        def counted(self: Segment, at: int, size: int) -> bytes:
            read.append(size)
            return plain(self, at, size)

        monkeypatch.setattr(Segment, "_read", counted)
        [event] = log.read()
        assert event.attached(named.data) == data
        assert max(read) < 1 << 20
        assert body.blob is not None
        assert event.attached(body.blob) == blob
        assert max(read) == len(blob)


def test_events_without_attachments_hold_no_way_to_them() -> None:
    """An object for each event of a large batch made asserting facts a seventh dearer."""
    with open_log("a", environment=Environment.in_memory(), ring_bytes=1 << 16) as log:
        log.append([Draft(PutFrame(text="x" * 200)) for _ in range(300)])
        assert {*vars(next(iter(log.read())))} == set()
        assert not any("held" in vars(event) for event in log.read())
