"""Speed of full text, by wide ratios to a floor or a peer in the same run.

The figures are printed by ``python -m benchmarks.fulltext_bench``. Here each bound holds by a wide
margin, and the same measure breaks it once what makes it fast is switched off.
"""

import itertools
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest

import cerata
from benchmarks.fulltext_bench import Folded, corpus, fts5_rate, questions_of, side_by_side
from cerata.engine.events import PutFrame
from cerata.projections.columnar.columns import I32, I64, U32, U64, Unsigned, ascending_order
from cerata.projections.core.projection import BLOCK_SEQS
from cerata.projections.core.seal import complete_ranges
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext import analyzer as text
from cerata.projections.fulltext import bm25 as ranking
from cerata.projections.fulltext import occurrences, postings
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.english import Rules, english
from cerata.projections.fulltext.occurrences import Occurrences
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.vocabulary import RowsOf, Vocabulary
from cerata.projections.fulltext.word_table import UNKNOWN, Words, WordTable

from ..timing import seconds

DOCUMENTS = 4_000
EVENTS, WORDS = corpus(DOCUMENTS)
QUESTIONS = questions_of(WORDS, 60)
TEXTS = [event.body.text or "" for event in EVENTS if isinstance(event.body, PutFrame)]


def folded(events: Sequence[Folded] = EVENTS, batch: int = 100) -> FulltextProjection:
    projection = FulltextProjection()
    for start in range(0, len(events), batch):
        projection.apply(events[start : start + batch])
    return projection


def view_of(projection: FulltextProjection, n: int = len(EVENTS)) -> FulltextView:
    frames = FramesProjection()
    frames.apply(EVENTS[:n])
    return projection.snapshot().view(frames.snapshot().alive(n))


# --- folding ---------------------------------------------------------------------------------


def fold_ratio() -> float:
    """Return how many times the cutting of words alone a fold takes, once the words are known."""
    projection = folded()
    learnt = projection._vocabulary

    def fold() -> None:
        one = FulltextProjection()
        one._vocabulary = learnt
        one._seal.restart()
        one.apply(EVENTS)

    cutting = seconds(lambda: [text.words(content) for content in TEXTS])
    return seconds(fold) / cutting


def test_folding_known_words_costs_little_more_than_cutting_them() -> None:
    """Measured 2.3 to 3 times; with a dictionary asked word by word, 7 times."""
    assert fold_ratio() < 6


def test_known_words_are_looked_up_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count behind the ratio, without a clock: no known word is handled by itself."""
    handled: list[int] = []
    learn = Vocabulary._learn

    def counted(self: Vocabulary, data: bytes, words: Words, unknown: I64, rows: RowsOf) -> I32:
        handled.append(len(unknown))
        return learn(self, data, words, unknown, rows)

    monkeypatch.setattr(Vocabulary, "_learn", counted)
    projection = folded()
    first, distinct = sum(handled), len(WORDS)
    assert first < 3 * distinct
    handled.clear()
    later = [replace(event, seq=projection.seq + event.seq) for event in EVENTS]
    projection.apply(later)
    # Words of more than 16 bytes are in no table; nothing else is asked for by itself.
    assert sum(handled) < first / 20

    def nothing(self: object, low: U64, high: U64) -> I32:
        return np.full(len(low), UNKNOWN, np.int32)

    monkeypatch.setattr(WordTable, "find", nothing)
    folded()
    assert sum(handled) > 10 * first


TOKENS = np.random.default_rng(7).zipf(1.3, 200_000).astype(np.uint64).clip(0, 99_999)


def test_tokens_are_sorted_by_their_bytes_and_not_by_comparing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numpy sorts 16-bit items by radix and longer ones by comparing.

    The time of both depends on the processor: with AVX-512 they are equally fast.
    """
    tokens = TOKENS.astype(np.uint32)
    expected = np.argsort(tokens, kind="stable")
    sorted_dtypes: list[np.dtype[np.generic]] = []
    argsort = np.argsort

    def noted(items: U32, *, kind: Literal["stable"]) -> I64:
        sorted_dtypes.append(items.dtype)
        return argsort(items, kind=kind)

    # The columns keep the names of numpy that they have used.
    monkeypatch.setattr("cerata.projections.columnar.columns.np.argsort", noted)
    assert (ascending_order(tokens) == expected).all()
    assert sorted_dtypes == [np.dtype(np.uint16)] * 2


def ingest_ratio(folder: Path, batch: int) -> float:
    """Return how many times FTS5's time a store takes for the same texts, to the first answer.

    FTS5 has batches of 100. By the processor, since how long a sync takes is the disk's.
    """
    some = TEXTS[:2_000]

    def ours() -> None:
        with cerata.open(folder / "a.cera") as store:
            for start in range(0, len(some), batch):
                store.put_frames(some[start : start + batch])
            assert store.search(QUESTIONS[0])
        (folder / "a.cera").unlink()

    def peers() -> None:
        fts5_rate(some, 100, str(folder))
        for path in folder.glob("bench.*"):
            path.unlink()

    return seconds(ours, 2) / seconds(peers, 2)


def test_ingest_keeps_up_with_fts5_because_it_comes_in_batches(tmp_path: Path) -> None:
    """Of few texts, whose words are mostly new: measured 2.8 to 3.2 times, one by one 10 to 14."""
    assert ingest_ratio(tmp_path, 100) < 6
    assert ingest_ratio(tmp_path, 1) > 6


def test_rules_that_cannot_act_are_not_asked() -> None:
    from whoosh.lang import porter2

    whole = cast("Rules", porter2).stem
    fast = english()._stem
    some = WORDS[:2_000]
    assert seconds(lambda: list(map(fast, some))) < 0.75 * seconds(lambda: list(map(whole, some)))


def test_loading_is_not_folding() -> None:
    projection = folded()
    chunk = projection.chunk(0)
    loading = seconds(lambda: FulltextProjection().load(chunk))
    assert loading < seconds(folded, 2) / 5


def merged_rows(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[int]:
    """Return how many rows each merge of several pieces gave while something was done."""
    rows: list[int] = []
    merge = postings.merge

    def counted(pieces: Sequence[postings.Piece]) -> postings.Piece:
        made = merge(pieces)
        if len(pieces) > 1:
            rows.append(made.end_row - made.first_row)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(postings, "merge", counted)
        work()
    return rows


def test_loading_merges_nothing_and_a_fold_no_more_than_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many documents there are: with larger pieces, 140,000 took 494 ms to open."""
    events = [replace(one, seq=turn * len(EVENTS) + one.seq) for turn in range(3) for one in EVENTS]
    projection = FulltextProjection()

    def fold() -> None:
        for start in range(0, len(events), 100):
            projection.apply(events[start : start + 100])
            projection.snapshot()

    rows = merged_rows(monkeypatch, fold)
    assert rows
    assert max(rows) <= BLOCK_SEQS
    chunks = [projection.chunk(*span) for span in complete_ranges(projection.seq)]
    assert len(chunks) == 12_240 // BLOCK_SEQS + 7
    loaded = FulltextProjection()
    assert merged_rows(monkeypatch, lambda: loaded.load(*chunks)) == []
    assert loaded.digest() == projection.digest_at(loaded.seq)


@pytest.mark.parametrize("sizes", [(1,), (1, 40), (40, 1, 1), (3, 500, 7), (1, 2, 4, 8, 16, 32)])
def test_there_are_few_pieces_however_small_the_folds_were(sizes: tuple[int, ...]) -> None:
    """Where sizes alternated, no four neighbours were of one size, and none were ever merged."""
    projection = FulltextProjection()
    for size in itertools.islice(itertools.cycle(sizes), 300):
        projection.apply(EVENTS[projection.seq : min(projection.seq + size, BLOCK_SEQS - 1)])
        assert len(projection.snapshot().pieces) <= 16


# --- searching -------------------------------------------------------------------------------


def peer_median() -> float:
    """Return the seconds of FTS5's median search of the same documents."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE found USING fts5(text, tokenize='porter unicode61')")
    database.executemany("INSERT INTO found(text) VALUES (?)", [(content,) for content in TEXTS])
    ask = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank LIMIT 10"
    asked = [(" OR ".join(question.split()),) for question in QUESTIONS[:20]]
    times = [seconds(lambda: database.execute(ask, one).fetchall(), 2) for one in asked]  # noqa: B023
    database.close()
    return sorted(times)[len(times) // 2]


def our_median(projection: FulltextProjection) -> float:
    view = view_of(projection)
    times = [seconds(lambda: view.search(one), 2) for one in QUESTIONS[:20]]  # noqa: B023
    return sorted(times)[len(times) // 2]


def test_a_search_is_faster_than_fts5_because_pieces_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = peer_median()
    assert our_median(folded()) < peer

    def as_they_are(pieces: Sequence[postings.Piece]) -> tuple[postings.Piece, ...]:
        return tuple(pieces)

    monkeypatch.setattr(postings, "tidy", as_they_are)
    # Later questions of a state would read joined pieces: its first ones are measured.
    monkeypatch.setattr(occurrences, "_POSTINGS_MAX", 0)
    monkeypatch.setattr("cerata.projections.fulltext.projection._PIECE_TOKENS_MIN", 1)
    assert our_median(folded(batch=5)) > peer


def past_ratio(percent: int) -> float:
    n = len(EVENTS) * percent // 100
    return side_by_side(view_of(folded(), n), view_of(folded(EVENTS[:n]), n), QUESTIONS)


@pytest.mark.parametrize("percent", [2, 30, 70])
def test_the_past_costs_what_it_cost_then(percent: int) -> None:
    assert past_ratio(percent) < 2.5


def test_only_the_postings_of_the_past_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cut at the view's last row, a search of the past costs one of the present."""
    asked: list[int] = []

    class Counted(Occurrences):
        def gather(self, ids: U32) -> tuple[I64, list[int], Unsigned]:
            found = super().gather(ids)
            asked.append(len(found[0]))
            return found

    monkeypatch.setattr(ranking, "Occurrences", Counted)
    n = len(EVENTS) // 50
    counts: list[int] = []
    for view in (view_of(folded(), n), view_of(folded(EVENTS[:n]), n)):
        asked.clear()
        for question in QUESTIONS:
            view.search(question)
        counts.append(sum(asked))
    assert counts[0] == counts[1] > 0


def test_deletes_cost_little() -> None:
    """Document frequencies count what is current, in the postings that are gathered anyway."""
    index = folded()
    whole = index.snapshot().view(np.ones(DOCUMENTS, np.bool_))
    assert side_by_side(view_of(index), whole, QUESTIONS) < 2
