"""BM25 as Whoosh computes it: the same formula by other people, on the same documents.

Whoosh keeps lengths in one byte, through a table, and its idf differs by a constant; both are given
to the two sides. Nothing is deleted: Whoosh counts deleted documents until it merges.
"""

import importlib
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cerata.engine.events import PutFrame
from cerata.projections.fulltext.analyzer import terms
from cerata.projections.fulltext.bm25 import Fulltext, FulltextView

from ..histories import events_of, fold

WORDS = [f"w{number}" for number in range(60)]


def documents(dice: random.Random) -> list[str]:
    """Return texts of very different lengths, common words and rare ones."""
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    sizes = [dice.choice((1, 3, 11, 15, 40, 300, 2_000)) for _ in range(60)]
    return [" ".join(dice.choices(WORDS, weights, k=size)) for size in sizes]


def whoosh(name: str) -> Any:
    """Return a module of Whoosh."""
    return importlib.import_module(f"whoosh.{name}")


def whoosh_scores(texts: Sequence[str], questions: Sequence[str]) -> list[dict[int, float]]:
    """Return Whoosh's BM25F scores by number of document, one dictionary a question."""
    analysis, fields, query, scoring, store = (
        whoosh(name) for name in ("analysis", "fields", "query", "scoring", "filedb.filestore")
    )
    schema = fields.Schema(
        number=fields.STORED,
        text=fields.TEXT(analyzer=analysis.SpaceSeparatedTokenizer(), phrase=False),
    )
    index = store.RamStorage().create_index(schema)
    writer = index.writer()
    for number, text in enumerate(texts):
        writer.add_document(number=number, text=text)
    writer.commit()
    weighting = scoring.BM25F(B=0.75, K1=1.2)
    found: list[dict[int, float]] = []
    with index.searcher(weighting=weighting) as searcher:
        # Our idf of Whoosh's counts, so that the counts are compared, and the rest of the formula.
        def idf_of(searcher: Any, field: str, text: str) -> float:
            return idf(searcher.doc_count_all(), searcher.doc_frequency(field, text))

        weighting.idf = idf_of
        for question in questions:
            parts = [query.Term("text", word) for word in question.split()]
            hits = searcher.search(query.Or(parts), limit=None)
            found.append({hit["number"]: hit.score for hit in hits})
    return found


def idf(count: int, frequency: int) -> float:
    return float(np.float32(np.log(1 + (count - frequency + 0.5) / (frequency + 0.5))))


def through_whooshs_table(view: Fulltext, count: int) -> FulltextView:
    """Return the view whose lengths are what Whoosh keeps; their sum stays exact, as there."""
    table = whoosh("util.numeric")
    exact = view.lengths
    kept = [table.byte_to_length(table.length_to_byte(size)) for size in exact.total.tolist()]
    lengths = np.array(kept, np.uint32)
    assert (lengths != exact.total).any()
    changed = msgspec.structs.replace(exact, total=lengths)
    found = Fulltext(view.pieces, view.vocabulary, changed, view.seq, view.marks).view(
        np.ones(count, np.bool_)
    )
    found._scoring.token_count = int(exact.total.sum())
    return found


@pytest.mark.parametrize("number", range(5))
def test_scores_are_those_of_whoosh(
    number: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its index in memory writes to one name in the folder for temporary files, whoever asks.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dice = random.Random(seed + number)
    texts = documents(dice)
    questions = [" ".join(dice.sample(WORDS, 4)) for _ in range(20)]
    assert terms(questions[0]) == questions[0].split()
    view = through_whooshs_table(
        fold(events_of([PutFrame(text=text) for text in texts]))[1].snapshot(), len(texts)
    )
    for question, expected in zip(questions, whoosh_scores(texts, questions), strict=True):
        found = view.search(question, k=len(texts))
        scores = dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
        assert scores == pytest.approx(expected, abs=1e-9)
        assert len(scores) > 10
