"""Ids of a batch stand in declared references alone, which become seqs when read."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import cerata
from cerata import agents
from cerata.agents.continuity.models import Task
from cerata.engine.events import Draft, Event, EventBody, PutFrame, reference_in

from ...agents.continuity.test_reflecting import SCORES, Writer, lead_a_life
from ...clocks import StandingClock
from ..snapshot.isolation import Sweep
from ..snapshot.isolation_calls import WRITES, Case
from ..snapshot.tenants import whole

START_US = 1_790_000_000_000_000


def numbers_in(value: object, path: str) -> Iterator[tuple[str, int]]:
    """Yield every integer of a value with its path."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from numbers_in(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, object]", value).items():
            yield from numbers_in(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from numbers_in(item, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value


TIMES = ("valid_from", "created", "content_dates", "recorded", "expires")
"""Fields whose numbers are microseconds since 1970."""


def check_bodies(events: Iterator[Event]) -> int:
    """Check that no body of a log holds an id of a batch; return the count of references."""
    references = 0
    for event in events:
        body = event.body
        assert event.causation is None or event.causation > 0, event
        if not isinstance(body, EventBody):
            continue
        for name in body.references:
            value: Any = getattr(body, name)
            items: list[Any] = [*value] if type(value) is tuple else [value]
            for item in items if value is not None else ():
                assert reference_in(item) > 0, (event.seq, name, body)
                references += 1
        for path, number in numbers_in(body, event.type):
            assert number >= 0 or path.endswith(TIMES), (event.seq, path, body)
    return references


def test_every_write_of_a_block_resolves_the_ids_of_the_block() -> None:
    """The table of the isolation test has every public write; each gets each pending id."""
    world = whole().copy()
    with world.open_as("alpha") as store:
        first = store.head.seq + 1
        with store.transaction():
            frame = store.put_frame("The harbour of Ada.", uri="file:///pending")
            store.supersede(store.put_frame("old"), "new")
            home = store.assert_fact("Ada", "lives in", "Oslo", evidence=[frame])
            likes = store.assert_fact(
                "Ada", "likes", "tea", options=cerata.FactOptions(because=home)
            )
            store.graph.link(home, "supports", likes)
            ids = range(-12, 0)
            case = Case("alpha", store, store, world.own["alpha"], ids)
            table = {name: calls for name, calls in WRITES.items() if name != "transaction"}
            answers = Sweep().read(case, table)
        assert len(answers) > 300
        assert store.head.seq - first > 100
        assert check_bodies(store.log(first)) > 50


def test_the_writes_of_an_agent_record_no_id_of_their_batch(tmp_path: Path) -> None:
    """A proposal of a reflection recorded because: [-1] for ever."""
    clock = StandingClock(START_US)
    environment = cerata.Environment(clock=clock)

    def answer(task: Task) -> str:
        match task.kind:
            case "reflect":
                return "I was vague.\nPROPOSE: I name a date with each promise."
            case "align":
                return "YES 1"
            case _:
                return SCORES

    with cerata.open(tmp_path / "m.cera", environment=environment) as store:
        store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
        agent = cerata.Agent(store, "w", model=Writer(answer))
        lead_a_life(agent, clock, days=2)
        for _ in range(6):
            clock.time_us += timedelta(hours=13) // timedelta(microseconds=1)
            agent.reflect()
        proposals = [each for each in agent.proposals() if each.candidate is not None]
        assert proposals
        for proposal in proposals:
            [reflection] = proposal.because
            assert "PROPOSE" not in store.frame(reflection).text
            assert store.frame(reflection).text == "I was vague."
        assert check_bodies(store.log()) > 20
        with store.transaction() as transaction:
            frame = store.put_frame("pending")
            with pytest.raises(cerata.InvalidInput, match="inside a transaction"):
                agent.propose("I ask first.", because=[frame])
        agent.propose("I ask first.", because=[frame])
        assert agent.proposals()[-1].because == transaction.receipt.ids
        check_bodies(store.log())


def _ids(store: cerata.Store) -> list[object]:
    """Return the ids of pending things, as every kind of value gives them."""
    frame = store.put_frame("tea at four", uri="file:a")
    fact = store.assert_fact("a", "b", "c", evidence=[frame])
    link = store.graph.link(fact, "supports", store.assert_fact("d", "e", "f"))
    return [
        *(frame.id, *frame.ids, *frame.seqs, fact.id, link.id),
        *(store.frame(frame).id, store.graph.fact(fact).id, store.search("tea")[0].id),
        *(each.id for each in store.graph.links()),
        store.remember("tea at four", uri="file:a").id,
        store.assert_fact("a", "b", "c", evidence=[frame]).id,
    ]


WRITES_OF_A_VALUE: tuple[Callable[[cerata.Store, Any], object], ...] = (
    lambda store, value: store.put_frame("x", metadata={"source": value}),
    lambda store, value: store.put_frame("x", metadata={"a": [{"source": (value,)}]}),
    lambda store, value: store.remember("y", metadata={"source": value}),
    lambda store, value: store.update(store.put_frame("z"), metadata={"source": value}),
    lambda store, value: store.put_frames(["x"], options=cerata.PutOptions(scope={"run": value})),
    lambda store, value: store.put_frame("x", options=cerata.PutOptions(scope={"run": value})),
    lambda store, value: store.assert_fact("a", "came from", value),
    lambda store, value: store.append(PutFrame(text="x", metadata={"source": value})),
    lambda store, value: store.append(Draft(PutFrame(text="x", metadata={"a": [value]}))),
    lambda store, value: agents.remember_messages(
        store, [{"role": "user", "content": "x", "source": value}]
    ),
)


@pytest.mark.parametrize("write", WRITES_OF_A_VALUE)
def test_a_pending_id_is_no_value(write: Callable[[cerata.Store, Any], object]) -> None:
    """It was stored as -1, which names nothing after the block; -1 itself is a number."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            pending = _ids(store)
            assert all(isinstance(value, int) and value < 0 for value in pending)
            for value in pending:
                with pytest.raises(cerata.InvalidInput, match="an id inside a transaction"):
                    write(store, value)
            write(store, -1)
        write(store, next(store.frames()).id)
        assert store.verify().ok


class Basis(msgspec.Struct):
    source: int


def test_a_pending_id_is_no_value_of_a_slot() -> None:
    """A schema raised TypeError of Python's."""
    with cerata.open(":memory:") as store:
        agent = cerata.Agent(
            store,
            "bot",
            memory={
                "notes": cerata.MemorySpec(scope="user_id"),
                "typed": cerata.MemorySpec(scope="user_id", schema=Basis),
                "items": cerata.MemorySpec(scope="user_id", type="list"),
            },
        )
        slots = [agent.slot(name, user_id="u1") for name in ("notes", "typed", "items")]
        with store.transaction():
            number = store.put_frame("x").id
            values: list[tuple[cerata.Slot, object]] = [
                (slots[0], number),
                (slots[0], {"a": [number]}),
                (slots[1], Basis(number)),
                (slots[2], [number]),
            ]
            for slot, value in values:
                with pytest.raises(cerata.InvalidInput, match="an id inside a transaction"):
                    slot.append(value) if slot is slots[2] else slot.set("k", value)
