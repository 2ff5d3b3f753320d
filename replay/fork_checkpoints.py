"""The checkpoints that a fork keeps: those of its parent, cut to the events of the fork.

A checkpoint is chunks for aligned ranges, and a digest of the state after the last. A checkpoint at
an earlier event is the first of these chunks, if the ledger still has the digest of that event. So
a fork at any point starts from a saved state, and folds the events after it only.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerata.engine.file import Flip
from cerata.engine.fork import KeptStates
from cerata.engine.format.toc import LedgerEntry, Ref, SavedProjection, Toc
from cerata.engine.log import Log
from cerata.projections.core.ranges import complete_ranges, last_complete

from .checkpoint import add_ledger, chunk_refs, in_pages, ledger_of


class _Cut(NamedTuple):
    """A checkpoint at an earlier event than the saved one."""

    chunks: tuple[Ref, ...]
    ledger: tuple[LedgerEntry, ...]

    def entry(self, flip: Flip) -> SavedProjection:
        """Add pages and the ledger to a flip, and return the entry that names them."""
        newest = self.ledger[-1]
        return SavedProjection(
            seq=newest.seq,
            digest=newest.digest,
            chunks=tuple(flip.add_manifest(page) for page in in_pages(self.chunks)),
            ledger=add_ledger(flip, self.ledger),
        )


def kept_states(log: Log, seq: int) -> KeptStates:
    """Return the checkpoints of a log that a fork at event ``seq`` can use.

    Cost: a read of the pages and the ledger of each projection that was saved later.
    """
    toc = log.toc()
    whole: dict[str, Mapping[str, Any]] = {}
    cuts: dict[str, _Cut] = {}
    extents: list[Ref] = []
    for key, entry in toc.projections.items():
        saved = toc.saved(key)
        refs = [ref for ref, damage in chunk_refs(log.file, saved) if damage is None]
        if saved.seq <= seq:
            whole[key] = entry
            extents += [*saved.chunks, *refs]
            extents += [] if saved.ledger is None else [saved.ledger]
        elif (cut := _cut(refs, ledger_of(log.file, saved) or [], seq)) is not None:
            cuts[key] = cut
            extents += cut.chunks

    def build(flip: Flip, _toc: Toc) -> Mapping[str, Mapping[str, Any]]:
        return {**whole, **{key: cut.entry(flip).to_entry() for key, cut in cuts.items()}}

    return KeptStates(tuple(extents), build)


def _cut(refs: list[Ref], ledger: list[LedgerEntry], seq: int) -> _Cut | None:
    """Return the latest checkpoint at or before an event that chunks still give; None without."""
    stored = {(ref.first_seq - 1, ref.last_seq): ref for ref in refs}
    for place in range(len(ledger) - 1, -1, -1):
        at = ledger[place].seq
        spans = complete_ranges(at)
        if last_complete(at) < at:
            spans.append((last_complete(at), at))
        if at <= seq and all(span in stored for span in spans):
            return _Cut(tuple(stored[span] for span in spans), tuple(ledger[: place + 1]))
    return None
