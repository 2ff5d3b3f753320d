"""Stored contents: the current frames that have a content, for a writer that resumes.

Owns the chunks that a document still lacks and the frames that lack a vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..values.frames import Stored

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask

    from ..snapshot.layers import Layers


def find_stored(
    layers: Layers, content_hash: bytes, chunk_count: int | None, space: str | None
) -> list[Stored]:
    """Return the current frames with a content and count of chunks, and their gaps."""
    embedded: dict[int, Mask] = {}
    if space is not None:
        embedded = {layer.sign: layer.frames.embedded(layer.n, space) for layer in layers.all}
    stored: list[Stored] = []
    for frame in layers.find_content(content_hash):
        row = layers.row(frame)
        if row is None or row.chunk_count != chunk_count:
            continue
        count = chunk_count or 0
        chunks = {index: part for index, part in layers.chunks(frame).items() if index < count}
        parts = [frame] if chunk_count is None else [*chunks.values()]
        stored.append(
            Stored(
                id=frame,
                chunks=chunks,
                missing=tuple(index for index in range(count) if index not in chunks),
                unembedded=tuple(
                    part
                    for part in parts
                    if space is not None and not _is_embedded(layers, part, space, embedded)
                ),
            )
        )
    return stored


def _is_embedded(layers: Layers, frame: int, space: str, masks: Mapping[int, Mask]) -> bool:
    pending = layers.pending
    if pending is not None and space in pending.spaces.get(frame, ()):
        return True
    layer = layers.layer_of(frame)
    row = None if layer is None else layer.row_of(frame)
    return layer is not None and row is not None and bool(masks[layer.sign][row])
