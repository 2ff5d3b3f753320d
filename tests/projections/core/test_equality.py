"""One history, many ways to its state: each must give the same digest and the same answers."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.projections.core.projection import BLOCK_SEQS
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.analyzer import question_terms
from cerata.projections.fulltext.projection import FulltextProjection

from ..histories import (
    QUERIES,
    Folded,
    Model,
    answers,
    feed,
    fold,
    histories,
    long_history,
    predecessors,
    successors,
    summary,
)


@given(histories)
def test_every_past_state_answers_as_a_store_that_stopped_there(events: list[Folded]) -> None:
    # Time travel is native: a prefix, less what had closed. A fold that stopped is the proof.
    frames, fulltext = fold(events)
    for n in range(len(events) + 1):
        stopped = fold(events[:n])
        assert answers(frames, fulltext, n) == answers(*stopped, n)
        assert frames.digest_at(n) == stopped[0].digest()
        assert fulltext.digest_at(n) == stopped[1].digest()


@given(histories)
def test_search_and_life_equal_the_reference_at_every_n(events: list[Folded]) -> None:
    # The reference is dicts, lists and the formula; scores agree to 6 decimals (float32 idf).
    frames, fulltext = fold(events)
    table, index = frames.snapshot(), fulltext.snapshot()
    for n in range(len(events) + 1):
        model, alive = Model.of(events[:n]), table.alive(n)
        assert table.ids[: table.rows_at(n)][alive].tolist() == model.alive()
        for frame in model.tokens:
            closing = table.closing_of(frame, n)
            assert (closing and (closing.seq, closing.by)) == model.closing_of(frame)
            assert table.children(frame, n) == model.children(frame)
            replaced = [old for old, new in model.direct.items() if new == frame]
            assert table.supersedes_of(frame, n) == sorted(replaced)
            assert successors(table, frame, n) == model.successors(frame)
            assert predecessors(table, frame, n) == model.predecessors(frame)
        for query in QUERIES:
            found = index.view(alive).search(query, k=50)
            expected = model.search(question_terms(query), 50)
            scores = dict(zip(table.ids[found.rows].tolist(), found.scores.tolist(), strict=True))
            assert scores == pytest.approx(dict(expected), abs=1e-6)
            best = index.view(alive).search(query, k=3)
            assert best.rows.tolist() == found.rows[:3].tolist()


@given(
    histories, st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 40), max_size=4)
)
def test_neither_batches_nor_chunks_leave_a_trace(
    events: list[Folded], splits: list[int], cuts: list[int]
) -> None:
    # Fold in other batches; load in other chunks, and fold the rest: one state.
    whole = fold(events)
    others = [fold(events, splits), chunked(whole, events, cuts)]
    for frames, fulltext in others:
        assert frames.digest() == whole[0].digest()
        assert fulltext.digest() == whole[1].digest()
        assert frames.chunk(0) == whole[0].chunk(0)
        assert fulltext.chunk(0) == whole[1].chunk(0)
        n = len(events)
        assert answers(frames, fulltext, n) == answers(*whole, n)
        assert answers(frames, fulltext, n // 2) == answers(*whole, n // 2)


def chunked(
    whole: tuple[FramesProjection, FulltextProjection],
    events: Sequence[Folded],
    cuts: Sequence[int],
) -> tuple[FramesProjection, FulltextProjection]:
    """Return projections that loaded chunks up to the last cut and folded the rest."""
    frames, fulltext = FramesProjection(), FulltextProjection()
    for cut in sorted({cut for cut in cuts if 0 < cut <= len(events)}):
        frames.load(whole[0].chunk(frames.seq, cut))
        fulltext.load(whole[1].chunk(fulltext.seq, cut))
    feed(frames, fulltext, events)
    return frames, fulltext


def test_states_of_several_blocks_agree_however_they_were_reached() -> None:
    # Small histories never complete a digest block or merge large pieces; this one does both.
    events = long_history(3 * BLOCK_SEQS + 500)
    whole = fold(events)
    small = fold(events, range(0, len(events), 37))
    loaded = chunked(whole, events, [100, BLOCK_SEQS - 1, BLOCK_SEQS + 1, 2 * BLOCK_SEQS, 11_000])
    expected = answers(*whole, len(events)), answers(*whole, 5_000)
    for frames, fulltext in (small, loaded):
        assert frames.digest() == whole[0].digest()
        assert fulltext.digest() == whole[1].digest()
        assert (
            answers(frames, fulltext, len(events)),
            answers(frames, fulltext, 5_000),
        ) == expected
    stopped = fold(events[:5_000])
    assert stopped[0].digest() == loaded[0].digest_at(5_000)
    assert stopped[1].digest() == loaded[1].digest_at(5_000)
    assert answers(*stopped, 5_000) == expected[1]


def test_processes_with_other_hash_seeds_have_the_same_digests() -> None:
    # A set or dict in the wrong place would show here, and only here.
    here = Path(__file__).parents[1]
    paths = [str(here), str(here.parents[1])]
    code = f"import sys; sys.path[:0] = {paths!r}; import histories; print(histories.summary())"
    seen = {summary()}
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        seen.add(done.stdout.strip())
    assert len(seen) == 1
