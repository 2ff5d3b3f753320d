"""One handle under faults, and its results: compared with the file afterwards.

Owns `Subject`: every operation goes through it, and it records which batches were acknowledged,
which were refused, and which are of unknown fate; then the checks of the handle, of other processes
and of the next opening. Leaves out the faults (`system_calls`, `exception_sweep`).

The text of its first event identifies a batch, so the texts of a story must differ.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import OsStorage
from cerata.engine.errors import CerataError, OutcomeUnknown
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Erased,
    Event,
    EventBody,
    PutFrame,
    PutTag,
    SupersedeFrame,
)
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.simulation.simulated_world import SeededBytes, VirtualClock
from cerata.fault_injection.stories.engine_workloads import RING_SIZE

ACKNOWLEDGED = "acknowledged"
REFUSED = "refused"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReportedBatch:
    """A batch of an append: its name, its number of events, and its fate as reported."""

    name: str
    count: int
    fate: str


def name_of(body: EventBody | Erased) -> str:
    """Return the name of a batch, taken from its first event."""
    if isinstance(body, PutFrame):
        return (body.text or "").split(" ", 1)[0]
    if isinstance(body, DeleteFrame):
        return f"delete:{body.frame}"
    if isinstance(body, SupersedeFrame):
        return f"supersede:{body.old}"
    if isinstance(body, PutTag):
        return f"tag:{body.tag}"
    return type(body).__name__


@dataclass(slots=True)
class Subject:
    """A handle on one real file, and all of its results. ``problems`` are sentences."""

    path: str
    is_injected: Callable[[BaseException], bool]
    """Returns whether an injected fault led to an error."""
    passing: tuple[type[BaseException], ...] = ()
    """Injected exceptions that may reach the caller unchanged, typed or not."""
    around: Callable[[Callable[[], Any]], Any] = lambda act: act()
    """Calls each attempted operation: an injected exception strikes inside this call."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    reported: list[ReportedBatch] = field(default_factory=list[ReportedBatch])
    problems: list[str] = field(default_factory=list[str])
    errors: list[BaseException] = field(default_factory=list[BaseException])
    log: Log | None = None
    environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        self.environment = Environment(OsStorage(), VirtualClock(), SeededBytes("subject"))

    # --- acting ----------------------------------------------------------------------------------

    def open(self, **options: Any) -> None:
        """Open the file; a second time if a fault refuses the first, as a caller would."""
        self.options = options or self.options
        self.open_once()
        if self.log is None:
            self.open_once()

    def open_once(self) -> None:
        """Open the file, if that succeeds."""
        self.log = self.attempt("open", lambda: self.another_handle(**self.options))

    def another_handle(self, **options: Any) -> Log:
        """Return another handle on the file, like that of another process."""
        options = {"ring_bytes": RING_SIZE, "lock_timeout": 1.0} | options
        return open_log(self.path, environment=self.environment, **options)

    def append(self, drafts: Sequence[Draft], **options: Any) -> None:
        """Append a batch, and record its fate."""
        self.write(name_of(drafts[0].body), len(drafts), lambda log: log.append(drafts, **options))

    def write(self, name: str, count: int, act: Callable[[Log], object]) -> None:
        """Append a batch of ``count`` events by ``act``. Syncs do not matter: no machine dies."""
        log = self.log
        if log is None:
            return
        before = len(self.errors)
        self.attempt(name, lambda: act(log))
        fate = ACKNOWLEDGED
        if len(self.errors) > before:
            error = self.errors[-1]
            is_refusal = isinstance(error, CerataError) and not isinstance(error, OutcomeUnknown)
            fate = REFUSED if is_refusal else UNKNOWN
        self.reported.append(ReportedBatch(name, count, fate))

    def act(self, name: str, act: Callable[[Log], object]) -> None:
        """Do an operation that appends nothing."""
        log = self.log
        if log is not None:
            self.attempt(name, lambda: act(log))

    def close(self) -> None:
        """Close the handle; an error is recorded."""
        log = self.log
        self.log = None
        if log is not None:
            self.attempt("close", log.close)

    def attempt(self, name: str, act: Callable[[], Any]) -> Any:
        """Call ``act``; an error must be typed, and caused by an injected fault."""
        poisoned = self.log is not None and not self.log.is_open
        try:
            return self.around(act)
        except CerataError as error:
            self.errors.append(error)
            if not self.is_injected(error) and not poisoned:
                self.problems.append(f"{name}: an error without an injected fault: {error!r}")
        except BaseException as error:
            self.errors.append(error)
            if isinstance(error, self.passing) and self.is_injected(error):
                return None
            if not isinstance(error, Exception):
                raise
            self.problems.append(f"{name}: {error!r} instead of a typed error")
        return None

    # --- judging ---------------------------------------------------------------------------------

    def finish(self) -> list[str]:
        """After the faults: check this handle and another process, and reopen the file."""
        log = self.log
        if log is not None and log.is_open:
            self.append([draft("afterwards")])
            if self.reported[-1].fate != ACKNOWLEDGED:
                self.problems.append(
                    f"an append fails after the fault is over: {self.errors[-1]!r}"
                )
            else:
                self._judge(self._read(lambda: list(log.read())), "the handle")
        try:
            with self.another_handle() as handle:
                handle.append([draft("other")])
            self.reported.append(ReportedBatch("other", 1, ACKNOWLEDGED))
        except CerataError as error:
            self.problems.append(f"another process cannot write: {error!r}")
        self.close()
        self._reopen()
        return self.problems

    def judge_copy(self, events: Sequence[Event]) -> None:
        """Compare the events of a backup with the recorded batches."""
        self._judge(events, "the backup")

    def _read(self, act: Callable[[], list[Event]]) -> list[Event]:
        try:
            return act()
        except CerataError as error:
            self.problems.append(f"the handle cannot read its events: {error!r}")
            return []

    def _reopen(self) -> None:
        try:
            # A reader first: it repairs nothing, and must see the same events.
            with self.another_handle(mode="r") as log:
                self._judge(list(log.read()), "a reader")
            with self.another_handle() as log:
                report = log.report
                if report.bad_pages or report.rebuilt_toc:
                    self.problems.append(f"the reopened file needed repair: {report}")
                self._judge(list(log.read()), "the reopened file")
                if verify_log(log).problems:
                    self.problems.append(f"verify: {verify_log(log).problems}")
                log.append([draft("last")])
        except CerataError as error:
            self.problems.append(f"the file does not reopen: {error!r}")
        folder, name = os.path.split(self.path)
        left = [entry for entry in os.listdir(folder) if entry.startswith(name + ".")]
        if left:
            self.problems.append(f"temporaries are left: {left}")

    def _judge(self, events: Sequence[Event], source: str) -> None:
        """Compare events with the recorded batches: whole, in order, none invented."""
        batches = batches_of(events)
        recorded = list(self.reported)
        for name, count, whole in batches:
            if not whole:
                self.problems.append(f"{source}: batch {name} is not whole")
            while recorded and (recorded[0].name, recorded[0].count) != (name, count):
                missing = recorded.pop(0)
                if missing.fate == ACKNOWLEDGED:
                    self.problems.append(f"{source}: {missing.name} was acknowledged and is lost")
            if not recorded:
                self.problems.append(f"{source}: {name} was never appended, or appears twice")
            elif recorded.pop(0).fate == REFUSED:
                self.problems.append(f"{source}: {name} was refused and is there")
        for missing in recorded:
            if missing.fate == ACKNOWLEDGED:
                self.problems.append(f"{source}: {missing.name} was acknowledged and is lost")


def batches_of(events: Sequence[Event]) -> list[tuple[str, int, bool]]:
    """Return each batch's name, number of events, and whether it is whole and dense."""
    batches: list[tuple[str, int, bool]] = []
    place = 0
    while place < len(events):
        first = events[place]
        batch = events[place : place + first.header.count]
        whole = [(event.seq, event.header.index) for event in batch] == [
            (events[0].seq + place + index, index) for index in range(first.header.count)
        ]
        batches.append((name_of(first.body), first.header.count, whole))
        place += max(1, len(batch))
    return batches


def draft(name: str, size: int = 0) -> Draft:
    """Return a frame whose text is its name and ``size`` further characters."""
    return Draft(PutFrame(text=f"{name} {'x' * size}"))
