"""Extraction: an extractor reads the text of frames, and what it finds becomes facts.

Owns the protocol of extractors, and what is recorded: one event that says which extractor, of which
version, read which frame, and as its consequences the facts, each with the bytes of the text that
say so. Both are in the log, so an extractor is run once for each frame, and never by a replay.
Leaves out how facts are found (`english_facts`, and whatever a user plugs in).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Protocol, TypeAlias

from cerata.engine.codec import encode_payloads, tenant_of
from cerata.engine.errors import ExtractorFailed, InvalidInput
from cerata.engine.events import Draft, ExtractFacts, JsonValue, Scope
from cerata.engine.limits import BATCH_EVENTS_MAX, NAME_SIZE_MAX
from cerata.projections.filters import Filter
from cerata.projections.times import to_microseconds

from .appending import Appends
from .asserting import Assertion, assertion_draft
from .drafting import arguments_hash, is_unicode
from .evidence import quoted
from .fact_values import FactEvidence, FactObject, plain_object
from .values import Frame
from .view import View

Ids: TypeAlias = tuple[int, ...]

FOUND_MAX: Final = BATCH_EVENTS_MAX - 1
"""Facts found in one frame: they and the event that led to them are one batch."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that an extractor found: what it says, and where.

    ``start`` and ``end`` are the UTF-8 bytes [start, end) of the text that say it. The other fields
    are those of `Store.assert_fact`; without a period it is true since its frame was created.
    """

    subject: str
    predicate: str
    object: FactObject
    start: int
    end: int
    confidence: float = 1.0
    valid_from: datetime | str | None = None
    valid_to: datetime | str | None = None
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject} · {self.predicate} · {plain_object(self.object)}"


class Extractor(Protocol):
    """What finds facts in a text: rules, a local model, or one behind an interface.

    ``version`` goes up when the same text would give other facts; then frames are read anew.
    """

    @property
    def name(self) -> str:
        """What it is called in the log."""
        ...

    @property
    def version(self) -> str:
        """Which one it is: of a model, whatever names its weights and its prompt."""
        ...

    def extract(self, text: str) -> Iterable[Candidate]:
        """Return the facts that a text says."""
        ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extractor found in one frame.

    ``facts`` are the ids of the facts, in order of ``candidates``; one that was known before is
    named by its new event. ``added`` is False where it had read the frame before, and in a dry run,
    which has candidates and no facts, or no candidates where it had read the frame before.
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
                    "subject": one.subject,
                    "predicate": one.predicate,
                    "object": plain_object(one.object),
                    "start": one.start,
                    "end": one.end,
                    "confidence": one.confidence,
                }
                for one in self.candidates
            ],
            "facts": list(self.facts),
            "added": self.added,
        }


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor found in many frames, in order of their ids."""

    extractor: str
    version: str
    frames: tuple[Extracted, ...]
    dry_run: bool

    @property
    def found(self) -> int:
        """How many facts were found, in frames that it had not read before."""
        return sum(len(one.candidates) for one in self.frames)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "extractor": self.extractor,
            "version": self.version,
            "read": sum(one.added for one in self.frames),
            "known": 0 if self.dry_run else sum(not one.added for one in self.frames),
            "found": self.found,
            "dry_run": self.dry_run,
            "frames": [one.to_dict() for one in self.frames],
        }


Report: TypeAlias = Callable[[Extracted, int, int], None]
"""Is told of each frame as it is done: what was found, which it is from 1, and of how many."""


def frames_to_read(view: View, frames: Iterable[int] | None, where: Filter | None) -> list[int]:
    """Return the ids of the frames with text that are meant, ascending; of documents their parts.

    Raises:
        NotFound: one of ``frames`` is not there.
    """
    if frames is None:
        meant: Iterable[Frame] = view.frames(where, include_chunks=True)
    else:
        meant = map(view.frame, frames)
    found = set[int]()
    for frame in meant:
        if frame.chunk_count is not None and frame.chunk_index is None:
            found.update(view.chunks(frame.id).values())
        elif frame.text:
            found.add(frame.id)
    return sorted(found)


def extract(
    store: Appends,
    numbers: Sequence[int],
    extractor: Extractor,
    *,
    dry_run: bool,
    report: Report | None,
) -> Extraction:
    """Run an extractor on frames, each its own durable batch; with ``dry_run`` write nothing.

    Raises:
        InvalidInput: the extractor has no name or version. ExtractorFailed: it raised, or gave what
        is no fact; nothing of that frame is written.
    """
    name, version = (_named(what, getattr(extractor, what, None)) for what in ("name", "version"))
    done = list[Extracted]()
    before = _read_before(store, numbers, name, version) if dry_run else {}
    for number in numbers:
        frame = store.frame(number)
        if number in before:
            one = Extracted(number, (), before[number], added=False)
        else:
            one = (_looked_at if dry_run else _read)(store, frame, extractor)
        done.append(one)
        if report is not None:
            report(one, len(done), len(numbers))
    return Extraction(name, version, tuple(done), dry_run)


def _named(what: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not is_unicode(value):
        raise InvalidInput(f"The extractor's {what} is {value!r:.60}", remedy="Give it a string.")
    if len(value.encode()) > NAME_SIZE_MAX:
        raise InvalidInput(
            f"The extractor's {what} is over {NAME_SIZE_MAX} bytes", remedy="Shorten it."
        )
    return value


def _looked_at(store: Appends, frame: Frame, extractor: Extractor) -> Extracted:
    """Say what would be recorded."""
    found = _found(extractor, frame)
    # What could not be recorded is told here as it would be then.
    for _ in _drafts(extractor, frame, found, tuple(frame.scope.items()), store):
        pass
    return Extracted(frame.id, found, (), added=False)


def _read_before(store: Appends, numbers: Sequence[int], name: str, version: str) -> dict[int, Ids]:
    """Return the ids of the facts that an extractor found in each frame that it has read.

    A key is looked up under the writer's lock, which whoever only looks does without. Cost: a pass
    over the log after the first of the frames.
    """
    found = dict[int, Ids]()
    for event in store.view().log(min(numbers, default=0) + 1):
        body = event.body
        if isinstance(body, ExtractFacts) and (
            (body.extractor, body.extractor_version) == (name, version)
        ):
            last = min(event.seq + body.count, event.header.last_seq)
            found.setdefault(body.frame, tuple(range(event.seq + 1, last + 1)))
    return found


def _read(store: Appends, frame: Frame, extractor: Extractor) -> Extracted:
    """Record what an extractor finds in a frame, unless it has read it before.

    It runs before the transaction: what it writes to the same memory itself is not part of that.
    """
    asked = arguments_hash("extract", extractor.name, extractor.version, frame.id)
    key = f"extract {asked.hex()}"
    scope = tuple(frame.scope.items())
    used = store.first_use(key, tenant_of(scope))
    if used is not None:
        return Extracted(frame.id, (), used.ids, added=False)
    found = _found(extractor, frame)
    with store.transaction(key=key) as transaction:
        transaction.look_up(tenant_of(scope))
        transaction.called(asked)
        # Another process may have read it meanwhile.
        if transaction.first is None:
            store.write(list(_drafts(extractor, frame, found, scope, store)))
    receipt = transaction.receipt
    assert receipt is not None
    return Extracted(frame.id, found if receipt.added else (), receipt.ids, receipt.added)


def _drafts(
    extractor: Extractor,
    frame: Frame,
    found: Sequence[Candidate],
    scope: Scope,
    store: Appends,
) -> Iterator[Draft]:
    """Yield the event that says who read the frame, and the facts that follow from it."""
    view = store.view()
    now = to_microseconds(view.now)
    body = ExtractFacts(
        frame=frame.id,
        extractor=extractor.name,
        extractor_version=extractor.version,
        count=len(found),
    )
    yield Draft(body, scope)
    for number, one in enumerate(found, start=1):
        fact = Assertion(
            one.subject,
            one.predicate,
            one.object,
            # Read again by another version, it is the same fact, and no move back to where one was.
            frame.created if one.valid_from is None and one.valid_to is None else one.valid_from,
            one.valid_to,
            confidence=one.confidence,
            source="inferred",
            evidence=[FactEvidence(frame.id, one.start, one.end)],
            assumptions=one.assumptions,
            because=-1,
        )
        try:
            yield _storable(quoted(lambda: view, assertion_draft(fact, scope, now)))
        except InvalidInput as error:
            raise _failed(extractor, frame, f"gave what is no fact: {error}", number) from error


def _storable(draft: Draft) -> Draft:
    """Return a draft that a batch can hold. Raises `InvalidInput`."""
    try:
        encode_payloads([draft])
    except InvalidInput as error:
        raise InvalidInput(error.what, remedy=error.remedy) from error
    return draft


def _found(extractor: Extractor, frame: Frame) -> tuple[Candidate, ...]:
    """Return what an extractor finds. Raises `ExtractorFailed`."""
    try:
        found = tuple(islice(extractor.extract(frame.text), FOUND_MAX + 1))
    except MemoryError:
        raise
    except Exception as error:
        said = f"raised {type(error).__name__}: {error}"
        raise _failed(extractor, frame, said) from error
    if len(found) > FOUND_MAX:
        raise _failed(extractor, frame, f"found more than {FOUND_MAX:,} facts")
    data = frame.text.encode()
    for number, one in enumerate(found, start=1):
        if not isinstance(one, Candidate):
            said = f"gave a {type(one).__name__}, not a Candidate"
            raise _failed(extractor, frame, said, number)
        if not _is_span(one.start, one.end, data):
            said = f"gave bytes [{one.start}, {one.end}), which are no part of the text"
            raise _failed(extractor, frame, said, number)
    return found


def _is_span(start: object, end: object, data: bytes) -> bool:
    """Tell whether [start, end) are bytes of a text, from one character's start to another's."""
    if not isinstance(start, int) or not isinstance(end, int):
        return False
    if isinstance(start, bool) or isinstance(end, bool):
        return False
    if not 0 <= start < end <= len(data):
        return False
    # A byte 10xxxxxx goes on with a character.
    return all(at == len(data) or data[at] & 0xC0 != 0x80 for at in (start, end))


def _failed(
    extractor: Extractor, frame: Frame, said: str, number: int | None = None
) -> ExtractorFailed:
    where = f"frame {frame.id:,}" + ("" if number is None else f", candidate {number:,}")
    return ExtractorFailed(
        f"The extractor {extractor.name!r} {said}",
        where=where,
        remedy="Mend it and call again; frames that are done are passed over.",
        extractor=extractor.name,
        frame=frame.id,
    )
