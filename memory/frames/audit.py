"""Audits: the changes of a memory with actor, time and request, as text, Markdown and JSON.

Owns the report. Leaves out the filter of events (`events`) and the words for an event
(`event_summary`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from cerata.engine.instants import to_datetime
from cerata.engine.plain_value import PlainValue
from cerata.engine.words import clipped, column, counted
from cerata.retrieval.context.imitation import on_one_line

from .event_summary import act_of, describe

if TYPE_CHECKING:
    from cerata.engine.events import Event, JsonValue

_SUMMARY_MAX = 200
_NOT_NAMED = "(not named)"


@dataclass(frozen=True, slots=True)
class AuditEntry(PlainValue):
    """A change of the memory: an event, with its actor and its request.

    - ``request`` is the correlation id, ``caused_by`` the event that led to this event.
    - ``summary`` is the content in a few words, at most 200 characters.
    """

    seq: int
    recorded: datetime
    actor: str | None
    request: str | None
    caused_by: int | None
    act: str
    summary: str
    reason: str | None

    @property
    def who(self) -> str:
        """The actor, or "(not named)"."""
        return _NOT_NAMED if self.actor is None else on_one_line(self.actor)


@dataclass(frozen=True)
class Audit(PlainValue):
    """The changes of a memory up to a basis, oldest first; `str` gives text.

    - Reads are left out: recalls and accesses change nothing that a reader gets.
    """

    basis: int
    entries: tuple[AuditEntry, ...]

    def __iter__(self) -> Iterator[AuditEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def actors(self) -> dict[str, dict[str, int]]:
        """How often each actor did each act, the most active first."""
        counts: dict[str, Counter[str]] = {}
        for entry in self.entries:
            counts.setdefault(entry.who, Counter())[entry.act] += 1
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1].total(), pair[0]))
        return {who: dict(sorted(acts.items())) for who, acts in ordered}

    @property
    def summary(self) -> str:
        """A line with the counts of changes and actors."""
        return f"{counted(len(self.entries), 'change')} by {counted(len(self.actors), 'actor')}"

    def __str__(self) -> str:
        lines: list[str] = []
        for (recorded, who), group in groupby(self.entries, attrgetter("recorded", "who")):
            entries = list(group)
            lines.append(f"{recorded:%Y-%m-%d %H:%M:%S} UTC  {who}{_request(entries)}")
            lines += [f"  {entry.seq:>7}  {_line(entry)}" for entry in entries]
        return "\n".join([*lines, self.summary])

    @property
    def markdown(self) -> str:
        """The report as Markdown: a table of actors and a table of changes."""
        lines = ["# Audit", "", f"Up to event {self.basis:,}: {self.summary}.", ""]
        lines += ["| who | acts |", "|---|---|"]
        for who, acts in self.actors.items():
            texts = ", ".join(f"{count:,} {act}" for act, count in acts.items())
            lines.append(f"| {_cell(who)} | {_cell(texts)} |")
        lines += ["", "| event | when | who | act | change | reason | request |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for entry in self.entries:
            cells = (
                *(str(entry.seq), f"{entry.recorded:%Y-%m-%d %H:%M:%S}", entry.who, entry.act),
                *(entry.summary, entry.reason or "", entry.request or ""),
            )
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, JsonValue]:
        actors: dict[str, JsonValue] = {who: {**acts} for who, acts in self.actors.items()}
        entries: list[JsonValue] = [entry.to_dict() for entry in self.entries]
        return {"basis": self.basis, "actors": actors, "entries": entries}


_READS = ("recall", "access")


def audit_of(events: Iterable[Event], basis: int) -> Audit:
    """Return the audit of events, in order; recalls and accesses are left out."""
    return Audit(basis, tuple(_entry(event) for event in events if event.type not in _READS))


def _entry(event: Event) -> AuditEntry:
    return AuditEntry(
        seq=event.seq,
        recorded=to_datetime(event.recorded),
        actor=event.actor,
        request=event.correlation,
        caused_by=event.causation,
        act=act_of(event.type),
        summary=clipped(on_one_line(describe(event)), _SUMMARY_MAX),
        reason=event.reason,
    )


def _request(entries: list[AuditEntry]) -> str:
    requests = {entry.request for entry in entries} - {None}
    texts = ", ".join(sorted(on_one_line(request) for request in requests if request is not None))
    return f", on request {texts}" if texts else ""


def _line(entry: AuditEntry) -> str:
    reason = "" if entry.reason is None else f" ({on_one_line(entry.reason)})"
    return f"{column(entry.act, 11)}{entry.summary}{reason}"


def _cell(text: str) -> str:
    """Return a text for a cell of a table, in which no character starts markup or another cell."""
    line = on_one_line(text)
    return "".join(f"\\{letter}" if letter in "\\|`*_[]<>#" else letter for letter in line)
