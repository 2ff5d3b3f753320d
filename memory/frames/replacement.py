"""Replacing a URI: one new frame takes the place of the current frames with its URI.

Owns the frames that a URI's new frame replaces, and the attempts of an append. The frames are found
and the payloads encoded before the lock; under the lock the batch is refused if another writer
changed the frames of the URI (`batch.uri_rules`), and tried again. Leaves out documents
(`cerata.memory.ingest`), which find their frames here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cerata.engine.events import Draft, PutFrame, Scope, SupersedeFrame

from ..batch.attempts import attempted
from ..batch.conditional_draft import conditional
from ..batch.session import WriteSession, contents_of
from ..batch.text_dates import with_text_dates
from ..embeddings.drafts import noted, notices_of, text_vectors, with_vectors
from ..values.arguments import arguments_hash

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Receipt


def frames_of_uri(snapshot: Snapshot, uri: str, scope: Scope) -> list[int]:
    """Return the current frames with a URI and exactly a scope: no chunk, none below another."""
    frames = snapshot.layers.whole_of_uri(uri, scope)
    # Closing a frame closes the frames below, and a frame cannot be closed twice.
    return [frame for frame in frames if not snapshot.layers.is_below(frame, frames)]


def put_replacing(
    session: WriteSession, draft: Draft, uri: str, key: str | None, *, finds_dates: bool = True
) -> Receipt:
    """Append a frame, and close the current frames with its URI in its scope.

    Unless ``finds_dates`` is False, the frame gets the dates that its text names.

    Raises:
        Conflict: other writers were first in every attempt; or, in a transaction, before the end
            of the block.
    """
    arguments = None if key is None else arguments_hash(contents_of([draft]), "replace")
    if finds_dates:
        [draft] = with_text_dates(session, [draft])
    [draft] = with_vectors(session, [draft], text_vectors(session), key)
    replacing = conditional(draft, only_of_uri=True)

    def attempt(newest: Snapshot) -> Receipt:
        snapshot = newest.within(draft.scope)
        place = session.next_place()
        closing = [
            Draft(SupersedeFrame(old=old, new=-place), draft.scope)
            for old in frames_of_uri(snapshot, uri, draft.scope)
        ]
        notices = notices_of(session, [replacing])
        receipt = session.write([replacing, *closing], key=key, arguments=arguments)
        return noted(session, receipt, notices)

    return attempted(session, attempt, where=uri, in_line=True)


def put_all_replacing(session: WriteSession, drafts: Sequence[Draft]) -> Receipt:
    """Append frames with different URIs in one batch, and close the current frames with these.

    The embedder gets all texts at once. Frames without content dates get the dates in their texts.

    Raises:
        Conflict: other writers were first in every attempt; or, in a transaction, before the end
            of the block.
    """
    drafts = with_text_dates(session, drafts)
    drafts = with_vectors(session, drafts, text_vectors(session))
    replacing = [conditional(draft, only_of_uri=True) for draft in drafts]

    def attempt(newest: Snapshot) -> Receipt:
        first = session.next_place()
        closing = [
            Draft(SupersedeFrame(old=old, new=-first - index), draft.scope)
            for index, draft in enumerate(drafts)
            if isinstance(draft.body, PutFrame) and draft.body.uri is not None
            for old in frames_of_uri(newest.within(draft.scope), draft.body.uri, draft.scope)
        ]
        notices = notices_of(session, replacing)
        return noted(session, session.write([*replacing, *closing]), notices)

    return attempted(session, attempt, in_line=True)
