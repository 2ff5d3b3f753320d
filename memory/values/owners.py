"""Owners: the one table of who may write, correct, supersede, hide and import each kind.

A handle has a role, and a batch of the handle is checked against the table (`batch.owner_rules`). A
program may write everything; every other role writes the free kinds and its own kinds, and
changes or hides no other frame. A kind that the table does not name is free, since programs choose
kinds of their own. An event type that it does not name is for programs and copies alone.

Owns the table. Leaves out where a role is given: MCP, the adapters, importers and extractors take
a handle of their role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.packs import Owned, Pack, of_packs, packs

_KERNEL: Final = (Owned("the file", None, events=("branch", "erase", "gap"), is_copied=False),)


@of_packs
def table() -> tuple[Owned, ...]:
    """Return a row for each owned kind, start of a URI, and event type; a pack adds rows."""
    return (*_KERNEL, *(owned for pack in packs() for owned in pack.owns))


@of_packs
def no_memories() -> frozenset[str]:
    """Return the kinds of frames that a search returns only if its filter or query names them."""
    return frozenset(kind for owned in table() if not owned.is_memory for kind in owned.kinds)


FREE_KINDS: Final = ("text", "document", "message", "knowledge", "tool_result")
"""The kinds that Cerata gives to frames which every role may write.

A turn of a chat file may be a tool_result; the recorded results of a run are below the run."""

FREE_EVENTS: Final = frozenset(
    (
        *("putFrame", "deleteFrame", "supersedeFrame", "putEmbedding", "useEmbedder", "putTag"),
        *("assertFact", "retractFact", "putPredicate", "putEntity", "extractFacts"),
        *("mergeEntities", "unmergeEntities", "splitEntity", "unsplitEntity"),
        *("linkFacts", "unlinkFacts", "recall", "access", "importBatch"),
    )
)
"""The event types that every role may write; an event that names a frame follows its owner."""


@of_packs
def _by_kind() -> dict[str, Owned]:
    return {kind: owned for owned in table() for kind in owned.kinds}


@of_packs
def _by_uri() -> tuple[tuple[str, Owned], ...]:
    return tuple((uri, owned) for owned in table() for uri in owned.uris)


@of_packs
def _by_event() -> dict[str, Owned]:
    return {event: owned for owned in table() for event in owned.events}


def check_owners(own: Iterable[Pack]) -> None:
    """Refuse packs that protect kinds, starts of URIs or events of another part.

    Raises:
        InvalidInput: with the owner that has the name.
    """
    for pack in own:
        for owned in () if pack in packs() else pack.owns:
            for kind in owned.kinds:
                row = _by_kind().get(kind)
                taken = "everyone" if kind in FREE_KINDS else "" if row is None else row.name
                _check_free(f"The kind {kind!r}", taken, pack)
            for uri in owned.uris:
                taken = next((row.name for start, row in _by_uri() if _overlap(uri, start)), "")
                _check_free(f"The URI {uri!r}", taken, pack)
            for name in owned.events:
                taken = "" if name in pack.events else "events of another pack"
                _check_free(f"The event {name!r}", taken, pack)


def _overlap(uri: str, start: str) -> bool:
    return uri.startswith(start) or start.startswith(uri)


def _check_free(subject: str, taken: str, pack: Pack) -> None:
    if taken:
        raise InvalidInput(
            f"{subject} is taken by {taken}",
            where=f"pack {pack.name!r}",
            remedy="Own kinds, starts of URIs and events of the pack alone.",
        )


def owners_of_frame(kind: str | None, uri: str | None) -> Iterator[Owned]:
    """Yield the rows of a frame, that of its kind before that of its URI; none if it is free.

    A frame of two rows needs the right of both: a URI names what a reader expects there.
    """
    if kind in _by_kind():
        yield _by_kind()[kind]
    if uri is not None:
        yield from (owned for start, owned in _by_uri() if uri.startswith(start))


def owner_of_event(wire_name: str) -> Owned | None:
    """Return the row of an event type, None if it is free or not in the table."""
    return _by_event().get(wire_name)
