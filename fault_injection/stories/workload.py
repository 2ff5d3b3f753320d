"""The program of a crash test: a user's operations over a store, and the check after any crash.

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
from cerata.projections.rows.row_fold import MakeOwn

RING_BYTES: Final = 64 << 10
"""The smallest ring: stories of a few operations wrap around it."""

MethodType = TypeVar("MethodType", bound=Callable[..., object])


def operation(method: MethodType) -> MethodType:
    """Mark a workload's method as an operation; it is called with an open `Store`."""
    setattr(method, _MARK, True)
    return method


_MARK = "_is_cerata_operation"


class Workload:
    """A program that the crash test runs in pieces and crashes: subclass it.

    Methods that are marked with `operation` are its alphabet: stories consist of them, and of the
    operations in `COMMON`. An operation must do the same whenever it meets the same store: take
    randomness from ``random``, and time from the store. Each story has a new instance.

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
    """The projections of every store; their digests are compared with a replay."""

    sync: ClassVar[SyncPolicy] = "commit"
    """The sync policy of the stores."""

    has_attachments: ClassVar[bool] = False
    """True if `check` reads bytes or results, which are attachments of events."""

    words: ClassVar[Sequence[str]] = ()
    """Words in lower case: a search for a word must find the current frames that contain it."""

    def __init__(self) -> None:
        self.random = Random(0)

    def prepare(self, store: Store) -> None:
        """Fill the store that every story starts from; by default it is empty."""

    def check(self, store: Store) -> None:
        """Raise `AssertionError` if a recovered store is wrong.

        Called once for each distinct recovered state: the store may be at the end of any batch from
        the last acknowledged batch on, in the middle of an operation too.
        """

    def operations(self) -> dict[str, Callable[[Store], object]]:
        """Return the marked methods by name, in the order of their definition."""
        methods: dict[str, Callable[[Store], object]] = {}
        for kind in reversed(type(self).__mro__):
            for name, member in vars(kind).items():
                if getattr(member, _MARK, False):
                    methods[name] = getattr(self, name)
        return methods

    def alphabet(self) -> tuple[str, ...]:
        """Return the operations of stories: those of this class, and those of every workload."""
        return (*self.operations(), *COMMON)


COMMON: Final = ("checkpoint", "reopen", "kill")
"""In every workload: save the projections; close and open again; die and open again."""


def load_workload(path: str) -> type[Workload]:
    """Return the workload class that a Python file defines.

    Raises:
        InvalidInput: the file cannot be run, or does not define exactly one workload.
    """
    try:
        names: dict[str, Any] = runpy.run_path(path, run_name="cerata_workload")
    except Exception as error:
        raise InvalidInput(
            f"The workload cannot be loaded: {type(error).__name__}: {error}",
            where=path,
            remedy="Correct the file; docs/fault-injection.md shows one.",
        ) from error
    classes = [
        value
        for value in names.values()
        if isinstance(value, type)
        and issubclass(value, Workload)
        and value.__module__ == "cerata_workload"
    ]
    if len(classes) != 1:
        raise InvalidInput(
            f"The file defines {len(classes)} workloads, not one",
            where=path,
            remedy="Define one subclass of cerata.fault_injection.stories.workload.Workload.",
        )
    return classes[0]
