"""A second stage: a model reads the question with each of the best hits, and sorts them.

    python examples/second_stage.py [--model cross-encoder/ms-marco-MiniLM-L6-v2]

Without ``--model`` a toy runs, which counts pairs of neighbouring words. With it, a cross-encoder
of the package sentence-transformers runs, which must be installed, and may download the model. The
recall is recorded with the scores, and repeated without the model.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

import cerata
from cerata.engine.events import RecallContext

NOTES = (
    "From Oslo to Bergen: the train goes at noon.",
    "We take the slow train from Bergen to Oslo in the morning, if there is snow on the mountains.",
    "Bergen and Oslo both have a tram.",
)
QUESTION = "Which train goes from Bergen to Oslo?"


class Pairs:
    """A toy: the count of pairs of neighbouring words that a text shares with the question."""

    identity = "pairs@1"

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the count of each text."""
        return [len(self._pairs(question) & self._pairs(text)) for text in texts]

    def _pairs(self, text: str) -> set[tuple[str, str]]:
        words = text.lower().replace("?", "").replace(",", "").split()
        return set(pairwise(words))


class CrossEncoder:
    """A cross-encoder of sentence-transformers, loaded for the first question."""

    hits = 20

    def __init__(self, name: str) -> None:
        self.identity = f"{name}@main"
        self._name = name
        self._model: Any = None

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the model's score of each text."""
        if self._model is None:
            package: Any = import_module("sentence_transformers")
            self._model = package.CrossEncoder(self._name)
        scores: Sequence[float] = self._model.predict([(question, text) for text in texts])
        return scores


def run(reranker: cerata.Reranker) -> None:
    """Sort the hits, record a recall, and repeat it without the model."""
    with cerata.open(":memory:") as store:
        store.put_frames(NOTES)
        for name, hits in (
            ("by words", store.search(QUESTION)),
            ("reranked", store.search(QUESTION, rerank=reranker)),
        ):
            print(f"{name}: {hits[0].text}")
        print(store.history.explain(hits[0]).reranked)
        context = store.recall(QUESTION, record=True, profile=cerata.Ranking(rerank=reranker))

        [event] = store.log(context.recorded or 0, context.recorded)
        recall = event.body
        assert isinstance(recall, RecallContext)
        scores = np.frombuffer(recall.reranked_scores or b"", "<f8").tolist()
        repeated = store.at(recall.basis).recall(
            recall.query,
            profile=cerata.Ranking(rerank=dict(zip(recall.reranked, scores, strict=True))),
        )
        assert repeated.text == context.text
        print(f"repeated without {recall.reranker}, byte for byte")


def main() -> int:
    """Run the example with the options of the command line."""
    parser = argparse.ArgumentParser(description="A model sorts the best hits.")
    parser.add_argument("--model", help="a cross-encoder of sentence-transformers")
    options = parser.parse_args()
    run(CrossEncoder(options.model) if options.model else Pairs())
    return 0


if __name__ == "__main__":
    sys.exit(main())
