"""The difference between two states of a memory, frame by frame and fact by fact.

Owns `Diff` and `Change`, and their printed forms. A document with chunks counts as one frame.
Leaves out the choice of the states (`store`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from cerata.engine.plain_value import PlainValue
from cerata.retrieval.context.imitation import on_one_line

from ..facts.changes import FactChange, fact_changes
from ..snapshot.beginning import Common, common_beginning
from ..values.text_diff import text_diff
from .frame_changes import frame_changes

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue

    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Frame
    from ..values.result_change import ResultChange
    from ..values.text_diff import DiffLine

_LINES_MAX = 12
"""Lines that a change prints; the rest is counted."""

_WIDTH = 78
"""Characters at which a printed line is cut, so that the line fits a terminal of 80 columns."""


FrameVerb: TypeAlias = Literal["added", "superseded", "deleted", "changed"]


@dataclass(frozen=True)
class Change(PlainValue):
    """The change of a frame between two states.

    - An added frame has no ``old``, a removed frame no ``new``.
    - ``old`` and ``new`` have the same id if the frame is a document whose chunks changed.
    - ``seq`` is the event of the change, the last of several.
    - If the newer state comes first, the direction is reversed.
    """

    _plain = ("kind", "verb", "seq", "old", "new", "lines")

    seq: int
    old: Frame | None
    new: Frame | None
    verb: FrameVerb
    """The act that the log records between the two states, in either direction."""

    @property
    def kind(self) -> Literal["added", "removed", "replaced", "changed"]:
        """The kind of the change."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.old.id == self.new.id else "replaced"

    def __str__(self) -> str:
        lines, left = self.excerpt
        more = [f"  … and {left:,} line{'s' if left > 1 else ''} more"] if left else []
        return "\n".join([_cut(self.title), *(_cut(line.marked) for line in lines), *more])

    @property
    def lines(self) -> tuple[DiffLine, ...]:
        """The lines of the text that differ, with the words that changed in each."""
        old = "" if self.old is None else self.old.text
        new = "" if self.new is None else self.new.text
        return text_diff(old, new)

    @property
    def excerpt(self) -> tuple[list[DiffLine], int]:
        """The first lines for a terminal, each cut around its changes, and how many are left."""
        lines = self.lines
        # A sign, and three marks around each changed part.
        shown = [line.shortened(_WIDTH - 1 - 3 * len(line.spans)) for line in lines[:_LINES_MAX]]
        return shown, len(lines) - len(shown)

    @property
    def title(self) -> str:
        """The kind, the ids and the title of the frame, on one line."""
        ids = dict.fromkeys(frame.id for frame in (self.old, self.new) if frame is not None)
        numbers = " → ".join(f"#{number}" for number in ids)
        frame = self.new or self.old
        name = on_one_line((frame and (frame.title or frame.uri)) or "")
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
    results: tuple[ResultChange, ...] = field(default=(), kw_only=True)
    """The results of the question that changed rank, in order of the new rank."""
    _first: Snapshot = field(repr=False, compare=False)
    _second: Snapshot = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The views belong to their process, so a copy carries the values read from them.
        views = ("_first", "_second")
        state = {name: value for name, value in vars(self).items() if name not in views}
        return {**state, "changes": self.changes, "facts": self.facts}

    def __bool__(self) -> bool:
        return bool(self._seqs) or bool(self.facts) or bool(self.results)

    def __len__(self) -> int:
        """Return how many frames differ."""
        return len(self._seqs)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes with their frames, each as of its side's view."""
        first, second = self._first, self._second
        pairs: list[tuple[int | None, int | None]] = [
            *((None, frame) for frame in self.added),
            *((frame, None) for frame in self.removed),
            *self.replaced,
            *((frame, frame) for frame in self.changed),
        ]
        olds = first.frames_at(dict.fromkeys(old for old, _ in pairs if old is not None))
        news = second.frames_at(dict.fromkeys(new for _, new in pairs if new is not None))
        common = common_beginning(first, second)
        changes = [
            Change(
                seq,
                None if old is None else olds[old],
                None if new is None else news[new],
                _verb_of(first, second, common, old, new),
            )
            for seq, (old, new) in zip(self._seqs, pairs, strict=True)
            # An unreadable frame is named when it is read.
            if (old is None or old in olds) and (new is None or new in news)
        ]
        return tuple(sorted(changes, key=lambda change: change.seq, reverse=self.a > self.b))

    @cached_property
    def facts(self) -> tuple[FactChange, ...]:
        """The changes of facts, by id; of views with an instant, the changes of true facts.

        Cost: see `cerata.memory.facts.changes.fact_changes`.
        """
        return fact_changes(self._first, self._second, common_beginning(self._first, self._second))

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
        results = "\n".join(map(str, self.results))
        return "\n\n".join([*map(str, self), *filter(None, (facts, results)), self.summary])

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "a": self.a,
            "b": self.b,
            "changes": [change.to_dict() for change in self],
            "facts": [change.to_dict() for change in self.facts],
            "results": [change.to_dict() for change in self.results],
        }


def diff(a: Snapshot, b: Snapshot) -> Diff:
    """Return the difference between two views of one memory and scope.

    Cost: a look at each frame that the events between the views put or closed.
    """
    changes = frame_changes(a, b)
    groups = (changes.added, changes.removed, changes.replaced, changes.changed)
    return Diff(
        a=a.end,
        b=b.end,
        added=tuple(frame for frame, _ in changes.added),
        removed=tuple(frame for frame, _ in changes.removed),
        replaced=tuple(pair for pair, _ in changes.replaced),
        changed=tuple(frame for frame, _ in changes.changed),
        _seqs=tuple(seq for group in groups for _, seq in group),
        _first=a,
        _second=b,
    )


def _verb_of(
    first: Snapshot, second: Snapshot, common: Common, old: int | None, new: int | None
) -> FrameVerb:
    if old is not None and new is not None:
        return "changed" if old == new else "superseded"
    state, frame = (second, old) if new is None else (first, new)
    closing = None
    if frame is not None and common.has(frame):
        closing = state.layers.closing_of(frame)
    if closing is None:
        return "added"
    return "deleted" if closing.by is None else "superseded"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
