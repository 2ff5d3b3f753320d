# pyright: basic
"""One unreadable item in work over many: it costs itself alone, or the work stops and names it.

Every public call of a store is in a table here, or reads as a view does (`test_unreadable_items`).
"""

import io
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Agent, Corrupt, RerunFailed, Store, UnreadableItem, View, agents
from cerata.agents.continuity.models import Extractive, Task
from cerata.cli.main import main
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.integrations.mcp.service import Service
from cerata.memory.batch.writer import session_of
from cerata.memory.search.recall_rerun import RecallSettings
from cerata.packs.experiments.recall_comparison import compare_recalls
from cerata.packs.plots import draw_graph

from ..clocks import StandingClock
from ..damage import Damage
from ..embedders import Hashing
from ..surface import surface

HOUR = 3_600_000_000
DAY = 24 * HOUR


class Writer:
    """A model that answers each kind of task."""

    name = "scripted"
    version = "1"

    def write(self, task: Task) -> str:
        if task.kind == "align":
            return "YES 1\nIt fits."
        if task.kind == "assess":
            return "courage-self: 6\ncourage-ground: 5\nword: 7\nbrand: 4\nwell"
        return Extractive().write(task)


class World:
    """A store with an agent that has talked for days, and a damage of its events."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = StandingClock(1_760_000_000_000_000)
        environment = Environment(MemoryStorage(), self.clock, Random(0).randbytes)
        self.store = cerata.open("world.cera", environment=environment, embedder=Hashing())
        self.agent = Agent(self.store, "wyatt", model=Writer())
        self.damage = Damage(patch)
        self._fill()
        session_of(self.store).log.seal()
        self.store.put_frame("the newest event, by which now is known")

    def _fill(self) -> None:
        store, agent = self.store, self.agent
        for name in ("Smith", "Jones"):
            store.graph.name(f"Sam {name}")
        for name in ("SOUL", "TOOLS"):
            store.put_frame("My word is my bond.", kind="identity", uri=f"identity:{name}")
        for subject in "ABCDEF":
            store.assert_fact(subject, "KNOWS", cerata.Entity(f"{subject}2"))
            store.assert_fact(f"{subject}2", "OWNS", cerata.Entity(f"{subject}3"))
        for day in range(2):
            agent.propose(f"I keep promise {day}.")
            with agent.run(f"r{day}") as run:
                run.call("echo", _echo, x=day)
            with agent.session(f"s{day}") as session:
                session.exchange(
                    f"No, I meant the deadline of day {day}; I am scared of the deadline, Sam.",
                    "The deadline is on Friday.",
                )
                self.clock.time_us += HOUR
                session.exchange("Fine, I was wrong about the deadline, I am sorry.", "Good.")
            self.clock.time_us += DAY
        agent.reflect()
        with agent.session("s2") as session:
            session.exchange("Where is the boat?", "In the harbour.")
        self.clock.time_us += 2 * DAY
        for number in range(12):
            frame = store.put_frame(f"Cara{number} lives in Rome. The deadline is near.").id
            store.recall(f"Where does Cara{number} live?", record=True)
            agents.record_access(store, frame)

    def seqs(self) -> range:
        return range(1, self.store.head.seq + 1)

    def read(self, seq: int | None, read: Callable[[], Any]) -> tuple[Any, list[str]]:
        """Return what a read returns while an event is damaged, and the items that it names."""
        self.damage(seq)
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always")
                result = read()
        finally:
            self.damage(None)
        return result, [str(note.message) for note in notes if note.category is UnreadableItem]


def _echo(x: int) -> list[int]:
    return [x] * 50


@pytest.fixture(scope="module")
def kept() -> Iterator[World]:
    """A world that tests only read."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(patch)
        yield world
        world.store.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world of one test, which may write."""
    world = World(monkeypatch)
    yield world
    world.damage(None)
    world.store.close()


def public(kind: type) -> set[str]:
    return surface(kind)


# --- every public call of a store ----------------------------------------------------------------

READINGS: dict[str, Callable[[World], Sequence[object]]] = {
    # They answer from many items; a damaged item is named, whatever it is of.
    "candidates": lambda world: [each.id for each in world.agent.candidates()],
    "compare_recalls": lambda world: [
        change.seq
        for change in compare_recalls(world.store, RecallSettings(profile="words")).recalls
    ],
    "draw_graph": lambda world: [bool(draw_graph(world.store, "A"))],
    "entropy": lambda world: [world.agent.entropy() is None],
    "graph.extract": lambda world: [
        each.frame for each in world.store.graph.extract(dry_run=True).frames
    ],
    "handoff": lambda world: [each.id for each in world.agent.handoff().messages],
    "identity": lambda world: [each.name for each in world.agent.identity().files],
    "meta_patterns": lambda world: [str(each) for each in world.agent.meta_patterns()],
    "pending": lambda world: [each.name for each in world.agent.pending()],
    "proposals": lambda world: [each.id for each in world.agent.proposals()],
    # A lost assessment is made again.
    "reflect": lambda world: [
        each.subject
        for each in world.agent.reflect(dry_run=True).skipped
        if each.kind not in ("align", "assess")
    ],
    "search": lambda world: [hit.id for hit in world.store.search("deadline Rome", k=50)],
    "standing": lambda world: [each.dimension for each in world.agent.standing()],
    "topics": lambda world: [each.stem for each in world.agent.topics()],
    "tune": lambda world: [cerata.tuning.tune(world.store).questions >= 11],
    "wellbeing": lambda world: [world.agent.wellbeing() is None],
}

EXACT: dict[str, Callable[[World, Path], Any]] = {
    "backup": lambda world, folder: world.store.backup(folder / "new"),
    "upkeep.compact": lambda _, folder: _compacted(folder),
    "upkeep.drafts_after": lambda world, _: world.store.upkeep.drafts_after(
        world.store.upkeep.fork(1)
    ),
    "interchange.export_events": lambda world, folder: world.store.interchange.export_events(
        folder / "new"
    ),
    "stream.follow": lambda world, _: [*world.store.stream.follow(0, timeout=0)],
}
"""Works that may leave out no event: they stop at the damage, and their error names it."""

BAD = 6
"""An event that is a batch."""

COMMANDS = {"embeddings.fill", "upkeep.sweep"}
"""Writes over many items, each with a test here."""

WHOLE_FILE = {
    # They describe, check or rebuild the file: damage is their subject.
    *(
        "upkeep.branches",
        "checkpoint",
        "stream.digests",
        "upkeep.info",
        "upkeep.maintain",
        "upkeep.rebuild",
        "report",
        "history.salvaged",
    ),
    "verify",
    # Questions about many states: an answer that is not known is an error.
    *("history.bisect", "stream.replay"),
    # A diff of two memories: `diff` is in the table of views.
    "history.compare",
    # In `tests.memory.test_forks`: the segments are copied as they are.
    "upkeep.fork",
}

SINGLE = {
    *(
        "actor",
        "append",
        "upkeep.apply",
        "assert_fact",
        "graph.assert_many",
        "close",
        "stream.commit",
    ),
    *(
        "correct_fact",
        "graph.declare",
        "delete",
        "embeddings.embedder",
        "interchange.import_events",
        "interchange.import_facts",
    ),
    *("judge", "graph.link", "graph.merge", "path", "graph.name", "put_frame", "put_frames"),
    *(
        "record_access",
        "stream.refresh",
        "remember",
        "files.remember",
        "remember_messages",
        "history.restore",
    ),
    *("retract_fact", "graph.retract_many", "scoped", "graph.split", "supersede", "history.tag"),
    *("transaction", "graph.unlink", "graph.unmerge", "graph.unsplit", "update"),
}
"""Writes of named things, and values of the store."""


def test_every_call_of_a_store_is_in_a_table() -> None:
    known = {*READINGS, *EXACT, *COMMANDS, *WHOLE_FILE, *SINGLE, "diff"}
    assert public(Store) - public(View) - known == set()


def _compacted(folder: Path) -> None:
    """Compact a file of many batches, which the damage is of, too."""
    with cerata.open(folder / "memory.cera") as store:
        for _ in range(40):
            store.put_frame("x" * 4_000)
        session_of(store).log.seal()
        store.upkeep.compact()


# --- readings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READINGS)
def test_a_damaged_event_costs_a_reading_only_itself(name: str, kept: World) -> None:
    def read() -> Sequence[object]:
        return READINGS[name](kept)

    if name == "draw_graph":
        pytest.importorskip("matplotlib", reason="needs an extra")
    whole, notes = kept.read(None, read)
    assert whole
    assert not notes
    # Some take a tenth of a second; the other recalls and frames are alike.
    for seq in kept.seqs()[:: 13 if name in ("compare_recalls", "draw_graph", "tune") else 1]:
        items, notes = kept.read(seq, read)
        assert {*items} <= {*whole}, seq
        assert len(items) >= len(whole) - 1, (seq, notes)
        # The error of an item names the damage.
        assert all(f"Event {seq} is damaged" in note for note in notes)
        assert notes or items == whole, seq


# --- exact works ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_work_stops_at_the_damage_and_writes_nothing(
    name: str, world: World, tmp_path: Path
) -> None:
    head = world.store.head.seq
    world.damage(BAD)
    with pytest.raises(Corrupt, match=rf"stopped at .*event {BAD}: Event {BAD} is") as caught:
        EXACT[name](world, tmp_path)
    assert caught.value.remedy
    world.damage(None)
    assert world.store.head.seq == head
    assert {path.name for path in tmp_path.iterdir()} <= {"memory.cera"}
    if name == "upkeep.compact":
        with cerata.open(tmp_path / "memory.cera") as store:
            assert len([*store.frames()]) == 40
            assert store.verify().ok


def test_an_export_ends_before_the_damaged_batch(world: World) -> None:
    """The caller's file has whole batches, and no last line."""
    world.damage(BAD)
    lines = io.BytesIO()
    with pytest.raises(Corrupt, match="The export stopped at the batch of event 6"):
        world.store.interchange.export_events(lines)
    seqs = [line["header"][0] for line in map(json.loads, lines.getvalue().splitlines()[1:])]
    assert seqs == [*range(1, BAD)]


def test_a_run_is_not_repeated_without_a_call(world: World) -> None:
    [call] = world.agent.calls("r0")
    world.damage(call.event)
    match = rf"The recording of the run 'r0' stopped at event {call.event}"
    with pytest.raises((Corrupt, RerunFailed), match=match):
        world.agent.rerun("r0", lambda run: run.call("echo", _echo, x=0))


def test_a_summary_is_of_every_message(world: World) -> None:
    """Else the summary would be due again at each reflection."""
    with world.agent.session("s9") as session:
        asked = session.message("user", "What is the deadline?")
        session.message("assistant", "Friday.")
        world.damage(asked.id)
        match = rf"The summary stopped at frame {asked.id}"
        with pytest.raises(Corrupt, match=match):
            session.compact()
        world.damage(None)
        assert session.compact() is not None


# --- commands ------------------------------------------------------------------------------------


def test_a_reflection_reports_the_damaged_source_and_does_the_rest(world: World) -> None:
    for day in range(2):
        with world.agent.session(f"t{day}") as session:
            session.message("user", f"The harbour of day {day}.")
        world.clock.time_us += 2 * DAY
    bad = next(each.id for each in world.store.frames() if each.text.endswith("day 0."))
    reflection, _ = world.read(bad, world.agent.reflect)
    [failed] = reflection.failed
    assert f"The summary stopped at frame {bad}" in failed.reason
    assert any(report.kind == "summarize" for report in reflection.done)


def test_missing_vectors_are_made_for_all_but_the_damaged_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage = Damage(monkeypatch)
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames([f"note {number}" for number in range(1, 6)])
    with cerata.open(path, embedder=Hashing()) as store:
        store.search("note", mode="text")
        damage(3)
        with pytest.warns(UnreadableItem, match="Frame 3 cannot be read"):
            assert store.embeddings.fill().frames == 4
        damage(None)
        assert store.embeddings.fill().frames == 1


def test_an_extraction_reads_all_but_the_damaged_frame(world: World) -> None:
    frames = [each.id for each in world.store.frames() if each.text.startswith("Cara")]
    extraction, notes = world.read(frames[3], lambda: world.store.graph.extract(frames))
    assert [each.frame for each in extraction.frames] == sorted({*frames} - {frames[3]})
    assert any(f"Frame {frames[3]} cannot be read" in note for note in notes)


def test_a_sweep_ends_all_but_the_unreadable_activity(world: World) -> None:
    runs = [world.agent.run(name).__enter__() for name in ("a", "b")]
    starts = [each.id for each in world.agent.runs() if each.name in ("a", "b")]
    world.clock.time_us += 40 * DAY
    sweep, notes = world.read(starts[0], world.agent.sweep)
    assert (sweep.activities, len(notes)) == (1, 1)
    assert "Run 'a' cannot be read" in notes[0]
    assert world.agent.sweep().activities == 1
    assert len(runs) == 2


def test_a_document_with_a_damaged_passage_can_be_remembered_again(world: World) -> None:
    text = "A long paragraph about the boat. " * 400
    world.store.remember(text, uri="x:long")
    chunk = next(iter(world.store.files.chunks(world.store.files.by_uri("x:long")[0]).values()))
    world.damage(chunk)
    assert world.store.remember(f"{text}More.", uri="x:long").added


# --- answers for models and programs -------------------------------------------------------------


def test_an_answer_over_mcp_names_the_items_that_it_lacks(world: World) -> None:
    bad = world.store.search("Cara3", mode="text")[0].id
    for tool, arguments in (("changes", {"since": "1"}), ("recall", {"query": "Cara3 lives"})):
        answer, notes = world.read(bad, partial(Service(world.store).call, tool, arguments))
        assert notes
        assert not answer.is_error
        assert f"{bad} cannot be read and was left out: Event {bad} is damaged" in answer.text, tool
    prompt, _ = world.read(bad, lambda: Service(world.store).prompt("what_changed", {"since": "1"}))
    assert "cannot be read" in prompt


def test_the_json_of_the_command_line_names_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames(["a", "b", "c"])
        store.checkpoint()
    damage = Damage(monkeypatch)
    damage(2)
    output, notes = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(notes):
        assert main(["-f", str(path), "--json", "log"]) == 0
    answer = json.loads(output.getvalue())
    assert [event["seq"] for event in answer["events"]] == [3, 1]
    assert [text.partition(":")[0] for text in answer["unreadable"]] == [
        "Event 2 cannot be read and was left out"
    ]
    assert notes.getvalue().count("Event 2 cannot be read") == 1
