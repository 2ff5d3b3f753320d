"""The difference between two states of one memory, frame by frame.

Owns `Diff` and `Change`, and how they print. A document that was split counts as one frame. Leaves
out which states are meant (`store`).
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cerata.engine.events import JsonValue
from cerata.projections.columns import I64

from .values import Frame
from .view import View

_LINES_MAX = 12
"""Lines that a change prints; the rest is counted."""

_WIDTH = 78
"""Where a printed line is cut, so that it fits a terminal of 80 columns."""


@dataclass(frozen=True)
class Change:
    """What became of one frame: ``old`` is None where it was added, ``new`` where it was removed.

    ``seq`` is the event that did it. Where the newer state comes first, all is the other way round.
    """

    seq: int
    old: Frame | None
    new: Frame | None

    @property
    def kind(self) -> Literal["added", "removed", "replaced"]:
        """Which of the three it is."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "replaced"

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "kind": self.kind,
            "seq": self.seq,
            "old": None if self.old is None else self.old.to_dict(),
            "new": None if self.new is None else self.new.to_dict(),
        }

    def __str__(self) -> str:
        old = "" if self.old is None else self.old.text
        new = "" if self.new is None else self.new.text
        compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        # The first two lines name files, which there are none of.
        lines = [line for line in list(compared)[2:] if not line.startswith("@@")]
        if len(lines) > _LINES_MAX:
            left = len(lines) - _LINES_MAX
            lines[_LINES_MAX:] = [f"  … and {left:,} line{'s' if left > 1 else ''} more"]
        return "\n".join(_cut(line) for line in [self._title, *lines])

    @property
    def _title(self) -> str:
        numbers = " → ".join(f"#{one.id}" for one in (self.old, self.new) if one is not None)
        shown = self.new or self.old
        named = shown and (shown.title or shown.uri)
        return f"{self.kind} {numbers}{f' · {named}' if named else ''}"


@dataclass(frozen=True)
class Diff:
    """What differs between the states at seq ``a`` and seq ``b``: falsy if nothing does.

    ``added``, ``removed`` and ``replaced`` name frames by id; iterating reads them, in the order in
    which the log changed them. Printing it gives the changes as texts.
    """

    a: int
    b: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    replaced: tuple[tuple[int, int], ...]
    _seqs: tuple[int, ...]
    """Where each became so: of ``added``, ``removed`` and ``replaced``, one after the other."""
    _older: View
    _newer: View

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.replaced)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes with their frames, each as its own side's view saw it."""
        first, second = self._older, self._newer
        if self.a > self.b:
            first, second = second, first
        pairs: list[tuple[int | None, int | None]] = [
            *((None, one) for one in self.added),
            *((one, None) for one in self.removed),
            *self.replaced,
        ]
        found = [
            Change(
                seq,
                None if old is None else first.frame(old),
                None if new is None else second.frame(new),
            )
            for seq, (old, new) in zip(self._seqs, pairs, strict=True)
        ]
        return tuple(sorted(found, key=lambda change: change.seq, reverse=self.a > self.b))

    @property
    def summary(self) -> str:
        """One line: the two points, and how many changes of each kind."""
        counts = f"{len(self.added):,} added, {len(self.removed):,} removed"
        return f"{self.a:,} → {self.b:,}: {counts}, {len(self.replaced):,} replaced"

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self), self.summary])

    def to_dict(self) -> dict[str, JsonValue]:
        return {"a": self.a, "b": self.b, "changes": [change.to_dict() for change in self]}


def diff(a: View, b: View) -> Diff:
    """Return what differs between two views of one memory and scope.

    Cost: a mask over the frames of either state, and a look at each frame that differs.
    """
    older, newer = (a, b) if a.basis <= b.basis else (b, a)
    before, after = _current(older), _current(newer)
    gone = np.setdiff1d(before, after, assume_unique=True).tolist()
    come = np.setdiff1d(after, before, assume_unique=True).tolist()
    removed: list[tuple[int, int]] = []
    replaced: list[tuple[int, tuple[int, int]]] = []
    new = set(come)
    for frame in gone:
        seq, heir = _became(newer, frame)
        if heir is not None and heir in new:
            replaced.append((seq, (frame, heir)))
        else:
            # Deleted, or in favour of a frame that both states have.
            removed.append((seq, frame))
    heirs = {heir for _, (_, heir) in replaced}
    added = [(frame, frame) for frame in come if frame not in heirs]
    if a.basis > b.basis:
        added, removed = removed, added
        replaced = [(seq, (heir, frame)) for seq, (frame, heir) in replaced]
    return Diff(
        a=a.basis,
        b=b.basis,
        added=tuple(frame for _, frame in added),
        removed=tuple(frame for _, frame in removed),
        replaced=tuple(pair for _, pair in replaced),
        _seqs=tuple(seq for seq, _ in [*added, *removed, *replaced]),
        _older=older,
        _newer=newer,
    )


def _current(view: View) -> I64:
    """Return the ids of the current frames, ascending, chunks left out."""
    layers = view.layers
    (mask,) = layers.whole(layers.active)
    return layers.base.ids(np.flatnonzero(mask))


def _became(view: View, frame: int) -> tuple[int, int | None]:
    """Return when a frame was closed for good, and which one is current in its place, if any.

    One in its place may be replaced in turn; the last that is still current counts.
    """
    layers = view.layers
    closing = layers.closing_of(frame)
    assert closing is not None
    seq, heir = closing.seq, closing.by
    while heir is not None and (closing := layers.closing_of(heir)) is not None:
        seq, heir = closing.seq, closing.by
    return seq, heir


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
