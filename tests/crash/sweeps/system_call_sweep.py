"""Every system call of a story fails once, or from then on: every outcome must be right.

For each story, each call N that it makes, and every error that this call can return: the story
raises nothing, or a typed error with the injected one behind it; no acknowledged batch is lost, no
refused batch is there, the handle continues or is poisoned, other processes continue, and the file
reopens without repair. N grows until the story runs to its end untouched: SQLite's loop.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cerata.fault_injection.judging.tally import SweepTally, listed

from ..system_calls import FAULTS, Fault, FaultySystem
from .bench import descriptors, scratch
from .handle_under_test import Subject
from .sweep_workloads import STORIES, Story, prepare


@dataclass(slots=True)
class IoTally(SweepTally):
    """Counts of the faults."""

    stories: int = 0
    calls: int = 0
    met: int = 0
    unused: int = 0
    """Faults that no call met: must be 0, since a run without faults made each call."""
    reported: int = 0
    """Runs in which the fault led to an error for a caller."""
    by_call: Counter[str] = field(default_factory=Counter[str])

    def summary(self) -> str:
        return (
            f"{self.met + self.unused:,} faults in {self.calls:,} system calls of {self.stories}"
            f" stories ({listed(self.by_call)}): {self.unused} unused, {self.reported:,} led to an"
            f" error for a caller, {len(self.problems)} to a problem"
        )


def sweep_io(
    *,
    share: int = 1,
    seed: int = 0,
    stories: Sequence[str] = (),
    calls: Sequence[str] = (),
    problems_max: int = 20,
) -> IoTally:
    """Try every fault of every call of the stories, or one in ``share`` of them by ``seed``.

    ``stories`` and ``calls`` restrict the sweep to these; empty means all.
    """
    tally = IoTally()
    random = Random(seed)
    with scratch() as folder:
        bench = Bench(Path(folder))
        for name in stories or STORIES:
            tally.stories += 1
            sequence = bench.run(name, None, tally)
            tally.calls += len(sequence)
            for fault in faults_of(sequence):
                call = sequence[fault.number - 1]
                if random.randrange(share) == 0 and (not calls or call in calls):
                    bench.run(name, fault, tally)
                    tally.by_call[call] += 1
                if len(tally.problems) >= problems_max:
                    return tally
    return tally


def faults_of(calls: Sequence[str]) -> Iterator[Fault]:
    """Yield all faults of a run that makes these calls."""
    for number, name in enumerate(calls, start=1):
        for kind in FAULTS[name]:
            yield Fault(number, kind)
            yield Fault(number, kind, forever=True)


class Bench:
    """Runs stories on files in one folder, a new file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._system = FaultySystem()
        self._runs = 0

    def run(self, name: str, fault: Fault | None, tally: IoTally) -> list[str]:
        """Run one story with a fault or without, count it, and return the calls that it made."""
        system = self._system
        self._runs += 1
        subject = Subject(str(self._folder / f"{self._runs}.cera"), system.is_behind)
        before = descriptors()
        with system.installed():
            problems = self._problems(STORIES[name], subject, fault)
        left = descriptors() - before
        if left > 0:
            problems.append(f"{left} descriptors are left open")
        for path in self._folder.iterdir():
            path.unlink()
        if fault is not None:
            tally.met += system.met > 0
            tally.unused += system.met == 0
            tally.reported += bool(subject.errors)
        tally.problems += [f"{name}, {fault or 'no fault'}: {problem}" for problem in problems]
        return list(system.calls)

    def _problems(self, story: Story, subject: Subject, fault: Fault | None) -> list[str]:
        system = self._system
        prepare(story, subject)
        with system.armed(fault):
            story.act(subject, system.resting)
            system.heal()
            if subject.log is None:
                subject.open()
        return subject.finish()
