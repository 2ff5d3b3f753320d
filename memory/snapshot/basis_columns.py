"""The columns of a basis that questions read, each prepared once and kept.

    columns = snapshot.layers.columns
    columns.ids[rows]               # the frames in rows of the ranking
    columns.role_codes[rows]        # their roles, without a pass over all rows

Owns the columns of all layers end to end, by row of the ranking, and the look-ups of frames and
roles in them. Leaves out the ranking by words (`cerata.projections.fulltext.bm25`), the masks of
rows (`layers`), and the values that a question gives to rows (`cerata.memory.search.signals`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from cerata.engine.events import once
from cerata.projections.columnar.names import NO_NAME

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import I64, U32
    from cerata.projections.columnar.turn_order import TurnOrder
    from cerata.projections.frames.reader import Frames
    from cerata.projections.fulltext.bm25 import FulltextView


class BasisColumns(msgspec.Struct, frozen=True, dict=True):
    """The columns of a basis; (rows,) each, immutable.

    - ``frames`` has the frames of each layer, the log's first, and ``rows`` their counts. Ids of
      the second layer, that of a transaction's drafts, are negative.
    - No array is copied, and none is computed, unless a transaction has drafts.
    """

    frames: tuple[Frames, ...]
    rows: tuple[int, ...]
    role_count: int
    """The roles of the log; the codes of the roles of drafts alone follow."""
    ranking: FulltextView
    turns: TurnOrder | None
    prepared: dict[object, Any] = msgspec.field(default_factory=dict[object, Any])
    """Values that searches prepare from this state alone, each by a key of the search."""

    @once
    def ids(self) -> I64:
        """The frame of each row."""
        ids = self.frames[0].ids[: self.rows[0]]
        if len(self.frames) == 1:
            return ids
        return np.concatenate([ids, -self.frames[1].ids[: self.rows[1]]])

    def rows_of(self, ids: I64) -> I64:
        """Return the rows of frames that exist."""
        of_log = self.frames[0].ids
        if len(self.frames) == 1:
            return of_log.searchsorted(ids)
        of_drafts = self.frames[1].ids
        rows = of_drafts.searchsorted(-ids) + self.rows[0]
        return np.where(ids > 0, of_log.searchsorted(ids), rows)

    @once
    def role_codes(self) -> U32 | I64:
        """The code of each row's role, `NO_NAME` without one."""
        codes = self.frames[0].role_codes[: self.rows[0]]
        if len(self.frames) == 1:
            return codes
        # Each layer has its codes; the code of a role of drafts alone follows those of the log.
        drafts = self.frames[1]
        of_drafts = drafts.role_codes[: self.rows[1]]
        joint = np.zeros(len(drafts.role_names) + 1, np.int64)
        for code in set(of_drafts.tolist()) - {NO_NAME}:
            of_log = self.frames[0].role_names.find(drafts.role_names.text(code) or "") or 0
            # A higher code of the log is of a role that only a later event put.
            joint[code] = of_log if 0 < of_log <= self.role_count else self.role_count + code
        return np.concatenate([codes.astype(np.int64), joint[of_drafts]])

    def roles_of(self, codes: U32 | I64) -> Mapping[int, str]:
        """Return the roles of codes, each once."""
        roles: dict[int, str] = {}
        of_log = self.frames[0].role_names
        for code in set(codes.tolist()):
            if code > self.role_count:
                role = self.frames[1].role_names.text(code - self.role_count)
            else:
                role = of_log.text(code)
            if role is not None:
                roles[code] = role
        return roles

    @once
    def has_uris(self) -> bool:
        """True if a frame may have a URI, also a frame of a later event."""
        return any(frames.has_uris for frames in self.frames)
