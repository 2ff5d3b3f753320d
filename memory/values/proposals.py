"""Proposals: the frames in which an agent asks for a change, and the hash that a verdict has.

Owns the fields of these frames. Leaves out the gates (`cerata.memory.growth`).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

from cerata.engine.events import PutFrame
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
