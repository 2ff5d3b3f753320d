"""Reading the log: events, tags, and the projections of users.

Leaves out the choice of events (`events`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar, overload

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import DEFAULT_SCOPE, Event, EventBody, Scope, ScopeValue
from cerata.engine.late import late, loading
from cerata.projections.rows.row_projection import RowProjection

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from cerata.projections.columnar import scopes
    from cerata.projections.rows import row_projection
    from cerata.projections.rows.row_fold import OwnProjection

    from ..snapshot.snapshot import Snapshot
    from . import events as event_filters
    from . import timeline as timelines
    from .audit import Audit
else:
    scopes = late("cerata.projections.columnar.scopes")
    row_projection = late("cerata.projections.rows.row_projection")
    event_filters = late("cerata.memory.frames.events")
    timelines = late("cerata.memory.frames.timeline")

OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])


class LogReads(Reader):
    """The reads of events, tags and projections of users."""

    def log(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        type: str | type[EventBody] | None = None,  # noqa: A002 - the field's word
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> Iterator[Event]:
        """Yield the events of this view, within its scope, in seq order.

        Damaged events are left out, and named by a warning `UnreadableItem`. Cost: a read of each
        event from ``first`` or ``since`` to ``last`` or ``until``.

        Args:
            first: The first seq; default 1.
            last: The last seq; default None: all, then the open transaction's drafts −1, −2, ….
            type: The name of an event type, such as "putFrame", or its body's class; default any.
            actor: The actor of the events; default any.
            correlation: The id of the request or run of the events; default any.
            causation: The seq of the event that led to the events; default any.
            scope: Names and values that the events' scope contains; default none.
            since: The earliest recorded time, also in words such as "yesterday"; default none.
            until: The time before which the events were recorded; default none.

        Raises:
            InvalidInput: an argument has the wrong type, or a time is unusable.
        """
        first = expect_integer("first", first)
        if last is not None:
            last = expect_integer("last", last)
        wanted = (type, actor, correlation, causation)
        return _events(self._snapshot().within(scope), first, last, wanted, since, until)


class AuditReads(Reader):
    """The reads of who wrote what, and of tags."""

    def audit(
        self,
        *,
        type: str | type[EventBody] | None = None,  # noqa: A002 - the field's word
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> Audit:
        """Return who changed what, when, and on whose request, within the scope of this view.

        Recalls and accesses change nothing and are left out. `str` gives text, `Audit.markdown` a
        page. Cost: a read of each event from ``since`` to ``until``.

        Args:
            type: The name of an event type, such as "putFrame", or its body's class; default any.
            actor: The actor of the events; default any.
            correlation: The id of the request or run of the events; default any.
            causation: The seq of the event that led to the events; default any.
            scope: Names and values that the events' scope contains; default none.
            since: The earliest recorded time, also in words such as "yesterday"; default none.
            until: The time before which the events were recorded; default none.

        Raises:
            InvalidInput: an argument has the wrong type, or a time is unusable.
        """
        with loading("the part that audits"):
            from .audit import audit_of

        snapshot = self._snapshot()
        wanted = (type, actor, correlation, causation)
        events = _events(snapshot.within(scope), 1, None, wanted, since, until)
        return audit_of(events, snapshot.basis)

    def tags(self) -> dict[str, int]:
        """Return the seq that each tag of this view names, in order of name.

        If several tags within the view's scope share a name, the first of them counts; in a view
        without a scope, a tag of the tenant ``default`` comes before the rest.
        """
        return tags_of(self._snapshot())


class ProjectionReads(Reader):
    """The read of a projection of a user."""

    @overload
    def projection(self, which: str) -> OwnProjection: ...

    @overload
    def projection(self, which: type[OwnType]) -> OwnType: ...

    def projection(self, which: str | type[RowProjection[Any, Any]]) -> RowProjection[Any, Any]:
        """Return one of your projections as this view sees it.

        Its rows are the rows at the view's basis, and do not change. Cost: see `Fold.own`.

        Args:
            which: The projection's name or class.

        Raises:
            NotFound: the projection was not passed to ``open(projections=…)``.
            ProjectionFailed: its code raised at or before the basis.
            Unsupported: the view has a scope, and a projection's rows are of all scopes.
            InvalidInput: ``which`` is neither a name nor a class of a projection.
        """
        if not isinstance(which, str) and not (
            isinstance(which, type) and issubclass(which, row_projection.RowProjection)
        ):
            raise InvalidInput(
                f"{value_text(which)} is neither a projection's name nor its class",
                remedy="Pass a name, or a subclass of cerata.RowProjection.",
            )
        return self._snapshot().user_projection(which if isinstance(which, str) else which.name)


def tags_of(snapshot: Snapshot) -> dict[str, int]:
    """Return the seq that each tag of a state names, in order of name; see `AuditReads.tags`."""
    rows: dict[str, tuple[bool, int, int]] = {}
    for scope, name, at, seq in snapshot.tag_rows():
        row = (
            snapshot.scope is None and not scopes.admits(scope, scopes.Reach(DEFAULT_SCOPE)),
            seq,
            at,
        )
        rows[name] = min(row, rows.get(name, row))
    return {name: at for name, (_, _, at) in sorted(rows.items())}


def _events(
    snapshot: Snapshot,
    first: int,
    last: int | None,
    wanted: tuple[str | type[EventBody] | None, str | None, str | None, int | None],
    since: date | str | None,
    until: date | str | None,
) -> Iterator[Event]:
    """Return the events of a log, by the arguments of `LogReads.log`."""
    start = end = None
    if since is not None or until is not None:
        # "now" reads the last event, which may be damaged.
        start, end = timelines.range_of(since, until, snapshot.now)
    of_type, actor, correlation, causation = wanted
    chosen = event_filters.EventFilter(
        event_filters.type_name(of_type), actor, correlation, causation, start, end
    )
    return event_filters.events_of(snapshot, first, last, chosen)
