"""A judged set, asked with an embedder or with FTS5: a row of the table of all sets.

Uses the public API alone: `cerata.open`, transactions, `search` and `recall`. R@1 is the share of
questions whose first hit is relevant. Time is processor time of a search, without the model.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import cerata
from cerata import Context, View

from . import marks
from .development import PASSAGE_TOKENS, TURN_TOKENS
from .folder_set import FolderScores
from .ingest import Style, ingest
from .judged_set import Corpus, JudgedSet, Question
from .metrics import gain, mean, recall
from .sqlite_peer import TOKENIZERS, ranked_by_peer

DEPTH: Final = 10
EVIDENCE_TOKENS: Final = (500, 1_000, 2_000)
"""Budgets whose share of evidence is measured, in sets of short turns."""

ANSWER_TOKENS: Final = 1_500
MARKED: Final = "locomo"
"""The set whose questions are also asked of another conversation (`marks`)."""

Progress = Callable[[str], None]
Answers = Mapping[str, tuple[str, ...]]
"""The texts of the answers of each question."""


@dataclass(slots=True)
class Row:
    """The figures of a set with an embedder, or with a tokenizer of FTS5 as ``system``.

    - ``each`` has the metrics of each question, as shares of 1, also those of its contexts.
    - ``nothing`` and ``unsure`` are shares of answerable questions: their context has no entry, or
      tells that no entry clearly answers. None without contexts.
    - ``answered`` has the counts of `marks`.
    """

    set: str
    system: str
    digest: str = ""
    each: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    nothing: float | None = None
    unsure: float | None = None
    answered: marks.Counts = field(default_factory=dict[str, int])
    folder: FolderScores | None = None
    milliseconds: float | None = None

    @property
    def scores(self) -> dict[str, float]:
        """The means over all questions; empty for a folder."""
        return mean([*self.each.values()])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, without those of each question."""
        return {
            "set": self.set,
            "system": self.system,
            "digest": self.digest,
            "questions": len(self.each),
            "scores": self.scores,
            "nothing": self.nothing,
            "unsure": self.unsure,
            "answered": self.answered,
            "folder": None if self.folder is None else self.folder.to_dict(),
            "milliseconds": self.milliseconds,
        }


def scores_of(ranked: Sequence[str], question: Question) -> dict[str, float]:
    """Return R@1, R@10 and nDCG@10 of a ranking."""
    return {
        "R@1": float(bool(ranked) and ranked[0] in question.relevant),
        f"R@{DEPTH}": recall(ranked, question.relevant, DEPTH),
        f"nDCG@{DEPTH}": gain(ranked, question.relevant, DEPTH),
    }


def peer_row(judged: JudgedSet, name: str, tokenizer: str) -> Row:
    """Return the row of a tokenizer of FTS5."""
    assert tokenizer in TOKENIZERS
    row = Row(name, f"fts5 {tokenizer}", judged.digest)
    for corpus in judged.corpora:
        ranked = ranked_by_peer(corpus, tokenizer, DEPTH)
        for question in corpus.questions:
            row.each[question.id] = scores_of(ranked[question.id], question)
    return row


@dataclass(slots=True)
class Asking:
    """The questions of a set, and the form in which they run.

    - ``tokens`` is the budget of the contexts whose entries are counted.
    - ``quick`` leaves out all contexts; ``contexts`` adds evidence and answers inside them.
    """

    judged: JudgedSet
    name: str
    tokens: int = PASSAGE_TOKENS
    answers: Answers | None = None
    profile: Any = None
    quick: bool = False
    contexts: bool = False

    def row(self, system: str, embedder: Any, progress: Progress) -> Row:
        """Write each corpus to a file, open it, and ask its questions."""
        row = Row(self.name, system, self.judged.digest)
        seconds = 0.0
        nothing = unsure = 0
        with tempfile.TemporaryDirectory() as folder:
            for place, corpus in enumerate(self.judged.corpora):
                progress(f"{self.name}, {system}: {place + 1} of {len(self.judged.corpora)}")
                stored = ingest(corpus, Path(folder) / f"{place}.cera", Style(), embedder)
                with cerata.open(stored.path, mode="r", embedder=embedder) as store:
                    view = store.at("HEAD", now=corpus.newest)
                    seconds += self._search(view, corpus, stored.documents, row)
                    if not self.quick:
                        for context in self._contexts(view, corpus, stored.documents, row):
                            nothing += not context.items
                            unsure += bool(context.items) and not marks.is_clear(context)
                        if self.name == MARKED:
                            marks.count(self.judged, place, view, self.profile, row.answered)
                stored.path.unlink()
        row.milliseconds = 1e3 * seconds / len(row.each)
        if not self.quick:
            row.nothing, row.unsure = nothing / len(row.each), unsure / len(row.each)
        return row

    def _search(self, view: View, corpus: Corpus, documents: Mapping[int, str], row: Row) -> float:
        """Add the scores of each question; return the processor seconds of all."""
        seconds = 0.0
        # The first question of all loads the indexes.
        for question in corpus.questions[:1]:
            view.search(question.text, k=DEPTH, profile=self.profile)
        for question in corpus.questions:
            started = time.process_time()
            hits = view.search(question.text, k=DEPTH, profile=self.profile)
            seconds += time.process_time() - started
            ranked = [documents[hit.id] for hit in hits if hit.id in documents]
            row.each[question.id] = scores_of(ranked, question)
        return seconds

    def _contexts(
        self, view: View, corpus: Corpus, documents: Mapping[int, str], row: Row
    ) -> list[Context]:
        """Return the context of each question, and add the scores of those of other budgets."""
        contexts: list[Context] = []
        for question in corpus.questions:
            contexts.append(self._recall(view, question, self.tokens, whole=True))
            if not self.contexts:
                continue
            scores = row.each[question.id]
            if self.tokens == TURN_TOKENS:
                for tokens in EVIDENCE_TOKENS:
                    context = self._recall(view, question, tokens)
                    scores[f"in {tokens:,}"] = _evidence(context, question, documents)
            if self.answers is not None:
                text = self._recall(view, question, ANSWER_TOKENS).text
                answers = self.answers[question.id]
                has_answer = any(answer in text for answer in answers)
                scores[f"answer in {ANSWER_TOKENS:,}"] = float(has_answer)
        return contexts

    def _recall(
        self, view: View, question: Question, tokens: int, *, whole: bool = False
    ) -> Context:
        """Return a context; ``whole`` lets an entry take the budget of all."""
        if whole:
            return view.recall(
                question.text,
                max_tokens=tokens,
                profile=self.profile,
                layout=cerata.Layout(entry_tokens=tokens),
            )
        return view.recall(question.text, max_tokens=tokens, profile=self.profile)


def _evidence(context: Context, question: Question, documents: Mapping[int, str]) -> float:
    """Return the share of relevant documents that a context shows whole."""
    whole = [item for item in context.items if not item.clipped]
    frames = [frame for item in whole for frame in (item.id, *item.joined)]
    names = [documents[frame] for frame in frames if frame in documents]
    return recall(names, question.relevant, len(names))
