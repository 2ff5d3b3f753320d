"""Rot without a crash: sectors zeroed, bytes flipped, sectors of another copy, foreign bytes.

Owns the damaged images that plain crash states do not contain, and what the oracle demands of them:
the same data, or a refusal that names the place; never other data, never a silent loss of what
was proven. The exhaustive sweeps come later; these few kinds are enough to notice a check that
was left out.
"""

from collections.abc import Iterator
from functools import partial

from .campaign import Story
from .disk import SimulatedDisk
from .operations import SECTOR, SetSize, Write
from .oracle import Finding, LogLike, Oracle
from .workloads import PATH, Session, Start, append_small, fresh_image, open_log, record
from .world import World

RING_OFFSET = 8192


def _open_image(image: bytearray) -> LogLike:
    world = World(disk=SimulatedDisk(record=False))
    world.disk.put(PATH, image)
    return open_log(world, world.disk.process(), PATH)


def final_image(story: Story) -> bytes:
    """Replay a story's writes on its base."""
    data = bytearray(story.base)
    for operation in story.trace:
        if operation.node != story.node:
            continue
        if isinstance(operation, Write):
            end = operation.offset + len(operation.data)
            data.extend(bytes(max(0, end - len(data))))
            data[operation.offset : end] = operation.data
        elif isinstance(operation, SetSize):
            data.extend(bytes(max(0, operation.size - len(data))))
            del data[operation.size :]
    return bytes(data)


def check_rot() -> Iterator[Finding]:
    """Zero each used sector and flip a byte in it; yield what recovery gets wrong.

    The last record proves all before it, so only the last may be missing, and must be reported.
    """
    story = record(("small", "long", "batch", "small"))
    image = final_image(story)
    head = len(story.model.events)
    oracle = Oracle(story.model)
    for start in range(0, len(image), SECTOR):
        sector = image[start : start + SECTOR]
        if not any(sector):
            continue
        for damaged in (bytes(SECTOR), sector[:20] + bytes([sector[20] ^ 1]) + sector[21:]):
            copy = bytearray(image)
            copy[start : start + SECTOR] = damaged
            try:
                oracle.check_damaged(
                    partial(_open_image, copy),
                    acked=head,
                    proven=head - 1,
                    erased=not any(damaged),
                )
            except Finding as finding:
                yield Finding(finding.rule, f"{finding.what} (sector at {start} damaged)")


def check_strangers() -> Iterator[Finding]:
    """Bytes that verify elsewhere: of a diverged copy, of another store, of another place.

    A grown file may show blocks of a deleted one, and a torn record the inside of its payload,
    which may be a whole store. All of it stands past what was acknowledged: a legal crash.
    """
    ours = record(("small", "small"))
    fork = final_image(record(("small",) * 10, seed=5))
    image = bytearray(final_image(ours))
    place = RING_OFFSET + 2 * SECTOR
    image[place : place + SECTOR] = fork[place : place + SECTOR]
    yield from _legal(ours, image, "a diverged copy's next record in place")

    image = bytearray(final_image(ours))
    source, place = RING_OFFSET + 9 * SECTOR, RING_OFFSET + 40 * SECTOR
    image[place : place + SECTOR] = fork[source : source + SECTOR]
    yield from _legal(ours, image, "a copy's later record at another place")

    stranger = final_image(record(("small", "batch", "seal"), start=Start(fresh_image(7))))
    image = bytearray(final_image(ours))
    yield from _legal(ours, image + stranger[len(image) :], "another store's extents in place")


def check_leavings() -> Iterator[Finding]:
    """Records that were cut lie in the ring still; they must never be taken for new ones.

    Of an unsynced group the second record is torn and the later ones are whole. What is appended
    after the cut is shorter than what stood there, so the later ones keep their place.
    """
    story = record(("small", "long", "small", "small"), sync=1 << 20)
    image = bytearray(final_image(story))
    torn = RING_OFFSET + 2 * SECTOR
    image[torn : torn + SECTOR] = bytes(SECTOR)
    world = World(seed=1, disk=SimulatedDisk(record=False))
    world.disk.put(PATH, image)
    session = Session(world)
    cut = session.log.report.cut_bytes
    append_small(session)
    session.process.kill()
    session.open()
    head, again = session.log.head.seq, session.log.report.cut_bytes
    if not cut or head != 2 or again:
        yield Finding(
            "O5", f"a torn group of {cut} bytes was cut; then {again} again, the head at {head}"
        )


def _legal(story: Story, image: bytearray, what: str) -> Iterator[Finding]:
    oracle = Oracle(story.model)
    try:
        oracle.check_legal(partial(_open_image, image), acked=len(story.model.events))
    except Finding as finding:
        yield Finding(finding.rule, f"{finding.what} ({what})")
