"""Repeats: the stored fact that an assertion would only repeat.

Owns the translation of a draft for `cerata.projections.facts.repeats`, which has the rules.
"""

from collections.abc import Collection

import msgspec

from cerata.engine.events import AssertFact, Draft
from cerata.projections.facts.repeats import Repeats

from ..batch.block import triple_of
from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot


def stored_fact(
    snapshot: Snapshot, log: Repeats, draft: Draft, now: int, drafted: Collection[object]
) -> int | None:
    """Return the id of the fact that a draft would only repeat, or None.

    The drafts of a transaction are folded only if the log or a draft has the triple: ``log`` has
    the facts of the log, ``drafted`` the `triple_of` each draft.
    """
    body = draft.body
    assert isinstance(body, AssertFact)
    if triple_of(body) not in drafted and not log.rows(draft.scope, body):
        return None
    places = [
        msgspec.structs.replace(place, frame=snapshot.seq_of(place.frame))
        for place in body.evidence
    ]
    if places:
        body = msgspec.structs.replace(body, evidence=tuple(places))
    repeats = snapshot.repeats
    row = repeats.row(draft.scope, body, max(now, snapshot.last_us))
    if row is None:
        return None
    ids = [id_of_seq(seq, snapshot.basis) for seq in repeats.facts.ids_of([row])]
    if draft.causation is None or any(
        snapshot.cause_of(number) == draft.causation for number in ids
    ):
        return ids[0]
    return None
