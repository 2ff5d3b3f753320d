"""A share of the sweep over every system call; all of it by the command in docs/reliability.md."""

import sys

import pytest

from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..crash.sweeps.sweep_workloads import STORIES
from ..crash.sweeps.system_call_sweep import sweep_io
from ..crash.system_calls import FAULTS

pytestmark = pytest.mark.unwatched("its disk is broken")


@pytest.mark.slow("sweeps over every system call")
def test_every_failing_call_has_a_true_outcome(seed: int) -> None:
    """Typed errors, nothing acknowledged lost, nothing refused there, and the file reopens."""
    tally = sweep_io(share=12, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.unused == 0
    assert tally.stories == len(STORIES)
    assert tally.met > 350
    assert tally.by_call.keys() >= FAULTS.keys() - {"rename", "unlink", "link", "fsync"}


_STORAGE = "cerata.engine.disk.storage:OsFile."
_SHORT = Edit(_STORAGE + "write_at", "if written == len(data):", "if True:")
_SHORT_READ = Edit(_STORAGE + "read_at", "while len(data) < size:", "while False:")
_UNTYPED = Edit(_STORAGE + "write_at", 'raise self._refused(error, "write") from error', "raise")
_STANDS = Edit(
    "cerata.engine.log_file.writer:Writer.write_record",
    "if self._is_stored(offset, record):",
    "if False:",
)
_STUCK = Edit("cerata.engine.log_file.handle_lock:HandleLock.give_up", "file.close()", "pass")
_SYNC = Edit(
    "cerata.engine.log_file.writer:Writer.sync",
    "raise self._poison.take(error) from error",
    "raise",
)
_CREATOR = Edit(
    "cerata.engine.log_file.create:create",
    "except BaseException:\n        file.close()",
    "except BaseException:\n        pass",
)
_STATE = Edit(
    "cerata.engine.log_file.handle_lock:HandleLock.begin_change",
    "if self.is_changing:",
    "if False:",
)

OFF = {
    "a short write is not gone on with": (_SHORT, "appends", "pwrite"),
    "a short read is not gone on with": (_SHORT_READ, "seals", "pread"),
    "an error comes as the system gave it": (_UNTYPED, "appends", "pwrite"),
    "a record that stands is refused": (_STANDS, "appends", "pwrite"),
    "a lock that is stuck stays so": (_STUCK, "appends", "unlock"),
    "a sync that failed is forgotten": (_SYNC, "appends", "fdatasync"),
    "a creator that fails keeps the file": (_CREATOR, "creation", "fsync"),
    "what an error left of the state is believed": (_STATE, "seals", "pread"),
}
"""What the engine does about failing calls, switched off; the story and the call to notice it."""


@pytest.mark.parametrize("name", OFF)
def test_without_a_mechanism_the_sweep_finds_it(name: str, seed: int) -> None:
    """Each is needed: switched off, some fault leads to a lie."""
    edit, story, call = OFF[name]
    with Plant(name, "stories", (edit,)).planted():
        tally = sweep_io(stories=[story], calls=[call], seed=seed, problems_max=1)
    assert tally.problems != []
    assert sweep_io(stories=[story], calls=[call], seed=seed).problems == []
