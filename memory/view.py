"""Views: the memory as it was at one event, read-only.

Owns `View`, the public face of a snapshot: its point of the log, its daily reads, and its seven
handles, such as ``view.graph``. Leaves out the state (`snapshot.snapshot`) and the reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, TypeVar, overload

from cerata.engine.events import Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.head import Head
from cerata.engine.late import loading
from cerata.projections.columnar.scopes import check_reach, pairs_of
from cerata.projections.columnar.times import to_microseconds
from cerata.replay.basis import batches_back

from .facts.reads import FactExport, FactReads
from .frames.log_reads import LogReads, ProjectionReads, tags_of
from .frames.reads import FrameReads
from .read_groups import FileGroup, GraphGroup, HistoryGroup
from .search.reads import SearchReads, VectorReads
from .snapshot.points import seq_of_point
from .snapshot.reader import Reader
from .values.frames import Context, Receipt
from .values.renamed import moved_to

if TYPE_CHECKING:
    from cerata.engine.events import Draft, EventBody
    from cerata.projections.fulltext.query import Query

    from .frames.diff import Diff
    from .snapshot.snapshot import Snapshot


class OfView(Reader, Handle):
    """Calls of a view."""

    _instead = "Pass the file's path and the basis, and call open(path).at(basis) there."

    def __init__(self, view: View) -> None:
        self._view = view
        self._state = state_of(view)

    def _snapshot(self) -> Snapshot:
        check_reach(self._state.reach)
        return self._state


class GraphOfView(OfView, GraphGroup):
    """The facts of a view, its entities, and the links of things."""


class HistoryOfView(OfView, HistoryGroup):
    """The past: versions, events, recalls, and frames in order of time."""

    def view(self) -> View:
        """Return this view, the state that its reads use."""
        return self._view

    def since(self, basis: Basis, *, query: str | Query | None = None, k: int = 10) -> Diff:
        """Return the changes from an earlier point of this view to this view.

        Args:
            basis: The point, as `at` takes it; the events of `upkeep.speculate` count as changes.
            query: A question, whose results that changed rank are in `Diff.results`; default none.
            k: The count of results that are compared; default 10.

        Raises:
            NotFound: this view ends before the basis.
            InvalidInput: the basis has no known form.
        """
        with loading("the part that compares"):
            from .comparison import compared

        check_reach(self._state.reach)
        return compared(self._view.at(basis), self._view, query, k)


class FilesOfView(OfView, FileGroup):
    """The contents of a view: documents, chunks, sources and values of fields."""


class StreamOfView(OfView, ProjectionReads):
    """The projections of users as of a view."""


class InterchangeOfView(OfView, FactExport):
    """Lines for other memories."""


class UpkeepOfView(OfView):
    """A view with events that are not in the log."""

    def speculate(self, *events: EventBody | Draft) -> View:
        """Return this view with events that are not in the log, as if they were the next batch.

        Nothing is written, now or later. The events follow the view's drafts, and have the ids −1,
        −2, … in their order; a reference of −k names the k-th of them. A view of any point can be
        used, and `at`, `true_at`, `within` and `upkeep.speculate` of the result. Cost: the first
        read of frames, words or facts folds the events, and copies the columns of words or facts.

        Args:
            *events: Event bodies or drafts; without a scope they get the view's scope.

        Raises:
            InvalidInput, NotFound, Conflict: an append at this view's basis would be refused.
        """
        with loading("the part that speculates"):
            from .speculation import speculated

        state = speculated(self._snapshot(), events)
        return self._view if state is self._state else type(self._view)(state)


class EmbeddingsOfView(OfView, VectorReads):
    """The vectors of a view."""


_OfView = TypeVar("_OfView", bound=OfView)


class ViewHandle(Generic[_OfView]):
    """A handle of a view, made at its first use."""

    def __init__(self, kind: type[_OfView]) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, view: None, _: object) -> type[_OfView]: ...

    @overload
    def __get__(self, view: View, _: object) -> _OfView: ...

    def __get__(self, view: View | None, _: object) -> type[_OfView] | _OfView:
        if view is None:
            return self.kind
        made = self.kind(view)
        object.__setattr__(view, self._name, made)
        return made


@dataclass(frozen=True)
class View(
    FrameReads,
    LogReads,
    SearchReads,
    FactReads,
    Handle,
):
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    - A view never changes, also while writers append; any thread may use a view.
    - ``scope`` limits its reads to events written within these names and values; if ``shared``,
      events that lack names of the scope other than the tenant are read too.
    - A view of a store that requires a scope and has none can be read after `within`.
    - A view copies nothing: the store's state, which it shares, only grows.
    - A view may also have drafts, with the ids −1, −2, …: those of an open transaction, or of
      `upkeep.speculate`.
    """

    _instead: ClassVar[str] = (
        "Pass the file's path and the basis, and call open(path).at(basis) there."
    )

    _state: Snapshot

    graph = ViewHandle(GraphOfView)
    history = ViewHandle(HistoryOfView)
    files = ViewHandle(FilesOfView)
    stream = ViewHandle(StreamOfView)
    interchange = ViewHandle(InterchangeOfView)
    upkeep = ViewHandle(UpkeepOfView)
    embeddings = ViewHandle(EmbeddingsOfView)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Name the new place of a call that moved."""
            raise AttributeError(moved_to("View", name), name=name, obj=self)

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope {dict(self.scope)!r}"
        count = self._state.end - self.basis
        drafts = f" and {count:,} draft{'s' if count > 1 else ''}" if count else ""
        return f"<cerata.View at event {self.basis:,}{drafts}{scope}>"

    def _snapshot(self) -> Snapshot:
        check_reach(self._state.reach)
        return self._state

    @property
    def basis(self) -> int:
        """The seq of the view's last event."""
        return self._state.basis

    @property
    def scope(self) -> Scope | None:
        """The scope that limits every read; None admits all, or none if a scope is required."""
        return pairs_of(self._state.reach)

    @property
    def head(self) -> Head:
        """The view's point of the log, with its chain hash and Merkle root."""
        return self._state.head

    @property
    def log_id(self) -> bytes:
        """The id of the view's log."""
        return self._state.log_id

    @property
    def now(self) -> datetime:
        """The meaning of "now" in this view: the recorded time of its last event.

        At the head: the clock's time when the view was created, or the recorded time of the last
        event if the clock went back before that.
        """
        return self._state.now

    @property
    def shared(self) -> bool:
        """True if reads admit events that lack names of the scope, other than the tenant."""
        return self._state.reach is not None and self._state.reach.shared

    def within(
        self, scope: Scope | Mapping[str, ScopeValue] | None = None, *, shared: bool | None = None
    ) -> View:
        """Return this view narrowed to a scope; the view's scope stays in force.

        Args:
            scope: Names and values to add to the view's scope, as a mapping or as pairs; None or a
                wider scope adds none.
            shared: False leaves out events that lack a name of the scope; True admits them, if the
                view admits them or has no name but the tenant; default as this view.

        Raises:
            InvalidInput: the view would be wider, or the scope is invalid.
        """
        state = self._state.within(scope, shared=shared)
        return self if state is self._state else View(state)

    def at(
        self,
        basis: Basis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> View:
        """Return an earlier point of this view, with its scope and its instant of true facts.

        ``at(n)`` for n up to the basis leaves out drafts, those of `upkeep.speculate` and those of
        a transaction; a higher n has the first of them. ``"HEAD"`` is this view; for ``"HEAD~1"``
        all drafts count as one batch. Words such as "yesterday" count from the view's `now`.

        Args:
            basis: The point, in a form that `Store.at` takes; a view counts by its basis.
            valid_at: Another instant at which facts must be true; default this view's.
            now: Another meaning of "now", by which frames expire; default the point's.

        Raises:
            NotFound: this view ends before the basis.
            InvalidInput: the basis has no known form, or is a point of another memory.
        """
        state = self._state
        log, _, _ = state.source
        instant: int | None = None
        if isinstance(basis, View):
            log.check_point(basis.basis, state_of(basis).identity)
            basis = basis.basis
        if isinstance(basis, str) and (back := batches_back(basis)) is not None and state.drafts:
            # The drafts are the newest batch.
            basis = state.end if back == 0 else f"HEAD~{back - 1}"
        if type(basis) is int and state.basis < basis <= state.end:
            seq = basis
        elif basis == "HEAD":
            seq, instant = state.basis, state.now_us
        else:
            seq, instant = seq_of_point(
                log, basis, lambda: tags_of(self._snapshot()), state.basis, self.now
            )
            log.horizon().check(seq)
        earlier = state.prefix(seq)
        if now is not None:
            instant = to_microseconds(now)
        if instant is not None:
            earlier = earlier.as_of(instant)
        return View(earlier if valid_at is None else earlier.true_at(valid_at))

    def true_at(self, valid_at: date | str | None) -> View:
        """Return this view limited to the facts that are true at an instant.

        Args:
            valid_at: An aware datetime, an ISO string or "now"; None admits facts of any time.
        """
        return View(self._state.true_at(valid_at))


Basis = int | str | date | Receipt | Head | Context | View
"""The forms in which a caller names a point of the log; see `Store.at`."""


def state_of(view: View) -> Snapshot:
    """Return the state of a view, which may lack a required scope."""
    return view._state  # pyright: ignore[reportPrivateUsage]
