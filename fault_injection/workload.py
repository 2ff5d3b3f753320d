"""What a crash test runs: a user's operations over a store, and what must hold after any crash.

Owns `Workload`, the mark that makes a method an operation, the operations that every workload has,
and loading a workload from a file. Leaves out recording and crashing it (`store_stories`,
`crash_test`).
"""

import runpy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar, Final, TypeVar

from cerata.engine.errors import InvalidInput
from cerata.engine.log import SyncPolicy
from cerata.memory.store import Store
from cerata.projections.row_fold import MakeOwn

RING_BYTES: Final = 64 << 10
"""The smallest ring: stories of a few operations come around it."""

MethodType = TypeVar("MethodType", bound=Callable[..., object])


def operation(method: MethodType) -> MethodType:
    """Mark a workload's method as an operation; it is called with an open `Store`."""
    setattr(method, _MARK, True)
    return method


_MARK = "_is_cerata_operation"


class Workload:
    """A program for the crash test to run in pieces and to crash: subclass it.

    Methods that are marked with `operation` are its alphabet: stories are made of them, and of
    those in `COMMON`. One must do the same whenever it meets the same store: chance comes from
    ``random``, time from the store. Each story has an instance of its own.

    >>> class Notes(Workload):
    ...     @operation
    ...     def note(self, store):
    ...         store.put_frame("tea is at four", tags=["tea"])
    ...
    ...     def check(self, store):
    ...         assert all("tea" in frame.tags for frame in store.frames())
    >>> Notes().alphabet()
    ('note', 'checkpoint', 'reopen', 'kill')
    """

    projections: ClassVar[Sequence[MakeOwn]] = ()
    """The projections that every store is opened with; their digests are held against a replay."""

    sync: ClassVar[SyncPolicy] = "commit"
    """The sync policy that the stories run under."""

    words: ClassVar[Sequence[str]] = ()
    """Words in lower case: a search for one has to find the current frames that contain it."""

    def __init__(self) -> None:
        self.random = Random(0)

    def prepare(self, store: Store) -> None:
        """Fill the store that every story starts from; by default it is empty."""

    def check(self, store: Store) -> None:
        """Raise `AssertionError` where a recovered store is not as it must be.

        Called on what recovery came to, once for each state that differs: it may stand at the
        end of any batch from the last acknowledged one on, whatever operation that was in.
        """

    def operations(self) -> dict[str, Callable[[Store], object]]:
        """Return the marked methods by name, in the order in which the class has them."""
        found: dict[str, Callable[[Store], object]] = {}
        for kind in reversed(type(self).__mro__):
            for name, member in vars(kind).items():
                if getattr(member, _MARK, False):
                    found[name] = getattr(self, name)
        return found

    def alphabet(self) -> tuple[str, ...]:
        """Return what stories are made of: the operations, and those of every workload."""
        return (*self.operations(), *COMMON)


COMMON: Final = ("checkpoint", "reopen", "kill")
"""In every workload: save the projections; close and open again; die and open again."""


def load_workload(path: str) -> type[Workload]:
    """Return the one workload class that a Python file defines.

    Raises:
        InvalidInput: the file cannot be run, or defines none, or several.
    """
    try:
        names: dict[str, Any] = runpy.run_path(path, run_name="cerata_workload")
    except Exception as error:
        raise InvalidInput(
            f"The workload cannot be loaded: {type(error).__name__}: {error}",
            where=path,
            remedy="Correct the file; docs/fault-injection.md shows one.",
        ) from error
    found = [
        value
        for value in names.values()
        if isinstance(value, type)
        and issubclass(value, Workload)
        and value.__module__ == "cerata_workload"
    ]
    if len(found) != 1:
        raise InvalidInput(
            f"The file defines {len(found)} workloads, not one",
            where=path,
            remedy="Define one subclass of cerata.fault_injection.workload.Workload.",
        )
    return found[0]
