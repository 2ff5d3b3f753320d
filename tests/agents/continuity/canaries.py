"""Canaries: words of one mode group, looked for in everything that another mode group shows.

``python -m tests.agents.continuity.canaries --sessions 10000`` talks in sessions of four modes and
three threads. Each exchange has a canary, a word with the name of its mode group. The contexts,
recalls, handoffs, topics, summaries and reflections of a group must have no canary of another
group; the questions name such canaries. It prints the figures.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import cerata
from cerata import Agent, Filter, Store
from cerata.agents.session import Session
from cerata.agents.turns.line import group_of
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage

from ...clocks import StandingClock

AGENT: Final = "wyatt"
MODES: Final = ("chat", "booth", "code", "work")
GROUPS: Final = ("chat", "code", "work")
THREADS: Final = ("main", "taxes", "boat")
PERIOD: Final = 500
"""Sessions between two reflections."""

_WORDS: Final = tuple(
    f"{start}{end}"
    for start in ("har", "dead", "bud", "let", "gar", "mar", "win", "for")
    for end in ("bour", "line", "geted", "tered", "dening", "keeper")
)
_MOVED: Final = 0.2
"""Share of the exchanges that are worth thinking about."""

_MINUTE_US: Final = 60_000_000
_CANARY: Final = re.compile(r"canary(chat|code|work)x\d+")


@dataclass
class Result:
    """The figures; ``faults`` has a line for each text with a canary of another group."""

    sessions: int = 0
    texts: Counter[str] = field(default_factory=Counter[str])
    canaries: int = 0
    """Canaries of the own group in these texts: the check would see another one."""
    shared: int = 0
    """Contexts of the mode booth with a canary that the mode chat put: both are one group."""
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        texts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.texts.items()))
        return (
            f"{self.sessions:,} sessions: {texts}; {self.canaries:,} canaries of the same group, "
            f"{self.shared:,} contexts of booth with one of chat, {len(self.faults):,} faults"
        )

    def look(self, kind: str, group: str, text: str) -> set[str]:
        """Note the canaries of a text, which belongs to a mode group."""
        self.texts[kind] += 1
        words = {match[0] for match in _CANARY.finditer(text)}
        same = {word for word in words if word.startswith(f"canary{group}x")}
        self.canaries += len(same)
        foreign = sorted(words - same)
        if foreign:
            self.faults.append(f"{kind} of {group} has {', '.join(foreign[:5])}")
        return same


def canary(group: str, number: int) -> str:
    """Return a word of a session."""
    return f"canary{group}x{number}"


def run(sessions: int, seed: int, contexts_each: int) -> Result:
    """Talk in sessions, and look at what each group shows."""
    drawn, result = random.Random(seed), Result()
    clock = StandingClock(1_700_000_000_000_000)
    environment = Environment(MemoryStorage(), clock)
    with cerata.open("talk.cera", environment=environment) as store:
        agent = Agent(store, AGENT)
        store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
        by_chat: set[str] = set()
        for number in range(sessions):
            mode = drawn.choice(MODES)
            with agent.session(f"s{number}", thread=drawn.choice(THREADS), mode=mode) as session:
                if number % contexts_each == 0:
                    _look_at_contexts(session, number, drawn, result, by_chat)
                _talk(session, number, drawn)
                if number % contexts_each == 0:
                    _look_at_contexts(session, number, drawn, result, by_chat)
            if mode == "chat":
                by_chat.add(canary("chat", number))
            clock.time_us += drawn.randint(10, 90) * _MINUTE_US
            result.sessions += 1
            if number % PERIOD == PERIOD - 1 or number == sessions - 1:
                _change(store, drawn)
                assert not agent.reflect().failed
                look_at_lines(store, agent, result)
    return result


def _talk(session: Session, number: int, drawn: random.Random) -> None:
    word = canary(group_of(session.mode), number)
    for _ in range(drawn.randint(1, 3)):
        rest = " ".join(drawn.sample(_WORDS, 6))
        start = "No, I meant" if drawn.random() < _MOVED else "I talk about"
        session.exchange(
            f"{start} the {word}; I am scared of {word} in Paris, {rest}.",
            f"The {word} stays; I will remind you of {word} {rest}. The deadline is near.",
        )
    if drawn.random() < 0.05:
        session.compact()


def _look_at_contexts(
    session: Session, number: int, drawn: random.Random, result: Result, by_chat: set[str]
) -> None:
    group = group_of(session.mode)
    places = [drawn.randrange(number + 1) for _ in range(6)]
    named = " ".join(canary(each, place) for each in GROUPS for place in places)
    for question in (f"What about the deadline in Paris, {named}?", "Do you remember Paris?"):
        context = session.assemble(question, max_tokens=4_000, blocks="all")
        words = result.look("contexts", group, context.text)
        result.shared += session.mode == "booth" and not words.isdisjoint(by_chat)
        recalled = session.recall(question)
        text = " ".join(
            message.text for each in recalled.exchanges for message in each.exchange.messages
        )
        result.look("recalls", group, text)


def _change(store: Store, drawn: random.Random) -> None:
    """Edit and delete messages, so that summaries are stale."""
    frames = drawn.sample(list(store.frames(Filter(kind="message"))), 6)
    for frame in frames[1:]:
        store.supersede(frame, f"{frame.text} Edited.")
    store.delete(frames[0])


def look_at_lines(store: Store, agent: Agent, result: Result) -> None:
    """Look at the handoff, the topics and the summaries of each line, and at all reflections."""
    for group in GROUPS:
        for thread in THREADS:
            result.look("handoffs", group, str(agent.handoff(thread, group)))
            topics = " ".join(topic.word for topic in agent.topics(thread, group))
            result.look("topics", group, topics)
            _look_at(agent.summaries(thread, group), result, group)
    for frame in store.frames(Filter(kind="reflection")):
        result.look("reflections", group_of(str(frame.scope["mode"])), frame.text)
    for candidate in agent.candidates():
        result.look("inquiries", candidate.mode_group, candidate.inquiry)


def _look_at(summaries: Iterable[cerata.Summary], result: Result, group: str) -> None:
    for summary in summaries:
        result.look("summaries", group, f"{summary.title} {summary.text}")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Look for words of other modes.")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--contexts-each", type=int, default=25, metavar="SESSIONS")
    options = parser.parse_args()
    result = run(options.sessions, options.seed, options.contexts_each)
    for fault in result.faults:
        sys.stdout.write(f"{fault}\n")
    sys.stdout.write(f"{result}\n")
    sys.exit(bool(result.faults))


if __name__ == "__main__":
    main()
