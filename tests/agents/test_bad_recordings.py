"""Recordings that cannot be repeated: a typed error names the reason, and nothing is written."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

import cerata
from cerata import Agent, Draft, InvalidInput, NotFound, RerunFailed, Run, Store
from cerata.agents.activities.events import RecordCall
from cerata.engine.events import UnknownBody
from cerata.engine.limits import NESTING_MAX

from ..engine.words import PATH, Disk
from ..inside import log_of
from ..replay.erasures import erase

MADE: list[int] = []

RUN_FRAME, START, INPUT_FRAME, INPUT, FRAME_1, CALL_1, FRAME_2, CALL_2, CLOCK, END = range(1, 11)
"""The events of `original`, recorded."""


def double(number: int) -> int:
    MADE.append(number)
    return 2 * number


def original(run: Run, start: int = 5) -> object:
    number: Any = run.call("double", double, number=start).value
    number = run.call("double", double, number=number).value
    run.now()
    return number


def record(store: Store, function: Callable[..., Any] = original, name: str = "r1") -> Agent:
    agent = Agent(store, "bot")
    with agent.run(name, inputs={"start": 3}) as run:
        function(run, start=3)
    MADE.clear()
    return agent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        record(store)
    return path


def refused(path: Path, work: Callable[[Agent], object], match: str, **options: Any) -> Any:
    """Return the error of a re-run that changes no byte of the file and calls no tool."""
    with cerata.open(path, **options) as store:
        before = path.read_bytes()
        with pytest.raises(cerata.CerataError, match=match) as caught:
            work(Agent(store, "bot"))
        assert caught.value.remedy
        assert path.read_bytes() == before
        assert MADE == []
    return caught.value


# --- other code ----------------------------------------------------------------------------------


def renamed(run: Run, start: int) -> None:
    run.call("twice", double, number=start)


def other_arguments(run: Run, start: int) -> None:
    run.call("double", double, value=start)


def fewer(run: Run, start: int) -> None:
    run.call("double", double, number=start)


def more(run: Run, start: int) -> None:
    original(run, start)
    run.now()


@pytest.mark.parametrize(
    ("function", "place", "difference"),
    [
        (renamed, 1, "name"),
        (other_arguments, 1, "arguments"),
        (fewer, 2, "missing"),
        (more, 4, "extra"),
    ],
)
def test_a_recording_of_other_code_shows_both_sides(
    path: Path, function: Callable[..., Any], place: int, difference: str
) -> None:
    """The file is byte-identical afterwards, and no tool was called."""
    with cerata.open(path) as store:
        before = path.read_bytes()
        rerun = Agent(store, "bot").rerun("r1", function)
        assert path.read_bytes() == before
    assert rerun.divergence is not None
    assert (rerun.divergence.place, rerun.divergence.difference) == (place, difference)
    assert rerun.outcome == "diverged"
    assert MADE == []


def test_a_recording_of_another_signature_names_the_inputs(path: Path) -> None:
    def begun(run: Run, begin: int) -> None:
        raise AssertionError

    error = refused(path, lambda agent: agent.rerun("r1", begun), "cannot take the recorded inputs")
    assert isinstance(error, InvalidInput)
    assert error.where == "start"


# --- unserialisable arguments --------------------------------------------------------------------


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested(NESTING_MAX + 2)

UNSERIALISABLE: list[Any] = [
    object(),
    {1, 2},
    b"bytes",
    float("nan"),
    float("inf"),
    1 << 64,
    {1: "a number as name"},
    "half \ud800",
    complex(1),
    Path("a"),
    double,
    DEEP,
]


@pytest.mark.parametrize("value", UNSERIALISABLE, ids=lambda value: type(value).__name__)
def test_a_call_with_an_unserialisable_argument_is_not_made(path: Path, value: Any) -> None:
    """It could not be repeated; the error names the argument and the ways out."""
    with cerata.open(path) as store:
        run = Agent(store, "bot").run("r2")
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match=r"double.* cannot be recorded") as caught:
            run.call("double", double, number=value)
        assert str(caught.value.where).startswith("number")
        assert "secret=" in str(caught.value.remedy)
        with pytest.raises(InvalidInput, match="cannot be recorded"):
            Agent(store, "bot").run("r3", inputs={"start": value})
        assert path.read_bytes() == before
        assert MADE == []


def test_a_rerun_that_passes_an_unserialisable_argument_ends_otherwise(path: Path) -> None:
    def broken(run: Run, start: int) -> None:
        run.call("double", double, number=object())

    with cerata.open(path) as store:
        before = path.read_bytes()
        rerun = Agent(store, "bot").rerun("r1", broken)
        assert path.read_bytes() == before
    assert rerun.outcome == "diverged"
    assert "double" in str(rerun.divergence)


# --- runs that never ended, secrets --------------------------------------------------------------


def test_a_run_that_never_ended_is_incomplete_not_different(tmp_path: Path) -> None:
    """Its process was killed; the recording is right as far as it goes."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        run = Agent(store, "bot").run("r1", inputs={"start": 3})
        run.call("double", double, number=3)
        log_of(store).abandon()
    MADE.clear()
    with cerata.open(path) as store:
        before = path.read_bytes()
        rerun = Agent(store, "bot").rerun("r1", original)
        assert path.read_bytes() == before
    assert (rerun.outcome, rerun.answered, rerun.recorded) == ("incomplete", 1, 1)
    assert MADE == []


def test_a_secret_result_refuses_and_names_the_way_out(tmp_path: Path) -> None:
    def hidden(run: Run, start: int) -> None:
        run.call("double", double, number=start, secret=("return",))

    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        record(store, hidden)
    error = refused(path, lambda agent: agent.rerun("r1", hidden), "has no recorded answer")
    assert isinstance(error, RerunFailed)
    assert error.where == "event 5"


# --- another log, another tenant -----------------------------------------------------------------


def test_a_run_of_another_log_or_agent_is_not_found(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "b.cera"
    with cerata.open(other) as store:
        record(store, name="r7")
    error = refused(other, lambda agent: agent.rerun("r1", original), "There is no run 'r1'")
    assert isinstance(error, NotFound)
    assert "'cerata agents runs'" in str(error.remedy)
    # An id of the other log names no start here.
    refused(other, lambda agent: agent.rerun(CALL_1, original), "There is no run")


def test_a_run_of_another_tenant_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "a.cera"
    with cerata.open(path, scope={"tenant": "ann"}) as store:
        record(store)
    bob = {"tenant": "bob"}
    error = refused(path, lambda agent: agent.rerun("r1", original), "no run 'r1'", scope=bob)
    assert isinstance(error, NotFound)
    assert "r1" not in str(error.remedy)
    refused(path, lambda agent: agent.rerun(START, original), "There is no run", scope=bob)


# --- erased ---------------------------------------------------------------------------------------


def erased(seqs: Collection[int], function: Callable[..., Any] = original) -> Disk:
    """Return a disk with a recorded run of which events were erased."""
    disk = Disk()
    with cerata.open(PATH, environment=disk.environment) as store:
        record(store, function)
    erase(disk, seqs, erased=max(seqs))
    return disk


@pytest.mark.parametrize(
    ("seqs", "match"),
    [
        ({START}, "There is no run 'r1'"),
        ({INPUT}, "A call of the run 'r1' was erased"),
        ({INPUT_FRAME, INPUT}, "A call of the run 'r1' was erased"),
        ({INPUT_FRAME}, "The result in frame 3 was erased"),
        ({FRAME_1}, "The result in frame 5 was erased"),
        ({CALL_1}, "A call of the run 'r1' was erased"),
        ({CALL_2}, "A call of the run 'r1' was erased"),
        ({FRAME_2, CALL_2}, "may lack an erased call"),
        ({CLOCK}, "may lack an erased call"),
        ({INPUT, CALL_1, CALL_2, CLOCK}, "A call of the run 'r1' was erased"),
    ],
)
def test_erased_events_of_a_recording_refuse(seqs: set[int], match: str) -> None:
    """An erased call was missing without a word: the code was blamed, an input left out."""
    disk = erased(seqs)
    with cerata.open(PATH, environment=disk.environment) as store:
        before = disk.image()
        with pytest.raises((RerunFailed, NotFound), match=match) as caught:
            Agent(store, "bot").rerun("r1", original)
        assert caught.value.remedy
        assert disk.image() == before
        assert MADE == []


def test_an_erased_end_leaves_a_run_open() -> None:
    disk = erased({END})
    with cerata.open(PATH, environment=disk.environment) as store:
        rerun = Agent(store, "bot").rerun("r1", original)
    assert (rerun.outcome, rerun.answered) == ("incomplete", 3)


def test_an_erased_call_of_another_run_hinders_none() -> None:
    """The two runs overlap, and the erased call has the frame of the other."""
    disk = Disk()
    with cerata.open(PATH, environment=disk.environment) as store:
        agent = Agent(store, "bot")
        with agent.run("r1", inputs={"start": 3}) as run, agent.run("r2") as other:
            other.call("double", double, number=1)
            other.now()
            seqs = [event.seq for event in store.log() if event.type == "recordCall"][1:]
            original(run, start=3)
        MADE.clear()
    erase(disk, seqs, erased=max(seqs))
    with cerata.open(PATH, environment=disk.environment) as store:
        agent = Agent(store, "bot")
        assert agent.rerun("r1", original).outcome == "same"
        with pytest.raises(RerunFailed, match="A call of the run 'r2' was erased"):
            agent.rerun("r2", cerata.Run.now)


def test_a_run_that_lost_a_call_does_not_go_on() -> None:
    """It would make the erased call again, and mix its answer with the recording."""

    @cerata.agent("bot")
    def work(run: Run, start: int) -> object:
        return original(run, start)

    disk = Disk()
    with cerata.open(PATH, environment=disk.environment) as store:
        run = Agent(store, "bot").run("r1", inputs={"start": 3})
        run.call("double", double, number=3)
        MADE.clear()
    erase(disk, {CALL_1}, erased=CALL_1)
    with cerata.open(PATH, environment=disk.environment) as store:
        before = disk.image()
        with pytest.raises(RerunFailed, match="was erased"):
            work(store, id="r1", start=3)
        assert disk.image() == before
        assert MADE == []


def test_results_behind_a_horizon_refuse(path: Path) -> None:
    """A compaction gave their contents up; the headers stay."""
    with cerata.open(path) as store:
        for frame in (INPUT_FRAME, FRAME_1, FRAME_2):
            if store.frame(frame).active:
                store.delete(frame)
        store.upkeep.compact(horizon="HEAD")
    error = refused(path, lambda agent: agent.rerun("r1", original), "The result in frame 3")
    assert isinstance(error, RerunFailed)


# --- later versions -------------------------------------------------------------------------------


def append_call(path: Path, body: Any) -> None:
    with cerata.open(path) as store:
        scope = log_of(store).event(CALL_1).scope
        assert scope is not None
        log_of(store).append([Draft(body, scope)])


def open_run(path: Path) -> None:
    with cerata.open(path) as store:
        run = Agent(store, "bot").run("r1", inputs={"start": 3})
        run.call("double", double, number=3)
        MADE.clear()


def test_a_call_of_a_later_version_refuses(tmp_path: Path) -> None:
    """It left no trace in the recording, which looked shorter than it is."""
    path = tmp_path / "a.cera"
    open_run(path)
    data = msgspec.msgpack.encode({"activity": START, "kind": "tool", "how": "quantum"})
    append_call(path, UnknownBody(kind="recordCall", kind_version=2, data=data))
    error = refused(path, lambda agent: agent.rerun("r1", original), "by a later version of Cerata")
    assert isinstance(error, RerunFailed)
    assert error.where == "event 7"


def test_a_call_of_an_unknown_kind_refuses(tmp_path: Path) -> None:
    path = tmp_path / "a.cera"
    open_run(path)
    call = RecordCall(
        activity=START, kind="teleport", name="beam", arguments="{}", digest=bytes(32)
    )
    append_call(path, call)
    error = refused(path, lambda agent: agent.rerun("r1", original), "a kind that this program")
    assert isinstance(error, RerunFailed)
    assert "Cerata" in str(error.remedy)
