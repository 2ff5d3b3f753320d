"""A failing crash state as one small file: its image, its history, and the rule that it broke.

Owns the case file (MessagePack) and its replay. A case holds the image itself and the model's
history, so it replays without the workload that produced it, and on a later engine.
"""

import zlib
from collections.abc import Sequence

import msgspec

from .judging.campaign import Failure, Opener, check_unpublished, opening
from .judging.model import Model, ModelBatch, ModelEvent
from .judging.oracle import LEGAL, Finding, Judgement, Oracle
from .simulation.disk import SimulatedDisk
from .simulation.simulated_world import World

CASE_VERSION = 1


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One image that broke a rule.

    ``engine`` names the opener, which the caller of `replay_case` passes. ``operations`` are the
    shortest story that fails, from the set-up ``start``. ``image`` is compressed; ``names`` are its
    names, ``others`` those of other files; ``acked`` must survive as ``judgement`` defines;
    ``choices`` describes the state for people. ``history`` has one list of events per batch.
    """

    version: int = CASE_VERSION
    rule: str
    what: str
    engine: str
    start: str = ""
    operations: list[str] = []
    story: str
    choices: str
    path: str
    names: list[str]
    others: list[str] = []
    image: bytes
    acked: int
    judgement: Judgement = LEGAL
    unreadable: list[tuple[int, int]] = []
    log_id: bytes
    history: list[tuple[ModelEvent, ...]]

    def model(self) -> Model:
        """Rebuild the history that the image is judged against."""
        return Model(self.log_id, [ModelBatch(batch) for batch in self.history])

    def world(self) -> World:
        """Return a world whose disk holds the image."""
        world = World(seed=1, disk=SimulatedDisk(record=False))
        node = world.disk.new_node(bytearray(zlib.decompress(self.image)))
        node.bad = dict(self.unreadable)
        for name in self.names:
            world.disk.names[name] = node
        for name in self.others:
            world.disk.put(name, b"")
        return world


def case_of(
    failure: Failure, *, engine: str = "log", start: str = "", operations: Sequence[str] = ()
) -> Case:
    """Return the case of a failure, with everything that its replay needs."""
    state = failure.state
    model = failure.story.model
    image = failure.image if failure.image is not None else bytes(state.image())
    return Case(
        rule=failure.finding.rule,
        what=failure.finding.what,
        engine=engine,
        start=start,
        operations=[*operations],
        story=failure.story.name,
        choices=state.describe(),
        path=failure.story.path,
        names=[*state.naming.own],
        others=[*state.naming.others],
        image=zlib.compress(image, 9),
        acked=state.acked,
        judgement=failure.judgement,
        unreadable=[*failure.unreadable],
        log_id=model.log_id,
        history=[batch.events for batch in model.batches],
    )


def encode_case(case: Case) -> bytes:
    """Return the case file's bytes."""
    return msgspec.msgpack.encode(case)


def decode_case(data: bytes) -> Case:
    """Decode a case file. Raises `ValueError` if the bytes are no case, or of another version."""
    try:
        case = msgspec.msgpack.decode(data, type=Case)
    except msgspec.DecodeError as error:
        raise ValueError(f"the file is not a case of version {CASE_VERSION}: {error}") from error
    if case.version != CASE_VERSION:
        raise ValueError(f"the case has version {case.version}, not {CASE_VERSION}")
    return case


def replay_case(case: Case, opener: Opener) -> Finding | None:
    """Open a case's image once more, and return the rule that it still breaks."""
    model = case.model()
    world = case.world()
    try:
        if case.path in case.names:
            with opening(opener, world, case.path) as opened:
                case.judgement.check(Oracle(model), opened, case.acked)
        else:
            check_unpublished(opener, world, case.path, case.acked)
    except Finding as finding:
        return finding
    return None
