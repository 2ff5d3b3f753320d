"""The index of idempotency keys: sorted runs of (hash, seq), 12 bytes an entry.

A run covers a range of seqs and is one KEYS extent: the u64 hashes in order, then as many u32
offsets from the run's first seq. Runs merge like a binary counter, so n keys take O(log n) runs and
a look-up costs one bisection each. A match is only a candidate: the event decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..codec import Batch, key_hash, tenant_of
from ..errors import Corrupt
from ..events import Event
from ..format.extent import ExtentKind
from ..format.toc import Ref
from ..late import late
from ..segments.reader import Reader, wire_event
from .file import Flip, LogFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = late("numpy")


_ENTRY_SIZE = 12


def encode_run(entries: Sequence[tuple[int, int]], first_seq: int) -> bytes:
    """Return the body of a run of (hash, seq) entries."""
    rows = sorted(entries)
    hashes = np.array([row[0] for row in rows], "<u8")
    offsets = np.array([row[1] - first_seq for row in rows], "<u4")
    return hashes.tobytes() + offsets.tobytes()


class KeyIndex:
    """Looks up keys in the runs of a TOC, each read once, and in a tail."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self._runs: dict[int, tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]] = {}
        self._tail = _KeyedTail()

    def candidates(self, refs: Sequence[Ref], key: int) -> Iterator[int]:
        """Yield the seqs of the batches whose key has this hash, oldest first."""
        for ref in refs:
            hashes, offsets = self._run(ref)
            low = int(np.searchsorted(hashes, np.uint64(key), "left"))
            high = int(np.searchsorted(hashes, np.uint64(key), "right"))
            yield from sorted(ref.first_seq + int(offsets[row]) for row in range(low, high))

    def in_tail(self, tail: list[Batch], reader: Reader, key: int) -> list[int]:
        """Return the first seqs of the tail's batches whose key has this hash.

        Cost: each batch is indexed once, at the first call after it was added.
        """
        keyed = self._tail
        if keyed.tail is not tail:
            keyed = self._tail = _KeyedTail(tail)
        for batch in tail[keyed.count :]:
            event = wire_event(batch, 0, reader.wire_events(batch)[0])
            for hashed, seq in key_entries([event]):
                keyed.seqs.setdefault(hashed, []).append(seq)
            keyed.count += 1
        return keyed.seqs.get(key, [])

    def extend(
        self,
        refs: Sequence[Ref],
        entries: Sequence[tuple[int, int]],
        first_seq: int,
        last_seq: int,
        flip: Flip,
    ) -> tuple[Ref, ...]:
        """Return the runs with new entries added through ``flip``; smaller runs are merged in."""
        if not entries:
            return tuple(refs)
        runs = list(refs)
        rows = list(entries)
        while runs and runs[-1].length <= 2 * _ENTRY_SIZE * len(rows):
            ref = runs.pop()
            hashes, offsets = self._run(ref)
            rows += zip(
                hashes.tolist(), (ref.first_seq + offsets.astype(int)).tolist(), strict=True
            )
            first_seq = ref.first_seq
        body = encode_run(rows, first_seq)
        return (*runs, flip.add(ExtentKind.KEYS, body, first_seq, last_seq))

    def until(self, refs: Sequence[Ref], seq: int, flip: Flip) -> tuple[Ref, ...]:
        """Return runs without the keys of events after ``seq``; cut runs are added to ``flip``."""
        kept = [ref for ref in refs if ref.last_seq <= seq]
        for ref in refs[len(kept) : len(kept) + 1]:
            hashes, offsets = self._run(ref)
            inside = ref.first_seq + offsets.astype(np.int64) <= seq
            if inside.any():
                body = hashes[inside].tobytes() + offsets[inside].tobytes()
                kept.append(flip.add(ExtentKind.KEYS, body, ref.first_seq, seq))
        return tuple(kept)

    def _run(self, ref: Ref) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        run = self._runs.get(ref.offset)
        if run is None:
            body = self._log_file.read_extent(ref, ExtentKind.KEYS)
            count, rest = divmod(len(body), _ENTRY_SIZE)
            if rest:
                raise Corrupt("A run of idempotency keys has a wrong size", offset=ref.offset)
            run = np.frombuffer(body, "<u8", count), np.frombuffer(body, "<u4", count, 8 * count)
            self._runs[ref.offset] = run
        return run


def key_entries(events: Iterable[Event]) -> list[tuple[int, int]]:
    """Return (hash, seq) of the events with an idempotency key: only first events of batches."""
    return [
        (key_hash(tenant_of(payload.scope), payload.key), event.seq)
        for event in events
        if event.header.index == 0
        and (payload := event.payload) is not None
        and payload.key is not None
    ]


@dataclass(slots=True)
class _KeyedTail:
    """The idempotency keys of the first ``count`` batches of a tail: hash to first seqs."""

    tail: list[Batch] | None = None
    count: int = 0
    seqs: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
