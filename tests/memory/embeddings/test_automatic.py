"""open(embedder="auto"): the embedder that the memory remembers, else the static one."""

from pathlib import Path

import pytest

import cerata
from cerata import Unsupported
from cerata.retrieval.embedders import built_in
from cerata.retrieval.embedders.embedder import Embedder

from ...embedders import Hashing

STATIC = "static-minilm"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.cera"


def name_of(store: cerata.Store) -> str | None:
    return None if store.embeddings.embedder is None else store.embeddings.embedder.identity.name


def test_a_new_memory_gets_the_static_embedder(path: Path) -> None:
    with cerata.open(path, embedder="auto") as store:
        assert name_of(store) == STATIC
        assert store.head.seq == 0, "opening writes nothing"
        store.put_frames(["the harbour bridge", "a tablet of wax"])
        assert store.search("crossing at the port", mode="vector")[0].text == "the harbour bridge"
        remembered = store.embeddings.used()
        assert remembered is not None
        assert remembered.name == "static"
    with cerata.open(path) as store:
        assert name_of(store) == STATIC


def test_a_remembered_embedder_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(built_in.BUILT_IN, "hashing", Hashing)
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("wax")
    with cerata.open(path, embedder="auto") as store:
        assert name_of(store) == "hashing"
        store.put_frame("tablet")
        assert store.embeddings.fill().frames == 0


def test_an_embedder_that_cannot_run_here_leaves_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vectors of another embedder would be searched by none of the others."""
    with cerata.open(path, embedder=Hashing()) as store:
        store.put_frame("wax tablet")
    with cerata.open(path, embedder="auto") as store:
        assert store.embeddings.embedder is None
        hits = store.search("wax")
        assert hits[0].text == "wax tablet"
        assert "is no built-in embedder" in hits.notices[0]


def test_without_the_static_embedder_words_alone_are_searched(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Embedder:
        raise Unsupported("The table is damaged", remedy="Install Cerata again.")

    monkeypatch.setitem(built_in.BUILT_IN, "static", missing)
    with cerata.open(path, embedder="auto") as store:
        assert store.embeddings.embedder is None
        store.put_frame("wax")
        assert store.search("wax")[0].text == "wax"


def test_each_tenant_has_its_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(built_in.BUILT_IN, "hashing", Hashing)
    with cerata.open(path, embedder="hashing", scope={"tenant": "a"}) as store:
        store.put_frame("wax")
    with cerata.open(path, embedder="auto", scope={"tenant": "b"}) as store:
        assert name_of(store) == STATIC
        store.put_frame("tablet")
    with cerata.open(path, embedder="auto", scope={"tenant": "a"}) as store:
        assert name_of(store) == "hashing"


def test_a_fork_goes_on_with_the_choice(path: Path, tmp_path: Path) -> None:
    with cerata.open(path, embedder="auto") as store:
        store.remember("wax")
        with store.upkeep.fork(path=tmp_path / "b.cera") as fork:
            assert name_of(fork) == STATIC


def test_a_scoped_store_shares_the_choice(path: Path) -> None:
    with cerata.open(path, embedder="auto") as store:
        assert name_of(store.scoped({"user": "ana"})) == STATIC
