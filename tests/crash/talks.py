"""A workload of conversations: exchanges, recorded contexts, summaries, and what a crash leaves.

After a crash every exchange is whole, and a message that is sent again exists once. Each recorded
context can be made again, and a session has shown the handoff of its thread at most once.
"""

from typing import Final

from cerata.agents.activities.events import RecordCall
from cerata.agents.activities.projection import HANDOFF_BLOCK
from cerata.agents.agent import Agent
from cerata.agents.session import Session
from cerata.engine.events import PutFrame, RecallContext
from cerata.fault_injection.stories.workload import Workload, operation
from cerata.memory.store import Store

_THREAD: Final = "taxes"
_LONG: Final = "I mean the deadline of the taxes. " * 600
"""A message larger than a quarter of the ring."""


class Talks(Workload):
    """An agent that talks, dies between two calls, and comes back."""

    has_attachments = True

    def prepare(self, store: Store) -> None:
        """End a session, and leave another open after an exchange."""
        store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
        with _session(store, "s0") as session:
            session.exchange("When is the deadline?", "It is on Friday.", id="m0")
        store.checkpoint()
        self.say(store)

    @operation
    def say(self, store: Store) -> None:
        """Exchange two messages, and send them again; the session stays open."""
        number = store.head.seq
        question = f"{number}: {_LONG if number % 3 == 0 else 'No, I mean the taxes.'}"
        session = _session(store, f"s{number % 4}")
        for _ in range(2):
            session.exchange(question, "The taxes are on Friday.", id=f"m{number}")

    @operation
    def ask(self, store: Store) -> None:
        """Come back to the thread, assemble a context twice, and end the session."""
        with _session(store, f"s{store.head.seq % 4}") as session:
            for _ in range(2):
                session.assemble("Do you remember the deadline?", max_tokens=1_000, blocks="all")

    @operation
    def sum_up(self, store: Store) -> None:
        """Summarize the running day."""
        _session(store, "s1").compact()

    def check(self, store: Store) -> None:
        """Check that exchanges, contexts and summaries are whole."""
        _check_exchanges(store)
        _check_contexts(store)
        _check_summaries(store)


def _agent(store: Store) -> Agent:
    return Agent(store, "wyatt")


def _session(store: Store, name: str) -> Session:
    return _agent(store).session(name, thread=_THREAD)


def _check_exchanges(store: Store) -> None:
    """Check that each message has its other half in its batch, and exists once."""
    roles: dict[int, list[str | None]] = {}
    texts: list[str | None] = []
    for event in store.log():
        body = event.body
        if isinstance(body, PutFrame) and body.kind == "message":
            roles.setdefault(event.header.first_seq, []).append(body.role)
            if body.role == "user":
                texts.append(body.text)
    halves = [batch for batch, found in roles.items() if found != ["user", "assistant"]]
    assert not halves, f"a half of the exchange in batch {halves[0]}"
    assert len(texts) == len(set(texts)), "a message exists twice"


def _check_contexts(store: Store) -> None:
    """Check that recorded contexts have their texts again, and that none shows a handoff twice."""
    agent = _agent(store)
    shown: list[int | None] = []
    for event in store.log():
        if isinstance(event.body, RecallContext):
            again = agent.rerun_assembly(event.seq)
            assert again.outcome == "same", f"context {event.seq}: {again.outcome} {again.reason}"
            if HANDOFF_BLOCK in event.body.blocks:
                shown.append(event.body.activity)
    assert len(shown) == len(set(shown)), "a session has shown the handoff twice"


def _check_summaries(store: Store) -> None:
    """Check that the frame of each summary and its call are of one batch."""
    made: set[int] = set()
    named: set[int] = set()
    for event in store.log():
        body = event.body
        if isinstance(body, PutFrame) and body.kind == "summary":
            made.add(event.seq)
        elif isinstance(body, RecordCall):
            named.update(body.results)
            first = event.header.first_seq
            assert all(first <= result < event.seq for result in body.results), (
                f"call {event.seq} has a result of another batch"
            )
    assert made == named, f"{len(made)} summaries, {len(named)} of them of calls"
