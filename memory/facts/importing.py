"""Import: lines of facts and entities into a memory, batch by batch, an event for each line.

Owns the batches, their idempotency keys, and the translation of ids and evidence. A batch is
durable before the next is read, and a bad line ends the import. So a repeated import of the
same lines skips the batches that exist, and continues after an interrupt. If an earlier import
ended within a batch, an import with more lines skips the beginning of that batch, too. Leaves out
the format of lines (`jsonl`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from cerata.engine.arguments import expect_type, is_unicode, wrong_type
from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, InvalidInput, NotFound, Unsupported
from cerata.engine.events import (
    Draft,
    EventBody,
    ImportBatch,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    Scope,
    ScopeValue,
    SplitEntity,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.plain_value import PlainValue
from cerata.engine.salted_hashes import CONTENT_HASH_SIZE
from cerata.projections.columnar.scopes import scope_text, tenant_in, tenant_key
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..batch.transaction import block_of
from ..values.arguments import content_hash, full_scope
from ..values.facts import OPEN, FactEvidence, checked_name
from .drafts import Assertion, assertion_draft, quoted
from .jsonl import (
    LINE_SIZE_MAX,
    EntityLine,
    EvidencePart,
    ExportLine,
    FactLine,
    MergeLine,
    PeriodPart,
    PredicateLine,
    RetractionLine,
    SaidLine,
    SplitLine,
    decode,
    meant,
)

if TYPE_CHECKING:
    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Receipt

BATCH_LINES: Final = 1_000
BATCH_SIZE: Final = 8 << 20
"""Lines, and bytes of lines, after which a batch ends. Keys depend on both: never change them."""

DIALECT: Final = "cerata-facts"
"""The name in `ImportBatch` of lines of facts. On disk: never change."""

_OF_A_LINE: Final = (Conflict, InvalidInput, NotFound, Unsupported)
"""The errors of an unusable line."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the count of finished lines, and their bytes."""


@dataclass(frozen=True, slots=True)
class ImportedFacts(PlainValue):
    """The result of an import.

    - ``added`` counts the lines that this import wrote.
    - ``known`` counts the lines that an earlier import of the same lines had written.
    - ``missing`` counts the places of evidence whose content is not in this memory.
    - ``head`` is the log's newest event after the import.
    """

    added: int
    known: int
    missing: int
    head: int


def import_facts(
    session: WriteSession, lines: Iterable[str | bytes], progress: Progress | None = None
) -> ImportedFacts:
    """Write the events of lines. A batch is durable before the next.

    Raises:
        InvalidInput, Unsupported, Conflict, NotFound: a line is unusable; ``where`` has its number.
            The lines before it stay, and a later import skips them.
    """
    work = _Import(session)
    number = size = 0
    try:
        for number, data in enumerate(_each(lines), start=1):
            size += len(data)
            with _naming(number):
                line = decode(data) if data.strip() else None
            if isinstance(line, ExportLine):
                # Ids are valid up to the next such line.
                work.begin()
            elif line is not None and work.gather(_Numbered(number, data, line)):
                work.write()
                if progress is not None:
                    progress(number, size)
        work.write()
    except _OF_A_LINE:
        # The lines that the batch has before the unusable line.
        work.write()
        raise
    if progress is not None:
        progress(number, size)
    return ImportedFacts(work.added, work.known, work.missing, session.log.refresh().seq)


def _each(lines: Iterable[str | bytes]) -> Iterator[bytes]:
    """Yield lines as bytes without line ends; read at most a line's limit of a file at once."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        remedy = "Pass an open file, or a list of lines."
        raise wrong_type("lines", "an open file or a list of lines", lines, remedy)
    read: Callable[[int], str | bytes] | None = getattr(lines, "readline", None)
    each: Iterable[str | bytes] = lines
    if read is not None:
        # The file ends at the first empty result.
        each = iter(partial(read, LINE_SIZE_MAX + len("\r\n")), type(read(0))())
    for number, line in enumerate(each, start=1):
        with _naming(number):
            remedy = "Pass the lines of interchange.export_facts()."
            expect_type("The line", line, str | bytes, "str or bytes", remedy)
            if isinstance(line, str) and not is_unicode(line):
                raise InvalidInput(
                    "The line is not valid Unicode", remedy="Write the file in UTF-8."
                )
            data = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")
            if len(data) > LINE_SIZE_MAX:
                raise InvalidInput(
                    f"The line is over the limit of {LINE_SIZE_MAX:,} bytes",
                    remedy="Write the fact as several lines with fewer pieces of evidence.",
                )
        yield data


@contextmanager
def _naming(number: int) -> Generator[None]:
    try:
        yield
    except _OF_A_LINE as error:
        where = f"line {number:,}" + (f", {error.where}" if error.where else "")
        raise type(error)(error.what, where=where, remedy=error.remedy) from error


class _Numbered(NamedTuple):
    """A line with its number, from 1, and its bytes."""

    number: int
    data: bytes
    line: SaidLine


class _Part(NamedTuple):
    """Lines of a batch up to ``end``, and their events if the log has them.

    ``seqs`` has the importBatch event, then an event for each line; empty for new lines.
    """

    end: int
    seqs: tuple[int, ...]


class _Import:
    """The state of an import.

    - ``_ids`` maps the ids of lines to ids in this memory.
    - During the write of a batch, ids of its lines are −place, as in any transaction.
    """

    def __init__(self, session: WriteSession) -> None:
        self.added = self.known = self.missing = 0
        self._session = session
        self._scope = session.scope
        # The same lines under another scope are another import.
        self._chain = hash_bytes(b"facts 1\0" + scope_text(session.scope or ()).encode())
        self._batch: list[_Numbered] = []
        self._size = 0
        self._ids: dict[int, int] = {}
        self._after: int | None = None
        """The seq of the importBatch before, whose hash continues in the next key."""
        self._is_new = False
        """True once a batch is not whole in the log; then no later batch is."""
        self._refused: int | None = None
        """The number of the line that was refused."""

    def begin(self) -> None:
        """End a batch, and forget the ids of all lines so far."""
        self.write()
        self._ids = {}

    def gather(self, numbered: _Numbered) -> bool:
        """Add a line to the batch, and return whether the batch is full."""
        self._batch.append(numbered)
        self._size += len(numbered.data)
        return len(self._batch) == BATCH_LINES or self._size >= BATCH_SIZE

    def write(self) -> None:
        """Write the lines of the batch that the log does not have.

        If a line is refused, the lines before it are the batch.
        """
        batch, self._batch, self._size = self._batch, [], 0
        before = self._chain, self._is_new
        try:
            if batch:
                self._write_batch(batch)
        except _OF_A_LINE:
            self._chain, self._is_new = before
            refused, self._refused = self._refused, None
            self._batch = [each for each in batch if refused is not None and each.number < refused]
            raise

    def _write_batch(self, batch: Sequence[_Numbered]) -> None:
        chain = _Chain(self._chain, batch)
        self._chain = chain.at(len(batch))
        added, end, after = 0, 0, self._after
        while end < len(batch):
            # Another process may write the same lines in other batches first; then start over.
            end, after = 0, self._after
            for part in self._parts(batch, chain):
                lines, seqs = batch[end : part.end], part.seqs
                if not seqs:
                    receipt = self._write(lines, chain.at(part.end), after)
                    seqs = receipt.seqs
                    added += len(seqs) - 1 if receipt.added else 0
                if len(seqs) - 1 != len(lines):
                    self._is_new = False
                    break
                self._call(lines, seqs[1:])
                end, after = part.end, seqs[0]
        self._after = after
        self.added += added
        self.known += len(batch) - added

    def _call(self, lines: Sequence[_Numbered], seqs: Sequence[int]) -> None:
        for numbered, seq in zip(lines, seqs, strict=True):
            if isinstance(numbered.line, FactLine | RetractionLine):
                self._ids[numbered.line.id] = seq

    def _write(self, lines: Sequence[_Numbered], chain: bytes, after: int | None) -> Receipt:
        """Write lines as a batch, under the key of all lines so far.

        The key is a hash of lines, so its event is erased with any of them.
        """
        with self._refusing(lines[0].number):
            first = self._scope_of(lines[0].line)
        snapshot = self._session.snapshot()
        before = dict(self._ids)
        try:
            with self._session.transaction(key=_key(chain)) as transaction:
                block = block_of(transaction)
                block.look_up(tenant_of(first))
                block.record_call(chain)
                if block.first is None:
                    batch = ImportBatch(dialect=DIALECT, count=len(lines), after=after)
                    self._session.write([Draft(batch, first)])
                    for numbered in lines:
                        with self._refusing(numbered.number):
                            pending = self._session.write([self._draft(numbered.line, snapshot)])
                            self._name(numbered.line, pending.seqs[0])
        finally:
            # Ids within the batch have no meaning outside it.
            self._ids = before
        return transaction.receipt

    def _parts(self, batch: Sequence[_Numbered], chain: _Chain) -> list[_Part]:
        """Return the parts of a batch in order of its lines, those in the log with their events.

        An earlier import that ended within this batch wrote a shorter batch under the key of the
        lines up to its end. Cost: a look-up for each line of the first batch that is not whole in
        the log; later batches cannot be in the log.
        """
        count = len(batch)
        if self._is_new:
            return [_Part(count, ())]
        tenants = {tenant_key(tenant): tenant for tenant in map(self._tenant_of, batch)}
        parts = list[_Part]()
        end = gap = count
        while end:
            uses = (
                self._session.first_use(_key(chain.at(end)), tenant) for tenant in tenants.values()
            )
            receipt = next((use for use in uses if use is not None), None)
            if receipt is None:
                end -= 1
                continue
            if gap > end:
                parts.append(_Part(gap, ()))
            parts.append(_Part(end, receipt.seqs))
            gap = end = end - (len(receipt.seqs) - 1)
        if gap:
            parts.append(_Part(gap, ()))
        self._is_new = not all(part.seqs for part in parts)
        return parts[::-1]

    @contextmanager
    def _refusing(self, number: int) -> Generator[None]:
        """Name the line of an error, and remember it."""
        try:
            with _naming(number):
                yield
        except _OF_A_LINE:
            self._refused = number
            raise

    def _tenant_of(self, numbered: _Numbered) -> ScopeValue:
        with self._refusing(numbered.number):
            return tenant_of(self._scope_of(numbered.line))

    def _name(self, line: SaidLine, place: int) -> None:
        if isinstance(line, FactLine | RetractionLine):
            if line.id in self._ids:
                raise InvalidInput(
                    f"The id {line.id} belongs to an earlier line",
                    remedy="Give each line another id.",
                )
            self._ids[line.id] = place

    # --- the events of lines ---------------------------------------------------------------------

    def _scope_of(self, line: SaidLine) -> Scope:
        return full_scope(None if line.scope is UNSET else line.scope, self._scope)

    def _draft(self, line: SaidLine, snapshot: Snapshot) -> Draft:
        scope = self._scope_of(line)
        if isinstance(line, FactLine):
            return self._fact(line, scope, snapshot)
        if isinstance(line, MergeLine) and _holds(line, scope, snapshot):
            # Each line needs an event; this event changes nothing.
            return Draft(PutEntity(entity=_entity(line.entity)), scope)
        return Draft(self._body(line), scope)

    def _body(self, line: SaidLine) -> EventBody:
        match line:
            case PredicateLine():
                name = checked_name("A predicate", line.predicate)
                return PutPredicate(predicate=name, functional=line.functional)
            case EntityLine():
                return PutEntity(
                    entity=checked_name("An entity's name", line.entity),
                    kind=None if line.kind is None else checked_name("A kind", line.kind),
                    aliases=tuple(checked_name("An alias", alias) for alias in line.aliases),
                )
            case RetractionLine():
                return RetractFact(fact=self._id(line.fact))
            case MergeLine():
                return MergeEntities(entity=_entity(line.entity), into=_entity(line.into))
            case SplitLine():
                if not line.facts:
                    raise InvalidInput(
                        "facts must name an earlier line, and is empty",
                        remedy="Pass the lines of interchange.export_facts().",
                    )
                return SplitEntity(
                    entity=_entity(line.entity),
                    into=_entity(line.into),
                    facts=tuple(map(self._id, line.facts)),
                )
            case FactLine():
                raise AssertionError

    def _fact(self, line: FactLine, scope: Scope, snapshot: Snapshot) -> Draft:
        valid = line.valid
        evidence = [self._evidence(part, scope, snapshot) for part in line.evidence]
        assertion = Assertion(
            line.subject,
            line.predicate,
            meant(line.object_kind, line.object),
            _start(valid),
            valid.end,
            confidence=line.confidence,
            source=line.source,
            evidence=[place for place in evidence if place is not None],
            assumptions=line.assumptions,
            because=None if line.because is None else self._id(line.because),
        )
        draft = assertion_draft(assertion, scope, to_microseconds(snapshot.now))
        return quoted(lambda: snapshot.within(scope[:1]), draft)

    def _id(self, number: int) -> int:
        fact = self._ids.get(number)
        if fact is None:
            raise InvalidInput(
                f"No earlier line has the id {number}",
                remedy="Put the line with the id before this line.",
            )
        return fact

    def _evidence(
        self, part: EvidencePart, scope: Scope, snapshot: Snapshot
    ) -> FactEvidence | None:
        """Return the evidence in this memory; None, and counted, if its content is missing."""
        frame = self._frame(part, snapshot.within(scope[:1]))
        if frame is None:
            self.missing += 1
            return None
        return FactEvidence(frame, part.start, part.end)

    def _frame(self, part: EvidencePart, snapshot: Snapshot) -> int | None:
        """Return the oldest current frame with the content, or the chunk of the oldest document."""
        if part.document is UNSET or part.chunk is UNSET:
            return min(snapshot.layers.find_content(_hash(part.content)), default=None)
        for document in sorted(snapshot.layers.find_content(_hash(part.document))):
            chunk = snapshot.chunks_of(document).get(part.chunk)
            if chunk is not None and content_hash(snapshot.content_of(chunk)) == _hash(
                part.content
            ):
                return chunk
        return None


class _Chain:
    """The hashes of a batch's lines with all lines before them."""

    def __init__(self, before: bytes, batch: Sequence[_Numbered]) -> None:
        self._before = before
        self._hashes = [hash_bytes(numbered.data) for numbered in batch]

    def at(self, end: int) -> bytes:
        """Return the hash of all lines up to the batch's ``end``."""
        return hash_bytes(b"".join((self._before, *self._hashes[:end])))


def _key(chain: bytes) -> str:
    return f"import facts {chain.hex()}"


def _holds(line: MergeLine, scope: Scope, snapshot: Snapshot) -> bool:
    facts = snapshot.facts_at
    return facts.facts.merged_into(tenant_in(scope), line.entity, facts.n) == line.into


def _start(valid: PeriodPart) -> date | str | None:
    if valid.start is UNSET:
        return None
    return OPEN if valid.start is None else to_datetime(to_microseconds(valid.start))


def _entity(name: str) -> str:
    return checked_name("An entity's name", name)


def _hash(text: str) -> bytes:
    try:
        content = bytes.fromhex(text)
    except ValueError:
        content = b""
    if len(content) != CONTENT_HASH_SIZE:
        raise InvalidInput(
            f"A content hash must be {2 * CONTENT_HASH_SIZE} hexadecimal digits, not {text!r:.60}",
            where="evidence",
            remedy="Pass the lines of interchange.export_facts().",
        )
    return content
