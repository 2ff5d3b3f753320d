"""Rot without a crash: sectors zeroed, bytes flipped, sectors of another copy, foreign bytes.

Owns the damaged images that plain crash states do not contain, and the oracle's demands on them:
the same data, or a refusal that names the place; never other data, never a silent loss of proven
events. The exhaustive sweeps are in the engine's tests; these few kinds are enough to notice a
missing check.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cerata.engine.format.page import RING_OFFSET
from cerata.engine.format.witness import WITNESS_SPACE
from cerata.fault_injection.crash_states.operations import SECTOR, SetSize, Write
from cerata.fault_injection.judging.campaign import Story, opening
from cerata.fault_injection.judging.model import Model, ModelBatch, ModelEvent
from cerata.fault_injection.judging.oracle import LEGAL, Finding, Judgement, Oracle
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    Session,
    Start,
    append_small,
    fresh_image,
    recover,
    world_of,
)

from .operations import record


class Damage(NamedTuple):
    """An image that no crash leaves: a description of the damage, and the judgement to apply."""

    what: str
    model: Model
    image: bytes
    acked: int
    judgement: Judgement = LEGAL

    def check(self) -> Finding | None:
        """Open the image and return the rule that its recovery breaks."""
        world = world_of(self.image, record=False)
        try:
            with opening(recover, world, PATH) as opened:
                self.judgement.check(Oracle(self.model), opened, self.acked)
        except Finding as finding:
            return Finding(finding.rule, f"{finding.what} ({self.what})")
        return None


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


def rotten() -> Iterator[Damage]:
    """Zero each used sector, and flip a byte in it.

    The last record proves all records before it, so only the last may be missing, and the loss must
    be reported.
    """
    story = record(("small", "long", "batch", "small"))
    image = final_image(story)
    head = len(story.model.events)
    for start in range(0, len(image), SECTOR):
        sector = image[start : start + SECTOR]
        if not any(sector):
            continue
        flipped = sector[:20] + bytes([sector[20] ^ 1]) + sector[21:]
        for how, instead in (("zeroed", bytes(SECTOR)), ("flipped", flipped)):
            yield Damage(
                f"sector at {start} {how}",
                story.model,
                image[:start] + instead + image[start + SECTOR :],
                head,
                Judgement("damaged", proven=head - 1, erased=not any(instead)),
            )


def unwitnessed() -> Iterator[Damage]:
    """Zero each used sector of the ring, and both witnesses: the records prove each other."""
    story = record(("small", "long", "batch", "small"))
    image = bytearray(final_image(story))
    head = len(story.model.events)
    end = RING_OFFSET + RING_SIZE
    for witness in (RING_OFFSET - WITNESS_SPACE, end):
        image[witness : witness + SECTOR] = bytes(SECTOR)
    for start in range(RING_OFFSET, end, SECTOR):
        if any(image[start : start + SECTOR]):
            yield Damage(
                f"sector at {start} and both witnesses zeroed",
                story.model,
                bytes(image[:start] + bytes(SECTOR) + image[start + SECTOR :]),
                head,
                Judgement("damaged", proven=head - 1, erased=True),
            )


def ranges() -> Iterator[Damage]:
    """Zero each end of a closed file's ring, with and without a witness: all events were proven."""
    story = record(("small", "long", "batch", "reopen", "small", "reopen"))
    image = final_image(story)
    head = len(story.model.events)
    end = RING_OFFSET + RING_SIZE
    for start in range(RING_OFFSET, RING_OFFSET + 16 * SECTOR, SECTOR):
        for stop in (end, end + SECTOR):
            yield Damage(
                f"zeros from {start} to {stop}",
                story.model,
                image[:start] + bytes(stop - start) + image[stop:],
                head,
                Judgement("damaged", proven=head),
            )


def strangers() -> Iterator[Damage]:
    """Bytes that verify elsewhere: from a diverged copy, another store, or another place.

    A grown file may show blocks of a deleted file, and a torn record the inside of its payload,
    which may be a whole store. All of these bytes lie past the acknowledged end: a legal crash.
    """
    ours = record(("small", "small"))
    fork = final_image(record(("small",) * 10, seed=5))
    image = final_image(ours)
    head = len(ours.model.events)

    def moved(source: int, place: int) -> bytes:
        sector = fork[RING_OFFSET + source * SECTOR :][:SECTOR]
        start = RING_OFFSET + place * SECTOR
        return image[:start] + sector + image[start + SECTOR :]

    yield Damage("a diverged copy's next record in place", ours.model, moved(2, 2), head)
    yield Damage("a copy's later record at another place", ours.model, moved(9, 40), head)
    stranger = final_image(record(("small", "batch", "seal"), start=Start(fresh_image(7))))
    grown = image + stranger[len(image) :]
    yield Damage("another store's extents in place", ours.model, grown, head)


def leavings() -> Iterator[Damage]:
    """Records that were cut still lie in the ring; recovery must never take them for new records.

    The second record of an unsynced group is torn and the later records are whole. The record
    appended after the cut is shorter than the torn record, so the later records keep their place:
    the next opener must find only the appended record, and nothing to cut.
    """
    story = record(("small", "long", "small", "small"), sync=1 << 20)
    image = bytearray(final_image(story))
    torn = RING_OFFSET + 2 * SECTOR
    image[torn : torn + SECTOR] = bytes(SECTOR)
    world = world_of(image, seed=1, record=False)
    session = Session(world)
    if not session.log.report.cut_bytes:
        raise Finding("O5", "the rest of a torn group was not cut")
    append_small(session)
    appended = [ModelEvent.of(event) for event in session.log.read(2)]
    session.process.kill()
    batches = [*story.model.batches[:1], ModelBatch(tuple(appended))]
    yield Damage(
        "a torn group was cut, then a batch appended",
        Model(story.model.log_id, batches),
        bytes(world.disk.names[PATH].data),
        2,
        Judgement("uncut"),
    )


DAMAGE: Final[tuple[Callable[[], Iterator[Damage]], ...]] = (
    rotten,
    unwitnessed,
    ranges,
    strangers,
    leavings,
)
