"""Candidates: those that the process keeps are those of a whole computation, at every event."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from cerata import Agent, Filter, Store
from cerata.agents.continuity import candidates as module
from cerata.agents.continuity.candidates import (
    APART_US,
    CANDIDATE,
    ENTROPY,
    KEPT,
    PASSES,
    REFLECTION_KIND,
    TASK,
    Candidate,
    candidates_of,
    inquiry_of,
)
from cerata.agents.continuity.entropy import Entropies
from cerata.agents.continuity.exchanges import Exchange, Pair, Talk
from cerata.agents.continuity.summaries import Summaries
from cerata.agents.turns.line import Line
from cerata.agents.turns.reads import messages_at
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.fulltext.analyzer import terms

from ...clocks import StandingClock

HOUR = 3_600_000_000
WORDS = ("deadline", "harbour", "budget", "garden", "letter")


def lead_a_life(store: Store, clock: StandingClock, seed: int) -> None:
    """Talk in lines and scopes, edit, delete, import late messages, and reflect."""
    drawn = random.Random(seed)
    agent = Agent(store, "wyatt")
    for number in range(25):
        dimensions = {"user_id": drawn.choice("ab")} if drawn.random() < 0.3 else {}
        thread, mode = drawn.choice(("main", "taxes")), drawn.choice(("chat", "booth", "code"))
        with agent.session(f"s{number}", thread=thread, mode=mode, **dimensions) as session:
            subject = " and ".join(drawn.sample(WORDS, 2))
            late_us = drawn.randrange(40) * HOUR if drawn.random() < 0.2 else 0
            session.exchange(
                f"No, I meant the {subject}; I am scared.",
                f"Which {subject} do you mean?",
                created=datetime.fromtimestamp((clock.time_us - late_us) / 1e6, UTC),
            )
            if drawn.random() < 0.3:
                session.message("user", f"I do not know what the {subject} is.")
        messages = [frame.id for frame in store.frames(Filter(kind="message"))]
        if drawn.random() < 0.4:
            store.supersede(drawn.choice(messages), f"No, I meant {number}. I am furious.")
        if drawn.random() < 0.2:
            store.delete(drawn.choice([f.id for f in store.frames(Filter(kind="message"))]))
        if drawn.random() < 0.3:
            agent.reflect(limit=drawn.randint(1, 4))
        clock.time_us += drawn.randint(0, 8) * HOUR // 4


def computed(snapshot: Snapshot) -> list[Candidate]:
    """Return the candidates by the rule of the page, without anything that is kept."""
    passes: dict[object, dict[str, int]] = {}
    [mask] = snapshot.layers.admitted(Filter(kind=REFLECTION_KIND, track="wyatt"))
    for frame in snapshot.base.ids(np.flatnonzero(mask)).tolist():
        metadata = snapshot.frame_at(frame).metadata
        passes.setdefault(metadata[CANDIDATE], {})[str(metadata[TASK])] = frame
    moved: list[tuple[int, tuple[int, ...], int, str, Line]] = []
    for line in Summaries(snapshot, "wyatt").lines:
        talk = Talk(snapshot, "wyatt", line=line)
        pairs = talk.pairs()
        values: list[int] = Entropies(talk, pairs).values.tolist() if pairs else []
        for pair, value in zip(pairs, values, strict=True):
            if value >= ENTROPY:
                row = pair.rows[0]
                created = talk.messages.columns.created.item(row)
                inquiry = inquiry_of(talk.exchange(pair))
                moved.append((created, pair.rows, talk.origin(row), inquiry, line))
    chosen: list[Candidate] = []
    last: dict[object, int] = {}
    for created, _, origin, inquiry, line in sorted(moved, key=lambda each: each[:2]):
        group = (line.base, line.group)
        is_near = group in last and created - last[group] < APART_US
        if is_near or any(
            each.is_open_at(origin) and _alike(inquiry, each.inquiry) for each in chosen
        ):
            continue
        last[group] = created
        done = passes.get(origin, {})
        frames = tuple(done[name] for name in PASSES if name in done)
        chosen.append(Candidate(origin, created, line.thread, line.group, inquiry, frames))
    return chosen


def _alike(first: str, second: str) -> bool:
    stems, others = set(terms(first)), set(terms(second))
    return 2 * len(stems & others) >= len(stems | others) > 0


@pytest.mark.parametrize("seed", range(2))
def test_kept_candidates_are_those_of_a_whole_computation(
    store: Store, clock: StandingClock, seed: int
) -> None:
    """At every event, in an order that goes on, back and elsewhere, also in a narrower scope."""
    lead_a_life(store, clock, seed)
    drawn = random.Random(seed)
    end = store.head.seq
    count = kept = 0
    for basis in [*range(end + 1), *drawn.sample(range(end + 1), 40)]:
        for scope in ({"tenant": "default"}, {"tenant": "default", "user_id": "a"}):
            snapshot = snapshot_of(store.at(basis)).within(scope)
            lines = Summaries(snapshot, "wyatt").lines
            expected = computed(snapshot)
            kept += messages_at(snapshot.log_only).columns in KEPT
            assert candidates_of(snapshot, "wyatt", lines) == expected
            count += len(expected)
    assert count > end
    assert kept > end


def test_a_look_after_a_message_computes_its_line_alone(
    store: Store, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others, and the texts of their exchanges, are kept."""
    lead_a_life(store, clock, 9)
    agent = Agent(store, "wyatt")
    before = agent.candidates()
    computations: list[int] = []
    texts: list[int] = []

    def counted(talk: Talk, pairs: Sequence[Pair]) -> Entropies:
        computations.append(len(pairs))
        return Entropies(talk, pairs)

    def read(exchange: Exchange) -> str:
        texts.append(exchange.id)
        return inquiry_of(exchange)

    monkeypatch.setattr(module, "Entropies", counted)
    monkeypatch.setattr(module, "inquiry_of", read)
    assert agent.candidates() == before
    assert (computations, texts) == ([], [])
    clock.time_us += HOUR
    session = agent.session("z", thread="new")
    session.exchange("No, I meant the boat. I am scared of it.", "Which boat?")
    assert len(agent.candidates()) == len(before) + 1
    assert (computations, len(texts)) == ([1], 1)
