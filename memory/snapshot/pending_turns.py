"""Turns of an open transaction: the conversations that its drafts continue or begin.

Owns the codes of the drafts' conversations beside those of the log. Leaves out the rule of
conversations (`cerata.projections.frames.conversations`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cerata.engine.events import Draft, PutFrame
from cerata.projections.columnar.turn_order import NO_CONVERSATION
from cerata.projections.frames.conversations import Name, name_of

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import I64

    from .layer import Layer


def conversations_with(base: Layer, drafts: Iterable[Draft]) -> I64:
    """Return the code of the conversation of each frame of the log, then of each draft; (rows,).

    Args:
        base: The layer of the log.
        drafts: The drafts that put frames, in order.
    """
    # First, since it adds the conversations of the log that `conversation` then finds.
    logged = base.frames.conversations(base.n)
    names: dict[Name, int] = {}
    codes: list[int] = []
    for draft in drafts:
        name = name_of(draft.body, draft.scope) if isinstance(draft.body, PutFrame) else None
        if name is None:
            codes.append(NO_CONVERSATION)
            continue
        code = base.frames.conversation(name)
        # A new conversation is above every code of the log.
        codes.append(names.setdefault(name, base.rows + len(names)) if code is None else code)
    return np.concatenate([logged, np.array(codes, np.int64)])
