"""Conditional drafts: events that the log may have only if no other writer came between.

Owns the conditions of a draft. Leaves out their checks, before and under the lock (`frame_rules`,
`frame_rules`, `vector_rules`).
"""

from typing import TypeAlias

import msgspec

from cerata.engine.events import Draft

Spaces: TypeAlias = tuple[str, str | None]
"""The spaces of an embedder: of its vectors, and of its token vectors."""


class ConditionalDraft(Draft, frozen=True, gc=False):
    """A draft with conditions; the log does not store them.

    - ``only_of_uri``: the frame becomes the only current frame with its URI in its scope. The batch
      also closes the frames that the frame replaces.
    - ``sources``: the frames of the log that the batch carries over, or closes. No event after the
      event ``basis`` closes one of them, embeds one, puts a frame below one, or puts a frame for
      the same cause as this draft.
    - ``embedder``: the draft has vectors of this embedder, or records it. Its tenant uses no other.
    """

    only_of_uri: bool = False
    sources: tuple[int, ...] = ()
    basis: int = 0
    embedder: Spaces | None = None


def conditional(
    draft: Draft,
    *,
    only_of_uri: bool = False,
    sources: tuple[int, ...] = (),
    basis: int = 0,
    embedder: Spaces | None = None,
) -> ConditionalDraft:
    """Return a draft with these conditions, and those that it has."""
    if not isinstance(draft, ConditionalDraft):
        draft = ConditionalDraft(**msgspec.structs.asdict(draft))
    return msgspec.structs.replace(
        draft,
        only_of_uri=only_of_uri or draft.only_of_uri,
        sources=sources or draft.sources,
        basis=basis or draft.basis,
        embedder=embedder or draft.embedder,
    )
