"""A recorded recall asked again at its basis: the same context, or the first difference.

Owns the comparison with the recorded entries and the recorded hash of the text. Leaves out the
question and its settings (`recall_settings`). Writes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeAlias

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import CerataError, NotFound, value_text
from cerata.engine.events import Event, ImportBatch, RecallContext
from cerata.engine.plain_value import PlainValue
from cerata.engine.salted_hashes import NOT_COMPARABLE, context_hash
from cerata.engine.unreadable import exactly

from ..search.recall import context_of, recall_of
from ..search.search import run_search
from ..snapshot.reader import Reader, snapshot_of
from .recall_settings import RecallSettings, repeated_call
from .recalls import asked

Outcome: TypeAlias = Literal["same", "different", "unknown"]


@dataclass(frozen=True, slots=True)
class EntryDifference(PlainValue):
    """The first place, from 1, at which frames or facts differ; None after the end of a list."""

    kind: Literal["frame", "fact"]
    place: int
    recorded: int | None
    new: int | None

    def __str__(self) -> str:
        recorded, new = (
            "nothing" if number is None else f"#{number}" for number in (self.recorded, self.new)
        )
        return f"{self.kind} {self.place}: recorded {recorded}, now {new}"


@dataclass(frozen=True, slots=True)
class RecallRerun(PlainValue):
    """A recorded recall, asked again.

    - ``outcome`` is "same" if the text is the recorded text, by its hash.
    - ``difference`` is None if the entries are the same, even if the text differs; ``differences``
      has every place at which the shown frames or facts differ.
    - ``reason`` is the cause of an unknown outcome; else None.
    """

    seq: int
    basis: int
    query: str
    outcome: Outcome
    difference: EntryDifference | None = None
    reason: str | None = None
    differences: tuple[EntryDifference, ...] = ()


def rerun_recall(reader: Reader, seq: int) -> RecallRerun:
    """Ask a recorded recall again at its basis, and compare it with the recording.

    Cost: a recall.

    Args:
        reader: A store or view.
        seq: The seq of the recall's event.

    Raises:
        NotFound: the event is no recall, or is hidden by the scope or after the basis.
    """
    event, recall = recorded_recall(reader, seq)
    rerun = RecallRerun(seq, recall.basis, recall.query, "unknown")
    if recall.where is not None:
        return replace(rerun, reason="it has a filter, which the log has only in printed form")
    if recall.assembly is not None:
        return replace(rerun, reason="it is a session's context: call Agent.rerun_assembly()")
    if not recall.query.strip():
        return replace(rerun, reason="it has no question")
    try:
        with exactly():
            return _compared(reader, event, recall, rerun)
    except CerataError as error:
        return replace(rerun, reason=error.what)


def recorded_recall(reader: Reader, seq: int) -> tuple[Event, RecallContext]:
    """Return the event of a recorded recall, and its body. Raises `NotFound`."""
    seq = expect_integer("seq", seq)
    snapshot = snapshot_of(reader)
    event = next(snapshot.events(seq, seq), None) if 0 < seq <= snapshot.basis else None
    if event is None or not isinstance(event.body, RecallContext):
        raise NotFound(
            f"No recorded recall is #{value_text(seq)}",
            remedy="cerata log --type recall lists the recorded recalls.",
        )
    return event, event.body


def _compared(
    reader: Reader, event: Event, recall: RecallContext, rerun: RecallRerun
) -> RecallRerun:
    newest = snapshot_of(reader)
    salts = [newest.layers.salt(number) for number in (*recall.frames, *recall.facts)]
    if None in salts or recall.context == NOT_COMPARABLE:
        return replace(rerun, reason="an entry was erased, and the hash of the text with it")
    log = newest.layers.log
    if not log.horizon().has(recall.basis):
        return replace(rerun, reason="retention gave up contents of the state that it asked")
    batch = log.event(event.header.first_seq).body
    if isinstance(batch, ImportBatch) and batch.log is not None:
        return replace(rerun, reason="it was imported from another log, whose salts its hash needs")
    snapshot = asked(newest, event, recall)
    request, options = repeated_call(snapshot, recall, RecallSettings())
    result = run_search(snapshot, request)
    context = context_of(result, options)
    new = recall_of(result, options, context)
    differences = tuple(_differences(recall, new))
    if differences:
        return replace(
            rerun, outcome="different", difference=differences[0], differences=differences
        )
    is_same = context_hash(salts, context.text) == recall.context
    return replace(rerun, outcome="same" if is_same else "different")


def _differences(recorded: RecallContext, new: RecallContext) -> Iterator[EntryDifference]:
    """Yield the differences of the shown frames, then of the shown facts, by their places."""
    yield from _between("frame", recorded.frames, new.frames)
    yield from _between("fact", recorded.facts, new.facts)


def _between(
    kind: Literal["frame", "fact"], recorded: tuple[int, ...], new: tuple[int, ...]
) -> Iterator[EntryDifference]:
    """Yield each place at which two lists differ."""
    for place, (before, after) in enumerate(zip_longest(recorded, new), start=1):
        if before != after:
            yield EntryDifference(kind, place, before, after)
