"""A drawn history of two agents, for the projection of Dynamics; as a program, its digest.

``python -m tests.agents.turns.dynamics.talk SEED`` prints the digest after a replay.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random

import cerata
from cerata import Agent, Dynamics, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.projections.columnar.times import to_datetime

from ....clocks import StandingClock

START_US = 1_760_000_000_000_000
_TEXT = (
    "I am torn , scared ? and sorry , i was wrong about the deadline deadlines budget budgets "
    "harbour harbours garden gardens maybe perhaps tomorrow i will call you do you remember my "
    "mistake thanks as i said i notice that i keep returning and yet it is both true and false "
)
WORDS = _TEXT.split()


@contextmanager
def talking(seed: int, acts: int) -> Generator[Store]:
    """Open a store in which two agents talked with two users, with edits, chunks and late imports.

    Args:
        seed: The seed of all draws.
        acts: The number of messages, exchanges, edits and transcripts.
    """
    drawn, clock = Random(seed), StandingClock(START_US)
    environment = Environment(MemoryStorage(), clock, drawn.randbytes)
    with cerata.open("talk.cera", environment=environment, projections=[Dynamics]) as store:
        for _ in range(acts):
            clock.time_us += drawn.choice((1, 60, 3_000)) * 1_000_000
            _act(store, drawn, to_datetime(clock.time_us))
        yield store


def text(drawn: Random) -> str:
    """Return a drawn text."""
    return " ".join(drawn.choices(WORDS, k=drawn.randint(1, 60)))


def _act(store: Store, drawn: Random, now: datetime) -> None:
    draw = drawn.random()
    messages = [frame for frame in store.frames() if frame.kind == "message"]
    if messages and draw < 0.15:
        # Mostly the newest, whose edit changes the stream.
        frame = messages[-1] if drawn.random() < 0.7 else drawn.choice(messages)
        if drawn.random() < 0.7:
            store.supersede(frame, text(drawn))
        else:
            store.delete(frame)
        return
    user = drawn.choice(("u", "v"))
    agent = Agent(store, drawn.choice(("wyatt", "doc")))
    session = agent.session(
        f"s{drawn.randrange(4)}{user}", mode=drawn.choice(("chat", "code")), user_id=user
    )
    created = now - timedelta(hours=drawn.choice((0, 0, 0, 30)))
    if draw < 0.8:
        session.exchange(text(drawn), text(drawn), created=created)
    elif draw < 0.95:
        role = drawn.choice(("user", "assistant"))
        session.message(role, text(drawn), created=created)
    else:
        said = " ".join(text(drawn) for _ in range(40))
        store.remember(
            said,
            kind="message",
            role="assistant",
            metadata={"session": "long"},
            options=cerata.PutOptions(track=agent.name),
        )


if __name__ == "__main__":
    with talking(int(sys.argv[1]), 120) as memory:
        sys.stdout.write(memory.stream.digests(replay=True)["dynamics"].hex())
