"""An exception at a chosen bytecode of the engine, like an interrupt or a failed allocation.

Owns `Strikes`, which first lists every bytecode that an operation passes, or every function that it
enters, and then raises at a chosen place. The trace function raises before the bytecode is
executed, so the effect is that of a failure of this bytecode. Leaves out the steps by which a
``with`` statement leaves its block: between them CPython checks no signal and allocates nothing,
and no handler is left.
"""

import contextlib
import dis
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from types import CodeType, FrameType
from typing import Any, TypeAlias

Trace: TypeAlias = Callable[[FrameType, str, Any], Any]

_LEAVING = ("LOAD_CONST", "LOAD_CONST", "LOAD_CONST", "PRECALL", "CALL")
"""The bytecodes by which a block is left: ``__exit__`` is called with None three times."""

ENTRY = -1
"""The offset of a `Site` that is the entry of a function, or the resumption of a generator."""


@dataclass(frozen=True, slots=True)
class Site:
    """A bytecode: the function's code, and the offset in it."""

    code: CodeType
    offset: int

    def __str__(self) -> str:
        if self.offset == ENTRY:
            return f"{self.code.co_qualname}, entry"
        lines = self.code.co_lines()
        line = next((line for start, stop, line in lines if start <= self.offset < stop), None)
        names = {step.offset: step.opname for step in dis.get_instructions(self.code)}
        return f"{self.code.co_qualname}, line {line}, {names[self.offset]} at {self.offset}"


@cache
def _leaving(code: CodeType) -> frozenset[int]:
    """Return the offsets of the steps by which ``with`` statements leave their blocks."""
    steps = list(dis.get_instructions(code))
    offsets: set[int] = set()
    for place, step in enumerate(steps):
        window = steps[place : place + len(_LEAVING)]
        if tuple(part.opname for part in window) == _LEAVING and not any(
            part.argval is not None for part in window[:3]
        ):
            offsets |= {part.offset for part in window}
        if step.opname == "NOP":
            offsets.add(step.offset)
        elif step.opname == "WITH_EXCEPT_START":
            offsets |= {step.offset, steps[place - 1].offset}
    return frozenset(offsets)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class Strikes:
    """Lists the bytecodes of some source folders that a run passes, and raises at a chosen one.

    ``sites`` holds them in order, after a run with ``at`` -1; do not choose a site for which
    `leaves` is true. With ``entries`` the entries of functions take the place of the bytecodes.
    """

    def __init__(self, *folders: str, entries: bool = False) -> None:
        self._folders = folders
        self._entries = entries
        self._traced: dict[CodeType, bool] = {}
        self.sites: list[Site] = []
        self.struck: BaseException | None = None

    def run(
        self,
        act: Callable[[], object],
        at: int = -1,
        error: type[BaseException] = KeyboardInterrupt,
    ) -> Any:
        """Call ``act``, and raise at its ``at``-th bytecode; -1 only lists the bytecodes."""
        self.struck = None
        if at < 0:
            self.sites = []
        before = sys.gettrace()
        sys.settrace(self._noting() if at < 0 else self._striking(at, error))
        try:
            return act()
        finally:
            sys.settrace(before)

    def leaves(self, site: Site) -> bool:
        """Return whether a site is a step by which a block is left."""
        return site.offset != ENTRY and site.offset in _leaving(site.code)

    def is_behind(self, error: BaseException | None) -> bool:
        """Return whether the exception that was raised here led to ``error``."""
        return self.struck is not None and self.struck in causes(error)

    def _is_traced(self, code: CodeType) -> bool:
        traced = self._traced.get(code)
        if traced is None:
            name = code.co_filename
            traced = name == contextlib.__file__ or name.startswith(self._folders)
            self._traced[code] = traced
        return traced

    def _noting(self) -> Trace:
        sites = self.sites

        def note(frame: FrameType, event: str, _: Any) -> Any:
            if event == "opcode":
                sites.append(Site(frame.f_code, frame.f_lasti))
            return note

        return self._entering(note, lambda frame: sites.append(Site(frame.f_code, ENTRY)))

    def _striking(self, at: int, error: type[BaseException]) -> Trace:
        left = at

        def step(_: FrameType) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                self.struck = error("struck")
                raise self.struck

        def count(frame: FrameType, event: str, _: Any) -> Any:
            if event == "opcode":
                step(frame)
            return count

        return self._entering(count, step)

    def _entering(self, trace: Trace, enter_function: Callable[[FrameType], None]) -> Trace:
        """Return the trace function of new frames; after it raised, CPython calls it no more."""

        def enter(frame: FrameType, _: str, __: Any) -> Any:
            if not self._is_traced(frame.f_code):
                return None
            if self._entries:
                enter_function(frame)
                return None
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            return trace

        return enter


def visits(strikes: Strikes, random: Random) -> dict[Site, list[int]]:
    """Return for each listed site its first visit, its last and a drawn one."""
    by_site: dict[Site, list[int]] = {}
    for at, site in enumerate(strikes.sites):
        if not strikes.leaves(site):
            by_site.setdefault(site, []).append(at)
    return {site: sorted({ats[0], random.choice(ats), ats[-1]}) for site, ats in by_site.items()}
