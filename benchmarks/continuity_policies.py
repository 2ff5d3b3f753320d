"""One history of conversations under other policies of growth, and the differences.

A part of ``python -m benchmarks.continuity_bench``. A seeded history, with a standing clock and
without a model, is written once for each policy: passes 0, 4 and 20 hours after a candidate, or all
at once; the lexicon of the project, or one without the feelings that are not strong. The agent
reflects every two hours, and a context is assembled each morning. All figures are counts, so they
repeat on any machine.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final, NamedTuple

import msgspec
import numpy as np

import cerata
from cerata import Agent, Environment, Filter, Store
from cerata.agents.continuity.entropy import Entropies
from cerata.agents.continuity.exchanges import Talk
from cerata.agents.turns.lexicon import SIGNS, Lexicon, english_lexicon, lexicon_file
from cerata.agents.turns.measures import CALMED
from cerata.agents.turns.projection import MessagesProjection
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.times import to_microseconds

SPREAD: Final = (0.0, 4.0, 20.0)
AT_ONCE: Final = (0.0, 0.0, 0.0)
STRONG: Final = frozenset({"afraid", "angry", "desperate", "furious", "hopeless", "terrified"})
"""The words that the other lexicon counts as an emotion."""

_START_US: Final = 1_735_689_600_000_000
_HOUR_US: Final = 3_600_000_000
_STEP_HOURS: Final = 2
_MORNING: Final = 8
_STARTS: Final = ("No, I meant", "I wonder about", "Please look at", "Correction:")
_FEELINGS: Final = ("I am scared of it.", "I am furious.", "It is fine.", "I am glad.", "Thanks.")
_SUBJECTS: Final = (
    "harbour",
    "deadline",
    "budget",
    "letter",
    "garden",
    "market",
    "window",
    "keeper",
)


class Policy(NamedTuple):
    """A policy of growth, by its name in the table."""

    name: str
    hours: Sequence[float] = SPREAD
    lexicon: Lexicon | None = None


class Outcome(NamedTuple):
    """The counts of a history under a policy, in the order of the table."""

    candidates: int
    passes: int
    conclusions_within_hours: float
    """Median hours from a candidate to its conclusion."""
    mornings_with_inquiry: int
    mornings_with_reflection: int
    emotions: int
    over_calm: int
    """Exchanges with an entropy over .60."""
    summaries: int


class _Clock:
    """A clock that stands still between two steps."""

    def __init__(self) -> None:
        self.time_us = _START_US

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += max(1, int(seconds * 1e6))


def print_policies(days: int) -> None:
    """Print the counts of one history under each policy, a line for each count that differs."""
    other = lexicon_file()
    emotion = msgspec.structs.replace(
        other.signs["emotion"],
        phrases=[each for each in other.signs["emotion"].phrases if each in STRONG],
    )
    policies = (
        Policy("0/4/20 h"),
        Policy("at once", AT_ONCE),
        Policy(
            "strong feelings", lexicon=Lexicon({**other.signs, "emotion": emotion}, other.patterns)
        ),
    )
    outcomes = [_outcome(policy, days) for policy in policies]
    names = ", ".join(policy.name for policy in policies)
    print(f"one history of {days} days under three policies: {names}")
    for field in Outcome._fields:
        values = [getattr(outcome, field) for outcome in outcomes]
        mark = "" if len(set(values)) == 1 else "  differs"
        print(f"  {field.replace('_', ' '):<42} {'  '.join(f'{each:>6}' for each in values)}{mark}")


def _outcome(policy: Policy, days: int) -> Outcome:
    clock = _Clock()
    environment = Environment(MemoryStorage(), clock)
    with _counted_by(policy.lexicon), cerata.open("talk.cera", environment=environment) as store:
        agent = Agent(store, "bench", pass_hours=policy.hours)
        drawn = Random(6)
        inquiries = reflections = 0
        for step in range(days * 24 // _STEP_HOURS):
            if step * _STEP_HOURS % 24 == _MORNING:
                session = agent.session(f"morning-{step}")
                context = session.assemble("Hello?", max_tokens=6_000, blocks=["contemplation"])
                rules = {item.rule for item in context.items}
                inquiries += "open inquiry" in rules
                reflections += "reflection" in rules
            with agent.session(f"s-{step}") as session:
                for _ in range(drawn.randrange(3)):
                    session.exchange(
                        _text(drawn), f"You mean {drawn.choice(_SUBJECTS)}. I will look."
                    )
            agent.reflect()
            clock.time_us += _STEP_HOURS * _HOUR_US
        return _counts(store, agent, inquiries, reflections)


def _text(drawn: Random) -> str:
    subjects = " and the ".join(drawn.sample(_SUBJECTS, 3))
    return f"{drawn.choice(_STARTS)} the {subjects}. {drawn.choice(_FEELINGS)}"


def _counts(store: Store, agent: Agent, inquiries: int, reflections: int) -> Outcome:
    snapshot = snapshot_of(store).within({"tenant": "default"})
    talk = Talk(snapshot, agent.name)
    candidates = agent.candidates()
    hours = [
        (to_microseconds(store.frame(each.done[-1]).created) - each.created_us) / _HOUR_US
        for each in candidates
        if not each.is_open
    ]
    return Outcome(
        candidates=len(candidates),
        passes=sum(len(each.done) for each in candidates),
        conclusions_within_hours=round(float(np.median(hours)), 1) if hours else 0.0,
        mornings_with_inquiry=inquiries,
        mornings_with_reflection=reflections,
        emotions=int(talk.messages.signs(talk.rows)[:, SIGNS.index("emotion")].sum()),
        over_calm=int((Entropies(talk, talk.pairs()).values > CALMED).sum()),
        summaries=sum(1 for _ in store.frames(Filter(kind="summary"))),
    )


@contextmanager
def _counted_by(lexicon: Lexicon | None) -> Generator[None]:
    """Let the fold of messages count by another lexicon."""
    chosen = english_lexicon() if lexicon is None else lexicon
    default = MessagesProjection.lexicon
    setattr(MessagesProjection, "lexicon", property(lambda _: chosen))  # noqa: B010
    try:
        yield
    finally:
        setattr(MessagesProjection, "lexicon", default)  # noqa: B010
