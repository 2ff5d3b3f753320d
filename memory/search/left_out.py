"""The frames that a search leaves out: their number by reason, for an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..snapshot.layers import Layers, both, end_to_end
from ..values.explanation import LeftOut

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask

    from .request import SearchRequest


def left_out(layers: Layers, candidates: Mask, request: SearchRequest) -> LeftOut:
    """Count the rows of a lane's candidates that a search leaves out, by reason.

    No count has rows outside the scope: even their number would reveal content.
    """
    deleted = request.include_deleted
    visible = both([layer.visible for layer in layers.all], request.searched_in(layers))
    rows = candidates & end_to_end(visible)
    alive = layers.opened(include_superseded=request.include_superseded, include_deleted=deleted)
    opened = rows & end_to_end(alive)
    undeleted = end_to_end(layers.opened(include_superseded=True, include_deleted=deleted))
    current = opened if layers.expired is None else opened & ~end_to_end(layers.expired)
    where = request.where
    passing = current if where is None else current & end_to_end(layers.passing(where))
    masks = (rows, rows & undeleted, opened, current, passing)
    count = [int(np.count_nonzero(mask)) for mask in masks]
    return LeftOut(
        candidates=count[0],
        deleted=count[0] - count[1],
        superseded=count[1] - count[2],
        where=count[3] - count[4],
        expired=count[2] - count[3],
    )
