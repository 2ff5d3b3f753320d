"""Owns `Outcome`, the result of a recovery, by which two recoveries are compared."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """The result of a recovery. The model's chain hash at ``seq`` binds every event.

    If the image was refused, ``seq`` is −1, and ``chain`` names the error.
    """

    seq: int
    chain: bytes
