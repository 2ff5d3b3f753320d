"""Answers: the texts of entries and facts, and the most tokens of an answer.

Owns the lines that tools print. A name is printed on one line, so that no stored name passes for
another line. Leaves out the choice of the things (`reading`, `writing`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cerata.engine.errors import CerataError
from cerata.memory.facts.changes import FactChange
from cerata.memory.frames.diff import Change
from cerata.memory.values.acts import credit
from cerata.memory.values.facts import Fact, Period
from cerata.memory.values.frames import Frame
from cerata.memory.view import View
from cerata.projections.facts.objects import Standing
from cerata.retrieval.context.imitation import marked, on_one_line
from cerata.retrieval.tokenizer import tokenizer

ANSWER_TOKENS_MAX: Final = 8_000
"""Tokens of an answer. Clients warn over 10,000, and refuse 25,000."""

_ERROR_SIZE: Final = 1_000
"""Characters of a line of an error."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The text that a client gets, and whether it is an error."""

    text: str
    is_error: bool = False


def fitted(text: str) -> str:
    """Return a text of at most 8,000 tokens; a longer text is cut, and its end names the sizes."""
    tokens = tokenizer()
    clean = text.encode(errors="replace").decode()
    total = tokens.count(clean)
    if total <= ANSWER_TOKENS_MAX:
        return clean
    end = f"\n\n[cut: {ANSWER_TOKENS_MAX:,} of {total:,} tokens]"
    room = ANSWER_TOKENS_MAX - tokens.count(end)
    while True:
        cut = clean[: tokens.cut(clean, room)].rstrip() + end
        excess = tokens.count(cut) - ANSWER_TOKENS_MAX
        if excess <= 0:
            return cut
        # Tokens may join otherwise where the two texts meet.
        room -= excess


def error_text(error: CerataError) -> str:
    """Return the lines of an error: its class and fault, its place, its remedy."""
    lines = [f"error: {type(error).__name__}: {on_one_line(error.what)}"]
    if error.where:
        lines.append(f"where: {on_one_line(error.where)}")
    if error.remedy:
        lines.append(f"remedy: {on_one_line(error.remedy)}")
    return "\n".join(line[:_ERROR_SIZE] for line in lines)


# --- entries -------------------------------------------------------------------------------------


def entry_text(view: View, frame: Frame) -> str:
    """Return an entry: its source with its state and author, then its whole text."""
    lines = [f"[{view.files.source(frame)}{_after(state_of(frame))}]"]
    details = (
        ("by", credit(frame.actor, frame.reason).removeprefix("by ")),
        ("closed", "" if frame.closed is None else frame.closed.credit),
        ("tags", ", ".join(map(on_one_line, frame.tags))),
        ("about", ", ".join(map(_day, frame.content_dates))),
    )
    lines += [f"{name}: {value}" for name, value in details if value]
    return "\n".join([*lines, _text_of(frame, headings=False)])


def version_text(frame: Frame) -> str:
    """Return a version of an entry: its state and day, then its whole text."""
    state = state_of(frame) or "current"
    by = credit(frame.actor, frame.reason)
    heading = f"#{frame.id} {state} · {frame.recorded:%Y-%m-%d}{_after(by)}"
    return f"{heading}\n{_text_of(frame, headings=True)}"


def _text_of(frame: Frame, *, headings: bool) -> str:
    """Return the text of an entry; lines that look like the source of another have a backslash.

    Versions begin with a number sign and digits, so among them such headings are marked too.
    """
    return marked(frame.text, headings=headings) or f"({frame.size:,} bytes)"


def state_of(frame: Frame) -> str:
    """Return the state of an entry that is not current; empty for a current entry."""
    if frame.superseded_by is not None:
        return f"replaced by #{frame.superseded_by}"
    if frame.is_expired:
        return "expired"
    return "" if frame.active else "hidden"


def _after(text: str) -> str:
    return f" · {text}" if text else ""


# --- facts ---------------------------------------------------------------------------------------


def statement(fact: Fact) -> str:
    """Return subject, predicate and object on one line."""
    return on_one_line(str(fact))


def fact_line(fact: Fact) -> str:
    """Return a fact on one line: statement, both periods, state and evidence."""
    return "; ".join([f"#{fact.id} {statement(fact)}", *_details(fact)])


def _details(fact: Fact) -> Iterator[str]:
    yield f"valid {period_text(fact.valid)}"
    known = ("open" if when is None else f"{when:%Y-%m-%d}" for when in _ends(fact.known))
    yield f"known {' to '.join(known)}"
    if fact.retracted_by is not None:
        yield f"retracted by event {fact.retracted_by}"
    elif fact.standing is not Standing.STANDS:
        yield str(fact.standing)
    if fact.is_ended:
        yield "ended" if fact.ended_by is None else f"ended by #{fact.ended_by}"
    if fact.source != "observed":
        yield f"{fact.source}, {fact.confidence:.0%}"
    frames = dict.fromkeys(f"#{place.frame}" for place in fact.evidence)
    if frames:
        yield f"evidence {', '.join(frames)}"


def period_text(period: Period) -> str:
    """Return a period: "2024-03-01 to open"."""
    return " to ".join("open" if when is None else _day(when) for when in _ends(period))


def _ends(period: Period) -> tuple[datetime | None, datetime | None]:
    return period.start, period.end


def _day(when: datetime) -> str:
    midnight = (when.hour, when.minute, when.second, when.microsecond) == (0, 0, 0, 0)
    return f"{when:%Y-%m-%d}" if midnight else f"{when:%Y-%m-%d %H:%M}"


# --- changes -------------------------------------------------------------------------------------


def change_text(change: Change | FactChange) -> str:
    """Return a change: its title and the lines that differ, or a fact on one line."""
    if isinstance(change, FactChange):
        sign = {"added": "+", "removed": "-", "changed": "~"}[change.kind]
        fact = change.fact
        old = change.old
        was = "" if old is None or change.new is None else f", was {period_text(old.valid)}"
        return f"{sign} #{fact.id} {statement(fact)}; valid {period_text(fact.valid)}{was}"
    lines, left = change.excerpt
    more = [f"  … {left:,} more lines"] if left else []
    return "\n".join([change.title, *(f"  {line.marked}" for line in lines), *more])


def moment_of(change: Change | FactChange) -> int:
    """Return the event of a change, by which changes are sorted."""
    if isinstance(change, Change):
        return change.seq
    fact = change.fact
    if change.kind == "removed" and fact.retracted_by is not None:
        return fact.retracted_by
    if change.kind == "changed" and fact.ended_by is not None:
        return fact.ended_by
    return fact.id
