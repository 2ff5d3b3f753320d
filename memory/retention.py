"""Retention: the contents that a horizon gives up, and the checkpoints of a compacted file.

Owns which events lose their payloads, and the `erase` events that record them. Leaves out the
writing (`cerata.engine.copies.compact`) and the call (`compaction`).
"""

from typing import Final

import numpy as np

from cerata.engine.copies.compact import Retention
from cerata.engine.events import DEFAULT_SCOPE, Draft, Erase, ScopeValue
from cerata.engine.log import Log
from cerata.projections.columnar.columns import I64
from cerata.projections.registry import Registry
from cerata.projections.rows.built_in import Tags
from cerata.replay.checkpoint import COPY_LEVEL
from cerata.replay.fold import Fold

REASON: Final = "retention"


def save_in(registry: Registry, copy: Log) -> None:
    """Save the checkpoints of a copy of a log."""
    Fold(copy, registry, level=COPY_LEVEL).save()


def retention_of(log: Log, fold: Fold, horizon: int | None) -> Retention | None:
    """Return what a horizon gives up as of the newest event; None if that is nothing.

    Frames that were current at a tagged point are kept. Points that an earlier horizon gave up
    stay given up.
    """
    if horizon is None:
        return None
    head = log.head.seq
    frames = fold.frames(head)
    tags = fold.own(Tags.name, head)
    assert isinstance(tags, Tags)
    old = log.horizon()
    points = {at for at, _ in tags.rows.values()}
    kept = sorted(at for at in points if at < horizon and (at >= old.seq or at in old.kept))
    rows = frames.retired(horizon, kept)
    if not len(rows):
        return None
    tenants: dict[ScopeValue, list[I64]] = {}
    codes = frames.scope_codes(rows)
    for code in np.unique(codes).tolist():
        scope = frames.scope_of_code(code) or DEFAULT_SCOPE
        tenants.setdefault(scope[0][1], []).append(rows[codes == code])
    drafts: list[Draft] = []
    for tenant, parts in tenants.items():
        targets = _ranges(frames.payloads_of(np.sort(np.concatenate(parts))))
        body = Erase(
            targets=targets, reason=REASON, horizon=max(horizon, old.seq), kept=tuple(kept)
        )
        drafts.append(Draft(body, (("tenant", tenant),)))
    return Retention(frames.payloads_of(rows), tuple(drafts))


def _ranges(seqs: I64) -> tuple[tuple[int, int], ...]:
    """Return ascending seqs as ranges: first seq and count."""
    starts = np.flatnonzero(np.append(True, np.diff(seqs) != 1))
    counts = np.diff(np.append(starts, len(seqs)))
    return tuple(zip(seqs[starts].tolist(), counts.tolist(), strict=True))
