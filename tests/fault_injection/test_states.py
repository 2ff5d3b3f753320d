"""Crash states are exactly what a disk may leave behind, and each can be printed and rebuilt."""

import time
from collections.abc import Hashable

from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.fault_injection.crash_states.epochs import epochs, sector_digests
from cerata.fault_injection.crash_states.states import CrashState, Models, Plan, crash_states
from cerata.fault_injection.simulation.disk import SimulatedDisk

A, B, C, D = (bytes([letter]) * 512 for letter in b"ABCD")
ZERO = bytes(512)


def images(disk: SimulatedDisk, plan: Plan) -> list[set[bytes]]:
    """Return the distinct images of each epoch of inode 1."""
    return [
        {bytes(state.image()) for state in crash_states(epoch, plan)}
        for epoch in epochs(disk.trace, 1)
    ]


def test_unsynced_sectors_persist_in_any_combination() -> None:
    """Two unsynced sectors give four states: neither, either, both."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A + B)
    file.sync()
    file.write_at(0, C + D)
    first, second = images(disk, Plan(models=Models.SECTORS))
    assert first == {ZERO + ZERO, A + ZERO, ZERO + B, A + B}
    assert second == {A + B, C + B, A + D, C + D}


def test_a_sector_written_twice_has_three_versions() -> None:
    """Any version since the last sync may be the one that stays, not only the newest."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A)
    file.sync()
    file.write_at(0, B)
    file.write_at(256, C[:256])
    assert images(disk, Plan(models=Models.SECTORS))[1] == {A, B, B[:256] + C[:256]}


def test_a_sync_by_one_process_covers_the_writes_of_another() -> None:
    """A sync covers every earlier byte of the file, whoever wrote it."""
    disk = SimulatedDisk()
    first = disk.process().create("a")
    second = disk.process().open("a", mode="rw")
    first.write_at(0, A)
    second.sync()
    assert images(disk, Plan(models=Models.SECTORS))[1] == {A}


def test_a_kill_keeps_every_write_so_far() -> None:
    """After a kill the kernel writes everything back: only prefixes are possible."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A + B)
    file.write_at(512, C)
    (found,) = images(disk, Plan(models=Models.KILL))
    assert found == {ZERO + ZERO, A + B, A + C}


def test_the_size_may_be_any_the_file_had() -> None:
    """Size and data reach the disk on their own; a gap may hold anything."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A)
    file.sync()
    file.write_at(512, B)
    file.set_size(2048)
    second = images(disk, Plan(models=Models.SIZES))[1]
    assert {len(image) for image in second} == {512, 1024, 2048}
    assert A + B in second, "the write's own size, with its data"
    assert A + ZERO in second, "the size without the data"
    assert any(len(image) == 2048 and image[1024:] != bytes(1024) for image in second)


def test_a_cut_may_be_lost_and_its_bytes_come_back_as_zeros() -> None:
    """A file cut and grown again in one epoch holds the old bytes, zeros, or the new ones."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A + B)
    file.sync()
    file.set_size(512)
    file.write_at(512, C)
    assert images(disk, Plan(models=Models.SECTORS))[1] == {A + B, A + ZERO, A + C}


def test_torn_sectors_mix_two_versions_or_garbage() -> None:
    """A sector is not always written whole; each cut point and fill occurs."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A)
    file.sync()
    file.write_at(0, B)
    torn = images(disk, Plan(models=Models.TORN, tears=10_000))[1]
    assert B[:16] + A[16:] in torn
    assert A[:64] + B[64:] in torn
    assert B[:48] + ZERO[48:] in torn
    assert b"\xff" * 8 + B[8:] in torn
    assert B[:64] + A[64:112] + B[112:] in torn


def test_the_bound_of_an_epoch_is_the_last_acknowledgement_before_its_end() -> None:
    """What was acknowledged before the closing sync must survive with all states before it."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, A)
    file.sync()
    disk.acknowledge(1)
    file.write_at(512, B)
    file.sync()
    disk.acknowledge(2)
    assert [epoch.acked for epoch in epochs(disk.trace, 1)] == [0, 1, 2]


def test_a_large_epoch_is_sampled_in_a_structured_way() -> None:
    """Prefixes, drops and keeps are always among the states, and the same seed gives the same."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.set_size(64 * 512)
    file.sync()
    for number in range(64):
        file.write_at(number * 512, A)
    plan = Plan(models=Models.SECTORS, samples=64, seed=3)
    (_, epoch) = epochs(disk.trace, 1)
    vectors = [state.versions for state in crash_states(epoch, plan)]
    assert epoch.combinations == 1 << 64
    for number in range(64):
        assert (1,) * number + (0,) * (64 - number) in vectors, "a prefix"
        assert (1,) * number + (0,) + (1,) * (63 - number) in vectors, "a single drop"
        assert (0,) * number + (1,) + (0,) * (63 - number) in vectors, "a single keep"
    assert vectors == [state.versions for state in crash_states(epoch, plan)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(0, 3000), st.integers(1, 1400)),
            st.tuples(st.just("size"), st.integers(0, 4000), st.just(0)),
            st.tuples(st.just("sync"), st.just(0), st.just(0)),
        ),
        max_size=12,
    )
)
def test_equal_keys_mean_equal_images(script: list[tuple[str, int, int]]) -> None:
    """States are deduplicated by key without building the image, so the key must be exact."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    for number, (verb, offset, size) in enumerate(script, start=1):
        if verb == "write":
            file.write_at(offset, bytes([number]) * size)
        elif verb == "size":
            file.set_size(offset)
        else:
            file.sync()
    by_key: dict[Hashable, bytes] = {}
    plan = Plan(exhaustive=64, samples=8, tears=24, pair_drops=8)
    for epoch in epochs(disk.trace, 1):
        digest = 0
        for sector in sector_digests(epoch.base):
            digest ^= sector
        assert epoch.base_digest == digest
        for state in crash_states(epoch, plan):
            image = bytes(state.image())
            assert len(image) == state.size
            assert by_key.setdefault(state.key, image) == image, state.describe()
    assert bytes(disk.names["a"].data) in by_key.values(), "the undisturbed end is a state"


def test_building_an_image_is_quick() -> None:
    """The whole log core must reach 5,000 states a second, so an image may cost some 30 us."""
    disk = SimulatedDisk()
    file = disk.process().create("a")
    file.write_at(0, bytes(range(256)) * 300)
    file.sync()
    for number in range(6):
        file.write_at(8192 + number * 512, A)
    (_, epoch) = epochs(disk.trace, 1)
    states: list[CrashState] = list(crash_states(epoch, Plan(models=Models.SECTORS)))
    best = 1.0
    for _ in range(5):
        started = time.perf_counter()
        for state in states:
            state.image()
        best = min(best, (time.perf_counter() - started) / len(states))
    assert best < 200e-6, f"{best * 1e6:.1f} us an image of {len(epoch.base):,} bytes"
