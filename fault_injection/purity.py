"""Purity of a fold: the calls that it makes, the cuts of its events, and another interpreter.

Owns the four ways in which a user's projection is folded and compared (at once, event by event, in
random cuts, over a saved state), the watch for calls that a fold must not make, and the fold in an
interpreter with another hash seed. Leaves out the functions for tests: `testing`.
"""

import datetime as dt
import gc
import importlib
import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any, Final, TypeAlias, cast

import msgspec

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, Event, EventBody
from cerata.memory.store import open_store
from cerata.memory.values.options import OpenOptions
from cerata.projections.rows.row_fold import OwnProjection, RowFold, row_fold

from .simulation.simulated_world import World

PATH: Final = "given.cera"
Batch: TypeAlias = EventBody | Draft | Sequence[EventBody | Draft]
"""Events that are appended together; a single event is a batch of one."""

_FORBIDDEN_NAMES: Final = frozenset({"hash", "id", "input", "open"})
_ALLOWED_SYSTEM_CALLS: Final = frozenset({"fspath"})
_DATE_CALLS: Final = frozenset({"now", "today", "utcnow"})
_CHILD: Final = "CERATA_FOLDING_ELSEWHERE"
_HASH_SEEDS: Final = ("1", "2")
_CHILD_SECONDS_MAX: Final = 120


def image_of(batches: Sequence[Batch]) -> bytes:
    """Return the bytes of a store that holds these events, written in a simulated world.

    Raises:
        InvalidInput: a value is no event, or cannot be stored.
    """
    world = World()
    process = world.disk.process()
    with open_store(
        PATH, environment=world.environment(process), options=OpenOptions(ring_bytes=64 << 10)
    ) as store:
        for batch in batches:
            store.append(*([batch] if isinstance(batch, EventBody | Draft) else batch))
    return bytes(world.disk.names[PATH].data)


def environment_of(image: bytes) -> Environment:
    """Return an environment in which the store is at `PATH`, in memory."""
    storage = MemoryStorage()
    file = storage.create(PATH)
    file.write_at(0, image)
    file.close()
    return Environment(storage=storage, clock=World().clock)


def events_of(image: bytes) -> list[Event]:
    """Return all events of a store."""
    with open_store(PATH, mode="r", environment=environment_of(image)) as store:
        return list(store.log(first=1))


# --- the calls of a fold -------------------------------------------------------------------------


def forbidden_call(called: object) -> str | None:
    """Return the name of a call that a fold must not make; None for a permitted call.

    >>> import time
    >>> forbidden_call(time.time), forbidden_call(len)
    ('time.time', None)
    """
    name = getattr(called, "__name__", "")
    module = getattr(called, "__module__", None) or ""
    owner = getattr(called, "__self__", None)
    if isinstance(owner, random.Random):
        return f"random.{name}"
    if isinstance(owner, type) and issubclass(owner, dt.date) and name in _DATE_CALLS:
        return f"{owner.__name__}.{name}"
    if isinstance(owner, ModuleType):
        module = owner.__name__
    if module == "time":
        return f"time.{name}"
    if module in ("posix", "nt") and name not in _ALLOWED_SYSTEM_CALLS:
        return f"os.{name}"
    if module in ("builtins", "io", "_io") and name in _FORBIDDEN_NAMES:
        return name
    return f"socket.{name}" if module == "_socket" else None


@contextmanager
def watched_calls() -> Generator[list[str], None, None]:
    """Record each call in the block that a fold must not make, with its place.

    The garbage collector rests until the end of the block: its callbacks, such as a test
    runner's, run in the fold and are no part of it.
    """
    calls: list[str] = []

    def watch(scene: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or not isinstance(called, BuiltinFunctionType):
            return
        name = forbidden_call(called)
        if name is not None:
            calls.append(f"{name} {_place(scene)}")

    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _place(scene: FrameType | None) -> str:
    """Return the line of user code that led to a call, past frames of the standard library."""
    library = os.path.dirname(os.__file__)
    while scene is not None and scene.f_code.co_filename.startswith((library, "<frozen")):
        scene = scene.f_back
    if scene is None:
        return "at an unknown place"
    code = scene.f_code
    return f"in {code.co_name}, {Path(code.co_filename).name} line {scene.f_lineno}"


# --- the cuts of the events ----------------------------------------------------------------------


def cuts_of(events: Sequence[Event], seed: int) -> Iterator[tuple[str, list[Sequence[Event]]]]:
    """Yield ways to cut events into lists, each with its name."""
    yield "all at once", [events]
    yield "one by one", [[event] for event in events]
    source = random.Random(seed)
    for number in range(3):
        places = sorted(source.sample(range(1, len(events)), min(3, len(events) - 1)))
        bounds = [0, *places, len(events)]
        lists = [events[start:stop] for start, stop in pairwise(bounds)]
        yield f"cut after {', '.join(map(str, places)) or 'nothing'} (draw {number})", lists


def folded(make: Callable[[], OwnProjection], lists: Sequence[Sequence[Event]]) -> RowFold:
    """Fold lists of events, one after the other."""
    fold = row_fold(make)
    for events in lists:
        if events:
            fold.apply(events)
    return fold


def saved_and_loaded(make: Callable[[], OwnProjection], events: Sequence[Event]) -> RowFold:
    """Fold the first half, save it, load it into a new instance, and fold the rest there."""
    middle = len(events) // 2
    first = folded(make, [events[:middle]])
    second = row_fold(make)
    if middle:
        second.load(first.chunk(0))
    if events[middle:]:
        second.apply(events[middle:])
    return second


# --- another interpreter -------------------------------------------------------------------------


class Rows(msgspec.Struct, frozen=True):
    """The result of an interpreter: the digest, and every row as text."""

    digest: bytes
    rows: dict[str, str]


class _Task(msgspec.Struct, frozen=True):
    paths: list[str]
    module: str
    file: str | None
    name: str
    image: bytes


def rows_of(fold: RowFold) -> Rows:
    """Return the rows and the digest of a fold."""
    rows = {repr(key): repr(value) for key, value in fold.snapshot().rows.items()}
    return Rows(fold.digest(), rows)


def elsewhere(projection: type[OwnProjection], image: bytes) -> dict[str, Rows]:
    """Fold a store in other interpreters, and return the result of each, by hash seed.

    Raises:
        InvalidInput: the class is not at the top of a module, or cannot be loaded there.
    """
    if "<locals>" in projection.__qualname__:
        raise InvalidInput(
            f"{projection.__qualname__} is defined inside a function",
            remedy="Define it at the top of a module, where another interpreter finds it.",
        )
    if _CHILD in os.environ:
        # The module calls this function on import: each interpreter would start another.
        raise InvalidInput(
            "Another interpreter cannot be started during the import of a module",
            where=projection.__module__,
            remedy="Call assert_deterministic in a test, or under if __name__ == '__main__'.",
        )
    module = sys.modules[projection.__module__]
    task = _Task(
        paths=sys.path,
        module=projection.__module__,
        file=getattr(module, "__file__", None),
        name=projection.__qualname__,
        image=image,
    )
    return {seed: _elsewhere(task, seed) for seed in _HASH_SEEDS}


def _elsewhere(task: _Task, hash_seed: str) -> Rows:
    run = subprocess.run(
        [sys.executable, "-m", __name__],
        input=msgspec.msgpack.encode(task),
        capture_output=True,
        check=False,
        timeout=_CHILD_SECONDS_MAX,
        env={
            **os.environ,
            _CHILD: "1",
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    if run.returncode or not run.stdout:
        errors = run.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidInput(
            f"{task.name} cannot be folded in another interpreter: {errors[-1] if errors else '?'}",
            where=task.file,
            remedy="Make the module importable in a new process.",
        )
    return msgspec.msgpack.decode(run.stdout, type=Rows)


def load_class(module: str, file: str | None, name: str) -> type[OwnProjection]:
    """Return a class by its module, or by the file that the module was loaded from."""
    loaded: object
    try:
        if module == "__main__":
            raise ImportError
        loaded = importlib.import_module(module)
    except ImportError:
        # A test's module is often in no package, or in a package that only its runner knows.
        known_as = "__cerata_main__" if module == "__main__" else module
        spec = None if file is None else importlib.util.spec_from_file_location(known_as, file)
        if spec is None or spec.loader is None:
            raise
        loaded = sys.modules[known_as] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    for part in name.split("."):
        loaded = getattr(loaded, part)
    return cast("type[OwnProjection]", loaded)


def main() -> None:
    """Fold the store in standard input, and write the rows to standard output."""
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Task)
    sys.path[:] = task.paths
    projection = load_class(task.module, task.file, task.name)
    rows = rows_of(folded(projection, [events_of(task.image)]))
    sys.stdout.buffer.write(msgspec.msgpack.encode(rows))


if __name__ == "__main__":
    main()
