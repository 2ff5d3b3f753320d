"""Dynamics: the same state however it is replayed, as of any event, and nothing without it."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import pytest

import cerata
from cerata import Agent, Dynamics, Store, Unsupported
from cerata.agents.continuity import candidates
from cerata.agents.continuity.candidates import KEPT, Candidate
from cerata.agents.continuity.entropy import Entropies
from cerata.agents.continuity.exchanges import Talk
from cerata.agents.turns.dynamics import predictor
from cerata.agents.turns.dynamics.features import FEATURES, Moments, Values
from cerata.engine.events import Draft, PutFrame, Scope
from cerata.engine.log import Log
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.registry import Registry
from cerata.projections.rows.row_fold import RowFold, row_fold
from cerata.replay.fold import Fold

from .talk import START_US, talking, text

SEEDS = (1, 2, 3)
DIGEST = "5136d52a42cf460c1f793ac02c79821cc8c84a7c90ccef6cb21fb012401b68d2"
"""Of fixed events: the state belongs to the version, on every machine."""


def log_of(store: Store) -> Log:
    return session_of(store).log


def folded(log: Log, through: int, drawn: Random | None = None) -> RowFold:
    """Fold events one by one, or in drawn batches."""
    fold = row_fold(Dynamics)
    seq = 1
    while seq <= through:
        last = seq if drawn is None else min(through, seq + drawn.randrange(1, 90))
        fold.apply([log.event(each) for each in range(seq, last + 1)])
        seq = last + 1
    return fold


@pytest.mark.parametrize("seed", SEEDS)
def test_the_state_is_the_same_one_by_one_in_batches_and_from_a_checkpoint(seed: int) -> None:
    drawn = Random(seed)
    with talking(seed, 120) as store:
        log, head = log_of(store), store.head.seq
        single = folded(log, head)
        for _ in range(3):
            batches = folded(log, head, drawn)
            assert batches.digest() == single.digest()
            assert batches.compare(single)[1] == frozenset()
        registry = Registry([Dynamics])
        for part in (head // 3, head // 2):
            Fold(log, registry, last=part).save()
            assert Fold(log, registry, last=head).digests()["dynamics"] == single.digest()
        assert store.stream.digests()["dynamics"] == single.digest()
        assert store.verify().ok


@pytest.mark.slow("starts two processes with another hash seed each")
def test_two_processes_with_two_hash_seeds_agree(checkout: Path) -> None:
    lines = {
        subprocess.run(
            [sys.executable, "-m", "tests.agents.turns.dynamics.talk", "1"],
            capture_output=True,
            text=True,
            check=True,
            cwd=checkout,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    [line] = lines
    assert len(line) == 64


def test_the_state_of_fixed_events_never_changes_within_a_version() -> None:
    """On disk: another digest needs another version of the projection."""
    drawn = Random(9)
    scope: Scope = (("tenant", "default"), ("session_id", "s"))
    with cerata.open(":memory:") as store:
        for number in range(80):
            role = "assistant" if number % 2 else "user"
            created = START_US + number * 90_000_000
            body = PutFrame(text=text(drawn), kind="message", role=role, track="w", created=created)
            store.append(Draft(body, scope))
        assert folded(log_of(store), 80).digest().hex() == DIGEST


@pytest.mark.parametrize("seed", SEEDS)
def test_states_as_of_an_event_are_those_of_a_store_that_stopped_there(seed: int) -> None:
    """Also between the two messages of an exchange, and between an edit and its supersede event."""
    drawn = Random(seed)
    with talking(seed, 60) as store:
        log = log_of(store)
        for n in sorted(drawn.sample(range(1, store.head.seq), 12)):
            view = store.at(n).stream.projection(Dynamics)
            stopped = folded(log, n).snapshot()
            assert isinstance(stopped, Dynamics)
            for agent in ("wyatt", "doc"):
                assert view.states(agent) == stopped.states(agent), n


def _nothing(_: Snapshot, __: str) -> frozenset[int]:
    return frozenset()


@pytest.fixture
def store() -> Store:
    return cerata.open(":memory:", projections=[Dynamics])


def surprises(store: Store, agent: str = "wyatt") -> list[int]:
    states = store.stream.projection(Dynamics).states(agent)
    return [each.exchange for state in states for each in state.surprises]


def test_each_ended_exchange_is_scored_once(store: Store) -> None:
    session = Agent(store, "wyatt").session("s")
    first = session.exchange("Did he call?", "No.").id
    lonely = session.message("user", "And now?").id
    assert surprises(store) == [first], "an open question is no exchange yet"
    session.message("user", "Hello?")
    assert surprises(store) == [first, lonely]
    session.message("assistant", "Yes.")
    greeting = session.message("assistant", "Good morning.").id
    assert surprises(store) == [first, lonely, lonely + 1, greeting]


def test_an_edit_of_the_newest_message_is_no_exchange(store: Store) -> None:
    session = Agent(store, "wyatt").session("s")
    first = session.exchange("Did he call?", "No.").id
    before = store.stream.projection(Dynamics).states("wyatt")
    store.supersede(first, "Did she call at all, or was it only him that called?")
    assert store.stream.projection(Dynamics).states("wyatt") == before
    second = session.exchange("Who?", "Anna.").id
    assert surprises(store) == [first, second]
    store.delete(second)
    assert surprises(store) == [first, second], "a deletion unlearns nothing"


def test_the_features_hold_the_entropy_of_the_readings(store: Store) -> None:
    """The fold and the reading compute the same nine parts, each in its way."""
    drawn = Random(5)
    session = Agent(store, "wyatt").session("s")
    for _ in range(40):
        session.exchange(text(drawn), text(drawn))
    seen: list[Values] = []

    def record(_: Moments, values: Values) -> None:
        seen.append(values)

    with mock.patch.object(Moments, "add", record):
        fold = folded(log_of(store), store.head.seq, drawn)
        state = fold.snapshot()
        assert isinstance(state, Dynamics)
        state.states("wyatt")
    talk = Talk(snapshot_of(store).within((("tenant", "default"),)), "wyatt")
    entropies = Entropies(talk, talk.pairs())
    assert [row[FEATURES.index("entropy")] for row in seen] == entropies.values.tolist()
    for name, part in entropies._parts.items():
        assert [row[FEATURES.index(name)] for row in seen] == part.tolist(), name
    assert len(np.unique(entropies.values)) > 3


def test_a_surprising_exchange_is_a_candidate_only_with_dynamics(store: Store) -> None:
    """The exchange is calm by its entropy, and unlike the forty before."""
    with cerata.open(":memory:") as plain:
        odd = 0
        for memory in (store, plain):
            session = Agent(memory, "wyatt").session("s")
            for day in range(1, 29):
                for hour in (8, 20):
                    session.exchange("Good.", "Fine.", created=f"2026-01-{day:02}T{hour:02}:00Z")
            odd = session.exchange("word " * 400, "?" * 90, created="2026-02-09").id
        assert Agent(plain, "wyatt").candidates() == []
        assert odd in [each.id for each in Agent(store, "wyatt").candidates()]
        assert odd in store.stream.projection(Dynamics).states("wyatt")[0].surprising
        basis = store.head.seq
        session = Agent(store, "wyatt").session("s")
        session.exchange("Good.", "Fine.", created="2026-02-11")
        assert Agent(store, "wyatt").at(basis).candidates()[-1].id == odd


def test_a_tenant_reads_its_streams_alone() -> None:
    with cerata.open(":memory:", projections=[Dynamics]) as store:
        for tenant in ("a", "b"):
            with store.scoped({"tenant": tenant}) as part:
                Agent(part, "wyatt").session("s").exchange("Did he call?", "No.")
        assert len(surprises(store)) == 2
        with store.scoped({"tenant": "b"}) as part:
            assert surprises(part) == [surprises(store)[1]]
            assert len(Agent(part, "wyatt").candidates()) == 0
        with store.scoped({"tenant": "b", "user_id": "u"}) as part, pytest.raises(Unsupported):
            surprises(part)


def test_without_the_projection_nothing_of_it_is_loaded_or_saved(checkout: Path) -> None:
    code = """
import sys, cerata
with cerata.open(":memory:") as store:
    agent = cerata.Agent(store, "wyatt")
    agent.session("s").exchange("Did he call?", "No.")
    agent.reflect(), agent.candidates(), store.checkpoint()
    print("dynamics" in store.stream.digests())
print([name for name in sys.modules if name.startswith("cerata.agents.turns.dynamics.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=checkout
    )
    assert done.stdout.split("\n") == ["False", "[]", ""]


def test_candidates_as_of_events_in_any_order_are_those_of_an_empty_cache() -> None:
    """A line's candidates are kept in the process; new surprises without new messages count."""
    drawn = Random(7)
    with (
        mock.patch.object(predictor, "SURPRISING_AFTER", 4),
        talking(4, 150) as store,
        store.scoped({"tenant": "default"}) as part,
    ):
        agent = Agent(part, "wyatt")
        points = drawn.sample(range(store.head.seq // 2, store.head.seq + 1), 14)
        warm = [agent.at(n).candidates() for n in points]
        cold: list[list[Candidate]] = []
        for n in points:
            KEPT.clear()
            cold.append(agent.at(n).candidates())
        assert warm == cold
        with mock.patch.object(candidates, "surprising_exchanges", _nothing):
            KEPT.clear()
            assert [agent.at(n).candidates() for n in points] != warm
        KEPT.clear()


def test_a_message_of_another_mode_may_end_a_surprising_exchange(store: Store) -> None:
    """The line of the exchange has no new message, but a new candidate."""
    agent = Agent(store, "wyatt")
    session = agent.session("s")
    for day in range(1, 29):
        for hour in (8, 20):
            session.exchange("Good.", "Fine.", created=f"2026-01-{day:02}T{hour:02}:00Z")
    odd = session.message("user", "word? " * 400, created="2026-02-09").id
    assert odd not in [each.id for each in agent.candidates()]
    agent.session("s", mode="code").message("user", "Good.", created="2026-02-10")
    assert odd in [each.id for each in agent.candidates()]
