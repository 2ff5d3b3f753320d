# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Threads and items of LangGraph's SQLite files are, once imported, those of the adapters."""

from pathlib import Path

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs the extra conformance")

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

import cerata
from cerata.integrations.importers import import_from
from cerata.integrations.langgraph import CerataSaver, CerataStore

from .sources_of import FILES, source

pytestmark = pytest.mark.langgraph

NAMES = [name for name in FILES if name.startswith("langgraph-sqlite-")]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "langgraph-sqlite-3.db"])
def test_imported_threads_equal_those_of_the_file(name: str, tmp_path: Path) -> None:
    """Every tuple: values, metadata, parents and pending writes."""
    path = source(name, tmp_path)
    with cerata.open(":memory:") as store, SqliteSaver.from_conn_string(str(path)) as saver:
        import_from(store, "langgraph-sqlite", path)
        imported = {str(each.config): each for each in CerataSaver(store).list(None)}
        expected = list(saver.list(None))
        assert len(imported) == len(expected)
        for each in expected:
            found = imported[str(each.config)]
            assert found.checkpoint == each.checkpoint
            assert found.metadata == each.metadata
            assert found.parent_config == each.parent_config
            writes, stored = found.pending_writes or [], each.pending_writes or []
            assert sorted(map(repr, writes)) == sorted(map(repr, stored))


@pytest.mark.parametrize("name", ["langgraph-sqlite-3.db", "langgraph-sqlite-4.db"])
def test_imported_items_equal_those_of_the_file(name: str, tmp_path: Path) -> None:
    """Values and times; an expired item is in neither."""
    path = source(name, tmp_path)
    with cerata.open(":memory:") as store, SqliteStore.from_conn_string(str(path)) as items:
        import_from(store, "langgraph-sqlite", path)
        items.sweep_ttl()
        found = [repr(each.dict()) for each in CerataStore(store).search(())]
        # SqliteStore's times are in UTC, without a zone.
        assert sorted(each.replace("+00:00", "") for each in found) == sorted(
            repr(each.dict()) for each in items.search(())
        )
