"""Dynamics on dialogues: the predictor's error beside that of the running mean and persistence.

`continuity_bench --dialogues FILE` prints it, for a file in LoCoMo's form. Each dialogue is an
agent's memory: the speaker of its first turn is the user, the other the agent, a session a session,
and each turn has the time of its session. Errors are mean squares over the 64 states, of exchanges
with one before in their session, in the later half of each dialogue.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import cerata
from cerata import Agent, Dynamics
from cerata.agents.turns.dynamics.features import ONE, heard
from cerata.agents.turns.dynamics.predictor import Scored
from cerata.agents.turns.dynamics.projection import Stream
from cerata.engine.events import Event
from cerata.memory.batch.writer import session_of
from cerata.projections.rows.row_fold import RowFold, row_fold

from .retrieval.conversations import load
from .retrieval.judged_set import Corpus

_AGENT: Final = "bench"


class _Errors(NamedTuple):
    """Sums of the three errors over exchanges."""

    exchanges: int
    learned: int
    frozen: int
    persistent: int

    def line(self, name: str) -> str:
        """Return the errors for each exchange, and two ratios."""
        learned, frozen, persistent = (
            total / max(self.exchanges, 1) / ONE
            for total in (self.learned, self.frozen, self.persistent)
        )
        return (
            f"{name:<12} {self.exchanges:>5,} exchanges: predictor {learned:.4f}, mean "
            f"{frozen:.4f}, persistence {persistent:.4f}; predictor / mean "
            f"{learned / (frozen or 1):.3f}, mean / persistence {frozen / (persistent or 1):.3f}"
        )


def print_dynamics(path: Path) -> None:
    """Print the errors for each dialogue of a file, and the cost of the fold."""
    results = hashlib.sha256()
    total = _Errors(0, 0, 0, 0)
    single, whole, counting, exchanges, size = 0.0, 0.0, 0.0, 0, 0
    for corpus in load(path, path.name, tolerant=True).corpora:
        events = _events(corpus)
        scored = _scored(events)
        results.update(repr([each[:3] for each in scored]).encode())
        errors = _errors(scored[len(scored) // 2 :])
        print(errors.line(corpus.name))
        total = _Errors(*map(sum, zip(total, errors, strict=True)))
        fold = row_fold(Dynamics)
        single += _seconds(partial(_fold_singly, fold, events))
        whole += _seconds(partial(row_fold(Dynamics).apply, events))
        counting += _seconds(partial(_count, events))
        exchanges += len(scored)
        size = max(size, *(len(fold.chunk(*saved)) for saved in _ranges(len(events))))
    print(total.line("all"))
    for name, seconds in (
        ("a fold of one event at a time", single),
        ("a fold of all events at once", whole),
        ("the counts of the messages alone", counting),
    ):
        print(f"{name:<44} {1e3 * seconds / exchanges:.2f} ms an exchange")
    print(f"{'largest chunk of rows':<44} {size / 1e3:.1f} KB")
    print(f"hash of all errors {results.hexdigest()[:12]}")


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _fold_singly(fold: RowFold, events: Sequence[Event]) -> None:
    for event in events:
        # As a session appends: the worst case for a row of 24 KB.
        fold.apply([event])


def _count(events: Sequence[Event]) -> None:
    for event in events:
        message = heard(event)
        if message is not None:
            message.counted(())


def _events(corpus: Corpus) -> list[Event]:
    """Write a dialogue, and return the events of its memory."""
    user = corpus.documents[0].role
    with cerata.open(":memory:") as store:
        agent = Agent(store, _AGENT)
        for name in dict.fromkeys(each.parent for each in corpus.documents):
            with agent.session(name) as session:
                for turn in corpus.documents:
                    if turn.parent == name:
                        role = "user" if turn.role == user else "assistant"
                        session.message(role, turn.text, id=turn.id, created=turn.time)
        log = session_of(store).log
        return [log.event(seq) for seq in range(1, log.head.seq + 1)]


def _scored(events: Sequence[Event]) -> list[Scored]:
    """Return the scores of all exchanges; the rows of the projection keep 256."""
    scored: list[Scored] = []
    stream: Stream | None = None
    for event in events:
        message = heard(event)
        if message is not None:
            stream = stream or Stream(message.stream, {})
            scored += stream.take(message)
    return scored if stream is None else scored + stream.settle()


def _errors(scored: Sequence[Scored]) -> _Errors:
    compared = [each for each in scored if each.persistent is not None]
    return _Errors(
        len(compared),
        sum(each.learned for each in compared),
        sum(each.frozen for each in compared),
        sum(each.persistent or 0 for each in compared),
    )


def _ranges(head: int) -> list[tuple[int, int]]:
    """Return the ranges of a fold at ``head`` events: of 512, and the rest."""
    starts = range(0, head, 512)
    return [(start, min(start + 512, head)) for start in starts]
