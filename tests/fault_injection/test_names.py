"""A power loss takes back changes of names, each by itself.

The file has its name, or nobody was told anything.
"""

import pytest

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import LockName, StorageFile, refused
from cerata.engine.errors import StorageFailed
from cerata.engine.log_file.create import create
from cerata.fault_injection.crash_states.epochs import epochs
from cerata.fault_injection.crash_states.states import Models, Plan
from cerata.fault_injection.judging.campaign import Campaign, Story
from cerata.fault_injection.simulation.disk import ProcessKilled, SimulatedDisk, SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    Session,
    append_small,
    model_of,
    open_in_world,
    recover,
)

from ..crash.operations import record, record_creation

NAMES = Plan(models=Models.NAMES | Models.KILL)


def problems(story: Story, plan: Plan = NAMES) -> list[str]:
    return [str(failure) for failure in Campaign(recover, plan).check(story).failures]


def test_each_change_of_a_name_is_lost_by_itself() -> None:
    """Three changes before the folder's sync are eight states, seven of which lost something."""
    disk = SimulatedDisk()
    process = disk.process()
    process.create("a").close()
    process.link("a", "b")
    process.unlink("a")
    node = disk.names["b"].number
    (epoch,) = epochs(disk.trace, node)
    assert epoch.naming.own == ("b",)
    assert {naming.own for naming in epoch.namings} == {(), ("a",), ("a", "b")}
    process.sync_dir("b")
    (synced,) = epochs(disk.trace, node)
    # Before that sync the same could be lost; no longer after it.
    assert {naming.own for naming in synced.namings} == {(), ("a",), ("a", "b")}
    disk.acknowledge(1)
    (acked,) = epochs(disk.trace, node)
    assert acked.acked == 1
    assert {naming.acked for naming in acked.namings} == {0}


def test_a_new_file_and_a_copy_have_their_names_before_anybody_is_told() -> None:
    """Creation and backup sync the folder; before that either name may be lost."""
    assert problems(record_creation()) == []
    story = record(["small", "backup", "small"])
    assert problems(story) == []
    assert len(story.copies) == 1


def test_a_folder_that_is_never_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the states above would show nothing."""

    def forget(_process: SimulatedProcess, _path: str) -> None:
        """Say that it was done."""

    monkeypatch.setattr(SimulatedProcess, "sync_dir", forget)
    assert "O1" in problems(record_creation())[0]
    assert any("copy0" in problem for problem in problems(record(["small", "backup"])))


def killed_before_the_folder_is_synced(world: World) -> None:
    """Let a process create the store and die when the file has its name, and not durably."""

    def turn(process: SimulatedProcess, doing: str) -> None:
        if doing == "sync names":
            process.kill()
            raise ProcessKilled

    world.disk.turn = turn
    with pytest.raises(ProcessKilled):
        open_in_world(world, world.disk.process(), PATH)
    world.disk.turn = None


def assert_the_name_is_durable(session: Session) -> None:
    """Acknowledge an event in a file that a dead creator named, and lose what can be lost."""
    append_small(session)
    disk = session.world.disk
    trace, node = list(disk.trace), disk.names[PATH].number
    session.process.kill()
    model = model_of(session.world, session.written)
    assert problems(Story(trace, node, PATH, model, "after a dead creator")) == []
    assert list(disk.names) == [PATH]


def test_who_opens_what_a_dead_creator_named_makes_the_name_durable() -> None:
    """It acknowledged events in a file whose name a power loss then took away.

    Found by the schedules with a creator that dies, once lost names were enumerated.
    """
    world = World()
    killed_before_the_folder_is_synced(world)
    assert_the_name_is_durable(Session(world))


def test_who_sweeps_as_the_creator_names_its_file_and_dies_makes_the_name_durable() -> None:
    """It had looked for the file before it had its name, and took the sign for a dead draft.

    It removed that, lost the race for the name, and acknowledged events in a file whose name a
    power loss then took away. Found by every schedule of two creators with two preemptions.
    """
    world = World()
    siblings = SimulatedProcess.siblings

    def named_meanwhile(sweeper: SimulatedProcess, path: str) -> list[str]:
        patch.undo()
        killed_before_the_folder_is_synced(world)
        return siblings(sweeper, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedProcess, "siblings", named_meanwhile)
        session = Session(world)
    assert_the_name_is_durable(session)


def test_a_creator_whose_file_a_sweeper_has_locked_gives_it_no_name() -> None:
    """It went on without the lock, named its file and died; then the sweeper removed the sign."""
    world = World()
    creator, sweeper = world.disk.process(), world.disk.process()
    make, held = creator.create, list[StorageFile]()

    def taken(path: str, *, known_as: str | None = None) -> StorageFile:
        file = make(path, known_as=known_as)
        other = sweeper.open(path, mode="rw")
        assert other.try_lock(LockName.PRESENCE, exclusive=True)
        held.append(other)
        return file

    creator.create = taken  # type: ignore[assignment,method-assign]
    assert create(PATH, Environment(creator, world.clock), 1 << 16) is None
    assert (held[0].size(), PATH in world.disk.names) == (0, False)


def test_a_folder_that_cannot_be_synced_leaves_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """The creator is told; the second name stays until somebody could sync the folder."""
    world = World()
    syncs = SimulatedProcess.sync_dir

    def fail(self: SimulatedProcess, path: str) -> None:
        raise refused(OSError(5, "broken"), "sync the folder of", path)

    monkeypatch.setattr(SimulatedProcess, "sync_dir", fail)
    for _ in range(2):
        with pytest.raises(StorageFailed, match="sync the folder"):
            open_in_world(world, world.disk.process(), PATH)
        assert len(world.disk.names) == 2
    monkeypatch.setattr(SimulatedProcess, "sync_dir", syncs)
    open_in_world(world, world.disk.process(), PATH).close()
    assert list(world.disk.names) == [PATH]
