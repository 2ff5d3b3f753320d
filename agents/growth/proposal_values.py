"""Proposals: the frames in which an agent asks for a change, and the hash that a verdict has.

Owns the fields of these frames. Leaves out the gates (`gates`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from msgspec.structs import replace

from cerata.engine.arguments import is_integer
from cerata.engine.events import EventBody, PutFrame
from cerata.engine.salted_hashes import judged_hash

PROPOSAL: Final = "proposal"
ASSESSMENT: Final = "assessment"
ALIGN: Final = "align"
"""The ``metadata.task`` of an assessment that compares a proposal with SOUL."""

IDENTITY: Final = "identity"
SCAFFOLD: Final = "scaffold/"
TARGETS: Final = (
    IDENTITY,
    *(f"{SCAFFOLD}{part}" for part in ("tools", "rules", "workflows", "parameters")),
)
"""The ``metadata.target`` of a proposal."""

VerdictName: TypeAlias = Literal["approve", "reject", "revoke"]


class Judged(Protocol):
    """A proposal as a person saw it."""

    @property
    def id(self) -> int:
        """The id of the proposal's frame."""
        ...

    @property
    def content(self) -> bytes:
        """The hash of target and text that a verdict on this proposal has."""
        ...


def target_and_text(body: object) -> tuple[str, str] | None:
    """Return the target and the text of a proposal's frame; None for anything else."""
    if not isinstance(body, PutFrame) or body.kind != PROPOSAL or body.text is None:
        return None
    target = body.metadata.get("target")
    if target not in TARGETS or body.chunk_index is not None or body.chunk_count is not None:
        return None
    return target, body.text


def content_of(body: object, salt: bytes | None) -> bytes | None:
    """Return the hash that a verdict binds, from a frame's body and salt; None for no proposal."""
    content = target_and_text(body)
    return None if content is None or salt is None else judged_hash(salt, *content)


def with_moved_ids(body: EventBody, moved: Callable[[int], int | None]) -> EventBody:
    """Return a proposal or an assessment with the ids in its metadata as in another log.

    An id without a place there is left out, so it names no other event by chance. Any other body is
    returned unchanged.

    Args:
        body: The body, as read from a log.
        moved: Returns the seq of an event in the other log, or None.
    """
    if not isinstance(body, PutFrame):
        return body
    values = body.metadata
    if target_and_text(body) is not None:
        names = ["candidate", "because"]
    elif body.kind == ASSESSMENT and values.get("task") == ALIGN:
        names = ["proposal"]
    else:
        return body
    new: dict[str, Any] = dict(values)
    for name in names:
        value: object = values.get(name)
        if isinstance(value, list):
            ids = filter(is_integer, cast("list[object]", value))
            new[name] = [seq for seq in map(moved, ids) if seq is not None]
        elif is_integer(value):
            new[name] = moved(value)
            if new[name] is None:
                del new[name]
    return replace(body, metadata=new)
