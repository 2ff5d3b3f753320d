"""History: every event that touched a fact, an entity or a link, in order.

Owns the choice of the events and a verb for each. Leaves out the versions of frames, which are
frames (`history_reads`), and the events that set a field (`blame`).
"""

from dataclasses import dataclass

from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import readable
from cerata.engine.words import clipped
from cerata.retrieval.context.imitation import on_one_line

from ..facts.corrections import correction_of
from ..links.reads import link_named
from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot
from ..values.acts import Act, act_of
from ..values.facts import Fact
from .blame import assertions, corrected_fact
from .event_summary import describe
from .things import Thing, batch_of, entity_events

_SUMMARY_MAX = 200
"""Characters of an event's description."""


@dataclass(frozen=True, slots=True)
class HistoryEntry(PlainValue):
    """An event that touched a fact, an entity or a link, as of a view.

    - ``seq`` is the event, −k for the k-th of an open transaction.
    - ``verb`` is its effect on the thing, such as "asserted", "repeated", "corrected", "retracted",
      "ended" (by a later value), "linked", "unlinked", "named", "merged" or "split".
    - ``summary`` has the event in a few words, ``act`` its actor, time and reason, and ``batch``
      the first and last seq of its batch; empty or None for an event that the scope hides.
    """

    seq: int
    verb: str
    summary: str
    act: Act | None
    batch: tuple[int, int] | None


_Verbs = dict[int, str]
"""The seqs of events, pending events after the basis, each with its verb."""


def history_of(snapshot: Snapshot, thing: Thing) -> list[HistoryEntry]:
    """Return the events that touched a fact, an entity or a link, in order.

    Cost: for a fact a pass over the links, for an entity one over the acts on entities, and a read
    of each event.
    """
    verbs: _Verbs = {}
    if thing.kind == "fact":
        _add_line(snapshot, snapshot.fact_at(thing.number), verbs)
    elif thing.kind == "link":
        _add_link(snapshot, thing.number, verbs)
    else:
        _add_entity(snapshot, thing.name, verbs)
    return [
        *readable(
            sorted(verbs),
            lambda seq: _entry(snapshot, seq, verbs[seq]),
            lambda seq: f"Event {seq:,}",
        )
    ]


def _entry(snapshot: Snapshot, seq: int, verb: str) -> HistoryEntry:
    number = id_of_seq(seq, snapshot.basis)
    event = snapshot.event_of(number)
    if event is None:
        return HistoryEntry(number, verb, "", None, None)
    summary = clipped(on_one_line(describe(event)), _SUMMARY_MAX)
    return HistoryEntry(number, verb, summary, act_of(event), batch_of(snapshot, event))


def _add_line(snapshot: Snapshot, fact: Fact, verbs: _Verbs) -> None:
    """Add the events of a fact, of the facts that it corrects, and of its corrections."""
    line = [fact]
    while (earlier := corrected_fact(snapshot, line[0])) is not None:
        line.insert(0, earlier)
    while (later := correction_of(snapshot, line[-1])) is not None:
        line.append(later)
    for each, following in zip(line, [*line[1:], None], strict=True):
        _add_fact(snapshot, each, verbs, is_corrected=following is not None)


def _add_fact(snapshot: Snapshot, fact: Fact, verbs: _Verbs, *, is_corrected: bool) -> None:
    seqs = [snapshot.seq_of(number) for number in assertions(snapshot, fact)]
    for seq in seqs:
        verbs.setdefault(seq, "asserted" if seq == seqs[0] else "repeated")
    if fact.retracted_by is not None:
        verb = "corrected" if is_corrected else "retracted"
        verbs.setdefault(snapshot.seq_of(fact.retracted_by), verb)
    if fact.ended_by is not None:
        verbs.setdefault(snapshot.seq_of(fact.ended_by), "ended")
    links = snapshot.labelling.links
    if len(links):
        ids = set(seqs)
        for row in links.all_links(closed=True):
            if row.fact in ids or (row.target in ids and not row.is_frame):
                _add_events_of_link(snapshot, row.row, verbs)


def _add_events_of_link(snapshot: Snapshot, row: int, verbs: _Verbs) -> None:
    links = snapshot.labelling.links
    first, *repeats = links.events_of(row)
    verbs.setdefault(first, "linked")
    verbs.update({seq: "repeated" for seq in repeats if seq not in verbs})
    closing = links.closing_of(row)
    if closing is not None:
        verbs.setdefault(closing[1], "unlinked")


def _add_link(snapshot: Snapshot, number: int, verbs: _Verbs) -> None:
    """Add the events of a link, and the events that closed its ends."""
    link = link_named(snapshot, number)
    _add_events_of_link(snapshot, link.row, verbs)
    facts = snapshot.facts_at
    for end in (link.fact,) if link.is_frame else (link.fact, link.target):
        row = facts.row_of(end)
        if row is not None and (closing := facts.known_period_of(row)[2]) is not None:
            verbs.setdefault(closing, "retracted")
    if link.is_frame:
        frame = id_of_seq(link.target, snapshot.basis)
        layers = snapshot.layers
        end_of_frame = layers.closing_of(frame) if layers.has(frame) else None
        if end_of_frame is not None:
            verb = "deleted" if end_of_frame.by is None else "superseded"
            verbs.setdefault(snapshot.seq_of(end_of_frame.seq) or end_of_frame.seq, verb)


def _add_entity(snapshot: Snapshot, name: str, verbs: _Verbs) -> None:
    """Add the acts on an entity's names, and the events of the facts about it."""
    events = entity_events(snapshot, name)
    verbs.update(events.acts())
    facts = snapshot.facts_at
    for row in events.rows():
        first, *repeats = sorted(facts.ids_of([row]))
        verbs.setdefault(first, "asserted")
        verbs.update({seq: "repeated" for seq in repeats if seq not in verbs})
        closing = facts.known_period_of(row)[2]
        if closing is not None:
            verbs.setdefault(closing, "retracted")
