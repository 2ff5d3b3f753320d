# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangGraph's own suite for checkpoint savers: every group, over async and over sync methods."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

conformance: Any = pytest.importorskip(
    "langgraph.checkpoint.conformance", reason="needs the extra conformance"
)

from cerata.integrations.langgraph import CerataSaver  # noqa: E402

from .savers import SyncSaver, saver_in_memory  # noqa: E402

pytestmark = pytest.mark.langgraph

COUNTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


@pytest.mark.parametrize("kind", [CerataSaver, SyncSaver])
def test_each_group_of_the_suite_passes_and_none_is_skipped(kind: type[CerataSaver]) -> None:
    """The suite skips a group in silence if a method is missing, so the groups are counted."""

    async def saver() -> AsyncIterator[CerataSaver]:
        with saver_in_memory(kind) as made:
            yield made

    register: Any = conformance.checkpointer_test(name=kind.__name__)
    report = asyncio.run(conformance.validate(register(saver)))
    results = report.results
    assert [failure for result in results.values() for failure in result.failures] == []
    assert report.passed_all()
    assert all(result.detected and not result.tests_skipped for result in results.values())
    assert {name: result.tests_passed for name, result in results.items()} == COUNTS
    assert sum(COUNTS.values()) == 81
