"""Reading frames: by id, by content, by URI and by filter, with their relations.

Leaves out versions (`history_reads`), frames in order of time (`timeline_reads`), the log
(`log_reads`), questions (`search.reads`) and the state (`snapshot.snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Never, TypeVar

from cerata.engine.arguments import (
    expect_string,
)
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.rows.row_projection import RowProjection

from ..snapshot.reader import Reader
from ..values.frames import frame_id
from ..values.renamed import refuse

if TYPE_CHECKING:
    from cerata.projections.frames.filters import Filter

    from ..values import arguments
    from ..values.frames import Frame, FrameId, Stored
    from . import stored
    from . import value_counts as frame_counts
    from .value_counts import ValueCount
else:
    arguments = late("cerata.memory.values.arguments")
    stored = late("cerata.memory.frames.stored")
    frame_counts = late("cerata.memory.frames.value_counts")


OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])


class FrameReads(Reader):
    """The reads of frames."""

    def __bool__(self) -> bool:
        """True, also without frames: ``store or other`` must not replace an empty store."""
        return True

    def count(self, where: Filter | None = None) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, without chunks.

        Expired frames count among the closed. ``current, closed = store.count()``.

        Args:
            where: The frames to count; default None counts all.

        Raises:
            InvalidInput: ``where`` is not a `Filter`.
        """
        return self._snapshot().layers.counts(where)

    def get(self, uri: str) -> Frame | None:
        """Return the current frame with a URI, or None without one; the newest of several.

        A frame of exactly the view's scope comes before frames of other scopes; a document comes
        without its chunks.

        Args:
            uri: The whole URI.

        Raises:
            InvalidInput: ``uri`` is not a string.
        """
        snapshot = self._snapshot()
        number = snapshot.layers.newest_of_uri(expect_string("A URI", uri))
        return None if number is None else snapshot.frame_at(number)

    def __len__(self) -> int:
        """Return how many frames are current, a split document counted once."""
        return self.count()[0]

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or closed, as this view sees it.

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.frame_at(frame if type(frame) is int else frame_id(frame, snapshot.ids))

    def frames(
        self,
        where: Filter | None = None,
        *,
        include_chunks: bool = False,
        **_moved: Never,
    ) -> Iterator[Frame]:
        """Yield the frames that a filter admits, newest first.

        Expired frames are left out, as in every read of many frames.

        Args:
            where: The filter; default None admits all current frames.
            include_chunks: Also yield the chunks of split documents; default False.

        A damaged frame is left out, and named by a warning `UnreadableItem`.

        Raises:
            InvalidInput: ``where`` is not a `Filter`.
        """
        if _moved:
            refuse("frames", _moved)
        snapshot = self._snapshot()
        layers = snapshot.layers
        masks = layers.chosen(where)
        if not include_chunks:
            masks = layers.whole(masks)
        return readable(layers.newest(masks), snapshot.frame_at, frame_place)


class FileReads(Reader):
    """The reads of contents, documents and values."""

    def by_uri(self, uri: str) -> list[int]:
        """Return the ids of the current frames with a URI, chunks included.

        Args:
            uri: The whole URI.
        """
        return self._snapshot().layers.find_uri(expect_string("A URI", uri))

    def by_content(self, content_hash: bytes) -> list[int]:
        """Return the ids of the current frames with a content hash.

        Args:
            content_hash: The hash from `cerata.content_hash`.
        """
        arguments.check_content_hash(content_hash)
        return self._snapshot().layers.find_content(content_hash)

    def stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]:
        """Return the current frames with a content, and their missing parts, oldest first.

        An ingest uses this to skip stored content and to continue an interrupted document.

        Args:
            content_hash: The hash from `cerata.content_hash`.
            chunk_count: The count of chunks of the document; default None, a single frame.
            space: An embedder's space; with a space, `Stored.unembedded` is filled. Default None.
        """
        arguments.check_content_hash(content_hash)
        return stored.find_stored(self._snapshot().layers, content_hash, chunk_count, space)

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8.

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.content_of(snapshot.id_of(frame))

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames within the scope put directly below a frame, in order.

        Args:
            frame: The parent's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.visible(snapshot.layers.children(snapshot.id_of(frame)))

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the chunks of a document: index to frame id, in order of the index.

        A current document has its current chunks; a closed document, the chunks at its closing.

        Args:
            document: The document's frame id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.chunks_of(snapshot.id_of(document))

    def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]:
        """Return the distinct values of a field of the current frames, with their counts.

        The most frequent value comes first, ties in order of value. Cost: a pass over the values of
        the field, which the columns store.

        Args:
            field: "tag", "label", "kind", "role", "track", "title"; "uri" for the URIs up to the
                next "/" after ``prefix``; "metadata" for the keys, "metadata.NAME" for the values
                of a key.
            prefix: Only names that start with it; default all.
            where: The frames to count; default None counts all.
            include_chunks: Also count the chunks of split documents; default False.

        Raises:
            InvalidInput: the field is unknown, or ``where`` is not a `Filter`.
        """
        expect_string("field", field)
        expect_string("prefix", prefix)
        layers = self._snapshot().layers
        masks = layers.admitted(where)
        if not include_chunks:
            masks = layers.whole(masks)
        return frame_counts.value_counts(layers, masks, field, prefix)
