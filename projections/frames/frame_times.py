"""The time of creation of a frame: as stated, else the time of recording."""

from typing import Final

import numpy as np

from ..columnar.columns import I64

NO_TIME: Final = -(1 << 63)
"""In a column of times: absent. On disk: never renumber."""


def made_times(created: I64, recorded: I64) -> I64:
    """Return the times of creation, in microseconds since 1970 UTC."""
    return np.where(created == NO_TIME, recorded, created)
