"""Views: the memory as it was at one event, read-only.

Owns `View`, the public face of a snapshot: its point of the log, and every group of reads. Leaves
out the state (`snapshot.snapshot`) and the reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from cerata.engine.events import Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.head import Head
from cerata.projections.columnar.scopes import check_reach, pairs_of

from .facts.reads import FactReads
from .frames.log_reads import LogReads
from .frames.reads import FrameReads
from .frames.timeline_reads import TimelineReads
from .graph.reads import GraphReads
from .links.reads import LinkReads
from .links.why import WhyReads
from .plots.reads import PlotReads
from .search.reads import SearchReads
from .snapshot.snapshot import Snapshot
from .values.frames import Context, Receipt


@dataclass(frozen=True)
class View(
    FrameReads,
    TimelineReads,
    LogReads,
    SearchReads,
    FactReads,
    LinkReads,
    WhyReads,
    GraphReads,
    PlotReads,
    Handle,
):
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    - A view never changes, also while writers append; any thread may use a view.
    - ``scope`` limits its reads to events written within these names and values; if ``shared``,
      events that lack names of the scope other than the tenant are read too.
    - A view of a store that requires a scope and has none can be read after `within`.
    - A view copies nothing: the store's state, which it shares, only grows.
    - Inside a transaction a view also has the block's drafts, with the ids −1, −2, ….
    """

    _instead: ClassVar[str] = (
        "Pass the file's path and the basis, and call open(path).at(basis) there."
    )

    _state: Snapshot

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope {dict(self.scope)!r}"
        return f"<cerata.View at event {self.basis:,}{scope}>"

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

    def view(self) -> View:
        """Return this view, the state that its reads use."""
        return self

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

    def true_at(self, valid_at: datetime | str | None) -> View:
        """Return this view limited to the facts that are true at an instant.

        Args:
            valid_at: An aware datetime, an ISO string or "now"; None admits facts of any time.
        """
        return View(self._state.true_at(valid_at))


def state_of(view: View) -> Snapshot:
    """Return the state of a view, which may lack a required scope."""
    return view._state  # pyright: ignore[reportPrivateUsage]


Basis = int | str | datetime | Receipt | Head | Context | View
"""The forms in which a caller names a point of the log; see `Store.at`."""
