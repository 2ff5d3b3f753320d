"""Frames near a question in the graph of facts: hops from its entities to the facts read in them.

Owns the walk. A fact of an entity that the question names is one hop away, a fact of an entity in
that fact is two. Leaves out the public reads of the graph (`cerata.memory.graph.reads`), whose
edges need two entities, and the score by hop (`cerata.retrieval.ranking.fusion`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.projections.facts.entities import Entities
from cerata.projections.facts.objects import ObjectKind
from cerata.projections.fulltext.analyzer import words

from ..snapshot.fact_conversion import id_of_seq
from .filtering import passing_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cerata.projections.frames.filters import Filter

    from ..snapshot.snapshot import Snapshot

HOPS: Final = 3
"""Most facts from an entity of the question to a frame; ours."""

_FACTS: Final = 256
"""Facts of a hop that are followed, the newest: more are those of a hub, which joins everything."""

_WORDS_MAX: Final = 64
"""Words at the start of a question that are searched for names of entities."""


def hops_to_frames(snapshot: Snapshot, query: str, where: Filter | None = None) -> dict[int, int]:
    """Return the hops to each frame that is evidence for a fact near the question, nearest first.

    Frames of equal hops are in order of their ids. ``where`` narrows the facts (`filtering`).

    Cost: a look at the facts of the named entities, then of those of at most 256 facts a hop.
    """
    facts = snapshot.facts_at
    if not facts.row_count:
        return {}
    named = Entities(facts).entities_in([word.decode() for word in words(query)[:_WORDS_MAX]])
    frontier = sorted(set(named))
    seen_names = set(frontier)
    seen_rows: set[int] = set()
    hops: dict[int, int] = {}
    for hop in range(1, HOPS + 1):
        rows = _true_rows(snapshot, _rows_of(snapshot, frontier, where) - seen_rows)
        seen_rows.update(rows)
        reached = {
            id_of_seq(place.frame, snapshot.basis)
            for row in rows
            for place in facts.evidence_of(row)
        }
        hops.update((frame, hop) for frame in sorted(reached.difference(hops)))
        names = {name for row in rows for name in _names_of(snapshot, row)}
        frontier = sorted(names - seen_names)
        seen_names.update(frontier)
    return hops


def _rows_of(
    snapshot: Snapshot, names: Iterable[tuple[int, str]], where: Filter | None
) -> set[int]:
    """Return the known rows that name entities of tenants, the newest 256."""
    facts, instant = snapshot.facts_at, snapshot.valid_at_us
    rows: set[int] = set()
    for tenant, name in names:
        entity = ObjectKind.ENTITY, name
        as_subject = facts.find(name, instant=instant)
        as_object = facts.find(object_=entity, instant=instant)
        rows.update(facts.of_tenant({*as_subject, *as_object}, tenant))
    ordered = np.array(sorted(rows), np.int64)
    if where is not None:
        ordered = passing_rows(snapshot, ordered, where)
    return set(ordered[-_FACTS:].tolist())


def _true_rows(snapshot: Snapshot, rows: set[int]) -> list[int]:
    """Return rows, ascending, that are true at the instant of the view; without one, all."""
    instant = snapshot.valid_at_us
    if instant is None:
        return sorted(rows)
    spans = snapshot.facts_at.spans(sorted(rows))
    return [span.row for span in spans if span.valid.contains(instant)]


def _names_of(snapshot: Snapshot, row: int) -> Iterable[tuple[int, str]]:
    """Return the tenant and name of the entities of a row, as read."""
    facts = snapshot.facts_at
    for tenant, code in facts.entities_of(row):
        yield tenant, facts.facts.columns.strings.text(code)
