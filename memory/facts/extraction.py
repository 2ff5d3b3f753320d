"""Extraction: an extractor reads the text of frames, and its candidates become facts.

Owns the protocol of extractors, and the events of an extraction: an event that names the extractor,
its version and the frame, and as its consequences the facts, each with the bytes in which it was
read. The events are in the log, so an extractor runs once for each frame, and never in a replay.
Leaves out the extractors (`english`, and those of users).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from cerata.engine.arguments import is_integer, is_unicode
from cerata.engine.codec import encode_payloads, tenant_of
from cerata.engine.errors import Corrupt, ExtractorFailed, InvalidInput
from cerata.engine.events import Draft, ExtractFacts, JsonValue, Scope
from cerata.engine.limits import BATCH_EVENTS_MAX, NAME_SIZE_MAX
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.unreadable import frame_place, leave_out, readable
from cerata.projections.columnar.times import to_microseconds

from ..batch.transaction import block_of
from ..snapshot.readable_events import readable_bodies
from ..values.arguments import arguments_hash, scope_under
from ..values.facts import FactEvidence, FactObject, plain_object
from .aliases import about_entities
from .drafts import Assertion, assertion_draft, quoted

if TYPE_CHECKING:
    from cerata.projections.frames.filters import Filter

    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Frame

Ids: TypeAlias = tuple[int, ...]

FOUND_MAX: Final = BATCH_EVENTS_MAX - 1
"""Most facts in a frame: they are in a batch with the event that led to them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that an extractor found, and its place in the text.

    - ``start`` and ``end`` are the UTF-8 bytes [start, end) in which the fact was read.
    - The other fields are those of `Store.assert_fact`; without a period the fact is true since its
      frame was created.
    """

    subject: str
    predicate: str
    object: FactObject
    start: int
    end: int
    confidence: float = 1.0
    valid_from: date | str | None = None
    valid_to: date | str | None = None
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject} · {self.predicate} · {plain_object(self.object)}"


class Extractor(Protocol):
    """Finds facts in a text: by rules, a local model, or a model behind an interface.

    A change of ``version`` lets frames be read again; change it if the same text gives other facts.
    """

    @property
    def name(self) -> str:
        """The extractor's name in the log."""
        ...

    @property
    def version(self) -> str:
        """The version; for a model, a name of its weights and its prompt."""
        ...

    def extract(self, text: str) -> Iterable[Candidate]:
        """Return the facts in a text.

        Args:
            text: The text of a frame.
        """
        ...


@dataclass(frozen=True, slots=True)
class Extracted(PlainValue):
    """The facts that an extractor found in a frame.

    - ``facts`` are the ids of the facts, in order of ``candidates``; a fact known before has the id
      of its new event.
    - ``added`` is False if the extractor had read the frame before, and in a dry run.
    - ``candidates`` is empty if the extractor had read the frame before.
    - ``facts`` is empty in a dry run, unless the extractor had read the frame before.
    """

    frame: int
    candidates: tuple[Candidate, ...]
    facts: tuple[int, ...]
    added: bool

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "frame": self.frame,
            "candidates": [
                {
                    **plain_fields(candidate, ("subject", "predicate")),
                    "object": plain_object(candidate.object),
                    **plain_fields(candidate, ("start", "end", "confidence")),
                }
                for candidate in self.candidates
            ],
            "facts": list(self.facts),
            "added": self.added,
        }


@dataclass(frozen=True, slots=True)
class Extraction(PlainValue):
    """The facts that an extractor found in many frames, in order of the frames' ids."""

    extractor: str
    version: str
    frames: tuple[Extracted, ...]
    dry_run: bool

    @property
    def found(self) -> int:
        """The count of facts in frames that the extractor had not read before."""
        return sum(len(frame.candidates) for frame in self.frames)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("extractor", "version")),
            "read": sum(frame.added for frame in self.frames),
            "known": 0 if self.dry_run else sum(not frame.added for frame in self.frames),
            **plain_fields(self, ("found", "dry_run", "frames")),
        }


Report: TypeAlias = Callable[[Extracted, int, int], None]
"""Called after each frame with its facts, its number from 1, and the count of frames."""


def frames_to_read(
    snapshot: Snapshot, frames: Sequence[int] | None, where: Filter | None
) -> list[int]:
    """Return the ids of the selected frames with text, ascending; for documents, of their chunks.

    Raises:
        NotFound: a frame in ``frames`` does not exist.
    """
    if frames is None:
        newest = snapshot.layers.newest(snapshot.layers.admitted(where))
        selected: Iterable[Frame] = readable(newest, snapshot.frame_at, frame_place)
    else:
        for number in frames:
            snapshot.id_of(number)
        selected = readable(frames, snapshot.frame_at, frame_place)
    ids = set[int]()
    for frame in selected:
        if frame.chunk_count is not None and frame.chunk_index is None:
            ids.update(snapshot.chunks_of(frame.id).values())
        elif frame.text:
            ids.add(frame.id)
    return sorted(ids)


def extract(
    session: WriteSession,
    numbers: Sequence[int],
    extractor: Extractor,
    *,
    dry_run: bool,
    report: Report | None,
) -> Extraction:
    """Run an extractor on frames, each a durable batch; with ``dry_run`` write nothing.

    Raises:
        InvalidInput: the extractor has no name or version.
        ExtractorFailed: the extractor raised, or returned an unusable fact; nothing of that frame
            is written.
    """
    name = _checked("name", getattr(extractor, "name", None))
    version = _checked("version", getattr(extractor, "version", None))
    results = list[Extracted]()
    before = _read_before(session, numbers, name, version) if dry_run else {}
    for number in numbers:
        try:
            frame = session.snapshot().frame_at(number)
            if number in before:
                extracted = Extracted(number, (), before[number], added=False)
            else:
                extracted = (_planned if dry_run else _read)(session, frame, extractor)
        except Corrupt as error:
            leave_out(frame_place(number), error)
            continue
        results.append(extracted)
        if report is not None:
            report(extracted, len(results), len(numbers))
    return Extraction(name, version, tuple(results), dry_run)


def _checked(attribute: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not is_unicode(value):
        raise InvalidInput(
            f"The extractor's {attribute} must be a non-empty string, not {value!r:.60}",
            remedy=f"Set its {attribute} to a string.",
        )
    if len(value.encode()) > NAME_SIZE_MAX:
        raise InvalidInput(
            f"The extractor's {attribute} is over {NAME_SIZE_MAX} bytes",
            remedy=f"Shorten its {attribute}.",
        )
    return value


def _planned(session: WriteSession, frame: Frame, extractor: Extractor) -> Extracted:
    candidates = _candidates(extractor, frame)
    # Build the drafts, so that a dry run raises the same errors as a run.
    for _ in _drafts(extractor, frame, candidates, _scope_of(frame, session), session):
        pass
    return Extracted(frame.id, candidates, (), added=False)


def _read_before(
    session: WriteSession, numbers: Sequence[int], name: str, version: str
) -> dict[int, Ids]:
    """Return the ids of the facts that an extractor found in each frame that it has read.

    Reads the log, since the look-up of a key needs the writer lock. Cost: a pass over the log after
    the first of the frames.
    """
    facts = dict[int, Ids]()
    snapshot = session.snapshot().within(shared=False)
    for event, body in readable_bodies(snapshot, min(numbers, default=0) + 1, None):
        if isinstance(body, ExtractFacts) and (
            (body.extractor, body.extractor_version) == (name, version)
        ):
            last = min(event.seq + body.count, event.header.last_seq)
            facts.setdefault(body.frame, tuple(range(event.seq + 1, last + 1)))
    return facts


def _read(session: WriteSession, frame: Frame, extractor: Extractor) -> Extracted:
    """Record the facts that an extractor finds in a frame, unless it has read the frame before.

    The extractor runs before the transaction, so that its writes to the same store do not join it.
    """
    call_hash = arguments_hash("extract", extractor.name, extractor.version, frame.id)
    key = f"extract {call_hash.hex()}"
    scope = _scope_of(frame, session)
    earlier = session.first_use(key, tenant_of(scope))
    if earlier is not None:
        return Extracted(frame.id, (), earlier.ids, added=False)
    candidates = _candidates(extractor, frame)
    with session.transaction(key=key) as transaction:
        block = block_of(transaction)
        block.look_up(tenant_of(scope))
        block.record_call(call_hash)
        # Another process may have read the frame since the look-up.
        if block.first is None:
            session.write(list(_drafts(extractor, frame, candidates, scope, session)))
    receipt = transaction.receipt
    return Extracted(frame.id, candidates if receipt.added else (), receipt.ids, receipt.added)


def _scope_of(frame: Frame, session: WriteSession) -> Scope:
    """Return the scope of the facts in a frame; facts in a shared frame get the store's scope."""
    return scope_under(tuple(frame.scope.items()), session.scope)


def _drafts(
    extractor: Extractor,
    frame: Frame,
    candidates: Sequence[Candidate],
    scope: Scope,
    session: WriteSession,
) -> Iterator[Draft]:
    """Yield the event that names the extractor and the frame, then the facts, its consequences."""
    snapshot = session.snapshot()
    now = to_microseconds(snapshot.now)
    body = ExtractFacts(
        frame=frame.id,
        extractor=extractor.name,
        extractor_version=extractor.version,
        count=len(candidates),
    )
    yield Draft(body, scope)
    for number, candidate in enumerate(candidates, start=1):
        start = candidate.valid_from
        if start is None and candidate.valid_to is None:
            # With this start another version states the same fact, not a return to an old value.
            start = frame.created
        fact = Assertion(
            candidate.subject,
            candidate.predicate,
            candidate.object,
            start,
            candidate.valid_to,
            confidence=candidate.confidence,
            source="inferred",
            evidence=[FactEvidence(frame.id, candidate.start, candidate.end)],
            assumptions=candidate.assumptions,
            because=-1,
        )
        try:
            # The name in the text stays if it may mean several entities.
            [draft] = about_entities(
                session,
                lambda: snapshot,
                [assertion_draft(fact, scope, now)],
                keeps_ambiguous=True,
            )
            yield _storable(quoted(lambda: snapshot, draft))
        except InvalidInput as error:
            raise _failed(
                extractor, frame, f"returned an unusable fact: {error}", number
            ) from error


def _storable(draft: Draft) -> Draft:
    """Return a draft unchanged if a batch can hold it. Raises `InvalidInput`."""
    try:
        encode_payloads([draft])
    except InvalidInput as error:
        raise InvalidInput(error.what, remedy=error.remedy) from error
    return draft


def _candidates(extractor: Extractor, frame: Frame) -> tuple[Candidate, ...]:
    try:
        candidates = tuple(islice(extractor.extract(frame.text), FOUND_MAX + 1))
    except MemoryError:
        raise
    except Exception as error:
        fault = f"raised {type(error).__name__}: {error}"
        raise _failed(extractor, frame, fault) from error
    if len(candidates) > FOUND_MAX:
        raise _failed(extractor, frame, f"returned more than {FOUND_MAX:,} facts")
    data = frame.text.encode()
    for number, item in enumerate(candidates, start=1):
        if not isinstance(item, Candidate):
            fault = f"returned a {type(item).__name__}, not a Candidate"
            raise _failed(extractor, frame, fault, number)
        if not _is_span(item.start, item.end, data):
            fault = f"returned bytes [{item.start}, {item.end}), which are not in the text"
            raise _failed(extractor, frame, fault, number)
    return candidates


def _is_span(start: object, end: object, data: bytes) -> bool:
    """Return whether [start, end) are bytes of a text that begin and end between characters."""
    if not (is_integer(start) and is_integer(end) and 0 <= start < end <= len(data)):
        return False
    # A byte 10xxxxxx continues a character.
    return all(at == len(data) or data[at] & 0xC0 != 0x80 for at in (start, end))


def _failed(
    extractor: Extractor, frame: Frame, fault: str, number: int | None = None
) -> ExtractorFailed:
    where = f"frame {frame.id:,}" + ("" if number is None else f", candidate {number:,}")
    return ExtractorFailed(
        f"The extractor {extractor.name!r} {fault}",
        where=where,
        remedy="Repair the extractor and call graph.extract() again; finished frames are skipped.",
        extractor=extractor.name,
        frame=frame.id,
    )
