"""The work of each warm call, in calls of Python functions inside Cerata: a bound that only falls.

Unlike a time, a count is the same on every machine. The bounds are the counts of Python 3.11. Later
versions run a comprehension without a call, so they count fewer, and only the upper bound holds.
When a change lowers a count, lower its bound, or a later loss is not seen.
"""

import gc
import os
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import cerata
from cerata import Agent, Store
from cerata.engine.disk.environment import Environment

from .engine.words import TickingClock

pytestmark = pytest.mark.unwatched("it measures")

CODE: Final = str(Path(cerata.__file__).parent)
IS_EXACT: Final = sys.version_info[:2] == (3, 11)

SLACK: Final = 0.9
"""The least part of its bound that a count has on Python 3.11."""


def calls(work: Callable[[], object], *, with_c: bool = False) -> int:
    """Return the calls of functions of Cerata in some work; each value of a generator counts.

    ``with_c`` adds the calls of C functions by these, such as those of numpy.
    """
    seen: dict[CodeType, int] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event == "call" or (with_c and event == "c_call"):
            seen[frame.f_code] = seen.get(frame.f_code, 0) + 1

    # A collection would call the finalizers of objects of earlier tests.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return sum(calls for code, calls in seen.items() if code.co_filename.startswith(CODE))


def environment() -> Environment:
    """Return an environment with a clock of its own: a count may depend on the digits of a time.

    Cerata draws the random bytes of 64 salts at a time, so each 64th salt would take more calls.
    """
    return Environment(clock=TickingClock(), random_bytes=os.urandom)


class Work(NamedTuple):
    """A call, and work before it that does not count."""

    call: Callable[[], object]
    before: Callable[[], object] = list


class Call(NamedTuple):
    """A call of the public face, the most calls inside Cerata, and the memory it works on."""

    name: str
    bound: int
    ready: Callable[[Path], AbstractContextManager[Work]]
    with_c: bool = False
    """Whether the bound is of calls of C functions, too: the cost of arrays is in these."""


@contextmanager
def notes(folder: Path) -> Generator[Store]:
    """Open a memory of 40 notes and two facts, saved and searched."""
    with cerata.open(folder / "a.cera", environment=environment()) as store:
        for number in range(40):
            store.put_frame(f"note {number} on Alice and the harbour plan", metadata={"n": number})
        store.assert_fact("Alice", "lives in", "Lisbon")
        store.assert_fact("Alice", "works at", "Acme")
        store.recall("where does Alice live")
        store.checkpoint()
        yield store


@contextmanager
def put_frame(folder: Path) -> Generator[Work]:
    """A frame of text."""
    with notes(folder) as store:
        yield Work(lambda: store.put_frame("one more note on Bob and the boat"))


@contextmanager
def search_words(folder: Path) -> Generator[Work]:
    """A search by words."""
    with notes(folder) as store:
        yield Work(lambda: store.search("harbour plan"))


@contextmanager
def search_hybrid(folder: Path) -> Generator[Work]:
    """A question with a vector to 10,000 frames."""
    draw = np.random.default_rng(5)
    words = [f"word{number}" for number in range(400)]
    texts = [" ".join(draw.choice(words, 12)) for _ in range(10_000)]
    numbers = draw.standard_normal((10_000, 32)).astype(np.float32)
    question = cerata.Vectors(dense=draw.standard_normal(32).astype(np.float32), space="s")
    with cerata.open(folder / "a.cera", environment=environment()) as store:
        store.put_frames(texts, vectors=cerata.Vectors(dense=numbers, space="s"))
        store.checkpoint()
        yield Work(lambda: store.search("word7 word31", vectors=question))


@contextmanager
def recall_notes(folder: Path) -> Generator[Work]:
    """A context of 40 notes."""
    with notes(folder) as store:
        assert len(store.recall("the harbour plan").items) == 40
        yield Work(lambda: store.recall("the harbour plan"))


@contextmanager
def recall_turns(folder: Path) -> Generator[Work]:
    """A context of 40 turns of one conversation."""
    with cerata.open(folder / "a.cera", environment=environment()) as store:
        for number in range(40):
            store.put_frame(
                f"turn {number} on Alice and the harbour plan",
                role="user" if number % 2 else "assistant",
                metadata={"session": "first"},
            )
        store.checkpoint()
        assert len(store.recall("the harbour plan").items) == 40
        yield Work(lambda: store.recall("the harbour plan"))


@contextmanager
def frame(folder: Path) -> Generator[Work]:
    """A frame by its id."""
    with notes(folder) as store:
        yield Work(lambda: store.frame(7))


@contextmanager
def facts(folder: Path) -> Generator[Work]:
    """The two facts of a subject."""
    with notes(folder) as store:
        yield Work(lambda: store.facts("Alice"))


@contextmanager
def assert_fact(folder: Path) -> Generator[Work]:
    """A fact of a new subject each time."""
    numbers = count()
    with notes(folder) as store:
        yield Work(lambda: store.assert_fact(f"Bob {next(numbers)}", "lives in", "Porto"))


@contextmanager
def checkpoint(folder: Path) -> Generator[Work]:
    """A checkpoint after two frames."""
    with notes(folder) as store:

        def write() -> None:
            store.put_frame("the boat of Bob")
            store.put_frame("the plan of Alice")

        yield Work(store.checkpoint, write)


@contextmanager
def session(folder: Path) -> Generator[Any]:
    """Open a session of an agent with two exchanges."""
    with (
        cerata.open(folder / "a.cera", environment=environment()) as store,
        Agent(store, "helper").session("s-1", thread="taxes") as session,
    ):
        session.exchange("When do I call the accountant?", "On Thursday at ten.")
        session.exchange("And the receipts?", "Bring them in the blue folder.")
        yield session


@contextmanager
def exchange(folder: Path) -> Generator[Work]:
    """A message of the user and its answer."""
    with session(folder) as open_session:
        yield Work(lambda: open_session.exchange("Who is the accountant?", "Maria Lopes."))


@contextmanager
def assemble(folder: Path) -> Generator[Work]:
    """The prompt of a session."""
    with session(folder) as open_session:
        yield Work(lambda: open_session.assemble("When do I call the accountant?", max_tokens=2000))


CALLS: Final = (
    Call("put_frame", 140, put_frame),
    Call("search by words", 198, search_words),
    Call("hybrid question of 10,000 frames", 1_006, search_hybrid, with_c=True),
    Call("recall of 40 notes", 1_291, recall_notes),
    Call("recall of 40 turns", 1_679, recall_turns),
    Call("frame", 60, frame),
    Call("facts", 61, facts),
    Call("assert_fact", 165, assert_fact),
    Call("checkpoint after 2 writes", 1_536, checkpoint),
    Call("Session.exchange", 156, exchange),
    Call("Session.assemble", 2_337, assemble),
)


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_a_warm_call_keeps_its_bound(call: Call, tmp_path: Path) -> None:
    """The third call counts: the first loads modules and tables, the second fills caches."""
    with call.ready(tmp_path) as work:
        for _ in range(2):
            work.before()
            work.call()
        work.before()
        taken = calls(work.call, with_c=call.with_c)
    assert taken <= call.bound
    assert not IS_EXACT or taken >= SLACK * call.bound, f"lower the bound to {taken:,}"
