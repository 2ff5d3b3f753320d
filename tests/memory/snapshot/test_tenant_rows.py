"""Rows of a projection that begin with their tenant: a tenant reads its rows, and no others."""

from collections.abc import Sequence
from typing import Any

import pytest

import cerata
from cerata.events import PutFrame
from cerata.projections.core.projection import FoldedEvent


class Kinds(cerata.RowProjection[tuple[str | int | bytes, str], int]):
    """The number of frames by tenant and kind."""

    name = "kinds"
    handles = (PutFrame,)
    tenant_first = True

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            assert event.scope is not None
            assert isinstance(event.body, PutFrame)
            tenant = dict(event.scope)["tenant"]
            key = str(tenant).lower().encode() if isinstance(tenant, bool) else tenant
            row = key, event.body.kind or ""
            self.rows[row] = self.rows.get(row, 0) + 1


class Plain(Kinds):
    """Keys without a promise of their tenants."""

    name = "plain"
    tenant_first = False


class Unsorted(Plain):
    """Keys that break the promise."""

    name = "unsorted"
    tenant_first = True

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        rows: Any = self.rows
        rows["all"] = len(events)


TENANTS: Sequence[str | int | bool] = ("ana", "ana2", "1", "true", 1, True, "an", "ana\0", "")


def test_a_tenant_reads_its_rows_and_no_others() -> None:
    """Values that look alike are different tenants."""
    with cerata.open(":memory:", projections=[Kinds, Plain]) as store:
        for tenant in TENANTS:
            store.put_frame(
                "x", kind=f"of {tenant!r}", options=cerata.PutOptions(scope={"tenant": tenant})
            )
        assert len(store.stream.projection(Kinds).rows) == len(TENANTS)
        for tenant in TENANTS:
            scoped = store.scoped({"tenant": tenant})
            rows = scoped.stream.projection(Kinds).rows
            assert [kind for _, kind in rows] == [f"of {tenant!r}"]
            assert len(rows) == 1
            with scoped.transaction():
                scoped.put_frame("y", kind="pending")
                assert len(scoped.stream.projection(Kinds).rows) == 2
            assert len(scoped.stream.projection(Kinds).rows) == 2
            with pytest.raises(cerata.Unsupported, match="not narrowed"):
                scoped.stream.projection(Plain)
            with pytest.raises(cerata.Unsupported, match="narrower"):
                scoped.scoped({"user": "u"}).stream.projection(Kinds)


def test_a_key_without_a_tenant_fails_the_projection() -> None:
    """The promise is checked where it is broken, not where a read would hide the row."""
    with cerata.open(":memory:", projections=[Unsorted]) as store:
        store.put_frame("x")
        with pytest.raises(cerata.ProjectionFailed, match="does not begin with a tenant"):
            store.stream.projection(Unsorted)
