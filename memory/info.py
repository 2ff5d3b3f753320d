"""The contents of a file: sizes by part, the head, the frames, the checkpoints.

Owns the values of `Store.upkeep.info`. Leaves out their print (the command line).
"""

from __future__ import annotations

from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.events import JsonValue, is_known
from cerata.engine.log import Log
from cerata.projections.columnar.times import to_datetime
from cerata.replay.checkpoint import chunk_refs, ledger_of
from cerata.replay.side import REBUILDING

from .snapshot.snapshot import Snapshot

LEDGER_SHOWN: Final = 3
"""Checkpoints of a projection, newest last, whose digests are returned."""


def info(log: Log, snapshot: Snapshot) -> dict[str, JsonValue]:
    """Return the facts of an open log as plain values, sizes in bytes."""
    page, toc = log.page, log.toc()
    of_log = log.snapshot
    segments = list(of_log.reader.segment_refs(of_log))
    checkpoints: dict[str, JsonValue] = {
        _shown(key): int(entry.get("seq", 0)) for key, entry in sorted(toc.projections.items())
    }
    chunk_bytes = sum(
        ref.length for key in toc.projections for ref, _ in chunk_refs(log.file, toc.saved(key))
    )
    current, closed = snapshot.layers.counts()
    head = snapshot.head
    return {
        "file": log.path,
        "log_id": log.log_id.hex(),
        "created": to_datetime(page.created).isoformat(),
        "head": head.seq,
        "recorded": to_datetime(head.recorded).isoformat() if head.seq else None,
        "chain": head.chain.hex(),
        "root": head.root.hex(),
        "frames": {"current": current, "closed": closed},
        "size_bytes": log.file.file.size(),
        "ring_bytes": page.ring_size,
        "events_in_ring": log.head.seq - page.sealed_seq,
        "segments": len(segments),
        "segment_bytes": sum(ref.length for ref in segments),
        "checkpoints": checkpoints,
        "checkpoint_bytes": chunk_bytes,
        "branches": [branch.to_dict() for branch in log.branches()],
        "cuts_kept": len(toc.quarantine),
        "unread": _unread(log),
        "ledger": [
            {"projection": _shown(key), "seq": entry.seq, "digest": entry.digest.hex()}
            for key in sorted(toc.projections)
            for entry in (ledger_of(log.file, toc.saved(key)) or [])[-LEDGER_SHOWN:]
        ],
    }


def _unread(log: Log) -> JsonValue:
    """Return the counts of events, by type and version, that this process cannot apply.

    None if the log is damaged. Cost: a read of each segment's index.
    """
    try:
        of_log = log.snapshot
        counts = of_log.reader.kinds(of_log)
    except Corrupt:
        return None
    return [
        {"type": kind, "version": version, "events": count}
        for (kind, version), count in sorted(counts.items())
        if not is_known(kind, version)
    ]


def _shown(key: str) -> str:
    """Return name and version of a saved projection, with a mark during a rebuild."""
    mark = REBUILDING if key.endswith(REBUILDING) else ""
    return key.rpartition("/")[0] + mark
