"""An interrupt anywhere: the handle stays true, or says that it is poisoned.

`KeyboardInterrupt` comes out of nowhere. The trace function raises one at the n-th place of an
operation where it can, for every n (a share of them, unless ``CERATA_SWEEP=full``).
"""

import dis
import os
import sys
from collections.abc import Callable
from functools import cache
from random import Random
from types import CodeType, FrameType
from typing import Any, Self

import pytest

import cerata.engine.log as log_module
from cerata.engine.errors import CerataError
from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from .words import Disk, put, texts

FULL = os.environ.get("CERATA_SWEEP") == "full"
ENGINE = os.path.dirname(log_module.__file__)
STEP = 1 if FULL else 7


@cache
def opcodes(code: CodeType) -> list[str] | None:
    """Return the names of a code's bytecodes by offset; None where it is not the engine's."""
    name = code.co_filename
    if not name.startswith(ENGINE) and os.path.basename(name) != "contextlib.py":
        return None
    return [dis.opname[number] for number in code.co_code]


class InterruptAt:
    """Raise at the n-th place of the engine where Python looks for signals.

    That is where a function begins, and behind a call: not between the steps by which a ``with``
    statement leaves its block.
    """

    def __init__(self, nth: int, error: type[BaseException]) -> None:
        self.left = nth
        self._error = error
        self._called: dict[int, bool] = {}

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    @property
    def struck(self) -> bool:
        """Whether it came to that."""
        return self.left < 0

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        names = opcodes(frame.f_code)
        if names is None:
            return None
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            name = names[frame.f_lasti]
            called = self._called.get(id(frame), False)
            self._called[id(frame)] = name == "CALL"
            if not (called and name in ("POP_TOP", "STORE_FAST", "STORE_ATTR")):
                return self._trace
        else:
            return self._trace
        self.left -= 1
        if self.left == -1:
            raise self._error
        return self._trace


def append(log: Log) -> None:
    log.append([put("b"), put("c")])


def append_with_key(log: Log) -> None:
    log.append([put("b"), put("c")], key="k")


def seal(log: Log) -> None:
    log.seal()


def append_after_another(log: Log) -> None:
    log.append([put("b"), put("c")])
    log.refresh()


def close(log: Log) -> None:
    log.close()


OPERATIONS = [append, append_with_key, seal, append_after_another, close]


# One that strikes while a generator is thrown away is swallowed by the interpreter.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interrupt_anywhere_leaves_no_lie(
    operation: Callable[[Log], None], error: type[BaseException], seed: int
) -> None:
    """The batch is whole or absent, later calls work or refuse, and the file is whole."""
    base = Disk()
    with base.log() as log:
        log.append([put("a")])
    nth = Random(seed).randrange(STEP)
    finished = False
    while not finished:
        disk = Disk.holding(base.image())
        log, other = disk.open(), disk.open()
        other.append([put("from another")])
        with InterruptAt(nth, error) as interrupt:
            try:
                operation(log)
            except error:
                pass
            except CerataError:
                assert interrupt.struck
            finished = not interrupt.struck
        nth += STEP
        said = ["a", "from another"]
        if operation is not close:
            try:
                log.append([put("after")])
                log.refresh()
                seen = texts(log)
                assert seen[:2] == said
                assert seen[2:] in (["after"], ["b", "c", "after"])
                assert log.head.seq == len(seen)
                said = [str(text) for text in seen]
            except CerataError:
                said = []
        other.append([put("the other goes on")])
        log.close()
        other.close()
        with disk.log() as log:
            seen = texts(log)
            assert seen[: len(said)] == said
            assert seen[-1] == "the other goes on"
            assert verify_log(log).problems == ()
            # A close that was struck may keep its lock until the process ends.
            assert log.report.alone or operation is close
