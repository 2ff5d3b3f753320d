"""Points in time: the memory as it was, its names for points of the log, and differences.

Owns the meaning of a basis, tags, and the comparison of two states. Leaves out the view itself
(`view`), and words for times (`cerata.projections.columnar.relative_times`).
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, EventBody, PutTag
from cerata.engine.late import late, loading
from cerata.projections.columnar.times import to_datetime, to_microseconds

from .batch.writer import Writer
from .frames.log_reads import tags_of
from .snapshot.points import seq_of_point
from .values.arguments import full_scope
from .values.frames import Receipt
from .view import Basis, View, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cerata.projections.columnar import relative_times
    from cerata.projections.fulltext.query import Query
    from cerata.replay import fold as replay_fold

    from .bisection import Bisection, Probe, Test, Unit
    from .frames.diff import Diff
    from .snapshot.snapshot import Snapshot
else:
    relative_times = late("cerata.projections.columnar.relative_times")
    replay_fold = late("cerata.replay.fold")


class Points(Writer):
    """The meaning of a basis, for the calls that take one."""

    def _at(self, basis: Basis) -> Snapshot:
        newest = self._session.newest_seq()
        if isinstance(basis, View):
            state = state_of(basis)
            self._log.check_point(state.basis, state.identity)
            return state.on_log(self._log, self._fold).narrowed_to(self._session.reach)
        if basis == "HEAD":
            return self._session.snapshot_at(newest, self._log.environment.now_us())
        seq, now = seq_of_point(self._log, basis, self._tags, newest, self._clock())
        self._log.horizon().check(seq)
        return self._session.snapshot_at(seq, now)

    def _seq_of(self, basis: Basis) -> int:
        """Return the event of a point for a read of the log, which retention leaves whole."""
        if isinstance(basis, View) or basis == "HEAD":
            return self._at(basis).basis
        newest = self._session.newest_seq()
        return seq_of_point(self._log, basis, self._tags, newest, self._clock())[0]

    def _clock(self) -> datetime:
        """Return the clock's time, from which a basis in words counts."""
        return to_datetime(self._log.environment.now_us())

    def _tags(self) -> Mapping[str, int]:
        return tags_of(self._session.snapshot_at(self._session.newest_seq()))


class PointsInTime(Points):
    """The calls that take points of the log."""

    def at(
        self,
        basis: Basis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> View:
        """Return the memory as it was at a basis; later writes do not change the view.

        The basis is one of:

        - a number: a seq, exactly the first n events, also inside a batch;
        - a receipt or head: the end of its batch;
        - a context: its basis and "now", so that the same question gives the same context;
        - a view: its basis and scope, with the drafts that it has of an open transaction;
        - an aware datetime or an ISO string: the last batch recorded by then;
        - an ISO day or month, or a time in words such as "yesterday", "last Tuesday" or
          "2 hours ago": the last batch recorded by its end, in UTC;
        - ``"HEAD"``, the newest event, or ``"HEAD~2"``, two batches before;
        - the name of a tag: the batch end that it names.

        After a compaction with a horizon, points before the horizon need a tag.

        Args:
            basis: The point of the log.
            valid_at: The instant at which the view's facts must be true, also in words such as
                "now"; a day counts from 00:00 UTC. Default any.
            now: The meaning of "now", by which frames expire, such as the `now` of a recall event;
                default the clock at "HEAD", and the recorded time of any other basis.

        Raises:
            NotFound: the log ends before the basis.
            InvalidInput: the basis has no known form, or is a point of another memory.
            Diverged: the basis is a point of another fork, after the last common event.
            HistoryPruned: the basis is before the horizon of a compaction, and had no tag.
        """
        if (
            type(basis) is int
            and 0 <= basis <= self._log.snapshot.head_seq
            and not (isinstance(valid_at, str) and relative_times.is_relative(valid_at))
            and now is None
            and self._session.open_block is None
        ):
            # Events up to the snapshot's head never change, so the file need not be read again.
            instant = None if valid_at is None else to_microseconds(valid_at)
            self._log.horizon().check(basis)
            return View(self._session.snapshot_at(basis, valid_at_us=instant))
        state = self._at(basis)
        if now is not None:
            state = state.as_of(to_microseconds(now))
        return View(state if valid_at is None else state.true_at(valid_at))

    def diff(
        self, a: Basis, b: Basis = "HEAD", *, query: str | Query | None = None, k: int = 10
    ) -> Diff:
        """Return the differences between the memory at ``a`` and at ``b``.

        Any two points or views of the log can be compared, also views with speculative events.
        ``diff("HEAD", store.history.view())`` in a transaction returns the block's pending changes.
        Cost: a look at each frame and fact that an event between the two touched, and with
        ``query`` two searches; the log and the store may have any size.

        Args:
            a: The first point of the log, as `at` takes it; two views must have one scope.
            b: The second point; default the newest event.
            query: A question, whose results that changed rank are in `Diff.results`; default none.
            k: The count of results that are compared; default 10.

        Raises:
            NotFound: the log ends before a basis.
            InvalidInput: a basis has no known form, or the views have different scopes.
        """
        with loading("the part that compares"):
            from .comparison import compared

        return compared(View(self._at(a)), View(self._at(b)), query, k)


class PastCommands(Points):
    """The calls that name a point of the log, and compare it with now."""

    def tag(
        self,
        name: str,
        at: Basis = "HEAD",
        *,
        actor: str | None = None,
    ) -> Receipt:
        """Name the end of a batch; `at` takes the name. Durable on return.

        A tag never moves. Inside a transaction the tag names a point of the log, without the
        pending drafts.

        Args:
            name: The tag: a letter, then letters, digits, ".", "_", "-" and "/"; at most 100.
            at: The end of a batch, as the method `at` takes it; default the newest.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            Conflict: the name is taken.
            InvalidInput: the name is not valid, or ``at`` lies inside a batch.
            NotFound: the log ends before ``at``.
        """
        scope = full_scope(None, self._session.scope)
        state = self._at(at)
        if state.unsalted_drafts:
            raise InvalidInput(
                "The view has drafts of a transaction, which are not in the log",
                remedy="Call history.tag() after the transaction.",
            )
        seq = state.basis
        self._session.record_call(scope, "tag", name, at if isinstance(at, str | date) else seq)
        return self._session.by(actor).write([Draft(PutTag(tag=name, at=seq), scope)])

    def since(self, basis: Basis, *, query: str | Query | None = None, k: int = 10) -> Diff:
        """Return the changes from a point to the newest event; see `View.history.since`.

        Args:
            basis: The point, as `at` takes it.
            query: A question, whose results that changed rank are in `Diff.results`; default none.
            k: The count of results that are compared; default 10.

        Raises:
            NotFound: the log ends before the basis.
            InvalidInput: the basis has no known form.
        """
        return View(self._session.state()).history.since(basis, query=query, k=k)

    def bisect(
        self,
        test: Test,
        *,
        good: Basis = 0,
        bad: Basis = "HEAD",
        by: Unit = "event",
        known: Iterable[Probe] | str = (),
        checks: int = 0,
        progress: Callable[[Probe], None] | None = None,
    ) -> Bisection:
        """Return the first event after which a test of the memory is false.

        The test is true at ``good`` and false at ``bad``, and its answer changes once between
        them. Nothing is written. Cost: at most 2 + log2(events) tests, rounded down; two more for
        batches, which differ in size.

        Args:
            test: Returns True for a view of a good memory, False for a bad, None for a skipped.
            good: A point at which the test is true, as `at` takes it; default the empty memory.
            bad: A later point at which the test is false; default the newest event.
            by: "event", or "batch" for ends of batches only.
            known: Verdicts of an earlier search, as its probes or as its printed log.
            checks: Further tests on each side of the answer, evenly spaced; default none.
            progress: Called with each probe.

        Raises:
            InvalidInput: the test has one answer at both ends or the reverse answers, ``good`` is
                not before ``bad``, or an argument has no such value.
            NotFound: the log ends before an end.
            BisectFailed: the test raised, skipped too much, or changed more than once.
        """
        with loading("the part that bisects"):
            from .bisection import Bisector, check_search, known_verdicts

        check_search(test, by, checks)
        first, last = self._at(good), self._at(bad)
        if first.unsalted_drafts or last.unsalted_drafts:
            raise InvalidInput(
                "An end of the search has drafts of a transaction, which are not in the log",
                remedy="Call history.bisect() after the transaction.",
            )
        if first.basis >= last.basis:
            raise InvalidInput(
                f"good is at event {first.basis:,}, not before bad at {last.basis:,}",
                remedy="Pass a bad= that is later than good=.",
            )
        bisector = Bisector(
            self._view_at,
            self._batch_at,
            test,
            unit=by,
            known=known_verdicts(known),
            progress=progress,
        )
        return bisector.run(first.basis, last.basis, checks)

    def _view_at(self, seq: int) -> View:
        return View(self._at(seq))

    def _batch_at(self, seq: int) -> tuple[int, int]:
        """Return the first and the last seq of the batch of an event."""
        header = self._log.event(seq).header
        return header.first_seq, header.last_seq

    def view(self) -> View:
        """Return the state that a read sees now: the newest, the same as ``at("HEAD")``.

        Inside a transaction: the state at the block's first read, with the block's pending
        drafts over that state. Cost: folding the drafts that are new since the last view.
        """
        return View(self._session.state())


class ReplayReads(Points):
    """The read that folds the log again."""

    def replay(self, basis: Basis = "HEAD") -> View:
        """Return the view of `at`, folded from the events alone: every checkpoint is ignored.

        The drafts that a view has of an open transaction are folded again too. Its reads return
        the same results. Nothing is saved. Cost: the first read folds the log up to the basis,
        about 25 ms for 1,000 texts.

        Args:
            basis: The point of the log, as `at` takes it; default the newest event.
        """
        state = self._at(basis)
        return View(
            state.on_log(self._log, replay_fold.replay(self._log, state.basis, self._fold.registry))
        )


class Speculation(Points):
    """The read of events that are not in the log."""

    def speculate(self, *events: EventBody | Draft) -> View:
        """Return the newest state with events that are not in the log; see `View.upkeep.speculate`.

        Args:
            *events: Event bodies or drafts; without a scope they get the store's scope.

        Raises:
            InvalidInput, NotFound, Conflict: `append` would refuse the events.
        """
        return View(self._session.state()).upkeep.speculate(*events)
