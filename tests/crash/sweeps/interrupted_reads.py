"""An exception in every public read of four kinds of store: no later answer is wrong.

For each read the functions that it enters, or its bytecodes, are listed first. Then, for each of
them, a KeyboardInterrupt and a MemoryError are raised at its first visit, its last and one between,
in a forked process with a new file. The process reads again on the same handle, saves a checkpoint
and closes. A new process reads the file: every answer and every digest is that of an undisturbed
run, and `verify` finds no problem. Leaves out the reads themselves (`public_reads`).
"""

import json
import os
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from blake3 import blake3

from cerata import engine, memory, projections, replay, retrieval
from cerata.engine.errors import CerataError
from cerata.fault_injection.judging.tally import SweepTally
from cerata.memory.store import Store

from .. import read_stores
from ..injected_exceptions import Site, Strikes, visits
from ..public_reads import answer, plain, reads_of
from ..read_stores import KINDS, Kind
from .bench import forked, scratch, summed

ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError)
EVENTS = 60
"""Events of each store: enough for every structure, few enough for a check in milliseconds."""

_ROOMS = (engine, memory, projections, replay, retrieval)
_WITNESSES = (
    *("search", "frames, closed too", "history.timeline", "accesses", "history.tags", "facts"),
    *("graph.search", "graph.links", "graph.entities", "graph.walk", "search, by vectors"),
    *("search, by tokens", "stream.projection"),
)
"""Reads that together cover every projection; some more are drawn each time."""
_DRAWN = 4
_LEAST = 8
"""The least number of functions at which each read is struck."""
_SECONDS_MAX = 60
"""Limit of one process, which takes a second at most."""

Problem = tuple[str, str]
"""A class of problem, one of `CLASSES`, and a sentence."""

CLASSES = ("wrong answer", "wrong digest", "raw error", "untyped end", "verify", "hang")


@dataclass(slots=True)
class ReadTally(SweepTally):
    """Counts of strikes."""

    reads_max: int = 0
    """Reads of each job."""
    sites_max: int = 0
    """Functions or bytecodes, counted in each read in which they are struck."""
    raised: int = 0
    finished: int = 0
    """Reads that finished in spite of the exception, with the right answer."""
    files: int = 0
    """Distinct files that a new process read."""
    classes: Counter[str] = field(default_factory=Counter[str])
    """Strikes that led to a problem, by class of problem; one strike may count in several."""
    functions: Counter[str] = field(default_factory=Counter[str])
    """Strikes that led to a problem, by the place that was struck."""

    def found(self, place: str, name: str, problems: Sequence[Problem]) -> None:
        """Count the problems of one strike."""
        if problems:
            self.functions[place] += 1
            self.classes.update({kind for kind, _ in problems})
            kind, text = problems[0]
            self.problems.append(f"{name}, struck at {place}: {kind}: {text}")

    def summary(self) -> str:
        classes = ", ".join(f"{self.classes[name]:,} {name}" for name in CLASSES)
        return (
            f"{self.raised:,} exceptions at {self.sites_max:,} places of {self.reads_max} reads:"
            f" {self.finished:,} reads ended all the same; {self.files:,} distinct files read by a"
            f" new process; {len(self.problems)} strikes led to a problem ({classes})"
        )


def sweep_reads(
    *,
    share: int = 1,
    seed: int = 0,
    jobs: int = 1,
    kinds: Sequence[str] = tuple(KINDS),
    reads: Sequence[str] = (),
    functions: Sequence[str] = (),
    everywhere: bool = False,
    once: bool = False,
    opcodes: bool = False,
    events: int = EVENTS,
) -> ReadTally:
    """Strike every function entry of the reads, or one in ``share`` of them, drawn by ``seed``.

    Each is struck at its first visit, its last and one between, by both errors; with ``once`` at a
    drawn one of these, by a drawn error.

    A function is struck in one drawn read of those of its store that enter it, and in each read at
    least `_LEAST` functions; with ``everywhere`` it is struck in every read that enters it.
    ``kinds``, ``reads`` and ``functions`` (qualified names) restrict the sweep; ``opcodes`` strikes
    every bytecode instead. ``jobs`` processes share the work.
    """
    sweep = _Sweep(kinds, reads, functions, everywhere, once, opcodes, events, share, seed, jobs)
    return summed(jobs, sweep.strike)


@dataclass(frozen=True, slots=True)
class _Sweep:
    kinds: Sequence[str]
    reads: Sequence[str]
    functions: Sequence[str]
    everywhere: bool
    once: bool
    opcodes: bool
    events: int
    share: int
    seed: int
    jobs: int

    def strike(self, number: int) -> ReadTally:
        """Do every ``jobs``-th strike from the ``number``-th on."""
        tally = ReadTally()
        random = Random(self.seed)
        count = 0
        with scratch() as folder:
            for name in self.kinds:
                for saved in (0, self.events * 2 // 3):
                    bench = Bench(KINDS[name], self.events, saved, self.seed, Path(folder))
                    for read, site, at, error in self._strikes(bench, random, tally):
                        count += 1
                        if count % self.jobs == number:
                            bench.strike(tally, read, site, at, error)
        return tally

    def _strikes(
        self, bench: "Bench", random: Random, tally: ReadTally
    ) -> Iterator[tuple[str, Site, int, type[BaseException]]]:
        noted = {
            name: bench.noted(name, random, opcodes=self.opcodes)
            for name in bench.reads
            if name in self.reads or not self.reads
        }
        tally.reads_max += len(noted)
        entering: dict[Site, list[str]] = {}
        for name, sites in noted.items():
            for site in sites:
                entering.setdefault(site, []).append(name)
        pairs = {(random.choice(names), site) for site, names in entering.items()}
        for name, sites in noted.items():
            more = list(sites) if self.everywhere else random.sample(list(sites), _LEAST)
            pairs |= {(name, site) for site in more}
        # This order does not depend on the addresses of functions.
        for name, sites in noted.items():
            for site, ats in sites.items():
                if (name, site) not in pairs:
                    continue
                if self.functions and site.code.co_qualname not in self.functions:
                    continue
                tally.sites_max += 1
                strikes = list(product(ats, ERRORS))
                for at, error in [random.choice(strikes)] if self.once else strikes:
                    if random.randrange(self.share) == 0:
                        yield name, site, at, error


class Bench:
    """One store's file, the answers of an undisturbed run, and the processes that are struck."""

    def __init__(self, kind: Kind, events: int, saved: int, seed: int, folder: Path) -> None:
        self.kind = kind
        self.name = f"{kind.name}, {'checkpoint and tail' if saved else 'events alone'}"
        self.reads = reads_of(kind)
        self._path = str(folder / "a.cera")
        self._image = kind.image(events, saved)
        self._random = Random(seed)
        self._reopenings: dict[bytes, list[Problem]] = {}
        store = self.opened()
        self.expected = {name: answer(read, store) for name, read in self.reads.items()}
        self.digests = store.stream.digests()
        store.close()
        self._strikes = Strikes()
        self._witnesses = [name for name in _WITNESSES if name in self.reads]

    def opened(self) -> Store:
        """Write the file again, and open it; remove the files beside it."""
        for path in Path(self._path).parent.iterdir():
            path.unlink()
        Path(self._path).write_bytes(self._image)
        return self.kind.open(self._path)

    def noted(self, name: str, random: Random, *, opcodes: bool) -> dict[Site, list[int]]:
        """Return the visits of the places that a read passes as the first read of its handle."""
        strikes = self._strikes = Strikes(*_FOLDERS, entries=not opcodes)
        # The expected answers were computed before, so lazy initialisation is done.
        store = self.opened()
        strikes.run(lambda: answer(self.reads[name], store))
        store.close()
        by_site = visits(strikes, random)
        strikes.sites = []
        return by_site

    def strike(
        self, tally: ReadTally, name: str, site: Site, at: int, error: type[BaseException]
    ) -> None:
        """Raise at the ``at``-th place of a read in a separate process, and judge."""
        strikes = self._strikes

        def act(store: Store) -> object:
            return strikes.run(lambda: plain(self.reads[name](store)), at, error)

        self.disturb(tally, name, act, strikes.is_behind, place=f"{site} ({error.__name__})")

    def disturb(
        self,
        tally: ReadTally,
        name: str,
        act: Callable[[Store], object],
        is_behind: Callable[[BaseException], bool],
        place: str,
    ) -> None:
        """Run a disturbed read in a forked process, and judge that handle and the file."""
        chosen = [name, *self._witnesses, *self._random.sample(list(self.reads), _DRAWN)]
        problems, notes = _answered(lambda: self._disturbed(name, act, is_behind, chosen))
        tally.raised += 1
        tally.finished += "finished" in notes
        data = Path(self._path).read_bytes()
        digest = blake3(data).digest()
        if digest not in self._reopenings:
            # A new process depends on the file alone: equal files have equal answers.
            self._reopenings[digest], _ = _answered(self._reopened)
            tally.files += 1
        tally.found(place, f"{self.name}, {name}", [*problems, *self._reopenings[digest]])

    # --- in the forked process -------------------------------------------------------------------

    def _disturbed(
        self,
        name: str,
        act: Callable[[Store], object],
        is_behind: Callable[[BaseException], bool],
        chosen: Sequence[str],
    ) -> tuple[list[Problem], list[str]]:
        problems: list[Problem] = []
        notes: list[str] = []
        store = self.opened()
        try:
            value = act(store)
        except CerataError as error:
            if not is_behind(error):
                problems.append(
                    ("untyped end", f"an error without an injected exception: {error!r}")
                )
        except ERRORS as error:
            if not is_behind(error):
                problems.append(("untyped end", f"an exception that was not injected: {error!r}"))
        except BaseException as error:  # noqa: BLE001 - the sweep looks for it
            problems.append(("raw error", f"the struck read raised {error!r}"))
        else:
            notes.append("finished")
            if value != self.expected[name]:
                problems.append(("wrong answer", f"the struck read {name} returned another answer"))
        problems += self._read_all(store, chosen, "the same handle")
        problems += self._call("checkpoint", store.checkpoint)
        problems += self._call("close", store.close)
        return problems, notes

    def _reopened(self) -> tuple[list[Problem], list[str]]:
        problems: list[Problem] = []
        store = self.kind.open(self._path)
        # First, since a rebuild would repair the damage.
        problems += self._read_all(store, ["verify"], "a new process", "verify")
        problems += self._read_all(store, list(self.reads), "a new process")
        problems += self._call("close", store.close)
        return problems, []

    def _read_all(
        self, store: Store, names: Sequence[str], reader: str, kind: str = "wrong answer"
    ) -> list[Problem]:
        problems: list[Problem] = []
        for name in names:
            try:
                value = answer(self.reads[name], store)
            except BaseException as error:  # noqa: BLE001 - the sweep looks for it
                problems.append(("raw error", f"{reader}: {name} raised {error!r}"))
            else:
                if value != self.expected[name]:
                    problems.append((kind, f"{reader}: {name} returned {_short(value)}"))
        try:
            if store.stream.digests() != self.digests:
                problems.append(("wrong digest", f"{reader} has other digests"))
        except BaseException as error:  # noqa: BLE001 - the sweep looks for it
            problems.append(("raw error", f"{reader}: digests raised {error!r}"))
        return problems

    def _call(self, name: str, act: Callable[[], object]) -> list[Problem]:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - the sweep looks for it
            return [("raw error", f"{name} raised {error!r}")]
        return []


_FOLDERS = (
    *(f"{os.path.dirname(str(room.__file__))}/" for room in _ROOMS),
    str(read_stores.__file__),
)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"


def _answered(
    act: Callable[[], tuple[list[Problem], list[str]]],
) -> tuple[list[Problem], list[str]]:
    """Run a function in a forked process and return its result; kill it after a minute."""
    reading, writing = os.pipe()

    def write() -> None:
        os.close(reading)
        # The interpreter swallows an exception that strikes a finaliser.
        sys.unraisablehook = lambda _: None
        with os.fdopen(writing, "w") as pipe:
            json.dump(act(), pipe)

    process = forked(write)
    os.close(writing)
    try:
        data = b"".join(_chunks(reading))
    finally:
        os.close(reading)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if not data:
        return [("hang", f"the process died, or took more than {_SECONDS_MAX} s")], []
    problems, notes = json.loads(data)
    return [(kind, text) for kind, text in problems], notes


def _chunks(pipe: int) -> Iterator[bytes]:
    while select.select([pipe], [], [], _SECONDS_MAX)[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return
        yield part
