"""Dynamics: an experimental predictor of exchanges, in integers. A program opts in to it.

Purpose: a surprise for each exchange of an agent. `open(projections=[cerata.Dynamics])` adds the
fold to a store; other stores load none of these modules. Read first: `projection`.
"""

from typing import Final

NAME: Final = "dynamics"
"""The name of the projection. On disk: never change it."""
