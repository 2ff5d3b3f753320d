"""One past of agents, four ways to it: random lives of agents, every read, after every batch.

After each batch of a random life these must answer alike, with "now" at the batch's recorded time:

- *native*: a view of a store whose state is that of the whole log;
- *checkpoint plus tail*: a fold that restores a checkpoint and folds no further;
- *full replay*: the events alone, from the first one;
- *stopped*: another store, to which nothing was written after the batch.

``python -m tests.agents.equality 100`` does so for 100 lives in two processes with different hash
seeds, compares what they saw, and prints the figures.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

import cerata
from cerata import Agent, CerataError, Entity, MemorySpec, Store, View
from cerata.agents.activities.columns import ActivityKind
from cerata.agents.activities.values import activities_at
from cerata.agents.contexts.blocks import checked_blocks
from cerata.agents.contexts.recorded import Arguments, Assembling, AssemblyRequest
from cerata.agents.continuity.models import Extractive, Task
from cerata.agents.declarations import checked_memory
from cerata.agents.run_results import RunResults
from cerata.agents.slots.rows import declared_slots
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import RecallContext
from cerata.engine.log import Log
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.scopes import Reach
from cerata.projections.columnar.times import to_datetime
from cerata.projections.registry import Registry
from cerata.replay.fold import Fold, replay

from ..clocks import StandingClock

PATH = "life.cera"
START_US = 1_760_000_000_000_000
SECOND = 1_000_000
USERS = ("u1", "u2")
THREADS = ("main", "taxes")
PEOPLE = ("Anna Rossi", "Anna Neri", "Bo Verdi", "Bo Neri", "Cy Bianchi")
_TEXT = (
    "I am a carpenter , torn between the deadline and deadlines ; scared ? tomorrow i will call "
    "the accountant accountants about budgets budget planning , do you remember my mistake "
)
WORDS = _TEXT.split()
REPLIES = (
    "Take your time with the deadline.",
    "I have sent the budget to the accountant.",
    "I notice that I keep returning to the deadline, and yet it is both true and false.",
    "I decided to call the accountant by Friday.",
)
READERS = (None, *(Reach((("tenant", "default"), ("user_id", user))) for user in USERS))


class Old(msgspec.Struct, frozen=True):
    score: int


class New(msgspec.Struct, frozen=True):
    score: int
    source: str


def _lifted(old: dict[str, Any]) -> dict[str, Any]:
    return {**old, "source": "lifted"}


def memory(version: int) -> dict[str, MemorySpec]:
    """Return the slots as a later version of the program declares them."""
    schema: dict[str, Any] = {"schema": Old}
    if version:
        schema = {"schema": New, "schema_version": 2, "upcasters": {1: _lifted}}
    return {
        "pad": cerata.scratchpad(ttl="40s", max_size_mb=0.0004),
        "prefs": MemorySpec(scope="user_id", ttl=("20s", "30s")[version]),
        "mode": MemorySpec(type="value"),
        "talk": cerata.conversation_memory(ttl="30s", max_items=(2, 3)[version]),
        "scores": MemorySpec(scope="user_id", type="list", **schema),
        "notes": cerata.semantic_memory("user_id"),
        "state": MemorySpec(tier="session"),
    }


class Quoting:
    """A model that writes warm starts and assessments, too; pure."""

    name = "quoting"
    version = "1"

    def write(self, task: Task) -> str:
        if task.kind == "warm_start":
            return f"You left at: {task.sources[0].text[:80]}"
        return Extractive().write(task)


# --- a life --------------------------------------------------------------------------------------


class _Life:
    """An agent whose acts are drawn; the same seed makes the same events."""

    def __init__(self, store: Store, clock: StandingClock, seed: int) -> None:
        self.store = store
        self.clock = clock
        self.drawn = Random(seed)
        self.version = 0
        self.agent = Agent(store, "analyst", memory=memory(0), model=Quoting())
        self.other = Agent(store, "clerk", memory={"mode": MemorySpec(type="value")})
        self.runs: list[cerata.Run] = []
        self.count = 0

    def act(self) -> None:
        """Do one act; one that is refused writes nothing."""
        self.clock.time_us += self.drawn.choice((0, 1, 1, 3, 9)) * SECOND
        acts = [self._run, self._call, self._call, self._call, self._slot, self._slot, self._end]
        acts += [self._talk, self._talk]
        rare = [self._sweep, self._declare, self._session, self._edit_message, self._reflect]
        rare += [self._entities]
        chosen = self.drawn.choice(rare if self.drawn.random() < 0.15 else acts)
        with suppress(CerataError, ValueError):
            chosen()

    def _run(self) -> None:
        agent = self.drawn.choice((self.agent, self.agent, self.other))
        self.count += 1
        name = f"r{self.count}"
        if self.drawn.random() < 0.5:
            with agent.session(f"s{self.count % 3}", user_id=self._user()) as session:
                self.runs.append(session.run(name, inputs={"n": self.count}))
        else:
            self.runs.append(agent.run(name, workflow="review"))

    def _call(self) -> None:
        run = self._some_run()
        refs = run.refs()
        draw = self.drawn.random()
        if draw < 0.2:
            run.next_turn()
            run.put("note", {"at": self.drawn.randrange(5)})
        elif draw < 0.35:
            run.call("fail", _fail, reason="no")
        elif draw < 0.6 and refs:
            run.call("measure", _measure, value=self.drawn.choice(refs).ref)
        elif draw < 0.7:
            run.random()
        else:
            size = self.drawn.choice((1, 3, 30, 100))
            run.call("fetch", _fetch, memo=self.drawn.random() < 0.5, size=size)

    def _slot(self) -> None:
        user, value = self._user(), self.drawn.randrange(9)
        agent = self.agent
        key = self.drawn.choice("ab")
        draw = self.drawn.randrange(8)
        if draw == 0:
            agent.slot("prefs", user_id=user).delete(key)
        elif draw < 3:
            agent.slot("prefs", user_id=user).set(key, {"n": value})
        elif draw == 3:
            agent.slot("mode").set(value)
        elif draw == 4:
            agent.slot("talk", user_id=user).append(f"said {value}")
        elif draw == 5:
            new = New(value, "call") if self.version else Old(value)
            agent.slot("scores", user_id=user).append(new)
        elif draw == 6:
            agent.slot("notes", user_id=user).append(f"the harbour of {value} boats")
        else:
            run = self._some_run()
            refs = run.refs()
            if refs:
                run.keep(refs[-1].ref, "prefs", key, user_id=user)

    def _end(self) -> None:
        run = self._some_run()
        self.runs.remove(run)
        if self.drawn.random() < 0.3:
            with suppress(LookupError), run:
                raise LookupError("no way")
        else:
            with run:
                pass

    def _sweep(self) -> None:
        self.agent.sweep()

    def _declare(self) -> None:
        if self.version == 0:
            self.agent = Agent(self.store, "analyst", memory=memory(1), model=Quoting())
            self.version = 1

    def _session(self) -> None:
        with self.agent.session("s0", user_id="u1") as session:
            session.slot("state").set("step", self.drawn.randrange(9))

    def _talk(self) -> None:
        """Say something in a session, sometimes as a late import or with an id said before."""
        self.count += 1
        session = self.agent.session(
            f"t{self.count % 4}",
            thread=THREADS[self.count % 4 % 2],
            mode=self.drawn.choice(("chat", "booth", "code")),
            user_id=self._user(),
        )
        created = None
        if self.drawn.random() < 0.2:
            hours = self.drawn.choice((1, 5, 30))
            created = to_datetime(self.clock.time_us - hours * 3_600 * SECOND)
        words = " ".join(self.drawn.choices(WORDS, k=self.drawn.randint(3, 12)))
        message_id = self.drawn.choice((None, f"m{self.drawn.randrange(4)}"))
        if self.drawn.random() < 0.6:
            session.exchange(words, self.drawn.choice(REPLIES), id=message_id, created=created)
        else:
            role = self.drawn.choice(("user", "assistant"))
            session.message(role, words, id=message_id, created=created)
        if self.drawn.random() < 0.3:
            session.assemble(
                " ".join(self.drawn.choices(WORDS, k=3)),
                max_tokens=self.drawn.choice((200, 2_000)),
                blocks=self.drawn.choice(("default", "all")),
            )
        if self.drawn.random() < 0.5:
            with session:
                pass

    def _reflect(self) -> None:
        """Let a day pass, and write the summaries and passes that are due."""
        self.clock.time_us += 30 * 3_600 * SECOND
        self.agent.reflect(limit=self.drawn.choice((1, 4)))

    def _edit_message(self) -> None:
        frames = [
            frame
            for frame in islice(self.store.frames(), 40)
            if frame.kind == "message" and self.drawn.random() < 0.3
        ]
        for frame in frames[:1]:
            if self.drawn.random() < 0.5:
                self.store.supersede(frame, f"{frame.text} of the deadline")
            else:
                self.store.delete(frame)

    def _entities(self) -> None:
        """Write facts between people who share names, and mention one of these names."""
        with self.store.scoped({"tenant": "default", "user_id": self._user()}) as part:
            for _ in range(8):
                subject, other = self.drawn.sample(PEOPLE, 2)
                part.assert_fact(subject, self.drawn.choice(("knows", "pays")), Entity(other))
            if self.drawn.random() < 0.3:
                part.graph.merge(*self.drawn.sample(PEOPLE, 2))
        name = self.drawn.choice((*PEOPLE, "Anna", "Bo"))
        self.agent.session("t0", user_id="u1").exchange(f"Then I met {name}.", "Noted.")

    def _some_run(self) -> cerata.Run:
        if not self.runs:
            self._run()
        return self.drawn.choice(self.runs)

    def _user(self) -> str:
        return self.drawn.choice(USERS)


def _fetch(size: int) -> list[int]:
    return list(range(size))


def _measure(value: object) -> int:
    return len(json.dumps(value))


def _fail(reason: str) -> None:
    raise ValueError(reason)


@contextmanager
def lived(seed: int, acts: int, *, through: int | None = None) -> Generator[Store]:
    """Open a store in which a life was lived, or its acts up to an event."""
    clock, dice = StandingClock(START_US), Random(seed)
    environment = Environment(MemoryStorage(), clock, dice.randbytes)
    with cerata.open(PATH, environment=environment) as store:
        life = _Life(store, clock, seed)
        for _ in range(acts):
            if through is not None and store.head.seq >= through:
                break
            life.act()
        yield store


# --- comparing -----------------------------------------------------------------------------------


def answers(store: Store, log: Log, fold: Fold, n: int) -> str:
    """Return all that agents say as of n, to a reader of the tenant and to one of each user."""
    said: list[object] = []
    for reach in READERS:
        view = View(Snapshot(log, fold, n, reach))
        for name in ("analyst", "clerk"):
            for version in (0, 1):
                said.append(_said(store, view, name, version))
    return json.dumps(said, default=str)


def _said(store: Store, view: View, name: str, version: int) -> object:
    agent = Agent(store, name)
    agent._view = view
    # As a program of that version reads; it declares nothing.
    agent._memory = agent._memory._replace(specs=checked_memory(memory(version)))
    snapshot = agent._snapshot()
    runs = activities_at(snapshot).all_activities(ActivityKind.RUN, name)
    return [
        [activity.to_dict() for activity in (*agent.runs(), *agent.sessions())],
        [[call.to_dict() for call in agent.calls(row.seq)] for row in runs],
        [_results(RunResults(snapshot, row, "$ref")) for row in runs],
        declared_slots(snapshot, name),
        [_slot(agent, slot, user) for slot in memory(version) for user in USERS],
        _conversations(agent),
        [] if version or name == "clerk" else _contexts(agent),
    ]


def _contexts(agent: Agent) -> object:
    """Return a context of the newest session, and the newest recorded one made again."""
    snapshot = agent._snapshot()
    rows = activities_at(snapshot).all_activities(ActivityKind.SESSION, agent.name)[-1:]
    arguments = Arguments(
        titles="own",
        blocks=checked_blocks("all", "chat"),
        extra=0,
        mode="chat",
        resumed="returned",
        timezone="UTC",
        run=None,
    )
    asked = AssemblyRequest("Do you remember the deadline?", 6, 2_000, arguments, ())
    made = [
        Assembling(snapshot, agent.name, row.seq, asked, agent._references).assembly().to_dict()
        for row in rows
    ]
    recorded = [
        event.seq
        for event in snapshot.events(1, snapshot.basis)
        if isinstance(event.body, RecallContext) and event.body.activity is not None
    ]
    return made, [_tried(agent.rerun_assembly, seq) for seq in recorded[-1:]]


def _conversations(agent: Agent) -> object:
    return [
        *(
            [each.to_dict() for each in agent.threads()],
            [each.to_dict() for each in agent.standing()],
        ),
        _plain(agent.wellbeing()),
        [each.to_dict() for each in agent.candidates()],
        [each.to_dict() for each in agent.pending()],
        [each.to_dict() for each in agent.meta_patterns()],
        [report.to_dict() for report in agent.reflect(dry_run=True).skipped],
        [
            [
                str(agent.handoff(thread, mode)),
                agent.handoff(thread, mode).to_dict(),
                [topic.to_dict() for topic in agent.topics(thread, mode)],
                _plain(agent.entropy(thread, mode)),
                [each.to_dict() for each in agent.summaries(thread, mode)],
            ]
            for thread in THREADS
            for mode in ("chat", "code")
        ],
    ]


def _results(results: RunResults) -> object:
    references = results.references()
    return [
        [(ref.to_dict(), _tried(results.get, ref.ref)) for ref in references],
        [results.lineage(ref.ref).to_dict() for ref in references],
        _tried(results.get, "$ref:fetch.1"),
    ]


def _slot(agent: Agent, name: str, user: str) -> object:
    dimensions = {
        "prefs": {"user_id": user},
        "scores": {"user_id": user},
        "talk": {"user_id": user},
        "notes": {"user_id": user},
        "state": {"session_id": "s0"},
    }.get(name, {})

    def read() -> object:
        slot = agent.slot(name, **dimensions)
        kind = slot.spec.type
        return [
            _tried(slot.items),
            _tried(slot.history),
            _tried(slot.keys) if kind == "dict" else None,
            _tried(slot.last, 2) if kind == "list" else _tried(slot.get, "a"),
            _tried(slot.search, "harbour") if slot.spec.searchable else None,
        ]

    return _tried(read)


def _plain(value: Any) -> object:
    return value.to_dict() if hasattr(value, "to_dict") else value


def _tried(read: Callable[..., object], *arguments: object) -> object:
    try:
        answer = read(*arguments)
    except CerataError as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(answer, list):
        return answer
    items = map(_plain, cast("list[object]", answer))
    return list(items)


def compare(seed: int, acts: int) -> tuple[int, str]:
    """Compare the four ways after each batch of one life; return the states and their hash.

    Raises:
        AssertionError: two ways differ; the message has the seed, the event and the ways.
    """
    hashed, states = hashlib.sha256(), 0
    registry = Registry(())
    with lived(seed, acts) as store:
        log = session_of(store).log
        ends = sorted({event.header.last_seq for event in store.log()})
        Fold(log, registry, last=ends[len(ends) // 2]).save()
        native = Fold(log, registry)
        for n in ends:
            ways = {
                "native": answers(store, log, native, n),
                "checkpoint plus tail": answers(store, log, Fold(log, registry, last=n), n),
                "full replay": answers(store, log, replay(log, n, registry), n),
            }
            with lived(seed, acts, through=n) as stopped:
                short = session_of(stopped).log
                if short.head.seq == n:
                    # An act may write several batches; then only its last is a stop.
                    ways["stopped"] = answers(stopped, short, Fold(short, registry), n)
                    states += 1
            for name, answer in ways.items():
                assert answer == ways["native"], f"seed {seed}, event {n}: native and {name} differ"
            hashed.update(ways["native"].encode())
    return states, hashed.hexdigest()


def run(lives: int, first_seed: int, acts: int) -> str:
    """Compare lives; return a line with the figures."""
    hashed, states = hashlib.sha256(), 0
    for number in range(lives):
        count, digest = compare(first_seed + number, acts)
        states += count
        hashed.update(digest.encode())
    return f"{lives:,} lives, {states:,} states in 4 ways, all equal; {hashed.hexdigest()[:16]}"


def run_elsewhere(lives: int, first_seed: int, acts: int) -> list[str]:
    """Return the line of a process with each of two hash seeds."""
    command = [sys.executable, "-m", "tests.agents.equality", "--here"]
    running = [
        subprocess.Popen(
            [*command, str(lives), str(first_seed), str(acts)],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in (1, 2)
    ]
    lines = [process.communicate()[0].strip() for process in running]
    assert all(process.returncode == 0 for process in running), lines
    return lines


def main() -> None:
    """Run from the command line."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    lives, first_seed, acts = [*numbers, *(100, 1, 40)[len(numbers) :]]
    if "--here" in sys.argv:
        sys.stdout.write(f"{run(lives, first_seed, acts)}\n")
        return
    lines = run_elsewhere(lives, first_seed, acts)
    assert lines[0] == lines[1], f"processes with different hash seeds differ: {lines}"
    sys.stdout.write(f"{lines[0]}\nthe same in 2 processes\n")


if __name__ == "__main__":
    main()
