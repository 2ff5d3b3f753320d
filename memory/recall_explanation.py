"""A recorded recall explained: the lines that were shown, why, and the lines of today.

Owns the comparison of the recorded lines with the lines of the same question asked now, and the
event that changed each. Leaves out the repeat at the recall's own basis
(`search.recall_rerun`). Writes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from cerata.engine.errors import CerataError, NotFound
from cerata.engine.events import DEFAULT_SCOPE, Event, RecallContext
from cerata.engine.plain_value import PlainValue
from cerata.engine.words import clipped
from cerata.retrieval.context.blocks import ContextItem
from cerata.retrieval.context.imitation import on_one_line

from .search.recall import context_of
from .search.recall_rerun import (
    Outcome,
    RecallSettings,
    asked,
    recorded_recall,
    repeated_call,
    rerun_recall,
)
from .search.result import SearchResult
from .search.search import run_search
from .snapshot.reader import Reader, snapshot_of
from .snapshot.snapshot import Snapshot
from .values.acts import Act, act_of
from .values.frames import Context, Hit

LineState: TypeAlias = Literal["kept", "gone", "new", "unknown"]

_TEXT_MAX = 200
"""Characters of a line's text."""

_SHOWN_MAX = 4
"""Words, or ids, of a reason; the rest is left out."""

_SIGNS = {"kept": "=", "gone": "-", "new": "+", "unknown": "?"}


@dataclass(frozen=True, slots=True)
class ExplainedLine(PlainValue):
    """A frame or fact that a recorded context showed, or that the same question shows today.

    - ``then`` and ``now`` are its places among the shown frames or facts, from 1; None without one.
    - ``why`` has the lanes and words that found it, at the recall's basis or, if new, today.
    - ``change`` names the event that put, closed, asserted or retracted it since, or the lines that
      took its place; None if it is kept. ``act`` is that event, if there is one in the scope.
    """

    id: int
    kind: Literal["frame", "fact"]
    state: LineState
    then: int | None
    now: int | None
    text: str
    why: str
    change: str | None = None
    act: Act | None = None

    def __str__(self) -> str:
        places = f"{self.then or '–'} → {self.now or '–'}"
        lines = [f"{_SIGNS[self.state]} {self.kind} #{self.id}, place {places}: {self.text}"]
        lines += [f"    {on_one_line(part)}" for part in (self.why, self.change) if part]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RecallExplanation(PlainValue):
    """A recorded recall: its lines, the reason for each, and the lines of the question today.

    - ``outcome`` is that of `history.rerun`, which asks again at the recall's basis.
    - ``reason`` is the cause of an unknown outcome. Without a question that can be repeated, the
      state of each line is "unknown".
    - ``basis`` is the point at which the agent asked, ``today`` the point of the second question.
    """

    seq: int
    basis: int
    today: int
    query: str
    act: Act
    outcome: Outcome
    reason: str | None
    lines: tuple[ExplainedLine, ...]
    notices: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """A line with the count of lines in each state."""
        counts = dict.fromkeys(_SIGNS, 0)
        for line in self.lines:
            counts[line.state] += 1
        return ", ".join(
            f"{count} {state}" for state, count in counts.items() if count or state != "unknown"
        )

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        credit = f" {self.act.credit}" if self.act.credit else ""
        head = f"#{self.seq} {on_one_line(self.query)}"
        recorded = f"{self.act.recorded:%Y-%m-%d %H:%M:%S} UTC{credit}, at event {self.basis:,}"
        return "\n".join(
            [
                head,
                f"{recorded}; asked again there: {self.outcome}{reason}",
                *map(str, self.lines),
                *self.notices,
                f"{self.summary} at event {self.today:,}",
            ]
        )


class _Answer(NamedTuple):
    """The question at one point: its result, the hits by their ids, and its context."""

    result: SearchResult
    hits: Mapping[int, Hit]
    context: Context

    @property
    def facts(self) -> list[int]:
        """The shown facts in order."""
        is_fact = {hit.fact.id for hit in self.result.facts}
        return [item.id for item in self.context.items if item.id in is_fact]

    @property
    def frames(self) -> list[int]:
        """The shown frames in order, joined chunks included."""
        facts = {*self.facts}
        items = [item for item in self.context.items if item.id not in facts]
        return [number for item in items for number in (item.id, *item.joined)]


def explain_recall(reader: Reader, seq: int) -> RecallExplanation:
    """Explain a recorded recall, and ask its question again at the reader's basis.

    Cost: three recalls, and an explanation of each shown frame.

    Raises:
        NotFound: the event is no recall, or is hidden by the scope or after the basis.
    """
    snapshot = snapshot_of(reader)
    event, recall = recorded_recall(reader, seq)
    rerun = rerun_recall(reader, seq)
    today = snapshot if event.scope in (None, DEFAULT_SCOPE) else snapshot.within(event.scope)
    explanation = RecallExplanation(
        seq=seq,
        basis=recall.basis,
        today=snapshot.basis,
        query=recall.query,
        act=act_of(event),
        outcome=rerun.outcome,
        reason=rerun.reason,
        lines=(),
    )
    then = now = None
    if recall.where is None and recall.assembly is None and recall.query.strip():
        try:
            then = _answer(asked(snapshot, event, recall), recall)
            now = _answer(today, _without_scores(recall))
        except CerataError as error:
            then = now = None
            explanation = replace(explanation, reason=explanation.reason or error.what)
    lines = _Lines(event, recall, today, then, now)
    if recall.reranked_scores is not None:
        notice = "today's lines are in the order before the reranker, whose scores are of that time"
        explanation = replace(explanation, notices=(notice,))
    return replace(explanation, lines=tuple(lines.all()))


def _without_scores(recall: RecallContext) -> RecallContext:
    """Return a recall without the scores of a reranker, which newer frames lack."""
    return msgspec.structs.replace(recall, reranker=None, reranked=(), reranked_scores=None)


def _answer(snapshot: Snapshot, recall: RecallContext) -> _Answer:
    request, options = repeated_call(snapshot, recall, RecallSettings())
    result = run_search(snapshot, request)
    hits = {hit.id: hit for hit in result.hits()}
    return _Answer(result, hits, context_of(result, options))


class _Lines:
    """The lines of a recall, then the lines that only today's question shows."""

    def __init__(
        self,
        event: Event,
        recall: RecallContext,
        today: Snapshot,
        then: _Answer | None,
        now: _Answer | None,
    ) -> None:
        self._recall = recall
        self._today = today
        self._past = asked(today, event, recall)
        self._then = then
        self._now = now

    def all(self) -> Iterator[ExplainedLine]:
        """Yield facts, then frames: recorded lines in their order, and then the new ones."""
        recall, now = self._recall, self._now
        yield from self._of("fact", recall.facts, [] if now is None else now.facts)
        yield from self._of("frame", recall.frames, [] if now is None else now.frames)

    def _of(
        self, kind: Literal["frame", "fact"], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[ExplainedLine]:
        places = {number: place for place, number in enumerate(after, start=1)}
        came = [number for number in after if number not in {*before}]
        went = [number for number in before if number not in places]
        for place, number in enumerate(before, start=1):
            state: LineState = "kept" if number in places else "gone"
            if self._now is None:
                state = "unknown"
            change, act = (None, None) if state == "kept" else self._closed(kind, number)
            if state == "gone" and change is None:
                change = f"below the budget or no match now{_beside(', shown now', came)}"
            line = self._line(kind, number, self._then, self._past)
            yield replace(
                line, state=state, then=place, now=places.get(number), change=change, act=act
            )
        for number in came:
            change, act = self._made(number)
            if change is None:
                change = f"not among the lines then{_beside(', shown then', went)}"
            line = self._line(kind, number, self._now, self._today)
            yield replace(line, state="new", now=places[number], change=change, act=act)

    def _line(
        self,
        kind: Literal["frame", "fact"],
        number: int,
        answer: _Answer | None,
        snapshot: Snapshot,
    ) -> ExplainedLine:
        text = _text_of(snapshot, kind, number)
        why = ""
        if answer is not None:
            why = _why_fact(answer, number) if kind == "fact" else _why_frame(answer, number)
        return ExplainedLine(number, kind, "kept", None, None, text, why)

    def _made(self, number: int) -> tuple[str | None, Act | None]:
        """Return the event after the recall's basis that made a thing, or nothing."""
        if 0 < number <= self._recall.basis:
            return None, None
        return self._event("put" if self._today.layers.has(number) else "asserted", number)

    def _closed(self, kind: Literal["frame", "fact"], number: int) -> tuple[str | None, Act | None]:
        """Return the event that closed a thing until today, or nothing."""
        if kind == "fact":
            return self._closed_fact(number)
        layers = self._today.layers
        if not layers.has(number):
            return None, None
        closing = layers.closing_of(number)
        if closing is not None:
            verb = "deleted" if closing.by is None else f"superseded by #{closing.by}"
            end = closing.seq
            return self._event(verb, end if end <= self._today.basis else self._today.basis - end)
        return (None, None) if layers.unexpired([number]) else ("expired", None)

    def _closed_fact(self, number: int) -> tuple[str | None, Act | None]:
        try:
            fact = self._today.fact_at(number)
        except NotFound:
            return None, None
        if fact.retracted_by is not None:
            return self._event("retracted", fact.retracted_by)
        if fact.ended_by is not None:
            return self._event(f"ended by the value of #{fact.ended_by}", fact.ended_by)
        if fact.standing == "invalid":
            return "made invalid by its links", None
        return ("ended", None) if fact.is_ended else (None, None)

    def _event(self, verb: str, number: int) -> tuple[str, Act | None]:
        act = self._today.act(number)
        credit = "" if act is None or not act.credit else f" {act.credit}"
        return f"{verb}, event {number:,}{credit}", act


def _beside(lead: str, numbers: Sequence[int]) -> str:
    return f"{lead}: {_ids(numbers)}" if numbers else ""


def _ids(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN_MAX} more" if len(numbers) > _SHOWN_MAX else ""
    return ", ".join(f"#{number}" for number in numbers[:_SHOWN_MAX]) + more


def _text_of(snapshot: Snapshot, kind: Literal["frame", "fact"], number: int) -> str:
    try:
        text = snapshot.frame_at(number).text if kind == "frame" else str(snapshot.fact_at(number))
    except NotFound:
        return ""
    return clipped(on_one_line(text), _TEXT_MAX)


def _why_fact(answer: _Answer, number: int) -> str:
    hit = next((hit for hit in answer.result.facts if hit.fact.id == number), None)
    if hit is None:
        return ""
    if hit.named:
        return f"about {', '.join(hit.named)}, which the question names"
    return f"shares words with the question, score {hit.score:.3f}"


def _why_frame(answer: _Answer, number: int) -> str:
    """Return the lanes that found a frame with their ranks, and the words that matched."""
    hit = answer.hits.get(number)
    if hit is None:
        return _why_beside(answer, number)
    explanation = hit.made_by.explain(hit)
    lanes = [
        f"{share.lane} rank {share.rank:,} of {share.found:,}"
        for share in explanation.lanes
        if share.rank is not None
    ]
    words = [word.word for word in explanation.words if word.added][:_SHOWN_MAX]
    matched = f" ({', '.join(words)})" if words else ""
    facts = f"; read in it: {_ids(explanation.facts)}" if explanation.facts else ""
    return f"score {hit.score:.3f}: {', '.join(lanes)}{matched}{facts}"


def _why_beside(answer: _Answer, number: int) -> str:
    joined: ContextItem | None = next(
        (item for item in answer.context.items if number in item.joined), None
    )
    if joined is not None:
        return f"joined to #{joined.id}, its neighbour"
    if answer.context.fallback:
        return "nothing matched, so the newest frames were shown"
    if number in {item.id for item in answer.context.items}:
        return "a neighbour of a result"
    return "not among the lines when asked again at its basis"
