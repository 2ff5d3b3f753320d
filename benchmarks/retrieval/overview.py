"""All development sets in one table, beside SQLite FTS5, and the guard over them.

    python -m benchmarks.retrieval all --data DIR
    python -m benchmarks.retrieval all --data DIR --sets locomo,beam --embedders none,minilm
    python -m benchmarks.retrieval all --data DIR --contexts --json

Uses the public API alone: `cerata.open`, transactions, `search` and `recall`. R@1 is the share of
questions whose first hit is relevant.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import cerata
from benchmarks.append_bench import machine
from cerata import CerataError, NotFound, Profile

from . import marks, xquad
from .development import DEFAULT_EMBEDDERS, EMBEDDERS, FOLDERS, PLAIN, SETS
from .embedding_cache import CachedEmbedder
from .folder_set import FolderScores, measure_folder
from .guard import Line, guard
from .ingest import Style, ingest
from .judged_set import Corpus, JudgedSet, Question, json_of, text_of
from .metrics import gain, recall
from .report import percent, table
from .sqlite_peer import TOKENIZERS, ranked_by_peer

DEPTH: Final = 10
CONTEXT_TOKENS: Final = 500
MORE_CONTEXTS: Final = (1_000, 2_000)
ANSWER_TOKENS: Final = 1_500
EVIDENCE_SETS: Final = ("locomo",)
MARKED_SETS: Final = ("locomo",)
"""Sets whose questions are also asked of another conversation (`marks`)."""

Progress = Callable[[str], None]


@dataclass(slots=True)
class Row:
    """The figures of a set with an embedder, or with a tokenizer of FTS5; shares of 1.

    - ``silent`` is the share of answerable questions whose context has no entry.
    - ``contexts`` has the evidence, or the answers, inside contexts of a budget.
    """

    set: str
    system: str
    questions: int
    scores: dict[str, float]
    silent: float | None = None
    unsure: float | None = None
    contexts: dict[str, float] = field(default_factory=dict[str, float])
    answered: dict[str, int] = field(default_factory=dict[str, int])
    folder: FolderScores | None = None
    milliseconds: float | None = None


@dataclass(slots=True)
class _Sums:
    """The sums over the questions of a set."""

    questions: int = 0
    first: float = 0.0
    found: float = 0.0
    gained: float = 0.0
    seconds: float = 0.0
    silent: int = 0
    unsure: int = 0
    contexts: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, ranked: Sequence[str], question: Question) -> None:
        self.questions += 1
        self.first += bool(ranked) and ranked[0] in question.relevant
        self.found += recall(ranked, question.relevant, DEPTH)
        self.gained += gain(ranked, question.relevant, DEPTH)

    @property
    def scores(self) -> dict[str, float]:
        sums = {"R@1": self.first, f"R@{DEPTH}": self.found, f"nDCG@{DEPTH}": self.gained}
        return {name: total / self.questions for name, total in sums.items()}


def peer_rows(judged: JudgedSet, name: str) -> list[Row]:
    """Return a row for each tokenizer of FTS5."""
    rows: list[Row] = []
    for tokenizer in TOKENIZERS:
        sums = _Sums()
        for corpus in judged.corpora:
            ranked = ranked_by_peer(corpus, tokenizer, DEPTH)
            for question in corpus.questions:
                sums.add(ranked[question.id], question)
        rows.append(Row(name, f"fts5 {tokenizer}", sums.questions, sums.scores))
    return rows


class _Asking:
    """A set that is asked with an embedder."""

    def __init__(
        self, judged: JudgedSet, name: str, profile: Any, answers: dict[str, tuple[str, ...]] | None
    ) -> None:
        self._judged = judged
        self._name = name
        self._profile = profile
        self._answers = answers
        self._sums = _Sums()
        self._counts: marks.Counts = {}

    def row(self, system: str, embedder: Any, *, contexts: bool, progress: Progress) -> Row:
        with tempfile.TemporaryDirectory() as folder:
            for place, corpus in enumerate(self._judged.corpora):
                progress(f"{self._name}, {system}: {place + 1} of {len(self._judged.corpora)}")
                stored = ingest(corpus, Path(folder) / f"{place}.cera", Style(), embedder)
                with cerata.open(stored.path, mode="r", embedder=embedder) as store:
                    view = store.at("HEAD", now=corpus.newest)
                    self._search(view, corpus, stored.documents)
                    self._recall(view, corpus, stored.documents, contexts=contexts)
                    if self._name in MARKED_SETS:
                        marks.count_answered(
                            self._judged, place, view, self._profile, self._counts
                        )
                stored.path.unlink()
        sums = self._sums
        count = sums.questions
        return Row(
            self._name,
            system,
            count,
            sums.scores,
            silent=sums.silent / count,
            unsure=sums.unsure / count,
            contexts={budget: total / count for budget, total in sums.contexts.items()},
            answered=self._counts,
            milliseconds=1e3 * sums.seconds / count,
        )

    def _search(self, view: Any, corpus: Corpus, documents: dict[int, str]) -> None:
        if corpus.questions:
            # The first question loads the indexes.
            view.search(corpus.questions[0].text, k=DEPTH, profile=self._profile)
        for question in corpus.questions:
            started = time.process_time()
            hits = view.search(question.text, k=DEPTH, profile=self._profile)
            self._sums.seconds += time.process_time() - started
            self._sums.add([documents[hit.id] for hit in hits if hit.id in documents], question)

    def _recall(
        self, view: Any, corpus: Corpus, documents: dict[int, str], *, contexts: bool
    ) -> None:
        sums = self._sums
        for question in corpus.questions:
            context = view.recall(question.text, max_tokens=CONTEXT_TOKENS, profile=self._profile)
            sums.silent += not context.items
            sums.unsure += bool(context.items) and not marks.is_clear(context)
            if not contexts:
                continue
            if self._name in EVIDENCE_SETS:
                self._add_evidence(context, question, documents, CONTEXT_TOKENS)
                for tokens in MORE_CONTEXTS:
                    larger = view.recall(question.text, max_tokens=tokens, profile=self._profile)
                    self._add_evidence(larger, question, documents, tokens)
            if self._answers is not None:
                larger = view.recall(question.text, max_tokens=ANSWER_TOKENS, profile=self._profile)
                shown = any(answer in larger.text for answer in self._answers[question.id])
                name = f"answer in {ANSWER_TOKENS:,}"
                sums.contexts[name] = sums.contexts.get(name, 0.0) + shown

    def _add_evidence(
        self, context: cerata.Context, question: Question, documents: dict[int, str], tokens: int
    ) -> None:
        """Add the share of relevant documents that a context shows whole."""
        frames = [
            frame for item in context.items if not item.clipped for frame in (item.id, *item.joined)
        ]
        names = [documents[frame] for frame in frames if frame in documents]
        name = f"evidence in {tokens:,}"
        share = recall(names, question.relevant, len(names))
        self._sums.contexts[name] = self._sums.contexts.get(name, 0.0) + share


def _folder_row(name: str, system: str, data: Path, embedder: Any, profile: Any) -> Row:
    started = time.process_time()
    folder = measure_folder(data, embedder, with_log=FOLDERS[name], profile=profile)
    count = folder.asked + folder.words
    milliseconds = 1e3 * (time.process_time() - started) / max(count, 1)
    return Row(name, system, folder.asked, {}, folder=folder, milliseconds=milliseconds)


def run(options: argparse.Namespace, progress: Progress) -> tuple[list[Row], list[str]]:
    """Return the rows of the chosen sets and embedders, and a notice for each part left out.

    Raises:
        NotFound: the folder has none of the chosen sets.
        InvalidInput: a file has another form.
    """
    rows: list[Row] = []
    notices: list[str] = []
    profile = _profile(options.profile)
    embedders = _embedders(options.embedders, options.cache, notices)
    for name in options.sets:
        file = FOLDERS.get(name) is None and SETS[name][0]
        path = options.data / (file or "") if file is not False else options.data / "mixed-folder"
        if not path.exists():
            notices.append(f"{name}: {path} does not exist; left out")
            continue
        judged = None
        if name in SETS:
            judged = SETS[name][1](path)
            progress(f"{name}: FTS5")
            rows += peer_rows(judged, name)
        for system, embedder in embedders.items():
            if judged is None:
                progress(f"{name}, {system}")
                rows.append(_folder_row(name, system, options.data, embedder, profile))
            else:
                answers = xquad.answers(path) if name.startswith("xquad") else None
                asking = _Asking(judged, name, profile, answers)
                rows.append(
                    asking.row(system, embedder, contexts=options.contexts, progress=progress)
                )
    if not rows:
        raise NotFound(
            "The folder has none of the chosen sets",
            where=str(options.data),
            remedy="Pass the folder of the development sets with --data.",
        )
    return rows, notices


def _embedders(names: Iterable[str], cache: Path, notices: list[str]) -> dict[str, Any]:
    embedders: dict[str, Any] = {}
    for name in names:
        try:
            model = EMBEDDERS[name]()
        except CerataError as error:
            notices.append(f"embedder {name} is left out: {error}")
            continue
        embedders[name] = None if model is None else CachedEmbedder(model, cache)
    return embedders


def _profile(value: str | None) -> str | Profile | None:
    """Return a profile: None, a name, or the profile of a JSON file."""
    if value is None or not value.endswith(".json"):
        return value
    members: Any = json_of(text_of(Path(value)), value)
    return Profile.from_dict(members)


def main(options: argparse.Namespace, progress: Progress) -> int:
    """Run all sets, print the table and the guard; return 1 if a line of the guard fails."""
    started = time.time()
    rows, notices = run(options, progress)
    lines = guard(rows)
    if options.json:
        content = {
            "machine": machine().splitlines(),
            "cerata": cerata.__version__,
            "seconds": time.time() - started,
            "notices": notices,
            "rows": [asdict(row) for row in rows],
            "guard": [line._asdict() for line in lines],
        }
        print(json.dumps(content, indent=1))
    else:
        for text in report(rows, lines, notices):
            print(text)
        print(f"{time.time() - started:.0f} s")
    sys.stdout.flush()
    return 0 if all(line.passes for line in lines) else 1


def report(rows: Sequence[Row], lines: Sequence[Line], notices: Sequence[str]) -> Iterable[str]:
    """Yield the lines for people."""
    yield f"{machine()}, cerata {cerata.__version__}"
    yield from notices
    yield ""
    yield from _score_lines(rows)
    yield from _folder_lines(rows)
    yield from _answered_lines(rows)
    yield ""
    for line in lines:
        yield line.text
    failed = sum(not line.passes for line in lines)
    yield f"guard: {len(lines) - failed} of {len(lines)} lines pass"


def _score_lines(rows: Sequence[Row]) -> Iterable[str]:
    shown = [["set", "system", "n", "R@1/R@10/nDCG@10", "nothing", "unsure", "ms", "contexts"]]
    for row in rows:
        if row.folder is None:
            shown.append(
                [
                    row.set,
                    row.system,
                    f"{row.questions:,}",
                    "/".join(percent(score) for score in row.scores.values()),
                    "" if row.silent is None else percent(row.silent),
                    "" if row.unsure is None else percent(row.unsure),
                    "" if row.milliseconds is None else f"{row.milliseconds:.2f}",
                    ", ".join(f"{name} {percent(of)}" for name, of in row.contexts.items()),
                ]
            )
    return table(shown) if len(shown) > 1 else []


def _folder_lines(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        if (folder := row.folder) is not None:
            yield (
                f"{row.set}, {row.system}: of {folder.asked} answers {folder.shown} in 400 tokens "
                f"and {folder.first} first; of {folder.words} words {folder.words_first} first; "
                f"{folder.answered_without} answered without an answer; "
                f"lost {folder.lost + folder.words_lost}"
            )


def _answered_lines(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        if row.answered:
            counts = ", ".join(f"{form} {count}" for form, count in row.answered.items())
            yield f"{row.set}, {row.system}: answered of {marks.COUNT} questions: {counts}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``all`` but for the cache."""
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument(
        "--sets",
        type=lambda text: _chosen(text, [*SETS, *FOLDERS]),
        default=[*SETS, *FOLDERS],
        help=f"separated by commas; default all: {', '.join([*SETS, *FOLDERS])}",
    )
    parser.add_argument(
        "--embedders",
        type=lambda text: _chosen(text, [*EMBEDDERS]),
        default=[*DEFAULT_EMBEDDERS],
        help=f"of {', '.join(EMBEDDERS)}; default {','.join(DEFAULT_EMBEDDERS)}",
    )
    parser.add_argument("--profile", help="a profile by name, or the JSON file of one")
    parser.add_argument(
        "--contexts", action="store_true", help="also evidence and answers inside contexts (slow)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _chosen(text: str, names: Sequence[str]) -> list[str]:
    parts = [part for part in text.split(",") if part]
    unknown = [part for part in parts if part not in names]
    if unknown or not parts:
        raise argparse.ArgumentTypeError(f"use some of {', '.join(names)}, not {text!r}")
    return parts


__all__ = ["PLAIN", "Row", "add_options", "main", "peer_rows", "report", "run"]
