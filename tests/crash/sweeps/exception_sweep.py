"""An exception at every bytecode of append, commit, seal, checkpoint, open and close.

Owns the operations, and the checks after each strike. The bytecodes that an operation passes are
listed first. Then, for every distinct bytecode, a KeyboardInterrupt and a MemoryError are raised at
its first visit, its last and one between, each on a new file. The batch is whole or absent, the
handle continues or is poisoned, no lock is held once the handle was used again, and the file
reopens without repair.
"""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from random import Random
from typing import Any

from cerata import engine, memory
from cerata.engine.disk.storage import OsFile, OsStorage
from cerata.engine.errors import CerataError, OutcomeUnknown
from cerata.engine.log import Log
from cerata.fault_injection.judging.tally import SweepTally
from cerata.fault_injection.stories.engine_workloads import RING_SIZE
from cerata.memory.store import Store, open_store
from cerata.memory.values.options import OpenOptions

from ..injected_exceptions import Site, Strikes, visits
from ..operations import publish
from .bench import Hanging, descriptors, scratch, within
from .handle_under_test import Subject, draft
from .sweep_workloads import Story, by_other, killed, prepare, torn

ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation to strike: ``act``, with the result of ``start``; ``before`` prepares it."""

    act: Callable[[Subject, Any], object]
    start: Callable[[Subject], Any] = lambda subject: subject.open()
    before: Callable[[Subject], None] = lambda _: None
    fresh: bool = False


@dataclass(slots=True)
class ExceptionTally(SweepTally):
    """Counts of the strikes."""

    operations: int = 0
    sites: int = 0
    raised: int = 0
    poisoned: int = 0
    finished: int = 0
    """Strikes after which the operation finished all the same."""
    unowned: int = 0
    """Strikes between the open call and the object that owns its descriptor, which is lost."""

    def summary(self) -> str:
        return (
            f"{self.raised:,} exceptions at {self.sites:,} distinct bytecodes of {self.operations}"
            f" operations: {self.poisoned:,} handles poisoned, {self.finished:,} operations"
            f" finished all the same, {self.unowned} descriptors were lost before an object owned"
            f" them, {len(self.problems)} problems"
        )


def _opened(**options: Any) -> Callable[[Subject], None]:
    return lambda subject: subject.open(**options)


def _one_batch(subject: Subject) -> None:
    subject.open()
    subject.append([draft("a")])


def _unsynced(subject: Subject) -> None:
    subject.open(sync=1 << 20)
    subject.append([draft("a")])


def _filled(subject: Subject) -> None:
    """Fill the ring until less than one more batch fits."""
    subject.open()
    for name in "pqrs":
        subject.append([draft(name, 14_000)])


def _followed(subject: Subject) -> None:
    subject.open()
    by_other(subject, "b").close()


def _store(subject: Subject) -> Store:
    store = open_store(
        subject.path, environment=subject.environment, options=OpenOptions(ring_bytes=RING_SIZE)
    )
    subject.log = store._log  # pyright: ignore[reportPrivateUsage]
    subject.write("a", 1, lambda _: store.put_frame("a text"))
    store.search("text")
    return store


def _transaction(subject: Subject, store: Store) -> None:
    def act(_: Log) -> None:
        with store.transaction():
            new = store.put_frame("c text")
            store.supersede(1, new.id)

    subject.write("c", 2, act)


def _nothing(*_: object) -> None:
    """Do nothing: the operation itself does the work of the story."""


_PAIR = [draft("c"), draft("c")]
_OPEN = Operation(lambda subject, _: subject.open_once(), lambda _: None)

OPERATIONS: dict[str, Operation] = {
    "append": Operation(lambda subject, _: subject.append(_PAIR), _one_batch),
    "append with a key": Operation(lambda subject, _: subject.append(_PAIR, key="k"), _one_batch),
    "append, proven": Operation(lambda subject, _: subject.append(_PAIR), _opened(sync="always")),
    "append of a large batch": Operation(lambda subject, _: subject.append([draft("c", 20_000)])),
    "append that seals": Operation(
        lambda subject, _: subject.append([draft("c", 14_000)]), _filled
    ),
    "append after another": Operation(lambda subject, _: subject.append(_PAIR), _followed),
    "refresh": Operation(lambda subject, _: subject.act("refresh", Log.refresh), _followed),
    "commit": Operation(lambda subject, _: subject.act("commit", Log.commit), _unsynced),
    "seal": Operation(lambda subject, _: subject.act("seal", Log.seal), _one_batch),
    "checkpoint": Operation(lambda subject, _: subject.act("checkpoint", publish), _one_batch),
    "close": Operation(lambda subject, _: subject.close(), _one_batch),
    "open": _OPEN,
    "open after a kill": replace(_OPEN, before=killed),
    "open with a torn tail": replace(_OPEN, before=torn),
    "creation": replace(_OPEN, fresh=True),
    "transaction": Operation(_transaction, _store),
    "store's checkpoint": Operation(
        lambda subject, store: subject.attempt("checkpoint", store.checkpoint), _store
    ),
}


def sweep_exceptions(
    *,
    share: int = 1,
    seed: int = 0,
    operations: Sequence[str] = (),
    functions: Sequence[str] = (),
) -> ExceptionTally:
    """Strike every bytecode of the operations, or one in ``share`` of them, drawn by ``seed``.

    ``operations`` and ``functions`` restrict the sweep to these; empty means all.
    """
    tally = ExceptionTally()
    random = Random(seed)
    with scratch() as folder:
        for name in operations or OPERATIONS:
            bench = _Bench(Path(folder), name)
            tally.operations += 1
            # Run once for lazy initialisation, then once to list the bytecodes. Garbage collected
            # while they are listed would add bytecodes, and each later strike would miss its place.
            bench.run(tally, -1)
            gc.collect()
            bench.run(tally, -1)
            sites = bench.strikes.sites
            chosen = visits(bench.strikes, random)
            tally.sites += len(chosen)
            for at, error in product(chain.from_iterable(chosen.values()), ERRORS):
                is_selected = not functions or sites[at].code.co_qualname in functions
                if is_selected and random.randrange(share) == 0:
                    bench.run(tally, at, error, sites[at])
                if len(tally.problems) >= _PROBLEMS_MAX:
                    return tally
    return tally


class _Bench:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._operation = OPERATIONS[name]
        self.strikes = Strikes(*(f"{os.path.dirname(str(room.__file__))}/" for room in _ROOMS))

    def run(
        self,
        tally: ExceptionTally,
        at: int,
        error: type[BaseException] = KeyboardInterrupt,
        site: Site | None = None,
    ) -> None:
        """Run the operation, raise at the ``at``-th bytecode, and check the outcome."""
        where = f"{self._name}, {error.__name__} at {site}" if site else self._name
        try:
            with within(_SECONDS_MAX):
                problems = self._problems(tally, at, error, site)
        except Hanging:
            problems = ["a lock is held for ever, or a loop does not end"]
        for path in self._folder.iterdir():
            path.unlink()
        tally.raised += at >= 0
        tally.problems += [f"{where}: {problem}" for problem in problems]

    def _problems(
        self, tally: ExceptionTally, at: int, error: type[BaseException], site: Site | None
    ) -> list[str]:
        operation = self._operation
        strikes = self.strikes
        subject = Subject(str(self._folder / "a.cera"), strikes.is_behind, passing=ERRORS)
        before = descriptors()
        prepare(Story(_nothing, operation.before, operation.fresh), subject)
        state = operation.start(subject)
        subject.around = lambda act: strikes.run(act, at, error)
        operation.act(subject, state)
        subject.around = lambda act: act()
        blaming = [raised for raised in subject.errors if isinstance(raised, CerataError)]
        if blaming and not isinstance(blaming[0], OutcomeUnknown):
            subject.problems.append(f"the exception was reported as {blaming[0]!r}")
        in_handler = any(raised.__context__ is not None for raised in subject.errors)
        for raised in subject.errors:
            # As after a caller handled the error: the objects that it refers to are dropped.
            raised.__traceback__ = raised.__context__ = raised.__cause__ = None
        if in_handler:
            # An error and the frame that handled it refer to each other until the collector runs.
            gc.collect()
        if subject.log is not None:
            tally.poisoned += not subject.log.is_open
        tally.finished += at >= 0 and not subject.errors
        problems = subject.finish()
        left = descriptors() - before
        if left > 0 and site is not None and site.code in _UNOWNED:
            tally.unowned += 1
        elif left > 0:
            problems.append(f"{left} descriptors are left open")
        return problems


_ROOMS = (engine, memory)
_UNOWNED = (OsStorage._opened.__code__, OsFile.__init__.__code__)  # pyright: ignore[reportPrivateUsage]
_SECONDS_MAX = 20
"""Limit of one run, which takes milliseconds."""
_PROBLEMS_MAX = 20
