"""The sweeps over reads: that they reach every public read, and find a read that keeps a half."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Store

from ..crash.public_reads import READS, answer, reads_of
from ..crash.read_stores import KINDS
from ..crash.sweeps.bench import scratch
from ..crash.sweeps.interrupted_reads import Bench, sweep_reads
from ..surface import surface


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRITES = _names("""
    append assert_fact correct_fact delete judge put_frame put_frames record_access remember
    remember_messages retract_fact supersede update
    embeddings.fill files.remember history.restore history.tag
    graph.assert_many graph.declare graph.extract graph.link graph.merge graph.name
    graph.retract_many graph.split graph.unlink graph.unmerge graph.unsplit
    interchange.import_events interchange.import_facts
    upkeep.apply upkeep.compact upkeep.maintain upkeep.sweep
""")
"""Public names that append: the other sweep strikes the engine below them."""

HANDLE = _names("""
    actor basis close embeddings.embedder log_id now path report scope scoped shared stream.commit
""")
"""Properties of the handle or view itself, and the store of a narrower scope."""


def test_every_public_name_is_read_or_named_above() -> None:
    """A read that is added joins the sweeps, or this list with a reason."""
    read = {name.partition(",")[0] for kind in KINDS.values() for name in reads_of(kind)}
    public = {name for face in (cerata.Store, cerata.View) for name in surface(face)}
    assert public - read - WRITES - HANDLE == set()
    assert not (WRITES | HANDLE) & read


@pytest.mark.parametrize("name", KINDS)
def test_undisturbed_reads_answer_alike_in_any_order(name: str, seed: int) -> None:
    """Else a sweep would blame an interrupt for another difference."""
    with scratch() as folder:
        bench = Bench(KINDS[name], 30, 20, seed, Path(folder))
        store = bench.opened()
        names = list(bench.reads)
        Random(seed).shuffle(names)
        for read in names:
            assert answer(bench.reads[read], store) == bench.expected[read], read
        store.close()
    refused = [read for read, found in bench.expected.items() if str(found).startswith("Invalid")]
    assert refused == []


def _kept_in_place(store: Store) -> object:
    """Count frames by kind into a map that is kept, as a fold in place does."""
    kept: dict[str, int] = vars(store).setdefault("_kept_in_place", {})
    if not kept:
        for frame in store.frames():
            kept[frame.kind] = kept.get(frame.kind, 0) + 1
    return dict(kept)


def _kept_when_whole(store: Store) -> object:
    """Do the same, and keep the map when it is whole."""
    kept: dict[str, int] | None = vars(store).get("_kept_when_whole")
    if kept is None:
        kept = {}
        for frame in store.frames():
            kept[frame.kind] = kept.get(frame.kind, 0) + 1
        vars(store)["_kept_when_whole"] = kept
    return dict(kept)


PLANTED: dict[str, Callable[[Any], object]] = {
    "kept in place": _kept_in_place,
    "kept when whole": _kept_when_whole,
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stores of words have two reads more, of which one keeps a half."""
    monkeypatch.setitem(READS, "words", PLANTED)


@pytest.mark.usefixtures("planted")
def test_the_sweep_finds_a_fold_in_place(seed: int) -> None:
    """The function is entered after the fold of the store itself has ended."""
    struck = ["Snapshot.frame_at"]
    found = {
        name: sweep_reads(
            kinds=["words"],
            reads=[name],
            functions=struck,
            everywhere=True,
            share=2,
            seed=seed,
            events=20,
        )
        for name in PLANTED
    }
    assert found["kept when whole"].problems == []
    assert found["kept when whole"].raised > 0
    assert found["kept in place"].problems != []
    assert found["kept in place"].classes["wrong answer"] > 0


def test_once_strikes_each_place_a_single_time(seed: int) -> None:
    """A sweep of every place that fits into minutes."""
    chosen: dict[str, Any] = {
        "kinds": ["words"],
        "reads": ["frame", "history.timeline"],
        "events": 20,
    }
    struck = ["Snapshot.frame_at", "Log.refresh"]
    tally = sweep_reads(**chosen, functions=struck, everywhere=True, once=True, seed=seed)
    assert tally.problems == []
    assert tally.raised == tally.sites_max > 0
