"""Old versions of a body are lifted as they are read; what is stored never changes."""

from collections.abc import Iterator

import msgspec
import pytest

from cerata.engine import events
from cerata.engine.disk.environment import Environment
from cerata.engine.errors import Unsupported
from cerata.engine.events import Draft, EventBody, PutFrame, UnknownBody, event, upcaster
from cerata.engine.log import Log
from cerata.engine.open import open_log


@event("testMoved", version=3, references={"origin": "putFrame"})
class Moved(EventBody, frozen=True, kw_only=True):
    """Version 1 had ``km``; version 2 ``metres``; version 3 calls ``place`` ``origin``."""

    metres: int
    origin: int | None = None


@pytest.fixture
def lifts() -> Iterator[None]:
    """Register the two steps, and forget them afterwards."""
    known = dict(events._UPCASTERS)

    @upcaster("testMoved", 1)
    def in_metres(fields: events.Fields) -> events.Fields:
        rest = {name: value for name, value in fields.items() if name != "km"}
        return {**rest, "metres": 1000 * fields["km"]}

    @upcaster("testMoved", 2)
    def by_origin(fields: events.Fields) -> events.Fields:
        return {"metres": fields["metres"], "origin": fields.get("place")}

    yield
    events._UPCASTERS.clear()
    events._UPCASTERS.update(known)


def stored(version: int, **fields: object) -> Draft:
    """A body as an older process stored it."""
    return Draft(
        UnknownBody(kind="testMoved", kind_version=version, data=msgspec.msgpack.encode(fields))
    )


def written(*drafts: Draft) -> Log:
    log = open_log("a.cera", environment=Environment.in_memory())
    log.append([Draft(PutFrame(text="a frame"))])
    log.append(drafts)
    return log


@pytest.mark.usefixtures("lifts")
def test_a_chain_of_two_lifts_the_oldest() -> None:
    """Each step knows only the next version; references are lifted after them."""
    with written(stored(1, km=3), stored(2, metres=5, place=1), Draft(Moved(metres=7))) as log:
        bodies = [found.body for found in log.read(2)]
        assert bodies == [Moved(metres=3000), Moved(metres=5, origin=1), Moved(metres=7)]
        assert [found.header.version for found in log.read(2)] == [1, 2, 3]


@pytest.mark.usefixtures("lifts")
def test_a_reference_within_the_batch_is_lifted_too() -> None:
    """It was stored under its old name; it is a seq under the new one."""
    with written(Draft(PutFrame(text="b")), stored(2, metres=5, place=-1)) as log:
        assert log.event(3).body == Moved(metres=5, origin=2)


@pytest.mark.usefixtures("lifts")
def test_stored_bytes_leaf_and_chain_stay() -> None:
    """Lifting happens on the way out: who has no upcaster sees the same log."""
    with written(stored(1, km=3)) as log:
        found = log.event(2)
        _ = found.body
        assert found.payload is not None
        assert msgspec.msgpack.decode(bytes(found.payload.body)) == {"km": 3}
        chain = log.chain_at(2)
        events._UPCASTERS.clear()
        assert log.chain_at(2) == chain
        assert log.event(2).leaf == found.leaf
        assert isinstance(log.event(2).body, UnknownBody)


@pytest.mark.usefixtures("lifts")
def test_a_later_version_is_carried_unread() -> None:
    """A newer process wrote it; nothing here may guess what it means."""
    with written(stored(4, parsecs=1)) as log:
        body = log.event(2).body
        assert isinstance(body, UnknownBody)
        assert body.kind_version == 4


@pytest.mark.usefixtures("lifts")
def test_an_upcaster_that_raises_names_event_and_version() -> None:
    """A fold must not take it for an event of another kind."""
    with written(stored(1, miles=3)) as log:
        with pytest.raises(Unsupported, match=r"Event 2 \(testMoved\).*version 1: KeyError: 'km'"):
            _ = log.event(2).body
        assert log.event(1).body == PutFrame(text="a frame")


@pytest.mark.usefixtures("lifts")
@pytest.mark.parametrize("error", [SystemExit(3), MemoryError()])
def test_an_upcaster_that_stops_the_program_stops_it(error: BaseException) -> None:
    """An exit and a lack of memory are no faults of an upcaster."""

    def stop(_: events.Fields) -> events.Fields:
        raise error

    events._UPCASTERS["testMoved", 1] = stop
    with written(stored(1, km=3)) as log:
        with pytest.raises(type(error)) as caught:
            _ = log.event(2).body
        assert caught.value is error


@pytest.mark.usefixtures("lifts")
def test_a_step_has_one_upcaster() -> None:
    """Two would make the state depend on the order of imports."""
    with pytest.raises(TypeError, match="is lifted by"):

        @upcaster("testMoved", 1)
        def other(fields: events.Fields) -> events.Fields:
            return fields
