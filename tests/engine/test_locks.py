"""Waiting for locks: how long, how often, and that none is ever kept by one who went away."""

from collections.abc import Callable

import pytest

from cerata.engine.disk.memory_storage import MemoryFile, MemoryStorage
from cerata.engine.disk.storage import LockName, StorageFile
from cerata.engine.errors import Locked, StorageFailed
from cerata.engine.log_file.locks import held, wait_for

from .words import TickingClock

pytestmark = pytest.mark.unwatched("there is no log in its files")

WRITER = LockName.WRITER


class Clock(TickingClock):
    """Its time began long ago; it remembers each wait, and does something after some."""

    def __init__(self, then: Callable[[float], None] = lambda _: None) -> None:
        super().__init__(waited=1e9)
        self.waits: list[float] = []
        self._then = then

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.waits.append(seconds)
        self._then(self.waited - 1e9)


def two() -> tuple[StorageFile, StorageFile]:
    """Return a file, and the same one opened by somebody who holds its writer lock."""
    storage = MemoryStorage()
    file = storage.create("a")
    other = storage.open("a", mode="rw")
    assert other.try_lock(WRITER, exclusive=True)
    return file, other


def waiting(file: StorageFile, clock: Clock, timeout: float | None, **options: bool) -> None:
    exclusive = options.get("exclusive", True)
    wait_for(file, WRITER, exclusive=exclusive, clock=clock, timeout=timeout, path="a")


def test_one_waits_longer_each_time_up_to_a_millisecond() -> None:
    """50 us, then twice as long: soon where it is soon free, and little work where it is not."""
    file, _ = two()
    clock = Clock()
    with pytest.raises(Locked, match=r"is writing; waited 0\.01 s"):
        waiting(file, clock, 0.01)
    microseconds = [round(seconds * 1e6) for seconds in clock.waits]
    assert microseconds[:7] == [50, 100, 200, 400, 800, 1000, 1000]
    assert 0.01 <= sum(clock.waits) < 0.011


def test_no_time_is_no_wait() -> None:
    """0 fails at once; a lock that is free is got at once."""
    file, other = two()
    clock = Clock()
    with pytest.raises(Locked):
        waiting(file, clock, 0)
    other.close()
    waiting(file, clock, 0)
    waiting(file, clock, None)
    assert clock.waits == []


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_lock_is_got_when_it_is_free(exclusive: bool) -> None:
    """As it was asked for; without a time limit, however late."""
    file, other = two()

    def free(waited: float) -> None:
        if waited > 1:
            other.unlock(WRITER)

    clock = Clock(free)
    waiting(file, clock, None, exclusive=exclusive)
    assert 1 < sum(clock.waits) < 1.002
    assert other.try_lock(WRITER, exclusive=False) is not exclusive


def test_a_block_holds_its_lock_and_gives_it_back() -> None:
    """Also when it ends by an error; shared where that is asked for."""
    file, other = two()
    other.unlock(WRITER)
    clock = Clock()
    for exclusive in (True, False):
        hold = held(file, WRITER, exclusive=exclusive, clock=clock, timeout=0, path="a")
        with hold:
            assert other.try_lock(WRITER, exclusive=False) is not exclusive
        assert other.try_lock(WRITER, exclusive=True)
        with pytest.raises(Locked), hold:
            pass
        other.unlock(WRITER)
        with pytest.raises(KeyError), hold:
            raise KeyError
        assert other.try_lock(WRITER, exclusive=True)
        other.unlock(WRITER)


def test_an_interrupt_right_after_the_lock_was_got_does_not_keep_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would know that it is held, and nobody else would ever write."""
    file, other = two()
    other.unlock(WRITER)
    take = MemoryFile.try_lock

    def take_and_break(self: MemoryFile, name: LockName, *, exclusive: bool) -> bool:
        take(self, name, exclusive=exclusive)
        raise KeyboardInterrupt

    monkeypatch.setattr(MemoryFile, "try_lock", take_and_break)
    hold = held(file, WRITER, clock=Clock(), timeout=0, path="a")
    with pytest.raises(KeyboardInterrupt), hold:
        pass
    monkeypatch.undo()
    assert other.try_lock(WRITER, exclusive=True)


def test_a_file_whose_lock_cannot_be_released_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """That releases it; and whoever held it is told."""
    file, other = two()
    other.unlock(WRITER)

    def fail(*_: object) -> None:
        raise StorageFailed("Cannot unlock")

    close = MemoryFile.close

    def close_and_release(self: MemoryFile) -> None:
        monkeypatch.undo()
        close(self)

    monkeypatch.setattr(MemoryFile, "unlock", fail)
    monkeypatch.setattr(MemoryFile, "close", close_and_release)
    with (
        pytest.raises(StorageFailed, match="unlock"),
        held(file, WRITER, clock=Clock(), timeout=0, path="a"),
    ):
        assert not other.try_lock(WRITER, exclusive=True)
    assert other.try_lock(WRITER, exclusive=True)
