"""The difference between two states of a memory, frame by frame and fact by fact.

Owns `Diff` and `Change`, and their printed forms. A document with chunks counts as one frame.
Leaves out the choice of the states (`store`).
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.columns import I64, Mask

from ..facts.changes import FactChange, fact_changes
from ..snapshot.layers import Layers
from ..snapshot.snapshot import Snapshot
from ..values.frames import Frame

_LINES_MAX = 12
"""Lines that a change prints; the rest is counted."""

_WIDTH = 78
"""Characters at which a printed line is cut, so that the line fits a terminal of 80 columns."""


@dataclass(frozen=True)
class Change(PlainValue):
    """The change of a frame between two states.

    - An added frame has no ``old``, a removed frame no ``new``.
    - ``old`` and ``new`` have the same id if the frame is a document whose chunks changed.
    - ``seq`` is the event of the change, the last of several.
    - If the newer state comes first, the direction is reversed.
    """

    _plain = ("kind", "seq", "old", "new")

    seq: int
    old: Frame | None
    new: Frame | None

    @property
    def kind(self) -> Literal["added", "removed", "replaced", "changed"]:
        """The kind of the change."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.old.id == self.new.id else "replaced"

    def __str__(self) -> str:
        old = "" if self.old is None else self.old.text
        new = "" if self.new is None else self.new.text
        compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        # Skip the first two lines, which name files.
        lines = [line for line in list(compared)[2:] if not line.startswith("@@")]
        if len(lines) > _LINES_MAX:
            left = len(lines) - _LINES_MAX
            lines[_LINES_MAX:] = [f"  … and {left:,} line{'s' if left > 1 else ''} more"]
        return "\n".join(_cut(line) for line in [self._title, *lines])

    @property
    def _title(self) -> str:
        ids = dict.fromkeys(frame.id for frame in (self.old, self.new) if frame is not None)
        numbers = " → ".join(f"#{number}" for number in ids)
        frame = self.new or self.old
        name = frame and (frame.title or frame.uri)
        return f"{self.kind} {numbers}{f' · {name}' if name else ''}"


@dataclass(frozen=True)
class Diff(PlainValue):
    """The difference between the states at seq ``a`` and seq ``b``; falsy if they are equal.

    - ``added``, ``removed``, ``replaced`` and ``changed`` (documents whose chunks changed) have the
      ids of frames.
    - Iteration reads the frames, in the order of the log; `str` gives the changes as text.
    - ``facts`` has the changes of facts.
    - Pending events have the seqs that they get if no other writer appends first.
    """

    a: int
    b: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    replaced: tuple[tuple[int, int], ...]
    changed: tuple[int, ...]
    _seqs: tuple[int, ...]
    """The seq of each change: of ``added``, ``removed``, ``replaced`` and ``changed`` in turn."""
    _older: Snapshot = field(repr=False, compare=False)
    _newer: Snapshot = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The views belong to their process, so a copy carries the values read from them.
        views = ("_older", "_newer")
        state = {name: value for name, value in vars(self).items() if name not in views}
        return {**state, "changes": self.changes, "facts": self.facts}

    def __bool__(self) -> bool:
        return bool(self._seqs) or bool(self.facts)

    def __len__(self) -> int:
        """Return how many frames differ."""
        return len(self._seqs)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes with their frames, each as of its side's view."""
        first, second = self._older, self._newer
        if self.a > self.b:
            first, second = second, first
        pairs: list[tuple[int | None, int | None]] = [
            *((None, frame) for frame in self.added),
            *((frame, None) for frame in self.removed),
            *self.replaced,
            *((frame, frame) for frame in self.changed),
        ]
        changes = [
            Change(
                seq,
                None if old is None else first.frame_at(old),
                None if new is None else second.frame_at(new),
            )
            for seq, (old, new) in zip(self._seqs, pairs, strict=True)
        ]
        return tuple(sorted(changes, key=lambda change: change.seq, reverse=self.a > self.b))

    @cached_property
    def facts(self) -> tuple[FactChange, ...]:
        """The changes of facts, by id; of views with an instant, the changes of true facts.

        Cost: see `cerata.memory.facts.changes.fact_changes`.
        """
        first, second = self._older, self._newer
        return fact_changes(*((second, first) if self.a > self.b else (first, second)))

    @property
    def summary(self) -> str:
        """A line with the two seqs, and the count of changes of each kind."""
        counts = f"{len(self.added):,} added, {len(self.removed):,} removed"
        changed = f", {len(self.changed):,} changed" if self.changed else ""
        frames = f"{self.a:,} → {self.b:,}: {counts}, {len(self.replaced):,} replaced{changed}"
        if not self.facts:
            return frames
        kinds = Counter(change.kind for change in self.facts)
        facts = ", ".join(
            f"{kinds[kind]:,} {kind}" for kind in ("added", "removed", "changed") if kinds[kind]
        )
        return f"{frames}; facts: {facts}"

    def __str__(self) -> str:
        facts = "\n".join(_cut(str(change)) for change in self.facts)
        return "\n\n".join([*map(str, self), *([facts] if facts else []), self.summary])

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "a": self.a,
            "b": self.b,
            "changes": [change.to_dict() for change in self],
            "facts": [change.to_dict() for change in self.facts],
        }


def diff(a: Snapshot, b: Snapshot) -> Diff:
    """Return the difference between two views of one memory and scope.

    Cost: a mask over the frames of each state, and a look-up of each frame that differs.

    Raises:
        InvalidInput: neither state continues the other.
    """
    older, newer = (a, b) if _end(a) <= _end(b) else (b, a)
    _check_goes_on(older, newer)
    before, after = _current(older), _current(newer)
    only_before = np.setdiff1d(before, after, assume_unique=True).tolist()
    only_after = np.setdiff1d(after, before, assume_unique=True).tolist()
    removed: list[tuple[int, int]] = []
    replaced: list[tuple[int, tuple[int, int]]] = []
    new = set(only_after)
    for frame in only_before:
        seq, heir = _became(newer, frame)
        if heir is not None and heir in new:
            replaced.append((seq, (frame, heir)))
        else:
            # The frame was deleted, or superseded by a frame that both states have.
            removed.append((seq, frame))
    heirs = {heir for _, (_, heir) in replaced}
    added = sorted(
        (newer.layers.moment(frame), frame) for frame in only_after if frame not in heirs
    )
    changed = _changed(older, newer, np.intersect1d(before, after, assume_unique=True))
    if older is b:
        added, removed = removed, added
        replaced = [(seq, (heir, frame)) for seq, (frame, heir) in replaced]
    return Diff(
        a=_end(a),
        b=_end(b),
        added=tuple(frame for _, frame in added),
        removed=tuple(frame for _, frame in removed),
        replaced=tuple(pair for _, pair in replaced),
        changed=tuple(frame for _, frame in changed),
        _seqs=tuple(seq for seq, _ in [*added, *removed, *replaced, *changed]),
        _older=older,
        _newer=newer,
    )


def _end(snapshot: Snapshot) -> int:
    """Return the last event of a state; pending events count as appended at its basis."""
    return snapshot.basis + len(snapshot.unsalted_drafts)


def _check_goes_on(older: Snapshot, newer: Snapshot) -> None:
    """Raise `InvalidInput` unless ``older`` is a beginning of ``newer``."""
    pending = older.unsalted_drafts
    is_beginning = newer.basis == older.basis and newer.unsalted_drafts[: len(pending)] == pending
    if not is_beginning if pending else newer.basis < older.basis:
        raise InvalidInput(
            "Neither state continues the other: one state has the events of a transaction, the "
            "other has events that were appended beside them",
            remedy="Compare with the basis of the transaction: diff(view.basis, view).",
        )


def _current(snapshot: Snapshot) -> I64:
    """Return the ids of the current frames, chunks left out."""
    layers = snapshot.layers
    return _ids(layers, layers.whole(layers.open))


def _ids(layers: Layers, masks: Sequence[Mask]) -> I64:
    return np.concatenate(
        [layer.ids(np.flatnonzero(mask)) for layer, mask in zip(layers.all, masks, strict=True)]
    )


def _became(snapshot: Snapshot, frame: int) -> tuple[int, int | None]:
    """Return the seq at which a frame's last successor was closed, and the current successor.

    The successor is None if the frame, or its last successor, was deleted.
    """
    layers = snapshot.layers
    closing = layers.closing_of(frame)
    assert closing is not None
    seq, heir = closing.seq, closing.by
    while heir is not None and (closing := layers.closing_of(heir)) is not None:
        seq, heir = closing.seq, closing.by
    return seq, heir


def _changed(older: Snapshot, newer: Snapshot, common: I64) -> list[tuple[int, int]]:
    """Return the frames of both states whose chunks differ, each with the seq of the change."""
    layers = newer.layers
    before = _ids(older.layers, older.layers.parts(older.layers.open))
    after = _ids(newer.layers, newer.layers.parts(newer.layers.open))
    since: dict[int, int] = {}
    for part in np.setxor1d(before, after, assume_unique=True).tolist():
        document, closing = layers.parent_of(part), layers.closing_of(part)
        if document is not None:
            moment = layers.moment(part) if closing is None else closing.seq
            since[document] = max(since.get(document, 0), moment)
    whole = np.intersect1d(common, np.array(list(since), np.int64)).tolist()
    return sorted(
        (since[document], document)
        for document in whole
        if older.layers.chunks(document) != layers.chunks(document)
    )


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
