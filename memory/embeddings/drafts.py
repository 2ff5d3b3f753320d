"""Drafts with vectors: the embedding of texts before a write.

The embedder runs before any lock is taken. Leaves out stored frames without a vector (`commands`)
and the look-up of vectors (`cache`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cerata.engine.codec import tenant_of
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, EventBody, PutFrame, Scope
from cerata.engine.late import late
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.projections.columnar.scopes import tenant_in

from ..batch.conditional_draft import conditional
from ..batch.embedder_use import check_room, has_vectors
from ..batch.session import WriteSession, contents_of
from ..batch.text_dates import with_text_dates
from ..values.arguments import arguments_hash
from .cache import TextVectors, embedded_text, makers_of

if TYPE_CHECKING:
    from cerata.projections.rows.built_in import Used
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders.embedder import Embedder

    from ..batch.block import Block
    from ..snapshot import snapshot as snapshots
    from ..values.frames import Receipt
else:
    built_in = late("cerata.retrieval.embedders.built_in")
    snapshots = late("cerata.memory.snapshot.snapshot")

_OF_BLOCKS: WeakKeyDictionary[Block, Sequence[TextVectors]] = WeakKeyDictionary()
"""The vectors of the texts of each open transaction, for its later calls."""


def put_embedded(
    session: WriteSession,
    drafts: Sequence[Draft],
    key: str | None = None,
    *,
    finds_dates: bool = True,
    arguments: bytes | None = None,
    through: int | None = None,
) -> Receipt:
    """Append drafts with the vectors of their texts and, by default, the dates that these name.

    The hash stored with a key leaves out both, which are no arguments of the caller; with
    ``arguments`` it is that hash. ``through`` is the `newest_known_seq` of a caller that looked.
    """
    if key is None:
        arguments = None
    elif arguments is None:
        arguments = arguments_hash(contents_of(drafts))
    if finds_dates:
        drafts = with_text_dates(session, drafts)
    # One look at the log serves all reads of the call.
    through = session.newest_known_seq() if through is None else through
    notices: tuple[str, ...] = ()
    if session.embedders.choice is not None or session.uses.are_any(through):
        drafts = with_vectors(session, drafts, text_vectors(session, through), key)
        notices = notices_of(session, drafts, through)
    receipt = session.write(drafts, key=key, arguments=arguments)
    return noted(session, receipt, notices) if notices else receipt


def notices_of(
    session: WriteSession, drafts: Sequence[Draft], through: int | None = None
) -> tuple[str, ...]:
    """Return the reasons for which texts of drafts have no vector.

    Called before the write: an error of this read after it would refuse what is written.

    Args:
        session: The session that writes the drafts.
        drafts: The drafts, with their vectors.
        through: The last event that counts; default the newest.
    """
    if through is not None and not session.uses.are_any(through):
        return ()
    lacking: dict[str, Scope] = {}
    last: Scope | None = None
    for draft in _without_embedding(drafts):
        # The drafts of a call mostly share one scope object.
        if draft.scope is not last and _lacks_vector(draft.body):
            last = draft.scope
            lacking[tenant_in(last)] = last[:1]
    if not lacking:
        return ()
    seq = session.newest_seq() if through is None else through
    obstacles = [session.embedder_obstacle(scope, seq) for scope in lacking.values()]
    lines = (f"stored without vectors: {obstacle}" for obstacle in obstacles if obstacle)
    return tuple(dict.fromkeys(lines))


def _without_embedding(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts of frames without a vector; most batches have none, or no other draft."""
    return [
        draft
        for draft in drafts
        if isinstance(draft.body, PutFrame) and draft.body.embedding is None
    ]


def _lacks_vector(body: EventBody) -> bool:
    return isinstance(body, PutFrame) and body.embedding is None and embedded_text(body) is not None


def noted(session: WriteSession, receipt: Receipt, notices: tuple[str, ...]) -> Receipt:
    """Return a receipt with the notices of its drafts, which the transaction keeps, too."""
    if not receipt.added or not notices:
        return receipt
    block = session.open_block
    if block is not None:
        block.notices.update(dict.fromkeys(notices))
    return replace(receipt, notices=notices)


def text_vectors(session: WriteSession, through: int | None = None) -> Sequence[TextVectors]:
    """Return the vector caches of a call or of the open transaction; empty without embedder.

    Args:
        session: The session that writes.
        through: The last event that counts for the embedder; default the newest.
    """
    embedder = session.embedder if through is None else session.embedder_at(through)
    if embedder is None:
        return ()
    block = session.open_block
    stored = None if block is None else _OF_BLOCKS.get(block)
    if stored is not None:
        return stored
    vectors = [TextVectors(maker) for maker in makers_of(embedder)]
    if block is not None:
        _OF_BLOCKS[block] = vectors
    return vectors


def with_vectors(
    session: WriteSession,
    drafts: Sequence[Draft],
    vectors: Sequence[TextVectors],
    key: str | None = None,
    *,
    chunks_max: int | None = None,
) -> Sequence[Draft]:
    """Return drafts with the vectors of their texts; ``vectors`` are the call's caches.

    A chunk of a document is embedded if its index is below ``chunks_max``; None for no limit.

    The embedder does not run for a call repeated under its key, which writes nothing, or for a
    batch that is too large, which the append refuses.

    Raises:
        EmbedderFailed: the embedder failed; nothing is written.
        InvalidInput: the memory uses another embedder than the one passed to `open`, or the batch
            has no place for the event that records its first.
        ReadOnly: the store was opened for reading; the embedder did not run.
    """
    if not vectors:
        return drafts
    lacking = [any(cache.lacks(draft.body) for cache in vectors) for draft in drafts]
    embedder = session.embedder if any(lacking) else None
    if embedder is None:
        return drafts
    count = session.next_place() - 1 + len(drafts)
    if count > BATCH_EVENTS_MAX:
        return drafts
    session.check_writable()
    block = session.open_block
    if block is not None:
        is_repeated = block.first is not None
    else:
        tenant = tenant_of(drafts[0].scope)
        is_repeated = (
            key is not None and session.log.find_key(key, tenant, sees=session.sees) is not None
        )
    if is_repeated:
        return drafts
    scopes = {tenant_in(draft.scope): draft.scope[:1] for draft in drafts}
    used = [session.used_embedder(scope) for scope in scopes.values()]
    if not _fits(session, embedder, used):
        return drafts
    check_room(count, used.count(None))
    newest = snapshots.Snapshot(session.log, session.fold, session.log.refresh().seq, session.reach)
    for cache in vectors:
        drafts = cache.of_drafts(drafts, newest, chunks_max)
    spaces = built_in.spaces_of(embedder)
    return [
        conditional(draft, embedder=spaces) if lacked and has_vectors([draft]) else draft
        for draft, lacked in zip(drafts, lacking, strict=True)
    ]


def _fits(session: WriteSession, embedder: Embedder, used: Sequence[Used | None]) -> bool:
    """Return whether the store's embedder is that of the drafts' tenants, or their first.

    A remembered embedder of one tenant embeds no text of a tenant with another embedder.

    Raises:
        InvalidInput: the embedder was passed to `open`, and a tenant uses another embedder.
    """
    for use in used:
        if use is None or use.spaces == built_in.spaces_of(embedder):
            continue
        if session.embedders.passed is None:
            return False
        raise InvalidInput(
            f"The memory uses the embedder of {use.space!r}, not {embedder.identity.space!r}",
            where=f"event {use.seq:,}",
            remedy="Open it without embedder=, or call embeddings.fill() to change its embedder.",
        )
    return True
