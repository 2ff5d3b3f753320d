"""SQLite FTS5 as a user would set it up, as the peer of a search by words.

A document is a row with its title, its speaker and its text. A question is its words in quotes,
joined by OR; for the tokenizer ``trigram`` it is all runs of three letters of its words. The order
is BM25, then that of writing.
"""

import re
import sqlite3
from collections.abc import Iterable
from typing import Final

from .judged_set import Corpus, Document

TOKENIZERS: Final = {
    "porter": "porter unicode61",
    "unicode61": "unicode61",
    "trigram": "trigram",
}
"""The arguments of each tokenizer by its short name."""

_RUN: Final = 3


class Peer:
    """An index of documents in memory.

    Args:
        documents: the documents, in the order of writing
        tokenizer: a name in `TOKENIZERS`
    """

    def __init__(self, documents: Iterable[Document], tokenizer: str) -> None:
        self._ids: list[str] = []
        self._is_trigram = tokenizer == "trigram"
        self._database = sqlite3.connect(":memory:")
        options = f"text, tokenize='{TOKENIZERS[tokenizer]}'"
        self._database.execute(f"CREATE VIRTUAL TABLE texts USING fts5({options})")
        for row, document in enumerate(documents):
            self._ids.append(document.id)
            self._database.execute(
                "INSERT INTO texts (rowid, text) VALUES (?, ?)", (row, _text(document))
            )

    def ranked(self, question: str, k: int) -> list[str]:
        """Return the ids of the first ``k`` documents, best first."""
        words: list[str] = re.findall(r"\w+", question)
        if self._is_trigram:
            words = [run for word in words for run in _runs(word)]
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        rows = self._database.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?", (query, k)
        )
        return [self._ids[row] for (row,) in rows]


def ranked_by_peer(corpus: Corpus, tokenizer: str, k: int) -> dict[str, list[str]]:
    """Return the first ``k`` documents of each question of a corpus."""
    peer = Peer(corpus.documents, tokenizer)
    return {question.id: peer.ranked(question.text, k) for question in corpus.questions}


def _text(document: Document) -> str:
    title = f"{document.title}\n" if document.title else ""
    speaker = f"{document.role}: " if document.role else ""
    return title + speaker + document.text


def _runs(word: str) -> list[str]:
    return [word[start : start + _RUN] for start in range(len(word) - _RUN + 1)] or [word]
