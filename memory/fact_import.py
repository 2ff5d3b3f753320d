"""Import: lines of facts and entities into a memory, batch by batch, each line one event.

Owns the batches, the keys by which a batch is known again, and what ids and evidence mean here. A
batch is durable before the next is read, and one with a bad line is refused whole, so whoever was
stopped calls again with the same lines: those that are there are passed over. So is the beginning
of a batch that an earlier import ended with, when more lines follow now. Leaves out the lines
themselves (`fact_lines`).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from msgspec import UNSET

from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, InvalidInput, NotFound, Unsupported
from cerata.engine.events import (
    Draft,
    EventBody,
    ImportBatch,
    JsonValue,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    Scope,
    ScopeValue,
    SplitEntity,
)
from cerata.engine.integrity import hash_bytes
from cerata.projections.scopes import scope_text, tenant_in, tenant_key
from cerata.projections.times import to_datetime, to_microseconds

from .appending import Appends
from .asserting import Assertion, assertion_draft
from .drafting import CONTENT_HASH_SIZE, content_hash, full_scope, is_unicode
from .evidence import quoted
from .fact_lines import (
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
from .fact_values import OPEN, FactEvidence, checked_name
from .values import Receipt
from .view import View

BATCH_LINES: Final = 1_000
BATCH_SIZE: Final = 8 << 20
"""Lines, and bytes of them, after which a batch ends: keys depend on it, so never change them."""

DIALECT: Final = "cerata-facts"
"""The name in `ImportBatch` of lines of facts. On disk: never change."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told after each batch how many lines, and bytes of them, are done."""


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """What an import did.

    ``added`` counts the lines that were written, ``known`` those that an earlier import of the same
    lines had written; ``missing`` the places of evidence whose content is not in this memory.
    ``head`` is the log's newest event afterwards.
    """

    added: int
    known: int
    missing: int
    head: int

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "added": self.added,
            "known": self.known,
            "missing": self.missing,
            "head": self.head,
        }


def import_facts(
    store: Appends,
    lines: Iterable[str | bytes],
    scope: Scope | None,
    progress: Progress | None = None,
) -> ImportedFacts:
    """Say what lines say; ``scope`` is the store's. Each batch is durable before the next is read.

    Raises:
        InvalidInput, Unsupported, Conflict, NotFound: a line that cannot be taken, by its number;
        its batch is not written, and those before it stay.
    """
    work = _Import(store, scope)
    number = done = 0
    for number, data in enumerate(_each(lines), start=1):
        done += len(data)
        with _naming(number):
            line = decode(data) if data.strip() else None
        if isinstance(line, ExportLine):
            # Ids are of the lines between here and the next of its kind.
            work.begin()
        elif line is not None and work.gather(_Numbered(number, data, line)):
            work.write()
            if progress is not None:
                progress(number, done)
    work.write()
    if progress is not None:
        progress(number, done)
    return ImportedFacts(work.added, work.known, work.missing, store.refresh().seq)


def _each(lines: Iterable[str | bytes]) -> Iterator[bytes]:
    """Yield lines as bytes without their ends; of a file no more than a line may have."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise InvalidInput(
            f"The lines are a {type(lines).__name__}",
            remedy="Give a file that is open, or a list of lines.",
        )
    read: Callable[[int], str | bytes] | None = getattr(lines, "readline", None)
    each: Iterable[str | bytes] = lines
    if read is not None:
        # Up to the first that is empty, which is the end.
        each = iter(partial(read, LINE_SIZE_MAX + len("\r\n")), type(read(0))())
    for number, line in enumerate(each, start=1):
        with _naming(number):
            if not isinstance(line, str | bytes):
                raise InvalidInput(
                    f"It is a {type(line).__name__}, not a str or bytes",
                    remedy="Pass the lines of export_facts.",
                )
            if isinstance(line, str) and not is_unicode(line):
                raise InvalidInput("It is not valid Unicode", remedy="Write the file in UTF-8.")
            data = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")
            if len(data) > LINE_SIZE_MAX:
                raise InvalidInput(
                    f"It is over the limit of {LINE_SIZE_MAX:,} bytes",
                    remedy="Split the line: fewer pieces of evidence to a fact.",
                )
        yield data


@contextmanager
def _naming(number: int) -> Generator[None]:
    """Say in an error of which line it is."""
    try:
        yield
    except (Conflict, InvalidInput, NotFound, Unsupported) as error:
        where = f"line {number:,}" + (f", {error.where}" if error.where else "")
        raise type(error)(error.what, where=where, remedy=error.remedy) from error


class _Numbered(NamedTuple):
    """A line, which it is from 1, and its bytes."""

    number: int
    data: bytes
    line: SaidLine


class _Part(NamedTuple):
    """Lines of a batch up to ``end``, and the events of the batch that they are in the log.

    The first event is the importBatch, then comes one for each line; there are none where the
    lines are not there.
    """

    end: int
    seqs: tuple[int, ...]


class _Import:
    """The batches on their way in. ``_ids`` are what lines are called here, by what they are there.

    Those of the batch being written are −place, as in any transaction.
    """

    def __init__(self, store: Appends, scope: Scope | None) -> None:
        self.added = self.known = self.missing = 0
        self._store = store
        self._scope = scope
        # The same lines under another scope say something else.
        self._chain = hash_bytes(b"facts 1\0" + scope_text(scope or ()).encode())
        self._batch: list[_Numbered] = []
        self._size = 0
        self._ids: dict[int, int] = {}
        self._after: int | None = None
        """The importBatch of the lines before, whose hash goes on in the next key."""
        self._is_new = False
        """Whether a batch was not there whole: then no later one is."""

    def begin(self) -> None:
        """End a batch, and forget the ids of all lines so far."""
        self.write()
        self._ids = {}

    def gather(self, one: _Numbered) -> bool:
        """Add a line to the batch; tell whether that is full."""
        self._batch.append(one)
        self._size += len(one.data)
        return len(self._batch) == BATCH_LINES or self._size >= BATCH_SIZE

    def write(self) -> None:
        """Write the batch, or find that it is there already."""
        batch, self._batch, self._size = self._batch, [], 0
        if not batch:
            return
        chain = _Chain(self._chain, batch)
        self._chain = chain.at(len(batch))
        added, end, after = 0, 0, self._after
        while end < len(batch):
            # Somebody else may be quicker, and cut the batch elsewhere: then it is looked at anew.
            end, after = 0, self._after
            for part in self._parts(batch, chain):
                lines, seqs = batch[end : part.end], part.seqs
                if not seqs:
                    done = self._write(lines, chain.at(part.end), after)
                    seqs = done.seqs
                    added += len(seqs) - 1 if done.added else 0
                if len(seqs) - 1 != len(lines):
                    self._is_new = False
                    break
                self._call(lines, seqs[1:])
                end, after = part.end, seqs[0]
        self._after = after
        self.added += added
        self.known += len(batch) - added

    def _call(self, lines: Sequence[_Numbered], seqs: Sequence[int]) -> None:
        """Take down what lines are called here."""
        for one, seq in zip(lines, seqs, strict=True):
            if isinstance(one.line, FactLine | RetractionLine):
                self._ids[one.line.id] = seq

    def _write(self, lines: Sequence[_Numbered], chain: bytes, after: int | None) -> Receipt:
        """Write lines as one batch, under the key of all lines so far.

        The key is a hash of lines, so it stands in an event that is erased with any of them.
        """
        with _naming(lines[0].number):
            first = self._scope_of(lines[0].line)
        view = self._store.view()
        before = dict(self._ids)
        with self._store.transaction(key=_key(chain)) as transaction:
            transaction.look_up(tenant_of(first))
            transaction.called(chain)
            if transaction.first is None:
                batch = ImportBatch(dialect=DIALECT, count=len(lines), after=after)
                self._store.write([Draft(batch, first)])
                for one in lines:
                    with _naming(one.number):
                        receipt = self._store.write([self._draft(one.line, view)])
                        self._name(one.line, receipt.seqs[0])
        done = transaction.receipt
        assert done is not None
        # What they are called in the batch is nothing outside it.
        self._ids = before
        return done

    def _parts(self, batch: Sequence[_Numbered], chain: "_Chain") -> "list[_Part]":
        """Return what is there of a batch and what is not, in order of its lines.

        Each time that the same lines came with more after them, these were a batch of their own,
        which has the key of all lines so far. Cost: a look-up for each line, but only of the first
        batch that is not there whole; no later one can be there.
        """
        count = len(batch)
        if self._is_new:
            return [_Part(count, ())]
        tenants = {tenant_key(one): one for one in map(self._tenant_of, batch)}
        parts = list[_Part]()
        end = gap = count
        while end:
            uses = (
                self._store.first_use(_key(chain.at(end)), tenant) for tenant in tenants.values()
            )
            used = next((one for one in uses if one is not None), None)
            if used is None:
                end -= 1
                continue
            if gap > end:
                parts.append(_Part(gap, ()))
            parts.append(_Part(end, used.seqs))
            gap = end = end - (len(used.seqs) - 1)
        if gap:
            parts.append(_Part(gap, ()))
        self._is_new = not all(part.seqs for part in parts)
        return parts[::-1]

    def _tenant_of(self, one: _Numbered) -> ScopeValue:
        with _naming(one.number):
            return tenant_of(self._scope_of(one.line))

    def _name(self, line: SaidLine, place: int) -> None:
        if isinstance(line, FactLine | RetractionLine):
            if line.id in self._ids:
                raise InvalidInput(
                    f"The id {line.id} is that of an earlier line",
                    remedy="Give each line an id of its own.",
                )
            self._ids[line.id] = place

    # --- what lines say --------------------------------------------------------------------------

    def _scope_of(self, line: SaidLine) -> Scope:
        return full_scope(None if line.scope is UNSET else line.scope, self._scope)

    def _draft(self, line: SaidLine, view: View) -> Draft:
        """Return the event that a line is. Raises `InvalidInput`."""
        scope = self._scope_of(line)
        if isinstance(line, FactLine):
            return self._fact(line, scope, view)
        if isinstance(line, MergeLine) and _holds(line, scope, view):
            # It is one event all the same, and this one says nothing new.
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
                    aliases=tuple(checked_name("An alias", one) for one in line.aliases),
                )
            case RetractionLine():
                return RetractFact(fact=self._id(line.fact))
            case MergeLine():
                return MergeEntities(entity=_entity(line.entity), into=_entity(line.into))
            case SplitLine():
                if not line.facts:
                    raise InvalidInput(
                        "No facts are given", remedy="Pass the lines of export_facts."
                    )
                return SplitEntity(
                    entity=_entity(line.entity),
                    into=_entity(line.into),
                    facts=tuple(map(self._id, line.facts)),
                )
            case FactLine():
                raise AssertionError

    def _fact(self, line: FactLine, scope: Scope, view: View) -> Draft:
        valid = line.valid
        evidence = [self._evidence(part, scope, view) for part in line.evidence]
        one = Assertion(
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
        draft = assertion_draft(one, scope, to_microseconds(view.now))
        return quoted(lambda: view.within(scope[:1]), draft)

    def _id(self, number: int) -> int:
        found = self._ids.get(number)
        if found is None:
            raise InvalidInput(
                f"No line before it has the id {number}",
                remedy="Put the line that has the id before it.",
            )
        return found

    def _evidence(self, part: EvidencePart, scope: Scope, view: View) -> FactEvidence | None:
        """Return where the content of evidence is here; None, counted, where it is not."""
        frame = self._frame(part, view.within(scope[:1]))
        if frame is None:
            self.missing += 1
            return None
        return FactEvidence(frame, part.start, part.end)

    def _frame(self, part: EvidencePart, view: View) -> int | None:
        """Return the oldest current frame with a content, or the chunk that it is of a document."""
        if part.document is UNSET or part.chunk is UNSET:
            return min(view.find_content(_hash(part.content)), default=None)
        for document in sorted(view.find_content(_hash(part.document))):
            chunk = view.chunks(document).get(part.chunk)
            if chunk is not None and content_hash(view.content(chunk)) == _hash(part.content):
                return chunk
        return None


class _Chain:
    """The hashes of a batch's lines with all lines before them."""

    def __init__(self, before: bytes, batch: Sequence[_Numbered]) -> None:
        self._before = before
        self._hashes = [hash_bytes(one.data) for one in batch]

    def at(self, end: int) -> bytes:
        """Return the hash of all lines up to the batch's ``end``."""
        return hash_bytes(b"".join((self._before, *self._hashes[:end])))


def _key(chain: bytes) -> str:
    return f"import facts {chain.hex()}"


def _holds(line: MergeLine, scope: Scope, view: View) -> bool:
    """Tell whether an entity is merged into the one that a line says already."""
    held = view.facts_at
    return held.facts.merged_into(tenant_in(scope), line.entity, held.n) == line.into


def _start(valid: PeriodPart) -> datetime | str | None:
    """Return from when a line's fact is true, as an `Assertion` has it; null alone is open."""
    if valid.start is UNSET:
        return None
    return OPEN if valid.start is None else to_datetime(to_microseconds(valid.start))


def _entity(name: str) -> str:
    return checked_name("An entity's name", name)


def _hash(text: str) -> bytes:
    """Return the hash that evidence names a content by. Raises `InvalidInput`."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != CONTENT_HASH_SIZE:
        raise InvalidInput(
            f"{text!r:.60} is no hash of a content",
            where="evidence",
            remedy=f"It is {2 * CONTENT_HASH_SIZE} hexadecimal digits.",
        )
    return found
