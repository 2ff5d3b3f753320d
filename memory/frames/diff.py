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

from cerata.engine.events import PutFrame
from cerata.engine.plain_value import PlainValue
from cerata.retrieval.context.imitation import on_one_line

from ..facts.changes import FactChange, fact_changes
from ..snapshot.points import Common, common_beginning
from ..values.text_diff import text_diff

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue

    from ..snapshot.snapshot import Snapshot
    from ..values.explanation import ResultChange
    from ..values.frames import Frame
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


# --- The frames that differ between two states of one log -----------------------------------------


@dataclass(frozen=True, slots=True)
class FrameChanges:
    """The ids of the frames that differ from ``a`` to ``b``, each with the seq of its change."""

    added: tuple[tuple[int, int], ...]
    removed: tuple[tuple[int, int], ...]
    replaced: tuple[tuple[tuple[int, int], int], ...]
    changed: tuple[tuple[int, int], ...]


class _Side:
    """A state, as the comparison reads it."""

    def __init__(self, state: Snapshot, common: Common) -> None:
        self.layers = state.layers
        self._state = state
        self._common = common
        self.count = state.end - state.basis

    def moment(self, frame: int) -> int:
        return self.layers.moment(frame)

    def has(self, frame: int) -> bool:
        """Return whether the state has a frame of the common beginning, or of the log."""
        is_there = frame <= self._state.basis if frame > 0 else -frame <= self.count
        return is_there and self.layers.has(frame)

    def is_open(self, frame: int) -> bool:
        return self.has(frame) and self.layers.closing_of(frame) is None

    def touched(self) -> Iterator[int]:
        """Yield the frames that the events after the common beginning put or closed."""
        layer, basis = self.layers.base, self._common.basis
        if self._state.basis > basis:
            yield from layer.frames.touched(basis, self._state.basis)
        pending = self.layers.pending
        if pending is None:
            return
        yield from pending.closings
        for place in range(self._common.drafts + 1, self.count + 1):
            if isinstance(pending.drafts[place - 1].body, PutFrame):
                yield -place

    def became(self, frame: int) -> tuple[int, int | None]:
        """Return the seq at which a frame's last successor was closed, and the open successor.

        The successor is None if the frame, or its last successor, was deleted.
        """
        closing = self.layers.closing_of(frame)
        assert closing is not None
        seq, heir = closing.seq, closing.by
        while heir is not None and (closing := self.layers.closing_of(heir)) is not None:
            seq, heir = closing.seq, closing.by
        return seq, heir


def frame_changes(a: Snapshot, b: Snapshot) -> FrameChanges:
    """Return the frames that differ between two states of one log and scope.

    Cost: a look at each frame that the events between the states put or closed.
    """
    common = common_beginning(a, b)
    first, second = _Side(a, common), _Side(b, common)
    touched = [list(dict.fromkeys(side.touched())) for side in (first, second)]
    both = dict.fromkeys(frame for frames in touched for frame in frames if common.has(frame))
    whole = {frame for frame in both if first.layers.chunk_of(frame) is None}
    only_a = _only(first, second, whole, touched[0], common)
    only_b = _only(second, first, whole, touched[1], common)
    added: dict[int, int] = {}
    removed: dict[int, int] = {}
    replaced: dict[tuple[int, int], int] = {}
    for frame in sorted(only_a, key=first.moment):
        if common.has(frame) and second.has(frame):
            seq, heir = second.became(frame)
            if heir is not None and heir in only_b:
                replaced[frame, heir] = seq
            else:
                removed[frame] = seq
    for frame in sorted(only_b, key=second.moment):
        if common.has(frame) and first.has(frame):
            seq, heir = first.became(frame)
            if heir is not None and heir in only_a:
                replaced[heir, frame] = seq
            else:
                added[frame] = seq
    olds, news = {old for old, _ in replaced}, {new for _, new in replaced}
    removed |= {
        frame: first.moment(frame) for frame in only_a if frame not in removed and frame not in olds
    }
    added |= {
        frame: second.moment(frame) for frame in only_b if frame not in added and frame not in news
    }
    return FrameChanges(
        tuple((frame, added[frame]) for frame in sorted(added, key=second.moment)),
        tuple((frame, removed[frame]) for frame in sorted(removed, key=first.moment)),
        tuple(replaced.items()),
        tuple(sorted(_changed(first, second, touched, common), key=lambda pair: pair[::-1])),
    )


def _only(
    side: _Side, beside: _Side, whole: set[int], touched: list[int], common: Common
) -> set[int]:
    """Return the open frames of a side, without chunks, that the side beside it has not open."""
    shared = {frame for frame in whole if side.is_open(frame) and not beside.is_open(frame)}
    apart = {
        frame
        for frame in touched
        if not common.has(frame) and side.is_open(frame) and side.layers.chunk_of(frame) is None
    }
    return shared | apart


def _changed(
    first: _Side, second: _Side, touched: list[list[int]], common: Common
) -> Iterator[tuple[int, int]]:
    """Yield the frames open in both states whose chunks differ, with the seq of the change."""
    since: dict[int, int] = {}
    sides = ((first, second), (second, first))
    for (side, beside), frames in zip(sides, touched, strict=True):
        for part in frames:
            # A frame of the beginning is looked at from the side that closed it.
            if side.layers.chunk_of(part) is None or not (side.has(part) or beside.has(part)):
                continue
            was_open = common.has(part) and beside.is_open(part)
            document = side.layers.parent_of(part)
            if document is None or was_open == side.is_open(part):
                continue
            closing = side.layers.closing_of(part)
            moment = side.moment(part) if closing is None else closing.seq
            since[document] = max(since.get(document, 0), moment)
    for document, seq in since.items():
        if not (common.has(document) and first.is_open(document) and second.is_open(document)):
            continue
        chunks = first.layers.chunks(document), second.layers.chunks(document)
        if chunks[0] != chunks[1] or any(
            not common.has(part) for parts in chunks for part in parts.values()
        ):
            yield document, seq
