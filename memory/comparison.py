"""Comparison: two views of one log, and the results of a question in both.

Owns the checks of the two views, and the changes of results. Leaves out frames and facts
(`frames.diff`, `facts.changes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.scopes import sees_same
from cerata.projections.fulltext.query import Query

from .frames.diff import Diff, diff
from .search.reads import SearchReads
from .snapshot.points import Common, common_beginning
from .snapshot.reader import snapshot_of
from .values.explanation import ResultChange
from .values.options import Page

if TYPE_CHECKING:
    from .snapshot.snapshot import Snapshot
    from .values.frames import Hit


def compared(a: SearchReads, b: SearchReads, query: str | Query | None, k: int) -> Diff:
    """Return the differences from a view to another; see `Store.diff`.

    Raises:
        InvalidInput: the views are of different logs or scopes, or an argument is unusable.
        Diverged: the views are of different forks; see `Store.history.compare`.
    """
    first, second = snapshot_of(a), snapshot_of(b)
    log, _, _ = first.source
    log.check_point(second.basis, second.identity)
    if not sees_same(first.reach, second.reach):
        raise InvalidInput(
            "a and b are views of different scopes",
            remedy="Pass two views of one scope, or points of the log.",
        )
    k = expect_integer("k", k)
    difference = diff(first, second)
    if query is None:
        return difference
    hits = [view.search(query, k=k, page=Page(group_by="frame")) for view in (a, b)]
    return replace(difference, results=result_changes(first, second, *hits))


# --- The results of a question that changed rank between two states, and why ----------------------


def result_changes(
    a: Snapshot, b: Snapshot, before: Sequence[Hit], after: Sequence[Hit]
) -> tuple[ResultChange, ...]:
    """Return the results that changed rank from ``a`` to ``b``, in order of the new rank.

    Results that vanished come last. Cost: an explanation of each result whose rank changed.
    """
    common = common_beginning(a, b)
    old = {_key(hit, common, "a"): (rank, hit) for rank, hit in enumerate(before, start=1)}
    new = {_key(hit, common, "b"): (rank, hit) for rank, hit in enumerate(after, start=1)}
    changes: list[ResultChange] = []
    for key in dict.fromkeys((*new, *old)):
        old_rank, was = old.get(key, (None, None))
        new_rank, now = new.get(key, (None, None))
        if old_rank == new_rank:
            continue
        if was is not None and now is not None:
            assert old_rank is not None
            assert new_rank is not None
            above = (list(old)[: old_rank - 1], list(new)[: new_rank - 1])
            why = _moved(was, now, *above)
        elif now is not None:
            why = _absence(a, b, now.id, common, "before", len(before))
        else:
            assert was is not None
            why = _absence(b, a, was.id, common, "now", len(after))
        hit = now or was
        assert hit is not None
        old_score = None if was is None else was.score
        new_score = None if now is None else now.score
        changes.append(ResultChange(hit.id, old_rank, new_rank, old_score, new_score, why))
    return tuple(changes)


def _key(hit: Hit, common: Common, side: str) -> tuple[int, str]:
    return hit.id, "" if common.has(hit.id) else side


def _absence(
    state: Snapshot, beside: Snapshot, frame: int, common: Common, when: str, count: int
) -> str:
    """Return why a state's results lack a frame that the other state's results have."""
    layers = state.layers
    in_log = frame <= state.basis if frame > 0 else common.has(frame)
    if not (in_log and common.has(frame) and layers.has(frame)):
        return f"put by {_event(beside, frame)}"
    closing = layers.closing_of(frame)
    if closing is not None:
        number = closing.seq if closing.seq <= state.basis else state.basis - closing.seq
        verb = "deleted" if closing.by is None else f"superseded by #{closing.by}"
        return f"{verb}, {_event(state, number)}"
    if not layers.unexpired([frame]):
        return f"expired {when}"
    return f"below the first {count} {when}" if count else f"no match {when}"


def _event(state: Snapshot, number: int) -> str:
    """Return an event by its number, with its actor and reason."""
    act = state.act(number)
    credit = "" if act is None or not act.credit else f" {act.credit}"
    return f"event {number:,}{credit}" if number > 0 else f"speculative event {-number:,}{credit}"


def _moved(
    was: Hit, now: Hit, above_before: Sequence[tuple[int, str]], above: Sequence[tuple[int, str]]
) -> str:
    """Return why a result has another rank: its scores, and the results above it."""
    shares = [
        {share.lane: share.score for share in hit.made_by.explain(hit).lanes} for hit in (was, now)
    ]
    parts: list[str] = []
    for lane in dict.fromkeys((*shares[0], *shares[1])):
        scores = [share.get(lane) for share in shares]
        texts = ["–" if score is None else f"{score:.3f}" for score in scores]
        if texts[0] != texts[1]:
            parts.append(f"{lane} {texts[0]} → {texts[1]}")
    came = [f"#{frame}" for frame, side in above if (frame, side) not in above_before]
    went = [f"#{frame}" for frame, side in above_before if (frame, side) not in above]
    if came:
        parts.append(f"now above it: {', '.join(came)}")
    if went:
        parts.append(f"no longer above it: {', '.join(went)}")
    return "; ".join(parts)
