"""A recorded life under another chunking: the same events, with documents split elsewhere."""

from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.engine.events import AccessFrames, RecallContext
from cerata.memory.search.recall_rerun import RecallSettings
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store
from cerata.memory.view import View
from cerata.packs.experiments.recall_comparison import compare_recalls, settings_of
from cerata.packs.experiments.replayed_life import ReplayedLife
from cerata.retrieval.chunking import Chunking, split_passages
from tests.embedders import Hashing

QUESTION = "how high is the bridge of Ober?"
PLACES = ("Ober", "Unter", "Neu", "Alt")
TEXT = "".join(
    f"# {place}\n\n"
    + "".join(f"Line {n} about the mills and the river of {place}. " for n in range(90))
    + f"The bridge of {place} is {10 + at} metres high.\n\n"
    for at, place in enumerate(PLACES)
)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with cerata.open(tmp_path / "a.cera") as store:
        yield store


def lived(store: Store) -> None:
    """Notes, a document in two versions, a fact from a chunk, a use, and recorded recalls."""
    note = store.put_frame("Ober has a bridge.")
    old = store.remember("An old text about bridges. " * 300, uri="bridges.md")
    store.history.tag("early")
    store.recall(QUESTION, record=True)
    document = store.remember(TEXT, uri="bridges.md")
    chunk = document.ids[-1]
    store.assert_fact("Alt", "height", "13 m", evidence=[chunk])
    store.recall(QUESTION, record=True)
    store.append(AccessFrames(frames=(note.id, chunk, document.ids[-2])))
    store.delete(note)
    store.recall("the river of Neu; Alt height", record=True)
    assert old.id != document.id


def texts(view: Any) -> list[str]:
    return sorted(frame.text or "" for frame in view.frames())


def test_every_point_has_the_same_documents(store: Store) -> None:
    """A document reads as recorded at each basis; only its chunks are others."""
    lived(store)
    recorded = snapshot_of(store)
    life = ReplayedLife(recorded, Chunking(100, 10))
    assert (life.split, life.left, life.without_vectors) == (2, 0, 0)
    for event in store.log():
        if event.seq != event.header.last_seq or not isinstance(event.body, RecallContext):
            continue
        question = life.asked(event.body)
        mine, theirs = recorded.earlier(event.body.basis), life.snapshot.earlier(question.basis)
        assert texts(View(mine)) == texts(View(theirs))
        assert theirs.head.recorded >= mine.head.recorded
    documents = [frame for frame in View(life.snapshot).frames() if frame.uri == "bridges.md"]
    (document,) = documents
    assert document.text == TEXT
    chunks = life.snapshot.chunks_of(document.id).values()
    passages = split_passages(TEXT, chunking=Chunking(100, 10))
    assert len(chunks) == len(passages) > 10
    spoken = [life.snapshot.frame_at(chunk).text for chunk in chunks]
    assert spoken == [passage.text_in(TEXT) for passage in passages]
    assert life.recorded_id(document.id) == next(
        frame.id for frame in View(recorded).frames() if frame.uri == "bridges.md"
    )
    life.close()


def test_the_usual_chunking_gives_the_recorded_contexts(store: Store) -> None:
    """The proof that the replay adds nothing of its own: every text is the recorded text."""
    lived(store)
    compared = compare_recalls(store, RecallSettings(chunking=Chunking()))
    assert [change.same for change in compared.recalls] == [True] * 3
    assert all(change.repeated for change in compared.recalls)
    assert compared.chunking is not None
    assert compared.chunking.split == 0


def test_smaller_passages_show_less_of_a_document(store: Store) -> None:
    lived(store)
    compared = compare_recalls(store, RecallSettings(chunking=Chunking(60, 0)))
    assert compared.chunking is not None
    assert compared.chunking.split == 2
    change = compared.recalls[1]
    assert not change.same
    document = change.passages_before[0][0]
    ends = [end - start for _, start, end in change.passages_after]
    assert ends
    assert max(ends) < max(end - start for _, start, end in change.passages_before)
    place, start, end = change.passages_after[0]
    assert place == document
    assert "bridge of Ober is 10 metres" in TEXT[start:end]


def test_two_chunkings_are_compared(store: Store) -> None:
    lived(store)
    small, large = (RecallSettings(chunking=Chunking(size, 0)) for size in (60, 2_000))
    there = compare_recalls(store, large, small).recalls
    back = compare_recalls(store, small, large).recalls
    assert [change.tokens_before for change in there] == [change.tokens_after for change in back]
    assert [change.passages_after for change in there] == [
        change.passages_before for change in back
    ]
    assert not any(change.repeated for change in there)


def test_one_large_passage_is_a_single_frame(store: Store) -> None:
    """As `remember` stores a short text; a chunk's fact keeps the frame as its evidence."""
    plain = " ".join(f"Line {n} of the river." for n in range(200))
    document = store.remember(plain, uri="river.txt")
    assert len(document.ids) > 2
    store.assert_fact("river", "lines", 200, evidence=[document.ids[-1]])
    life = ReplayedLife(snapshot_of(store), Chunking(5_000, 0))
    (frame,) = View(life.snapshot).frames(include_chunks=True)
    assert (frame.text, frame.chunk_count, frame.uri) == (plain, None, "river.txt")
    (fact,) = View(life.snapshot).facts()
    assert [evidence.frame for evidence in fact.evidence] == [frame.id]


def test_a_short_text_with_a_uri_becomes_a_document(store: Store) -> None:
    """It was remembered whole, because it is one passage."""
    short = " ".join(f"Line {n} of the river." for n in range(30))
    receipt = store.remember(short, uri="river.txt")
    assert len(receipt.ids) == 1
    store.put_frame(short + " Without a URI.")
    life = ReplayedLife(snapshot_of(store), Chunking(50, 0))
    assert life.split == 1
    note, document = View(life.snapshot).frames()
    assert document.text == short
    assert document.chunk_count is not None
    assert note.chunk_count is None


def test_a_document_with_a_chunk_changed_by_itself_stays(store: Store) -> None:
    """A new chunk could not stand for it."""
    document = store.remember(TEXT, uri="bridges.md")
    store.delete(document.ids[-1])
    store.recall(QUESTION, record=True)
    compared = compare_recalls(store, RecallSettings(chunking=Chunking(60, 0)))
    assert compared.chunking is not None
    assert (compared.chunking.split, compared.chunking.kept) == (0, 1)
    assert all(change.same for change in compared.recalls)


def test_new_passages_get_vectors_of_the_same_embedder(tmp_path: Path) -> None:
    path = tmp_path / "v.cera"
    with cerata.open(path, embedder=Hashing()) as store:
        store.remember(TEXT, uri="bridges.md")
        store.recall(QUESTION, record=True)
        life = ReplayedLife(snapshot_of(store), Chunking(60, 0))
        assert life.without_vectors == 0
        change = compare_recalls(store, RecallSettings(chunking=Chunking(60, 0))).recalls[0]
        assert change.passages_after
    with cerata.open(path, mode="r") as store:
        compared = compare_recalls(store, RecallSettings(chunking=Chunking(60, 0)))
        assert compared.chunking is not None
        assert compared.chunking.without_vectors > 10


def test_a_recall_that_a_model_reordered_is_skipped(store: Store) -> None:
    """The log has the model's scores of the recorded passages only."""
    first = store.put_frame("the bridge of Ober")
    store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank={first.id: 1.0}))
    compared = compare_recalls(store, RecallSettings(chunking=Chunking(60, 0)))
    assert (len(compared.recalls), compared.skipped) == (0, 1)


@pytest.mark.parametrize(
    "values",
    [
        {"passage_tokens": 19},
        {"passage_tokens": True},
        {"passage_tokens": "400"},
        {"passage_tokens": 100, "overlap_tokens": 51},
        {"overlap_tokens": -1},
        {"tokens": 100},
        {"passage_tokens": 100_001},
    ],
)
def test_a_chunking_out_of_range_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(cerata.InvalidInput):
        settings_of({"chunking": values})
