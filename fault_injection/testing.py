"""The functions for your tests: given events then a state, purity, determinism, crash safety.

Owns the assertions; each raises `AssertionError` with the difference, and how to reproduce the
failure. They need no test runner. `strategies` has the Hypothesis strategies, `pytest_plugin` the
fixtures.

>>> from cerata import RowProjection
>>> from cerata.engine.events import PutFrame
>>> class TagCounts(RowProjection[str, int]):
...     name = "tag-counts"
...     handles = (PutFrame,)
...     def apply(self, events):
...         for event in events:
...             for tag in event.body.tags:
...                 self.rows[tag] = self.rows.get(tag, 0) + 1
>>> notes = PutFrame(text="one", tags=("a", "b")), PutFrame(text="two", tags=("b",))
>>> given(*notes).then(TagCounts, {"a": 1, "b": 2})
>>> assert_projection_pure(TagCounts, *notes)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cerata.engine.errors import InvalidInput
from cerata.engine.log import SyncPolicy
from cerata.memory.store import Store, open_store
from cerata.memory.view import View
from cerata.projections.rows.row_fold import MakeOwn, OwnProjection, RowFold
from cerata.projections.rows.row_projection import RowProjection

from .crash_test import CrashReport, crash_test
from .purity import (
    PATH,
    Batch,
    cuts_of,
    elsewhere,
    environment_of,
    events_of,
    folded,
    image_of,
    rows_of,
    saved_and_loaded,
    watched_calls,
)
from .stories.workload import Workload, operation

__all__ = [
    "Given",
    "Workload",
    "assert_crash_safe",
    "assert_deterministic",
    "assert_projection_pure",
    "given",
    "operation",
]

_SHOWN = 3
"""Differences, and violations, that a message names."""


# --- given, then ---------------------------------------------------------------------------------


def given(*batches: Batch, projections: Sequence[MakeOwn] = ()) -> "Given":
    """Return a memory in which these events happened, in order, for comparison with a state.

    Args:
        batches: events and lists of events; an event alone is a batch, and so is a list.
        projections: user-defined projections for functions of the view.

    Raises:
        InvalidInput: a value is no event, or cannot be stored.
    """
    return Given(image_of(batches), tuple(projections))


class Given:
    """A memory to compare with an expected state; `given` returns it."""

    def __init__(self, image: bytes, projections: Sequence[MakeOwn]) -> None:
        self._image = image
        self._projections = projections

    def then(
        self, subject: type[OwnProjection] | Callable[[View], object], expected: object
    ) -> None:
        """Assert the rows of a projection, or the result of a function of the view.

        The value is read three times, and must be as expected each time: from the events as they
        were folded, from the state saved and loaded again, and from a replay of the log.

        Args:
            subject: a projection class, or a function of a view.
            expected: the rows as a dict, or the result of the function.

        Raises:
            AssertionError: a value differs.
        """
        name, read = _reader(subject)
        for how, value in self._read(subject, read):
            if value != expected:
                raise AssertionError(
                    f"{name}, {how}, is\n    {value!r}\nand should be\n    {expected!r}"
                )

    def _read(self, subject: object, read: Callable[[View], object]) -> list[tuple[str, object]]:
        projections = [*self._projections]
        if isinstance(subject, type) and subject not in projections:
            projections.append(subject)
        environment = environment_of(self._image)
        with open_store(PATH, environment=environment, projections=projections) as store:
            values = [("folded from the events", read(store.history.view()))]
            store.checkpoint()
        with open_store(PATH, environment=environment, projections=projections) as store:
            values.append(("saved and loaded again", read(store.history.view())))
            values.append(("replayed", read(store.stream.replay())))
        return values


def _reader(
    subject: type[OwnProjection] | Callable[[View], object],
) -> tuple[str, Callable[[View], object]]:
    if isinstance(subject, type):
        if not issubclass(subject, RowProjection):
            raise InvalidInput(
                f"subject must be a RowProjection or a function of a view, not {subject.__name__}",
                remedy="Pass a subclass of cerata.RowProjection, or a function of a view.",
            )
        kind: type[OwnProjection] = subject  # pyright: ignore[reportUnknownVariableType]
        return f"the rows of {kind.__name__}", lambda view: dict(view.stream.projection(kind).rows)
    return getattr(subject, "__name__", "the result"), subject


# --- purity --------------------------------------------------------------------------------------


def assert_projection_pure(projection: type[OwnProjection], *batches: Batch, seed: int = 0) -> None:
    """Assert that a projection is a pure fold of these events.

    While it folds it calls no clock, no randomness and no file; the cut of the events into lists
    does not matter; and all of its state is in its rows. Cost: seven folds of the events.

    Args:
        projection: the class of the projection.
        batches: events and lists of events, as for `given`.
        seed: seed of the random cuts.

    Raises:
        AssertionError: with the call and its line, or the rows that differ and the cut.
    """
    events = _some_events(batches)
    with watched_calls() as calls:
        whole = rows_of(folded(projection, [events]))
    if calls:
        raise AssertionError(
            f"{projection.__name__} must not call {calls[0]}: the result is in no event"
        )
    again = rows_of(folded(projection, [events]))
    _compare(projection, "folded twice", whole.rows, again.rows)
    for how, lists in cuts_of(events, seed):
        cut = rows_of(folded(projection, lists))
        _compare(projection, f"with the events {how}", whole.rows, cut.rows)
    loaded: RowFold = saved_and_loaded(projection, events)
    _compare(
        projection,
        "saved half-way and loaded again (is there state beside its rows?)",
        whole.rows,
        rows_of(loaded).rows,
    )


def assert_deterministic(projection: type[OwnProjection], *batches: Batch) -> None:
    """Assert that another interpreter folds the same rows from these events.

    Two processes with different hash seeds fold them, which exposes a dependence on the order of a
    set or on the id of an object. Cost: two starts of Python.

    Args:
        projection: the class of the projection, at the top of a module.
        batches: events and lists of events, as for `given`.

    Raises:
        AssertionError: with the rows that differ.
        InvalidInput: the class cannot be loaded in another interpreter.
    """
    events = _some_events(batches)
    here = rows_of(folded(projection, [events]))
    for hash_seed, there in elsewhere(projection, image_of(batches)).items():
        how = f"in another interpreter (PYTHONHASHSEED={hash_seed})"
        _compare(projection, how, here.rows, there.rows)


def _some_events(batches: Sequence[Batch]) -> Sequence[Any]:
    events = events_of(image_of(batches))
    if not events:
        raise InvalidInput(
            "There are no events to fold", remedy="Pass events that the projection handles."
        )
    return events


def _compare(
    projection: type[OwnProjection], how: str, here: Mapping[str, str], there: Mapping[str, str]
) -> None:
    keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    if keys:
        differences = "".join(
            f"\n    {key}: {there.get(key, 'missing')}, not {here.get(key, 'missing')}"
            for key in keys[:_SHOWN]
        )
        more = f"\n    and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        raise AssertionError(f"{projection.__name__} has other rows {how}:{differences}{more}")


# --- crashes -------------------------------------------------------------------------------------


def assert_crash_safe(
    workload: type[Workload] | Callable[[Store], object],
    *,
    check: Callable[[Store], object] | None = None,
    projections: Sequence[MakeOwn] = (),
    sync: SyncPolicy = "commit",
    story: Sequence[str] | None = None,
    stories: int = 40,
    seed: int = 0,
) -> CrashReport:
    """Assert that a workload survives a crash at every point of its stories, and return the counts.

    Cost: about 20 ms a story, in this process.

    Args:
        workload: a class, or a function of a store, which becomes the only operation.
        check: a function of a recovered store that returns False or raises if it is wrong.
        projections: user-defined projections of a function's store.
        sync: the sync policy of a function's store; default "commit".
        story: operations to run in this order; None runs ``stories``.
        stories: the number of stories to run, short stories first.
        seed: seed of the drawn stories.

    Raises:
        AssertionError: with the shortest story of each violation.
    """
    kind = (
        workload
        if isinstance(workload, type)
        else _one_operation(workload, check, projections, sync)
    )
    if not issubclass(kind, Workload):
        raise InvalidInput(
            f"workload must be a subclass of Workload or a function, not {kind.__name__}",
            remedy="Subclass Workload, or pass a function of a store.",
        )
    report = crash_test(
        kind,
        budget_seconds=float("inf"),
        jobs=1,
        seed=seed,
        stories_max=stories,
        stories=None if story is None else [tuple(story)],
    )
    if report.violations:
        raise AssertionError(_summary(kind, report))
    return report


def _one_operation(
    act: Callable[[Store], object],
    check: Callable[[Store], object] | None,
    projections: Sequence[MakeOwn],
    sync: SyncPolicy,
) -> type[Workload]:
    name = getattr(act, "__name__", "act").strip("<>")

    def run(_: Workload, store: Store) -> object:
        return act(store)

    def checked(_: Workload, store: Store) -> None:
        if check is not None and check(store) is False:
            raise AssertionError(f"{getattr(check, '__name__', 'check')} is False")

    members = {
        name: operation(run),
        "check": checked,
        "projections": tuple(projections),
        "sync": sync,
        "__doc__": act.__doc__,
    }
    return type(name, (Workload,), members)


def _summary(kind: type[Workload], report: CrashReport) -> str:
    lines = [f"{kind.__name__} does not survive a crash; of {report.states:,} crash states:"]
    listed: set[tuple[str, str]] = set()
    for violation in sorted(report.violations, key=lambda violation: len(violation.operations)):
        if (violation.rule, violation.what) in listed or len(listed) == _SHOWN:
            continue
        listed.add((violation.rule, violation.what))
        lines.append(f"  {violation.rule}: {violation.what}")
        lines.append(f"    in the story {list(violation.operations)!r}")
        if violation.crash:
            lines.append(f"    {violation.crash}")
    return "\n".join(lines)
