"""Two versions of a user's projection, folded over one log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.engine.events import PutFrame
from cerata.memory.store import Store
from cerata.packs.experiments.projection_comparison import RowChange, compare_projections


class Tags(cerata.RowProjection[Any, Any]):
    """Frames by tag."""

    name = "by-tag"
    handles = (PutFrame,)

    def apply(self, events: Sequence[Any]) -> None:
        for event in events:
            for tag in event.body.tags:
                self.rows[tag] = self.rows.get(tag, 0) + 1


class Folded(Tags):
    """Tags without regard to case."""

    version = 2

    def apply(self, events: Sequence[Any]) -> None:
        for event in events:
            for tag in event.body.tags:
                self.rows[tag.lower()] = self.rows.get(tag.lower(), 0) + 1


class Flags(Tags):
    """True in place of 1."""

    def apply(self, events: Sequence[Any]) -> None:
        for event in events:
            for tag in event.body.tags:
                self.rows[tag] = tag not in self.rows or self.rows[tag] + 1


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with cerata.open(tmp_path / "a.cera") as store:
        yield store


def test_the_rows_that_differ_and_the_event_that_parted_them(store: Store) -> None:
    store.put_frames([f"note {n}" for n in range(1_500)])
    store.put_frame("tea", tags=["tea"])
    event = store.put_frame("more tea", tags=["Tea", "cake"])
    store.put_frame("no tea", tags=["tea"])
    compared = compare_projections(store, Tags, Folded)
    assert (compared.before, compared.after, compared.basis) == ("by-tag 1", "by-tag 2", 1_503)
    assert compared.first == event.id
    assert not compared.same
    assert {change.key: change for change in compared.changes} == {
        "Tea": RowChange("Tea", "before", 1, None),
        "tea": RowChange("tea", None, 2, 3),
    }
    assert (compared.rows_before, compared.rows_after) == (3, 2)
    earlier = compare_projections(store.at(event.id - 1), Tags, Folded)
    assert earlier.same
    assert earlier.first is None


def test_a_bool_is_no_number(store: Store) -> None:
    """Rows are compared by their bytes, as their digests are."""
    store.put_frame("tea", tags=["tea"])
    (change,) = compare_projections(store, Tags, Flags).changes
    assert (change.before, change.after) == (1, True)


def test_a_scope_and_a_class_of_another_kind_are_refused(store: Store) -> None:
    with pytest.raises(cerata.Unsupported, match="scope"):
        compare_projections(store.scoped({"user": "ana"}), Tags, Folded)
    not_a_projection: Any = dict
    with pytest.raises(cerata.InvalidInput, match="creates no projection"):
        compare_projections(store, Tags, not_a_projection)


def test_code_that_raises_names_the_event(store: Store) -> None:
    class Broken(Tags):
        def apply(self, events: Sequence[Any]) -> None:
            raise ValueError("no")

    number = store.put_frame("tea").id
    with pytest.raises(cerata.ProjectionFailed, match=f"event {number}"):
        compare_projections(store, Tags, Broken)
