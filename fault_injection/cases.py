"""A failing crash state as one small file: its image, its history, and the rule that it broke.

Owns the case file (MessagePack) and its replay. A case holds the image itself and the model's
history, so it replays without the workload that produced it, and on a later engine. A violation by
several processes, and one after a failed sync, are cases of other kinds
(`stories.interleaving_cases`, `stories.failed_syncs`), for the same command.
``python -m cerata.fault_injection.cases FILE…`` replays cases, each in a fraction of a second.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from .judging.campaign import Failure, Opener, check_unpublished, opening
from .judging.model import Model, ModelBatch, ModelEvent
from .judging.oracle import LEGAL, Finding, Judgement, Oracle
from .simulation.disk import SimulatedDisk
from .simulation.simulated_world import World
from .stories.agent import Agent
from .stories.damage import Damage
from .stories.engine_workloads import PATH
from .stories.failed_syncs import FailedSyncCase, replay_failed_sync
from .stories.interleaving_cases import MeetingCase, replay_meeting
from .stories.interleavings import Violation
from .stories.runs import Runs
from .stories.second_crash import read_only, recover
from .stories.store_stories import Judge
from .stories.talks import Talks
from .stories.workload import Workload

CASE_VERSION = 1

AnyCase: TypeAlias = "Case | MeetingCase | FailedSyncCase"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One image that broke a rule.

    ``engine`` names the opener: ``log`` for writing, ``read`` for reading, ``store`` with all its
    checks, or a name that the caller of `replay_case` knows. ``operations`` are the shortest story
    that fails, from the set-up ``start``. ``image`` is compressed; ``names`` are its names,
    ``others`` those of other files; ``acked`` must survive as ``judgement`` defines; ``choices``
    describes the state for people. ``history`` has one list of events per batch.
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


def case_of_damage(damage: Damage, finding: Finding) -> Case:
    """Return the case of a finding in a damaged image."""
    return Case(
        rule=finding.rule,
        what=finding.what,
        engine="log",
        start="damage",
        story=damage.what,
        choices="",
        path=PATH,
        names=[PATH],
        image=zlib.compress(damage.image, 9),
        acked=damage.acked,
        judgement=damage.judgement,
        log_id=damage.model.log_id,
        history=[batch.events for batch in damage.model.batches],
    )


def encode_case(case: AnyCase) -> bytes:
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


def load_case(data: bytes) -> AnyCase:
    """Decode a case file of any kind. Raises `ValueError` if the bytes are no case."""
    try:
        kind = msgspec.msgpack.decode(data, type=_Kind).kind
        if kind == "image":
            return decode_case(data)
        return msgspec.msgpack.decode(data, type=MeetingCase | FailedSyncCase)
    except msgspec.DecodeError as error:
        raise ValueError(f"the file is not a case: {error}") from error


class _Kind(msgspec.Struct, frozen=True):
    """The tag that distinguishes the kinds; an image has none."""

    kind: str = "image"


def replay_saved(case: AnyCase) -> Finding | Violation | None:
    """Replay a case of any kind, and return the rule that it still breaks."""
    if isinstance(case, FailedSyncCase):
        return replay_failed_sync(case)
    return replay_meeting(case) if isinstance(case, MeetingCase) else replay_case(case)


def replay_case(case: Case, opener: Opener | None = None) -> Finding | None:
    """Open a case's image once more, and return the rule that it still breaks.

    ``opener`` replaces the case's ``engine``.
    """
    model = case.model()
    opener = opener or _opener(case, model)
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


def _opener(case: Case, model: Model) -> Opener:
    workloads: dict[str, type[Workload]] = {"store": Agent, "runs": Runs, "talks": Talks}
    if case.engine not in workloads:
        return {"log": recover, "read": read_only}[case.engine]
    judge = Judge(workloads[case.engine])
    judge.model = model
    return judge.open


def _story(case: AnyCase) -> str:
    if isinstance(case, FailedSyncCase):
        return f"{case.start}: {' '.join(case.operations)} [sync {case.number} fails]"
    if isinstance(case, Case):
        return f"{case.start}: {' '.join(case.operations)}"
    switches = ", ".join(f"{choice} at {point}" for point, choice in case.switches)
    return f"{case.meeting.world}: {' '.join(case.operations)} [switches: {switches or 'none'}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay case files; the exit code is 1 if a case still breaks a rule."""
    parser = argparse.ArgumentParser(description="Open saved crash images again.")
    parser.add_argument("files", type=Path, nargs="+")
    wrong = 0
    for path in parser.parse_args(arguments).files:
        case = load_case(path.read_bytes())
        started = time.perf_counter()
        finding = replay_saved(case)
        milliseconds = 1e3 * (time.perf_counter() - started)
        wrong += finding is not None
        earlier = f"was {case.rule}: {case.what}"
        now = "holds now" if finding is None else f"BROKEN: {finding}"
        sys.stdout.write(
            f"{path.name}: {now} ({milliseconds:.1f} ms)\n"
            f"    {_story(case)}\n    {earlier}\n"
            + (f"    {case.choices}\n" if case.choices else "")
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
