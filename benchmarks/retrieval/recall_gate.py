"""Recall of a session: profiles with the gate on and off, as one table.

    python -m benchmarks.retrieval.recall_gate synthetic
    python -m benchmarks.retrieval.recall_gate locomo FILE
    python -m benchmarks.retrieval.recall_gate locomo FILE --embedder minilm

Each conversation is the talk of an agent: the first speaker is the user, the second the agent. A
new session asks, as `Session.recall` does, but of both sides. The questions lack the names of the
two speakers, since an agent calls them user and assistant. Three kinds of questions:

- answered: the evidence is in the talk. "any" is the share of questions with an exchange of
  evidence among the recalled, "all" the mean share of the evidence.
- adversarial: LoCoMo's questions of that category have no answer, and turns that mislead.
- foreign: the answered questions of the next conversation, which this talk cannot answer.

For the last two the table has the share of questions that recall nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import cerata
from cerata.agents.agent import Agent
from cerata.agents.continuity.retrieval import Recalled, recalled_for
from cerata.engine.environment import Environment
from cerata.engine.memory_storage import MemoryStorage
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.messages.line import Line, line_of
from cerata.retrieval.speaker_names import without_names

from .command import EMBEDDERS, LOADERS, default_cache, embedding
from .development import PLAIN
from .embedding_cache import CachedEmbedder
from .ingest import Style
from .judged_set import Corpus, JudgedSet, Question
from .report import percent, table
from .synthetic import synthetic_set

PROFILES: Final = ("chat", "continuity")
ADVERSARIAL: Final = "adversarial"
_AGENT: Final = "talker"

_Cell: TypeAlias = tuple[str, bool]
"""A profile, and whether the gate is on."""


class Row(NamedTuple):
    """The shares of a profile with the gate on or off; None without such questions.

    ``any`` and ``all`` are of answered questions, ``adversarial`` and ``foreign`` of questions that
    recall nothing.
    """

    profile: str
    gated: bool
    any: float
    all: float
    adversarial: float | None
    foreign: float


class _Times:
    """A clock that stays at the time of the newest message."""

    def __init__(self) -> None:
        self.time_us = 0

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += max(1, int(seconds * 1e6))


class _Talk(NamedTuple):
    """The state of a conversation, and the turn of each message."""

    snapshot: Snapshot
    line: Line
    turns: dict[int, str]

    def recalled(self, question: Question, speakers: Sequence[str], cell: _Cell) -> Recalled:
        text = without_names(question.text, speakers)
        profile, gated = cell
        return recalled_for(self.snapshot, self.line, text, profile=profile, gated=gated)


def recall_rows(
    judged: JudgedSet,
    embedder: CachedEmbedder | None = None,
    profiles: Sequence[str] = PROFILES,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Return a row for each profile and gate.

    Args:
        judged: conversations in sessions, two or more
        embedder: the embedder of each store; default none
        profiles: names of profiles
        progress: called with a line for each conversation; default none
    """
    cells = [(profile, gated) for profile in profiles for gated in (False, True)]
    shares: dict[_Cell, list[list[float]]] = {cell: [[], [], [], []] for cell in cells}
    for place, corpus in enumerate(judged.corpora):
        progress(f"{judged.name} {place + 1} of {len(judged.corpora)}: {corpus.name}")
        following = judged.corpora[(place + 1) % len(judged.corpora)]
        with _opened(corpus, embedder) as store:
            talk = _talk_of(store, corpus)
            for cell, of_cell in shares.items():
                _ask(talk, corpus, following, cell, of_cell)
    return [
        Row(
            *cell, _mean(of_any) or 0.0, _mean(of_all) or 0.0, _mean(mislead), _mean(foreign) or 0.0
        )
        for cell, (of_any, of_all, mislead, foreign) in shares.items()
    ]


def _ask(
    talk: _Talk,
    corpus: Corpus,
    following: Corpus,
    cell: _Cell,
    shares: list[list[float]],
) -> None:
    """Add the shares of each question: any, all, adversarial, foreign."""
    speakers = _speakers_of(corpus)
    for question in corpus.questions:
        recalled = talk.recalled(question, speakers, cell)
        if question.category == ADVERSARIAL:
            shares[2].append(float(not recalled.exchanges))
            continue
        turns = {
            talk.turns[message.id]
            for each in recalled.exchanges
            for message in each.exchange.messages
        }
        share = len(turns & set(question.relevant)) / len(question.relevant)
        shares[0].append(float(share > 0))
        shares[1].append(share)
    speakers = _speakers_of(following)
    for question in _answered(following):
        shares[3].append(float(not talk.recalled(question, speakers, cell).exchanges))


def _speakers_of(corpus: Corpus) -> list[str]:
    return sorted({document.role for document in corpus.documents if document.role})


def _answered(corpus: Corpus) -> Iterator[Question]:
    return (question for question in corpus.questions if question.category != ADVERSARIAL)


def _mean(shares: Sequence[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None


def _opened(corpus: Corpus, embedder: CachedEmbedder | None) -> cerata.Store:
    clock = _Times()
    clock.time_us = 0 if corpus.newest is None else to_microseconds(corpus.newest)
    numbers = iter(range(1 << 30))
    environment = Environment(
        MemoryStorage(), clock, lambda size: next(numbers).to_bytes(size, "big")
    )
    if embedder is not None:
        embedder.load([document.text for document in corpus.documents])
    return cerata.open("talk.cera", environment=environment, embedder=embedder)


def _talk_of(store: cerata.Store, corpus: Corpus) -> _Talk:
    """Write the turns of a conversation as messages, a session for each of its sessions."""
    agent = Agent(store, _AGENT)
    turns: dict[int, str] = {}
    user = corpus.documents[0].role
    for name in dict.fromkeys(document.parent for document in corpus.documents):
        with agent.session(str(name).replace(" ", "-")) as session:
            for document in corpus.documents:
                if document.parent == name:
                    role = "user" if document.role == user else "assistant"
                    receipt = session.message(
                        role, document.text, id=document.id, created=document.time
                    )
                    turns[receipt.id] = document.id
    line = line_of(_AGENT, (("tenant", "default"),))
    return _Talk(session_of(store).snapshot(), line, turns)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retrieval.recall_gate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("set", choices=("locomo", "synthetic"))
    parser.add_argument("path", type=Path, nargs="?", help="the file of the set")
    parser.add_argument("--embedder", choices=EMBEDDERS, default=PLAIN, help="default none")
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args(arguments)
    if options.set == "synthetic":
        judged = synthetic_set()
    elif options.path is None:
        parser.error(f"{options.set} needs the path of its file")
    else:
        judged = LOADERS[options.set](options.path)
    with embedding(options.embedder, options.cache, judged, Style()) as embedder:
        rows = recall_rows(judged, embedder, progress=lambda line: print(line, file=sys.stderr))
    answered = sum(1 for corpus in judged.corpora for _ in _answered(corpus))
    misleading = len(judged.questions) - answered
    print(
        f"{judged.name}, set {judged.digest}: embedder {options.embedder}, {answered:,} answered "
        f"and {misleading:,} adversarial questions"
    )
    heads = ["any", "all", "nothing of adversarial", "nothing of foreign"]
    lines = [["profile", "gate", *heads]]
    for row in rows:
        mislead = "" if row.adversarial is None else percent(row.adversarial)
        shares = [percent(row.any), percent(row.all), mislead, percent(row.foreign)]
        lines.append([row.profile, "on" if row.gated else "off", *shares])
    for line in table(lines):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
