"""The parts of a handle that tests look into, which no caller reaches.

Owns every access to them: when a part moves, one function here follows, and no test.
"""

from typing import Any

from cerata.engine.log import Log
from cerata.engine.log_file.log_state import LogState
from cerata.replay.fold import Fold


def log_of(handle: Any) -> Log:
    """Return the log below a store, a view or another object that reads one."""
    log: Log = handle._log
    return log


def fold_of(store: Any) -> Fold:
    """Return the fold of a store, with all its projections."""
    fold: Fold = store._fold
    return fold


def state_of(log: Any) -> LogState:
    """Return the part of the file that a log has read: its cursor and its tail."""
    state: LogState = log._state
    return state
