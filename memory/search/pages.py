"""Pages: one order of all results of a question, of which each page is a part.

The candidates of a question are the best of each lane. The order is built in blocks of fixed
depths, 128, 512, 2,048 …: a block has the candidates that no earlier block has, each with its exact
score. The first results are those of the lanes at 128, however many are requested, and a later page
continues exactly.

Owns the blocks, the groups of hits of one document or content, and the place of the next page.
Leaves out the lanes and their fusion (`search`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cerata.retrieval.ranking.fusion import Fused, LaneRanking

    from ..snapshot.snapshot import Snapshot
    from ..values.options import Grouping

LANE_HITS: Final = 128
"""Hits of each lane that the first block fuses.

A context requests a hundred.
"""

_GROWTH: Final = 4


class Block(NamedTuple):
    """The rankings of the lanes at one depth, and their results that no earlier block has."""

    rankings: Sequence[LaneRanking]
    hits: Sequence[Fused]


def blocks_of(
    build: Callable[[int], Block],
    is_enough: Callable[[Sequence[Fused]], bool],
    may_follow: Callable[[Sequence[LaneRanking], int], bool],
    first_depth: int,
    single_depth: int | None,
) -> list[Block]:
    """Return blocks until there are enough results, or none may follow at a greater depth.

    ``first_depth`` may be below 128 if the build fuses 128 of several lanes anyway. The results of
    a single lane have one order at any depth: with ``single_depth`` its second block has that.
    """
    blocks: list[Block] = []
    order: list[Fused] = []
    seen: set[int] = set()
    depth = first_depth
    while True:
        block = build(depth)
        if seen:
            block = Block(block.rankings, [hit for hit in block.hits if hit.id not in seen])
        blocks.append(block)
        order += block.hits
        seen.update(map(itemgetter(0), block.hits))
        if is_enough(order) or not may_follow(block.rankings, depth):
            return blocks
        depth = LANE_HITS * _GROWTH ** len(blocks)
        if single_depth is not None and len(block.rankings) == 1:
            depth = max(single_depth, first_depth + 1)


def groups_of(snapshot: Snapshot, hits: Sequence[Fused], by: Grouping) -> list[list[Fused]]:
    """Return the hits by document, or by content, in order of the best hit of each group.

    A frame that is no chunk is a document.
    """
    if by == "document":
        keys: Mapping[int, object] = {hit.id: _document_of(snapshot, hit.id) for hit in hits}
    else:
        keys = snapshot.layers.equal_contents([hit.id for hit in hits])
    groups: dict[object, list[Fused]] = {}
    for hit in hits:
        groups.setdefault(keys.get(hit.id, hit.id), []).append(hit)
    return [*groups.values()]


def _document_of(snapshot: Snapshot, frame: int) -> int:
    is_chunk = snapshot.layers.chunk_of(frame) is not None
    document = snapshot.layers.parent_of(frame) if is_chunk else None
    return frame if document is None else document
