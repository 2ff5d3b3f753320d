"""The frames of exactly one scope, by their URIs, for integrations that keep items as frames.

Owns the rule that frames of any other scope, also of a narrower one, do not exist for an
integration, and writes that are tried again after another writer. Leaves out the URIs and the
fields of items.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import DEFAULT_SCOPE
from cerata.engine.packs import Role
from cerata.engine.unreadable import frame_place
from cerata.memory.batch.writer import acting, session_of
from cerata.memory.frames.closing import EXPIRED, delete_frames, expired_frames
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame, Hit, first_readable
from cerata.memory.values.options import Page, PutOptions
from cerata.memory.view import View
from cerata.projections.columnar.scopes import is_same
from cerata.projections.frames.filters import Filter

_TRIES: Final = 1_000
"""Times that a batch is tried while other writers change its frames first, as `Store.put_frame`."""

_GROWTH: Final = 4
"""A search is repeated with so many times more hits if foreign frames are among its hits."""

_EACH_FRAME: Final = Page(group_by="frame")

_Result = TypeVar("_Result")


class FramesOfScope:
    """The current frames of a kind and of exactly the scope of a store.

    - A store without a scope has those of the tenant "default", to which its writes go.
    - ``store`` writes with the rights of the integration, ``of_scope`` with those of the caller.
    - A kind of None admits all kinds.
    """

    def __init__(self, store: object, kind: str | None, role: Role) -> None:
        """Read and write the frames of a store, with the rights of a role.

        Raises:
            InvalidInput: ``store`` is no store.
        """
        if not isinstance(store, Store):
            raise InvalidInput(
                f"store must be a cerata.Store, not {store!r:.60}",
                remedy="Pass the store that cerata.open returned.",
            )
        self.of_scope: Final = store.scoped({"tenant": "default"}) if store.scope is None else store
        self.store: Final = acting(self.of_scope, role)
        self._kind = kind

    def owns(self, frame: Frame) -> bool:
        """Return whether a frame is current, of the kind, and of exactly the scope."""
        return frame.active and self.is_own(frame)

    def is_own(self, frame: Frame) -> bool:
        """Return whether a frame is of the kind and of exactly the scope, current or not."""
        if self._kind not in (None, frame.kind):
            return False
        return is_same(tuple(frame.scope.items()), self.store.scope)

    def current(self, view: View, uri: str) -> Frame | None:
        """Return the frame with a URI, the newest of several, or None.

        A frame of another kind with the URI, which a program may put, hides no frame.
        """
        frames = self._current(view, uri)
        return view.frame(frames[-1]) if frames else None

    def all_current(self, view: View, uri: str) -> list[Frame]:
        """Return the frames with a URI, newest first: an import of events may leave several."""
        return [view.frame(frame) for frame in reversed(self._current(view, uri))]

    def delete(self, view: View, uri: str) -> None:
        """Delete the frames with a URI; none is no error."""
        for frame in self._current(view, uri):
            self.store.delete(frame)

    def _current(self, view: View, uri: str) -> list[int]:
        frames = [frame for frame, kind in self._open(view, uri) if self._kind in (None, kind)]
        return snapshot_of(view).layers.unexpired(frames)

    def check_free(self, view: View, uri: str, remedy: str) -> None:
        """Refuse a URI of a frame of another kind, which a write would replace: `InvalidInput`."""
        for frame, kind in self._open(view, uri):
            if kind != self._kind:
                raise InvalidInput(
                    f'A frame of kind "{kind!s:.60}" has the URI {uri:.200}',
                    where=f"frame {frame:,}",
                    remedy=remedy,
                )

    def _open(self, view: View, uri: str) -> Iterator[tuple[int, str | None]]:
        """Yield the open frames with a URI, also expired ones, and their kinds."""
        layers = snapshot_of(view).layers
        for frame in layers.whole_of_uri(uri, self.store.scope or DEFAULT_SCOPE):
            row = layers.row(frame)
            if row is not None:
                yield frame, row.kind

    def below(self, view: View, prefix: str, where: Filter | None = None) -> Iterator[Frame]:
        """Yield the frames whose URIs begin with a prefix and that pass a filter, newest first."""
        admitted = self._with_prefix(prefix)
        return filter(self.owns, view.frames(admitted if where is None else admitted & where))

    def sweep(self) -> int:
        """Close the expired frames, and return their number; other expired frames stay open."""
        session = session_of(self.store).by(None, EXPIRED)
        layers = session.snapshot().layers
        frames = [
            frame
            for frame in expired_frames(session.snapshot())[0]
            if (row := layers.row(frame)) is not None
            and row.kind == self._kind
            and is_same(row.scope, self.store.scope)
        ]
        return len(delete_frames(session, frames, is_sweep=True).deleted)

    def search(
        self,
        view: View,
        query: Any,
        *,
        k: int,
        prefix: str = "",
        where: Filter | None = None,
        admits: Callable[[Frame], bool] | None = None,
        page: Page = _EACH_FRAME,
        **arguments: Any,
    ) -> list[Hit]:
        """Return the best ``k`` hits among the frames, best first.

        Args:
            view: The state to search.
            query: As for `Store.search`, which takes the further arguments too.
            k: Most hits.
            prefix: The start of the URIs; default any URI or none.
            where: A filter; default none.
            admits: A further test of each frame; default none.
            page: As for `Store.search`; by default each frame is a hit.
            **arguments: As for `Store.search`.
        """
        admitted = self._with_prefix(prefix)
        if where is not None:
            admitted &= where

        def is_admitted(frame: Frame) -> bool:
            return self.owns(frame) and (admits is None or admits(frame))

        count = k
        while True:
            hits = view.search(query, k=count, where=admitted, page=page, **arguments)
            first = (first_readable(hit, is_admitted) for hit in hits)
            kept = [hit for hit in first if hit is not None]
            if len(kept) >= k or len(hits) < count:
                return kept[:k]
            count *= _GROWTH

    def put(self, frames: Sequence[Mapping[str, Any]], remedy: str) -> None:
        """Put frames as one batch; each replaces the frame with its URI. Durable on return.

        Args:
            frames: The arguments of `Store.put_frame` with ``content`` and ``uri``; no URI twice.
            remedy: The remedy if a frame of another kind has a URI.

        Raises:
            InvalidInput: a frame cannot be stored, or a frame of another kind has its URI.
            Conflict: other writers were first in each of 1,000 tries.
        """

        def put(view: View) -> None:
            for arguments in frames:
                self.check_free(view, arguments["uri"], remedy)
                self.store.put_frame(
                    kind=cast("str", self._kind), options=PutOptions(replace=True), **arguments
                )

        if len(frames) > 1:
            self.write(put)
        elif frames:
            # Without a block the replaced frame is looked up just before the append.
            put(self.store.history.view())

    def write(self, change: Callable[[View], _Result], *, is_alone: bool = False) -> _Result:
        """Run a change of the newest state as one batch, again if another writer was first.

        Args:
            change: Writes through the store, and reads the view.
            is_alone: Run it again after any event of another writer, and not only after a change
                of the frames that it closes or puts.

        Raises:
            Conflict: other writers were first in each of 1,000 tries.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._tried(change, is_alone=is_alone)
            except Conflict:
                continue
        return self._tried(change, is_alone=is_alone)

    def _tried(self, change: Callable[[View], _Result], *, is_alone: bool) -> _Result:
        with self.store.transaction(expect=self.store.head.seq if is_alone else None):
            return change(self.store.history.view())

    def drawn_id(self) -> str:
        """Return a new random id: 32 hexadecimal digits."""
        return session_of(self.store).log.environment.random_bytes(16).hex()

    def _with_prefix(self, prefix: str) -> Filter:
        return Filter(kind=self._kind, uri_prefix=prefix or None)


def with_frame(hit: Hit) -> tuple[Hit, Frame]:
    """Return a hit and its frame, which may be damaged."""
    return hit, hit.frame


def hit_place(hit: Hit) -> str:
    """Return the name of a hit in a warning."""
    return frame_place(hit.id)
