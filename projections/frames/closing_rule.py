"""The rule of closings: the frames that a delete or a supersede closes.

Owns the rule over any state of frames: the fold applies it to its columns (`projection`), and an
open transaction to its drafts over the log (`cerata.memory.snapshot.pending`).

- The first closing of a frame wins; a later closing is an anomaly, and so is a supersede that would
  form a cycle of replacements.
- The frames below a closed frame are closed along with it. The replacement of a frame, and its
  replacements in turn, stay open with the frames below them.
"""

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias

from .columns import ClosingKind, FrameAnomaly

StatedKind: TypeAlias = Literal[ClosingKind.DELETE, ClosingKind.SUPERSEDE]

_ALONG = {
    ClosingKind.DELETE: ClosingKind.WITH_DELETED,
    ClosingKind.SUPERSEDE: ClosingKind.WITH_SUPERSEDED,
}


class FrameStates(Protocol):
    """The frames before a closing, each by a number that the implementation chooses."""

    def is_closed(self, frame: int, /) -> bool:
        """Return whether a frame is closed."""
        ...

    def replacement_of(self, frame: int, /) -> int | None:
        """Return the frame that replaced a frame, or None if none did."""
        ...

    def children_of(self, frame: int, /) -> Iterable[int]:
        """Return the frames put directly below a frame, in order."""
        ...


def frames_closed(
    frames: FrameStates, target: int, kind: StatedKind, replacement: int | None
) -> list[tuple[int, ClosingKind]] | FrameAnomaly:
    """Return the frames that an event closes, or the anomaly for which it closes none.

    Args:
        frames: The frames before the event.
        target: The frame that the event names.
        kind: How the event closes the target.
        replacement: The frame that replaces the target, or None.
    """
    successors = _successors(frames, replacement)
    if frames.is_closed(target):
        return FrameAnomaly.ALREADY_CLOSED
    if target in successors:
        return FrameAnomaly.CYCLE
    closed: list[tuple[int, ClosingKind]] = [(target, kind)]
    pending = [target]
    while pending:
        for child in frames.children_of(pending.pop()):
            if child not in successors:
                pending.append(child)
                if not frames.is_closed(child):
                    closed.append((child, _ALONG[kind]))
    return closed


def _successors(frames: FrameStates, replacement: int | None) -> set[int]:
    """Return a frame, its replacement, the replacement of that frame, and so on."""
    chain = set[int]()
    while replacement is not None and replacement not in chain:
        chain.add(replacement)
        replacement = frames.replacement_of(replacement)
    return chain
