"""One handle at work while something fails below it, and what it said: judged against the file.

Owns `Subject`: every operation is done through it, and it keeps which batches were told to be
durable, which were refused, and of which nobody knows; then what must hold of the handle, of
other processes and of the next opening. Leaves out what fails (`system_calls`, `exceptions`).

A batch is known by what its first event says, so that no two of a story may say the same.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerata.engine.environment import Environment
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
from cerata.engine.storage import OsStorage
from cerata.engine.verify import verify_log

from .workloads import RING_SIZE
from .world import SeededBytes, VirtualClock

TOLD, REFUSED, UNKNOWN = "told", "refused", "unknown"


@dataclass(frozen=True, slots=True)
class Said:
    """A batch that was to be appended, how many events it has, and what the caller was told."""

    name: str
    count: int
    fate: str


def name_of(body: EventBody | Erased) -> str:
    """Return what a batch is known by: what its first event says."""
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
    """A handle on one real file, and all that it said. ``problems`` are sentences."""

    path: str
    is_injected: Callable[[BaseException], bool]
    """Tells whether a fault that was injected lies behind an error."""
    passing: tuple[type[BaseException], ...] = ()
    """What is injected and comes through as it is, typed or not."""
    around: Callable[[Callable[[], Any]], Any] = lambda act: act()
    """Calls what is attempted: where an exception is to strike, it does so in there."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    said: list[Said] = field(default_factory=list[Said])
    problems: list[str] = field(default_factory=list[str])
    errors: list[BaseException] = field(default_factory=list[BaseException])
    log: Log | None = None
    environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        self.environment = Environment(OsStorage(), VirtualClock(), SeededBytes("subject"))

    # --- acting ----------------------------------------------------------------------------------

    def open(self, **options: Any) -> None:
        """Open the file; a second time if a fault refuses it, as a caller would."""
        self.options = options or self.options
        self.open_once()
        if self.log is None:
            self.open_once()

    def open_once(self) -> None:
        """Open the file, if that succeeds."""
        self.log = self.attempt("open", lambda: self.other(**self.options))

    def other(self, **options: Any) -> Log:
        """Return another handle on the file, as another process would have it."""
        options = {"ring_bytes": RING_SIZE, "lock_timeout": 1.0} | options
        return Log.open(self.path, environment=self.environment, **options)

    def append(self, drafts: Sequence[Draft], **options: Any) -> None:
        """Append a batch, and keep what was said of it."""
        self.write(name_of(drafts[0].body), len(drafts), lambda log: log.append(drafts, **options))

    def write(self, name: str, count: int, act: Callable[[Log], object]) -> None:
        """Append a batch of ``count`` events by ``act``. No machine dies here: no sync counts."""
        log = self.log
        if log is None:
            return
        before = len(self.errors)
        self.attempt(name, lambda: act(log))
        fate = TOLD
        if len(self.errors) > before:
            error = self.errors[-1]
            known = isinstance(error, CerataError) and not isinstance(error, OutcomeUnknown)
            fate = REFUSED if known else UNKNOWN
        self.said.append(Said(name, count, fate))

    def act(self, name: str, act: Callable[[Log], object]) -> None:
        """Do what appends nothing."""
        log = self.log
        if log is not None:
            self.attempt(name, lambda: act(log))

    def close(self) -> None:
        """Close the handle, whatever comes of it."""
        log, self.log = self.log, None
        if log is not None:
            self.attempt("close", log.close)

    def attempt(self, name: str, act: Callable[[], Any]) -> Any:
        """Do something; an error must be one of ours, and an injected fault behind it."""
        poisoned = self.log is not None and not self.log.is_open
        try:
            return self.around(act)
        except CerataError as error:
            self.errors.append(error)
            if not self.is_injected(error) and not poisoned:
                self.problems.append(f"{name}: an error that no fault lies behind: {error!r}")
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
        """With the faults over: see that the handle is true, that others go on, and reopen."""
        log = self.log
        if log is not None and log.is_open:
            self.append([draft("afterwards")])
            if self.said[-1].fate != TOLD:
                self.problems.append(f"the fault is over, and appends fail: {self.errors[-1]!r}")
            else:
                self._judge(self._alike(lambda: list(log.read())), "the handle")
        try:
            with self.other() as other:
                other.append([draft("other")])
            self.said.append(Said("other", 1, TOLD))
        except CerataError as error:
            self.problems.append(f"another process cannot go on: {error!r}")
        self.close()
        self._reopen()
        return self.problems

    def judge_copy(self, events: Sequence[Event]) -> None:
        """Hold a backup against what was said: it is of what was there."""
        self._judge(events, "the backup")

    def _alike(self, act: Callable[[], list[Event]]) -> list[Event]:
        try:
            return act()
        except CerataError as error:
            self.problems.append(f"the handle cannot read what it holds: {error!r}")
            return []

    def _reopen(self) -> None:
        try:
            # One that reads first: it repairs nothing, and sees the same.
            with self.other(mode="r") as log:
                self._judge(list(log.read()), "a reader")
            with self.other() as log:
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

    def _judge(self, events: Sequence[Event], who: str) -> None:
        """Hold the events against what was said: whole batches, in order, nothing invented."""
        found = batches_of(events)
        said = list(self.said)
        for name, count, whole in found:
            if not whole:
                self.problems.append(f"{who}: batch {name} is not whole")
            while said and (said[0].name, said[0].count) != (name, count):
                missing = said.pop(0)
                if missing.fate == TOLD:
                    self.problems.append(f"{who}: {missing.name} was acknowledged and is lost")
            if not said:
                self.problems.append(f"{who}: {name} was never appended, or comes twice")
            elif said.pop(0).fate == REFUSED:
                self.problems.append(f"{who}: {name} was refused and is there")
        for missing in said:
            if missing.fate == TOLD:
                self.problems.append(f"{who}: {missing.name} was acknowledged and is lost")


def batches_of(events: Sequence[Event]) -> list[tuple[str, int, bool]]:
    """Return each batch's name, number of events, and whether it is whole and dense."""
    found: list[tuple[str, int, bool]] = []
    place = 0
    while place < len(events):
        first = events[place]
        batch = events[place : place + first.header.count]
        whole = [(event.seq, event.header.index) for event in batch] == [
            (events[0].seq + place + index, index) for index in range(first.header.count)
        ]
        found.append((name_of(first.body), first.header.count, whole))
        place += max(1, len(batch))
    return found


def draft(name: str, size: int = 0) -> Draft:
    """Return a frame that says its name, and ``size`` characters more."""
    return Draft(PutFrame(text=f"{name} {'x' * size}"))
