"""A share of the exceptions at every bytecode; all by the command in docs/reliability.md."""

import sys

import pytest

from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..crash.sweeps.exception_sweep import OPERATIONS, sweep_exceptions

pytestmark = [
    pytest.mark.unwatched("it breaks off anywhere"),
    # One that strikes while a generator is thrown away is swallowed by the interpreter.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_an_exception_anywhere_leaves_no_lie(seed: int) -> None:
    """The batch is whole or absent, the handle true, no lock or descriptor kept, the file whole."""
    tally = sweep_exceptions(share=300, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.operations == len(OPERATIONS)
    assert tally.sites > 30_000
    assert tally.raised > 200


OFF = {
    "what an interrupt left of the state is believed": (
        Edit(
            "cerata.engine.log_file.handle_lock:HandleLock.begin_change",
            "if self.is_changing:",
            "if False:",
        ),
        "append",
        "Writer.write_batch",
    ),
    "a file that nobody holds stays open": (
        Edit("cerata.engine.disk.storage:OsFile.__del__", "self.close()", "pass"),
        "open",
        "open_log",
    ),
    "a descriptor is taken first and closed then": (
        Edit(
            "cerata.engine.disk.storage:OsFile.close",
            "any(map(os.close, self._owned))",
            "for number in self._owned: os.close(number)",
        ),
        "close",
        "close",
    ),
}
"""What the engine does about interrupts, switched off; the operation and function to notice it."""


@pytest.mark.parametrize("name", OFF)
def test_without_a_mechanism_the_sweep_finds_it(name: str, seed: int) -> None:
    """Each is needed: switched off, some exception leads to a lie."""
    edit, operation, function = OFF[name]
    with Plant(name, "stories", (edit,)).planted():
        tally = sweep_exceptions(operations=[operation], functions=[function], seed=seed)
    assert tally.problems != []
    assert sweep_exceptions(operations=[operation], functions=[function]).problems == []
