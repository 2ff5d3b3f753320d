"""Verification of the log: recompute every hash and compare it with the stored value.

Reads the file past every cache of the handle: both header pages, the TOC, each extent that the TOC
names with its body, each event. Recomputes chain and tree, and compares them with those of every
segment and of the TOC; compares the runs of idempotency keys with the events. Never writes; memory
does not grow with the log, except by 12 bytes per idempotency key and by a number per chunk of a
projection. Leaves out the state of projections: `cerata.replay` compares it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from .codec import Batch, SpillRef, key_hash, tenant_of
from .errors import CerataError, Corrupt
from .events import UNDECODABLE, Branch, JsonValue, Payload
from .format.extent import ExtentKind, extent_is_whole
from .format.page import HeaderPage
from .format.toc import Ref, SavedProjection, Toc
from .integrity import IncompletePayload, Tree, chain_start, chain_through
from .limits import PAGE_SIZE
from .log import Log
from .log_file.file import LogFile, choose_page
from .log_file.idempotency import KeyIndex
from .log_file.newest_events import BRANCH
from .log_file.recovery import RecoveredState, examine, spill_end
from .plain_value import PlainValue, plain_fields
from .remembered import HeadCheck, HeadComparison, RememberedHead
from .segments.reader import Reader, leaves_of, wire_event

Progress = Callable[[str, int, int], None]
"""Called with the current step, the number of finished events, and their total."""

_TRIES = 8
_PROBLEMS_MAX = 1_000
_LEAVES_MAX = 4_096
"""Leaves that are collected before they are added to chain and tree."""

_PAYLOAD = msgspec.msgpack.Decoder(Payload)


@dataclass(frozen=True, slots=True)
class Problem(PlainValue):
    """A fault, and the file offset of the faulty structure."""

    offset: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.offset is None else f"{self.text} (offset {self.offset:,})"


@dataclass(frozen=True, slots=True)
class LogVerification(PlainValue):
    """The result of a verification of the log.

    ``chain`` and ``root`` are recomputed from the events; empty if events are unreadable. The
    ``torn_bytes`` follow the log in its ring, as a killed writer leaves them: the next opener for
    writing cuts them. ``dead_bytes`` are unreferenced until the file is compacted.
    """

    head_seq: int
    chain: bytes
    root: bytes
    extents: int
    torn_bytes: int
    dead_bytes: int
    problems: tuple[Problem, ...]
    against: HeadCheck | None = None
    """The comparison with a remembered head; None if no head was passed."""

    @property
    def events(self) -> int:
        """Number of events."""
        return self.head_seq

    @property
    def ok(self) -> bool:
        """True if there are no problems, and a remembered head agrees."""
        check = self.against
        return not self.problems and (check is None or check.outcome == "agrees")

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the result as plain values."""
        return {
            "ok": self.ok,
            "head": self.head_seq,
            **plain_fields(self, ("chain", "root", "extents")),
            **plain_fields(self, ("torn_bytes", "dead_bytes", "problems")),
        }


def verify_log(
    log: Log, progress: Progress | None = None, against: RememberedHead | None = None
) -> LogVerification:
    """Verify the file behind a handle in its current state; other processes may write to it.

    With ``against`` the file is also compared with a head that was stored elsewhere.
    """
    return _Verifier(log, progress or _silent, against).run()


def _silent(doing: str, finished: int, total: int) -> None:
    """Report nothing."""


class _Verifier:
    def __init__(self, log: Log, progress: Progress, against: RememberedHead | None) -> None:
        self._log = log
        self._progress = progress
        self._against = against
        self._comparison = None if against is None else HeadComparison(against)
        self._file = log.file.file
        self._problems: list[Problem] = []
        self._extents = 0
        self._named_bytes = 0
        self._shared = dict[Ref, bool]()
        # Unknown (None) from an unreadable event to the next segment, which stores them.
        self._chain: bytes | None = None
        self._tree: Tree | None = None
        self._recorded = 0
        self._keyed: list[tuple[int, int]] = []
        self._branch = 0

    def run(self) -> LogVerification:
        self._progress("header and ring", 0, self._log.head.seq)
        try:
            state, log_file = self._found()
        except CerataError as error:
            self._add_error(error)
            return self._result(0, None, None)
        self._chain = chain_start(state.page.log_id)
        self._tree = Tree()
        toc = self._toc(state.page, log_file)
        if toc is not None:
            self._check_sealed(state, log_file, toc)
        self._check_tail(state, log_file, toc)
        return self._result(state.head_seq, state, log_file)

    def _result(
        self, head_seq: int, state: RecoveredState | None, log_file: LogFile | None
    ) -> LogVerification:
        dead = 0
        if state is not None and log_file is not None:
            page = state.page
            spills = [batch.spill for batch in state.batches if batch.spill is not None]
            end = max([page.data_end, *map(spill_end, spills)])
            used = page.fixed_size + self._named_bytes + page.data_end - page.toc_offset
            dead = max(0, max(end, self._file.size()) - used)
        is_known = self._chain is not None and self._tree is not None
        return LogVerification(
            head_seq=head_seq,
            chain=self._chain if is_known and self._chain else b"",
            root=self._tree.root() if is_known and self._tree else b"",
            extents=self._extents,
            torn_bytes=0 if state is None else state.report.cut_bytes,
            dead_bytes=dead,
            problems=tuple(self._problems),
            against=self._checked(state),
        )

    def _checked(self, state: RecoveredState | None) -> HeadCheck | None:
        if self._comparison is None or self._against is None:
            return None
        if state is None or (state.damage is not None and state.head_seq < self._against.seq):
            return HeadCheck(self._against, "unreadable")
        return self._comparison.result(state.head_seq, state.page.log_id, self._log.path)

    def _add(self, offset: int | None, text: str) -> None:
        if len(self._problems) < _PROBLEMS_MAX:
            self._problems.append(Problem(offset, text))

    def _add_error(self, error: CerataError) -> None:
        self._add(error.offset if isinstance(error, Corrupt) else None, error.what)

    # --- header, TOC, ring ---

    def _found(self) -> tuple[RecoveredState, LogFile]:
        """Read pages and ring until they are stable; a writer may be active."""
        for left in reversed(range(_TRIES)):
            pages = self._log.file.read_pages()
            page, bad = choose_page(pages, self._log.path)
            log_file = self._log.file.again(page.file_id)
            try:
                state = examine(log_file, page, bad, search=bool(bad), alone=False)
            except Corrupt:
                if left and self._log.file.read_pages() != pages:
                    continue
                raise
            if not left or self._log.file.read_pages() == pages:
                break
        else:
            raise AssertionError("the last try always ends the loop")
        for number in bad:
            self._add(number * PAGE_SIZE, f"Header page {number} is damaged")
        for number in state.report.bad_witnesses:
            self._add(state.page.witness_offsets[number], f"Witness {number} is damaged")
        if state.damage is not None:
            self._add_error(state.damage)
        elif state.head_seq < self._log.head.seq:
            self._add(
                state.cursor.offset,
                f"The file ends at event {state.head_seq:,}; "
                f"this handle read up to {self._log.head.seq:,}",
            )
        return state, log_file

    def _toc(self, page: HeaderPage, log_file: LogFile) -> Toc | None:
        try:
            toc = log_file.read_toc(page)
        except Corrupt as error:
            self._add_error(error)
            try:
                return Reader(log_file).toc(page)
            except Corrupt as lost:
                self._add_error(lost)
                return None
        shared = (
            *("file_id", "log_id", "created", "read_features", "write_features"),
            *("ring_offset", "ring_size", "ring_start", "incarnation", "recorded", "link"),
        )
        if any(getattr(toc, name) != getattr(page, name) for name in shared):
            self._add(page.toc_offset, "The TOC and the header disagree")
        return toc

    # --- extents ---

    def _check_extent(self, log_file: LogFile, ref: Ref, kind: ExtentKind) -> bool:
        self._extents += 1
        try:
            header = log_file.extent_header(ref, kind)
        except Corrupt as error:
            self._add_error(error)
            return False
        self._named_bytes += header.end - header.offset
        if (header.first_seq, header.last_seq) != (ref.first_seq, ref.last_seq):
            self._add(
                ref.offset, f"The seqs of a {kind.name.lower()} extent differ from its reference"
            )
            return False
        if not extent_is_whole(log_file.key, self._file, header):
            self._add(ref.offset, f"The body of a {kind.name.lower()} extent is damaged")
            return False
        return True

    def _check_spill(self, log_file: LogFile, spill: SpillRef) -> None:
        if self._check_extent(log_file, Ref(spill.offset, spill.length, 0, 0), ExtentKind.SPILL):
            self._check_columns(log_file, spill.offset, spill.length)

    def _check_columns(self, log_file: LogFile, offset: int, length: int) -> None:
        try:
            _ = log_file.segment(offset, length).columns
        except Corrupt as error:
            self._add_error(error)

    def _segments(self, log_file: LogFile, toc: Toc) -> Iterator[Ref]:
        """Yield the segments in order, checking the manifest pages on the way."""

        def read_page(ref: Ref) -> tuple[Ref, ...]:
            if not self._check_extent(log_file, ref, ExtentKind.MANIFEST):
                # The lost references appear as a gap between segments.
                return ()
            return log_file.manifest(ref)

        return toc.segments.walk(read_page)

    def _check_sealed(self, state: RecoveredState, log_file: LogFile, toc: Toc) -> None:
        for ref in (*toc.keys,):
            self._check_extent(log_file, ref, ExtentKind.KEYS)
        for ref in toc.quarantine:
            self._check_extent(log_file, ref, ExtentKind.QUARANTINE)
        for key in toc.projections:
            self._check_projection(log_file, toc.saved(key))
        reader = Reader(log_file)
        expected = 1
        for ref in self._segments(log_file, toc):
            if ref.first_seq != expected:
                self._add(
                    ref.offset, f"Events {expected:,} to {ref.first_seq - 1:,} are in no segment"
                )
                self._chain = self._tree = None
            expected = ref.last_seq + 1
            self._check_extent(log_file, ref, ExtentKind.SEGMENT)
            self._check_segment(log_file, reader, ref)
            self._progress("segments", ref.last_seq, state.head_seq)
        if expected != toc.sealed_seq + 1:
            self._add(None, f"Events {expected:,} to {toc.sealed_seq:,} are in no segment")
            self._chain = self._tree = None
        if self._branch != toc.branch and not self._problems:
            self._add(
                state.page.toc_offset,
                f"The newest branch is event {self._branch:,}, not {toc.branch:,} as in the TOC",
            )
        if self._chain is not None and self._chain != toc.chain:
            self._add(state.page.toc_offset, "The events do not give the TOC's chain hash")
        if self._tree is not None and self._tree.peaks != toc.tree.peaks:
            self._add(state.page.toc_offset, "The events do not give the TOC's Merkle tree")
        self._chain = self._chain and toc.chain
        self._tree = self._tree and toc.tree
        self._check_keys(log_file, toc)

    def _check_projection(self, log_file: LogFile, saved: SavedProjection) -> None:
        for page in saved.chunks:
            if self._check_shared(log_file, page.extent, ExtentKind.MANIFEST):
                for ref in log_file.page(page):
                    # A rebuild's progress names the chunks of the old state that are equal.
                    self._check_shared(log_file, ref, ExtentKind.CHUNK)
        if saved.ledger is not None:
            self._check_shared(log_file, saved.ledger.extent, ExtentKind.LEDGER)

    def _check_shared(self, log_file: LogFile, ref: Ref, kind: ExtentKind) -> bool:
        """Check an extent once, which several projections may name; return whether it is whole."""
        if ref not in self._shared:
            self._shared[ref] = self._check_extent(log_file, ref, kind)
        return self._shared[ref]

    def _check_segment(self, log_file: LogFile, reader: Reader, ref: Ref) -> None:
        """Recompute chain and tree over a segment, and compare them with the stored values."""
        try:
            index = log_file.segment(ref.offset, ref.length).index
        except Corrupt as error:
            self._add_error(error)
            self._chain = self._tree = None
            return
        self._check_columns(log_file, ref.offset, ref.length)
        for row in index.batches:
            if row.spill is not None:
                self._check_spill(log_file, row.spill)
        try:
            self._take_in(reader.segment_batches(ref, attachments=False))
        except Corrupt as error:
            self._add_error(error)
            self._chain = self._tree = None
        if self._chain is not None and self._chain != index.chain:
            self._add(ref.offset, "A segment's events do not give its chain hash")
        if self._tree is not None and self._tree.peaks != tuple(index.peaks):
            self._add(ref.offset, "A segment's events do not give its Merkle tree")
        # Continue from the stored values, so that each problem is reported once.
        self._chain = index.chain
        self._tree = Tree(ref.last_seq, tuple(index.peaks))

    def _take_in(self, batches: Iterable[Batch]) -> None:
        """Extend chain and tree over batches that hold their events."""
        chain = self._chain
        tree = self._tree
        leaves: list[bytes] = []
        for batch in batches:
            if batch.recorded <= self._recorded:
                self._add(None, f"Event {batch.first_seq:,} was recorded before its predecessor")
            self._recorded = batch.recorded
            for index, wire in enumerate(batch.events):
                if wire.type == BRANCH and index:
                    seq = batch.first_seq + index
                    self._add(None, f"The branch of event {seq:,} does not begin its batch")
            if self._has_damaged_payload(batch):
                chain = tree = None
                continue
            payload = wire_event(batch, 0, batch.events[0]).payload
            if payload is not None and payload.key is not None:
                hashed = key_hash(tenant_of(payload.scope), payload.key)
                self._keyed.append((hashed, batch.first_seq))
            if batch.events[0].type == BRANCH:
                chain, tree = _bound(chain, tree, leaves)
                leaves.clear()
                self._check_branch(batch, chain, tree)
            batch_leaves = leaves_of(batch, batch.events)
            leaves += batch_leaves
            if self._comparison is not None:
                self._comparison.take_in(batch.first_seq, batch_leaves)
            if len(leaves) >= _LEAVES_MAX:
                chain, tree = _bound(chain, tree, leaves)
                leaves.clear()
        self._chain, self._tree = _bound(chain, tree, leaves)

    def _has_damaged_payload(self, batch: Batch) -> bool:
        """Return whether a payload lacks the hash of its damaged vector; report each of these.

        Raises:
            Corrupt: a payload cannot be decoded.
        """
        decode = _PAYLOAD.decode
        is_damaged = False
        for index, wire in enumerate(batch.events):
            payload = wire.payload
            if wire.salt is None:
                continue
            try:
                decode(payload)
            except UNDECODABLE:
                _ = wire_event(batch, index, wire).payload
            if isinstance(payload, IncompletePayload):
                self._add(None, f"The vector of event {batch.first_seq + index:,} is damaged")
                is_damaged = True
        return is_damaged

    def _check_branch(self, batch: Batch, chain: bytes | None, tree: Tree | None) -> None:
        """Compare the parent's point that a branch names with the events before it."""
        seq = batch.first_seq
        body = wire_event(batch, 0, batch.events[0]).body
        if not isinstance(body, Branch):
            # Erased, or of a later version.
            self._add(None, f"The branch of event {seq:,} cannot be read")
        elif (body.seq, body.before) != (seq - 1, self._branch) or (
            chain is not None
            and tree is not None
            and (body.chain, body.root) != (chain, tree.root())
        ):
            self._add(None, f"The branch of event {seq:,} does not continue the event before it")
        self._branch = seq

    def _check_keys(self, log_file: LogFile, toc: Toc) -> None:
        """Compare the runs with the sealed events' keys, in both directions."""
        runs = KeyIndex(log_file)
        try:
            for hashed, seq in self._keyed:
                if seq not in runs.candidates(toc.keys, hashed):
                    self._add(None, f"The idempotency key of event {seq:,} is in no run")
            stored = sum(ref.length for ref in toc.keys) // 12
        except Corrupt:
            # The damaged run was reported with the extents.
            return
        if stored > len(self._keyed) and not self._problems:
            self._add(None, f"{stored:,} idempotency keys are indexed, {len(self._keyed):,} exist")

    def _check_tail(self, state: RecoveredState, log_file: LogFile, toc: Toc | None) -> None:
        for batch in state.batches:
            if batch.spill is not None and spill_end(batch.spill) <= self._file.size():
                self._check_spill(log_file, batch.spill)
        page = state.page
        if toc is None:
            self._chain = self._tree = None
        self._recorded = page.recorded
        reader = Reader(log_file)
        batches = (replace(batch, events=reader.wire_events(batch)) for batch in state.batches)
        try:
            self._take_in(batches)
        except Corrupt as error:
            self._add_error(error)
            self._chain = self._tree = None
        self._progress("done", state.head_seq, state.head_seq)


def _bound(
    chain: bytes | None, tree: Tree | None, leaves: Sequence[bytes]
) -> tuple[bytes | None, Tree | None]:
    """Return chain and tree after more leaves; None if unknown before."""
    return chain and chain_through(chain, leaves), tree and tree.extend(leaves)
