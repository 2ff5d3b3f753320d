"""The difference between two states of one memory, frame by frame and fact by fact.

Owns `Diff` and `Change`, and how they print. A document that was split counts as one frame. Leaves
out which states are meant (`store`).
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
from cerata.projections.columns import I64, Mask

from .fact_changes import FactChange, fact_changes
from .layers import Layers
from .values import Frame
from .view import View

_LINES_MAX = 12
"""Lines that a change prints; the rest is counted."""

_WIDTH = 78
"""Where a printed line is cut, so that it fits a terminal of 80 columns."""


@dataclass(frozen=True)
class Change:
    """What became of one frame: ``old`` is None where it was added, ``new`` where it was removed.

    Both are one frame where it is a document whose parts changed. ``seq`` is the event that did
    it, the last one of several. Where the newer state comes first, all is the other way round.
    """

    seq: int
    old: Frame | None
    new: Frame | None

    @property
    def kind(self) -> Literal["added", "removed", "replaced", "changed"]:
        """Which of the four it is."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.old.id == self.new.id else "replaced"

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
        ids = dict.fromkeys(one.id for one in (self.old, self.new) if one is not None)
        numbers = " → ".join(f"#{number}" for number in ids)
        shown = self.new or self.old
        named = shown and (shown.title or shown.uri)
        return f"{self.kind} {numbers}{f' · {named}' if named else ''}"


@dataclass(frozen=True)
class Diff:
    """What differs between the states at seq ``a`` and seq ``b``: falsy if nothing does.

    ``facts`` has what changed of facts.

    ``added``, ``removed``, ``replaced`` and ``changed`` (documents some of whose parts came or
    went) name frames by id; iterating reads them, in the order in which the log changed them.
    Printing it gives the changes as texts. What a transaction has gathered has the seqs that it
    would get if nobody else wrote.
    """

    a: int
    b: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    replaced: tuple[tuple[int, int], ...]
    changed: tuple[int, ...]
    _seqs: tuple[int, ...]
    """Where each became so: of ``added``, ``removed``, ``replaced``, ``changed``, one by one."""
    _older: View = field(repr=False, compare=False)
    _newer: View = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The views stay with their process: a copy has what they would be read for.
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
        """The changes with their frames, each as its own side's view saw it."""
        first, second = self._older, self._newer
        if self.a > self.b:
            first, second = second, first
        pairs: list[tuple[int | None, int | None]] = [
            *((None, one) for one in self.added),
            *((one, None) for one in self.removed),
            *self.replaced,
            *((one, one) for one in self.changed),
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

    @cached_property
    def facts(self) -> tuple[FactChange, ...]:
        """What changed of facts, by id; of views with an instant, of what was true then.

        Cost: see `cerata.memory.fact_changes.fact_changes`.
        """
        first, second = self._older, self._newer
        return fact_changes(*((second, first) if self.a > self.b else (first, second)))

    @property
    def summary(self) -> str:
        """One line: the two points, and how many changes of each kind."""
        counts = f"{len(self.added):,} added, {len(self.removed):,} removed"
        changed = f", {len(self.changed):,} changed" if self.changed else ""
        found = f"{self.a:,} → {self.b:,}: {counts}, {len(self.replaced):,} replaced{changed}"
        if not self.facts:
            return found
        kinds = Counter(change.kind for change in self.facts)
        told = ", ".join(
            f"{kinds[kind]:,} {kind}" for kind in ("added", "removed", "changed") if kinds[kind]
        )
        return f"{found}; facts: {told}"

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


def diff(a: View, b: View) -> Diff:
    """Return what differs between two views of one memory and scope.

    Cost: a mask over the frames of either state, and a look at each frame that differs.

    Raises:
        InvalidInput: neither state goes on from the other.
    """
    older, newer = (a, b) if _end(a) <= _end(b) else (b, a)
    _check_goes_on(older, newer)
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
    added = sorted((newer.layers.moment(frame), frame) for frame in come if frame not in heirs)
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


def _end(view: View) -> int:
    """Return the last event of a state; what is gathered counts as if nobody else wrote."""
    return view.basis + len(view.gathered)


def _check_goes_on(older: View, newer: View) -> None:
    """Refuse states of which neither is the other's beginning: `InvalidInput`."""
    own = older.gathered
    is_beginning = newer.basis == older.basis and newer.gathered[: len(own)] == own
    if not is_beginning if own else newer.basis < older.basis:
        raise InvalidInput(
            "Neither state goes on from the other: one has what a transaction gathered, the other "
            "what was written beside it",
            remedy="Compare with the log as the transaction found it: diff(view.basis, view).",
        )


def _current(view: View) -> I64:
    """Return the ids of the current frames, chunks left out."""
    layers = view.layers
    return _ids(layers, layers.whole(layers.active))


def _ids(layers: Layers, masks: Sequence[Mask]) -> I64:
    return np.concatenate(
        [layer.ids(np.flatnonzero(mask)) for layer, mask in zip(layers.all, masks, strict=True)]
    )


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


def _changed(older: View, newer: View, both: I64) -> list[tuple[int, int]]:
    """Return which of the frames that both states have are of other parts, and since when."""
    layers = newer.layers
    before, after = (
        _ids(one.layers, one.layers.parts(one.layers.active)) for one in (older, newer)
    )
    since: dict[int, int] = {}
    for part in np.setxor1d(before, after, assume_unique=True).tolist():
        document, closing = layers.parent_of(part), layers.closing_of(part)
        if document is not None:
            moment = layers.moment(part) if closing is None else closing.seq
            since[document] = max(since.get(document, 0), moment)
    whole = np.intersect1d(both, np.array(list(since), np.int64)).tolist()
    return sorted(
        (since[document], document)
        for document in whole
        if older.layers.chunks(document) != layers.chunks(document)
    )


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
