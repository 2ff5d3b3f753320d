"""What your own tests call: given events then a state, purity, determinism, and safety in a crash.

Owns the assertions; each raises `AssertionError` with what differs, and how to see it again. They
need no test runner. Hypothesis's side of it is `strategies`; fixtures are `pytest_plugin`'s.

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
from cerata.projections.row_fold import MakeOwn, OwnProjection, RowFold
from cerata.projections.rows import RowProjection

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
from .workload import Workload, operation

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
    """Return a memory in which these events happened, in order, to hold against what you expect.

    An event alone is a batch of its own; a list of events is one batch. ``projections`` are your
    own, for what you read by a function of the view.

    Raises:
        InvalidInput: one of them is no event, or cannot be stored.
    """
    return Given(image_of(batches), tuple(projections))


class Given:
    """A memory to be held against what is expected of it; `given` makes one."""

    def __init__(self, image: bytes, projections: Sequence[MakeOwn]) -> None:
        self._image = image
        self._projections = projections

    def then(
        self, subject: type[OwnProjection] | Callable[[View], object], expected: object
    ) -> None:
        """Assert what a projection's rows are, or what a function of the view returns.

        It is read where the events were folded as they came, where the state was saved and loaded
        again, and from a replay of the log: all three must be as expected.

        Raises:
            AssertionError: one of them is not.
        """
        name, read = _reader(subject)
        for how, found in self._read(subject, read):
            if found != expected:
                raise AssertionError(
                    f"{name}, {how}, is\n    {found!r}\nand should be\n    {expected!r}"
                )

    def _read(self, subject: object, read: Callable[[View], object]) -> list[tuple[str, object]]:
        own = [*self._projections]
        if isinstance(subject, type) and subject not in own:
            own.append(subject)
        environment = environment_of(self._image)
        with open_store(PATH, environment=environment, projections=own) as store:
            found = [("folded from the events", read(store.view()))]
            store.checkpoint()
        with open_store(PATH, environment=environment, projections=own) as store:
            found.append(("saved and loaded again", read(store.view())))
            found.append(("replayed", read(store.replay())))
        return found


def _reader(
    subject: type[OwnProjection] | Callable[[View], object],
) -> tuple[str, Callable[[View], object]]:
    if isinstance(subject, type):
        if not issubclass(subject, RowProjection):
            raise InvalidInput(
                f"{subject.__name__} is no projection",
                remedy="Give a subclass of cerata.RowProjection, or a function of a view.",
            )
        kind: type[OwnProjection] = subject  # pyright: ignore[reportUnknownVariableType]
        return f"the rows of {kind.__name__}", lambda view: dict(view.projection(kind).rows)
    return getattr(subject, "__name__", "what was asked"), subject


# --- purity --------------------------------------------------------------------------------------


def assert_projection_pure(projection: type[OwnProjection], *batches: Batch, seed: int = 0) -> None:
    """Assert that a projection is a pure fold of these events.

    It calls no clock, no randomness and no file while it folds; how the events are cut into lists
    does not matter; and all of its state is in its rows. Cost: it folds them seven times.

    Raises:
        AssertionError: with the call and its line, or the rows that differ and how they were cut.
    """
    events = _some_events(batches)
    with watched_calls() as calls:
        whole = rows_of(folded(projection, [events]))
    if calls:
        raise AssertionError(
            f"{projection.__name__} must not call {calls[0]}: what it returns is in no event"
        )
    again = rows_of(folded(projection, [events]))
    _compare(projection, "folded twice", whole.rows, again.rows)
    for how, lists in cuts_of(events, seed):
        found = rows_of(folded(projection, lists))
        _compare(projection, f"with the events {how}", whole.rows, found.rows)
    loaded: RowFold = saved_and_loaded(projection, events)
    _compare(
        projection,
        "saved half-way and loaded again (is there state beside its rows?)",
        whole.rows,
        rows_of(loaded).rows,
    )


def assert_deterministic(projection: type[OwnProjection], *batches: Batch) -> None:
    """Assert that another interpreter folds the same rows from these events.

    Two processes with hash seeds of their own fold them: the order of a set or of an object's id
    shows. The class must be at the top of a module. Cost: two starts of Python.

    Raises:
        AssertionError: with the rows that differ. InvalidInput: the class cannot be loaded there.
    """
    events = _some_events(batches)
    here = rows_of(folded(projection, [events]))
    for hash_seed, found in elsewhere(projection, image_of(batches)).items():
        how = f"in another interpreter (PYTHONHASHSEED={hash_seed})"
        _compare(projection, how, here.rows, found.rows)


def _some_events(batches: Sequence[Batch]) -> Sequence[Any]:
    events = events_of(image_of(batches))
    if not events:
        raise InvalidInput("There are no events to fold", remedy="Give some that it handles.")
    return events


def _compare(
    projection: type[OwnProjection], how: str, here: Mapping[str, str], there: Mapping[str, str]
) -> None:
    keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    if keys:
        shown = "".join(
            f"\n    {key}: {there.get(key, 'missing')}, not {here.get(key, 'missing')}"
            for key in keys[:_SHOWN]
        )
        more = f"\n    and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        raise AssertionError(f"{projection.__name__} has other rows {how}:{shown}{more}")


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
    """Assert that a workload survives a crash at every point of its stories; returns the counts.

    ``workload`` is a class, or one function of a store with what must hold afterwards (``check``)
    and its ``projections``. ``story`` names operations to run in this order; else so many
    ``stories`` are run, the short ones first. Cost: about 20 ms a story, in this process.

    Raises:
        AssertionError: with the shortest story that shows each violation.
    """
    kind = (
        workload
        if isinstance(workload, type)
        else _one_operation(workload, check, projections, sync)
    )
    if not issubclass(kind, Workload):
        raise InvalidInput(
            f"{kind.__name__} is no workload", remedy="Subclass Workload, or give a function."
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
        raise AssertionError(_told(kind, report))
    return report


def _one_operation(
    act: Callable[[Store], object],
    check: Callable[[Store], object] | None,
    projections: Sequence[MakeOwn],
    sync: SyncPolicy,
) -> type[Workload]:
    """Return a workload whose only operation is a function."""
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


def _told(kind: type[Workload], report: CrashReport) -> str:
    lines = [f"{kind.__name__} does not survive a crash; of {report.states:,} crash states:"]
    seen: set[tuple[str, str]] = set()
    for one in sorted(report.violations, key=lambda one: len(one.operations)):
        if (one.rule, one.what) in seen or len(seen) == _SHOWN:
            continue
        seen.add((one.rule, one.what))
        lines.append(f"  {one.rule}: {one.what}")
        lines.append(f"    in the story {list(one.operations)!r}")
        if one.crash:
            lines.append(f"    {one.crash}")
    return "\n".join(lines)
