"""Recorded contexts: the event, the handoff shown once, warm starts, and the same text again."""

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

import cerata
from cerata import Agent, InvalidInput, NotFound, Store, View, agents
from cerata.agents.activities.values import activities_at
from cerata.agents.contexts.assembly import Assembly, Block
from cerata.agents.continuity.models import Extractive, Task
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import RecallContext
from cerata.memory.snapshot.reader import snapshot_of

from ...clocks import StandingClock
from ...embedders import Hashing, HashingTokens
from .test_assembly import lead_a_life, rules

HOUR = 3_600_000_000


class Writer:
    """A model whose answers a function gives; it counts the tasks."""

    name = "scripted"
    version = "1"

    def __init__(self, answer: Callable[[Task], str]) -> None:
        self.answer = answer
        self.tasks: list[Task] = []

    def write(self, task: Task) -> str:
        self.tasks.append(task)
        return self.answer(task)


def fail(task: Task) -> str:
    raise RuntimeError(f"no {task.kind} today")


def recall_of(store: Store, assembly: Assembly) -> RecallContext:
    assert assembly.recorded is not None
    event = snapshot_of(store).event_of(assembly.recorded)
    assert event is not None
    assert isinstance(event.body, RecallContext)
    return event.body


def test_the_event_has_the_sources_and_the_arguments(store: Store, clock: StandingClock) -> None:
    session = lead_a_life(store, clock).session("new", thread="taxes")
    context = session.assemble("When is the deadline?", max_tokens=2_000, blocks="all")
    recall = recall_of(store, context)
    assert recall.blocks == context.blocks
    assert recall.activity == session.activity_id
    assert json.loads(recall.assembly or "") == {
        "blocks": [
            *("identity", "stability", "contemplation", "truth", "graph", "continuity"),
            *("standing", "references"),
        ],
        "extra": 0,
        "mode": "chat",
        "name": "continuity",
        "resumed": "returned",
        "run": None,
        "timezone": "Europe/Rome",
        "titles": "own",
        "version": 1,
    }
    assert set(recall.frames) == {source for item in context.items for source in item.sources}
    # Every message with a part of the text is among the sources, so its erasure hides the hash.
    texts = [store.frame(frame).text for frame in recall.frames]
    for item in context.items:
        if item.rule == "handoff":
            assert all(store.frame(frame).text in texts for frame in item.further)
    assert agents.access(store, recall.frames[0]).shown == 1


def test_each_recorded_context_can_be_made_again(store: Store, clock: StandingClock) -> None:
    agent = lead_a_life(store, clock)
    drawn = Random(7)
    recorded: list[Assembly] = []
    for number in range(12):
        mode = drawn.choice(("chat", "code"))
        name, thread = f"n{number % 5}", drawn.choice(("main", "taxes"))
        with_end = drawn.random() < 0.7
        session = agent.session(f"{name}-{thread}", thread=thread, mode=mode)
        if drawn.random() < 0.5:
            session.exchange(f"Do you remember the harbour {number}?", "It is by the sea.")
        recorded.append(
            session.assemble(
                drawn.choice(("Do you remember Mina?", "So?", "The deadline of the taxes?")),
                max_tokens=drawn.choice((150, 900, 4_000)),
                blocks=drawn.choice(("default", "all", ["continuity"])),
                titles=drawn.choice(("own", "plain")),
            )
        )
        if with_end:
            session.__exit__(None, None, None)
        clock.time_us += drawn.choice((1, 30 * HOUR))
        if drawn.random() < 0.3:
            agent.reflect()
    for before in recorded:
        again = agent.rerun_assembly(before)
        assert again.assembly is not None
        assert again.assembly == replace(before, recorded=None)
        assert (again.outcome, again.reason) == ("same", None)


def test_a_run_of_the_context_lists_the_same_references_again(store: Store) -> None:
    agent = Agent(store, "wyatt")
    session = agent.session("s", thread="taxes")
    with session.run("r") as run:
        run.put("total", {"sum": 7})
        context = session.assemble("So?", max_tokens=1_000, run=run)
        run.put("later", 8)
    assert "total" in context.text
    assert agent.rerun_assembly(context).outcome == "same"


def test_a_context_that_cannot_be_compared_says_why(store: Store, clock: StandingClock) -> None:
    agent = lead_a_life(store, clock)
    session = agent.session("new", thread="taxes")

    def render(view: View, _budget: int) -> str:
        return f"at {view.basis}"

    block = Block(3, "MINE", render)
    context = session.assemble("So?", max_tokens=1_000, extra=[block])
    again = agent.rerun_assembly(context, extra=[block])
    assert again.assembly is not None
    assert again.assembly.text == context.text
    assert again.outcome == "unknown"
    assert "blocks of the caller" in (again.reason or "")
    # Without their sources no salt protects the text of these blocks.
    assert recall_of(store, context).context == bytes(32)


def test_only_contexts_of_the_agent_are_made_again(store: Store, clock: StandingClock) -> None:
    agent = lead_a_life(store, clock)
    plain = store.recall("the deadline", record=True)
    context = agent.session("new").assemble("So?", max_tokens=1_000)
    assert plain.recorded is not None
    assert context.recorded is not None
    other = Agent(store, "clerk")
    for reader, seq in ((agent, plain.recorded), (other, context.recorded), (agent, 1)):
        with pytest.raises(NotFound):
            reader.rerun_assembly(seq)
    with pytest.raises(InvalidInput, match="not recorded"):
        agent.rerun_assembly(replace(context, recorded=None))
    rerun = store.history.rerun(context.recorded)
    assert (rerun.outcome, rerun.reason) == (
        "unknown",
        "it is a session's context: call Agent.rerun_assembly()",
    )
    explained = store.history.explain(context.recorded)
    assert {line.state for line in explained.lines} == {"unknown"}
    assert explained.reason == rerun.reason


def test_a_recorded_context_needs_no_open_transaction(store: Store, clock: StandingClock) -> None:
    session = lead_a_life(store, clock).session("new")
    head = store.head.seq
    with store.transaction(), pytest.raises(InvalidInput, match="transaction"):
        session.assemble("So?", max_tokens=1_000)
    with pytest.raises(InvalidInput, match="record"):
        session.assemble("So?", max_tokens=1_000, record="yes")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert store.head.seq == head


def test_a_session_has_the_mode_of_the_scope_of_its_store(
    store: Store, clock: StandingClock
) -> None:
    """The context was that of the mode chat, and had no message."""
    agent = Agent(store.scoped({"mode": "code"}), "wyatt")
    with agent.session("s") as session:
        session.exchange("Why does the build fail?", "A test is red.")
    session = agent.session("t")
    assert session.mode == "code"
    context = session.assemble("So?", max_tokens=1_000)
    assert "A test is red." in context.text
    assert agent.rerun_assembly(context).outcome == "same"


# --- the handoff, once a session -----------------------------------------------------------------


def test_a_handoff_is_consumed_by_its_session_alone(store: Store, clock: StandingClock) -> None:
    agent = lead_a_life(store, clock)
    first = agent.session("first", thread="taxes")
    shown = first.assemble("So?", max_tokens=2_000)
    assert "handoff" in shown.blocks
    assert "handoff" not in first.assemble("So?", max_tokens=2_000).blocks
    with first:
        pass
    clock.time_us += HOUR
    assert (
        "handoff" not in agent.session("first", thread="taxes").assemble("?", max_tokens=900).blocks
    )
    assert "handoff" in agent.session("second", thread="taxes").assemble("?", max_tokens=900).blocks
    # As of an earlier basis it was not shown yet.
    row = activities_at(snapshot_of(store)).activity(first.activity_id)
    assert row is not None
    assert shown.recorded is not None
    for basis in (shown.recorded - 1, shown.recorded, store.head.seq):
        has_shown = activities_at(snapshot_of(store.at(basis))).has_shown_handoff(row.row)
        assert has_shown is (basis >= shown.recorded)


def test_a_context_too_small_for_the_handoff_does_not_consume_it(
    store: Store, clock: StandingClock
) -> None:
    session = lead_a_life(store, clock).session("new", thread="taxes")
    small = session.assemble("So?", max_tokens=60)
    assert "handoff" not in small.blocks
    assert "handoff" in session.assemble("So?", max_tokens=2_000).blocks


def test_a_context_without_the_block_does_not_consume_the_handoff(
    store: Store, clock: StandingClock
) -> None:
    session = lead_a_life(store, clock).session("new", thread="taxes")
    session.assemble("So?", max_tokens=2_000, blocks=["identity"])
    assert "handoff" in session.assemble("So?", max_tokens=2_000).blocks


# --- warm starts ---------------------------------------------------------------------------------


def warmed(store: Store, clock: StandingClock, model: Writer) -> Agent:
    lead_a_life(store, clock)
    return Agent(store, "wyatt", model=model)


def test_a_model_writes_the_warm_start_of_a_session_that_returns(
    store: Store, clock: StandingClock
) -> None:
    model = Writer(lambda task: f"You were about to call Mina. ({len(task.sources)})")
    agent = warmed(store, clock, model)
    session = agent.session("new", thread="taxes")
    handoff = agent.at(session.activity_id - 1).handoff("taxes")
    dry = session.assemble("So?", max_tokens=2_000, record=False)
    assert model.tasks == []
    assert ("continuity", "handoff") in rules(dry)
    context = session.assemble("So?", max_tokens=2_000)
    [task] = model.tasks
    assert (task.kind, task.max_tokens) == ("warm_start", 250)
    assert [source.text for source in task.sources] == [str(handoff)]
    assert "  You were about to call Mina. (1)" in context.text.splitlines()
    assert ("continuity", "warm start") in rules(context)
    assert ("continuity", "handoff") not in rules(context)
    assert "handoff" in context.blocks
    assert "warm start" not in str(rules(session.assemble("So?", max_tokens=2_000)))
    assert len(model.tasks) == 1
    assert agent.rerun_assembly(context).outcome == "same"
    [item] = [item for item in context.items if item.rule == "warm start"]
    assert item.source is not None
    frame = store.frame(item.source)
    assert frame.metadata == {"task": "warm_start"}
    assert dict(frame.scope)["thread"] == "taxes"


def test_an_equal_warm_start_is_asked_for_once(store: Store, clock: StandingClock) -> None:
    model = Writer(lambda _: "You were about to call Mina.")
    agent = warmed(store, clock, model)
    for name in ("a", "b"):
        with agent.session(name, thread="taxes") as session:
            assert "about to call Mina" in session.assemble("So?", max_tokens=2_000).text
    assert len(model.tasks) == 1


def test_without_an_answer_the_handoff_is_shown(store: Store, clock: StandingClock) -> None:
    agent = warmed(store, clock, Writer(fail))
    session = agent.session("new", thread="taxes")
    head = store.head.seq
    context = session.assemble("So?", max_tokens=2_000)
    assert ("continuity", "handoff") in rules(context)
    assert context.recorded == head + 1


def test_new_and_crashed_sessions_and_the_default_model_ask_for_no_warm_start(
    store: Store, clock: StandingClock
) -> None:
    model = Writer(lambda _: "You were there.")
    agent = warmed(store, clock, model)
    assert "You were" not in agent.session("other").assemble("So?", max_tokens=900).text
    crashed = agent.session("open", thread="taxes")
    crashed.exchange("The last question?", "The last answer.")
    again = agent.session("next", thread="taxes")
    assert again.resumed == "crashed"
    assert "[SESSION_RESUME]" in again.assemble("So?", max_tokens=2_000).text.splitlines()
    assert model.tasks == []
    assert isinstance(Agent(store, "wyatt")._model, Extractive)  # pyright: ignore[reportPrivateUsage]


# --- the question's vectors ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Hashing, HashingTokens])
def test_a_context_is_made_again_without_an_embedder(
    clock: StandingClock, kind: type[Hashing]
) -> None:
    environment = Environment(MemoryStorage(), clock, Random(3).randbytes)
    embedder = kind()
    with cerata.open("talk.cera", environment=environment, embedder=embedder) as store:
        agent = lead_a_life(store, clock)
        asked = embedder.calls
        context = agent.session("new").assemble("Is the boat in the harbour?", max_tokens=2_000)
        # The exchanges are searched with the vectors that the event keeps.
        assert embedder.calls == asked + 1
        recall = recall_of(store, context)
        assert (recall.space, len(recall.vector or b"")) == ("hashing@1/8/cosine", 32)
        assert (recall.tokens is not None) is (kind is HashingTokens)
        assert any(item.rule.startswith("recalled: a score") for item in context.items)
    with cerata.open("talk.cera", environment=environment) as store:
        again = Agent(store, "wyatt", timezone="Europe/Rome").rerun_assembly(context)
        assert again.assembly == replace(context, recorded=None)
        assert again.outcome == "same"
