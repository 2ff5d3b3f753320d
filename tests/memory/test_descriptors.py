"""A process that has no free file descriptor gets Cerata's errors, and goes on when it has one."""

import json
import subprocess
import sys
from pathlib import Path

import cerata

from ..surface import ELSEWHERE, surface
from .no_descriptors import FILE, NO_READS, READS, STORE
from .snapshot.isolation_calls import OF_PACKS


def public(kind: type) -> set[str]:
    return surface(kind)


def test_every_public_call_of_a_store_is_tried() -> None:
    """A new read or write joins the table, or says why it needs no file."""
    tried = {name.partition(" ")[0] for name in (*READS, *STORE)}
    assert (public(cerata.Store) | OF_PACKS) - ELSEWHERE == (tried | NO_READS) - ELSEWHERE
    assert tried.isdisjoint(NO_READS)


def test_without_a_descriptor_every_call_works_or_is_refused(tmp_path: Path) -> None:
    """A late import failed with OSError, and a missing tokenizer was replaced without a word."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames(["green tea", "Ann likes tea."])
        store.assert_fact("Ann", "lives in", cerata.Entity("Bern"))
        store.assert_fact("Ann", "visits", cerata.Entity("Bob"))
    (tmp_path / FILE).write_text("<p>Notes on tea.</p>", encoding="utf-8")
    child = subprocess.run(
        [sys.executable, Path(__file__).with_name("no_descriptors.py"), path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    for state in ("without", "loaded", "after"):
        assert [call for call in found[state] if (call[1] or "").startswith("raw")] == []
    refused = {name for name, kind, _ in found["without"] if kind == "StorageFailed"}
    assert {"Store.search", "View.recall", "Store.verify", "Store.backup"} <= refused
    # What can be read without a file is read.
    assert {"Store.log", "View.frame", "Store.facts"} & refused == set()
    kinds = {name: kind for name, kind, _ in found["after"] if kind is not None}
    assert kinds == {"Store.embeddings.fill": "InvalidInput"}  # It has no embedder.
    assert found["verified"]
