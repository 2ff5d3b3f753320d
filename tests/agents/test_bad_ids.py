"""A write of an agent does what it reports, or raises and writes nothing.

Each public method of an agent, a run, a session and a slot is in a table: it only reads, or it
writes and is tried with each kind of id. A method that is in no table fails a test. A case itself
checks that its answer is true of the memory afterwards.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pytest

import cerata
from cerata import Agent, MemorySpec, Receipt
from cerata.agents.activities.events import RecordCall
from cerata.agents.run import Run
from cerata.agents.session import Session
from cerata.agents.slot import Slot
from cerata.engine.events import PutFrame

from ..bad_ids import ODD, OWNED, Place, answered, check_receipt, closed_by, opened, public

MEMORY: Final = {
    "prefs": MemorySpec(),
    "mode": MemorySpec(type="value"),
    "talk": MemorySpec(type="list", max_items=3),
    "notes": MemorySpec(scope="user_id"),
}

OWN_KINDS: Final = {
    *("value", "run", "tool_result", "message", "summary", "proposal", "assessment", "reflection"),
}
"""The kinds that an agent writes."""


class World(NamedTuple):
    """An agent at work: a memory with a thing of each kind, and their ids."""

    place: Place
    agent: Agent
    session: Session
    run: Run
    ids: dict[str, Any]

    def slot(self, name: str) -> Slot:
        return self.agent.slot(name)


def worked() -> World:
    place = opened()
    store = place.store
    agent = Agent(store, "wyatt", memory=MEMORY)
    ids: dict[str, Any] = {}
    prefs, talk = agent.slot("prefs"), agent.slot("talk")
    ids["replaced value"] = prefs.set("risk", "low").id
    ids["value"] = prefs.set("risk", "high").id
    ids["deleted value"] = prefs.set("gone", 1).id
    prefs.delete("gone")
    ids["hidden value"] = prefs.set("hidden", 1).id
    store.delete(ids["hidden value"])
    ids["expired value"] = place.expired(talk.append("milk").id)
    ids["evicted item"] = talk.append(0).id
    ids["replaced item"] = [talk.append(number).id for number in range(1, 4)][-1]
    ids["item"] = store.update(ids["replaced item"], tags=["seen"]).id
    ids["value of another slot"] = agent.slot("mode").set("fast").id
    ids["value of another user"] = agent.slot("notes", user_id="u2").set("risk", 1).id
    ids["value of another agent"] = Agent(store, "doc", memory=MEMORY).slot("prefs").set("a", 1).id
    tenant = store.scoped({"tenant": "other"})
    ids["value of another tenant"] = Agent(tenant, "wyatt", memory=MEMORY).slot("mode").set(1).id
    ids["replaced"] = store.put_frame("old door code").id
    ids["frame"] = store.supersede(ids["replaced"], "new door code").id
    ids["deleted"] = store.put_frame("gone").id
    store.delete(ids["deleted"])
    ids["fact"] = store.assert_fact("anna", "likes", "tea").id
    for name, (kind, uri) in OWNED.items():
        ids[name] = store.put_frame("The owner wrote it.", kind=kind, uri=uri).id
    with agent.run("ended") as run:
        ids["ended run"] = run.activity.id
    with agent.session("s0") as session:
        ids["message"] = session.message("user", "What is the tide?").id
        ids["hidden message"] = session.message("assistant", "High.").id
        store.delete(ids["hidden message"])
        ids["context"] = session.assemble("tide", max_tokens=500).recorded
    run = agent.run("open").__enter__()
    run.put("quote", {"price": 7})
    ids["run"] = run.activity.id
    ids["result"] = run.put("hidden", 1).id
    store.delete(ids["result"])
    session = agent.session("s1").__enter__()
    ids["session"] = session.activity_id
    return World(place, agent, session, run, {**ids, **ODD})


def current(slot: Slot) -> dict[int, Any]:
    return {item.id: item.value for item in slot.items()}


def set_value(world: World, each: Any) -> Receipt:
    receipt = world.slot("prefs").set("risk", "none", expect=each)
    assert current(world.slot("prefs")) == {receipt.id: "none"}
    return receipt


def set_key(world: World, each: Any) -> Receipt:
    receipt = world.slot("prefs").set(each, "none")
    assert world.slot("prefs").get(each) == "none"
    return receipt


def append_value(world: World, each: Any) -> Receipt:
    receipt = world.slot("talk").append(each)
    [*_, (number, value)] = current(world.slot("talk")).items()
    assert (number, value) == (receipt.ids[0], each)
    assert len(world.slot("talk").items()) == 3
    return receipt


def keep_value(world: World, each: Any) -> Receipt:
    receipt = world.slot("prefs").keep("kept", "risk", because=each)
    assert current(world.slot("prefs")) == {receipt.id: "kept"}
    return receipt


def delete_value(slot: str) -> Callable[[World, Any], Receipt]:
    def delete(world: World, each: Any) -> Receipt:
        before = current(world.slot(slot))
        receipt = world.slot(slot).delete(each)
        [number] = receipt.deleted
        assert number in before
        assert current(world.slot(slot)) == {k: v for k, v in before.items() if k != number}
        return receipt

    return delete


def put_message(world: World, each: Any) -> Receipt:
    receipt = world.session.message("user", "Is it low?", id=each)
    [exchange] = world.session.exchanges()
    assert exchange.question is not None
    assert (exchange.question.id, exchange.reply) == (receipt.id, None)
    again = world.session.message("user", "Is it low?", id=each)
    assert (again.ids, again.added) == (receipt.ids, False)
    return receipt


def put_exchange(world: World, each: Any) -> Receipt:
    receipt = world.session.exchange("Is it low?", "No.", id=each)
    [exchange] = world.session.exchanges()
    assert exchange.question is not None
    assert exchange.reply is not None
    assert (exchange.question.id, exchange.reply.id) == receipt.ids
    return receipt


def put_hidden_again(world: World, each: Any) -> None:
    """A message that a person hid stays hidden if the chat sends it again."""
    del each
    first = world.session.message("user", "My code is 1234.", id="m1")
    world.place.store.delete(first.id)
    again = world.session.message("user", "My code is 1234.", id="m1")
    assert (again.id, again.added) == (first.id, False)
    assert not world.place.store.frame(first.id).active


def assemble(world: World, each: Any) -> None:
    assembly = world.session.assemble("tide", max_tokens=500, run=each)
    assert assembly.recorded == world.place.store.head.seq


def compact(world: World, each: Any) -> None:
    del each
    summary = world.session.compact()
    assert summary is not None
    assert world.place.store.frame(summary.id).active
    assert [each.id for each in world.agent.summaries()] == [summary.id]


def session_run(world: World, each: Any) -> None:
    run = world.session.run(each)
    assert run.activity.id in {each.id for each in world.agent.runs()}
    assert run.activity.session == world.session.activity_id


def agent_run(world: World, each: Any) -> None:
    run = world.agent.run(each)
    assert run.activity.id in {each.id for each in world.agent.runs() if each.status == "open"}
    assert each in (None, run.id)


def agent_session(world: World, each: Any) -> None:
    session = world.agent.session(each)
    assert session.activity_id in {each.id for each in world.agent.sessions()}
    assert each in (None, session.id)


def propose(world: World, each: Any) -> Receipt:
    receipt = world.agent.propose("I keep my word.", because=[each])
    [*_, proposal] = world.agent.proposals()
    assert (proposal.id, proposal.because) == (receipt.id, (each,))
    again = world.agent.propose("I keep my word.", because=[each])
    assert (again.id, again.added) == (receipt.id, False)
    return receipt


def reflect(world: World, each: Any) -> None:
    head = world.place.store.head.seq
    world.place.clock.time_us += 2 * 86_400_000_000
    reflection = world.agent.reflect(limit=each)
    assert reflection.done
    put = {event.seq for event in world.place.events(head) if isinstance(event.body, PutFrame)}
    assert {task.frame for task in reflection.done} <= put


def sweep(world: World, each: Any) -> None:
    """Another's expired frame stays open."""
    place = world.place
    head = place.store.head.seq
    del each
    swept = world.agent.sweep()
    closed = closed_by(place.events(head))
    assert swept.frames == len(closed)
    assert world.ids["expired value"] in closed


def idle(run: Run) -> None:
    del run


def same(value: object) -> object:
    return value


def rerun(world: World, each: Any) -> None:
    """An ended run is repeated, and nothing is written."""
    head = world.place.store.head
    assert world.agent.rerun(each, idle).run.id == each
    assert world.place.store.head == head


def keep_result(world: World, each: Any) -> Receipt:
    receipt = world.run.keep("$ref:quote.1", "prefs", each)
    assert world.slot("prefs").get(each) == {"price": 7}
    return receipt


def keep_reference(world: World, each: Any) -> Receipt:
    return world.run.keep(each, "prefs", "kept")


def keep_hidden(world: World, each: Any) -> Receipt:
    del each
    return world.run.keep("$ref:hidden.1", "prefs", "kept")


def recorded(write: Callable[[World, Any], Any]) -> Callable[[World, Any], None]:
    """Check that a call of a run is recorded once, and its result has the reference."""

    def record(world: World, each: Any) -> None:
        head = world.place.store.head.seq
        write(world, each)
        calls = [e.seq for e in world.place.events(head) if isinstance(e.body, RecordCall)]
        assert [call.event for call in world.agent.calls("open")][-1:] == calls

    return record


def run_put(world: World, each: Any) -> None:
    assert world.run.get(world.run.put(each, 5).ref or "") == 5


def run_call(world: World, each: Any) -> None:
    result = world.run.call(each, same, value=5)
    assert world.run.get(result.ref or "") == 5


def run_acall(world: World, each: Any) -> None:
    async def echo(value: int) -> int:
        return value

    result = asyncio.run(world.run.acall(each, echo, value=5))
    assert world.run.get(result.ref or "") == 5


def run_tool(world: World, each: Any) -> None:
    result = world.run.tool("echo")(same)(each)
    assert world.run.get(result.ref or "") == each


WRITES: Final[Mapping[str, Callable[[World, Any], object]]] = {
    "Slot.set": set_value,
    "Slot.set, a key": set_key,
    "Slot.append": append_value,
    "Slot.keep": keep_value,
    "Slot.delete": delete_value("prefs"),
    "Slot.delete, an item": delete_value("talk"),
    "Session.message": put_message,
    "Session.message, hidden": put_hidden_again,
    "Session.exchange": put_exchange,
    "Session.assemble": assemble,
    "Session.compact": compact,
    "Session.run": session_run,
    "Agent.run": agent_run,
    "Agent.session": agent_session,
    "Agent.propose": propose,
    "Agent.reflect": reflect,
    "Agent.sweep": sweep,
    "Agent.rerun": rerun,
    "Run.keep": keep_result,
    "Run.keep, a reference": keep_reference,
    "Run.keep, hidden": keep_hidden,
    "Run.put": recorded(run_put),
    "Run.call": recorded(run_call),
    "Run.acall": recorded(run_acall),
    "Run.tool": recorded(run_tool),
    "Run.now": recorded(lambda world, _: world.run.now()),
    "Run.random": recorded(lambda world, _: world.run.random()),
}

READS: Final[Mapping[type, set[str]]] = {
    Slot: {"get", "history", "items", "keys", "last", "raw", "scope", "search", "spec"},
    Session: {
        *("entropy", "exchanges", "id", "mode", "project", "recall", "resumed", "should_restart"),
        *("slot", "source", "thread", "title"),
        # The work of `run`.
        "run_of",
    },
    Run: {
        *("activity", "context", "get", "id", "key", "lineage", "next_turn", "refs", "resolve"),
        *("slot", "store", "turn"),
    },
    Agent: {
        *("at", "calls", "candidates", "entropy", "get", "handoff", "identity", "meta_patterns"),
        *("name", "pending", "proposals", "refs", "rerun_assembly", "runs", "sessions", "slot"),
        *("slot_of", "standing", "store", "summaries", "threads", "topics", "version", "wellbeing"),
        # Parts of `run` and `rerun`.
        *("goes_on", "live_journal", "over", "run_of"),
    },
}

NEWER: Final = {
    ("Slot.set", "replaced value"): "value",
    ("Slot.delete", "replaced value"): "value",
    ("Slot.delete, an item", "replaced item"): "item",
}
"""The writes that change a current value alone with an earlier version: the current id, named."""

OF_IDS: Final = {
    *("Slot.set", "Slot.keep", "Slot.delete", "Slot.delete, an item", "Session.assemble"),
    *("Agent.propose", "Agent.rerun"),
}
"""The writes that take an id; each other one takes a name, a value or a number, or nothing."""


def test_each_method_of_an_agent_is_in_a_table() -> None:
    """A new method only reads, or is tried with bad ids."""
    for kind, reads in READS.items():
        writes = {
            name.partition(".")[2].partition(",")[0]
            for name in WRITES
            if name.startswith(f"{kind.__name__}.")
        }
        assert writes | reads == public(kind)
        assert not writes & reads


IDS: Final = [*worked().ids]


@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_an_agent_does_what_it_reports_or_raises(write: str) -> None:
    """Nothing but its own frames changes; a refusal writes nothing."""
    world = worked()
    for name in IDS if write in OF_IDS else ODD:
        store, each = world.place.store, world.ids[name]
        head = store.head
        newer = NEWER.get((write, name))
        answer = answered(WRITES[write], world, each)
        if isinstance(answer, cerata.CerataError):
            assert store.head == head, name
            assert answer.remedy, name
            assert newer is None or f" {world.ids[newer]}" in str(answer), (name, str(answer))
        else:
            assert newer is None, name
            events = world.place.events(head.seq)
            if isinstance(answer, Receipt):
                check_receipt(answer, events)
            closed = {store.frame(number).kind for number in closed_by(events)}
            put = {e.body.kind for e in events if isinstance(e.body, PutFrame)}
            assert closed | put <= OWN_KINDS, name
            assert store.verify().ok
            store.close()
            world = worked()


@pytest.mark.parametrize("owned", [*OWNED, "a note"])
def test_a_slot_reads_and_replaces_its_values_alone(owned: str) -> None:
    """A program may put any frame at the URI of a value, which is none by that."""
    kind, _ = OWNED.get(owned, ("note", None))
    world = worked()
    store, prefs = world.place.store, world.slot("prefs")
    uri = str(store.frame(world.ids["value"]).uri)
    frame = store.put_frame("A program wrote it.", kind=kind, uri=uri.replace("/risk", "/tide")).id
    head = store.head
    assert prefs.get("tide") is None
    assert prefs.keys() == ["risk"]
    writes: tuple[Callable[[], object], ...] = (
        lambda: prefs.set("tide", 1),
        lambda: world.run.keep("$ref:quote.1", "prefs", "tide"),
        lambda: prefs.delete("tide"),
        lambda: prefs.delete(frame),
    )
    for write in writes:
        with pytest.raises((cerata.Conflict, cerata.NotFound)) as refused:
            write()
        assert store.head == head
    with pytest.raises(cerata.Conflict, match=f"Frame {frame} has the URI of the value") as refused:
        prefs.set("tide", 1)
    assert refused.value.remedy == "Delete the frame with the store, or choose another key."
    store.delete(frame)
    assert prefs.set("tide", 1).added


def test_a_run_ends_although_a_program_hid_its_frame() -> None:
    """It stayed open, and its block raised `Conflict`."""
    world = worked()
    [frame] = world.place.store.frames(cerata.Filter(kind="run", track="wyatt"))
    world.place.store.delete(frame)
    world.run.__exit__(None, None, None)
    assert world.run.activity.status == "done"


def test_a_context_lists_the_results_of_no_other_run() -> None:
    world = worked()
    run = Agent(world.place.store, "doc").run("r").__enter__()
    head = world.place.store.head
    with pytest.raises(cerata.NotFound, match="There is no run"):
        world.session.assemble("tide", max_tokens=500, run=run)
    assert world.place.store.head == head
