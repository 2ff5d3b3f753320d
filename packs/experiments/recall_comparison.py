"""Recorded recalls under two settings: which answers and contexts differ, and by how much.

Each recorded recall is repeated at its basis, with the vectors and scores that the log has of
it, so events that were written later change nothing. Under another chunking it is repeated at the
same point of the replayed life (`replayed_life`). Owns the report of each recall and the totals.
Leaves out recalls with a filter, which the log has in a form that is only printed. Writes nothing.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Event, PutFrame, RecallContext
from cerata.engine.json_value import JsonValue
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.unreadable import event_place, readable
from cerata.memory.search.recall import context_of
from cerata.memory.search.recall_rerun import RecallSettings, asked, repeated_call
from cerata.memory.search.search import run_search
from cerata.memory.snapshot.readable_events import readable_bodies
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.arguments import SPAN, chunk_span
from cerata.memory.values.frames import Context
from cerata.retrieval.chunking import Chunking
from cerata.retrieval.context.policies import ContextPolicy
from cerata.retrieval.ranking.profile import Profile, unknown

from .replayed_life import Progress, ReplayedLife


@dataclass(frozen=True, slots=True)
class RecallChange(PlainValue):
    """A recorded recall, asked again under two settings.

    - ``added`` and ``dropped`` are the frames and facts that only the second or the first context
      shows; ``moved`` has (id, rank before, rank after) of entries in both at other ranks.
    - ``repeated`` is whether the first context shows the recorded frames and facts.
    - Under another chunking a chunk counts as its document, and ``passages_before`` and
      ``passages_after`` have (document, start, end) of the characters that each context shows.
    """

    seq: int
    basis: int
    query: str
    same: bool
    repeated: bool
    added: tuple[int, ...]
    dropped: tuple[int, ...]
    moved: tuple[tuple[int, int, int], ...]
    tokens_before: int
    tokens_after: int
    passages_before: tuple[tuple[int, int, int], ...] = ()
    passages_after: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkedAgain(PlainValue):
    """The documents of a life under another chunking.

    - ``split`` of them have other passages. ``kept`` could not be split again: a chunk is missing,
      or was changed or closed by itself.
    - ``without_vectors`` counts new passages without a vector, though the recorded had one: the
      memory's embedder cannot run here. Then both sides use words alone.
    """

    split: int
    kept: int
    without_vectors: int


@dataclass(frozen=True, slots=True)
class RecallComparison(PlainValue):
    """The recorded recalls of a memory under two settings, in order of the log.

    - ``skipped`` counts the recalls that cannot be asked again: with a filter, or with a profile or
      policy that is not built in and not replaced; under another chunking also a recall that a
      model reordered, since the model would have to score the new passages.
    - ``chunking`` is absent unless the second settings have a chunking.
    """

    recalls: tuple[RecallChange, ...]
    skipped: int
    chunking: ChunkedAgain | None = None

    @property
    def differing(self) -> tuple[RecallChange, ...]:
        """The recalls whose contexts differ."""
        return tuple(change for change in self.recalls if not change.same)

    @property
    def totals(self) -> dict[str, JsonValue]:
        """Counts over all recalls."""
        changes = self.recalls
        return {
            "recalls": len(changes),
            "same": len(changes) - len(self.differing),
            "different": len(self.differing),
            "skipped": self.skipped,
            "repeated": sum(change.repeated for change in changes),
            "added": sum(len(change.added) for change in changes),
            "dropped": sum(len(change.dropped) for change in changes),
            "moved": sum(len(change.moved) for change in changes),
            "tokens_before": sum(change.tokens_before for change in changes),
            "tokens_after": sum(change.tokens_after for change in changes),
        }

    def to_dict(self) -> dict[str, JsonValue]:
        return plain_fields(self, ("recalls", "totals", "chunking"))


def compare_recalls(
    reader: Reader,
    after: RecallSettings,
    before: RecallSettings | None = None,
    progress: Progress | None = None,
) -> RecallComparison:
    """Ask every recorded recall again under two settings, and compare the contexts.

    Cost: a read of each event, and two recalls for each recorded recall. A chunking in the settings
    also copies the log's events into memory.

    Args:
        reader: A store or view; recalls after its basis or out of its scope are left out.
        after: The settings to try.
        before: The settings to compare with; default those of each recorded recall.
        progress: Called with the name of the pass, and how many of how many steps are finished.
    """
    snapshot = snapshot_of(reader)
    before = before or RecallSettings()
    with ExitStack() as lives:
        sides = [_Side(settings, snapshot, None) for settings in (before, after)]
        for place, settings in enumerate((before, after)):
            if settings.chunking is not None:
                life = lives.enter_context(
                    closing(ReplayedLife(snapshot, settings.chunking, progress))
                )
                sides[place] = _Side(settings, life.snapshot, life)
        if any(side.life is not None and side.life.without_vectors for side in sides):
            # Vectors of the other passages alone would hide the new ones.
            sides = [side._replace(settings=replace(side.settings, mode="text")) for side in sides]
        return _compared(snapshot, sides, progress)


class _Side(NamedTuple):
    """One of two settings, and the memory to which it is applied: ``life``, or the recorded."""

    settings: RecallSettings
    snapshot: Snapshot
    life: ReplayedLife | None

    def recalled(self, event: Event, recall: RecallContext) -> "_Answer":
        """Ask a recall again. Raises `InvalidInput` if its profile or policy is unknown."""
        question = recall if self.life is None else self.life.asked(recall)
        snapshot = asked(self.snapshot, event, question)
        request, options = repeated_call(snapshot, question, self.settings)
        return _Answer(self, snapshot, context_of(run_search(snapshot, request), options))


class _Answer(NamedTuple):
    side: _Side
    snapshot: Snapshot
    context: Context

    @property
    def shown(self) -> list[int]:
        """The ids of the context in their order, joined chunks included."""
        items = self.context.items
        return [number for item in items for number in (item.id, *item.joined)]

    @property
    def sources(self) -> list[tuple[int, int, int] | int]:
        """The recorded ids of the context; a chunk is (document, start, end)."""
        return [self.source_of(number) for number in self.shown]

    def source_of(self, number: int) -> tuple[int, int, int] | int:
        """Return the recorded id of an entry, or the document and the characters of a chunk."""
        life = self.side.life
        event = self.snapshot.event_of(number)
        body = None if event is None else event.body
        if not isinstance(body, PutFrame) or body.chunk_index is None or body.parent is None:
            return number if life is None else life.recorded_id(number)
        document = body.parent if life is None else life.recorded_id(body.parent)
        return (document, *chunk_span(body, _start_of(body)))


def _start_of(body: PutFrame) -> int:
    """Return a start that `chunk_span` accepts: that of the chunk's metadata, else 0."""
    match body.metadata.get(SPAN):
        case [int() as start, int()]:
            return start
        case _:
            return 0


def _compared(
    snapshot: Snapshot, sides: Sequence[_Side], progress: Progress | None
) -> RecallComparison:
    recorded = [
        (event, body)
        for event, body in readable_bodies(snapshot, 1, snapshot.basis)
        if isinstance(body, RecallContext)
    ]
    by_document = any(side.life is not None for side in sides)
    changes: list[RecallChange] = []
    horizon = snapshot.layers.log.horizon()
    for number, (event, body) in enumerate(recorded, start=1):
        is_whole = horizon.has(body.basis) and not (by_document and body.reranked)
        is_whole = is_whole and body.assembly is None
        if body.where is None and body.query.strip() and is_whole:
            read = partial(_change, sides=sides, by_document=by_document)
            changes += filter(None, readable([(event, body)], read, _place))
        if progress is not None:
            progress("asking", number, len(recorded))
    life = sides[1].life
    chunking = None
    if life is not None:
        chunking = ChunkedAgain(life.split, life.left, life.without_vectors)
    return RecallComparison(tuple(changes), len(recorded) - len(changes), chunking)


def _place(recorded: tuple[Event, RecallContext]) -> str:
    return event_place(recorded[0].seq)


def _change(
    recorded: tuple[Event, RecallContext], *, sides: Sequence[_Side], by_document: bool
) -> RecallChange | None:
    """Return the change of a recall; None if its profile or policy is unknown."""
    event, recall = recorded
    try:
        first, second = (side.recalled(event, recall) for side in sides)
    except InvalidInput:
        return None
    shown, shown_after = (
        _documents(answer.sources) if by_document else answer.shown for answer in (first, second)
    )
    ranks = {number: rank for rank, number in enumerate(shown, start=1)}
    is_recorded = first.side.life is None
    return RecallChange(
        seq=event.seq,
        basis=recall.basis,
        query=recall.query,
        same=first.context.text == second.context.text,
        repeated=is_recorded and {*first.shown} == {*recall.frames, *recall.facts},
        added=tuple(number for number in shown_after if number not in ranks),
        dropped=tuple(number for number in shown if number not in {*shown_after}),
        moved=tuple(
            (number, ranks[number], rank)
            for rank, number in enumerate(shown_after, start=1)
            if ranks.get(number, rank) != rank
        ),
        tokens_before=first.context.tokens,
        tokens_after=second.context.tokens,
        passages_before=_passages(first) if by_document else (),
        passages_after=_passages(second) if by_document else (),
    )


def _documents(sources: Sequence[tuple[int, int, int] | int]) -> list[int]:
    """Return each document, frame and fact once, by its first rank."""
    numbers = (source if isinstance(source, int) else source[0] for source in sources)
    return [*dict.fromkeys(numbers)]


def _passages(answer: _Answer) -> tuple[tuple[int, int, int], ...]:
    return tuple(source for source in answer.sources if not isinstance(source, int))


# --- settings as a file has them ---


def settings_of(values: Mapping[str, JsonValue]) -> RecallSettings:
    """Return settings by name; a profile and a policy may be objects with their fields.

    Raises:
        InvalidInput: a field is unknown, or a value is out of range.
    """
    names = [part.name for part in fields(RecallSettings)]
    for name in values:
        if name not in names:
            raise unknown("setting of a recall", name, names, where="the settings")
    settings: dict[str, Any] = dict(values)
    profile = settings.get("profile")
    if isinstance(profile, Mapping):
        settings["profile"] = Profile.from_dict(cast("Mapping[str, Any]", profile))
    if isinstance(sizes := settings.get("chunking"), Mapping):
        settings["chunking"] = _chunking(cast("Mapping[str, Any]", sizes))
    policy = settings.get("policy")
    if isinstance(policy, Mapping):
        settings["policy"] = _policy(cast("Mapping[str, Any]", policy))
    return RecallSettings(**settings)


def _chunking(values: Mapping[str, Any]) -> Chunking:
    names = [part.name for part in fields(Chunking)]
    for name in values:
        if name not in names:
            raise unknown("size of a chunking", name, names, where="a chunking")
    return Chunking(**values)


def _policy(values: Mapping[str, Any]) -> ContextPolicy:
    names = [part.name for part in fields(ContextPolicy)]
    for name in values:
        if name not in names:
            raise unknown("field of a context policy", name, names, where="a context policy")
    for name in ("name", "version"):
        if name not in values:
            raise InvalidInput(
                f"The context policy has no {name}", remedy=f"Add its {name} to the file."
            )
    settings: dict[str, Any] = dict(values)
    days = settings.get("tier_days")
    if isinstance(days, list):
        # A file has lists.
        settings["tier_days"] = tuple(cast("list[object]", days))
    return ContextPolicy(**settings)
