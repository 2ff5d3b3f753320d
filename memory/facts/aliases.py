"""Aliases in writes: an assertion about an alias is about the entity that has the alias.

Owns the rule. The name of an entity stays; a name that only one entity has as an alias becomes the
name of that entity before the append, so that the log states it and no later alias changes it.
Leaves out the look-up (`cerata.projections.facts.entities`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cerata.engine.events import AssertFact, Draft, Scope
from cerata.projections.facts.entities import Entities
from cerata.projections.facts.objects import ObjectKind

from ..batch.recent_triples import ALIASES, alias_hash
from ..snapshot.fact_conversion import several_entities

if TYPE_CHECKING:
    from ..batch.recent_triples import KnownFacts
    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot

_ENTITY = ObjectKind.ENTITY.name.lower()


def about_entities(
    session: WriteSession,
    read: Callable[[], Snapshot],
    drafts: Sequence[Draft],
    *,
    keeps_ambiguous: bool = False,
    known_facts: KnownFacts | None = None,
) -> list[Draft]:
    """Return assertions with the names of entities in place of their aliases.

    ``read`` returns the newest state, and ``known_facts`` are the facts of a caller that looked.
    Cost: a look-up of each name, if the memory has an alias;
    folds the log only if a name is an alias.

    Raises:
        InvalidInput: a name is an alias of several entities, unless ``keeps_ambiguous``.
    """
    names: dict[str, None] = {}
    for draft in drafts:
        names.update(dict.fromkeys(_names_in(draft)))
    aliases = _possible_aliases(session, names, known_facts)
    if not aliases:
        return [*drafts]
    snapshot = read()
    settled: dict[tuple[Scope, str], str] = {}
    for draft in drafts:
        for name in aliases.intersection(_names_in(draft)):
            key = draft.scope, name
            if key not in settled:
                settled[key] = entity_meant(
                    session, snapshot, draft.scope, name, keeps_ambiguous=keeps_ambiguous
                )
    return [_renamed(draft, settled) for draft in drafts]


def entity_meant(
    session: WriteSession,
    snapshot: Snapshot,
    scope: Scope,
    name: str,
    *,
    keeps_ambiguous: bool = False,
) -> str:
    """Return the name of the entity that a write in a scope means by a name.

    Raises:
        InvalidInput: the name is an alias of several entities, unless ``keeps_ambiguous``.
    """
    seen = snapshot if session.scope is not None else snapshot.within(scope[:1])
    entities = Entities(seen.facts_at)
    # First, since an entity of many merges has many events, and the first of them is enough.
    if entities.has(name):
        return name
    keys = entities.denoted(name)
    if len(keys) > 1 and not keeps_ambiguous:
        raise several_entities(entities, name, keys)
    return entities.name_of(keys[0]) if len(keys) == 1 else name


def _names_in(draft: Draft) -> list[str]:
    body = draft.body
    assert isinstance(body, AssertFact)
    if body.object_kind == _ENTITY and isinstance(body.object, str):
        return [body.subject, body.object]
    return [body.subject]


def _possible_aliases(
    session: WriteSession, names: dict[str, None], known_facts: KnownFacts | None
) -> set[str]:
    """Return the names that may be aliases: too many, never too few."""
    if known_facts is None:
        known_facts = session.recent_triples.facts_through(session.newest_seq())
    log, recent = known_facts
    later: list[Collection[int]] = []
    for hashes in (recent, session.drafted_triples):
        if ALIASES in hashes:
            later.append(hashes)
    if not later and not log.facts.any_aliases:
        return set()
    return {
        name
        for name in names
        if log.may_be_alias(name) or any(alias_hash(name) in hashes for hashes in later)
    }


def _renamed(draft: Draft, settled: dict[tuple[Scope, str], str]) -> Draft:
    body = draft.body
    assert isinstance(body, AssertFact)
    subject = settled.get((draft.scope, body.subject), body.subject)
    value = body.object
    if body.object_kind == _ENTITY and isinstance(value, str):
        value = settled.get((draft.scope, value), value)
    if (subject, value) == (body.subject, body.object):
        return draft
    return replace(draft, body=replace(body, subject=subject, object=value))
