"""The checkpoints that a fork keeps: those of its parent, cut to the events of the fork.

A checkpoint is chunks for aligned ranges, and a digest of the state after the last. A checkpoint at
an earlier event is the first of these chunks, if the ledger still has the digest of that event. So
a fork at any point starts from a saved state, and folds the events after it only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cerata.engine.copies.fork import KeptStates
from cerata.engine.format.toc import LedgerEntry, Ref, Toc
from cerata.engine.log import Log
from cerata.engine.log_file.file import Flip, StateDraft
from cerata.projections.core.seal import last_complete, layout
from cerata.projections.registry import Registry

from .checkpoint import SavedRange, chunk_refs, in_pages, ledger_of, saved_ranges, stored_ledger


def kept_states(log: Log, seq: int, registry: Registry) -> KeptStates:
    """Return the checkpoints of a log that a fork at event ``seq`` can use.

    Cost: a read of the pages and the ledger of each projection that was saved later.
    """
    names = {registry.key(name): name for name in registry.names}
    toc = log.toc()
    whole: dict[str, Mapping[str, Any]] = {}
    cuts: dict[str, StateDraft] = {}
    extents: list[Ref] = []
    for key, entry in toc.projections.items():
        saved = toc.saved(key)
        ranges = saved_ranges(log.file, saved)
        if saved.seq <= seq:
            whole[key] = entry
            extents += saved.extents()
            extents += [ref for ref, damage in chunk_refs(log.file, saved) if damage is None]
        elif all(each.is_idle for each in ranges):
            if key in names and last_complete(seq):
                cuts[key] = _empty(registry, names[key], last_complete(seq))
        elif (cut := _cut(ranges, ledger_of(log.file, saved) or [], seq)) is not None:
            refs, ledger = cut
            newest = ledger[-1]
            pages = in_pages(refs)
            cuts[key] = StateDraft(newest.seq, newest.digest, pages, stored_ledger(ledger, refs))
            extents += refs

    def build(flip: Flip, _toc: Toc) -> Mapping[str, Mapping[str, Any]]:
        saved = flip.add_states(cuts)
        return {**whole, **{key: state.to_entry() for key, state in saved.items()}}

    return KeptStates(tuple(extents), build)


def _empty(registry: Registry, name: str, seq: int) -> StateDraft:
    """Return a checkpoint of a projection without effects at the end of a complete range."""
    projection = registry.make(name)
    for _, through in layout(seq):
        projection.skip(through)
    return StateDraft(seq, projection.digest(), ())


def _cut(
    ranges: Sequence[SavedRange], ledger: Sequence[LedgerEntry], seq: int
) -> tuple[list[Ref], Sequence[LedgerEntry]] | None:
    """Return the chunks and digests of the latest checkpoint at or before an event; None without.

    A part of a range without an effect has none either.
    """
    stored = {each.range: each.ref for each in ranges if each.damage is None}
    idle = [each.range for each in ranges if each.is_idle]
    for place in range(len(ledger) - 1, -1, -1):
        at = ledger[place].seq
        spans = layout(at)
        missing = [
            (after, through)
            for after, through in spans
            if (after, through) not in stored
            and not any(start <= after and through <= end for start, end in idle)
        ]
        if at <= seq and not missing:
            refs = [ref for span in spans if (ref := stored.get(span)) is not None]
            return refs, ledger[: place + 1]
    return None
