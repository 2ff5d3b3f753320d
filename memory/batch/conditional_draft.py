"""Conditional drafts: events that the log may have only if no other writer came between.

Owns the conditions of a draft. Leaves out their checks, before and under the lock (`uri_rules`,
`version_rules`).
"""

import msgspec

from cerata.engine.events import Draft


class ConditionalDraft(Draft, frozen=True, gc=False):
    """The draft of a frame with conditions; the log does not store them.

    - ``only_of_uri``: the frame becomes the only current frame with its URI in its scope. The batch
      also closes the frames that the frame replaces.
    - ``sources``: the frames of the log that the batch carries over, or closes. No event after the
      event ``basis`` closes one of them, embeds one, puts a frame below one, or puts a frame for
      the same cause as this draft.
    """

    only_of_uri: bool = False
    sources: tuple[int, ...] = ()
    basis: int = 0


def conditional(
    draft: Draft, *, only_of_uri: bool, sources: tuple[int, ...] = (), basis: int = 0
) -> ConditionalDraft:
    """Return a draft with conditions."""
    fields = msgspec.structs.asdict(draft)
    return ConditionalDraft(**fields, only_of_uri=only_of_uri, sources=sources, basis=basis)
