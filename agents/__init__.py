"""Agents: recorded runs of agent functions, resumed after a kill and run again from the log.

Purpose: `Agent` opens sessions and runs; each call of a run is recorded with its result, so that
the function can run again without its tools. A `Slot` is typed memory that outlives runs. Read
first: `agent`, then `run` and `slot`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .growth.commands import judge

__all__ = ["judge"]


def __getattr__(name: str) -> object:
    """Load a call with its first use: packs of this room are read without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .growth.commands import judge

    return judge
