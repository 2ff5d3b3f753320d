"""Cases of every kind: an image, a meeting of processes, and a failed sync.

Owns the kinds and their replay. The openers of an image are ``log`` for writing, ``read`` for
reading, and ``store``, ``runs`` and ``talks`` with the checks of a workload.
``python -m tests.crash.cases FILE…`` replays cases, each in a fraction of a second.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from cerata.fault_injection.cases import Case, decode_case, replay_case
from cerata.fault_injection.judging.campaign import Opener
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.stories.agent import Agent
from cerata.fault_injection.stories.engine_workloads import PATH, recover
from cerata.fault_injection.stories.store_stories import Judge
from cerata.fault_injection.stories.workload import Workload

from .damage import Damage
from .failed_syncs import FailedSyncCase, replay_failed_sync
from .interleaving_cases import MeetingCase, replay_meeting
from .interleavings import Violation
from .runs import Runs
from .second_crash import read_only
from .talks import Talks

AnyCase: TypeAlias = "Case | MeetingCase | FailedSyncCase"


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
    """Return the bytes of a case file of any kind."""
    return msgspec.msgpack.encode(case)


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
    if isinstance(case, MeetingCase):
        return replay_meeting(case)
    return replay_case(case, _opener(case))


def _opener(case: Case) -> Opener:
    workloads: dict[str, type[Workload]] = {"store": Agent, "runs": Runs, "talks": Talks}
    if case.engine not in workloads:
        return {"log": recover, "read": read_only}[case.engine]
    judge = Judge(workloads[case.engine])
    judge.model = case.model()
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
