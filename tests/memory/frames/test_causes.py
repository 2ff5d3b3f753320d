"""Frames that follow from an event: `because` is their causation, and must be an earlier event."""

from typing import Any

import pytest

import cerata
from cerata import InvalidInput, NotFound


def test_a_frame_follows_from_an_event() -> None:
    """Also from one of the same transaction, and when it replaces another."""
    with cerata.open(":memory:") as store:
        first = store.put_frame("a question")
        answer = store.put_frame("an answer", options=cerata.PutOptions(because=first.id))
        with store.transaction():
            inside = store.put_frame("b", uri="b")
            store.put_frame(
                "c", uri="b", options=cerata.PutOptions(replace=True, because=inside.id)
            )
        store.put_frame("d", uri="b", options=cerata.PutOptions(replace=True, because=answer.id))
        causes = {event.seq: event.causation for event in store.log() if event.type == "putFrame"}
        assert causes == {1: None, 2: 1, 3: None, 4: 3, 6: 2}


@pytest.mark.parametrize(
    ("because", "error"),
    [
        (99, NotFound),
        (-1, NotFound),
        (0, InvalidInput),
        ("one", InvalidInput),
        (True, InvalidInput),
        (1.5, InvalidInput),
    ],
)
def test_another_cause_is_refused(because: Any, error: type[Exception]) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with pytest.raises(error, match="caus"):
            store.put_frame("b", options=cerata.PutOptions(because=because))
        assert store.head.seq == 1


def test_an_event_of_another_tenant_is_no_cause() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with store.scoped({"tenant": "other"}) as other, pytest.raises(NotFound):
            other.put_frame("b", options=cerata.PutOptions(because=1))
        assert store.head.seq == 1
